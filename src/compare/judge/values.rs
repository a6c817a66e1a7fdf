//! The values of two samples on one axis, and the difference between them.

use std::collections::{BTreeMap, BTreeSet};

use super::{AxisFinding, NOTHING, Pair, Rule, State, Target, cluster};
use crate::compare::axis::{Axis, Kind};
use crate::compare::{ProbeSample, SessionSample};
use crate::stats::bounds::Bounds;
use crate::stats::paired::{PairedDifference, PairedSession};
use crate::stats::suite::{self, Repeats, SuiteDifference};
use crate::stats::{Estimate, signflip};

/// The values of an axis, cluster by cluster.
pub(super) struct Values<'a> {
    axis: Axis,
    key: &'static str,
    pairs: Vec<Pair<'a>>,
    names: Vec<&'a str>,
    clusters: Vec<Vec<PairedSession>>,
    missing: usize,
}

impl<'a> Values<'a> {
    pub(super) fn of(axis: Axis, sessions: &[Pair<'a>]) -> Option<Self> {
        let key = key(axis, sessions);
        let mut pairs = sessions.to_vec();
        let mut missing = 0;
        if axis.kind() == Kind::Total {
            pairs.retain(ended_alike);
            // A session that dies no more is an improvement, and no gap in the comparison.
            let others = sessions.iter().filter(|pair| !ended_alike(pair));
            missing = others.filter(|pair| !only_baseline_died(pair)).count();
        }
        let mut clusters: BTreeMap<&str, Vec<PairedSession>> = BTreeMap::new();
        for pair in &pairs {
            let (session, is_missing) = paired(axis, key, pair);
            missing += usize::from(is_missing);
            clusters.entry(cluster(pair)).or_default().push(session);
        }
        let is_there = |own: &Vec<PairedSession>| own.iter().any(|it| !it.pairs.is_empty());
        if !clusters.values().any(is_there) {
            return None;
        }
        let (names, clusters) = clusters.into_iter().unzip();
        Some(Self {
            axis,
            key,
            pairs,
            names,
            clusters,
            missing,
        })
    }

    /// Over the sessions of each cluster, the mean of what the pairs of a session give.
    fn by_cluster(&self, of: fn(&(f64, f64)) -> f64) -> Vec<(String, f64)> {
        let named = self.names.iter().zip(&self.clusters);
        let known = named.filter_map(|(name, own)| {
            let sessions = own.iter().filter_map(|it| mean_of(&it.pairs, of));
            Some(((*name).to_owned(), mean(&sessions.collect::<Vec<_>>())?))
        });
        known.collect()
    }

    /// Means over clusters, each weighing the same.
    pub(super) fn means(self, rule: &Rule) -> Option<AxisFinding> {
        let mut paired = PairedDifference::of(&self.clusters, rule.seed)?;
        for estimate in [&mut paired.by_session, &mut paired.by_probe] {
            if estimate.point_estimate.abs() < NOTHING {
                estimate.point_estimate = 0.0;
            }
        }
        let levels = [|pair: &(f64, f64)| pair.0, |pair: &(f64, f64)| pair.1];
        let levels = levels.map(|of| mean_of(&self.by_cluster(of), |it| it.1).unwrap_or(0.0));
        let differences = self.by_cluster(|(old, new)| new - old).into_iter();
        let differences = differences.map(|(name, value)| (name, self.axis.turned(value)));
        let suite = self.suite(rule, None);
        let estimate = Estimate {
            point_estimate: self.axis.turned(paired.by_session.point_estimate),
            ..paired.by_session
        };
        let bounds = self.bounds(&estimate, suite.as_ref(), 1.0, rule);
        let unscored = bounds.zip(paired.bounds);
        let ends = unscored.map(|(bounds, (low, high))| {
            let filled = |fill| {
                let suite = self.suite(rule, Some(fill))?;
                of_suite(&suite.estimate, &suite)
            };
            // Probes are better the higher they score: nothing is to be turned.
            let repeated = suite.and_then(|_| Some((filled((1.0, 0.0))?, filled((0.0, 1.0))?)));
            let point = paired.by_session.point_estimate;
            repeated.unwrap_or_else(|| (bounds.moved(low - point), bounds.moved(high - point)))
        });
        Some(AxisFinding {
            by_cluster: differences.collect(),
            bounds,
            ends,
            suite,
            ..self.finding(levels, paired, rule)
        })
    }

    /// Totals over all sessions: the ratio of two sums over clusters, with its clustered error.
    pub(super) fn totals(self, rule: &Rule) -> Option<AxisFinding> {
        let paired = PairedDifference::of(&self.clusters, rule.seed)?;
        let sums: Vec<(f64, f64)> = self.clusters.iter().map(|own| sum(own)).collect();
        let [old, new] = [sum_of(&sums, |it| it.0), sum_of(&sums, |it| it.1)];
        let named = self.names.iter().zip(&sums);
        let by_cluster: Vec<(String, f64)> = named
            .map(|(name, (old, new))| ((*name).to_owned(), old - new))
            .collect();
        let suite = self.suite(rule, None);
        let turned: Vec<(f64, f64)> = sums.iter().map(|(old, new)| (*new, *old)).collect();
        let ratio = Estimate::of_ratio(&turned, paired.by_session.n.items);
        let bounds = match ratio {
            // Nothing on both sides is the same.
            None if old == 0.0 && new == 0.0 => Some(Bounds::exact(0.0, sums.len())),
            // A share of nothing is no number.
            None => None,
            Some(ratio) => {
                let saved = 1.0 - ratio.point_estimate;
                let estimate = Estimate {
                    point_estimate: if saved.abs() < NOTHING { 0.0 } else { saved },
                    ..ratio
                };
                let scale = sums.len() as f64 / old;
                self.bounds(&estimate, suite.as_ref(), scale, rule)
            }
        };
        let mut found = AxisFinding {
            bounds,
            suite,
            ..self.finding([old, new], paired, rule)
        };
        let values: Vec<f64> = by_cluster.iter().map(|(_, value)| *value).collect();
        // The test asks what the interval answers, and that is about sums over clusters.
        found.paired.sign_flip = signflip::test(&values, rule.seed);
        found.by_cluster = by_cluster;
        Some(found)
    }

    fn finding(
        &self,
        [baseline, candidate]: [f64; 2],
        paired: PairedDifference,
        rule: &Rule,
    ) -> AxisFinding {
        AxisFinding {
            axis: self.axis,
            kind: self.axis.kind(),
            direction: self.axis.direction(),
            evaluator: self.axis.evaluator(),
            state: State::Unknown,
            note: None,
            baseline,
            candidate,
            margin: rule.margin(self.axis),
            bounds: None,
            adjusted_p: None,
            paired,
            suite: None,
            ends: None,
            missing_sessions: self.missing,
            by_cluster: Vec::new(),
        }
    }

    /// The bounds of an estimate that is turned so that higher is better; `scale` brings the error of repeats
    /// to its unit.
    fn bounds(
        &self,
        estimate: &Estimate,
        suite: Option<&SuiteDifference>,
        scale: f64,
        rule: &Rule,
    ) -> Option<Bounds> {
        let sessions = estimate.n.sessions;
        match rule.target {
            Target::Suite if !rule.chance.touches(self.axis) => {
                Some(Bounds::exact(estimate.point_estimate, sessions))
            }
            Target::Suite => {
                let suite = suite?;
                let error = suite.estimate.standard_error.map(|it| it * scale);
                let estimate = Estimate {
                    standard_error: error,
                    ..*estimate
                };
                of_suite(&estimate, suite)
            }
            Target::Population => Bounds::estimated(estimate, sessions.checked_sub(1)?),
        }
    }

    /// The difference on this suite by repeats, where chance has a part; `None` where a session was not scored
    /// in two repeats on both sides. Pairs without a score are left out, or get these in place of the score
    /// that the baseline or the candidate lacks.
    fn suite(&self, rule: &Rule, fill: Option<(f64, f64)>) -> Option<SuiteDifference> {
        if rule.target != Target::Suite || !rule.chance.touches(self.axis) {
            return None;
        }
        let mut clusters: BTreeMap<&str, Vec<Repeats>> = BTreeMap::new();
        for pair in &self.pairs {
            let (_, old, new) = pair;
            let Some(new) = new else { continue };
            let baseline = self.repeats(old, new, fill.map(|fill| fill.0));
            let candidate = self.repeats(new, old, fill.map(|fill| fill.1));
            if !(baseline.is_empty() || candidate.is_empty()) {
                let repeats = Repeats {
                    baseline,
                    candidate,
                };
                clusters.entry(cluster(pair)).or_default().push(repeats);
            }
        }
        let clusters = clusters.into_values();
        let repeats: Vec<Repeats> = clusters.map(|own| self.one_of(&own)).collect();
        suite::compare(&repeats, rule.seed)
    }

    /// A cluster's sessions as one, repeat by repeat, as far as all of them have it: the sum of a total, else
    /// the mean.
    fn one_of(&self, sessions: &[Repeats]) -> Repeats {
        let divisor = match self.axis.kind() {
            Kind::Total => 1.0,
            Kind::Probes | Kind::Share | Kind::Count => sessions.len() as f64,
        };
        let side = |of: fn(&Repeats) -> &Vec<f64>| {
            let fewest = sessions.iter().map(|it| of(it).len()).min().unwrap_or(0);
            let repeats = (0..fewest).map(|at| sum_of(sessions, |it| of(it)[at]) / divisor);
            repeats.collect()
        };
        Repeats {
            baseline: side(|session| &session.baseline),
            candidate: side(|session| &session.candidate),
        }
    }

    /// A session's value in each repeat: of probes those that `other` scores as well, and with `fill` those
    /// that one side alone scores.
    fn repeats(
        &self,
        session: &SessionSample,
        other: &SessionSample,
        fill: Option<f64>,
    ) -> Vec<f64> {
        if self.axis.kind() != Kind::Probes {
            let values = session.metrics.get(self.key).cloned();
            return values.unwrap_or_default();
        }
        let ids: BTreeSet<&String> = session.probes.keys().chain(other.probes.keys()).collect();
        let (mut scored, mut filled): (Vec<&[f64]>, f64) = (Vec::new(), 0.0);
        for id in ids {
            let scores = |of: &'_ SessionSample| {
                of.probes.get(id).map(|it| !it.scores(self.axis).is_empty())
            };
            let own = session
                .probes
                .get(id)
                .map_or(&[][..], |it| it.scores(self.axis));
            match (own.is_empty(), !scores(other).unwrap_or(false)) {
                (false, false) => scored.push(own),
                (false, true) if fill.is_some() => scored.push(own),
                (true, false) => filled += f64::from(u8::from(fill.is_some())),
                (false | true, true) => {}
            }
        }
        let fewest = scored.iter().map(|it| it.len()).min().unwrap_or(0);
        let count = scored.len() as f64 + filled;
        let missing = filled * fill.unwrap_or(0.0);
        (0..fewest)
            .map(|at| (sum_of(&scored, |it| it[at]) + missing) / count)
            .collect()
    }
}

/// The bounds of an estimate whose error comes from repeats.
pub(super) fn of_suite(estimate: &Estimate, suite: &SuiteDifference) -> Option<Bounds> {
    let mut bounds = Bounds::estimated(estimate, suite.freedom)?;
    bounds.permuted = Some(suite.p);
    Some(bounds)
}

pub(super) fn sum_of<T>(items: &[T], of: impl Fn(&T) -> f64) -> f64 {
    items.iter().map(of).sum()
}

pub(super) fn mean_of<T>(items: &[T], of: impl Fn(&T) -> f64) -> Option<f64> {
    (!items.is_empty()).then(|| sum_of(items, of) / items.len() as f64)
}

/// The sums of a cluster's pairs.
pub(super) fn sum(own: &[PairedSession]) -> (f64, f64) {
    let pairs: Vec<(f64, f64)> = own.iter().flat_map(|it| it.pairs.clone()).collect();
    (sum_of(&pairs, |it| it.0), sum_of(&pairs, |it| it.1))
}

/// Under which name the sessions hold the values of an axis: a bill in dollars where any is known on both sides.
pub(super) fn key(axis: Axis, sessions: &[Pair<'_>]) -> &'static str {
    let has_dollars = |session: &SessionSample| session.metrics.contains_key(DOLLARS);
    let mut sessions = sessions.iter();
    let is_priced = sessions.any(|(_, old, new)| has_dollars(old) && new.is_some_and(has_dollars));
    match axis {
        Axis::Bill if is_priced => DOLLARS,
        _ => axis.name(),
    }
}

/// The bill of a session in dollars, beside the one in input tokens.
pub(in crate::compare) const DOLLARS: &str = "dollars";

/// The values of a session under both, and whether the candidate lacks what the baseline has.
pub(super) fn paired(axis: Axis, key: &str, pair: &Pair<'_>) -> (PairedSession, bool) {
    let (_, old, new) = pair;
    let value = |session: &SessionSample| mean(session.metrics.get(key)?);
    let mut session = PairedSession::default();
    if axis.kind() == Kind::Probes {
        session = paired_probes(axis, pair);
        let is_missing = session.pairs.is_empty() && !session.unscored.is_empty();
        return (session, is_missing);
    }
    match (value(old), new.and_then(value)) {
        (Some(old), Some(new)) => session.pairs.push((old, new)),
        (Some(_), None) => return (session, true),
        (None, _) => {}
    }
    (session, false)
}

/// The scores of a session's probes under both, paired.
pub(super) fn paired_probes(axis: Axis, (_, old, new): &Pair<'_>) -> PairedSession {
    let mut session = PairedSession::default();
    let score = |probe: &ProbeSample| mean(probe.scores(axis));
    let mut add = |baseline: Option<f64>, candidate: Option<f64>| match (baseline, candidate) {
        (Some(baseline), Some(candidate)) => session.pairs.push((baseline, candidate)),
        // Scored by neither: there was nothing to compare.
        (None, None) => {}
        unscored => session.unscored.push(unscored),
    };
    for (id, probe) in &old.probes {
        add(score(probe), new.and_then(|new| score(new.probes.get(id)?)));
    }
    for (id, probe) in new.iter().flat_map(|new| &new.probes) {
        if !old.probes.contains_key(id) {
            add(None, score(probe));
        }
    }
    session
}

/// Whether both sides made the same calls, as far as their deaths show: a session that dies earlier
/// costs less without saving anything.
pub(super) fn ended_alike((_, old, new): &Pair<'_>) -> bool {
    new.is_none_or(|new| old.dead == new.dead && old.died_at == new.died_at)
}

pub(super) fn only_baseline_died((_, old, new): &Pair<'_>) -> bool {
    old.dead > 0 && new.is_some_and(|new| new.dead == 0)
}

pub(in crate::compare) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
