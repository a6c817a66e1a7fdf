//! `proctor inspect RUN --cell KEY --metric NAME`: one number with all that it is computed from.

use std::collections::BTreeSet;
use std::path::Path;

use crate::cli::{CliError, Exit, print, print_json, read_run, stop, stop_with, terminal};
use crate::metric::name::called;
use crate::naming::short_name;
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
        let short = format!("{}/{}", key.session, short_name(&key.strategy));
        name == cell || name.strip_suffix("/0") == Some(cell) || key.repeat == 0 && short == cell
    };
    let Some(key) = keys.iter().find(is_meant) else {
        let hint = hint(cell, &keys);
        let problem = ExplainError::Cell(cell.to_owned()).to_string();
        return Err(CliError::new(Exit::NothingSelected, problem)
            .with_hint(hint)
            .into());
    };
    let found = match explain_cell(&run.cells, key, metric) {
        Ok(found) => found,
        Err(error @ ExplainError::Metric(_)) => {
            if let Some(problem) = called(metric, &EXPLAINED) {
                return stop(Exit::Usage, problem);
            }
            let hint = format!("it can be one of {}", EXPLAINED.join(", "));
            return stop_with(Exit::Usage, error.to_string(), hint);
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

/// The cell that was meant, or the strategies of its session.
fn hint(cell: &str, keys: &[CellKey]) -> String {
    let names: Vec<String> = keys
        .iter()
        .map(|key| key.to_string().trim_end_matches("/0").to_owned())
        .collect();
    if let Some(meant) = did_you_mean(cell, names.iter().map(String::as_str)) {
        return format!("did you mean `{meant}`?");
    }
    let own = keys.iter().filter(|key| cell.starts_with(&*key.session));
    let strategies: Vec<&str> = own.map(|key| &*key.strategy).collect();
    if strategies.is_empty() {
        let sessions: BTreeSet<&str> = keys.iter().map(|key| &*key.session).collect();
        let sessions: Vec<&str> = sessions.into_iter().take(5).collect();
        return format!(
            "a cell is SESSION/STRATEGY; the first sessions are {}",
            sessions.join(", ")
        );
    }
    format!("its session has {}", strategies.join(", "))
}
