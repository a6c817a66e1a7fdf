//! What changed, item by item: probes, rules of the provider, deaths, and how much was scored on both sides.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::FactText;
use super::axis::Axis;
use super::judge::{NOTHING, Pair};
use crate::record::words::HIGH_WEIGHT;
use crate::stats::mean;

/// Axes with a score per probe.
const OF_PROBES: [Axis; 2] = [Axis::Facts, Axis::Answers];

/// A probe whose score is not what it was.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ChangedProbe {
    /// The session.
    pub session: String,
    /// The probe, and at which percent of the session it was asked.
    pub probe: String,
    /// The kind of fact it asks about.
    pub kind: String,
    /// Whether a loss of it breaks the gate.
    pub high_importance: bool,
    /// What it is scored by.
    #[serde(rename = "metric")]
    pub axis: Axis,
    /// Score under the baseline, mean over repeats.
    pub baseline: f64,
    /// Score under the candidate, mean over repeats.
    pub candidate: f64,
    /// Whether it went from right in all repeats to wrong in all.
    pub lost: bool,
    /// The fewest repeats on either side.
    pub repeats: usize,
    /// Where the candidate lost it: `call 57 by clear_results`.
    pub lost_at: Option<String>,
    /// Its question and value; `None` where neither side is a run that recorded them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<FactText>,
}

/// A rule of level `rejected` that only the candidate breaks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
pub struct BrokenRule {
    /// The session.
    pub session: String,
    /// The rule.
    pub rule: String,
}

/// A session that died, or in which the strategy failed, more often under the candidate.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct NewDeath {
    /// The session.
    pub session: String,
    /// In how many of how many repeats under the baseline.
    pub baseline: (usize, usize),
    /// In how many of how many repeats under the candidate.
    pub candidate: (usize, usize),
    /// Where the candidate's first one died: `call 57`; `None` where the records do not say.
    pub at: Option<String>,
}

/// How much was scored on both sides.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Coverage {
    /// Sessions of the baseline.
    pub sessions: usize,
    /// Of these, sessions that the candidate has too.
    pub paired_sessions: usize,
    /// The same, where sub-agents count with their main session.
    pub paired_clusters: usize,
    /// Probe items that the baseline scored.
    pub items: usize,
    /// Of these, items that the candidate scored too.
    pub paired_items: usize,
    /// Cells of the candidate in which a session died or the strategy failed, and the baseline's did
    /// not.
    pub newly_dead: usize,
    /// The same by metric, those that the baseline scored: one that is always scored must not hide what
    /// another lacks.
    #[serde(rename = "by_metric")]
    pub by_axis: Vec<AxisCoverage>,
}

/// How much of one metric was scored on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
pub struct AxisCoverage {
    /// What they are scored by.
    #[serde(rename = "metric")]
    pub axis: Axis,
    /// Probe items that the baseline scored.
    pub items: usize,
    /// Of these, items that the candidate scored too.
    pub paired_items: usize,
}

impl AxisCoverage {
    fn of(axis: Axis, pairs: &[Pair<'_>]) -> Self {
        let (mut items, mut paired_items) = (0, 0);
        for (_, old, new) in pairs {
            let scored = old.probes.iter().filter(|(_, probe)| probe.has(axis));
            for (id, _) in scored {
                let other = new.and_then(|new| new.probes.get(id));
                items += 1;
                paired_items += usize::from(other.is_some_and(|probe| probe.has(axis)));
            }
        }
        Self { axis, items, paired_items }
    }

    /// Paired items as a share of the baseline's.
    pub fn share(&self) -> f64 {
        self.paired_items as f64 / self.items.max(1) as f64
    }
}

impl Coverage {
    /// The metric of which the smallest share was scored again; `None` where no item was scored.
    pub fn worst(&self) -> Option<AxisCoverage> {
        self.by_axis.iter().copied().min_by(|left, right| left.share().total_cmp(&right.share()))
    }

    /// The smallest share of a metric that was scored again, or of sessions where there are no items; 1 of
    /// nothing.
    pub fn share(&self) -> f64 {
        match (self.worst(), self.sessions) {
            (Some(worst), _) => worst.share(),
            (None, 0) => 1.0,
            (None, sessions) => self.paired_sessions as f64 / sessions as f64,
        }
    }
}

pub(super) fn changed(pairs: &[Pair<'_>]) -> Vec<ChangedProbe> {
    let mut found = Vec::new();
    for (session, old, new) in pairs {
        for (id, probe) in &old.probes {
            let Some(other) = new.and_then(|new| new.probes.get(id)) else {
                continue;
            };
            for axis in OF_PROBES {
                let (was, is) = (probe.scores(axis), other.scores(axis));
                let (Some(baseline), Some(candidate)) = (mean(was), mean(is)) else {
                    continue;
                };
                if (baseline - candidate).abs() <= NOTHING {
                    continue;
                }
                let (before, after) = (probe.fresh(axis), other.fresh(axis));
                found.push(ChangedProbe {
                    session: (*session).to_owned(),
                    probe: id.clone(),
                    kind: probe.kind.clone(),
                    high_importance: probe.weight >= HIGH_WEIGHT,
                    axis,
                    baseline,
                    candidate,
                    lost: before.iter().all(|score| *score >= 1.0 - NOTHING)
                        && after.iter().all(|score| *score < 0.5),
                    repeats: before.len().min(after.len()),
                    lost_at: other.lost_at.clone().filter(|_| candidate < baseline),
                    text: None,
                });
            }
        }
    }
    // The losses that matter most come first; what was gained comes last.
    found.sort_by(|left, right| {
        let [change, other] = [left, right].map(|probe| probe.candidate - probe.baseline);
        rank(left)
            .cmp(&rank(right))
            .then(change.total_cmp(&other))
            .then_with(|| left.session.cmp(&right.session))
            .then_with(|| left.probe.cmp(&right.probe))
    });
    found
}

fn rank(probe: &ChangedProbe) -> (bool, bool) {
    (!(probe.lost && probe.high_importance), !probe.lost)
}

pub(super) fn broken_rules(pairs: &[Pair<'_>]) -> Vec<BrokenRule> {
    let broken = pairs.iter().flat_map(|(session, old, new)| {
        let rules = new.iter().flat_map(move |new| new.rejected.difference(&old.rejected));
        rules.map(move |rule| BrokenRule { session: (*session).to_owned(), rule: rule.clone() })
    });
    broken.collect()
}

/// Sessions that die in a larger share of repeats than under the baseline.
pub(super) fn deaths(pairs: &[Pair<'_>]) -> Vec<NewDeath> {
    let dead = pairs.iter().filter_map(|(session, old, new)| {
        let new = (*new)?;
        let (before, after) = ((old.dead, old.repeats()), (new.dead, new.repeats()));
        // As fractions, so that other numbers of repeats compare.
        (after.0 * before.1 > before.0 * after.1).then(|| NewDeath {
            session: (*session).to_owned(),
            baseline: before,
            candidate: after,
            at: new.died_at.clone(),
        })
    });
    dead.collect()
}

pub(super) fn coverage(pairs: &[Pair<'_>]) -> Coverage {
    let both = pairs.iter().filter_map(|(id, old, new)| Some((*id, *old, (*new)?)));
    let clusters = both.clone().map(|(id, old, _)| old.cluster.as_deref().unwrap_or(id));
    let by_axis = OF_PROBES.map(|axis| AxisCoverage::of(axis, pairs));
    let by_axis: Vec<_> = by_axis.into_iter().filter(|one| one.items > 0).collect();
    Coverage {
        sessions: pairs.len(),
        paired_sessions: both.clone().count(),
        paired_clusters: clusters.collect::<BTreeSet<&str>>().len(),
        items: by_axis.iter().map(|of_axis| of_axis.items).sum(),
        paired_items: by_axis.iter().map(|of_axis| of_axis.paired_items).sum(),
        newly_dead: both.map(|(_, old, new)| new.dead.saturating_sub(old.dead)).sum(),
        by_axis,
    }
}
