//! A strategy beside doing nothing and beside its control: what of a recommendation is shown.

use super::{Difference, Row};
use crate::compare::judge::{AxisFinding, LEVEL, Pairs, Rule, State};
use crate::compare::{Axis, Sample};
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stats::power::sessions_needed;

/// The three axes that decide, candidate against a baseline.
pub(super) struct Three {
    pub(super) bill: Option<AxisFinding>,
    pub(super) kept: Option<AxisFinding>,
    pub(super) actions: Option<AxisFinding>,
}

impl Three {
    pub(super) fn of(pairs: &Pairs<'_>, rule: &Rule) -> Self {
        let answers = pairs.judge(Axis::Answers, rule);
        let answers = answers.filter(|found| found.state != State::NotComparable);
        Self {
            bill: pairs.judge(Axis::Bill, rule),
            kept: answers.or_else(|| pairs.judge(Axis::Facts, rule)),
            actions: pairs.judge(Axis::Actions, rule),
        }
    }

    pub(super) fn between(baseline: &Sample, candidate: &Sample, rule: &Rule) -> Self {
        Self::of(&Pairs::of(baseline, candidate), rule)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &AxisFinding> {
        [&self.bill, &self.kept, &self.actions]
            .into_iter()
            .flatten()
    }

    /// What is kept, and actions.
    pub(super) fn quality(&self) -> [Option<&AxisFinding>; 2] {
        [self.kept.as_ref(), self.actions.as_ref()]
    }

    /// The axes of quality on which it is shown to be better, in words.
    pub(super) fn better(&self) -> Vec<String> {
        let quality = self.quality().into_iter().flatten();
        let better = quality.filter(|found| found.state == State::Better);
        better.map(AxisFinding::in_words).collect()
    }

    /// Whether no loss of quality beyond the margin is left open.
    pub(super) fn keeps(&self) -> bool {
        self.quality().into_iter().all(is_held)
    }

    /// The same by the estimates alone.
    pub(super) fn seems_to_keep(&self) -> bool {
        self.quality().into_iter().all(seems_held)
    }

    /// The same where one of facts and actions may not be measured: few sessions show nothing anyway.
    pub(super) fn seems_to_keep_what_is_known(&self) -> bool {
        let mut known = self.quality().into_iter().flatten().peekable();
        known.peek().is_some() && known.all(|found| seems_held(Some(found)))
    }

    pub(super) fn is_same(&self) -> bool {
        self.quality().into_iter().all(is_same)
    }

    /// Shown to be better on one axis and not worse on the others, each by itself.
    pub(super) fn dominates(&self) -> bool {
        let all = [
            self.bill.as_ref(),
            self.kept.as_ref(),
            self.actions.as_ref(),
        ];
        all.into_iter().all(is_held) && self.all().any(|found| found.state == State::Better)
    }

    pub(super) fn differences(&self) -> Vec<Difference> {
        self.all().map(Difference::from).collect()
    }
}

/// Whether a loss beyond the margin is ruled out.
fn is_held(found: Option<&AxisFinding>) -> bool {
    found.is_some_and(|found| found.state.is_not_worse())
}

/// The same by the estimate alone.
fn seems_held(found: Option<&AxisFinding>) -> bool {
    found.is_some_and(|found| {
        found.state != State::NotComparable && found.difference() >= -found.margin
    })
}

fn is_same(found: Option<&AxisFinding>) -> bool {
    found.is_some_and(|found| found.state == State::Same)
}

/// Whether a difference is shown to be above 0, the level of its test apart.
pub(super) fn is_above(found: Option<&AxisFinding>) -> bool {
    found.is_some_and(|it| {
        let above = it.bounds.is_some_and(|bounds| bounds.interval_lower > 0.0);
        above && it.state != State::NotComparable && it.turning_cluster().is_none()
    })
}

/// The p value of a difference in the good direction.
pub(super) fn p_of(found: Option<&AxisFinding>) -> f64 {
    let known = found.filter(|found| found.state != State::NotComparable);
    known.map_or(1.0, AxisFinding::one_sided_p)
}

/// A row that is sound, judged.
pub(super) struct Case<'a> {
    pub(super) row: &'a Row,
    pub(super) total: Option<f64>,
    /// Against doing nothing, where that completes in six independent sessions and more.
    pub(super) nothing: Option<Three>,
    pub(super) control: Option<Three>,
    /// Where doing nothing is no choice: whether nothing cheaper keeps as much, and the row that does.
    pub(super) cheaper: Option<String>,
    pub(super) p: [f64; 2],
    pub(super) adjusted_p: f64,
}

impl Case<'_> {
    /// Whether it beats doing nothing, the level of the test apart.
    pub(super) fn beats_nothing(&self) -> bool {
        match &self.nothing {
            Some(three) => is_above(three.bill.as_ref()) && three.keeps(),
            None => self.cheaper.is_none(),
        }
    }

    /// Whether it beats its control, likewise.
    pub(super) fn beats_control(&self) -> bool {
        let Some(three) = &self.control else {
            return self.row.is_control();
        };
        let better = three.quality().into_iter().any(is_above);
        let is_cheaper = three.is_same() && is_above(three.bill.as_ref());
        three.keeps() && (better || is_cheaper)
    }

    pub(super) fn is_shown(&self) -> bool {
        self.adjusted_p <= LEVEL && self.beats_nothing() && self.beats_control()
    }

    /// Whether it is shown to be cheaper than doing nothing, and to keep less than that by more than the margin:
    /// the axes on which it does.
    pub(super) fn given_up(&self) -> Vec<&AxisFinding> {
        let Some(three) = &self.nothing else {
            return Vec::new();
        };
        let is_cheaper = three
            .bill
            .as_ref()
            .is_some_and(|found| found.state == State::Better);
        let lost = three.quality().into_iter().flatten();
        let lost = lost.filter(|one| one.state == State::Worse && one.difference() < -one.margin);
        lost.filter(|_| is_cheaper).collect()
    }

    /// Whether it meets every condition by its estimates, and no single session turns one.
    pub(super) fn is_ahead(&self) -> bool {
        let is_up = |found: Option<&AxisFinding>, least: f64| {
            found.is_some_and(|it| {
                let is_known = it.state != State::NotComparable && it.difference() > least;
                is_known && it.turning_cluster().is_none()
            })
        };
        let beats_nothing = match &self.nothing {
            Some(three) => is_up(three.bill.as_ref(), 0.0) && three.seems_to_keep(),
            None => self.cheaper.is_none(),
        };
        let Some(three) = &self.control else {
            return beats_nothing && self.row.is_control();
        };
        let better = three
            .quality()
            .into_iter()
            .any(|it| is_up(it, it.map_or(0.0, |it| it.margin)));
        let is_cheaper = is_up(three.bill.as_ref(), 0.0);
        beats_nothing && three.seems_to_keep() && (better || is_cheaper)
    }

    /// How many sessions would show it, one of so many strategies.
    pub(super) fn sessions_needed(&self, strategies: usize) -> Option<usize> {
        let mut needed = vec![FEWEST_SESSIONS];
        let not_worse = |found: &AxisFinding| {
            let distance = found.margin + found.difference();
            sessions_needed(found.bounds?.deviation?, distance)
        };
        let open = |three: &Three| {
            let quality = three.quality().into_iter().flatten();
            let open = quality.filter(|found| !found.state.is_not_worse());
            open.map(not_worse).collect::<Option<Vec<usize>>>()
        };
        if let Some(three) = &self.nothing {
            let bill = three.bill.as_ref()?;
            needed.push(bill.sessions_needed(bill.difference(), strategies)?);
            needed.extend(open(three)?);
        }
        if let Some(three) = &self.control {
            let of = |found: &AxisFinding| found.sessions_needed(found.difference(), strategies);
            let quality = three.quality().into_iter().flatten().filter_map(of).min();
            let bill = three
                .bill
                .as_ref()
                .and_then(of)
                .filter(|_| three.seems_to_keep());
            needed.push(quality.or(bill)?);
            needed.extend(open(three)?);
        }
        needed.into_iter().max()
    }
}

/// p of the bill against doing nothing. Where that is no choice, a row that nothing cheaper keeps up with needs
/// no test.
pub(super) fn p_of_nothing(case: &Case<'_>) -> f64 {
    match &case.nothing {
        Some(three) => p_of(three.bill.as_ref()),
        None if case.cheaper.is_none() => 0.0,
        None => 1.0,
    }
}

/// p against the control: the smaller of what is kept and actions, twice; where both are the same, that of the
/// bill, twice. A tail that is a strategy has no control.
pub(super) fn p_of_control(case: &Case<'_>) -> f64 {
    let Some(three) = &case.control else {
        return if case.row.is_control() { 0.0 } else { 1.0 };
    };
    let quality = three.quality().map(p_of);
    let is_better = three.quality().into_iter().any(is_above);
    let smallest = if three.is_same() && !is_better {
        p_of(three.bill.as_ref())
    } else {
        quality[0].min(quality[1])
    };
    (2.0 * smallest).min(1.0)
}
