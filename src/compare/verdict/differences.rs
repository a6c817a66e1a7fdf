//! One sample minus another, axis by axis, with what would change the sign.

use std::collections::BTreeSet;

use super::{Axis, Difference, Flip, FullHistory};
use crate::compare::difference::{mean, of_metric};
use crate::compare::{Chance, ComparableMetric, MetricDifference, Sample, SessionSample, Settings};
use crate::stats::gate::Target;

impl Axis {
    /// The metric it is compared by.
    pub(super) fn metric(self) -> &'static str {
        match self {
            Self::Cost => "cost_savings",
            Self::Facts => "survival",
            Self::Answers => "accuracy",
            Self::Actions => "action_support",
        }
    }

    /// Whether a strategy has values on it.
    pub(crate) fn is_measured(self, sample: &Sample) -> bool {
        let metric = self.metric();
        sample.sessions.values().any(|session| {
            let mut probes = session.probes.values();
            session.metrics.contains_key(metric)
                || probes.any(|probe| !probe.scores(metric).is_empty())
        })
    }
}

impl FullHistory {
    /// The bill of a strategy beside that of full history, in the sessions that `fits` names.
    pub(crate) fn beside(strategy: &Sample, fits: &BTreeSet<&str>) -> Option<Self> {
        let billed = strategy.sessions.iter().filter_map(|(id, session)| {
            let saved = mean(session.metrics.get(Axis::Cost.metric())?)?;
            Some((id.as_str(), saved))
        });
        let billed: Vec<(&str, f64)> = billed.collect();
        let fitting = billed.iter().filter(|(id, _)| fits.contains(id));
        let saved: Vec<f64> = fitting.map(|(_, saved)| *saved).collect();
        Some(Self {
            sessions: saved.len(),
            of: billed.len(),
            saved: mean(&saved)?,
        })
    }
}

/// `candidate` minus `baseline`, about sessions like these. Axes without an error are left out: one
/// session does not show by how much another would differ.
pub(crate) fn differences(
    baseline: &Sample,
    candidate: &Sample,
    axes: impl IntoIterator<Item = Axis>,
    seed: u64,
) -> Vec<Difference> {
    let settings = Settings {
        target: Target::Population,
        // What chance decides differs between sessions, too: their spread holds both.
        chance: Chance::Nowhere,
        seed,
    };
    let of = |axis: Axis| {
        let metric = ComparableMetric::named(axis.metric())?;
        let found = of_metric(metric, baseline, candidate, settings)?;
        let edge = match axis {
            Axis::Cost => at_the_edge(baseline, candidate),
            Axis::Facts | Axis::Answers | Axis::Actions => None,
        };
        Some(Difference {
            axis,
            p: found.p(),
            flip: flip(&found, edge),
            bounds: found.bounds?,
        })
    };
    axes.into_iter().filter_map(of).collect()
}

/// The assumption that changes the sign of a difference; a difference of nothing has none.
fn flip(found: &MetricDifference, edge: Option<f64>) -> Option<Flip> {
    let seen = found.paired.by_session.point_estimate;
    let is_other = |value: f64| value * seen <= 0.0;
    if seen == 0.0 {
        return None;
    }
    if let Some(edge) = edge.filter(|edge| is_other(*edge)) {
        return Some(Flip::Edge { edge });
    }
    let sum: f64 = found.by_cluster.iter().map(|(_, value)| value).sum();
    let rest = found.by_cluster.len().checked_sub(1).filter(|it| *it > 0)? as f64;
    let without = |(session, value): &(String, f64)| (session.clone(), (sum - value) / rest);
    let mut others = found.by_cluster.iter().map(without);
    let (session, without) = others.find(|(_, without)| is_other(*without))?;
    Some(Flip::LeftOut { session, without })
}

/// The difference in cost saved with a breakpoint in front of what each changes next, over the sessions
/// in which either has such a place.
fn at_the_edge(baseline: &Sample, candidate: &Sample) -> Option<f64> {
    let pairs = candidate.sessions.iter().filter_map(|(id, own)| {
        let other = baseline.sessions.get(id)?;
        if own.edge_savings.is_empty() && other.edge_savings.is_empty() {
            return None;
        }
        let usual = |of: &SessionSample| mean(of.metrics.get("cost_savings")?);
        let at_edge = |of: &SessionSample| mean(&of.edge_savings).or_else(|| usual(of));
        Some(at_edge(own)? - at_edge(other)?)
    });
    mean(&pairs.collect::<Vec<_>>())
}
