//! Pairs of knobs: what is saved and kept at each pair of values, the other knobs taken as they come.

use schemars::JsonSchema;
use serde::Serialize;

use super::{SweepPoint, distinct};
use crate::stats::mean;

/// Two knobs, with all their values: the data of a heat map.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct KnobPair {
    /// The knob of the rows and the knob of the columns.
    pub knobs: (String, String),
    /// Values of the first knob, ascending where they are numbers.
    pub rows: Vec<String>,
    /// Values of the second, likewise.
    pub columns: Vec<String>,
    /// Row by row; empty where no setting with both values was tried.
    pub cells: Vec<Vec<Option<PairCell>>>,
}

/// All settings that have both values.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize)]
pub struct PairCell {
    /// The mean of the metric that is saved, over those that are not broken; `None` where all are.
    pub cost: Option<f64>,
    /// The mean of the metric that is kept, likewise.
    pub quality: Option<f64>,
    /// How many there are.
    pub settings: usize,
    /// How many of them are broken.
    pub broken: usize,
    /// Whether the chosen setting is among them.
    pub chosen: bool,
    /// Whether the default is among them.
    pub default: bool,
}

/// Every pair of knobs, in the order of the command line.
pub(super) fn pairs(points: &[SweepPoint]) -> Vec<KnobPair> {
    let knobs = super::knobs(points);
    let mut found = Vec::new();
    for (at, first) in knobs.iter().enumerate() {
        for second in &knobs[at + 1..] {
            found.push(pair(points, first, second));
        }
    }
    found
}

/// Two knobs, or with no name in front one knob whose other takes no value.
pub(crate) fn pair(points: &[SweepPoint], first: &str, second: &str) -> KnobPair {
    let (mut rows, columns) = (values(points, first), values(points, second));
    rows.extend(first.is_empty().then(String::new));
    let cells = rows.iter().map(|row| {
        let all = points.iter();
        let in_row: Vec<&SweepPoint> =
            all.filter(|point| first.is_empty() || value(point, first) == Some(row)).collect();
        let cells = columns.iter().map(|column| {
            let own = in_row.iter().copied();
            PairCell::of(own.filter(|point| value(point, second) == Some(column)))
        });
        cells.collect()
    });
    KnobPair { knobs: (first.to_owned(), second.to_owned()), cells: cells.collect(), rows, columns }
}

impl PairCell {
    /// The means of some settings; `None` without one.
    pub(super) fn of<'a>(points: impl Iterator<Item = &'a SweepPoint>) -> Option<Self> {
        let mut cell = Self::default();
        let (mut cost, mut quality) = (Vec::new(), Vec::new());
        for point in points {
            cell.settings += 1;
            cell.chosen |= point.standing.is_some();
            cell.default |= point.is_default;
            if point.broken.is_some() {
                cell.broken += 1;
                continue;
            }
            cost.extend(point.cost.map(|estimate| estimate.point_estimate));
            quality.extend(point.quality.map(|estimate| estimate.point_estimate));
        }
        (cell.cost, cell.quality) = (mean(&cost), mean(&quality));
        (cell.settings > 0).then_some(cell)
    }
}

/// The knobs of which two settings have different values, or only one of them has a value.
pub(super) fn differ_in<'a>(one: &'a SweepPoint, other: &'a SweepPoint) -> Vec<&'a str> {
    let knobs = one.values.iter().chain(&other.values);
    let knobs = distinct(knobs.map(|(knob, _)| knob.as_str())).into_iter();
    knobs.filter(|knob| value(one, knob) != value(other, knob)).collect()
}

pub(super) fn value<'a>(point: &'a SweepPoint, knob: &str) -> Option<&'a String> {
    point.values.iter().find(|(name, _)| name == knob).map(|(_, value)| value)
}

/// The values that a knob takes: numbers ascending, anything else in the order of the settings.
pub(super) fn values<'a>(
    points: impl IntoIterator<Item = &'a SweepPoint>,
    knob: &str,
) -> Vec<String> {
    let all = points.into_iter().filter_map(|point| value(point, knob).cloned());
    let mut found = distinct(all);
    if found.iter().all(|text| text.parse::<f64>().is_ok()) {
        found.sort_by(|left, right| number(left).total_cmp(&number(right)));
    }
    found
}

/// A value as a number; not one where it is none.
fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::sweep::Standing;
    use crate::stats::Estimate;

    fn point(a: &str, b: &str, cost: f64, broken: bool) -> SweepPoint {
        let estimate = |value: f64| Estimate::of_sessions(&[value, value], 2);
        SweepPoint {
            values: vec![
                ("a".to_owned(), a.to_owned()),
                ("b".to_owned(), b.to_owned()),
                ("c".to_owned(), "x".to_owned()),
            ],
            cost: estimate(cost),
            quality: estimate(1.0 - cost),
            is_default: false,
            broken: broken.then(|| "1 sessions died".to_owned()),
            on_front: false,
            standing: (cost > 0.6).then_some(Standing::NotConfirmed),
        }
    }

    #[test]
    fn a_cell_is_the_mean_of_what_is_not_broken_and_numbers_are_in_order() {
        let points = [
            point("10", "late", 0.2, false),
            point("10", "late", 0.4, false),
            point("9", "late", 0.9, true),
            point("9", "early", 0.7, false),
        ];
        let found = pairs(&points);
        let names: Vec<(&str, &str)> =
            found.iter().map(|pair| (pair.knobs.0.as_str(), pair.knobs.1.as_str())).collect();
        assert_eq!(names, [("a", "b"), ("a", "c"), ("b", "c")]);
        let pair = &found[0];
        assert_eq!(pair.rows, ["9", "10"]);
        assert_eq!(pair.columns, ["late", "early"]);
        let broken = pair.cells[0][0].unwrap();
        assert_eq!((broken.cost, broken.settings, broken.broken), (None, 1, 1));
        assert!(pair.cells[0][1].unwrap().chosen);
        let mean = pair.cells[1][0].unwrap();
        assert!((mean.cost.unwrap() - 0.3).abs() < 1e-12);
        assert!((mean.quality.unwrap() - 0.7).abs() < 1e-12);
        assert_eq!(pair.cells[1][1], None, "never tried");
    }
}
