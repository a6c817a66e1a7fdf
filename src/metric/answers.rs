//! Answers: the results of a reader, as `extract` or as accuracy, never both.
//!
//! A reader without a language model fills [`Extract`]; a model fills [`Accuracy`]. They are two
//! types, no function leads from one to the other, and which one a run has is decided by the kind
//! of its reader alone.

use derive_more::{Add, AddAssign, Sum};

use super::prelude::*;
use crate::metric::fidelity::{AnchoredScores, Failings, GradedItem, qualifies};
use crate::metric::pool::share;
use crate::metric::survival::{Score, is_planted};
use crate::probe::{Outcome, Unscored, Verdict};
use crate::record::AnswerRecord;

/// The answers of a reader in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "reader", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each cell, and all of a run are of one kind"
)]
pub enum Answers {
    /// The reader is BM25 line search.
    Extract(Extract),
    /// The reader is a model, live or scripted.
    Accuracy(Accuracy),
}

/// Outcomes of a reader without a language model.
///
/// The first seven add up to the scored items; decoys are counted apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Add, AddAssign, Sum, Serialize)]
pub struct Extract {
    /// The known answer.
    pub right: usize,
    /// A part of a list, or with something added.
    pub partial: usize,
    /// Another value.
    pub wrong: usize,
    /// A value that was true earlier.
    pub stale: usize,
    /// The value of another key.
    pub misbound: usize,
    /// Nothing found.
    pub abstained: usize,
    /// The session died before.
    pub unanswered: usize,
    /// Decoys that were scored.
    pub decoys: usize,
    /// Of these, those answered with a concrete value.
    pub invented: usize,
    /// Items, decoys included, that were not graded; in no share.
    pub unscored: usize,
    /// Of these, planted items: any of them may be right.
    pub open: usize,
}

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
    /// Decoys answered with a concrete value.
    pub invented: Score,
    /// In which ways answers are wrong.
    pub failings: Failings,
    /// Items, decoys included, that were not graded; in no share.
    pub unscored: usize,
    /// Of these, those that rules cannot confirm and no judge was asked about.
    pub needs_judge: usize,
    /// Over all planted items, those without a score included.
    pub bounds: Bounds,
    /// Over those of them that qualified and were asked under full history, too.
    pub paired_bounds: Bounds,
    /// Full history on the same items.
    pub paired_full_bounds: Bounds,
    /// Items, decoys included, that did not qualify: they count in accuracy, and not in fidelity.
    pub unqualified: usize,
}

/// The range of a score where some items have none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bounds {
    /// If all of these were wrong.
    pub worst: Score,
    /// If all of these were right.
    pub best: Score,
}

impl Bounds {
    fn add(&mut self, verdict: Option<Verdict>) {
        let score = score(verdict);
        self.worst.add(score.unwrap_or(0.0));
        self.best.add(score.unwrap_or(1.0));
    }

    /// Whether every item has a score.
    pub fn is_exact(&self) -> bool {
        self.worst == self.best
    }
}

/// Which of the answers to an item count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
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

impl Answers {
    /// The answers of a reader of this kind in `cell`. Items that did not qualify are left out of
    /// fidelity.
    pub fn in_scope(
        cell: &CellRecord,
        controls: ControlCells<'_>,
        reader: ModelKind,
        scope: Scope,
    ) -> Self {
        match reader {
            ModelKind::Deterministic => Self::Extract(Extract::of(cell)),
            ModelKind::Scripted | ModelKind::Live => {
                Self::Accuracy(Accuracy::of(cell, controls, scope))
            }
        }
    }
}

impl Extract {
    fn of(cell: &CellRecord) -> Self {
        let mut extract = Self::default();
        for item in &cell.probes {
            let verdict = verdict(cell, item);
            let is_planted = is_planted(item.kind);
            let count = match verdict {
                Some(Verdict::Unscored { .. }) => {
                    extract.open += usize::from(is_planted);
                    &mut extract.unscored
                }
                Some(Verdict::Scored { outcome, .. }) if !is_planted => {
                    extract.invented += usize::from(outcome == Outcome::Invented);
                    &mut extract.decoys
                }
                // A dead session invents nothing; counting it would look like care.
                None if !is_planted => continue,
                None => &mut extract.unanswered,
                Some(Verdict::Scored { outcome, .. }) => match outcome {
                    Outcome::Right => &mut extract.right,
                    Outcome::Partial => &mut extract.partial,
                    Outcome::Wrong | Outcome::Invented => &mut extract.wrong,
                    Outcome::Stale => &mut extract.stale,
                    Outcome::Misbound => &mut extract.misbound,
                    Outcome::Abstained => &mut extract.abstained,
                },
            };
            *count += 1;
        }
        extract
    }

    /// Planted items that were scored, those after a death included.
    pub fn scored(&self) -> usize {
        self.outcomes().iter().sum()
    }

    /// How many planted items have each outcome, in the order of tables.
    pub fn outcomes(&self) -> [usize; 7] {
        [
            self.right,
            self.partial,
            self.wrong,
            self.stale,
            self.misbound,
            self.abstained,
            self.unanswered,
        ]
    }

    /// Formula: right / scored; `None` where nothing was scored. Higher is better.
    pub fn right_share(&self) -> Option<f64> {
        share(self.right as u64, self.scored() as u64)
    }

    /// The same with its items.
    pub(crate) fn right(&self) -> Option<Sample> {
        Some((self.right_share()?, self.scored()))
    }

    /// Formula: right / (scored + open) and (right + open) / (scored + open); `None` where all
    /// planted items have a score.
    pub fn right_bounds(&self) -> Option<(f64, f64)> {
        let all = (self.scored() + self.open) as f64;
        let (right, open) = (self.right as f64, self.open as f64);
        (self.open > 0).then(|| (right / all, (right + open) / all))
    }
}

impl Accuracy {
    fn of(cell: &CellRecord, controls: ControlCells<'_>, scope: Scope) -> Self {
        let full = verdicts(controls.full);
        let empty = verdicts(controls.empty);
        let qualification = Qualification::of(controls);
        let mut accuracy = Self::default();
        for item in &cell.probes {
            let verdict = match scope {
                Scope::Context => verdict(cell, item),
                Scope::Summaries => match &item.from_summary {
                    Some(answer) => Some(answer.verdict()),
                    None => continue,
                },
            };
            let qualified = qualification.of_item(item);
            accuracy.unqualified += usize::from(qualified == Some(false));
            let key = key(item);
            if is_planted(item.kind) {
                accuracy.bounds.add(verdict);
                if let Some(full) = full.get(&key).filter(|_| qualified != Some(false)) {
                    accuracy.paired_bounds.add(verdict);
                    accuracy.paired_full_bounds.add(*full);
                }
            }
            if let Some(Verdict::Unscored { reason }) = verdict {
                accuracy.unscored += 1;
                accuracy.needs_judge += usize::from(reason == Unscored::NeedsJudge);
                continue;
            }
            accuracy.add(&GradedItem {
                kind: item.kind,
                is_call: item.is_call,
                fate: item.survival.fate,
                graded: verdict.and_then(Verdict::scored),
                full: full.get(&key).and_then(|it| score(*it)),
                empty: empty.get(&key).and_then(|it| score(*it)),
                qualified,
            });
        }
        accuracy.invented = accuracy.failings.hallucinated;
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
        let asked = |item: &'a ProbeRecord| Some((key(item), item.qualifying.as_ref()?));
        let without: BTreeMap<_, _> = empty.probes.iter().filter_map(asked).collect();
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
        let all = self.0.iter();
        all.map(|((probe, at), found)| (*probe, *at, *found))
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
fn verdict(cell: &CellRecord, item: &ProbeRecord) -> Option<Verdict> {
    let unscored = Verdict::unscored(Unscored::NoAnswer);
    let is_sent = item.call < cell.reached_calls;
    item.verdict().or(is_sent.then_some(unscored))
}

/// The score of a verdict. Items that were not answered because the session had died score 0.
fn score(verdict: Option<Verdict>) -> Option<f64> {
    verdict.map_or(Some(0.0), |verdict| Some(verdict.scored()?.0))
}

fn outcome(answer: &AnswerRecord) -> Option<Outcome> {
    Some(answer.verdict().scored()?.1)
}

/// The verdicts on a cell's items, by probe and percent; of no cell, none.
fn verdicts(cell: Option<&CellRecord>) -> BTreeMap<(&str, u8), Option<Verdict>> {
    cell.into_iter()
        .flat_map(|cell| {
            cell.probes
                .iter()
                .map(move |item| (key(item), verdict(cell, item)))
        })
        .collect()
}
