//! A strategy beside doing nothing and beside its control: what of a recommendation is shown.

use super::{Difference, RunRow};
use crate::compare::judge::{AxisFinding, JudgingRule, LEVEL, Pairs, State};
use crate::compare::{Axis, Margins, Sample};
use crate::stats::paired::FEWEST_SESSIONS;

/// The three axes that decide, candidate against a baseline.
pub(super) struct Three {
    pub(super) bill: Option<AxisFinding>,
    pub(super) kept: Option<AxisFinding>,
    pub(super) actions: Option<AxisFinding>,
}

impl Three {
    pub(super) fn of(pairs: &Pairs<'_>, rule: &JudgingRule) -> Self {
        let answers = pairs.judge(Axis::Answers, rule).filter(AxisFinding::is_comparable);
        Self {
            bill: pairs.judge(Axis::Bill, rule),
            kept: answers.or_else(|| pairs.judge(Axis::Facts, rule)),
            actions: pairs.judge(Axis::Actions, rule),
        }
    }

    pub(super) fn between(baseline: &Sample, candidate: &Sample, rule: &JudgingRule) -> Self {
        Self::of(&Pairs::of(baseline, candidate), rule)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &AxisFinding> {
        self.bill.iter().chain(self.quality())
    }

    /// What is kept, and actions, as far as they are known.
    pub(super) fn quality(&self) -> impl Iterator<Item = &AxisFinding> {
        self.kept.iter().chain(&self.actions)
    }

    /// Whether something holds of what is kept and of actions. One of them may have no items on either side: that
    /// limits what is said, and is no condition.
    fn both(&self, holds: impl FnMut(&AxisFinding) -> bool) -> bool {
        self.quality().next().is_some() && self.quality().all(holds)
    }

    /// The axes of quality in such a state, in words.
    pub(super) fn in_state(&self, is_meant: fn(State) -> bool) -> Vec<String> {
        self.quality().filter(|found| is_meant(found.state)).map(AxisFinding::in_words).collect()
    }

    /// The axes of quality on which it is shown to be better, in words.
    pub(super) fn better(&self) -> Vec<String> {
        self.in_state(|state| state == State::Better)
    }

    /// Whether no loss of quality beyond the margin is left open.
    pub(super) fn keeps(&self) -> bool {
        self.both(|found| found.state.is_not_worse())
    }

    /// The same by the estimates alone.
    pub(super) fn seems_to_keep(&self) -> bool {
        self.both(seems_held)
    }

    /// Whether the bill is lower by its estimate.
    fn seems_cheaper(&self) -> bool {
        self.bill.as_ref().is_some_and(|bill| is_up(bill, 0.0))
    }

    /// Losses over the usual margins, which wider ones may accept, where no more than the margin of the bill is saved:
    /// that pays for none.
    pub(super) fn unpaid(&self) -> Vec<String> {
        let saves = self.bill.as_ref().is_some_and(is_over_margin);
        let lost = self.quality().filter(|found| !saves && is_lost(found, &Margins::default()));
        lost.map(AxisFinding::in_words).collect()
    }

    pub(super) fn is_same(&self) -> bool {
        self.both(|found| found.state == State::Same)
    }

    /// Whether no axis differs in any session.
    pub(super) fn is_identical(&self) -> bool {
        self.all().flat_map(|found| &found.by_cluster).all(|(_, difference)| *difference == 0.0)
    }

    /// Shown to be better on one axis and not worse on the others, each by itself.
    pub(super) fn dominates(&self) -> bool {
        let bill = self.bill.as_ref();
        let held = bill.is_some_and(|bill| bill.state.is_not_worse()) && self.keeps();
        held && self.all().any(|found| found.state == State::Better)
    }

    pub(super) fn differences(&self) -> Vec<Difference> {
        self.all().map(Difference::from).collect()
    }

    /// For each axis of quality on which a loss is left open, how many of such sessions would rule it out; `None`
    /// where no number would.
    fn sessions_to_hold(&self, sessions: usize) -> Option<Vec<usize>> {
        let open = self.quality().filter(|found| !found.state.is_not_worse());
        open.map(|found| Some(of_all(found, found.sessions_to_hold(found.margin)?, sessions)))
            .collect()
    }
}

/// Of how many sessions so many would be `needed`, if as many have a value on this axis as of these `sessions`.
fn of_all(found: &AxisFinding, needed: usize, sessions: usize) -> usize {
    (needed * sessions).div_ceil(found.by_cluster.len().max(1))
}

/// Whether a loss beyond the margin is ruled out by the estimate alone.
fn seems_held(found: &AxisFinding) -> bool {
    found.is_comparable() && found.difference() >= -found.margin
}

/// Whether more is lost than the margin of the axis.
pub(super) fn is_lost(found: &AxisFinding, margins: &Margins) -> bool {
    let margin = margins.get(found.axis);
    margin.is_some_and(|margin| found.difference() < -margin)
}

/// Whether it is better by more than its margin.
fn is_over_margin(found: &AxisFinding) -> bool {
    found.difference() > found.margin
}

/// Whether a difference is known and hangs on no single session.
fn is_steady(found: &AxisFinding) -> bool {
    found.is_comparable() && found.turning_cluster().is_none()
}

/// Whether a difference is shown to be above 0, the level of its test apart.
pub(super) fn is_above(found: &AxisFinding) -> bool {
    found.is_above_0() && is_steady(found)
}

/// Whether a difference is above this by its estimate.
fn is_up(found: &AxisFinding, least: f64) -> bool {
    found.difference() > least && is_steady(found)
}

/// The p value of a difference in the good direction.
fn p_of(found: &AxisFinding) -> f64 {
    if found.is_comparable() { found.one_sided_p() } else { 1.0 }
}

/// A row that is sound, judged.
pub(super) struct Case<'a> {
    pub(super) row: &'a RunRow,
    pub(super) total: Option<f64>,
    /// Against doing nothing, where that completes in six independent sessions and more.
    pub(super) nothing: Option<Three>,
    pub(super) control: Option<Three>,
    /// Why it is not recommended where doing nothing is no choice, in a clause.
    pub(super) hindrance: Option<String>,
    pub(super) adjusted_p: f64,
    pub(super) is_recommended: bool,
    /// How many sessions more would show it; `None` where no number would, or it is recommended.
    pub(super) more_sessions: Option<usize>,
    /// Why it is not recommended, in a clause.
    pub(super) obstacle: String,
}

impl Case<'_> {
    /// The bill against doing nothing, where that is a choice.
    pub(super) fn bill(&self) -> Option<&AxisFinding> {
        self.nothing.as_ref()?.bill.as_ref()
    }

    /// Whether its bill is judged in input tokens although some sessions have a price: dollars would not tell of all.
    pub(super) fn is_in_tokens(&self) -> bool {
        self.bill().is_some_and(|bill| bill.note.is_some())
    }

    /// Whether it beats doing nothing, the level of the test apart.
    fn beats_nothing(&self) -> bool {
        match &self.nothing {
            Some(three) => {
                let cheaper = three.bill.as_ref().is_some_and(is_above);
                cheaper && three.keeps() && three.unpaid().is_empty()
            }
            None => self.hindrance.is_none(),
        }
    }

    /// Whether it beats its control, likewise.
    pub(super) fn beats_control(&self) -> bool {
        let Some(three) = &self.control else {
            return self.row.is_control();
        };
        let cheaper = three.is_same() && three.bill.as_ref().is_some_and(is_above);
        three.keeps() && (three.quality().any(is_above) || cheaper)
    }

    pub(super) fn is_shown(&self) -> bool {
        self.adjusted_p <= LEVEL && self.beats_nothing() && self.beats_control()
    }

    /// Whether a program does the same as its control on every axis, and something.
    pub(super) fn is_plain_tail(&self) -> bool {
        let does_nothing = self.nothing.as_ref().is_some_and(Three::is_identical);
        let tail = self.control.as_ref().is_some_and(Three::is_identical);
        self.row.is_program && tail && !does_nothing
    }

    /// Whether it is shown to be cheaper than doing nothing by more than the margin, and to keep less than that by
    /// more than theirs: the axes on which it does.
    pub(super) fn given_up(&self) -> Vec<&AxisFinding> {
        let bill = self.bill().filter(|bill| bill.state == State::Better && is_over_margin(bill));
        let lost = self.nothing.iter().filter(|_| bill.is_some()).flat_map(Three::quality);
        lost.filter(|one| one.state == State::Worse && one.difference() < -one.margin).collect()
    }

    /// Whether there are such.
    pub(super) fn is_trade(&self) -> bool {
        !self.given_up().is_empty()
    }

    /// Whether it meets every condition by its estimates, and no single session turns one.
    pub(super) fn is_ahead(&self) -> bool {
        let beats_nothing = match &self.nothing {
            Some(three) => {
                three.seems_cheaper() && three.seems_to_keep() && three.unpaid().is_empty()
            }
            None => self.hindrance.is_none(),
        };
        let beats_control = match &self.control {
            Some(three) => {
                let better = three.quality().any(|found| is_up(found, found.margin));
                three.seems_to_keep() && (better || three.seems_cheaper())
            }
            None => self.row.is_control(),
        };
        beats_nothing && beats_control
    }

    /// How many sessions like these, of which there are so many, would show it, one of so many strategies.
    pub(super) fn sessions_needed(&self, strategies: usize, sessions: usize) -> Option<usize> {
        let mut needed = vec![FEWEST_SESSIONS];
        if let Some(three) = &self.nothing {
            let bill = three.bill.as_ref()?;
            needed.push(of_all(bill, bill.sessions_needed(strategies)?, sessions));
            needed.extend(three.sessions_to_hold(sessions)?);
        }
        if let Some(three) = &self.control {
            let bill = three.bill.as_ref().filter(|_| three.seems_to_keep());
            let better = three.quality().chain(bill).filter_map(|found| {
                let needed = of_all(found, found.sessions_needed(strategies)?, sessions);
                Some((found.axis == Axis::Bill, needed))
            });
            // The bill counts where nothing of what is kept would be shown.
            needed.push(better.min()?.1);
            needed.extend(three.sessions_to_hold(sessions)?);
        }
        needed.into_iter().max()
    }

    /// p of the whole recommendation.
    pub(super) fn p(&self) -> f64 {
        self.p_of_nothing().max(self.p_of_control())
    }

    /// p of the bill against doing nothing. Where that is no choice, a row without a hindrance needs no test.
    fn p_of_nothing(&self) -> f64 {
        match &self.nothing {
            Some(three) => three.bill.as_ref().map_or(1.0, p_of),
            None if self.hindrance.is_none() => 0.0,
            None => 1.0,
        }
    }

    /// p against the control: the smaller of what is kept and actions, twice; where both are the same, that of the
    /// bill, twice. A tail that is a strategy has no control.
    fn p_of_control(&self) -> f64 {
        let Some(three) = &self.control else {
            return if self.row.is_control() { 0.0 } else { 1.0 };
        };
        let smallest = if three.is_same() && !three.quality().any(is_above) {
            three.bill.as_ref().map_or(1.0, p_of)
        } else {
            three.quality().map(p_of).fold(1.0, f64::min)
        };
        (2.0 * smallest).min(1.0)
    }
}
