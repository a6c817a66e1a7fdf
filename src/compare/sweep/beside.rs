//! The settings beside the chosen one: whether it lies on a plateau, or stands alone.

use schemars::JsonSchema;
use serde::Serialize;

use super::choice::Candidates;
use super::{EQUAL, pairs};
use crate::stats::Estimate;
use crate::stats::pareto::Point;

/// The settings that are one step of one knob away from the chosen one.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize)]
pub struct Neighbours {
    /// How many were tried and are not broken.
    pub tried: usize,
    /// How many others are broken.
    pub broken: usize,
    /// How many save and keep the same: each within its margin, or not told apart by the sessions.
    pub alike: usize,
    /// What that says of the chosen setting.
    pub shape: Shape,
    /// A knob whose first or last value was chosen, with that value, where the one beside it is worse: values beyond
    /// it may be better still.
    pub edge: Option<(String, String)>,
}

/// How the chosen setting lies among its neighbours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// All are alike, and there are two at least.
    Plateau,
    /// Some are alike, or there are neighbours on one side only.
    #[default]
    Slope,
    /// None is alike, and of some knob both neighbours are worse in one metric and better in none: it may be
    /// chance.
    Spike,
}

/// How a neighbour compares with the chosen setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likeness {
    /// It saves and keeps the same.
    Alike,
    /// It saves or keeps less, and neither more.
    Worse,
    /// It saves or keeps more.
    Other,
}

impl Neighbours {
    /// Those of the setting at `chosen`; `None` without one.
    pub(super) fn of(candidates: &Candidates<'_>, chosen: usize, margins: Point) -> Option<Self> {
        let own = candidates.written_out(chosen);
        let mut found = Self::default();
        let mut is_peak = false;
        for (knob, value) in &candidates.points[own].values {
            let values = pairs::values(candidates.points.iter().copied(), knob);
            let Some(place) = values.iter().position(|other| other == value) else {
                continue;
            };
            let steps = [place.checked_sub(1), Some(place + 1)];
            let beside = steps.map(|step| {
                let at = candidates.with(own, knob, values.get(step?)?)?;
                found.broken += usize::from(candidates.points[at].broken.is_some());
                let likeness = candidates.likeness(own, at, margins)?;
                found.tried += 1;
                found.alike += usize::from(likeness == Likeness::Alike);
                Some(likeness)
            });
            is_peak |= beside == [Some(Likeness::Worse); 2];
            // Beyond a word there is nothing.
            let at_end = place == 0 || place + 1 == values.len();
            if at_end && value.parse::<f64>().is_ok() && beside.contains(&Some(Likeness::Worse)) {
                found.edge = Some((knob.clone(), value.clone()));
            }
        }
        found.shape = match found.alike {
            alike if alike == found.tried && alike > 1 => Shape::Plateau,
            0 if is_peak => Shape::Spike,
            _ => Shape::Slope,
        };
        (found.tried > 0).then_some(found)
    }
}

impl Candidates<'_> {
    /// The default as it is written out with all knobs, where it was tried so; any other setting is itself.
    fn written_out(&self, at: usize) -> usize {
        let own = self.points[at].values.len();
        let mut points = self.points.iter();
        let written = points.position(|point| point.is_default && point.values.len() > own);
        written.filter(|_| self.points[at].is_default).unwrap_or(at)
    }

    /// The setting that differs from this one in the value of one knob.
    fn with(&self, own: usize, knob: &str, value: &str) -> Option<usize> {
        self.points.iter().position(|point| {
            pairs::value(point, knob).is_some_and(|found| found == value)
                && pairs::differ_in(self.points[own], point) == [knob]
        })
    }

    /// How another setting compares with one: in each metric it is the same if the mean difference is within its
    /// margin, or its 95 % interval over the sessions holds 0. `None` for a broken one.
    fn likeness(&self, one: usize, other: usize, margins: Point) -> Option<Likeness> {
        let mut signs = [0.0; 2];
        for (objective, sign) in signs.iter_mut().enumerate() {
            let sessions = self.of_clusters[one].iter().zip(&self.of_clusters[other]);
            let differences: Vec<f64> =
                sessions.map(|(one, other)| other[objective] - one[objective]).collect();
            let found = Estimate::of_sessions(&differences, differences.len())?;
            let difference = found.point_estimate;
            if !difference.is_finite() {
                return None;
            }
            let holds_0 = found
                .confidence_interval
                .is_some_and(|ends| ends.lower_bound <= 0.0 && ends.upper_bound >= 0.0);
            if difference.abs() > margins[objective] + EQUAL && !holds_0 {
                *sign = difference.signum();
            }
        }
        Some(match signs {
            [0.0, 0.0] => Likeness::Alike,
            [saved, kept] if saved <= 0.0 && kept <= 0.0 => Likeness::Worse,
            _ => Likeness::Other,
        })
    }
}
