//! `proctor calibrate --from-run`: a sheet of a run's answers, for people to label.
//!
//! The sheet holds what a judge would be shown, and neither who answered nor what rules or judges made of
//! it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;

use crate::cli::{Exit, Stop, say, score};
use crate::probe::judge::Brief;
use crate::probe::{Outcome, ProbeKind, Verdict};
use crate::record::journal::Run;
use crate::record::journal::write_whole;
use crate::units::ContentHash;

/// The columns of a sheet.
const COLUMNS: [&str; 8] = [
    "kind",
    "question",
    "form",
    "reference",
    "older",
    "others",
    "answer",
    "label",
];

/// An answer to label.
struct Unlabelled<'a> {
    kind: ProbeKind,
    brief: Brief,
    answer: &'a str,
}

/// Answers are drawn evenly from each kind of question with each outcome by rule.
type Stratum = (ProbeKind, Option<Outcome>);

/// Writes at most `most` answers of a run to a file that does not exist yet.
pub(super) fn write(folder: &Path, most: u32, path: &Path) -> anyhow::Result<Exit> {
    let shown = folder.display();
    let run = Run::read(folder).with_context(|| format!("cannot read the run in `{shown}`"))?;
    if path.exists() {
        let problem = format!("`{}` exists: labels in it would be lost", path.display());
        return Err(Stop::new(Exit::Usage, problem)
            .with_hint("name a new file with `--output`")
            .into());
    }
    let strata = strata(&run);
    let all: usize = strata.values().map(VecDeque::len).sum();
    if all == 0 {
        let problem = format!("the run in `{shown}` holds no answers with their questions");
        return Err(Stop::new(Exit::NothingSelected, problem)
            .with_hint("only runs whose reader answered, and that have cells of `full`, have them")
            .into());
    }
    let count = strata.len();
    let drawn = drawn(strata, usize::try_from(most).unwrap_or(usize::MAX));
    let is_lines = path
        .extension()
        .is_some_and(|it| it.eq_ignore_ascii_case("jsonl"));
    let bytes = if is_lines {
        lines(&drawn)?
    } else {
        csv(&drawn)?
    };
    write_whole(path, &bytes)?;
    say(&format!(
        "wrote {} of {all} different answers to `{}`, from {count} groups of kind and outcome: fill in \
         the column `label`, then `proctor calibrate {} --judge …`",
        drawn.len(),
        path.display(),
        path.display()
    ));
    Ok(Exit::Done)
}

/// Different answers, by kind and by what rules made of them; each group in an order that depends on
/// nothing but the answers.
fn strata(run: &Run) -> BTreeMap<Stratum, VecDeque<(ContentHash, Unlabelled<'_>)>> {
    let texts = score::texts(&run.cells);
    let mut seen = BTreeSet::new();
    let mut strata: BTreeMap<Stratum, Vec<(ContentHash, Unlabelled<'_>)>> = BTreeMap::new();
    let items = run
        .cells
        .iter()
        .flat_map(|cell| cell.probes.iter().map(move |item| (cell, item)));
    for (cell, item) in items {
        let key = (cell.session.as_str(), item.probe.as_str(), item.percent);
        let Some(text) = texts.get(&key) else {
            continue;
        };
        for answer in item.answers() {
            let Some(said) = answer
                .text
                .as_deref()
                .filter(|said| !said.trim().is_empty())
            else {
                continue;
            };
            let brief = text.brief();
            let parts = [&brief.question, &brief.reference, said.trim()];
            let hash = ContentHash::of_parts(parts.map(str::as_bytes));
            if !seen.insert(hash) {
                continue;
            }
            let outcome = match answer.typed {
                Verdict::Scored { outcome, .. } => Some(outcome),
                Verdict::Unscored { .. } => None,
            };
            let one = Unlabelled {
                kind: item.kind,
                brief,
                answer: said,
            };
            strata
                .entry((item.kind, outcome))
                .or_default()
                .push((hash, one));
        }
    }
    let sorted = strata.into_iter().map(|(stratum, mut all)| {
        all.sort_by_key(|(hash, _)| *hash);
        (stratum, VecDeque::from(all))
    });
    sorted.collect()
}

/// One of each group in turn until there are enough, in the order of their hashes: neighbours on the sheet
/// have nothing in common.
fn drawn(
    mut strata: BTreeMap<Stratum, VecDeque<(ContentHash, Unlabelled<'_>)>>,
    most: usize,
) -> Vec<Unlabelled<'_>> {
    let mut drawn = Vec::new();
    while drawn.len() < most && strata.values().any(|left| !left.is_empty()) {
        let room = most - drawn.len();
        drawn.extend(
            strata
                .values_mut()
                .filter_map(VecDeque::pop_front)
                .take(room),
        );
    }
    drawn.sort_by_key(|(hash, _)| *hash);
    drawn.into_iter().map(|(_, one)| one).collect()
}

fn lines(drawn: &[Unlabelled<'_>]) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    for one in drawn {
        let row = json!({
            "kind": one.kind.name(),
            "question": one.brief.question,
            "form": one.brief.form,
            "reference": one.brief.reference,
            "older": one.brief.older,
            "others": one.brief.others,
            "answer": one.answer,
            "label": "",
        });
        serde_json::to_writer(&mut out, &row)?;
        out.push(b'\n');
    }
    Ok(out)
}

fn csv(drawn: &[Unlabelled<'_>]) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for one in drawn {
        let brief = &one.brief;
        let fields = [
            one.kind.name(),
            &brief.question,
            brief.form.as_deref().unwrap_or_default(),
            &brief.reference,
            &brief.older.join("\n"),
            &brief.others.join("\n"),
            one.answer,
            "",
        ];
        writer.write_record(fields.map(neutralised))?;
    }
    writer.into_inner().context("cannot write the sheet")
}

/// A spreadsheet runs a text that begins like a formula: an apostrophe stands before it.
fn neutralised(text: &str) -> String {
    if begins_a_formula(text) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
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
