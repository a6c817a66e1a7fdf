//! Sweeps: many settings of one strategy on the same sessions, and which of them is worth having.
//!
//! Nothing is tested over the grid: with 64 points something always looks better by chance. Points are
//! chosen on one part of the sessions, and the choice is tried on the other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::difference::mean;
use super::{Comparison, Sample};
use crate::record::schema_of;
use crate::stats::Estimate;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stats::pareto::{self, Point};

pub(crate) mod pairs;

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
    /// Sessions on which settings were chosen.
    pub tune: Vec<String>,
    /// Sessions on which the choice was tried.
    pub confirm: Vec<String>,
    /// The settings, the cheapest first.
    pub points: Vec<SweepPoint>,
    /// The effect of each knob.
    pub sensitivity: Vec<Sensitivity>,
    /// The effect of each pair of knobs: heat maps as numbers.
    pub pairs: Vec<KnobPair>,
    /// The recommendations, one per window: a window is not a setting of a strategy, so none is
    /// preferred. Empty where nothing saves anything.
    pub recommendations: Vec<Recommendation>,
    /// Sessions of `tune` that count for none, because some setting was not measured on them.
    pub left_out: Vec<String>,
}

/// The setting that is recommended in one window.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Recommendation {
    /// The knobs of the window, where windows are swept.
    pub window: Vec<(String, String)>,
    /// All its knobs, those of the window included: the `values` of its point.
    pub values: Vec<(String, String)>,
    /// Whether it is the default itself.
    pub is_default: bool,
    /// How it did on sessions it was not chosen on; `None` for the default, or without such
    /// sessions.
    pub confirmation: Option<Confirmation>,
}

impl Recommendation {
    /// Its setting in words, as [`SweepPoint::label`].
    pub fn label(&self) -> String {
        label(&self.values)
    }
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
    /// Whether it is recommended: the knee of that part of the front that saves anything.
    pub recommended: bool,
}

/// The effect of one knob, averaged over the others.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Sensitivity {
    /// The knob.
    pub knob: String,
    /// Mean cost and quality over all settings with this value, in the order of the values.
    pub by_value: Vec<(String, f64, f64)>,
    /// Largest minus smallest of these costs.
    pub cost_range: f64,
    /// Largest minus smallest of these qualities.
    pub quality_range: f64,
}

/// The recommended setting against the default, on sessions it was not chosen on.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Confirmation {
    /// Difference in cost, each session weighing the same.
    pub cost: Option<Estimate>,
    /// Difference in quality.
    pub quality: Option<Estimate>,
    /// Whether it is better in one beyond chance, and not worse in the other by more than the margin.
    pub beats_default: bool,
    /// The same in words.
    pub says: String,
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

fn label(values: &[(String, String)]) -> String {
    if values.is_empty() {
        return "default".to_owned();
    }
    let items = values.iter().map(|(knob, value)| format!("{knob}={value}"));
    items.collect::<Vec<_>>().join(", ")
}

/// The part of a setting that is the window's.
pub fn window_of(values: &[(String, String)]) -> Vec<(String, String)> {
    let of_window = values
        .iter()
        .filter(|(knob, _)| knob.starts_with("window."));
    of_window.cloned().collect()
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
    let dead: usize = sessions().map(|session| session.dead).sum();
    let rejected = sessions().filter(|it| !it.rejected.is_empty()).count();
    match (dead, rejected) {
        (0, 0) => None,
        (0, 1) => Some("a prompt would be rejected in 1 session".to_owned()),
        (0, _) => Some(format!("a prompt would be rejected in {rejected} sessions")),
        (1, _) => Some("1 session died".to_owned()),
        (_, _) => Some(format!("{dead} sessions died")),
    }
}

/// Judges the settings on the sessions in `tune`, each window by itself. Of each window the default is the
/// one without a knob of the strategy.
pub fn judge(
    tried: &[Trial],
    tune: Vec<String>,
    confirm: Vec<String>,
    cost: &str,
    quality: &str,
) -> Sweep {
    // A session that some setting has no value for would favour the others.
    let complete = |session: &&String| {
        tried.iter().all(|point| {
            let is_known = |metric| value(&point.sample, session, metric).is_some();
            broken(&point.sample).is_some() || is_known(cost) && is_known(quality)
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
    let mut points: Vec<SweepPoint> = tried
        .iter()
        .map(|point| SweepPoint {
            values: point.values.clone(),
            cost: estimate(point, cost),
            quality: estimate(point, quality),
            broken: broken(&point.sample),
            on_front: false,
            front_share: None,
            recommended: false,
        })
        .collect();
    let windows = distinct(tried.iter().map(|point| window_of(&point.values)));
    let mut recommendations = Vec::new();
    for window in windows {
        let own: Vec<usize> = (0..tried.len())
            .filter(|at| window_of(&tried[*at].values) == window)
            .collect();
        let of_clusters: Vec<Vec<Point>> = own
            .iter()
            .map(|at| {
                let of_point = |session: &&String| tried[*at].objectives(session, [cost, quality]);
                let means = |own: &Vec<&String>| {
                    pareto::mean(&own.iter().map(of_point).collect::<Vec<_>>())
                };
                clusters.iter().map(means).collect()
            })
            .collect();
        let means: Vec<Point> = of_clusters.iter().map(|it| pareto::mean(it)).collect();
        let front = pareto::front(&means);
        let shares = pareto::jackknife(&of_clusters);
        // A setting that costs more than no compaction is not recommended, however much it keeps.
        let saving: Vec<bool> = means
            .iter()
            .zip(&front)
            .map(|(mean, on_front)| *on_front && mean[0] > 0.0)
            .collect();
        let knee = pareto::knee(&means, &saving);
        for (place, at) in own.iter().enumerate() {
            points[*at].on_front = front[place];
            points[*at].front_share = shares.as_ref().map(|shares| shares[place]);
            // A window in which one setting alone was tried offers no choice.
            points[*at].recommended = knee == Some(place) && own.len() > 1;
        }
        if let Some(knee) = knee.filter(|_| own.len() > 1) {
            recommendations.push(Recommendation {
                values: tried[own[knee]].values.clone(),
                is_default: tried[own[knee]].values == window,
                window,
                confirmation: None,
            });
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
        quality: quality.to_owned(),
        tune,
        confirm,
        points,
        sensitivity,
        pairs,
        recommendations,
        left_out,
    }
}

fn sensitivity(points: &[SweepPoint]) -> Vec<Sensitivity> {
    let of_knob = |knob: &String| {
        let whole = || points.iter().filter(|point| point.broken.is_none());
        let values = distinct(whole().filter_map(|point| pairs::value(point, knob)));
        let by_value: Vec<(String, f64, f64)> = values
            .into_iter()
            .filter_map(|value| {
                let has = |point: &&SweepPoint| pairs::value(point, knob) == Some(value);
                let cell = PairCell::of(whole().filter(has))?;
                Some((value.clone(), cell.cost?, cell.quality?))
            })
            .collect();
        let range = |pick: fn(&(String, f64, f64)) -> f64| {
            let values = by_value.iter().map(pick);
            let high = values.clone().fold(f64::NEG_INFINITY, f64::max);
            let low = values.fold(f64::INFINITY, f64::min);
            if high >= low { high - low } else { 0.0 }
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
    distinct(
        points
            .iter()
            .flat_map(|point| &point.values)
            .map(|(knob, _)| knob),
    )
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
        let mut layer: Vec<usize> = pareto::front(&means)
            .into_iter()
            .enumerate()
            .filter_map(|(at, on)| on.then_some(at))
            .collect();
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

/// A metric that is saved or kept, and by how much it may be worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective<'a> {
    /// The metric.
    pub metric: &'a str,
    /// δ ≥ 0.
    pub margin: f64,
}

impl Confirmation {
    /// Reads the comparison of the recommended setting (candidate) with the default (baseline), about a
    /// population. `broken` says why the setting could not be used on these sessions.
    pub fn of(
        comparison: &Comparison,
        cost: Objective<'_>,
        quality: Objective<'_>,
        broken: Option<String>,
    ) -> Self {
        let estimate = |of: Objective<'_>| {
            let found = comparison.metric(of.metric);
            found.map(|found| found.paired.by_session)
        };
        let sessions = estimate(quality).map_or(0, |found| found.n.sessions);
        let bounds = |of: Objective<'_>| comparison.metric(of.metric)?.bounds;
        let better = |of| bounds(of).is_some_and(|bounds| bounds.interval_lower > 0.0);
        // That no loss was shown does not show that there is none.
        let not_worse =
            |of: Objective<'_>| bounds(of).is_some_and(|bounds| bounds.lower >= -of.margin);
        let place = format!("on {sessions} sessions it was not chosen on");
        let pairs = [(cost, quality), (quality, cost)];
        let win = pairs
            .into_iter()
            .find(|(one, other)| better(*one) && not_worse(*other));
        let gain = pairs.into_iter().find(|(one, _)| better(*one));
        let mut beats_default = false;
        let says = if let Some(why) = broken {
            format!("it does not beat the default {place}: there {why}")
        } else if sessions < FEWEST_SESSIONS {
            format!(
                "sessions to confirm on: {sessions}, too few to say whether it beats the default; {FEWEST_SESSIONS} are needed"
            )
        } else if let Some((gain, held)) = win {
            beats_default = true;
            format!(
                "it beats the default {place}: better in {}, and not worse in {} by more than {:.1} pts",
                gain.metric,
                held.metric,
                held.margin * 100.0
            )
        } else if let Some((gain, lost)) = gain {
            format!(
                "it does not beat the default {place}: better in {}, but {} may be worse by more than {:.1} pts",
                gain.metric,
                lost.metric,
                lost.margin * 100.0
            )
        } else {
            format!("it does not beat the default {place}: better in neither, beyond chance")
        };
        Self {
            cost: estimate(cost),
            quality: estimate(quality),
            beats_default,
            says,
        }
    }
}

#[cfg(test)]
mod tests;
