//! `proctor explain`: what the code of a verdict or a warning means.

use std::fmt::Write as _;

use super::{Exit, Result, print, stop_with};
use crate::compare::code::explanations;
use crate::report::layout::wrap;
use crate::settings::did_you_mean;

/// Columns of a paragraph.
const WIDTH: usize = 80;

/// Arguments of `proctor explain`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The code, as in `[V3]`; without one, all codes are listed
    code: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
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
        let hint = match did_you_mean(&code, known.iter().map(|one| one.code.as_str())) {
            Some(near) => format!("did you mean `{near}`? `proctor explain` lists all codes"),
            None => "`proctor explain` lists all codes".to_owned(),
        };
        return stop_with(Exit::Usage, format!("no code `{typed}`"), hint);
    };
    let text = wrap(one.text.trim(), WIDTH).join("\n");
    print(&format!("{}: {}\n\n{text}\n", one.code, one.title))
}
