//! The summary of one strategy: every metric over all its sessions.

use std::collections::BTreeMap;
use std::fmt;

use crate::metric::answers::{Accuracy, AnswerScope};
use crate::metric::calls::ModelCalls;
use crate::metric::compaction::StageTotal;
pub use crate::metric::fidelity::Anchors;
use crate::metric::fidelity::{self, Failings, FidelityRefusal};
use crate::metric::survival::{self, Score};
use crate::metric::{CellSummary, METRICS, PooledValue, estimate, sessions};
use crate::record::Arm;
use crate::record::words::ProbeKind;
use crate::report::cost::StrategyCost;
use crate::stats::Estimate;

/// Every metric of one strategy over all its sessions.
///
/// Repeats of a session are averaged first, so that each session weighs the same.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategySummary {
    /// The strategy's name, or `full` or `empty`.
    pub name: String,
    /// Which column of the comparison it belongs to.
    pub arm: Arm,
    /// Cells.
    pub cells: usize,
    /// Sessions these cells are of.
    pub sessions: usize,
    /// Sessions in which a patch was applied, in any repeat.
    pub fired: usize,
    /// Calls at which cells died, ascending.
    pub deaths: Vec<usize>,
    /// Calls at which the strategy failed, ascending.
    pub failures: Vec<usize>,
    /// Calls whose prompt would have been rejected.
    pub rejected: usize,
    /// Prompts refused as too long, recovered or not.
    pub overflows: usize,
    /// Its cost under each bill, the one of the comparison first.
    pub costs: Vec<StrategyCost>,
    /// All planted items, corrected for chance.
    pub survival: Option<Estimate>,
    /// The same before the correction.
    pub survival_uncorrected: Option<Estimate>,
    /// By kind, uncorrected; that of `decoy` is the chance rate.
    pub survival_by_kind: BTreeMap<&'static str, Estimate>,
    /// The reader's answers; `None` where no reader was asked.
    pub answers: Option<StrategyAccuracy>,
    /// The reader's answers from the summaries alone; `None` where it was not asked.
    pub summary_answers: Option<StrategyAccuracy>,
    /// By stage.
    pub stages: BTreeMap<String, StageTotal>,
    /// Calls the strategy made.
    pub model_calls: ModelCalls,
    /// The value of each metric that was measured, by name.
    pub(crate) values: BTreeMap<&'static str, PooledValue>,
}

/// Accuracy relative to full history, or why there is none.
pub type RelativeAccuracy = Result<Estimate, FidelityRefusal>;

/// The scores of a model on a strategy's prompts.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyAccuracy {
    /// Mean score.
    pub accuracy: Option<Estimate>,
    /// The least and the most it may be, where items have no score.
    pub bounds: Option<(f64, f64)>,
    /// Relative to full history.
    pub fidelity: RelativeAccuracy,
    /// The least and the most it may be, where items have no score here or under full history.
    pub fidelity_bounds: Option<(f64, f64)>,
    /// `F* = (acc − acc_empty)/(acc_full − acc_empty)`, over what was scored in all three;
    /// `None` where fidelity is refused, and without the floor.
    pub normalised: Option<Estimate>,
    /// In which ways answers are wrong, in the order of [`Failings`].
    pub failings: [Option<Estimate>; 8],
    /// Items that were not graded.
    pub unscored: usize,
    /// Of these, those that rules cannot confirm and no judge was asked about.
    pub needs_judge: usize,
    /// Items that did not qualify: they count in accuracy, and not in fidelity.
    pub unqualified: usize,
}

impl StrategySummary {
    /// Sums up the cells of one strategy.
    pub fn of(arm: Arm, name: &str, cells: &[&CellSummary], anchors: Anchors) -> Self {
        let mut stages: BTreeMap<String, StageTotal> = BTreeMap::new();
        for (stage, total) in cells.iter().flat_map(|cell| &cell.stages) {
            *stages.entry(stage.clone()).or_default() += *total;
        }
        let survival_by_kind = ProbeKind::ALL.into_iter().filter_map(|kind| {
            let rate = estimate(cells, |cell| cell.survival.of_kind(kind).counted())?;
            Some((kind.name(), rate))
        });
        let all = METRICS.iter();
        let values = all.filter_map(|metric| Some((metric.name, metric.over(cells, anchors)?)));
        let mut deaths: Vec<_> = cells.iter().filter_map(|cell| cell.completion.died_at).collect();
        deaths.sort_unstable();
        let failures = cells.iter().filter_map(|cell| cell.completion.failed_at);
        let mut failures: Vec<_> = failures.collect();
        failures.sort_unstable();
        Self {
            name: name.to_owned(),
            arm,
            cells: cells.len(),
            sessions: sessions(cells, |_| true),
            fired: sessions(cells, CellSummary::fired),
            deaths,
            failures,
            rejected: cells.iter().map(|cell| cell.findings.rejected).sum(),
            overflows: cells.iter().map(|cell| cell.findings.overflows).sum(),
            costs: StrategyCost::all(cells),
            survival: survival::corrected(cells),
            survival_uncorrected: survival::uncorrected(cells),
            survival_by_kind: survival_by_kind.collect(),
            answers: answers(cells, anchors, AnswerScope::Context),
            summary_answers: answers(cells, anchors, AnswerScope::Summaries),
            stages,
            model_calls: cells.iter().map(|cell| cell.model_calls).sum(),
            values: values.collect(),
        }
    }

    /// The estimate of a metric that is a mean over sessions.
    pub(crate) fn estimate(&self, metric: &str) -> Option<Estimate> {
        match self.values.get(metric)? {
            PooledValue::Estimate(estimate) | PooledValue::AtLeast(estimate, _) => Some(*estimate),
            _ => None,
        }
    }

    /// Whether it asked a model in any session.
    pub(crate) fn has_asked(&self) -> bool {
        self.model_calls.total().calls > 0
    }

    /// Whether it changed any session, or asked a model in one.
    pub(crate) fn has_acted(&self) -> bool {
        self.fired > 0 || self.has_asked()
    }

    /// Why the strategy takes part in no ranking: `2 refused, died at 57`. `None` if it does.
    ///
    /// A session that ended early must never look cheap, and a prompt that would have been
    /// refused saves nothing.
    pub fn broken(&self) -> Option<Breakage> {
        (self.rejected + self.deaths.len() + self.failures.len() > 0).then(|| Breakage {
            cells: self.cells,
            rejected: self.rejected,
            deaths: self.deaths.clone(),
            failures: self.failures.clone(),
        })
    }
}

/// The reasons for which a strategy takes part in no ranking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakage {
    cells: usize,
    rejected: usize,
    deaths: Vec<usize>,
    failures: Vec<usize>,
}

impl Breakage {
    /// Whether a larger window mends it: prompts did not fit, and nothing else is wrong.
    pub(crate) fn is_too_large(&self) -> bool {
        self.failures.is_empty() && self.rejected == 0
    }

    /// The reasons in words, with a unit after the number of cells and a word before the first call.
    pub(crate) fn in_words(&self, unit: &str, call: &str) -> String {
        let mut parts = Vec::new();
        if self.rejected > 0 {
            parts.push(format!("{} refused", self.rejected));
        }
        for (word, calls) in [("died", &self.deaths), ("failed", &self.failures)] {
            match calls.as_slice() {
                [] => {}
                [call] if self.cells == 1 => parts.push(format!("{word} at {call}")),
                [first, ..] => parts.push(format!(
                    "{word} in {} of {}{unit}, first at {call}{first}",
                    calls.len(),
                    self.cells
                )),
            }
        }
        parts.join(", ")
    }
}

impl fmt::Display for Breakage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words("", ""))
    }
}

fn answers(
    cells: &[&CellSummary],
    anchors: Anchors,
    scope: AnswerScope,
) -> Option<StrategyAccuracy> {
    let answered: Vec<&Accuracy> = cells.iter().filter_map(|cell| cell.accuracy(scope)).collect();
    if answered.is_empty() {
        return None;
    }
    let part = |part: &dyn Fn(&Accuracy) -> Score| {
        estimate(cells, |cell| part(cell.accuracy(scope)?).counted())
    };
    Some(StrategyAccuracy {
        accuracy: part(&|accuracy| accuracy.score),
        bounds: between(part(&|one| one.bounds.worst), part(&|one| one.bounds.best)),
        fidelity: fidelity::relative(cells, scope, anchors),
        fidelity_bounds: fidelity::bounds(cells, scope, anchors),
        normalised: fidelity::normalised(cells, scope, anchors),
        failings: std::array::from_fn(|at| part(&|accuracy| rates(&accuracy.failings)[at])),
        unscored: answered.iter().map(|accuracy| accuracy.unscored).sum(),
        needs_judge: answered.iter().map(|accuracy| accuracy.needs_judge).sum(),
        unqualified: answered.iter().map(|accuracy| accuracy.unqualified).sum(),
    })
}

/// Two estimates as the ends of what a value may be; `None` where they are one.
fn between(worst: Option<Estimate>, best: Option<Estimate>) -> Option<(f64, f64)> {
    let (worst, best) = (worst?.point_estimate, best?.point_estimate);
    (worst < best).then_some((worst, best))
}

fn rates(failings: &Failings) -> [Score; 8] {
    [
        failings.omitted,
        failings.distorted,
        failings.stale,
        failings.misbound,
        failings.hallucinated,
        failings.overclaimed,
        failings.compliance_kept,
        failings.compliance_dropped,
    ]
}
