//! The verdict of a run: which strategy to use, if that is shown, and which to avoid.
//!
//! Each strategy S is compared with its control at equal budget, `tail@S`: the newest rounds in the size
//! that S has, which is what the same budget buys without any thought. Everything here is pure: numbers
//! in, sentences out.

use schemars::JsonSchema;
use serde::Serialize;

use crate::stats::gate::Bounds;
use crate::stats::multiple::holm;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stats::{Estimate, power};

mod differences;
mod pair;
mod tasks;
mod words;

pub(crate) use differences::differences;
pub(crate) use pair::of_pair;
pub(crate) use tasks::TaskRun;
pub use tasks::{TasksAgainst, TasksSolved};

/// The share by which a strategy may be worse than its control on an axis: 5 points.
pub const MARGIN: f64 = 0.05;

/// A difference counts as shown at this level, after Holm's adjustment over strategies and axes.
pub const LEVEL: f64 = 0.05;

/// A measure on which strategies are compared. More is always better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Cost saved, under the usual breakpoints.
    Cost,
    /// Planted facts that are still in the prompt.
    Facts,
    /// Right answers of a reader that is a model: where it was asked, it takes the place of `Facts`.
    Answers,
    /// Details of the agent's later actions that are still in the prompt.
    Actions,
}

/// The facts about one strategy before it is judged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidate {
    /// Its name.
    pub(crate) name: String,
    /// Its control; `None` for controls, and where the run has none.
    pub(crate) control: Option<String>,
    /// Sessions in which it changed anything.
    pub(crate) fired: usize,
    /// Why it takes part in no ranking.
    pub(crate) broken: Option<String>,
    /// Cost saved against full history.
    pub(crate) saved: Option<Estimate>,
    /// The same with a breakpoint in front of what the strategy changes next.
    pub(crate) saved_edge: Option<f64>,
    /// Tokens saved.
    pub(crate) tokens_saved: Option<f64>,
    /// Edits of a prompt that had been sent before.
    pub(crate) edits: usize,
    /// Its bill beside that of full history, where that fits the window; `None` where it fits in no session.
    pub(crate) full_history: Option<FullHistory>,
    /// Its differences from its control.
    pub(crate) differences: Vec<Difference>,
    /// Axes that are not compared, with the reason.
    pub(crate) uncompared: Vec<(Axis, &'static str)>,
    /// A strategy that is at least as good everywhere, and better on this axis.
    pub(crate) dominated: Option<(String, Difference)>,
}

/// The sessions in which doing nothing is a choice, because full history fits the window.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct FullHistory {
    /// How many they are.
    pub sessions: usize,
    /// All sessions in which the strategy has a bill.
    pub of: usize,
    /// Cost that the strategy saves in them, the mean over them as a share: below 0 it is dearer than doing nothing.
    pub saved: f64,
}

/// A strategy minus another on one axis.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    /// The axis.
    pub(crate) axis: Axis,
    /// The difference with its bounds, over clusters of sessions.
    pub(crate) bounds: Bounds,
    /// p value of the sign-flip test, as if it stood alone.
    pub(crate) p: Option<f64>,
    /// The assumption under which its sign is another one.
    pub(crate) flip: Option<Flip>,
}

/// An assumption that changes the sign of a difference.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flip {
    /// The place of the cache breakpoints.
    Edge {
        /// The difference with a breakpoint in front of what the strategy changes next.
        edge: f64,
    },
    /// One session, with its file.
    LeftOut {
        /// The session, or the first of its file.
        session: String,
        /// The difference without it.
        without: f64,
    },
}

/// What a run says about the choice of a strategy.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Verdict {
    /// The sessions that it speaks of, in words: `12 generated sessions (code-review)`.
    pub population: String,
    /// How many they are.
    #[serde(skip)]
    pub sessions: usize,
    /// Independent sessions: those of one file count once.
    pub clusters: usize,
    /// The share by which a strategy may be worse than its control on an axis.
    pub margin: f64,
    /// Strategies that are recommended, the one that saves most first.
    pub recommended: Vec<String>,
    /// Why none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
    /// Strategies that are compared with their control, the one that saves most first.
    pub contenders: Vec<Contender>,
    /// Strategies to avoid, the worst first.
    pub avoid: Vec<Avoid>,
    /// Tasks solved, where agents ran and their results are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TasksSolved>,
}

/// Why no strategy is recommended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// No cell was recorded.
    NothingRan,
    /// Some strategies are broken, and no other changed anything.
    AllBroken,
    /// No strategy changed anything, and none is broken.
    NothingFired,
    /// The run has no controls at equal budget.
    NoControls,
    /// Agents ran, and how their tasks ended is not known.
    NoOutcomes,
    /// Too few independent sessions to say anything about others.
    FewSessions,
    /// No strategy is shown to beat its control.
    NotShown,
    /// Strategies beat their controls, but cost more than full history where it fits the window.
    Dearer,
}

/// A strategy, compared with its control.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Contender {
    /// The strategy.
    pub strategy: String,
    /// Its control at equal budget.
    pub control: String,
    /// Its cost saved against full history; `None` where that is not known.
    pub saved: Option<f64>,
    /// The same where full history fits the window; `None` where it fits in no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_history: Option<FullHistory>,
    /// Its differences from its control, axis by axis.
    pub axes: Vec<AxisFinding>,
    /// Axes that are not compared, with the reason: they count as not shown.
    pub uncompared: Vec<(Axis, &'static str)>,
    /// Sessions like these that would show it, if the differences stay as they are; `None` where no number
    /// would.
    pub sessions_needed: Option<usize>,
    /// Whether it is recommended.
    pub is_recommended: bool,
}

/// One axis of a contender: strategy minus control.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct AxisFinding {
    /// The axis.
    pub axis: Axis,
    /// The difference, a share: 0.01 is one point.
    pub difference: f64,
    /// Its two-sided 95 % interval.
    pub interval: (f64, f64),
    /// Its one-sided 95 % lower bound.
    pub lower: f64,
    /// p value, adjusted over strategies and axes; `None` where there is no test.
    pub adjusted_p: Option<f64>,
    /// Whether the strategy is shown to be better.
    pub is_better: bool,
    /// Whether it is shown to be worse by no more than the margin.
    pub is_not_worse: bool,
    /// The assumption under which its sign is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flip: Option<Flip>,
    /// Standard deviation of a session's difference, where it has an error.
    #[serde(skip)]
    pub(crate) deviation: Option<f64>,
}

/// A strategy to avoid.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Avoid {
    /// The strategy.
    pub strategy: String,
    /// Why, in a clause.
    pub why: String,
    /// Whether it is because it did not run to the end: a table says so, too.
    pub is_broken: bool,
}

/// One line of a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// `use`, `no recommendation`, `avoid`; of a comparison also `keep`, `no difference`, or the verdict of a gate.
    pub label: &'static str,
    /// One sentence or more. It holds names from the run, to be escaped.
    pub text: String,
}

impl Line {
    pub(crate) fn new(label: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { label, text }
    }
}

impl Verdict {
    /// Judges the strategies of a run.
    pub(crate) fn of(
        (population, sessions): (String, usize),
        clusters: usize,
        mut candidates: Vec<Candidate>,
    ) -> Self {
        let saved = |candidate: &Candidate| candidate.saved.map(|it| it.point_estimate);
        candidates.sort_by(|left, right| {
            let order = saved(right).unwrap_or(f64::NEG_INFINITY);
            order.total_cmp(&saved(left).unwrap_or(f64::NEG_INFINITY))
        });
        let sound = |it: &&Candidate| it.fired > 0 && it.broken.is_none();
        let mut contenders: Vec<Contender> = candidates
            .iter()
            .filter(sound)
            .filter_map(Contender::of)
            .collect();
        adjust(&mut contenders);
        for one in &mut contenders {
            one.sessions_needed = one.needed();
            one.is_recommended = clusters >= FEWEST_SESSIONS && one.is_shown() && !one.is_dearer();
        }
        let recommended = contenders.iter().filter(|one| one.is_recommended);
        let recommended: Vec<String> = recommended.map(|one| one.strategy.clone()).collect();
        let obstacle = if !recommended.is_empty() {
            None
        } else if clusters == 0 {
            Some(Obstacle::NothingRan)
        } else if !candidates.iter().any(|it| sound(&it)) {
            let is_broken = candidates.iter().any(|it| it.broken.is_some());
            Some(if is_broken {
                Obstacle::AllBroken
            } else {
                Obstacle::NothingFired
            })
        } else if contenders.is_empty() {
            Some(Obstacle::NoControls)
        } else if clusters < FEWEST_SESSIONS {
            Some(Obstacle::FewSessions)
        } else if contenders.iter().any(Contender::is_shown) {
            Some(Obstacle::Dearer)
        } else {
            Some(Obstacle::NotShown)
        };
        // The dearest come first: the candidates are in the order of what they save.
        let mut avoid: Vec<Avoid> = (candidates.iter().rev())
            .filter_map(|candidate| words::avoid(candidate, &candidates))
            .filter(|avoid| !recommended.contains(&avoid.strategy))
            .collect();
        avoid.sort_by_key(|avoid| avoid.is_broken);
        Self {
            population,
            sessions,
            clusters,
            margin: MARGIN,
            recommended,
            obstacle,
            contenders,
            avoid,
            tasks: Vec::new(),
        }
    }
}

impl Contender {
    fn of(candidate: &Candidate) -> Option<Self> {
        let control = candidate.control.clone()?;
        let axes = candidate.differences.iter().map(|it| AxisFinding {
            axis: it.axis,
            difference: it.bounds.difference,
            interval: (it.bounds.interval_lower, it.bounds.interval_upper),
            lower: it.bounds.lower,
            adjusted_p: it.p,
            is_better: false,
            is_not_worse: it.bounds.lower >= -MARGIN,
            flip: it.flip.clone(),
            deviation: it.bounds.deviation,
        });
        Some(Self {
            strategy: candidate.name.clone(),
            control,
            saved: candidate.saved.map(|it| it.point_estimate),
            full_history: candidate.full_history,
            axes: axes.collect(),
            uncompared: candidate.uncompared.clone(),
            sessions_needed: None,
            is_recommended: false,
        })
    }

    /// Better on one axis at least, whatever is assumed, and not worse on any.
    fn is_shown(&self) -> bool {
        let better = || self.axes.iter().filter(|axis| axis.is_better);
        let is_kept = |axis: &AxisFinding| axis.is_better || axis.is_not_worse;
        better().next().is_some()
            && better().all(|axis| axis.flip.is_none())
            && self.uncompared.is_empty()
            && self.axes.iter().all(is_kept)
    }

    /// Whether it costs more than doing nothing, where nothing need be done in most sessions.
    fn is_dearer(&self) -> bool {
        self.full_history
            .is_some_and(|it| it.saved < 0.0 && it.sessions * 2 > it.of)
    }

    /// The sessions after which each axis that is not shown to be no worse would be, and the best of them
    /// to be better.
    fn needed(&self) -> Option<usize> {
        if self.is_shown() || !self.uncompared.is_empty() {
            return None;
        }
        let needed =
            |axis: &AxisFinding, distance: f64| power::sessions_needed(axis.deviation?, distance);
        let worse = self.axes.iter().filter(|axis| !axis.is_not_worse);
        let not_worse: Option<Vec<usize>> =
            worse.map(|it| needed(it, MARGIN + it.difference)).collect();
        let better = if self.axes.iter().any(|axis| axis.is_better) {
            0
        } else {
            // No number of sessions makes a difference of nothing worth a choice.
            let all = self.axes.iter().filter(|axis| !axis.is_nothing());
            all.filter_map(|it| needed(it, it.difference)).min()?
        };
        not_worse?.into_iter().chain([better]).max()
    }
}

impl AxisFinding {
    /// Whether the difference rounds to 0 points.
    fn is_nothing(&self) -> bool {
        words::signed(self.difference) == "0"
    }
}

/// Holm's adjustment over strategies and axes; what has no test is not shown.
fn adjust(contenders: &mut [Contender]) {
    let axes = contenders.iter_mut().flat_map(|one| &mut one.axes);
    let mut axes: Vec<_> = axes.filter(|axis| axis.adjusted_p.is_some()).collect();
    let p_values: Vec<f64> = axes.iter().filter_map(|axis| axis.adjusted_p).collect();
    for (axis, adjusted) in axes.iter_mut().zip(holm(&p_values)) {
        axis.adjusted_p = Some(adjusted);
        axis.is_better = axis.difference > 0.0 && adjusted <= LEVEL;
    }
}

#[cfg(test)]
mod tests;
