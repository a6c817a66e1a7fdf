//! Sweeps: many settings of one strategy on the same sessions, and which of them is worth having.
//!
//! Nothing is tested over the grid: with 64 points something always looks better by chance. Points are
//! chosen on one part of the sessions, and the choice is tried on the other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use super::{Comparison, Sample};
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stats::pareto::{self, Point};
use crate::stats::{ConfidenceInterval, Estimate};

pub(crate) mod pairs;

pub use pairs::{KnobPair, PairCell};

/// One setting, before it is judged.
#[derive(Debug, Clone)]
pub struct Tried {
    /// Each knob with its value, in the order of the command line; empty for the default.
    pub values: Vec<(String, String)>,
    /// What it scored on the tune sessions.
    pub sample: Sample,
}

/// What a sweep found.
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
    /// What each knob moves.
    pub sensitivity: Vec<Sensitivity>,
    /// What each pair of knobs moves: heat maps as numbers.
    pub pairs: Vec<KnobPair>,
    /// How the recommended setting did on sessions it was not chosen on.
    pub confirmation: Option<Confirmation>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct SweepPoint {
    /// Each knob with its value; empty for the default.
    pub values: Vec<(String, String)>,
    /// What it saves; nothing where no session measured it.
    pub cost: Option<Estimate>,
    /// What it keeps.
    pub quality: Option<Estimate>,
    /// Why it takes part in no ranking.
    pub broken: Option<String>,
    /// Whether nothing beats it in both.
    pub on_front: bool,
    /// Share of jackknife rounds, one session left out in each, in which it is on the front; nothing
    /// below two sessions.
    pub front_share: Option<f64>,
    /// Whether it is recommended: the knee of the front.
    pub recommended: bool,
}

/// What one knob moves, the others taken as they come.
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
    /// Whether it is better in one and worse in none, beyond chance.
    pub beats_default: bool,
    /// The same in words.
    pub says: String,
}

/// A JSON Schema (draft 2020-12) of a sweep as JSON.
pub fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Sweep>()
        .to_value()
}

impl SweepPoint {
    /// `keep_last=5, every=10`; `default` for the default.
    pub fn label(&self) -> String {
        if self.values.is_empty() {
            return "default".to_owned();
        }
        let items = self
            .values
            .iter()
            .map(|(knob, value)| format!("{knob}={value}"));
        items.collect::<Vec<_>>().join(", ")
    }
}

/// The value of a metric on a session: of its probes, or its own.
fn value(sample: &Sample, session: &str, metric: &str) -> Option<f64> {
    let session = sample.sessions.get(session)?;
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    match session.metrics.get(metric) {
        Some(values) => mean(values.clone()),
        None => mean(
            session
                .probes
                .values()
                .filter_map(|probe| mean(probe.scores(metric).to_vec()))
                .collect(),
        ),
    }
}

fn broken(sample: &Sample) -> Option<String> {
    let dead: usize = sample.sessions.values().map(|session| session.dead).sum();
    let rejected = sample
        .sessions
        .values()
        .filter(|s| !s.rejected.is_empty())
        .count();
    match (dead, rejected) {
        (0, 0) => None,
        (0, _) => Some(format!("a prompt would be rejected in {rejected} sessions")),
        (_, _) => Some(format!("{dead} sessions died")),
    }
}

/// Judges the settings on the sessions in `tune`. The first one tried is the default.
pub fn judge(
    tried: &[Tried],
    tune: Vec<String>,
    confirm: Vec<String>,
    cost: &str,
    quality: &str,
) -> Sweep {
    // A session on which somebody has no value would favour those who have.
    let complete = |session: &&String| {
        tried.iter().all(|point| {
            broken(&point.sample).is_some()
                || value(&point.sample, session, cost)
                    .zip(value(&point.sample, session, quality))
                    .is_some()
        })
    };
    let used: Vec<&String> = tune.iter().filter(complete).collect();
    let of_sessions: Vec<Vec<Point>> = tried
        .iter()
        .map(|point| {
            let at = |session: &&String, metric| {
                let value = value(&point.sample, session, metric);
                value
                    .filter(|_| broken(&point.sample).is_none())
                    .unwrap_or(f64::NAN)
            };
            used.iter()
                .map(|session| vec![at(session, cost), at(session, quality)])
                .collect()
        })
        .collect();
    let means: Vec<Point> = of_sessions
        .iter()
        .map(|sessions| pareto::mean(sessions))
        .collect();
    let front = pareto::front(&means);
    let shares = pareto::jackknife(&of_sessions);
    let knee = pareto::knee(&means, &front);
    let estimate = |point: &Tried, metric: &str| {
        let values: Vec<f64> = tune
            .iter()
            .filter_map(|session| value(&point.sample, session, metric))
            .collect();
        Estimate::of_sessions(&values, values.len())
    };
    let mut points: Vec<SweepPoint> = tried
        .iter()
        .enumerate()
        .map(|(at, point)| SweepPoint {
            values: point.values.clone(),
            cost: estimate(point, cost),
            quality: estimate(point, quality),
            broken: broken(&point.sample),
            on_front: front[at] && !means[at].is_empty(),
            front_share: shares.as_ref().map(|shares| shares[at]),
            recommended: knee == Some(at) && !means[at].is_empty(),
        })
        .collect();
    let sensitivity = sensitivity(&points);
    let pairs = pairs::pairs(&points);
    let order = |point: &SweepPoint| {
        point
            .cost
            .map_or(f64::NEG_INFINITY, |cost| cost.point_estimate)
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
        confirmation: None,
    }
}

fn sensitivity(points: &[SweepPoint]) -> Vec<Sensitivity> {
    let mut knobs: Vec<&String> = Vec::new();
    for (knob, _) in points.iter().flat_map(|point| &point.values) {
        if !knobs.contains(&knob) {
            knobs.push(knob);
        }
    }
    let of_knob = |knob: &String| {
        let mut order: Vec<&String> = Vec::new();
        let mut sums: BTreeMap<&String, (f64, f64, f64)> = BTreeMap::new();
        for point in points.iter().filter(|point| point.broken.is_none()) {
            let own = point.values.iter().find(|(name, _)| name == knob);
            let (Some((_, value)), Some(cost), Some(quality)) = (own, point.cost, point.quality)
            else {
                continue;
            };
            if !order.contains(&value) {
                order.push(value);
            }
            let sum = sums.entry(value).or_default();
            sum.0 += cost.point_estimate;
            sum.1 += quality.point_estimate;
            sum.2 += 1.0;
        }
        let by_value: Vec<(String, f64, f64)> = order
            .into_iter()
            .filter_map(|value| {
                let (cost, quality, count) = sums.get(value)?;
                Some((value.clone(), cost / count, quality / count))
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
    knobs.into_iter().map(of_knob).collect()
}

/// Which settings go on, by non-dominated rank, then by distance above the line of equal trade: the
/// better half, rounded up.
pub fn better_half(tried: &[Tried], sessions: &[String], cost: &str, quality: &str) -> Vec<usize> {
    let mut means: Vec<Point> = tried
        .iter()
        .map(|point| {
            let mean = |metric| {
                let values: Vec<f64> = sessions
                    .iter()
                    .filter_map(|s| value(&point.sample, s, metric))
                    .collect();
                let whole = broken(&point.sample).is_none() && values.len() == sessions.len();
                if whole && !values.is_empty() {
                    values.iter().sum::<f64>() / values.len() as f64
                } else {
                    f64::NAN
                }
            };
            vec![mean(cost), mean(quality)]
        })
        .collect();
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
            means[at] = vec![f64::NAN, f64::NAN];
            if kept.len() < keep {
                kept.push(at);
            }
        }
    }
    kept.sort_unstable();
    kept
}

impl Confirmation {
    /// Reads the comparison of the recommended setting (candidate) with the default (baseline).
    pub fn of(comparison: &Comparison, cost: &str, quality: &str) -> Self {
        let estimate = |name| comparison.metric(name).map(|found| found.paired.by_session);
        let (cost_found, quality_found) = (estimate(cost), estimate(quality));
        let sessions = quality_found.map_or(0, |found| found.n.sessions);
        let interval = |found: Option<Estimate>| found.and_then(|found| found.confidence_interval);
        let above = |i: ConfidenceInterval| i.lower_bound > 0.0;
        let below = |i: ConfidenceInterval| i.upper_bound < 0.0;
        let both = [interval(cost_found), interval(quality_found)];
        let better = both.iter().flatten().any(|i| above(*i));
        let worse = both.iter().flatten().any(|i| below(*i));
        let beats_default = sessions >= FEWEST_SESSIONS && better && !worse;
        let says = if sessions < FEWEST_SESSIONS {
            format!(
                "{sessions} sessions to confirm on are too few to say whether it beats the default: 6 are needed"
            )
        } else if beats_default {
            format!("it beats the default on {sessions} sessions it was not chosen on")
        } else if better {
            format!(
                "it does not beat the default on {sessions} sessions it was not chosen on: it gains one and loses the other"
            )
        } else {
            format!("it does not beat the default on {sessions} sessions it was not chosen on")
        };
        Self {
            cost: cost_found,
            quality: quality_found,
            beats_default,
            says,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{ProbeSample, SessionSample};
    use crate::record::Importance;

    fn tried(value: &str, scores: &[(f64, f64)]) -> Tried {
        let session = |(cost, survival): &(f64, f64)| SessionSample {
            metrics: BTreeMap::from([("cost_savings".to_owned(), vec![*cost])]),
            probes: BTreeMap::from([(
                "p@50".to_owned(),
                ProbeSample {
                    kind: "recall".to_owned(),
                    importance: Importance::Normal,
                    survival: vec![*survival],
                    extract: Vec::new(),
                    accuracy: Vec::new(),
                    answers: Vec::new(),
                    lost_at: None,
                },
            )]),
            ..SessionSample::default()
        };
        let sessions = scores
            .iter()
            .enumerate()
            .map(|(at, s)| (format!("s{at}"), session(s)));
        Tried {
            values: if value.is_empty() {
                Vec::new()
            } else {
                vec![("keep".to_owned(), value.to_owned())]
            },
            sample: Sample {
                sessions: sessions.collect(),
                ..Sample::default()
            },
        }
    }

    fn all() -> Vec<Tried> {
        let mut dead = tried("0", &[(0.99, 1.0); 3]);
        dead.sample
            .sessions
            .values_mut()
            .for_each(|session| session.dead = 1);
        vec![
            tried("", &[(0.1, 0.9); 3]),
            tried("1", &[(0.9, 0.2); 3]),
            tried("2", &[(0.7, 0.85); 3]),
            tried("3", &[(0.6, 0.8); 3]),
            dead,
        ]
    }

    #[test]
    fn the_knee_is_recommended_and_what_is_broken_is_on_no_front() {
        let sessions: Vec<String> = (0..3).map(|at| format!("s{at}")).collect();
        let sweep = judge(
            &all(),
            sessions.clone(),
            Vec::new(),
            "cost_savings",
            "survival",
        );
        let chosen = sweep.points.iter().find(|point| point.recommended).unwrap();
        assert_eq!(chosen.label(), "keep=2");
        let front: Vec<String> = sweep
            .points
            .iter()
            .filter(|p| p.on_front)
            .map(SweepPoint::label)
            .collect();
        assert_eq!(front, ["keep=1", "keep=2", "default"]);
        assert_eq!(sweep.points[0].broken.as_deref(), Some("3 sessions died"));
        assert!((sweep.sensitivity[0].quality_range - 0.65).abs() < 1e-12);
        assert_eq!(
            better_half(&all(), &sessions, "cost_savings", "survival"),
            [0, 1, 2]
        );
    }
}
