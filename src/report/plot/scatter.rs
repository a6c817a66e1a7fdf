//! Scatter charts: numbered points with their intervals, and a line along those that no other beats.

use super::axes::{Axis, Panel, percent, reach};
use super::scene::{Color, HPos, INK, ORANGE, PAPER, SIZE, Scene, text_width};
use crate::stats::ConfidenceInterval;

const LEFT: f64 = 80.0;

/// The height of every scatter chart.
pub(super) const HEIGHT: f64 = 380.0;

/// A point of the chart.
pub(super) struct Point {
    pub(super) at: (f64, f64),
    /// The ends of the horizontal and of the vertical interval.
    pub(super) intervals: [Option<(f64, f64)>; 2],
    pub(super) radius: f64,
    pub(super) color: Color,
    /// Whether no other point is better; the others are hollow.
    pub(super) on_front: bool,
}

/// The side of the horizontal axis with the better values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    Left,
    Right,
}

/// A chart whose points can be drawn and numbered.
pub(super) struct Scatter {
    panel: Panel,
    /// The boxes that no number may cover.
    taken: Vec<[f64; 4]>,
}

/// The two ends of an interval.
pub(super) fn ends(interval: ConfidenceInterval) -> (f64, f64) {
    (interval.lower_bound, interval.upper_bound)
}

impl Scatter {
    /// Draws the axes, the front and the intervals. An axis is given by its title and about how many
    /// figures there is room for.
    pub(super) fn new(
        scene: &mut Scene,
        points: &[Point],
        (upper, right): (f64, f64),
        better: Better,
        [(across, columns), (up, rows)]: [(&str, usize); 2],
    ) -> Self {
        let range = |value: fn(&Point) -> f64, axis: usize| {
            let intervals = points.iter().filter_map(|point| point.intervals[axis]);
            let values = points.iter().map(value);
            reach(values, intervals, (0.1, 1.0), (0.07, 0.02))
        };
        let panel = Panel {
            edges: [LEFT, upper, right, upper + HEIGHT],
            x: range(|point| point.at.0, 0),
            y: range(|point| point.at.1, 1),
        };
        let side = match better {
            Better::Left => "left",
            Better::Right => "right",
        };
        let below: Axis<'_> = (&format!("{across}; {side} is better"), columns, &percent);
        let beside: Axis<'_> = (&format!("{up}; up is better"), rows, &percent);
        panel.axes(scene, below, beside);
        let mut front: Vec<_> = points.iter().filter(|it| it.on_front).collect();
        front.sort_by(|one, other| one.at.0.total_cmp(&other.at.0));
        let mut steps = Vec::new();
        for (number, here) in front.iter().enumerate() {
            // Of two neighbours, each is better on one axis: the corner has the worse value of both.
            if let Some(before) = number.checked_sub(1).map(|before| front[before]) {
                steps.push(match better {
                    Better::Left => panel.clamped(here.at.0, before.at.1),
                    Better::Right => panel.clamped(before.at.0, here.at.1),
                });
            }
            steps.push(panel.clamped(here.at.0, here.at.1));
        }
        scene.line(steps, ORANGE, 2, 0.8);
        let mut taken = Vec::new();
        for point in points {
            let (x, y) = point.at;
            let [across, up] = point.intervals;
            let across = across.map(|(low, high)| [(low, y), (high, y)]);
            let up = up.map(|(low, high)| [(x, low), (x, high)]);
            for ends in across.into_iter().chain(up) {
                let ends = ends.map(|(x, y)| panel.clamped(x, y));
                scene.line(ends.to_vec(), INK, 1, 0.35);
            }
            let (x, y) = panel.clamped(x, y);
            let room = point.radius + 1.0;
            taken.push([x - room, y - room, x + room, y + room]);
        }
        Self { panel, taken }
    }

    /// Draws a point.
    pub(super) fn dot(&self, scene: &mut Scene, point: &Point) {
        let at = self.panel.clamped(point.at.0, point.at.1);
        scene.dot(at, point.radius, point.color, !point.on_front);
    }

    /// Writes a number at the nearest free place around a point, with a line to it where it is far.
    pub(super) fn number(&mut self, scene: &mut Scene, point: &Point, number: usize) {
        let text = number.to_string();
        let (x, y) = self.panel.clamped(point.at.0, point.at.1);
        let half = text_width(&text, SIZE) / 2.0 + 2.0;
        let [left, upper, right, lower] = self.panel.edges;
        for (ring, turn) in (1..9).flat_map(|ring| (0..12).map(move |turn| (ring, turn))) {
            let angle = std::f64::consts::TAU * (f64::from(turn) / 12.0 - 0.125);
            let far = 5.0 + 10.0 * f64::from(ring);
            let (right_by, down_by) = (libm::cos(angle) * far, libm::sin(angle) * far);
            let (to_x, to_y) = (x + right_by, y + down_by);
            let place = [to_x - half, to_y - 7.0, to_x + half, to_y + 7.0];
            let is_inside =
                place[0] >= left && place[2] <= right && place[1] >= upper && place[3] <= lower;
            let is_apart = |other: &[f64; 4]| {
                place[2] < other[0]
                    || other[2] < place[0]
                    || place[3] < other[1]
                    || other[3] < place[1]
            };
            if is_inside && self.taken.iter().all(is_apart) {
                if right_by.hypot(down_by) > 20.0 {
                    scene.line(vec![(x, y), (to_x, to_y)], INK, 1, 0.35);
                    scene.rect(place, PAPER, 1.0);
                }
                self.taken.push(place);
                scene.label((to_x, to_y), &text, HPos::Center);
                return;
            }
        }
    }
}
