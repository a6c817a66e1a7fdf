//! Cost against survival: which strategies are not beaten on both by another.

use super::axes::{Axis, Panel};
use super::scene::{Anchor, BLUE, INK, Key, Mark, ORANGE, SIZE, Scene, fitted, text_width};
use crate::report::{Report, Role, Row, Value, figure};
use crate::stats::ConfidenceInterval;
use crate::stats::pareto::dominates;

const WIDTH: u32 = 800;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 520.0;
const HEIGHT: f64 = 380.0;

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
    let mut scene = Scene::new(WIDTH, "Cost against survival");
    let points = points(report);
    let keys = [(false, "not dominated"), (true, "dominated")];
    let keys = keys.map(|(hollow, text)| Key {
        mark: Mark::Dot { hollow },
        color: BLUE,
        opacity: 1.0,
        text,
    });
    let y = scene.legend((16.0, 46.0), f64::from(WIDTH) - 32.0, &keys);
    if points.is_empty() {
        let words = "no strategy fired, is unbroken and has both cost and survival";
        scene.label((16.0, y + 6.0), words, Anchor::Start);
        scene.ends_at(y + 30.0);
        return scene;
    }
    let costs = reach(points.iter().map(|point| {
        let ends = point.cost_between;
        let ends = ends.map(|it| (1.0 - it.upper_bound, 1.0 - it.lower_bound));
        (point.cost, ends)
    }));
    let survivals = reach(points.iter().map(|point| {
        let ends = point.survival_between;
        (
            point.survival,
            ends.map(|it| (it.lower_bound, it.upper_bound)),
        )
    }));
    let panel = Panel {
        edges: [LEFT, y + 4.0, RIGHT, y + 4.0 + HEIGHT],
        x: costs,
        y: survivals,
    };
    let percent = |value: f64| format!("{} %", figure::points(value).trim_end_matches(".0"));
    let below = Axis {
        label: "cost, in percent of full history; left is better",
        figure: &percent,
        ticks: 6,
    };
    let beside = Axis {
        label: "survival; up is better",
        figure: &percent,
        ticks: 6,
    };
    panel.axes(&mut scene, &below, &beside);
    draw(&mut scene, &panel, &points);
    list(&mut scene, &points, y + 12.0);
    let left_out = left_out(report, &points);
    let mut end = y + 4.0 + HEIGHT + 56.0;
    if !left_out.is_empty() {
        let words = format!(
            "not drawn, for it is broken, never fired or was not measured: {}",
            left_out.join(", ")
        );
        end = scene.paragraph((16.0, end), &words, f64::from(WIDTH) - 32.0);
    }
    scene.ends_at(end);
    scene
}

/// From where to where an axis goes: all points, and their intervals as far as they are no wider than
/// everything else.
pub(super) fn reach(points: impl Iterator<Item = (f64, Option<(f64, f64)>)> + Clone) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (value, _) in points.clone() {
        (low, high) = (low.min(value), high.max(value));
    }
    let span = (high - low).max(0.1);
    let (lowest, highest) = (low - span, high + span);
    for (from, to) in points.filter_map(|(_, ends)| ends) {
        low = low.min(from.max(lowest));
        high = high.max(to.min(highest));
    }
    let room = ((high - low) * 0.07).max(0.02);
    (low - room, high + room)
}

fn points(report: &Report) -> Vec<Point<'_>> {
    let Some(section) = report.section("comparison") else {
        return Vec::new();
    };
    let of = |row: &Row, column: &str| {
        let cell = section.table.cell(row, column)?;
        match cell.value {
            Value::Percent(value) => Some((value, cell.interval)),
            _ => None,
        }
    };
    let rows = section.table.rows.iter();
    rows.filter(|row| row.ranked)
        .filter_map(|row| {
            let (savings, cost_between) = of(row, "cost_savings")?;
            let (survival, survival_between) = of(row, "survival")?;
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
    let rows = report.section("comparison").into_iter();
    rows.flat_map(|section| &section.table.rows)
        .filter(|row| row.role == Role::Strategy)
        .filter(|row| !points.iter().any(|point| point.row.name == row.name))
        .map(|row| row.name.as_str())
        .collect()
}

fn draw(scene: &mut Scene, panel: &Panel, points: &[Point<'_>]) {
    let clamped =
        |x: f64, y: f64| panel.at(x.clamp(panel.x.0, panel.x.1), y.clamp(panel.y.0, panel.y.1));
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
                let plain = [place[0], place[1], place[2], place[3]];
                scene.rect(plain, super::scene::PAPER, 1.0);
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
        let name = fitted(&point.row.name, SIZE, f64::from(WIDTH) - RIGHT - 58.0);
        scene.label((RIGHT + 44.0, y), &name, Anchor::Start);
    }
}
