//! Sweeps: many settings of one strategy on the same sessions, and which of them is worth having.
//!
//! Nothing is tested over the grid: with 64 points something always looks better by chance. One point is
//! chosen on one part of the sessions, by the margin rule (see [`judge`]), and confirmed on the other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::judge::mean;
use super::{Axis, Sample, SessionSample};
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
    /// The totals of a cluster on an axis that is saved, under the setting and under full history; `None` where
    /// some session has none.
    fn totals(&self, cluster: &[&String], cost: Axis) -> Option<(f64, f64)> {
        let sessions = cluster
            .iter()
            .map(|id| self.sample.sessions.get(*id)?.against_full(cost));
        let mut sum = (0.0, 0.0);
        for totals in sessions {
            let (own, full) = totals?;
            sum = (sum.0 + own, sum.1 + full);
        }
        Some(sum)
    }

    /// The mean of an axis that is kept over the sessions of a cluster; `None` where none has it.
    fn kept(&self, cluster: &[&String], quality: Axis) -> Option<f64> {
        let values = cluster
            .iter()
            .filter_map(|id| value(&self.sample, id, quality));
        mean(&values.collect::<Vec<_>>())
    }

    /// What it saves and keeps, cluster by cluster, such that the mean of what is saved is that of totals; not a
    /// number where it is not known, and of a setting that is broken on any session.
    fn objectives(&self, clusters: &[Vec<&String>], [cost, quality]: [Axis; 2]) -> Vec<Point> {
        let totals = clusters.iter().map(|own| self.totals(own, cost));
        let totals: Vec<Option<(f64, f64)>> = totals.collect();
        let full: f64 = totals.iter().flatten().map(|(_, full)| full).sum();
        let is_whole = broken(&self.sample).is_none();
        let weight = clusters.len() as f64 / full;
        let points = totals.iter().zip(clusters).map(|(totals, own)| {
            let saved = totals.map(|(own, full)| (full - own) * weight);
            [saved, self.kept(own, quality)].map(|it| it.filter(|_| is_whole).unwrap_or(f64::NAN))
        });
        points.collect()
    }

    /// The share of the total that it saves against full history.
    fn saved(&self, clusters: &[Vec<&String>], cost: Axis) -> Option<Estimate> {
        let totals = clusters.iter().filter_map(|own| self.totals(own, cost));
        let totals: Vec<(f64, f64)> = totals.collect();
        let ratio = Estimate::of_ratio(&totals, totals.len())?;
        let saved = 1.0 - ratio.point_estimate;
        Some(Estimate::with_error(saved, ratio.standard_error, ratio.n))
    }
}

/// The results of a sweep.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Sweep {
    /// Always `proctor-sweep`.
    pub format: &'static str,
    /// Version of this format: 1, the first.
    pub version: u32,
    /// What is saved: the bill, or tokens.
    pub cost: Axis,
    /// What is kept: facts, answers or actions.
    pub quality: Axis,
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

/// The value of an axis on a session: of its probes, or its own; of what is saved the share.
fn value(sample: &Sample, session: &str, axis: Axis) -> Option<f64> {
    let session = sample.sessions.get(session)?;
    match axis {
        Axis::Facts | Axis::Answers => {
            let scores = session
                .probes
                .values()
                .filter_map(|probe| mean(probe.scores(axis)));
            mean(&scores.collect::<Vec<_>>())
        }
        Axis::Bill | Axis::Tokens => {
            let (own, full) = session.against_full(axis)?;
            (full > 0.0).then(|| 1.0 - own / full)
        }
        _ => mean(session.metrics.get(axis.name())?),
    }
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
pub fn measured(tried: &[Trial], sessions: &[String], axes: &[Axis]) -> Vec<Axis> {
    let is_whole = |point: &&Trial| broken(&point.sample).is_none();
    let all_broken = !tried.iter().any(|point| is_whole(&point));
    let has = |axis: Axis| {
        let mut used = tried.iter().filter(|it| all_broken || is_whole(it));
        let is_known = |point: &Trial, session| value(&point.sample, session, axis).is_some();
        !tried.is_empty() && used.all(|point| sessions.iter().any(|it| is_known(point, it)))
    };
    let axes = axes.iter().copied();
    axes.filter(|axis| has(*axis)).collect()
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
    cost: Axis,
    quality: Objective,
) -> Sweep {
    // A session that some setting has no value for would favour the others. A metric that was measured
    // nowhere leaves none out.
    let known = measured(tried, &tune, &[cost, quality.axis]);
    let complete = |session: &&String| {
        tried.iter().all(|point| {
            let is_known = |axis: &Axis| value(&point.sample, session, *axis).is_some();
            broken(&point.sample).is_some() || known.iter().all(is_known)
        })
    };
    let (used, left_out): (Vec<&String>, Vec<&String>) = tune.iter().partition(complete);
    let clusters = in_clusters(tried, &used);
    let kept = |point: &Trial| {
        let values = clusters
            .iter()
            .filter_map(|own| point.kept(own, quality.axis));
        Estimate::of_sessions(&values.collect::<Vec<_>>(), used.len())
    };
    let points = tried.iter().map(|point| SweepPoint {
        values: point.values.clone(),
        cost: point.saved(&clusters, cost),
        quality: kept(point),
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
        let axes = [cost, quality.axis];
        let of_clusters = own.iter().map(|at| tried[*at].objectives(&clusters, axes));
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
        cost,
        quality: quality.axis,
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
pub fn better_half(tried: &[Trial], sessions: &[String], cost: Axis, quality: Axis) -> Vec<usize> {
    let each: Vec<Vec<&String>> = sessions.iter().map(|session| vec![session]).collect();
    let mean = |point: &Trial| pareto::mean(&point.objectives(&each, [cost, quality]));
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
