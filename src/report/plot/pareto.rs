//! Cost against survival: which strategies are not beaten on both by another.

use super::axes::{Axis, Panel, percent, reach};
use super::scene::{Anchor, BLUE, INK, Key, ORANGE, PAPER, SIZE, Scene, WIDTH, fitted, text_width};
use crate::report::{Report, Role, Row};
use crate::stats::ConfidenceInterval;
use crate::stats::pareto::dominates;

const LEFT: f64 = 80.0;
const RIGHT: f64 = 520.0;
const HEIGHT: f64 = 380.0;

/// A value and the ends of its interval.
type Placed = (f64, Option<(f64, f64)>);

/// A strategy in the picture.
struct Point<'a> {
    row: &'a Row,
    /// C/C⁰: what it costs of what full history costs.
    cost: f64,
    cost_between: Option<ConfidenceInterval>,
    survival: f64,
    survival_between: Option<ConfidenceInterval>,
}

impl Point<'_> {
    /// Whether another is at least as good on both, and better on one.
    fn is_beaten_by(&self, other: &Self) -> bool {
        dominates(&[-other.cost, other.survival], &[-self.cost, self.survival])
    }
}

/// One point per strategy that is ranked.
pub(crate) fn scene(report: &Report) -> Scene {
    let mut scene = Scene::new("Cost against survival");
    let points = points(report);
    let keys = [(false, "not dominated"), (true, "dominated")];
    let keys = keys.map(|(hollow, text)| Key::dot(text, BLUE, hollow));
    let y = scene.legend(&keys);
    if points.is_empty() {
        let words = "no strategy fired, is unbroken and has both cost and survival";
        return scene.with_only(y, words);
    }
    let reach_of = |of: fn(&Point<'_>) -> Placed| {
        let points = || points.iter().map(of);
        let intervals = points().filter_map(|(_, ends)| ends);
        reach(
            points().map(|(value, _)| value),
            intervals,
            (0.1, 1.0),
            (0.07, 0.02),
        )
    };
    let panel = Panel {
        edges: [LEFT, y + 4.0, RIGHT, y + 4.0 + HEIGHT],
        x: reach_of(|point| {
            let ends = point.cost_between;
            (
                point.cost,
                ends.map(|it| (1.0 - it.upper_bound, 1.0 - it.lower_bound)),
            )
        }),
        y: reach_of(|point| {
            let ends = point.survival_between;
            (
                point.survival,
                ends.map(|it| (it.lower_bound, it.upper_bound)),
            )
        }),
    };
    let below: Axis<'_> = (
        "cost, in percent of full history; left is better",
        6,
        &percent,
    );
    let beside: Axis<'_> = ("survival; up is better", 6, &percent);
    panel.axes(&mut scene, below, beside);
    draw(&mut scene, &panel, &points);
    list(&mut scene, &points, y + 12.0);
    let left_out = left_out(report, &points);
    let mut end = y + 4.0 + HEIGHT + 56.0;
    if !left_out.is_empty() {
        let words = format!(
            "not drawn, for it is broken, never fired or was not measured: {}",
            left_out.join(", ")
        );
        end = scene.paragraph(end, &words);
    }
    scene.ends_at(end);
    scene
}

fn points(report: &Report) -> Vec<Point<'_>> {
    let rows = report.compared().iter().filter(|row| row.ranked);
    rows.filter_map(|row| {
        let (savings, cost_between) = report.share(row, "cost_savings")?;
        let (survival, survival_between) = report.share(row, "survival")?;
        Some(Point {
            row,
            cost: 1.0 - savings,
            cost_between,
            survival,
            survival_between,
        })
    })
    .collect()
}

fn left_out<'a>(report: &'a Report, points: &[Point<'_>]) -> Vec<&'a str> {
    let rows = report.compared().iter();
    rows.filter(|row| row.role == Role::Strategy)
        .filter(|row| !points.iter().any(|point| point.row.name == row.name))
        .map(|row| row.name.as_str())
        .collect()
}

fn draw(scene: &mut Scene, panel: &Panel, points: &[Point<'_>]) {
    let clamped = |x: f64, y: f64| panel.clamped(x, y);
    let front: Vec<&Point<'_>> = front(points);
    let steps = front.windows(2).flat_map(|pair| {
        let corner = clamped(pair[1].cost, pair[0].survival);
        [clamped(pair[0].cost, pair[0].survival), corner]
    });
    let last = front
        .last()
        .map(|point| clamped(point.cost, point.survival));
    scene.line(steps.chain(last).collect(), ORANGE, 2, 0.8);
    let mut taken: Vec<[f64; 4]> = Vec::new();
    for point in points {
        let (x, y) = clamped(point.cost, point.survival);
        if let Some(between) = point.cost_between {
            let ends = [between.upper_bound, between.lower_bound];
            let ends = ends.map(|savings| clamped(1.0 - savings, point.survival));
            scene.line(ends.to_vec(), INK, 1, 0.35);
        }
        if let Some(between) = point.survival_between {
            let ends = [between.lower_bound, between.upper_bound];
            let ends = ends.map(|survival| clamped(point.cost, survival));
            scene.line(ends.to_vec(), INK, 1, 0.35);
        }
        taken.push([x - 6.0, y - 6.0, x + 6.0, y + 6.0]);
    }
    for (number, point) in points.iter().enumerate() {
        let at = clamped(point.cost, point.survival);
        let beaten = points.iter().any(|other| point.is_beaten_by(other));
        scene.dot(at, 5.0, BLUE, beaten);
        place(scene, panel, at, &(number + 1).to_string(), &mut taken);
    }
}

/// The points that no other beats, by cost.
fn front<'a, 'b>(points: &'a [Point<'b>]) -> Vec<&'a Point<'b>> {
    let mut front: Vec<&Point<'_>> = points
        .iter()
        .filter(|point| !points.iter().any(|other| point.is_beaten_by(other)))
        .collect();
    front.sort_by(|one, other| one.cost.total_cmp(&other.cost));
    front
}

/// Writes a number near a point where nothing stands yet, with a line to it if it is not beside it.
pub(super) fn place(
    scene: &mut Scene,
    panel: &Panel,
    (x, y): (f64, f64),
    text: &str,
    taken: &mut Vec<[f64; 4]>,
) {
    let half = text_width(text, SIZE) / 2.0 + 2.0;
    let [left, upper, right, lower] = panel.edges;
    let spots = (1..9).flat_map(|ring| {
        (0..12).map(move |turn| {
            let angle = std::f64::consts::TAU * (f64::from(turn) / 12.0 - 0.125);
            let far = 5.0 + 10.0 * f64::from(ring);
            (libm::cos(angle) * far, libm::sin(angle) * far)
        })
    });
    for (right_by, down_by) in spots {
        let (to_x, to_y) = (x + right_by, y + down_by);
        let place = [to_x - half, to_y - 7.0, to_x + half, to_y + 7.0];
        let is_inside =
            place[0] >= left && place[2] <= right && place[1] >= upper && place[3] <= lower;
        let is_free = taken.iter().all(|other| {
            place[2] < other[0] || other[2] < place[0] || place[3] < other[1] || other[3] < place[1]
        });
        if is_inside && is_free {
            if right_by.hypot(down_by) > 20.0 {
                scene.line(vec![(x, y), (to_x, to_y)], INK, 1, 0.35);
                scene.rect(place, PAPER, 1.0);
            }
            taken.push(place);
            scene.label((to_x, to_y), text, Anchor::Middle);
            return;
        }
    }
}

/// The names of the numbers.
fn list(scene: &mut Scene, points: &[Point<'_>], top: f64) {
    for (number, point) in points.iter().enumerate() {
        let y = top + 19.0 * number as f64;
        let number = format!("{}", number + 1);
        scene.label((RIGHT + 36.0, y), &number, Anchor::End);
        let name = fitted(&point.row.name, SIZE, WIDTH - RIGHT - 58.0);
        scene.label((RIGHT + 44.0, y), &name, Anchor::Start);
    }
}
