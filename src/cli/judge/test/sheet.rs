//! `proctor judge test --from-run`: a sheet of a run's answers, for people to label.
//!
//! The sheet holds the text that a judge would be shown, but not who answered or how rules or
//! judges graded it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;

use crate::cli::judge::{answers, no_answers, texts};
use crate::cli::{Exit, Result, has_ending, read_run, stop_with};
use crate::probe::judge::Brief;
use crate::probe::{GradeVerdict, Outcome, ProbeKind};
use crate::record::journal::{RecordedRun, write_private};
use crate::units::ContentHash;

/// An answer to label: a row of the sheet.
#[derive(Serialize)]
struct SheetRow<'a> {
    kind: &'static str,
    #[serde(flatten)]
    brief: Brief,
    answer: &'a str,
    label: &'static str,
}

/// Answers are drawn evenly from each kind of question with each outcome by rule.
type Strata<'a> = BTreeMap<(ProbeKind, Option<Outcome>), VecDeque<(ContentHash, SheetRow<'a>)>>;

/// Writes at most `most` answers of a run to a file that does not exist yet.
pub(super) fn write(folder: &Path, most: u32, path: &Path) -> Result<Exit> {
    let run = read_run(folder)?;
    let shown = path.display();
    if path.exists() {
        let problem = format!("`{shown}` exists: labels in it would be lost");
        return stop_with(Exit::Usage, problem, "name a new file with `--output`");
    }
    let strata = strata(&run);
    let all: usize = strata.values().map(VecDeque::len).sum();
    if all == 0 {
        return no_answers(folder);
    }
    let count = strata.len();
    let drawn = drawn(strata, usize::try_from(most).unwrap_or(usize::MAX));
    let bytes = if has_ending(path, "jsonl") { lines(&drawn)? } else { csv(&drawn)? };
    // Its questions and answers are text of sessions.
    write_private(path, &mut |out| out.write_all(&bytes))?;
    say!(
        "wrote {} of {all} different answers to `{shown}`, from {count} groups of kind and outcome: fill in \
         the column `label`, then `proctor judge test {shown} --judge …`",
        drawn.len()
    );
    Ok(Exit::Done)
}

/// Different answers, by kind and by what rules made of them; each group in an order that depends on
/// nothing but the answers.
fn strata(run: &RecordedRun) -> Strata<'_> {
    let texts = texts(&run.cells);
    let mut seen = BTreeSet::new();
    let mut strata = Strata::new();
    for asked in answers(&run.cells, &texts) {
        let said = asked.answer.text.as_deref().unwrap_or_default();
        let brief = asked.text.brief();
        let parts = [&*brief.question, &*brief.reference, said.trim()];
        let hash = ContentHash::of_parts(parts.map(str::as_bytes));
        if said.trim().is_empty() || !seen.insert(hash) {
            continue;
        }
        let outcome = match asked.answer.typed {
            GradeVerdict::Scored { outcome, .. } => Some(outcome),
            GradeVerdict::Unscored { .. } => None,
        };
        let row = SheetRow { kind: asked.item.kind.name(), brief, answer: said, label: "" };
        let stratum = strata.entry((asked.item.kind, outcome)).or_default();
        stratum.push_back((hash, row));
    }
    for stratum in strata.values_mut() {
        stratum.make_contiguous().sort_by_key(|(hash, _)| *hash);
    }
    strata
}

/// One of each group in turn until there are enough, in the order of their hashes: neighbours on the sheet
/// have nothing in common.
fn drawn(mut strata: Strata<'_>, most: usize) -> Vec<SheetRow<'_>> {
    let mut drawn = Vec::new();
    while drawn.len() < most && strata.values().any(|left| !left.is_empty()) {
        let next = strata.values_mut().filter_map(VecDeque::pop_front);
        drawn.extend(next.take(most - drawn.len()));
    }
    drawn.sort_by_key(|(hash, _)| *hash);
    drawn.into_iter().map(|(_, row)| row).collect()
}

fn lines(drawn: &[SheetRow<'_>]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for row in drawn {
        serde_json::to_writer(&mut out, row)?;
        out.push(b'\n');
    }
    Ok(out)
}

fn csv(drawn: &[SheetRow<'_>]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (at, row) in drawn.iter().enumerate() {
        let Value::Object(fields) = serde_json::to_value(row)? else {
            continue;
        };
        if at == 0 {
            writer.write_record(fields.keys())?;
        }
        writer.write_record(fields.values().map(text_of))?;
    }
    writer.into_inner().context("cannot write the sheet")
}

fn text_of(value: &Value) -> String {
    let list = value.as_array();
    let items = list.map_or(std::slice::from_ref(value), Vec::as_slice);
    let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
    neutralised(&items.join("\n"))
}

/// A spreadsheet runs a text that begins like a formula: an apostrophe is put before it.
fn neutralised(text: &str) -> String {
    if begins_a_formula(text) { format!("'{text}") } else { text.to_owned() }
}

/// The text of a cell as it was before the apostrophe.
pub(super) fn read(text: String) -> String {
    match text.strip_prefix('\'') {
        Some(rest) if begins_a_formula(rest) => rest.to_owned(),
        _ => text,
    }
}

fn begins_a_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_a_spreadsheet_would_run_is_read_back_as_it_was() {
        for text in ["=1+1", "-5 rows", "'quoted'", "plain", "@here", "'", ""] {
            let written = neutralised(text);
            assert!(!begins_a_formula(&written), "{text}");
            assert_eq!(read(written), text);
        }
    }
}
