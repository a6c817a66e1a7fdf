//! Fidelity: the share of a reader's ability that a compaction leaves, and the ways in which
//! answers fail.
//!
//! Everything here is counted on the recorded answers of a *model*, and graded. Two anchors stand on
//! either side: the same reader under full history, and under an empty context. Where the reader is
//! hardly able to do the task, or hardly needs the context, there is nothing to be measured, and the
//! tables say which of the two it is.
//!
//! Survival is another matter. It is read here for two things only: whether the value of an item was
//! in the prompt at all (overclaims), and whether a rule was (compliance). No number of survival ever
//! becomes a score.

use super::answers::{Accuracy, AnswerScope};
use super::pool::ratio;
use super::prelude::*;
use super::survival::{Score, is_planted};
use super::{CellSummary, PooledValue, estimate};
use crate::record::Fate;
use crate::record::words::{LOWEST_CEILING, Outcome};
use crate::stats::Estimate;

/// Below this distance between full history and empty context, fidelity is refused: the reader
/// does not need the context.
pub const LOWEST_SPAN: f64 = 0.2;

/// An item with its graded answer, and what string matching found of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GradedItem {
    /// The kind of its probe.
    pub kind: ProbeKind,
    /// How much it weighs in the score of its session.
    pub weight: u8,
    /// Whether the answer is what the agent would do, which claims nothing.
    pub is_call: bool,
    /// Its fate in the prompt, by string matching.
    pub fate: Fate,
    /// The verdict; `None` where the session had died before, which scores 0.
    pub graded: Option<(f64, Outcome)>,
    /// The score under full history, if it was scored there.
    pub full: Option<f64>,
    /// The score under an empty context, if it was scored there.
    pub empty: Option<f64>,
    /// Whether the item qualified; `None` without a qualification pass.
    pub qualified: Option<bool>,
}

/// The ways in which answers are right and wrong, over items that were scored.
///
/// Each is a [`Score`] of zeros and ones: a rate with the number of its items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Failings {
    /// Planted items of which the reader said that they are not in the context, and those that were
    /// never answered because the session had died. Lower is better.
    pub omitted: Score,
    /// Planted items answered with something that is not so: wrong, stale or misbound. Lower is
    /// better.
    pub distorted: Score,
    /// Of all planted items, those answered with a value that was true earlier.
    pub stale: Score,
    /// Of all planted items, those answered with another key's value.
    pub misbound: Score,
    /// Decoys answered with a concrete value. Lower is better.
    pub hallucinated: Score,
    /// Planted items whose value is not in the prompt, answered with a concrete value all the same;
    /// calls are none. Lower is better.
    pub overclaimed: Score,
    /// Rules that are in the prompt and are kept.
    pub compliance_kept: Score,
    /// Rules that are no longer in the prompt and are kept all the same.
    pub compliance_dropped: Score,
}

/// The same items three times: what `F*` is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct AnchoredScores {
    /// Here.
    pub score: Score,
    /// Under full history.
    pub full: Score,
    /// Under an empty context.
    pub empty: Score,
}

impl AnchoredScores {
    /// `a − e` and `f − e`, means over the items; `None` without an item.
    pub fn above_empty(&self) -> Option<(f64, f64)> {
        let empty = self.empty.mean()?;
        Some((self.score.mean()? - empty, self.full.mean()? - empty))
    }
}

impl Accuracy {
    /// Adds an answered item.
    pub(super) fn add(&mut self, item: &GradedItem) {
        let failings = &mut self.failings;
        if !is_planted(item.kind) {
            // A dead session invents nothing; counting it would look like care.
            if let Some((_, outcome)) = item.graded {
                failings.hallucinated.count(outcome == Outcome::Invented);
            }
            return;
        }
        let score = item.graded.map_or(0.0, |(score, _)| score);
        self.score.add_weighted(score, item.weight);
        if let (Some(full), Some(empty)) = (item.full, item.empty) {
            self.spanned.score.add_weighted(score, item.weight);
            self.spanned.full.add_weighted(full, item.weight);
            self.spanned.empty.add_weighted(empty, item.weight);
        }
        if let Some(full) = item.full.filter(|_| item.qualified != Some(false)) {
            self.paired.add_weighted(score, item.weight);
            self.paired_full.add_weighted(full, item.weight);
        }
        let outcome = item.graded.map(|(_, outcome)| outcome);
        failings.omitted.count(matches!(outcome, None | Some(Outcome::Abstained)));
        failings.distorted.count(matches!(
            outcome,
            Some(Outcome::Wrong | Outcome::Invented | Outcome::Stale | Outcome::Misbound)
        ));
        failings.stale.count(outcome == Some(Outcome::Stale));
        failings.misbound.count(outcome == Some(Outcome::Misbound));
        let Some(outcome) = outcome else { return };
        let gone = matches!(item.fate, Fate::Lost | Fate::Reachable);
        // Of an open question only the evidence can be seen to be gone, not what is left of it.
        // A call that has to carry values claims them; one that keeps or breaks a rule claims nothing.
        if gone && (!item.is_call || item.kind == ProbeKind::Act) && item.kind != ProbeKind::Open {
            failings.overclaimed.count(outcome != Outcome::Abstained);
        }
        if item.kind == ProbeKind::Constraint {
            let kept = match item.fate {
                Fate::Kept => &mut failings.compliance_kept,
                _ => &mut failings.compliance_dropped,
            };
            kept.count(outcome == Outcome::Right);
        }
    }
}

/// The two accuracies that fidelity is measured between, over all probes, qualified or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Anchors {
    /// `acc_full`: accuracy under full history.
    pub full: Option<f64>,
    /// `acc_empty`: accuracy without any context.
    pub empty: Option<f64>,
}

/// The reason why fidelity is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FidelityRefusal {
    /// No item was scored under both.
    Unpaired,
    /// Full history is answered right too rarely: [`LOWEST_CEILING`].
    CeilingTooLow,
    /// An empty context is answered right nearly as often: [`LOWEST_SPAN`].
    SpanTooSmall,
    /// No item qualified: none is answered right under full history, and only there.
    NoneQualified,
}

impl FidelityRefusal {
    /// In words, as cells of tables say it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Unpaired => "not measured: no item scored under full as well",
            Self::CeilingTooLow => "refused: the reader is right too rarely under full history",
            Self::SpanTooSmall => "refused: the reader hardly needs the context",
            Self::NoneQualified => "refused: no item qualified",
        }
    }
}

impl Anchors {
    /// Whether there is anything to be measured between them.
    ///
    /// Refused where `acc_full < 0.6` or `acc_full − acc_empty < 0.2`; without an empty arm only the
    /// first is known.
    pub fn check(self) -> Result<f64, FidelityRefusal> {
        let full = self.full.ok_or(FidelityRefusal::Unpaired)?;
        if full < LOWEST_CEILING {
            return Err(FidelityRefusal::CeilingTooLow);
        }
        // A span of exactly 0.2 is enough, whatever its last bit is.
        if self.empty.is_some_and(|empty| full - empty + f64::EPSILON < LOWEST_SPAN) {
            return Err(FidelityRefusal::SpanTooSmall);
        }
        Ok(full)
    }

    /// Whether answers say nothing about strategies: too few are right with everything in front of the reader, or
    /// nearly as many with nothing.
    pub fn refuse(self) -> bool {
        self.refusal().is_some()
    }

    /// Why they do not.
    fn refusal(self) -> Option<FidelityRefusal> {
        let refusal = self.check().err();
        refusal.filter(|refusal| *refusal != FidelityRefusal::Unpaired)
    }

    /// The anchors, from the cells of `full` and of `empty`.
    pub fn of(full: &[&CellSummary], empty: &[&CellSummary]) -> Self {
        let [full, empty] = [full, empty].map(|cells: &[&CellSummary]| {
            let found =
                estimate(cells, |cell| cell.accuracy(AnswerScope::Context)?.score.counted());
            found.map(|estimate| estimate.point_estimate)
        });
        Self { full, empty }
    }
}

/// What a reader knows with everything in front of it: whether its answers say anything about strategies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReaderCeiling {
    anchors: Anchors,
    /// Planted items that were asked under full history, graded or not.
    items: usize,
    /// Of these, those that were graded.
    graded: usize,
    /// Of these, those that it said are not in the context.
    abstained: usize,
}

impl ReaderCeiling {
    /// From the cells of `full` and of `empty`; `None` where nothing was asked under full history.
    pub fn of(full: &[&CellSummary], empty: &[&CellSummary]) -> Option<Self> {
        let anchors = Anchors::of(full, empty);
        let answered = full.iter().filter_map(|cell| cell.accuracy(AnswerScope::Context));
        let (mut items, mut graded, mut abstained) = (0, 0, 0.0);
        for accuracy in answered {
            items += accuracy.bounds.best.items;
            graded += accuracy.score.items;
            abstained += accuracy.failings.omitted.sum;
        }
        (items > 0).then(|| Self {
            anchors,
            items,
            graded,
            abstained: usize::try_from(crate::units::whole(abstained)).unwrap_or(items),
        })
    }

    /// Whether its answers say nothing about strategies.
    pub fn is_refused(&self) -> bool {
        self.anchors.full.is_none() || self.anchors.refuse()
    }

    /// The same in a sentence about the reader of this name.
    pub fn sentence(&self, reader: &str) -> String {
        let nothing = "its answers say nothing about strategies";
        let front = "with all of the session in front of it";
        let (items, abstained) = (self.items, self.abstained);
        let empty = 100.0 * self.anchors.empty.unwrap_or_default();
        let Some(full) = self.anchors.full else {
            return format!(
                "{reader} answers {items} questions {front}, and none could be graded: {nothing}."
            );
        };
        if abstained == items {
            let cannot = format!("this model does not read these prompts, and {nothing}");
            return format!(
                "{reader} abstains on {abstained} of {items} planted items {front}: {cannot}."
            );
        }
        let ungraded = match items.saturating_sub(self.graded) {
            0 => String::new(),
            ungraded => format!(" ({ungraded} of {items} answers are not graded)"),
        };
        let right = 100.0 * full;
        let knows = format!("{reader} answers {right:.0} % right {front}{ungraded}");
        match self.anchors.check() {
            Err(FidelityRefusal::SpanTooSmall) => {
                format!("{knows}, and {empty:.0} % with none of it: {nothing}.")
            }
            Err(_) => format!("{knows}: {nothing}."),
            Ok(_) => format!("{knows}."),
        }
    }
}

/// `F = acc/acc_full` of answers to whole prompts.
pub(super) fn pooled(cells: &[&CellSummary], anchors: Anchors) -> Option<PooledValue> {
    let found = relative(cells, AnswerScope::Context, anchors);
    found.ok().map(PooledValue::Estimate)
}

/// `F = Σ acc / Σ acc_full`, over the sessions and the qualified items scored under both.
pub(crate) fn relative(
    cells: &[&CellSummary],
    scope: AnswerScope,
    anchors: Anchors,
) -> Result<Estimate, FidelityRefusal> {
    if let Some(refusal) = anchors.refusal() {
        return Err(refusal);
    }
    let (ratio, is_paired) =
        relative_to_full(cells, scope, |accuracy| (accuracy.paired, accuracy.paired_full));
    let mut models = cells.iter().filter_map(|cell| cell.accuracy(scope));
    match (anchors.full, ratio) {
        (Some(_), Some(estimate)) => Ok(estimate),
        // Items were scored under both, and full history is right on none of them.
        (Some(_), None) if is_paired => Err(FidelityRefusal::CeilingTooLow),
        (_, None) if models.any(|accuracy| accuracy.unqualified > 0) => {
            Err(FidelityRefusal::NoneQualified)
        }
        (_, _) => Err(FidelityRefusal::Unpaired),
    }
}

/// A score, and that of full history on the same items.
type ScorePair = fn(&Accuracy) -> (Score, Score);

/// One score over that of full history, and whether any cluster has both.
fn relative_to_full(
    cells: &[&CellSummary],
    scope: AnswerScope,
    of: ScorePair,
) -> (Option<Estimate>, bool) {
    ratio(cells, |cell| {
        let (here, full) = of(cell.accuracy(scope)?);
        Some(((here.mean()?, full.mean()?), here.items))
    })
}

/// The least and the most that F may be: items without a score are wrong here and right under full
/// history, or the other way round. `None` where all have one, or where fidelity is refused.
pub(crate) fn bounds(
    cells: &[&CellSummary],
    scope: AnswerScope,
    anchors: Anchors,
) -> Option<(f64, f64)> {
    anchors.check().ok()?;
    let mut models = cells.iter().filter_map(|cell| cell.accuracy(scope));
    if models.all(|model| model.paired_bounds.is_exact() && model.paired_full_bounds.is_exact()) {
        return None;
    }
    let ends: [ScorePair; 2] = [
        |accuracy| (accuracy.paired_bounds.worst, accuracy.paired_full_bounds.best),
        |accuracy| (accuracy.paired_bounds.best, accuracy.paired_full_bounds.worst),
    ];
    let [least, most] = ends.map(|of| relative_to_full(cells, scope, of).0);
    Some((least?.point_estimate, most?.point_estimate))
}

/// `F* = Σ(acc − acc_empty) / Σ(acc_full − acc_empty)`, over the sessions and all items, qualified
/// or not, that were scored here and under both anchors: 0 is no context at all, 1 is all of it. It
/// may lie below 0 and above 1. `None` where fidelity is refused.
pub(crate) fn normalised(
    cells: &[&CellSummary],
    scope: AnswerScope,
    anchors: Anchors,
) -> Option<Estimate> {
    anchors.check().ok()?;
    anchors.empty?;
    let (ratio, _) = ratio(cells, |cell| {
        let spanned = &cell.accuracy(scope)?.spanned;
        Some((spanned.above_empty()?, spanned.score.items))
    });
    ratio
}

/// Flags an `F*` above 1, in words for a report; `None` at 1 or below.
///
/// A compaction adds nothing to what was said. It can only help the reader to find it, or have lost
/// what misleads: such a number does not show that more than everything was kept.
pub fn above_full(normalised: f64) -> Option<&'static str> {
    // Full history itself is at 1, whatever its last bit is.
    (normalised > 1.0 + 1e-9).then_some(
        "F* over 100 %: more is right than under full history, which does not mean that more was kept",
    )
}

/// Whether a probe qualifies: the reader gets it right from the ceiling and not from nothing; of a
/// decoy, the reader abstains without a context. Judged on answers that are never scored.
pub fn qualifies(kind: ProbeKind, full: Option<Outcome>, empty: Option<Outcome>) -> bool {
    if is_planted(kind) {
        full == Some(Outcome::Right) && empty.is_some_and(|empty| empty != Outcome::Right)
    } else {
        empty == Some(Outcome::Right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: ProbeKind, fate: Fate, graded: Option<(f64, Outcome)>) -> GradedItem {
        GradedItem {
            kind,
            weight: 1,
            is_call: false,
            fate,
            graded,
            full: Some(1.0),
            empty: None,
            qualified: None,
        }
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    fn of_items(items: impl IntoIterator<Item = GradedItem>) -> Accuracy {
        let mut accuracy = Accuracy::default();
        items.into_iter().for_each(|item| accuracy.add(&item));
        accuracy
    }

    /// Ten planted items and two decoys, by hand.
    fn reading() -> Accuracy {
        use Outcome::{Abstained, Invented, Misbound, Partial, Right, Stale, Wrong};
        let recall = |fate, score, outcome| item(ProbeKind::Recall, fate, Some((score, outcome)));
        let rule = |fate, score, outcome| item(ProbeKind::Constraint, fate, Some((score, outcome)));
        of_items([
            recall(Fate::Kept, 1.0, Right),
            recall(Fate::Kept, 1.0, Right),
            recall(Fate::Kept, 0.5, Partial),
            recall(Fate::Unsure, 0.0, Misbound),
            recall(Fate::Changed, 0.0, Stale),
            recall(Fate::Lost, 0.0, Wrong),
            recall(Fate::Reachable, 0.0, Abstained),
            rule(Fate::Kept, 1.0, Right),
            rule(Fate::Lost, 0.0, Wrong),
            item(ProbeKind::Recall, Fate::Lost, None),
            item(ProbeKind::Decoy, Fate::Lost, Some((0.0, Invented))),
            item(ProbeKind::Decoy, Fate::Lost, Some((1.0, Right))),
            item(ProbeKind::Decoy, Fate::Lost, None),
        ])
    }

    #[test]
    fn rates_are_counted_over_their_own_items() {
        let reading = reading();
        close(reading.score.mean(), 3.5 / 10.0);
        let failings = reading.failings;
        close(failings.omitted.mean(), 2.0 / 10.0);
        close(failings.distorted.mean(), 4.0 / 10.0);
        close(failings.stale.mean(), 1.0 / 10.0);
        close(failings.misbound.mean(), 1.0 / 10.0);
        // The dead session's decoy is in no rate.
        close(failings.hallucinated.mean(), 1.0 / 2.0);
        // Gone and answered: two wrong, one abstained; the one after the death is not asked.
        assert_eq!(failings.overclaimed.items, 3);
        close(failings.overclaimed.mean(), 2.0 / 3.0);
        close(failings.compliance_kept.mean(), 1.0);
        close(failings.compliance_dropped.mean(), 0.0);
    }

    #[test]
    fn a_call_claims_nothing() {
        let rule = item(ProbeKind::Constraint, Fate::Lost, Some((1.0, Outcome::Right)));
        let call = GradedItem { is_call: true, ..rule };
        let failings = of_items([call]).failings;
        assert_eq!(failings.overclaimed.items, 0);
        close(failings.compliance_dropped.mean(), 1.0);
        // A letter could have been held back, as any answer.
        assert_eq!(of_items([rule]).failings.overclaimed.items, 1);
    }

    #[test]
    fn fidelity_is_relative_to_the_same_items_under_full_history() {
        let right = Some((1.0, Outcome::Right));
        let of = |full: f64, graded, qualified| GradedItem {
            full: Some(full),
            qualified: Some(qualified),
            ..item(ProbeKind::Recall, Fate::Kept, graded)
        };
        let wrong = Some((0.0, Outcome::Wrong));
        let mut items = [
            of(1.0, right, true),
            of(1.0, wrong, true),
            of(1.0, right, true),
            of(0.0, right, true),
            of(1.0, wrong, false),
        ];
        let reading = of_items(items);
        assert_eq!(reading.paired.items, 4);
        // 3 of 4 against 3 of 4.
        close(reading.paired.mean(), 0.75);
        close(reading.paired_full.mean(), 0.75);
        assert_eq!(reading.spanned.above_empty(), None);
        // Four of the five were scored under both anchors, the unqualified one among them.
        for item in &mut items[1..] {
            item.empty = Some(0.25);
        }
        let spanned = of_items(items).spanned;
        assert_eq!(spanned.score.items, 4);
        let (above, span) = spanned.above_empty().unwrap();
        close(Some(above), 0.5 - 0.25);
        close(Some(span), 0.75 - 0.25);
    }

    #[test]
    fn a_reader_that_cannot_do_the_task_measures_nothing() {
        let check = |full: f64, empty: f64, expected| {
            let anchors = Anchors { full: Some(full), empty: Some(empty) };
            assert_eq!(anchors.check().err(), expected, "{full} {empty}");
        };
        check(0.6, 0.4, None);
        check(0.59, 0.0, Some(FidelityRefusal::CeilingTooLow));
        check(0.9, 0.75, Some(FidelityRefusal::SpanTooSmall));
        check(1.0, 0.0, None);
        let nothing = Anchors::default();
        assert_eq!(nothing.check(), Err(FidelityRefusal::Unpaired));
        let no_floor = Anchors { full: Some(0.9), empty: None };
        close(no_floor.check().ok(), 0.9);
    }

    #[test]
    fn more_than_full_history_is_flagged() {
        assert_eq!(above_full(0.97), None);
        assert_eq!(above_full(0.1 + 0.2 + 0.7), None);
        assert!(above_full(1.029).is_some_and(|why| why.contains("100 %")));
    }

    #[test]
    fn a_probe_qualifies_that_the_context_answers_and_nothing_else_does() {
        use Outcome::{Abstained, Invented, Partial, Right, Wrong};
        let check = |kind, full, empty, expected| {
            assert_eq!(qualifies(kind, full, empty), expected, "{full:?} {empty:?}");
        };
        let recall = ProbeKind::Recall;
        check(recall, Some(Right), Some(Abstained), true);
        check(recall, Some(Right), Some(Wrong), true);
        check(recall, Some(Right), Some(Right), false);
        check(recall, Some(Partial), Some(Abstained), false);
        check(recall, Some(Wrong), Some(Abstained), false);
        check(recall, None, Some(Abstained), false);
        check(recall, Some(Right), None, false);
        check(ProbeKind::Decoy, Some(Invented), Some(Right), true);
        check(ProbeKind::Decoy, Some(Right), Some(Invented), false);
    }
}
