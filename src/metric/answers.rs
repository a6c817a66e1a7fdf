//! Answers: how well a model answers the probes.

use super::prelude::*;
use crate::metric::fidelity::{AnchoredScores, Failings, GradedItem, qualifies};
use crate::metric::survival::{Score, is_planted};
use crate::record::AnswerRecord;
use crate::record::words::{GradeVerdict, Outcome, Unscored};

/// How well a model answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Accuracy {
    /// Over all planted items that were scored; those after a death score 0.
    pub score: Score,
    /// Over the items scored here and under full history.
    pub paired: Score,
    /// Full history on the same items.
    pub paired_full: Score,
    /// All items that were scored here, under full history and under an empty context.
    pub spanned: AnchoredScores,
    /// In which ways answers are wrong.
    pub failings: Failings,
    /// Items, decoys included, that were not graded; in no share.
    pub unscored: usize,
    /// Of these, those that rules cannot confirm and no judge was asked about.
    pub needs_judge: usize,
    /// Over all planted items, those without a score included.
    pub bounds: ScoreRange,
    /// Over those of them that qualified and were asked under full history, too.
    pub paired_bounds: ScoreRange,
    /// Full history on the same items.
    pub paired_full_bounds: ScoreRange,
    /// Items, decoys included, that did not qualify: they count in accuracy, and not in fidelity.
    pub unqualified: usize,
}

/// The range of a score where some items have none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ScoreRange {
    /// If all of these were wrong.
    pub worst: Score,
    /// If all of these were right.
    pub best: Score,
}

impl ScoreRange {
    fn add(&mut self, verdict: Option<GradeVerdict>, weight: u8) {
        let known = score(verdict);
        self.worst.add_weighted(known.unwrap_or(0.0), weight);
        self.best.add_weighted(known.unwrap_or(1.0), weight);
    }

    /// Whether every item has a score.
    pub fn is_exact(&self) -> bool {
        self.worst == self.best
    }
}

/// Which of the answers to an item count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerScope {
    /// Those to the whole prompt.
    Context,
    /// Those to the summaries in it alone.
    Summaries,
}

/// The cells of the same session under full history and under an empty context.
#[derive(Debug, Clone, Copy, Default)]
pub struct ControlCells<'a> {
    /// The cell of `full`.
    pub full: Option<&'a CellRecord>,
    /// The cell of `empty`.
    pub empty: Option<&'a CellRecord>,
}

impl Accuracy {
    /// The answers in this scope. Items that did not qualify are left out of fidelity.
    pub fn of(cell: &CellRecord, controls: ControlCells<'_>, scope: AnswerScope) -> Self {
        let full = verdicts(controls.full);
        let empty = verdicts(controls.empty);
        let qualification = Qualification::of(controls);
        let mut accuracy = Self::default();
        for item in &cell.probes {
            let verdict = match scope {
                AnswerScope::Context => verdict(cell, item),
                AnswerScope::Summaries => match &item.from_summary {
                    Some(answer) => Some(answer.verdict()),
                    None => continue,
                },
            };
            let qualified = qualification.of_item(item);
            accuracy.unqualified += usize::from(qualified == Some(false));
            let item_key = key(item);
            if is_planted(item.kind) {
                accuracy.bounds.add(verdict, item.weight);
                if let Some(full) = full.get(&item_key).filter(|_| qualified != Some(false)) {
                    accuracy.paired_bounds.add(verdict, item.weight);
                    accuracy.paired_full_bounds.add(*full, item.weight);
                }
            }
            if let Some(GradeVerdict::Unscored { reason }) = verdict {
                accuracy.unscored += 1;
                accuracy.needs_judge += usize::from(reason == Unscored::NeedsJudge);
                continue;
            }
            accuracy.add(&GradedItem {
                kind: item.kind,
                weight: item.weight,
                is_call: item.is_call,
                fate: item.survival.fate,
                graded: verdict.and_then(GradeVerdict::scored),
                full: full.get(&item_key).and_then(|verdict| score(*verdict)),
                empty: empty.get(&item_key).and_then(|verdict| score(*verdict)),
                qualified,
            });
        }
        accuracy
    }
}

/// How the items of a session fared in the qualification pass.
#[derive(Debug, Clone, Default)]
pub struct Qualification<'a>(BTreeMap<(&'a str, u8), QualifyingOutcomes>);

/// The outcomes of one item in the qualification pass; `None` where the answer could not be graded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QualifyingOutcomes {
    /// The kind of its probe.
    pub kind: ProbeKind,
    /// Under full history.
    pub full: Option<Outcome>,
    /// Under an empty context.
    pub empty: Option<Outcome>,
}

impl QualifyingOutcomes {
    /// Whether it may count in fidelity.
    pub fn is_qualified(&self) -> bool {
        qualifies(self.kind, self.full, self.empty)
    }
}

impl<'a> Qualification<'a> {
    /// The outcomes of the pass: empty unless both anchors were asked.
    pub fn of(controls: ControlCells<'a>) -> Self {
        let (Some(full), Some(empty)) = (controls.full, controls.empty) else {
            return Self::default();
        };
        let items = empty.probes.iter();
        let asked = items.filter_map(|item| Some((key(item), item.qualifying.as_ref()?)));
        let without: BTreeMap<_, _> = asked.collect();
        let both = full.probes.iter().filter_map(|item| {
            let of_item = QualifyingOutcomes {
                kind: item.kind,
                full: outcome(item.qualifying.as_ref()?),
                empty: outcome(without.get(&key(item))?),
            };
            Some((key(item), of_item))
        });
        Self(both.collect())
    }

    /// Whether this item qualified; `None` where it was not in the pass.
    pub fn of_item(&self, item: &ProbeRecord) -> Option<bool> {
        self.0.get(&key(item)).map(QualifyingOutcomes::is_qualified)
    }

    /// All items of the pass, by probe and percent.
    pub fn items(&self) -> impl Iterator<Item = (&'a str, u8, QualifyingOutcomes)> {
        self.0.iter().map(|((probe, at), found)| (*probe, *at, *found))
    }
}

/// Whether any probe was asked in this cell.
pub fn was_asked(cell: &CellRecord) -> bool {
    cell.probes.iter().any(|item| item.answer.is_some())
}

/// The key of an item in all cells of its session.
fn key(item: &ProbeRecord) -> (&str, u8) {
    (&item.probe, item.percent)
}

/// The verdict on an item; `None` where the session died before.
fn verdict(cell: &CellRecord, item: &ProbeRecord) -> Option<GradeVerdict> {
    let unscored = GradeVerdict::unscored(Unscored::NoAnswer);
    let sent = item.call < cell.reached_calls;
    item.verdict().or(sent.then_some(unscored))
}

/// The score of a verdict. Items that were not answered because the session had died score 0.
fn score(verdict: Option<GradeVerdict>) -> Option<f64> {
    verdict.map_or(Some(0.0), |verdict| Some(verdict.scored()?.0))
}

fn outcome(answer: &AnswerRecord) -> Option<Outcome> {
    Some(answer.verdict().scored()?.1)
}

/// The verdicts on a cell's items, by probe and percent; of no cell, none.
fn verdicts(cell: Option<&CellRecord>) -> BTreeMap<(&str, u8), Option<GradeVerdict>> {
    cell.map(|cell| cell.probes.iter().map(|item| (key(item), verdict(cell, item))).collect())
        .unwrap_or_default()
}
