//! Scatter charts: points with their intervals and names, and a line along those that no other beats.

use super::axes::{Axis, Panel, percent, reach};
use super::scene::{Color, HPos, INK, ORANGE, PAPER, SIZE, Scene, fitted, text_width};
use crate::stats::ConfidenceInterval;

/// A point of the chart.
pub(super) struct Point {
    pub(super) at: (f64, f64),
    /// The ends of the horizontal and of the vertical interval.
    pub(super) intervals: [Option<(f64, f64)>; 2],
    /// Larger points lie in front.
    pub(super) radius: f64,
    pub(super) color: Color,
    pub(super) is_hollow: bool,
    /// Whether no other point is better: the line goes along these.
    pub(super) on_front: bool,
    pub(super) name: Name,
    /// The text under the pointer.
    pub(super) tip: String,
}

/// How a point is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    None,
    /// By a text beside the point; where there is no room for it, in the list.
    Beside(String),
    /// By a number, which a list below the chart explains.
    Listed(String),
}

/// The two ends of an interval.
pub(super) fn ends(interval: ConfidenceInterval) -> (f64, f64) {
    (interval.lower_bound, interval.upper_bound)
}

/// The height of a chart.
const HEIGHT: f64 = 380.0;

/// Draws the chart and the list. An axis is given by its title.
pub(super) fn draw(scene: &mut Scene, points: &[Point], [across, up]: [&str; 2]) {
    let range = |value: fn(&Point) -> f64, axis: usize| {
        let intervals = points.iter().filter_map(|point| point.intervals[axis]);
        let values = points.iter().map(value);
        reach(values, intervals, (0.1, 1.0), (0.07, 0.02))
    };
    let ranges = [range(|point| point.at.0, 0), range(|point| point.at.1, 1)];
    draw_in(scene, points, ranges, [across, up]);
}

/// The same with the ranges of both axes; a point outside is drawn at the edge.
pub(super) fn draw_in(
    scene: &mut Scene,
    points: &[Point],
    [x, y]: [(f64, f64); 2],
    [across, up]: [&str; 2],
) {
    let panel = Panel {
        edges: [80.0, scene.y, scene.right(), scene.y + HEIGHT],
        x,
        y,
    };
    let columns = if scene.is_narrow() { 5 } else { 9 };
    let below: Axis<'_> = (&format!("{across}; right is better"), columns, &percent);
    let beside: Axis<'_> = (&format!("{up}; up is better"), 7, &percent);
    panel.axes(scene, below, beside);
    front(scene, &panel, points);
    // The boxes that no number may cover.
    let mut taken = Vec::new();
    for point in points {
        let (x, y) = point.at;
        let [across, up] = point.intervals;
        let across = across.map(|(low, high)| [(low, y), (high, y)]);
        let up = up.map(|(low, high)| [(x, low), (x, high)]);
        for ends in across.into_iter().chain(up) {
            let ends = ends.map(|(x, y)| panel.clamped(x, y));
            scene.line(&ends, INK, 1, 0.35);
        }
        let (x, y) = panel.clamped(x, y);
        let room = point.radius + 1.0;
        taken.push([x - room, y - room, x + room, y + room]);
    }
    let mut order: Vec<&Point> = points.iter().collect();
    order.sort_by(|one, other| one.radius.total_cmp(&other.radius));
    for point in order {
        let at = panel.clamped(point.at.0, point.at.1);
        scene.tip(&point.tip, |scene| {
            scene.dot(at, point.radius, point.color, point.is_hollow);
        });
    }
    scene.y += HEIGHT + 56.0;
    let mut listed = Vec::new();
    for point in points {
        match &point.name {
            Name::None => {}
            Name::Beside(name) => {
                let most = if scene.is_narrow() { 0.6 } else { 0.45 };
                let most = most * (panel.edges[2] - panel.edges[0]);
                let text = fitted(name, SIZE, most);
                if !write_name(scene, &panel, &mut taken, point, &text) {
                    listed.push((point, name));
                }
            }
            Name::Listed(name) => listed.push((point, name)),
        }
    }
    for ((point, name), number) in listed.iter().zip(1..) {
        write_name(scene, &panel, &mut taken, point, &number.to_string());
        scene.paragraph(&format!("{number}  {name}"));
    }
}

/// Draws the line along the points that no other beats.
fn front(scene: &mut Scene, panel: &Panel, points: &[Point]) {
    let mut front: Vec<_> = points.iter().filter(|it| it.on_front).collect();
    front.sort_by(|one, other| one.at.0.total_cmp(&other.at.0));
    let mut steps = Vec::new();
    for (number, here) in front.iter().enumerate() {
        // Of two neighbours, each is better on one axis: the corner has the worse value of both.
        if let Some(before) = number.checked_sub(1).map(|before| front[before]) {
            steps.push(panel.clamped(before.at.0, here.at.1));
        }
        steps.push(panel.clamped(here.at.0, here.at.1));
    }
    scene.line(&steps, ORANGE, 2, 0.8);
}

/// Writes a text at the nearest free place around a point, with a line to it where it is far; `false` if
/// there is no such place.
fn write_name(
    scene: &mut Scene,
    panel: &Panel,
    taken: &mut Vec<[f64; 4]>,
    point: &Point,
    text: &str,
) -> bool {
    let (x, y) = panel.clamped(point.at.0, point.at.1);
    let half = text_width(text, SIZE) / 2.0 + 2.0;
    let [left, upper, right, lower] = panel.edges;
    let places = (1..9).flat_map(|ring| (0..12).map(move |turn| (ring, turn)));
    let mut places = places.map(|(ring, turn)| {
        let angle = std::f64::consts::TAU * (f64::from(turn) / 12.0 - 0.125);
        let far = 5.0 + 10.0 * f64::from(ring);
        let (right, down) = (libm::cos(angle), libm::sin(angle));
        // A text beside the point begins or ends there; one above or below is centred.
        let beside = half * (right * 1.5).clamp(-1.0, 1.0);
        let to = (x + right * far + beside, y + down * far);
        (far, to, [to.0 - half, to.1 - 7.0, to.0 + half, to.1 + 7.0])
    });
    let is_free = |&(_, _, [from_x, from_y, to_x, to_y]): &(f64, (f64, f64), [f64; 4])| {
        let is_inside = from_x >= left && to_x <= right && from_y >= upper && to_y <= lower;
        let is_apart = |other: &[f64; 4]| {
            to_x < other[0] || other[2] < from_x || to_y < other[1] || other[3] < from_y
        };
        is_inside && taken.iter().all(is_apart)
    };
    let Some((far, to, place)) = places.find(is_free) else {
        return false;
    };
    if far > 20.0 {
        scene.line(&[(x, y), to], INK, 1, 0.35);
        scene.rect(place, PAPER, 1.0);
    }
    taken.push(place);
    scene.label(to, text, HPos::Center);
    true
}
