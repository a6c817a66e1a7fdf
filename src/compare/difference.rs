//! From two samples to differences, metric by metric.

use std::collections::{BTreeMap, BTreeSet};

use super::slices;
use super::{
    BrokenRule, COMPARED, Chance, ChangedProbe, ComparableMetric, Comparison, Coverage, Kind,
    MetricCoverage, MetricDifference, NewDeath, ProbeSample, Sample, SessionSample, Settings,
};
use crate::metric::Direction;
use crate::record::Importance;
use crate::stats::Estimate;
use crate::stats::gate::{Bounds, Target};
use crate::stats::paired::{PairedDifference, PairedSession};

use crate::stats::ratio::Ratio;
use crate::stats::signflip;
use crate::stats::suite::{self, Repeats, SuiteDifference};

/// Metrics with a score per probe.
const OF_PROBES: [&str; 2] = ["survival", "accuracy"];

/// Values closer to 0 than this are 0: numbers that went through a file may differ in the last bit.
const NOTHING: f64 = 1e-9;

/// The difference in one metric alone.
pub(super) fn of_metric(
    metric: &ComparableMetric,
    baseline: &Sample,
    candidate: &Sample,
    settings: Settings,
) -> Option<MetricDifference> {
    metric_difference(metric, &pairs_of(baseline, candidate), settings)
}

/// The sessions of the baseline, each with what the candidate has of it.
fn pairs_of<'a>(baseline: &'a Sample, candidate: &'a Sample) -> Vec<Pair<'a>> {
    let other = |id| candidate.sessions.get(id);
    let sessions = baseline.sessions.iter();
    sessions
        .map(|(id, old)| (id.as_str(), old, other(id)))
        .collect()
}

pub(super) fn compare(baseline: &Sample, candidate: &Sample, settings: Settings) -> Comparison {
    let same_definition = !(baseline.definition.is_empty() || candidate.definition.is_empty());
    let pairs = pairs_of(baseline, candidate);
    // Without repeats on both sides noise cannot be estimated.
    let repeated = |session: &SessionSample| session.metrics.values().all(|v| v.len() >= 2);
    let both = |(_, old, new): &Pair<'_>| repeated(old) && new.is_some_and(repeated);
    let target = match settings.target {
        Target::Suite if settings.chance == Chance::Nowhere || pairs.iter().all(both) => {
            Target::Suite
        }
        Target::Suite | Target::Population => Target::Population,
    };
    let settings = Settings { target, ..settings };
    let metrics = COMPARED.iter();
    let metrics = metrics.filter_map(|metric| metric_difference(metric, &pairs, settings));
    Comparison {
        baseline: baseline.strategy.clone(),
        candidate: candidate.strategy.clone(),
        same_definition: same_definition.then(|| baseline.definition == candidate.definition),
        metrics: metrics.collect(),
        changed: changed(&pairs),
        broken_rules: broken_rules(&pairs),
        deaths: deaths(&pairs),
        coverage: coverage(&pairs),
        repriced: None,
        unpriced_sessions: 0,
        slices: slices::by_kind(&pairs, settings.seed),
        target,
        chance: settings.chance,
        seed: settings.seed,
    }
}

/// A session of the baseline, and what the candidate has of it.
pub(super) type Pair<'a> = (&'a str, &'a SessionSample, Option<&'a SessionSample>);

/// The cluster of a pair: its main session, or the session itself.
pub(super) fn cluster<'a>((id, old, new): &Pair<'a>) -> &'a str {
    let known = [Some(*old), *new].into_iter().flatten();
    let mut known = known.filter_map(|session| session.cluster.as_deref());
    known.next().unwrap_or(id)
}

/// The items of each cluster, in the order of the clusters' names.
pub(super) fn in_clusters<'a, T>(
    items: impl Iterator<Item = (&'a str, T)>,
) -> BTreeMap<&'a str, Vec<T>> {
    let mut clusters: BTreeMap<&str, Vec<T>> = BTreeMap::new();
    for (cluster, item) in items {
        clusters.entry(cluster).or_default().push(item);
    }
    clusters
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The scores of a session's probes under both, paired.
pub(super) fn paired_probes(
    (_, old, new): &Pair<'_>,
    metric: &str,
    is_wanted: impl Fn(&ProbeSample) -> bool,
) -> PairedSession {
    let mut session = PairedSession::default();
    let mut add = |baseline: Option<f64>, candidate: Option<f64>| match (baseline, candidate) {
        (Some(baseline), Some(candidate)) => session.pairs.push((baseline, candidate)),
        // Scored by neither: there was nothing to compare.
        (None, None) => {}
        unscored => session.unscored.push(unscored),
    };
    for (id, probe) in old.probes.iter().filter(|(_, probe)| is_wanted(probe)) {
        let other = new.and_then(|new| mean(new.probes.get(id)?.scores(metric)));
        add(mean(probe.scores(metric)), other);
    }
    for (id, probe) in new.iter().flat_map(|new| &new.probes) {
        if is_wanted(probe) && !old.probes.contains_key(id) {
            add(None, mean(probe.scores(metric)));
        }
    }
    session
}

fn metric_difference(
    metric: &ComparableMetric,
    pairs: &[Pair<'_>],
    settings: Settings,
) -> Option<MetricDifference> {
    let (comparable, others): (Vec<Pair<'_>>, Vec<Pair<'_>>) = match metric.kind {
        Kind::Amount => pairs.iter().copied().partition(ended_alike),
        Kind::Probes | Kind::Share | Kind::Count => (pairs.to_vec(), Vec::new()),
    };
    // A session that dies no more is an improvement, and no gap in the comparison.
    let mut missing_sessions = others
        .iter()
        .filter(|pair| !only_baseline_died(pair))
        .count();
    let pairs = &comparable[..];
    let sessions = pairs.iter().map(|pair| {
        let (_, old, new) = pair;
        let value = |session: &SessionSample| mean(session.metrics.get(metric.name)?);
        let mut session = PairedSession::default();
        if metric.kind == Kind::Probes {
            session = paired_probes(pair, metric.name, |_| true);
            let is_missing = session.pairs.is_empty() && !session.unscored.is_empty();
            missing_sessions += usize::from(is_missing);
        } else if let (Some(old), Some(new)) = (value(old), new.and_then(value)) {
            session.pairs.push((old, new));
        } else if value(old).is_some() {
            missing_sessions += 1;
        }
        (cluster(pair), session)
    });
    let (names, clusters): (Vec<&str>, Vec<Vec<PairedSession>>) =
        in_clusters(sessions).into_iter().unzip();
    let mut paired = PairedDifference::of(&clusters, settings.seed)?;
    for estimate in [&mut paired.by_session, &mut paired.by_probe] {
        if estimate.point_estimate.abs() < NOTHING {
            estimate.point_estimate = 0.0;
        }
    }
    // Over the sessions of a cluster, the mean of what each pair of a session gives.
    let of_cluster = |own: &Vec<PairedSession>, of: fn(&(f64, f64)) -> f64| {
        let of_session = |it: &PairedSession| mean(&it.pairs.iter().map(of).collect::<Vec<_>>());
        mean(&own.iter().filter_map(of_session).collect::<Vec<_>>())
    };
    let side = |of: fn(&(f64, f64)) -> f64| {
        let means = clusters.iter().filter_map(|own| of_cluster(own, of));
        mean(&means.collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let amounts = |own: &Vec<PairedSession>| own.iter().flat_map(|it| it.pairs.clone()).collect();
    let amounts: Vec<Vec<(f64, f64)>> = clusters.iter().map(amounts).collect();
    let is_amount = metric.kind == Kind::Amount;
    let ratio = is_amount.then(|| Ratio::of(&amounts)).flatten();
    let difference: fn(&(f64, f64)) -> f64 = match ratio {
        Some(_) => |(old, new)| libm::log(new / old),
        None => |(old, new)| new - old,
    };
    let by_cluster: Vec<(String, f64)> = names
        .into_iter()
        .zip(&clusters)
        .filter_map(|(name, own)| Some((name.to_owned(), of_cluster(own, difference)?)))
        .collect();
    if ratio.is_some() {
        // The test must ask what the interval answers, and that is one of logarithms.
        let logs: Vec<f64> = by_cluster.iter().map(|(_, log)| *log).collect();
        paired.sign_flip = signflip::test(&logs, settings.seed);
    }
    let by_repeats = settings.target == Target::Suite && settings.chance.touches(metric.name);
    let of = |fill| of_repeats(metric, pairs, settings.seed, fill);
    let suite = by_repeats.then(|| of(None)).flatten();
    let worst = suite.filter(|_| paired.unscored > 0).and_then(|_| {
        // Probes are better the higher they score: nothing is to be turned.
        let filled = |worst| of(Some(worst)).and_then(|it| of_suite(&it.estimate, &it));
        Some((filled((1.0, 0.0))?, filled((0.0, 1.0))?))
    });
    let mut difference = MetricDifference {
        metric: metric.name,
        kind: metric.kind,
        direction: metric.direction,
        evaluator: metric.evaluator,
        baseline: side(|pair| pair.0),
        candidate: side(|pair| pair.1),
        bounds: bounds(metric, &paired, ratio.as_ref(), suite.as_ref(), settings),
        adjusted_p: None,
        paired,
        ratio,
        suite,
        worst,
        missing_sessions,
        by_cluster,
    };
    difference.adjusted_p = difference.p();
    Some(difference)
}

/// Whether both sides made the same calls, as far as their deaths show: a session that dies earlier
/// costs less without saving anything.
fn ended_alike((_, old, new): &Pair<'_>) -> bool {
    new.is_none_or(|new| old.dead == new.dead && old.died_at == new.died_at)
}

fn only_baseline_died((_, old, new): &Pair<'_>) -> bool {
    old.dead > 0 && new.is_some_and(|new| new.dead == 0)
}

/// The bounds that a verdict rests on, with the sign such that higher is better. Amounts are
/// compared by the logarithm of their ratio, and not at all where one of them is 0: a margin is a
/// share of something.
fn bounds(
    metric: &ComparableMetric,
    paired: &PairedDifference,
    ratio: Option<&Ratio>,
    suite: Option<&SuiteDifference>,
    settings: Settings,
) -> Option<Bounds> {
    if metric.kind == Kind::Amount && ratio.is_none() {
        return None;
    }
    let sessions = paired.by_session.n.sessions;
    let turn = |value: f64| match metric.direction {
        Direction::Higher | Direction::Neutral => value,
        Direction::Lower => -value,
    };
    if settings.target == Target::Suite && !settings.chance.touches(metric.name) {
        let difference = ratio.map_or(paired.by_session.point_estimate, |ratio| {
            libm::log(ratio.of_totals)
        });
        return Some(Bounds::exact(turn(difference), sessions));
    }
    let mut estimate = paired.by_session;
    if let Some(ratio) = ratio {
        estimate.point_estimate = libm::log(ratio.geometric.point_estimate);
        estimate.standard_error = ratio.geometric.standard_error;
    }
    estimate.point_estimate = turn(estimate.point_estimate);
    match settings.target {
        Target::Population => {
            Bounds::estimated(&estimate, sessions.checked_sub(1)?, Target::Population)
        }
        Target::Suite => {
            let suite = suite?;
            estimate.standard_error = suite.estimate.standard_error;
            of_suite(&estimate, suite)
        }
    }
}

/// The bounds of an estimate whose error comes from repeats.
fn of_suite(estimate: &Estimate, suite: &SuiteDifference) -> Option<Bounds> {
    let mut bounds = Bounds::estimated(estimate, suite.freedom, Target::Suite)?;
    bounds.permuted = Some(suite.p);
    Some(bounds)
}

/// The difference of a metric on this suite by repeats, of amounts by their logarithms, each cluster
/// weighing the same; `None` where a session was not scored in two repeats on both sides. Pairs without a score are left out,
/// or get these in place of the score that the baseline or the candidate lacks.
fn of_repeats(
    metric: &ComparableMetric,
    pairs: &[Pair<'_>],
    seed: u64,
    fill: Option<(f64, f64)>,
) -> Option<SuiteDifference> {
    let on_scale = |values: Vec<f64>| -> Vec<f64> {
        match metric.kind {
            Kind::Amount => values.into_iter().map(libm::log).collect(),
            Kind::Probes | Kind::Share | Kind::Count => values,
        }
    };
    let of_pair = |pair: &Pair<'_>| {
        let (_, old, new) = pair;
        let new = (*new)?;
        let baseline = repeats(metric, old, new, fill.map(|fill| fill.0));
        let candidate = repeats(metric, new, old, fill.map(|fill| fill.1));
        (!baseline.is_empty() && !candidate.is_empty()).then(|| Repeats {
            baseline: on_scale(baseline),
            candidate: on_scale(candidate),
        })
    };
    let pairs = pairs.iter();
    let of_pairs = pairs.filter_map(|pair| Some((cluster(pair), of_pair(pair)?)));
    let clusters = in_clusters(of_pairs).into_values();
    let repeats: Vec<Repeats> = clusters.map(|own| mean_repeats(&own)).collect();
    suite::compare(&repeats, seed)
}

/// The mean of a cluster's sessions, repeat by repeat, as far as all of them have it.
fn mean_repeats(sessions: &[Repeats]) -> Repeats {
    let side = |of: fn(&Repeats) -> &Vec<f64>| {
        let fewest = sessions.iter().map(|it| of(it).len()).min().unwrap_or(0);
        let of_repeat = |at: usize| sessions.iter().map(|it| of(it)[at]).sum::<f64>();
        let repeats = (0..fewest).map(|at| of_repeat(at) / sessions.len() as f64);
        repeats.collect()
    };
    Repeats {
        baseline: side(|session| &session.baseline),
        candidate: side(|session| &session.candidate),
    }
}

/// A session's value in each repeat: of probes those that `other` scores as well, and with `fill`
/// those that one side alone scores.
fn repeats(
    metric: &ComparableMetric,
    session: &SessionSample,
    other: &SessionSample,
    fill: Option<f64>,
) -> Vec<f64> {
    if metric.kind != Kind::Probes {
        let values = session.metrics.get(metric.name).cloned();
        return values.unwrap_or_default();
    }
    let of_probe = |of: &SessionSample, id: &str| -> Vec<f64> {
        let probe = of.probes.get(id);
        probe.map_or_else(Vec::new, |probe| probe.scores(metric.name).to_vec())
    };
    let ids: BTreeSet<&String> = session.probes.keys().chain(other.probes.keys()).collect();
    let (mut scored, mut filled): (Vec<Vec<f64>>, f64) = (Vec::new(), 0.0);
    for id in ids {
        let (own, other) = (of_probe(session, id), of_probe(other, id));
        match (own.is_empty(), other.is_empty()) {
            (false, false) => scored.push(own),
            (false, true) if fill.is_some() => scored.push(own),
            (true, false) => filled += f64::from(u8::from(fill.is_some())),
            (false | true, true) => {}
        }
    }
    let fewest = scored.iter().map(Vec::len).min().unwrap_or(0);
    let value = |at: usize| {
        let sum: f64 = scored.iter().map(|scores| scores[at]).sum();
        (sum + filled * fill.unwrap_or(0.0)) / (scored.len() as f64 + filled)
    };
    (0..fewest).map(value).collect()
}

fn changed(pairs: &[Pair<'_>]) -> Vec<ChangedProbe> {
    let mut found = Vec::new();
    for (session, old, new) in pairs {
        for (id, probe) in &old.probes {
            let Some(other) = new.and_then(|new| new.probes.get(id)) else {
                continue;
            };
            for metric in OF_PROBES {
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
                    text: None,
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
    let of_pair = |(session, old, new): &Pair<'_>| {
        let new = new.iter();
        let rules = new.flat_map(|new| new.rejected.difference(&old.rejected));
        let broken = rules.map(|rule| BrokenRule {
            session: (*session).to_owned(),
            rule: rule.clone(),
        });
        broken.collect::<Vec<_>>()
    };
    pairs.iter().flat_map(of_pair).collect()
}

/// Sessions that die in a larger share of repeats than under the baseline.
fn deaths(pairs: &[Pair<'_>]) -> Vec<NewDeath> {
    let of = |(session, old, new): &Pair<'_>| {
        let new = (*new)?;
        let (before, after) = ((old.dead, old.repeats()), (new.dead, new.repeats()));
        // As fractions, so that other numbers of repeats compare.
        (after.0 * before.1 > before.0 * after.1).then(|| NewDeath {
            session: (*session).to_owned(),
            baseline: before,
            candidate: after,
            at: new.died_at.clone(),
        })
    };
    pairs.iter().filter_map(of).collect()
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
    }
    for metric in OF_PROBES {
        let mut of_metric = MetricCoverage {
            metric,
            ..MetricCoverage::default()
        };
        let is_scored = |probe: &ProbeSample| !probe.scores(metric).is_empty();
        for (_, old, new) in pairs {
            for (id, _) in old.probes.iter().filter(|(_, probe)| is_scored(probe)) {
                let other = new.and_then(|new| new.probes.get(id));
                of_metric.items += 1;
                of_metric.paired_items += usize::from(other.is_some_and(is_scored));
            }
        }
        coverage.items += of_metric.items;
        coverage.paired_items += of_metric.paired_items;
        let scored = (of_metric.items > 0).then_some(of_metric);
        coverage.by_metric.extend(scored);
    }
    coverage
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight sessions of three repeats, each with its own level.
    fn sample(shift: f64) -> Sample {
        let session = |at: u32| {
            let value = |repeat: u32| f64::from(at % 5 + repeat) / 10.0 + shift * f64::from(at);
            let values: Vec<f64> = (0..3).map(value).collect();
            let probe = ProbeSample {
                kind: "recall".to_owned(),
                importance: Importance::High,
                survival: values.clone(),
                accuracy: Vec::new(),
                answers: Vec::new(),
                lost_at: None,
            };
            let amounts = values.iter().map(|value| 1_000.0 + value);
            SessionSample {
                metrics: BTreeMap::from([
                    ("action_support".to_owned(), values.clone()),
                    ("tokens".to_owned(), amounts.collect()),
                ]),
                probes: BTreeMap::from([("p@50".to_owned(), probe)]),
                ..SessionSample::default()
            }
        };
        Sample {
            sessions: (0..8).map(|at| (format!("s{at}"), session(at))).collect(),
            ..Sample::default()
        }
    }

    /// With copies of three sessions, each a side chain of the session that it copies.
    fn with_copies(mut sample: Sample) -> Sample {
        for (main, copy) in [("s1", "s1-side-1"), ("s1", "s1-side-2"), ("s6", "a")] {
            let mut session = sample.sessions[main].clone();
            session.cluster = Some(main.to_owned());
            sample.sessions.insert(copy.to_owned(), session);
        }
        sample
    }

    #[test]
    fn a_session_copied_as_its_own_side_chain_changes_no_difference_and_no_interval() {
        let close = |left: Option<f64>, right: Option<f64>, what: &str| {
            let (left, right) = (left.unwrap_or(f64::NAN), right.unwrap_or(f64::NAN));
            let both_unknown = left.is_nan() && right.is_nan();
            assert!(both_unknown || (left - right).abs() < 1e-9, "{what}");
        };
        for (target, chance) in [
            (Target::Population, Chance::Everywhere),
            (Target::Suite, Chance::Everywhere),
        ] {
            let settings = Settings {
                target,
                chance,
                seed: 1,
            };
            let of = |change: fn(Sample) -> Sample| {
                compare(&change(sample(0.0)), &change(sample(0.01)), settings)
            };
            let (alone, copied) = (of(|sample| sample), of(with_copies));
            assert_eq!(alone.metrics.len(), 3);
            for (one, two) in alone.metrics.iter().zip(&copied.metrics) {
                let what = one.metric;
                close(Some(one.baseline), Some(two.baseline), what);
                close(Some(one.candidate), Some(two.candidate), what);
                let (left, right) = (one.paired.by_session, two.paired.by_session);
                assert_eq!((left.n.sessions, right.n.sessions), (8, 8), "{what}");
                close(Some(left.point_estimate), Some(right.point_estimate), what);
                close(left.standard_error, right.standard_error, what);
                let p = |it: &MetricDifference| it.paired.sign_flip.map(|test| test.p);
                close(p(one), p(two), what);
                close(one.suite.map(|it| it.p), two.suite.map(|it| it.p), what);
                assert_eq!(one.suite.is_some(), target == Target::Suite, "{what}");
                let lower = |it: &MetricDifference| it.bounds.map(|bounds| bounds.interval_lower);
                assert!(one.bounds.is_some(), "{what}");
                close(lower(one), lower(two), what);
                let geometric = |it: &MetricDifference| it.ratio.map(|it| it.geometric);
                let error = |it| geometric(it).and_then(|it| it.standard_error);
                close(error(one), error(two), what);
            }
        }
    }
}
