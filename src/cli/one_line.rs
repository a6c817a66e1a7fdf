//! Lines that are cut where a terminal ends, so that a screen has as many lines as were counted.

use super::{Exit, print, template, terminal};
use crate::report::escape::plain;
use crate::report::layout::cut;

/// Prints the text that a template makes of these facts; the ends of lines that are too long are left out.
pub(super) fn show_cut(facts: impl serde::Serialize, template: &str) -> anyhow::Result<Exit> {
    let columns = terminal().columns();
    let text = template::fill(template, facts)?;
    let lines = text.lines();
    let lines = lines.map(|line| cut(&plain(line), columns) + "\n");
    print(&lines.collect::<String>())?;
    Ok(Exit::Done)
}
