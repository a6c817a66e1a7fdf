//! The values of two samples on one axis, and the difference between them.

use std::collections::BTreeMap;

use super::{AxisFinding, JudgingRule, NOTHING, Pair, State, Target, both_have, cluster};
use crate::compare::axis::{Axis, Kind};
use crate::compare::{ProbeSample, SessionSample};
use crate::stats::bounds::Bounds;
use crate::stats::paired::{self, PairedDifference, PairedSession};
use crate::stats::{Estimate, mean, signflip};

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
    /// Of what the sessions hold under this key, see [`key`].
    pub(super) fn of(axis: Axis, key: &'static str, sessions: &[Pair<'a>]) -> Option<Self> {
        let (pairs, apart): (Vec<Pair<'a>>, Vec<Pair<'a>>) =
            sessions.iter().partition(|pair| axis.kind() != Kind::Total || ended_alike(pair));
        // A session that dies no more is an improvement, and no gap in the comparison.
        let mut missing = apart.iter().filter(|pair| !only_baseline_died(pair)).count();
        let clusters = by_cluster(&pairs, |pair| {
            let (session, is_missing) = paired(axis, key, pair);
            missing += usize::from(is_missing);
            session
        });
        clusters.values().flatten().find(|session| session.values.is_some())?;
        let (names, clusters) = clusters.into_iter().unzip();
        Some(Self { axis, key, pairs, names, clusters, missing })
    }

    /// Over the sessions of each cluster, the mean of what their values give.
    fn means_of(&self, of: fn(&(f64, f64)) -> f64) -> Vec<(String, f64)> {
        let known = self.names.iter().zip(&self.clusters).filter_map(|(name, own)| {
            let values = own.iter().filter_map(|session| session.values.as_ref());
            Some(((*name).to_owned(), mean(&values.map(of).collect::<Vec<_>>())?))
        });
        known.collect()
    }

    /// Means over clusters, each weighing the same.
    pub(super) fn means(self, rule: &JudgingRule) -> Option<AxisFinding> {
        let mut paired = PairedDifference::of(&self.clusters, rule.seed)?;
        let estimate = &mut paired.by_session;
        if estimate.point_estimate.abs() < NOTHING {
            estimate.point_estimate = 0.0;
        }
        let sides = [|pair: &(f64, f64)| pair.0, |pair: &(f64, f64)| pair.1];
        let levels = sides.map(|of| {
            let clusters = self.means_of(of);
            sum_of(&clusters, |cluster| cluster.1) / clusters.len() as f64
        });
        let all = self.means_of(|(old, new)| new - old).into_iter();
        let differences = all.map(|(name, value)| (name, self.axis.turned(value)));
        let bounds = self.bounds_of_means(paired.by_session, rule);
        let open = paired.unscored + paired.unsure > 0;
        let ends =
            open.then(|| Some((self.end(RangeEnd::Worst, rule)?, self.end(RangeEnd::Best, rule)?)));
        Some(AxisFinding {
            by_cluster: differences.collect(),
            bounds,
            ends: ends.flatten(),
            ..self.finding(levels, paired, rule)
        })
    }

    fn bounds_of_means(&self, mut found: Estimate, rule: &JudgingRule) -> Option<Bounds> {
        found.point_estimate = self.axis.turned(found.point_estimate);
        self.bounds(&found, rule)
    }

    /// The bounds if every open score were as bad, or as good, as can be for the candidate.
    fn end(&self, end: RangeEnd, rule: &JudgingRule) -> Option<Bounds> {
        let clusters = by_cluster(&self.pairs, |one| paired_probes(self.axis, end, one));
        let found = paired::estimate(&clusters.into_values().collect::<Vec<_>>())?;
        self.bounds_of_means(found, rule)
    }

    /// Totals over all sessions: the ratio of two sums over clusters, with its clustered error.
    pub(super) fn totals(self, rule: &JudgingRule) -> Option<AxisFinding> {
        let mut paired = PairedDifference::of(&self.clusters, rule.seed)?;
        let sums: Vec<(f64, f64)> = self.clusters.iter().map(|own| sum(own)).collect();
        let [old, new] = [sum_of(&sums, |(old, _)| *old), sum_of(&sums, |(_, new)| *new)];
        let saved: Vec<f64> = sums.iter().map(|(old, new)| old - new).collect();
        let names = self.names.iter().map(|name| (*name).to_owned());
        let turned: Vec<(f64, f64)> = sums.iter().map(|(old, new)| (*new, *old)).collect();
        let ratio = Estimate::of_ratio(&turned, paired.by_session.n.items);
        let bounds = match ratio {
            // Nothing on both sides is the same.
            None if old == 0.0 && new == 0.0 => Some(Bounds::exact(0.0, sums.len())),
            // A share of nothing is no number.
            None => None,
            Some(mut estimate) => {
                let saved = 1.0 - estimate.point_estimate;
                estimate.point_estimate = if saved.abs() < NOTHING { 0.0 } else { saved };
                self.bounds(&estimate, rule)
            }
        };
        // The test asks what the interval answers, and that is about sums over clusters.
        paired.sign_flip = signflip::test(&saved, rule.seed);
        Some(AxisFinding {
            bounds,
            by_cluster: names.zip(saved).collect(),
            ..self.finding([old, new], paired, rule)
        })
    }

    fn finding(
        &self,
        [baseline, candidate]: [f64; 2],
        paired: PairedDifference,
        rule: &JudgingRule,
    ) -> AxisFinding {
        AxisFinding {
            axis: self.axis,
            kind: self.axis.kind(),
            direction: self.axis.direction(),
            evaluator: self.axis.evaluator(),
            state: State::Unknown,
            note: None,
            is_in_dollars: self.key == DOLLARS,
            baseline,
            candidate,
            margin: rule.margin(self.axis),
            bounds: None,
            adjusted_p: None,
            paired,
            ends: None,
            missing_sessions: self.missing,
            unfinished_sessions: match self.axis.kind() {
                Kind::Total => {
                    let both = self.pairs.iter().filter_map(|(.., new)| *new);
                    both.filter(|new| new.dead > 0).count()
                }
                Kind::Probes | Kind::Share | Kind::Count => 0,
            },
            by_cluster: Vec::new(),
        }
    }

    /// The bounds of an estimate that is turned so that higher is better.
    fn bounds(&self, estimate: &Estimate, rule: &JudgingRule) -> Option<Bounds> {
        match rule.chance.target(rule.target, self.axis) {
            Target::Suite => Some(Bounds::exact(estimate.point_estimate, estimate.n.sessions)),
            Target::Population => Bounds::estimated(estimate),
        }
    }
}

/// What these pairs give, cluster by cluster.
fn by_cluster<'a, T>(
    pairs: &[Pair<'a>],
    mut of: impl FnMut(&Pair<'a>) -> T,
) -> BTreeMap<&'a str, Vec<T>> {
    let mut clusters: BTreeMap<&str, Vec<T>> = BTreeMap::new();
    for pair in pairs {
        clusters.entry(cluster(pair)).or_default().push(of(pair));
    }
    clusters
}

pub(super) fn sum_of<T>(items: &[T], of: impl Fn(&T) -> f64) -> f64 {
    items.iter().map(of).sum()
}

/// The sums of a cluster's sessions.
pub(super) fn sum(own: &[PairedSession]) -> (f64, f64) {
    let known: Vec<(f64, f64)> = own.iter().filter_map(|session| session.values).collect();
    (sum_of(&known, |(old, _)| *old), sum_of(&known, |(_, new)| *new))
}

/// Under which name the sessions hold the values of an axis: a bill in dollars where any is known on both sides.
pub(super) fn key(axis: Axis, sessions: &[Pair<'_>]) -> &'static str {
    match axis {
        Axis::Bill if sessions.iter().any(|pair| both_have(pair, DOLLARS)) => DOLLARS,
        _ => axis.name(),
    }
}

/// The bill of a session in dollars, beside the one in input tokens.
pub(in crate::compare) const DOLLARS: &str = "dollars";

/// The values of a session under both, and whether the candidate lacks what the baseline has.
pub(super) fn paired(axis: Axis, key: &str, pair: &Pair<'_>) -> (PairedSession, bool) {
    let (_, old, new) = pair;
    if axis.kind() == Kind::Probes {
        let session = paired_probes(axis, RangeEnd::Shown, pair);
        return (session, session.values.is_none() && session.unscored > 0);
    }
    match [Some(*old), *new].map(|side| mean(side?.metrics.get(key)?)) {
        [Some(old), Some(new)] => {
            let turned = PairedSession::of(axis.turned(old), axis.turned(new));
            let counts = turned.counts;
            (PairedSession { counts, ..PairedSession::of(old, new) }, false)
        }
        [old, _] => (PairedSession::default(), old.is_some()),
    }
}

/// With what a score is compared that is not there, or is a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeEnd {
    /// With nothing, or with what is shown.
    Shown,
    /// As bad as can be for the candidate.
    Worst,
    /// As good as can be for the candidate.
    Best,
}

impl RangeEnd {
    /// The scores of a probe under both, each the mean over repeats; `None` where they are not compared.
    fn scores(self, axis: Axis, probes: [Option<&ProbeSample>; 2]) -> Option<[f64; 2]> {
        let scored = probes.map(|probe| probe.filter(|probe| probe.has(axis)));
        let sides = scored.iter().flatten().count();
        // Scored by neither: there is nothing to compare.
        if sides == 0 || self == Self::Shown && sides < 2 {
            return None;
        }
        let low = match self {
            Self::Shown => [true, true],
            Self::Worst => [false, true],
            Self::Best => [true, false],
        };
        Some([0, 1].map(|side| match (scored[side], low[side]) {
            (Some(probe), true) => mean(probe.scores(axis)).unwrap_or_default(),
            (Some(probe), false) => mean(probe.most(axis)).unwrap_or_default(),
            (None, low) => f64::from(u8::from(!low)),
        }))
    }
}

/// The probes of a session that either side has.
fn probes_of<'a>(
    old: &'a SessionSample,
    new: Option<&'a SessionSample>,
) -> impl Iterator<Item = [Option<&'a ProbeSample>; 2]> {
    let others =
        new.into_iter().flat_map(|new| &new.probes).filter(|(id, _)| !old.probes.contains_key(*id));
    let of_old = old.probes.iter().map(move |(id, probe)| {
        let other = new.and_then(|new| new.probes.get(id));
        [Some(probe), other]
    });
    of_old.chain(others.map(|(_, probe)| [None, Some(probe)]))
}

/// A session under both: the means of its probes' scores by weight.
fn paired_probes(axis: Axis, end: RangeEnd, (_, old, new): &Pair<'_>) -> PairedSession {
    let mut session = PairedSession::default();
    let (mut sums, mut weights) = ((0.0, 0.0), 0.0);
    for probes in probes_of(old, *new) {
        let mut known = probes.iter().flatten();
        let sides = known.clone().filter(|probe| probe.has(axis)).count();
        session.unscored += usize::from(sides == 1);
        session.unsure += usize::from(sides == 2 && known.any(|probe| probe.is_range(axis)));
        let Some([baseline, candidate]) = end.scores(axis, probes) else {
            continue;
        };
        let weight = probes.iter().flatten().map(|probe| probe.weight).max().map_or(0.0, f64::from);
        sums = (sums.0 + weight * baseline, sums.1 + weight * candidate);
        weights += weight;
        session.counts.add(baseline, candidate);
    }
    session.values = (weights > 0.0).then(|| (sums.0 / weights, sums.1 / weights));
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
