//! From two samples to differences, metric by metric.

use std::collections::BTreeMap;

use super::slices;
use super::{
    BrokenRule, COMPARED, ChangedProbe, Compared, Comparison, Coverage, Kind, MetricDifference,
    ProbeSample, Sample, SessionSample, Settings,
};
use crate::metric::Direction;
use crate::record::Importance;
use crate::stats::gate::{Bounds, Target};
use crate::stats::paired::{PairedDifference, PairedSession, UnscoredPair};
use crate::stats::ratio::Ratio;
use crate::stats::suite::{self, Repeats};

/// What is nearer to 0 than this is 0: numbers that went through a file may differ in the last bit.
const NOTHING: f64 = 1e-9;

pub(super) fn compare(baseline: &Sample, candidate: &Sample, settings: Settings) -> Comparison {
    let same_definition = !(baseline.definition.is_empty() || candidate.definition.is_empty());
    let pairs = paired_sessions(baseline, candidate);
    let target = if settings.target == Target::Suite && !settings.deterministic {
        // Without repeats on both sides there is nothing to tell noise by.
        let repeated = |session: &SessionSample| session.metrics.values().all(|v| v.len() >= 2);
        let both = |(_, old, new): &Pair<'_>| repeated(old) && new.is_some_and(repeated);
        if pairs.iter().all(both) {
            Target::Suite
        } else {
            Target::Population
        }
    } else {
        settings.target
    };
    let settings = Settings { target, ..settings };
    Comparison {
        baseline: baseline.strategy.clone(),
        candidate: candidate.strategy.clone(),
        same_definition: same_definition.then(|| baseline.definition == candidate.definition),
        metrics: COMPARED
            .iter()
            .filter_map(|metric| metric_difference(metric, &pairs, settings))
            .collect(),
        changed: changed(&pairs),
        broken_rules: broken_rules(&pairs),
        coverage: coverage(&pairs),
        slices: slices::by_kind(&pairs, settings.seed),
        target,
        seed: settings.seed,
    }
}

/// A session of the baseline, and what the candidate has of it.
pub(super) type Pair<'a> = (&'a str, &'a SessionSample, Option<&'a SessionSample>);

fn paired_sessions<'a>(baseline: &'a Sample, candidate: &'a Sample) -> Vec<Pair<'a>> {
    baseline
        .sessions
        .iter()
        .map(|(id, old)| (id.as_str(), old, candidate.sessions.get(id)))
        .collect()
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The scores of a session's probes under both, paired.
pub(super) fn paired_probes(
    (_, old, new): &Pair<'_>,
    metric: &str,
    which: impl Fn(&ProbeSample) -> bool,
) -> PairedSession {
    let mut session = PairedSession::default();
    let mut add = |baseline: Option<f64>, candidate: Option<f64>| match (baseline, candidate) {
        (Some(baseline), Some(candidate)) => session.pairs.push((baseline, candidate)),
        // Scored by neither: there was nothing to compare.
        (None, None) => {}
        (baseline, candidate) => session.unscored.push(UnscoredPair {
            baseline,
            candidate,
        }),
    };
    for (id, probe) in old.probes.iter().filter(|(_, probe)| which(probe)) {
        let other = new.and_then(|new| new.probes.get(id));
        add(
            mean(probe.scores(metric)),
            other.and_then(|other| mean(other.scores(metric))),
        );
    }
    for (id, probe) in new.iter().flat_map(|new| &new.probes) {
        if which(probe) && !old.probes.contains_key(id) {
            add(None, mean(probe.scores(metric)));
        }
    }
    session
}

fn metric_difference(
    metric: &Compared,
    pairs: &[Pair<'_>],
    settings: Settings,
) -> Option<MetricDifference> {
    let mut sessions: Vec<(String, PairedSession)> = Vec::new();
    let mut missing_sessions = 0;
    for pair in pairs {
        let (id, old, new) = pair;
        let session = if metric.kind == Kind::Probes {
            paired_probes(pair, metric.name, |_| true)
        } else {
            let value = |session: &SessionSample| mean(session.metrics.get(metric.name)?);
            let mut session = PairedSession::default();
            if let (Some(old), Some(new)) = (value(old), new.and_then(value)) {
                session.pairs.push((old, new));
            } else if value(old).is_some() {
                missing_sessions += 1;
            }
            session
        };
        if metric.kind == Kind::Probes && session.pairs.is_empty() && !session.unscored.is_empty() {
            missing_sessions += 1;
        }
        sessions.push(((*id).to_owned(), session));
    }
    let only: Vec<PairedSession> = sessions
        .iter()
        .map(|(_, session)| session.clone())
        .collect();
    let mut paired = PairedDifference::of(&only, settings.seed)?;
    for estimate in [&mut paired.by_session, &mut paired.by_probe] {
        if estimate.point_estimate.abs() < NOTHING {
            estimate.point_estimate = 0.0;
        }
    }
    let used = sessions
        .iter()
        .filter(|(_, session)| !session.pairs.is_empty());
    let by_session: Vec<(String, f64)> = used
        .clone()
        .map(|(id, session)| {
            let sum: f64 = session.pairs.iter().map(|(old, new)| new - old).sum();
            (id.clone(), sum / session.pairs.len() as f64)
        })
        .collect();
    let side = |pick: fn(&(f64, f64)) -> f64| {
        let means: Vec<f64> = used
            .clone()
            .filter_map(|(_, s)| mean(&s.pairs.iter().map(pick).collect::<Vec<_>>()))
            .collect();
        mean(&means).unwrap_or(0.0)
    };
    let ratio = (metric.kind == Kind::Amount)
        .then(|| {
            let amounts: Vec<(f64, f64)> = only.iter().flat_map(|s| s.pairs.clone()).collect();
            Ratio::of(&amounts)
        })
        .flatten();
    Some(MetricDifference {
        metric: metric.name,
        kind: metric.kind,
        direction: metric.direction,
        evaluator: metric.evaluator,
        baseline: side(|pair| pair.0),
        candidate: side(|pair| pair.1),
        bounds: bounds(metric, &paired, ratio.as_ref(), pairs, settings),
        adjusted_p: paired.sign_flip.map(|test| test.p),
        paired,
        ratio,
        missing_sessions,
        by_session,
    })
}

/// What a verdict rests on, turned so that higher is better. Amounts are compared by the logarithm of
/// their ratio.
fn bounds(
    metric: &Compared,
    paired: &PairedDifference,
    ratio: Option<&Ratio>,
    pairs: &[Pair<'_>],
    settings: Settings,
) -> Option<Bounds> {
    let sessions = paired.by_session.n.sessions;
    let turn = |value: f64| match metric.direction {
        Direction::Higher | Direction::Neutral => value,
        Direction::Lower => -value,
    };
    if settings.target == Target::Suite && settings.deterministic {
        let difference = match (metric.kind, ratio) {
            (Kind::Amount, Some(ratio)) => libm::log(ratio.of_totals),
            _ => paired.by_session.point_estimate,
        };
        return Some(Bounds::exact(turn(difference), sessions));
    }
    let mut estimate = paired.by_session;
    let mut freedom = sessions.checked_sub(1)?;
    if let Some(ratio) = ratio {
        estimate.point_estimate = libm::log(ratio.geometric.point_estimate);
        estimate.standard_error = ratio.geometric.standard_error;
    } else if settings.target == Target::Suite {
        let repeats: Vec<Repeats> = pairs
            .iter()
            .filter_map(|(_, old, new)| Some((repeats(metric, old), repeats(metric, (*new)?))))
            .filter(|(old, new)| !old.is_empty() && !new.is_empty())
            .map(|(baseline, candidate)| Repeats {
                baseline,
                candidate,
            })
            .collect();
        let found = suite::compare(&repeats, settings.seed)?;
        estimate.standard_error = found.estimate.standard_error;
        freedom = found.freedom;
    }
    estimate.point_estimate = turn(estimate.point_estimate);
    Bounds::estimated(&estimate, freedom, settings.target)
}

/// A session's value in each repeat.
fn repeats(metric: &Compared, session: &SessionSample) -> Vec<f64> {
    if metric.kind != Kind::Probes {
        return session
            .metrics
            .get(metric.name)
            .cloned()
            .unwrap_or_default();
    }
    let scores: Vec<&[f64]> = session
        .probes
        .values()
        .map(|probe| probe.scores(metric.name))
        .filter(|scores| !scores.is_empty())
        .collect();
    let fewest = scores.iter().map(|scores| scores.len()).min().unwrap_or(0);
    (0..fewest)
        .filter_map(|at| mean(&scores.iter().map(|scores| scores[at]).collect::<Vec<_>>()))
        .collect()
}

fn changed(pairs: &[Pair<'_>]) -> Vec<ChangedProbe> {
    let mut found = Vec::new();
    for (session, old, new) in pairs {
        let Some(new) = new else { continue };
        for (id, probe) in &old.probes {
            let Some(other) = new.probes.get(id) else {
                continue;
            };
            for metric in ["survival", "extract", "accuracy"] {
                let (was, is) = (probe.scores(metric), other.scores(metric));
                let (Some(baseline), Some(candidate)) = (mean(was), mean(is)) else {
                    continue;
                };
                if (baseline - candidate).abs() <= NOTHING {
                    continue;
                }
                let right = |score: &f64| *score >= 1.0 - NOTHING;
                let wrong = |score: &f64| *score < 0.5;
                let (before, after) = (probe.fresh(metric), other.fresh(metric));
                found.push(ChangedProbe {
                    session: (*session).to_owned(),
                    probe: id.clone(),
                    kind: probe.kind.clone(),
                    high_importance: probe.importance == Importance::High,
                    metric,
                    baseline,
                    candidate,
                    lost: before.iter().all(right) && after.iter().all(wrong),
                    repeats: before.len().min(after.len()),
                    lost_at: other.lost_at.clone().filter(|_| candidate < baseline),
                });
            }
        }
    }
    // The losses that matter most come first; what was gained comes last.
    found.sort_by(|left, right| {
        let rank = |probe: &ChangedProbe| (!(probe.lost && probe.high_importance), !probe.lost);
        let change = |probe: &ChangedProbe| probe.candidate - probe.baseline;
        rank(left)
            .cmp(&rank(right))
            .then(change(left).total_cmp(&change(right)))
            .then_with(|| left.session.cmp(&right.session))
            .then_with(|| left.probe.cmp(&right.probe))
    });
    found
}

fn broken_rules(pairs: &[Pair<'_>]) -> Vec<BrokenRule> {
    let of = |(session, old, new): &Pair<'_>| -> Vec<BrokenRule> {
        let rules = new
            .iter()
            .flat_map(|new| new.rejected.difference(&old.rejected));
        rules
            .map(|rule| BrokenRule {
                session: (*session).to_owned(),
                rule: rule.clone(),
            })
            .collect()
    };
    pairs.iter().flat_map(of).collect()
}

fn coverage(pairs: &[Pair<'_>]) -> Coverage {
    let mut coverage = Coverage {
        sessions: pairs.len(),
        ..Coverage::default()
    };
    for (_, old, new) in pairs {
        coverage.paired_sessions += usize::from(new.is_some());
        let dead = new.map_or(0, |new| new.dead);
        coverage.newly_dead += dead.saturating_sub(old.dead);
        for (id, probe) in &old.probes {
            let other = new.and_then(|new| new.probes.get(id));
            for metric in ["survival", "extract", "accuracy"] {
                let scored = !probe.scores(metric).is_empty();
                let both = other.is_some_and(|other| !other.scores(metric).is_empty());
                coverage.items += usize::from(scored);
                coverage.paired_items += usize::from(scored && both);
            }
        }
    }
    coverage
}

/// Sessions by id with their differences, as a map.
pub(super) fn by_id(metric: &MetricDifference) -> BTreeMap<&str, f64> {
    metric
        .by_session
        .iter()
        .map(|(id, d)| (id.as_str(), *d))
        .collect()
}
