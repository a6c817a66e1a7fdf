//! `proctor inspect RUN --cell KEY --metric NAME`: one number with all that it is computed from.

use std::path::Path;

use crate::cli::{CliError, Exit, print, print_json, read_run, terminal};
use crate::record::CellKey;
use crate::report::explain::{EXPLAINED, ExplainError, explain as explain_cell};
use crate::settings::did_you_mean;

/// Prints the formula, the numerator and the denominator, and their terms.
pub(super) fn explain(
    folder: &Path,
    cell: &str,
    metric: &str,
    as_json: bool,
) -> anyhow::Result<Exit> {
    let run = read_run(folder)?;
    let keys: Vec<CellKey> = run
        .cells
        .iter()
        .map(crate::record::CellRecord::key)
        .collect();
    let is_meant = |key: &&CellKey| {
        let name = key.to_string();
        name == cell || name.strip_suffix("/0") == Some(cell)
    };
    let Some(key) = keys.iter().find(is_meant) else {
        let names: Vec<String> = keys.iter().map(CellKey::to_string).collect();
        let hint = match did_you_mean(cell, names.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!(
                "the first is `{}`",
                names.first().map_or("", String::as_str)
            ),
        };
        let problem = ExplainError::Cell(cell.to_owned()).to_string();
        return Err(CliError::new(Exit::NothingSelected, problem)
            .with_hint(hint)
            .into());
    };
    let found = match explain_cell(&run.cells, key, metric) {
        Ok(found) => found,
        Err(error @ ExplainError::Metric(_)) => {
            let hint = format!("it can be one of {}", EXPLAINED.join(", "));
            return Err(CliError::new(Exit::Usage, error.to_string())
                .with_hint(hint)
                .into());
        }
        Err(error) => return Err(CliError::new(Exit::NothingSelected, error.to_string()).into()),
    };
    if as_json {
        print_json(&found)?;
    } else {
        let table = terminal().section(&found.terms);
        print(&format!(
            "{}\n\n{}\n",
            table.trim_matches('\n'),
            found.in_words()
        ))?;
    }
    Ok(Exit::Done)
}
