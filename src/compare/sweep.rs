//! Sweeps: many settings of one strategy on the same sessions, and which of them is worth having.
//!
//! Nothing is tested over the grid: with 64 points something always looks better by chance. One point is
//! chosen on one part of the sessions, by the margin rule (see [`judge`]), and confirmed on the other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::difference::mean;
use super::{Sample, SessionSample};
use crate::record::schema_of;
use crate::stats::Estimate;
use crate::stats::pareto::{self, Point};

mod choice;
pub(crate) mod pairs;

pub use choice::{Choice, Confirmation, NotShown, Objective, Standing};
pub use pairs::{KnobPair, PairCell};

/// One setting, before it is judged.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Each knob with its value, in the order of the command line; empty for the default.
    pub values: Vec<(String, String)>,
    /// Its scores on the tune sessions.
    pub sample: Sample,
}

impl Trial {
    /// The values of two metrics on a session; not a number where they are not known, and of a setting
    /// that is broken on any session.
    fn objectives(&self, session: &str, metrics: [&str; 2]) -> Point {
        let is_whole = broken(&self.sample).is_none();
        metrics.map(|metric| {
            let value = value(&self.sample, session, metric);
            value.filter(|_| is_whole).unwrap_or(f64::NAN)
        })
    }
}

/// The results of a sweep.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Sweep {
    /// Always `proctor-sweep`.
    pub format: &'static str,
    /// Version of this format: 1, the first.
    pub version: u32,
    /// The metric that is saved.
    pub cost: String,
    /// The metric that is kept.
    pub quality: String,
    /// By how much the kept metric may be worse: δ of the margin rule and of the confirmation.
    pub margin: f64,
    /// Why this metric is kept, where nobody named it.
    pub quality_reason: Option<String>,
    /// Knobs that matter together with a swept one and were not swept, each with the flag that adds it.
    pub hints: Vec<String>,
    /// Sessions on which settings were chosen.
    pub tune: Vec<String>,
    /// Sessions on which the choice is confirmed.
    pub confirm: Vec<String>,
    /// The settings, the cheapest first.
    pub points: Vec<SweepPoint>,
    /// The effect of each knob.
    pub sensitivity: Vec<Sensitivity>,
    /// The effect of each pair of knobs: heat maps as numbers.
    pub pairs: Vec<KnobPair>,
    /// The choices, one per window: a window is not a setting of a strategy, so none is preferred.
    pub choices: Vec<Choice>,
    /// Sessions of `tune` that count for none, because some setting was not measured on them.
    pub left_out: Vec<String>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct SweepPoint {
    /// Each knob with its value; empty for the default.
    pub values: Vec<(String, String)>,
    /// The metric that is saved; `None` where no session measured it.
    pub cost: Option<Estimate>,
    /// The metric that is kept.
    pub quality: Option<Estimate>,
    /// Why it takes part in no ranking.
    pub broken: Option<String>,
    /// Whether nothing in the same window beats it in both.
    pub on_front: bool,
    /// Share of jackknife rounds, one session with its side chains left out in each, in which it is on the front; `None`
    /// below two sessions.
    pub front_share: Option<f64>,
    /// Its place in the choice; `None` if it was not chosen.
    pub standing: Option<Standing>,
}

/// A value of a knob, with mean cost and mean quality.
pub type ValueMeans = (String, Option<f64>, Option<f64>);

/// The effect of one knob, averaged over the others.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Sensitivity {
    /// The knob.
    pub knob: String,
    /// Mean cost and quality over all settings with this value, in the order of the values; `None` where
    /// it was not measured.
    pub by_value: Vec<ValueMeans>,
    /// Largest minus smallest of these costs; `None` where fewer than two are known.
    pub cost_range: Option<f64>,
    /// Largest minus smallest of these qualities, likewise.
    pub quality_range: Option<f64>,
}

/// A JSON Schema (draft 2020-12) of a sweep as JSON.
pub fn schema() -> serde_json::Value {
    schema_of::<Sweep>()
}

impl SweepPoint {
    /// `keep_last=5, every=10`; `default` for the default.
    pub fn label(&self) -> String {
        label(&self.values)
    }
}

/// Knobs with their values, in words.
pub(crate) fn label(values: &[(String, String)]) -> String {
    if values.is_empty() {
        return "default".to_owned();
    }
    let items = values.iter().map(|(knob, value)| format!("{knob}={value}"));
    items.collect::<Vec<_>>().join(", ")
}

/// The part of a setting that is the window's.
pub fn window_of(values: &[(String, String)]) -> Vec<(String, String)> {
    let of_window = values.iter().filter(|(knob, _)| is_of_window(knob));
    of_window.cloned().collect()
}

/// Whether a knob is the window's.
pub(crate) fn is_of_window(knob: &str) -> bool {
    knob.starts_with("window.")
}

/// The value of a metric on a session: of its probes, or its own.
fn value(sample: &Sample, session: &str, metric: &str) -> Option<f64> {
    let session = sample.sessions.get(session)?;
    if let Some(values) = session.metrics.get(metric) {
        return mean(values);
    }
    let probes = session.probes.values();
    let scores = probes.filter_map(|probe| mean(probe.scores(metric)));
    mean(&scores.collect::<Vec<_>>())
}

/// These sessions, cluster by cluster: side chains count with their main session.
fn in_clusters<'a>(tried: &[Trial], sessions: &[&'a String]) -> Vec<Vec<&'a String>> {
    let mut clusters: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for session in sessions {
        let known = tried.iter().find_map(|it| it.sample.sessions.get(*session));
        let cluster = known.and_then(|known| known.cluster.as_deref());
        let own = clusters.entry(cluster.unwrap_or(session)).or_default();
        own.push(session);
    }
    clusters.into_values().collect()
}

/// Why a sample takes part in no ranking: sessions that died, prompts that would be rejected.
pub fn broken(sample: &Sample) -> Option<String> {
    let sessions = || sample.sessions.values();
    let all = sample.sessions.len();
    let count = |is_so: fn(&SessionSample) -> bool| sessions().filter(|it| is_so(it)).count();
    let dead = count(|session| session.dead > session.failed);
    let failed = count(|session| session.failed > 0);
    let rejected = count(|session| !session.rejected.is_empty());
    let calls = sessions().filter_map(|session| {
        let call = session.died_at.as_deref()?.strip_prefix("call ")?;
        call.parse::<usize>().ok()
    });
    let first = calls.min().map(|call| format!(", first at call {call}"));
    let first = first.unwrap_or_default();
    Some(match (dead, failed, rejected) {
        (0, 0, 0) => return None,
        (0, 0, _) => format!("prompts would be rejected in {rejected} of {all} sessions"),
        (0, _, _) => format!("the strategy failed in {failed} of {all} sessions{first}"),
        (_, _, _) => format!("out of window in {dead} of {all} sessions{first}"),
    })
}

/// Those of the metrics that every setting was measured on, on some session; broken settings count only where
/// all are broken.
pub fn measured<'m>(tried: &[Trial], sessions: &[String], metrics: &[&'m str]) -> Vec<&'m str> {
    let is_whole = |point: &&Trial| broken(&point.sample).is_none();
    let all_broken = !tried.iter().any(|point| is_whole(&point));
    let has = |metric: &str| {
        let mut used = tried.iter().filter(|it| all_broken || is_whole(it));
        let is_known = |point: &Trial, session| value(&point.sample, session, metric).is_some();
        !tried.is_empty() && used.all(|point| sessions.iter().any(|it| is_known(point, it)))
    };
    let metrics = metrics.iter().copied();
    metrics.filter(|metric| has(metric)).collect()
}

/// Judges the settings on the sessions in `tune`, each window by itself. Of each window the default is the
/// one without a knob of the strategy.
///
/// In each window one setting is chosen by the margin rule: the cheapest of those that keep no less than the
/// best kept, give or take the margin of `quality`, by the paired mean difference over the sessions. A choice
/// that costs more than no compaction is none.
pub fn judge(
    tried: &[Trial],
    tune: Vec<String>,
    confirm: Vec<String>,
    cost: &str,
    quality: Objective<'_>,
) -> Sweep {
    // A session that some setting has no value for would favour the others. A metric that was measured
    // nowhere leaves none out.
    let known = measured(tried, &tune, &[cost, quality.metric]);
    let complete = |session: &&String| {
        tried.iter().all(|point| {
            let is_known = |metric: &&str| value(&point.sample, session, metric).is_some();
            broken(&point.sample).is_some() || known.iter().all(is_known)
        })
    };
    let (used, left_out): (Vec<&String>, Vec<&String>) = tune.iter().partition(complete);
    let clusters = in_clusters(tried, &used);
    let estimate = |point: &Trial, metric: &str| {
        let of = |session: &&String| value(&point.sample, session, metric);
        let of_cluster = |own: &Vec<_>| mean(&own.iter().filter_map(of).collect::<Vec<_>>());
        let values: Vec<f64> = clusters.iter().filter_map(of_cluster).collect();
        Estimate::of_sessions(&values, used.iter().filter_map(of).count())
    };
    let points = tried.iter().map(|point| SweepPoint {
        values: point.values.clone(),
        cost: estimate(point, cost),
        quality: estimate(point, quality.metric),
        broken: broken(&point.sample),
        on_front: false,
        front_share: None,
        standing: None,
    });
    let mut points: Vec<SweepPoint> = points.collect();
    let windows = distinct(tried.iter().map(|point| window_of(&point.values)));
    let mut choices = Vec::new();
    for window in windows {
        let is_own = |at: &usize| window_of(&tried[*at].values) == window;
        let own: Vec<usize> = (0..tried.len()).filter(is_own).collect();
        let of_clusters = own.iter().map(|at| {
            let metrics = [cost, quality.metric];
            let of_point = |session: &&String| tried[*at].objectives(session, metrics);
            let of_cluster = |own: &Vec<_>| {
                let points: Vec<Point> = own.iter().map(of_point).collect();
                pareto::mean(&points)
            };
            clusters.iter().map(of_cluster).collect()
        });
        let of_clusters: Vec<Vec<Point>> = of_clusters.collect();
        let means: Vec<Point> = of_clusters.iter().map(|it| pareto::mean(it)).collect();
        let front = pareto::front(&means);
        let shares = pareto::jackknife(&of_clusters);
        for (place, at) in own.iter().enumerate() {
            points[*at].on_front = front[place];
            points[*at].front_share = shares.as_ref().map(|shares| shares[place]);
        }
        // A window in which one setting alone was tried offers no choice.
        if own.len() > 1 {
            let own_points: Vec<&SweepPoint> = own.iter().map(|at| &points[*at]).collect();
            let choice = Choice::of(&own_points, &means, window, cost, quality);
            let is_chosen = |at: &&usize| Some(&points[**at].values) == choice.values.as_ref();
            if let Some(at) = own.iter().find(is_chosen) {
                points[*at].standing = choice.standing;
            }
            choices.push(choice);
        }
    }
    let left_out = left_out.into_iter().cloned().collect();
    let sensitivity = sensitivity(&points);
    let pairs = pairs::pairs(&points);
    let order = |point: &SweepPoint| {
        let cost = point.cost.map(|cost| cost.point_estimate);
        cost.unwrap_or(f64::NEG_INFINITY)
    };
    points.sort_by(|left, right| order(right).total_cmp(&order(left)));
    Sweep {
        format: "proctor-sweep",
        version: 1,
        cost: cost.to_owned(),
        quality: quality.metric.to_owned(),
        margin: quality.margin,
        quality_reason: None,
        hints: Vec::new(),
        tune,
        confirm,
        points,
        sensitivity,
        pairs,
        choices,
        left_out,
    }
}

fn sensitivity(points: &[SweepPoint]) -> Vec<Sensitivity> {
    let of_knob = |knob: &String| {
        let whole = || points.iter().filter(|point| point.broken.is_none());
        let values = distinct(whole().filter_map(|point| pairs::value(point, knob)));
        let by_value = values.into_iter().filter_map(|value| {
            let has = |point: &&SweepPoint| pairs::value(point, knob) == Some(value);
            let cell = PairCell::of(whole().filter(has))?;
            Some((value.clone(), cell.cost, cell.quality))
        });
        let by_value: Vec<ValueMeans> = by_value.collect();
        let range = |pick: fn(&ValueMeans) -> Option<f64>| {
            let values = by_value.iter().filter_map(pick);
            let high = values.clone().fold(f64::NEG_INFINITY, f64::max);
            let low = values.clone().fold(f64::INFINITY, f64::min);
            (values.count() > 1).then_some(high - low)
        };
        Sensitivity {
            knob: knob.clone(),
            cost_range: range(|value| value.1),
            quality_range: range(|value| value.2),
            by_value,
        }
    };
    knobs(points).into_iter().map(of_knob).collect()
}

/// The knobs that are swept, in the order of the command line.
fn knobs(points: &[SweepPoint]) -> Vec<&String> {
    let values = points.iter().flat_map(|point| &point.values);
    distinct(values.map(|(knob, _)| knob))
}

/// Each item once, in the order in which it first comes.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

/// Which settings go on, by non-dominated rank, then by distance above the line of equal trade: the
/// better half, rounded up.
pub fn better_half(tried: &[Trial], sessions: &[String], cost: &str, quality: &str) -> Vec<usize> {
    let mean = |point: &Trial| {
        let of_session = |session: &String| point.objectives(session, [cost, quality]);
        pareto::mean(&sessions.iter().map(of_session).collect::<Vec<_>>())
    };
    let mut means: Vec<Point> = tried.iter().map(mean).collect();
    let whole = means.clone();
    let keep = tried.len().div_ceil(2);
    let mut kept = Vec::new();
    while kept.len() < keep {
        let front = pareto::front(&means);
        let mut layer: Vec<usize> = (0..tried.len()).filter(|at| front[*at]).collect();
        if layer.is_empty() {
            // Only broken ones are left.
            break;
        }
        layer.sort_by(|l, r| {
            let sum = |at: usize| whole[at].iter().sum::<f64>();
            sum(*r).total_cmp(&sum(*l)).then(l.cmp(r))
        });
        for at in layer {
            means[at] = [f64::NAN; 2];
            if kept.len() < keep {
                kept.push(at);
            }
        }
    }
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests;
