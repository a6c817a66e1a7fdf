//! `proctor inspect RUN --metric NAME`: a number of a run with all that it is computed from; with
//! `--cell KEY` that of one cell.

use std::collections::BTreeSet;
use std::path::Path;

use crate::cli::{Exit, Result, print, print_json, read_run, stop, stop_with, terminal};
use crate::metric::name::called;
use crate::naming::short_name;
use crate::record::{CellKey, CellRecord};
use crate::report::Report;
use crate::report::explain::{
    EXPLAINED, ExplainError, explain as explain_cell, explain_column, explained,
};
use crate::settings::did_you_mean;

/// Prints a column of the comparison: of each strategy, or of one, the values of its sessions.
pub(super) fn explain_run(
    folder: &Path,
    metric: Option<&str>,
    strategy: Option<&str>,
    as_json: bool,
) -> Result<Exit> {
    let mut run = read_run(folder)?;
    // A control that the run added is explained if it is asked for.
    for entry in &mut run.manifest.strategies {
        entry.is_added &= strategy.is_none();
    }
    let report = Report::of(&run.manifest, &run.cells);
    let known = explained(&report);
    let Some(metric) = metric else {
        let problem = format!("`{}` is the folder of a run, and not a session", folder.display());
        let hint = format!(
            "`--metric NAME` explains a number of it, with `--cell SESSION/STRATEGY` that of one cell; NAME is one of {}",
            known.join(", ")
        );
        return stop_with(Exit::Usage, problem, hint);
    };
    let mut found =
        explain_column(&report, metric).or_else(|error| refused(metric, &known, &error))?;
    if let Some(strategy) = strategy {
        let names: Vec<&str> = found.strategies.iter().map(|number| &*number.strategy).collect();
        let meant = names.iter().find(|name| **name == strategy || short_name(name) == strategy);
        let Some(name) = meant.map(|name| (*name).to_owned()) else {
            let problem = format!("the run has no `{metric}` of `{strategy}`");
            let hint = format!("it has that of {}", names.join(", "));
            return stop_with(Exit::NothingSelected, problem, hint);
        };
        found = found.only(&name);
    }
    if as_json {
        return print_json(&found);
    }
    print(&(found.lines(terminal().columns()).join("\n") + "\n"))
}

/// Says why a number is not explained: for another word the name of today, or all names.
fn refused<T>(metric: &str, known: &[&str], error: &ExplainError) -> Result<T> {
    if !matches!(error, ExplainError::Metric(_)) {
        return stop(Exit::NothingSelected, error.to_string());
    }
    if let Some(problem) = called(metric, known) {
        return stop(Exit::Usage, problem);
    }
    if let Some(problem) = called(metric, &EXPLAINED) {
        let problem = format!("{problem}, and the run did not measure it");
        let hint = format!("it measured {}", known.join(", "));
        return stop_with(Exit::Usage, problem, hint);
    }
    let hint = format!("it can be one of {}", known.join(", "));
    stop_with(Exit::Usage, error.to_string(), hint)
}

/// Prints a number of a cell: the formula, the numerator and the denominator, and their terms.
pub(super) fn explain(folder: &Path, cell: &str, metric: &str, as_json: bool) -> Result<Exit> {
    let run = read_run(folder)?;
    let keys: Vec<CellKey> = run.cells.iter().map(CellRecord::key).collect();
    let Some(key) = keys.iter().find(|key| is_called(key, cell)) else {
        let problem = ExplainError::Cell(cell.to_owned()).to_string();
        return stop_with(Exit::NothingSelected, problem, hint(cell, &keys));
    };
    let found = explain_cell(&run.manifest, &run.cells, key, metric)
        .or_else(|error| refused(metric, &EXPLAINED, &error))?;
    if as_json {
        return print_json(&found);
    }
    let section = terminal().section(&found.terms);
    let table = section.trim_matches('\n');
    print(&format!("{table}\n\n{}\n", found.in_words()))
}

/// Whether a cell is meant by what was typed.
fn is_called(key: &CellKey, typed: &str) -> bool {
    let name = key.to_string();
    let short = format!("{}/{}", key.session, short_name(&key.strategy));
    name == typed || key.repeat == 0 && (name.strip_suffix("/0") == Some(typed) || short == typed)
}

/// The cell that was meant, or the strategies of its session.
fn hint(cell: &str, keys: &[CellKey]) -> String {
    let full = keys.iter().map(CellKey::to_string);
    let names: Vec<String> = full.map(|name| name.trim_end_matches("/0").to_owned()).collect();
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
