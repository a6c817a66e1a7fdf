//! Sweeps: many settings of one strategy on the same sessions, and which of them is worth having.
//!
//! Nothing is tested over the grid: with 64 points something always looks better by chance. One point is
//! chosen on one part of the sessions, by the margin rule (see [`judge`]), and confirmed on the other.

use schemars::JsonSchema;
use serde::Serialize;

use super::Axis;
use crate::metric::cost::SimulatedCost;
use crate::record::schema_of;
use crate::record::words::Worth;
use crate::stats::Estimate;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stats::pareto::{self, Point};

mod beside;
mod choice;
pub(crate) mod pairs;
mod trial;

pub use beside::{Neighbours, Shape};
pub use choice::{Choice, Confirmation, NotShown, Objective, Standing, Trade};
pub use pairs::{KnobPair, PairCell};
pub use trial::{Trial, measured};

use choice::Candidates;

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
    /// By how much what is saved may differ, as a share of full history's, and still be the same.
    pub cost_margin: f64,
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
    /// The choice.
    pub choice: Choice,
    /// Sessions of `tune` that count for none, because some setting was not measured on them.
    pub left_out: Vec<String>,
    /// The repairs of importers in the sessions, in words; `None` where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repairs: Option<String>,
    /// How far simulated costs are from the bill; `None` where no session says what was billed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated_cost: Option<SimulatedCost>,
    /// How many sessions of `tune` are independent: side chains count with their main session.
    pub independent_tune: usize,
    /// The same of `confirm`.
    pub independent_confirm: usize,
    /// Sessions of `tune` in which full history fits the window: doing nothing is a choice there.
    pub full_fits: usize,
    /// How near the strategy is to the product that it is called after, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worth: Option<Worth>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct SweepPoint {
    /// Each knob with its value; empty for the default.
    pub values: Vec<(String, String)>,
    /// Whether it is the default, or the default written out.
    pub is_default: bool,
    /// The metric that is saved; `None` where no session measured it.
    pub cost: Option<Estimate>,
    /// The metric that is kept.
    pub quality: Option<Estimate>,
    /// Why it takes part in no ranking.
    pub broken: Option<String>,
    /// Whether nothing beats it in both.
    pub on_front: bool,
    /// Its place in the choice; `None` if it was not chosen.
    pub standing: Option<Standing>,
}

/// Numbers that differ by less are equal: a rounding error must not choose.
const EQUAL: f64 = 1e-12;

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
    /// Whether all its values give the same numbers, whatever the other knobs are.
    pub does_nothing: bool,
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

    /// Whether both numbers are those of the other, or both are broken for the same reason.
    pub(crate) fn has_numbers_of(&self, other: &Self) -> bool {
        let numbers = [(self.cost, other.cost), (self.quality, other.quality)];
        self.broken == other.broken
            && numbers.iter().all(|(own, other)| match (own, other) {
                (Some(own), Some(other)) => {
                    (own.point_estimate - other.point_estimate).abs() < EQUAL
                }
                (own, other) => own.is_none() && other.is_none(),
            })
    }
}

/// Knobs with their values, in words.
pub(crate) fn label(values: &[(String, String)]) -> String {
    if values.is_empty() {
        return "default".to_owned();
    }
    values.iter().map(|(knob, value)| format!("{knob}={value}")).collect::<Vec<_>>().join(", ")
}

/// The same with knobs named by their last word, where no other knob of the setting ends in it: `keep_last=5`.
pub(crate) fn short_label(values: &[(String, String)]) -> String {
    let short = values.iter().map(|(knob, value)| {
        let mut same = values.iter().filter(|(other, _)| last_word(other) == last_word(knob));
        let knob = if same.nth(1).is_none() { last_word(knob) } else { knob };
        (knob.to_owned(), value.clone())
    });
    label(&short.collect::<Vec<_>>())
}

fn last_word(knob: &str) -> &str {
    knob.rsplit('.').next().unwrap_or(knob)
}

/// Judges the settings on the sessions in `tune`. The default is the one without a knob.
///
/// One setting is chosen by the margin rule: the cheapest of those that keep no less than the best kept, give or
/// take the margin of `quality`, by the paired mean difference over the sessions. A choice that costs more than no
/// compaction, where full history fits the window, is none.
pub fn judge(
    tried: &[Trial],
    tune: Vec<String>,
    confirm: Vec<String>,
    [saved, quality]: [Objective; 2],
) -> Sweep {
    let cost = saved.axis;
    // A session that some setting has no value for would favour the others. A metric that was measured
    // nowhere leaves none out.
    let axes = [cost, quality.axis];
    let known = measured(tried, &tune, &axes);
    let (used, unused): (Vec<&String>, Vec<&String>) =
        tune.iter().partition(|id| is_complete(tried, id, &known));
    let clusters = trial::in_clusters(tried, &used);
    let points = tried.iter().map(|trial| {
        let kept = clusters.iter().filter_map(|own| trial.kept(own, quality.axis));
        SweepPoint {
            values: trial.values.clone(),
            is_default: trial.is_default,
            cost: trial.saved(&clusters, cost),
            quality: Estimate::of_sessions(&kept.collect::<Vec<_>>(), used.len()),
            broken: trial.broken.clone(),
            on_front: false,
            standing: None,
        }
    });
    let mut points: Vec<SweepPoint> = points.collect();
    let of_clusters: Vec<Vec<Point>> =
        tried.iter().map(|trial| trial.objectives(&clusters, axes)).collect();
    let means: Vec<Point> = of_clusters.iter().map(|own| pareto::mean(own)).collect();
    let front = pareto::front(&means);
    for (at, point) in points.iter_mut().enumerate() {
        point.on_front = front[at];
    }
    let mut fitted = fitting(tried, &clusters);
    if fitted != clusters && fitted.len() < FEWEST_SESSIONS {
        // A few that fit decide nothing about the others.
        fitted.clear();
    }
    let against = tried.iter().map(|trial| trial.saved(&fitted, cost));
    let against_nothing = against.map(|saved| Some(saved?.point_estimate)).collect();
    let candidates = Candidates {
        points: points.iter().collect(),
        against_nothing,
        fits_everywhere: fitted == clusters,
        of_clusters,
        means,
    };
    let choice = candidates.choose(saved, quality);
    for point in &mut points {
        if Some(&point.values) == choice.values.as_ref() {
            point.standing = choice.standing;
        }
    }
    let full_fits = used.iter().filter(|id| tried.iter().any(|trial| trial.full_fits(id))).count();
    let left_out = unused.into_iter().cloned().collect();
    let sensitivity =
        knobs(&points).into_iter().map(|knob| Sensitivity::of(&points, knob)).collect();
    let pairs = pairs::pairs(&points);
    points.sort_by(|left, right| saving(right).total_cmp(&saving(left)));
    Sweep {
        format: "proctor-sweep",
        version: 1,
        cost,
        quality: quality.axis,
        margin: quality.margin,
        cost_margin: saved.margin,
        quality_reason: None,
        hints: Vec::new(),
        independent_tune: clusters.len(),
        independent_confirm: confirm.len(),
        full_fits,
        tune,
        confirm,
        points,
        sensitivity,
        pairs,
        choice,
        left_out,
        repairs: None,
        simulated_cost: None,
        worth: tried.first().and_then(|trial| trial.sample.worth.clone()),
    }
}

impl Sweep {
    /// What is to be known of its sessions and their costs, in sentences without a full stop.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> + '_ {
        let simulated = self.simulated_cost.iter().map(SimulatedCost::words);
        self.repairs.iter().cloned().chain(simulated)
    }
}

/// The sessions in which doing nothing is a choice, cluster by cluster: full history fits the window.
fn fitting<'a>(tried: &[Trial], clusters: &[Vec<&'a String>]) -> Vec<Vec<&'a String>> {
    let fitting = clusters.iter().map(|sessions| -> Vec<&String> {
        let all = sessions.iter().copied();
        all.filter(|id| tried.iter().any(|trial| trial.full_fits(id))).collect()
    });
    fitting.filter(|sessions| !sessions.is_empty()).collect()
}

/// Whether every setting that is not broken was measured on a session.
fn is_complete(tried: &[Trial], session: &str, axes: &[Axis]) -> bool {
    let mut whole = tried.iter().filter(|trial| trial.broken.is_none());
    whole.all(|trial| axes.iter().all(|axis| trial.value(session, *axis).is_some()))
}

fn saving(point: &SweepPoint) -> f64 {
    point.cost.map_or(f64::NEG_INFINITY, |cost| cost.point_estimate)
}

impl Sensitivity {
    fn of(points: &[SweepPoint], knob: &str) -> Self {
        let used: Vec<&SweepPoint> = points.iter().filter(|point| point.broken.is_none()).collect();
        let values = distinct(used.iter().filter_map(|point| pairs::value(point, knob)));
        let by_value = values.into_iter().filter_map(|value| {
            let own = used.iter().copied().filter(|point| pairs::value(point, knob) == Some(value));
            let cell = PairCell::of(own)?;
            Some((value.clone(), cell.cost, cell.quality))
        });
        let by_value: Vec<ValueMeans> = by_value.collect();
        Self {
            knob: knob.to_owned(),
            cost_range: range(by_value.iter().filter_map(|value| value.1)),
            quality_range: range(by_value.iter().filter_map(|value| value.2)),
            does_nothing: does_nothing(points, knob),
            by_value,
        }
    }
}

/// Largest minus smallest; `None` below two numbers.
fn range(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let high = values.clone().fold(f64::NEG_INFINITY, f64::max);
    let low = values.clone().fold(f64::INFINITY, f64::min);
    (values.count() > 1).then_some(high - low)
}

/// Whether settings that differ in this knob alone always have the same numbers, and there are such.
fn does_nothing(points: &[SweepPoint], knob: &str) -> bool {
    let mut is_varied = false;
    for (at, point) in points.iter().enumerate() {
        for twin in points[at + 1..].iter().filter(|twin| pairs::differ_in(point, twin) == [knob]) {
            // Where all are broken, nothing is known of it.
            is_varied |= point.broken.is_none();
            if !point.has_numbers_of(twin) {
                return false;
            }
        }
    }
    is_varied
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

#[cfg(test)]
mod tests;
