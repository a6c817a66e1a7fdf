//! Rules against the judge: how far they agree on answers that both graded, and where not.

use std::collections::{BTreeMap, BTreeSet};

use super::row;
use crate::probe::{Outcome, ProbeKind, Verdict};
use crate::record::ProbeText;
use crate::report::build::Material;
use crate::report::{Audience, Cell, Column, Role, Section, Table, figure};
use crate::stats::agreement::cohens_kappa;

/// At most so many examples are shown of one kind.
const EXAMPLES: usize = 3;

/// Of a text in an example, so many characters are shown.
const SHOWN_CHARS: usize = 160;

/// An answer that both rules and the judge graded.
struct Twice<'a> {
    kind: ProbeKind,
    session: &'a str,
    text: Option<&'a ProbeText>,
    answer: &'a str,
    rules: (f64, Outcome),
    judge: (f64, Outcome),
}

impl Twice<'_> {
    fn is_agreed(&self) -> bool {
        is_right(self.rules) == is_right(self.judge)
    }
}

fn is_right((score, _): (f64, Outcome)) -> bool {
    score > 0.5
}

/// The same answer to the same question counts once, in however many cells it was given.
fn graded_twice<'a>(material: &'a Material<'_>) -> Vec<Twice<'a>> {
    let mut texts: BTreeMap<(&str, &str, u8), &ProbeText> = BTreeMap::new();
    for cell in &material.cells {
        for text in &cell.probe_texts {
            texts.insert((&cell.session, &text.probe, text.percent), text);
        }
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let cells = material.cells.iter();
    let items = cells.flat_map(|cell| cell.probes.iter().map(move |item| (cell, item)));
    for (cell, item) in items {
        let text = texts
            .get(&(&*cell.session, &*item.probe, item.percent))
            .copied();
        for answer in item.every_answer() {
            let (
                Verdict::Scored { score, outcome },
                Some(Verdict::Scored {
                    score: judged,
                    outcome: judged_as,
                }),
                Some(said),
            ) = (answer.typed, answer.judged, answer.text.as_deref())
            else {
                continue;
            };
            let gold = text.map(|text| text.gold.as_str());
            if seen.insert((&*cell.session, &*item.probe, gold, said.trim())) {
                found.push(Twice {
                    kind: item.kind,
                    session: &cell.session,
                    text,
                    answer: said,
                    rules: (score, outcome),
                    judge: (judged, judged_as),
                });
            }
        }
    }
    found
}

/// Agreement of rules and judge on whether an answer is right, kind by kind.
pub(super) fn by_kind(material: &Material<'_>) -> Section {
    let all = graded_twice(material);
    let of = |name: &str, which: &dyn Fn(&&Twice<'_>) -> bool| {
        let graded: Vec<&Twice<'_>> = all.iter().filter(which).collect();
        let pairs: Vec<(bool, bool)> = graded
            .iter()
            .map(|one| (is_right(one.rules), is_right(one.judge)))
            .collect();
        let count = |pair: (bool, bool)| pairs.iter().filter(|other| **other == pair).count();
        let kappa = cohens_kappa(&pairs);
        (!pairs.is_empty()).then(|| {
            let cells = vec![
                Cell::count(pairs.len()),
                Cell::count(graded.iter().filter(|one| one.is_agreed()).count()),
                Cell::count(count((true, false))),
                Cell::count(count((false, true))),
                Cell::text(kappa.map_or("not defined".to_owned(), |kappa| format!("{kappa:.2}"))),
            ];
            row(name, Role::Strategy, cells)
        })
    };
    let mut rows: Vec<_> = of("all", &|_| true).into_iter().collect();
    let kinds = ProbeKind::ALL.into_iter();
    rows.extend(kinds.filter_map(|kind| of(kind.name(), &|one| one.kind == kind)));
    Section {
        id: "rules_and_judge",
        title: "Rules against judge".to_owned(),
        about: "Different answers that both rules confirmed as something and the judge graded: how often they \
                agree on whether the answer is right. Cohen's kappa is 1 where they always agree and 0 where \
                they agree as often as chance would; where one of them says always the same and both agree \
                it is not defined. The judge's verdict counts. Answers that rules leave to the judge are not \
                in this table."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("kind", "kind", 0),
                Column::new("answers", "answers", 0),
                Column::new("agreed", "agreed", 0),
                Column::new("rules_only", "right by rules only", 0),
                Column::new("judge_only", "right by the judge only", 0),
                Column::new("kappa", "kappa", 0),
            ],
            rows,
        },
        notes: Vec::new(),
    }
}

/// Answers on which they differ, a few of each kind.
pub(super) fn examples(material: &Material<'_>) -> Section {
    let all = graded_twice(material);
    let mut shown: BTreeMap<ProbeKind, usize> = BTreeMap::new();
    let differing = all.iter().filter(|one| !one.is_agreed());
    let rows: Vec<_> = differing
        .filter(|one| {
            let of_kind = shown.entry(one.kind).or_default();
            *of_kind += 1;
            *of_kind <= EXAMPLES
        })
        .map(|one| {
            let text = |text: Option<&str>| Cell::text(shortened(text.unwrap_or_default()));
            let cells = vec![
                Cell::text(one.kind.name()),
                text(one.text.map(|text| text.question.as_str())),
                text(one.text.map(|text| text.gold.as_str())),
                text(Some(one.answer)),
                Cell::text(figure::outcome(one.rules.1)),
                Cell::text(figure::outcome(one.judge.1)),
            ];
            row(one.session, Role::Strategy, cells)
        })
        .collect();
    let differing = all.iter().filter(|one| !one.is_agreed()).count();
    let notes =
        (rows.len() < differing).then(|| format!("{} of {differing} are shown", rows.len()));
    Section {
        id: "rules_and_judge_examples",
        title: "Where rules and judge differ".to_owned(),
        about: "Answers that one of them calls right and the other does not, a few of each kind; long texts \
                are cut."
            .to_owned(),
        audience: Audience::Everyone,
        table: Table {
            columns: vec![
                Column::new("session", "session", 1),
                Column::new("kind", "kind", 0),
                Column::new("question", "question", 1),
                Column::new("reference", "reference", 0),
                Column::new("answer", "answer", 0),
                Column::new("rules", "rules", 0),
                Column::new("judge", "judge", 0),
            ],
            rows,
        },
        notes: notes.into_iter().collect(),
    }
}

/// The text on one line, cut where it is long.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
