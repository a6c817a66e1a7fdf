//! A panel with axes: from values to pixels, and the lines and figures at the edges.

use super::scene::{HPos, INK, SIZE, Scene, text_width};
use crate::report::figure;

/// Part of a scene with an axis below and one on the left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panel {
    /// Left, upper, right and lower edge, in pixels.
    pub(super) edges: [f64; 4],
    /// The values at the left and right edge.
    pub(super) x: (f64, f64),
    /// The values at the lower and upper edge.
    pub(super) y: (f64, f64),
}

/// The title of an axis with its unit, about how many figures there is room for, and the text of a
/// value.
pub(super) type Axis<'a> = (&'a str, usize, &'a dyn Fn(f64) -> String);

/// `60 %`.
pub(super) fn percent(value: f64) -> String {
    format!("{} %", figure::points(value).trim_end_matches(".0"))
}

/// A whole number.
pub(super) fn whole(value: f64) -> String {
    // Adding 0 makes 0 of −0.
    format!("{:.0}", value.round() + 0.0)
}

/// A number of tokens, for an axis.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a figure at an axis is a small number that is not below 0"
)]
pub(super) fn tokens(value: f64) -> String {
    figure::tokens(value.round().max(0.0) as u64)
}

/// Leaves out labels that would run into the one before.
pub(super) struct Spacing {
    gap: f64,
    free_from: f64,
}

impl Spacing {
    pub(super) fn new(gap: f64) -> Self {
        Self {
            gap,
            free_from: f64::NEG_INFINITY,
        }
    }

    /// Whether there is room for a label around this middle; if so, the room is taken.
    pub(super) fn fits(&mut self, middle: f64, length: f64) -> bool {
        let fits = middle - length / 2.0 >= self.free_from;
        if fits {
            self.free_from = middle + length / 2.0 + self.gap;
        }
        fits
    }
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

impl Panel {
    /// The pixel position of a point.
    pub(super) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let [left, upper, right, lower] = self.edges;
        let share = |value: f64, (from, to): (f64, f64)| {
            if to > from {
                (value - from) / (to - from)
            } else {
                0.5
            }
        };
        (
            left + share(x, self.x) * (right - left),
            lower - share(y, self.y) * (lower - upper),
        )
    }

    /// The same, moved to the edge if it lies outside.
    pub(super) fn clamped(&self, x: f64, y: f64) -> (f64, f64) {
        self.at(x.clamp(self.x.0, self.x.1), y.clamp(self.y.0, self.y.1))
    }

    /// Draws grid, figures and labels of both axes.
    pub(super) fn axes(
        &self,
        scene: &mut Scene,
        (below, columns, column): Axis<'_>,
        (beside, rows, row): Axis<'_>,
    ) {
        let [left, upper, right, lower] = self.edges;
        for value in ticks(self.y, rows) {
            let (_, y) = self.at(self.x.0, value);
            scene.line(vec![(left, y), (right, y)], INK, 1, 0.13);
            scene.label((left - 8.0, y), &row(value), HPos::Right);
        }
        let mut spacing = Spacing::new(6.0);
        for value in ticks(self.x, columns) {
            let (x, _) = self.at(value, self.y.0);
            scene.line(vec![(x, lower), (x, lower + 4.0)], INK, 1, 0.6);
            let text = column(value);
            if spacing.fits(x, text_width(&text, SIZE)) {
                scene.label((x, lower + 14.0), &text, HPos::Center);
            }
        }
        let frame = vec![(left, upper), (left, lower), (right, lower)];
        scene.line(frame, INK, 1, 0.6);
        if !below.is_empty() {
            let middle = f64::midpoint(left, right);
            scene.label((middle, lower + 32.0), below, HPos::Center);
        }
        if !beside.is_empty() {
            scene.upright((14.0, f64::midpoint(upper, lower)), beside);
        }
    }
}

/// Round values between two others, at most about `count` of them: steps of 1, 2 or 5.
pub(super) fn ticks((from, to): (f64, f64), count: usize) -> Vec<f64> {
    let span = to - from;
    if !span.is_finite() || span <= 0.0 {
        return vec![from];
    }
    let rough = (to - from) / count.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let mut values = Vec::new();
    let mut number = (from / step - 1e-9).ceil();
    while number * step <= to + step * 1e-9 {
        values.push(number * step);
        number += 1.0;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_at_an_axis_are_round() {
        for (range, count, expected) in [
            ((0.0, 100.0), 5, &[0.0, 20.0, 40.0, 60.0, 80.0, 100.0][..]),
            ((0.0, 9.0), 4, &[0.0, 5.0]),
            ((-0.3, 0.25), 6, &[-0.3, -0.2, -0.1, 0.0, 0.1, 0.2]),
            ((3.0, 3.0), 4, &[3.0]),
        ] {
            let found = ticks(range, count);
            assert_eq!(found.len(), expected.len(), "{range:?}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-9, "{range:?}: {found}");
            }
        }
    }
}
