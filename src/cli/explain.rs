//! `proctor explain`: what the code of a verdict or a warning means.

use std::fmt::Write as _;

use super::{Exit, print, stop_with};
use crate::compare::code::explanations;
use crate::report::layout::wrap;

/// Columns of a paragraph.
const WIDTH: usize = 80;

/// Arguments of `proctor explain`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The code, as in `[V3]`; without one, all codes are listed
    code: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let known = explanations()?;
    let Some(typed) = &args.code else {
        let mut list = String::new();
        for one in &known {
            let _ = writeln!(list, "{:<5}{}", one.code, one.title);
        }
        return print(&list);
    };
    let code = typed.trim_matches(['[', ']']).to_uppercase();
    let Some(one) = known.iter().find(|one| one.code == code) else {
        let hint = "`proctor explain` lists all codes";
        return stop_with(Exit::Usage, format!("no code `{typed}`"), hint);
    };
    let text = wrap(one.text.trim(), WIDTH).join("\n");
    print(&format!("{}: {}\n\n{text}\n", one.code, one.title))
}
