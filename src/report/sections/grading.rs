//! Rules against the judge: how far they agree on answers that both graded, and where not.

use std::collections::BTreeSet;

use super::prelude::*;
use super::row;
use crate::record::ProbeText;
use crate::record::words::{Outcome, ProbeKind};
use crate::report::{AskedItem, asked_items};
use crate::script::shortened;
use crate::stats::agreement::cohens_kappa;

/// The most examples shown of one kind.
const EXAMPLES: usize = 3;

/// The characters shown of a text in an example.
const SHOWN_CHARS: usize = 160;

/// An answer that both rules and the judge graded.
struct DoubleGrading<'a> {
    kind: ProbeKind,
    session: &'a str,
    text: Option<&'a ProbeText>,
    answer: &'a str,
    rules: (f64, Outcome),
    judge: (f64, Outcome),
}

fn is_right((score, _): (f64, Outcome)) -> bool {
    score > 0.5
}

/// The same answer to the same question counts once, in however many cells it was given.
fn graded_twice<'a>(material: &'a Material<'_>) -> Vec<DoubleGrading<'a>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for AskedItem { cell, probe, text } in asked_items(material.cells.iter().copied()) {
        for answer in probe.every_answer() {
            let judged = answer.judged.and_then(GradeVerdict::scored);
            let both = answer.typed.scored().zip(judged);
            let (Some((rules, judge)), Some(said)) = (both, answer.text.as_deref()) else {
                continue;
            };
            let gold = text.map(|text| text.gold.as_str());
            if seen.insert((&*cell.session, &*probe.probe, gold, said.trim())) {
                found.push(DoubleGrading {
                    kind: probe.kind,
                    session: &cell.session,
                    text,
                    answer: said,
                    rules,
                    judge,
                });
            }
        }
    }
    found
}

/// Agreement of rules and judge on whether an answer is right, kind by kind.
pub(super) fn by_kind(material: &Material<'_>) -> Section {
    let all = graded_twice(material);
    let kinds = ProbeKind::ALL.map(|kind| (kind.name(), Some(kind)));
    let rows = [("all", None)].into_iter().chain(kinds).filter_map(|(name, kind)| {
        let meant = all.iter().filter(|one| kind.is_none_or(|kind| one.kind == kind));
        let pairs: Vec<(bool, bool)> =
            meant.map(|one| (is_right(one.rules), is_right(one.judge))).collect();
        let agreed = pairs.iter().filter(|(rules, judge)| rules == judge).count();
        let by_rules = pairs.iter().filter(|(rules, judge)| *rules && !judge).count();
        let by_judge = pairs.len() - agreed - by_rules;
        let mut cells = Vec::from([pairs.len(), agreed, by_rules, by_judge].map(Cell::count));
        cells.push(Cell::agreement(cohens_kappa(&pairs)));
        (!pairs.is_empty()).then(|| row(name, Role::Strategy, cells))
    });
    Section::new("rules_and_judge", rows)
}

/// Answers on which they differ, a few of each kind.
pub(super) fn examples(material: &Material<'_>) -> Section {
    let mut differing = graded_twice(material);
    differing.retain(|one| is_right(one.rules) != is_right(one.judge));
    let mut shown: BTreeMap<ProbeKind, usize> = BTreeMap::new();
    let few = differing.iter().filter(|one| {
        let of_kind = shown.entry(one.kind).or_default();
        *of_kind += 1;
        *of_kind <= EXAMPLES
    });
    let rows = few.map(|one| {
        let [question, gold] = one.text.map_or([""; 2], |text| [&*text.question, &*text.gold]);
        let cells = vec![
            Cell::text(one.kind.name()),
            Cell::text(on_one_line(question)),
            Cell::text(on_one_line(gold)),
            Cell::text(on_one_line(one.answer)),
            Cell::text(display::name_of(&one.rules.1)),
            Cell::text(display::name_of(&one.judge.1)),
        ];
        row(one.session, Role::Strategy, cells)
    });
    let rows: Vec<Row> = rows.collect();
    let (shown, all) = (rows.len(), differing.len());
    Section::new("rules_and_judge_examples", rows)
        .with_notes((shown < all).then(|| format!("{shown} of {all} are shown")))
}

/// The text on one line, cut where it is long.
fn on_one_line(text: &str) -> String {
    shortened(&display::joined(text.split_whitespace(), " "), SHOWN_CHARS)
}
