//! A panel with axes: from values to pixels, and the lines and figures at the edges.

use plotters::coord::ranged1d::{BoldPoints, Ranged};
use plotters::coord::types::RangedCoordf64;

use super::scene::{HPos, INK, PlotScene};
use crate::report::display;
use crate::units;

/// Part of a scene with an axis below and one on the left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlotPanel {
    /// Left, upper, right and lower edge, in pixels.
    pub(crate) edges: [f64; 4],
    /// The values at the left and right edge.
    pub(crate) x: (f64, f64),
    /// The values at the lower and upper edge.
    pub(crate) y: (f64, f64),
}

/// The title of an axis with its unit, the most figures there is room for, and the text of a value.
pub(super) type AxisScale<'a> = (&'a str, usize, &'a dyn Fn(f64) -> String);

/// `60 %`.
pub(super) fn percent(value: f64) -> String {
    format!("{} %", display::points(value).trim_end_matches(".0"))
}

/// A whole number.
pub(super) fn whole(value: f64) -> String {
    // Adding 0 makes 0 of −0.
    format!("{:.0}", value.round() + 0.0)
}

/// A number of tokens, for an axis.
pub(super) fn tokens(value: f64) -> String {
    display::tokens(units::whole(value.round()))
}

/// The range of an axis: all values, with room at both ends. Intervals extend it by at most `most`
/// times the distance between the values.
pub(super) fn reach(
    values: impl Iterator<Item = f64>,
    intervals: impl Iterator<Item = (f64, f64)>,
    (least, most): (f64, f64),
    (share, room): (f64, f64),
) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        (low, high) = (low.min(value), high.max(value));
    }
    let span = (high - low).max(least);
    let (lowest, highest) = (low - most * span, high + most * span);
    for (from, to) in intervals {
        low = low.min(from.max(lowest));
        high = high.max(to.min(highest));
    }
    let room = ((high - low) * share).max(room);
    (low - room, high + room)
}

impl PlotPanel {
    /// The pixel position of a point.
    pub(super) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let [left, upper, right, lower] = self.edges;
        let across = (x - self.x.0) / (self.x.1 - self.x.0);
        let up = (y - self.y.0) / (self.y.1 - self.y.0);
        (left + across * (right - left), lower - up * (lower - upper))
    }

    /// The same, moved to the edge if it lies outside.
    pub(super) fn clamped(&self, (x, y): (f64, f64)) -> (f64, f64) {
        self.at(x.clamp(self.x.0, self.x.1), y.clamp(self.y.0, self.y.1))
    }

    /// Draws grid, figures and labels of both axes.
    pub(super) fn axes(
        &self,
        scene: &mut PlotScene,
        (below, columns, column): AxisScale<'_>,
        (beside, rows, row): AxisScale<'_>,
    ) {
        let [left, upper, right, lower] = self.edges;
        for value in ticks(self.y, rows) {
            let (_, y) = self.at(self.x.0, value);
            scene.line(&[(left, y), (right, y)], INK, 1, 0.13);
            scene.label((left - 8.0, y), &row(value), HPos::Right);
        }
        for value in ticks(self.x, columns) {
            let (x, _) = self.at(value, self.y.0);
            scene.line(&[(x, lower), (x, lower + 4.0)], INK, 1, 0.6);
            scene.label((x, lower + 14.0), &column(value), HPos::Center);
        }
        scene.line(&[(left, upper), (left, lower), (right, lower)], INK, 1, 0.6);
        let middle = (f64::midpoint(left, right), lower + 32.0);
        scene.label(middle, below, HPos::Center);
        scene.upright((14.0, f64::midpoint(upper, lower)), beside);
    }
}

/// Round values in a range, at most this many.
pub(super) fn ticks((from, to): (f64, f64), most: usize) -> Vec<f64> {
    RangedCoordf64::from(from..to).key_points(BoldPoints(most))
}
