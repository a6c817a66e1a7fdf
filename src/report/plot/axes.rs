//! A panel with axes: from values to pixels, and the lines and figures at the edges.

use super::scene::{Anchor, INK, SIZE, Scene, text_width};

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

/// What stands along an axis.
pub(super) struct Axis<'a> {
    /// What is measured, with its unit.
    pub(super) label: &'a str,
    /// How a value is written.
    pub(super) figure: &'a dyn Fn(f64) -> String,
    /// About how many figures there is room for.
    pub(super) ticks: usize,
}

impl Panel {
    /// Where a point stands.
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

    /// Draws grid, figures and labels of both axes.
    pub(super) fn axes(&self, scene: &mut Scene, below: &Axis<'_>, beside: &Axis<'_>) {
        let [left, upper, right, lower] = self.edges;
        for value in ticks(self.y, beside.ticks) {
            let (_, y) = self.at(self.x.0, value);
            scene.line(vec![(left, y), (right, y)], INK, 1, 0.13);
            scene.label((left - 8.0, y), &(beside.figure)(value), Anchor::End);
        }
        let mut free = f64::NEG_INFINITY;
        for value in ticks(self.x, below.ticks) {
            let (x, _) = self.at(value, self.y.0);
            scene.line(vec![(x, lower), (x, lower + 4.0)], INK, 1, 0.6);
            let text = (below.figure)(value);
            let half = text_width(&text, SIZE) / 2.0;
            if x - half > free {
                scene.label((x, lower + 14.0), &text, Anchor::Middle);
                free = x + half + 6.0;
            }
        }
        scene.line(
            vec![(left, upper), (left, lower), (right, lower)],
            INK,
            1,
            0.6,
        );
        if !below.label.is_empty() {
            let middle = f64::midpoint(left, right);
            scene.label((middle, lower + 32.0), below.label, Anchor::Middle);
        }
        if !beside.label.is_empty() {
            scene.upright((14.0, f64::midpoint(upper, lower)), beside.label);
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
