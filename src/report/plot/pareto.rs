//! Bill saved against facts kept: the strategies that no other beats on both, each with its intervals and its
//! name.

use super::axes::{PlotPanel, percent, reach};
use super::scene::{
    BLUE, Color, HPos, INK, KeyMark, ORANGE, PAPER, PlotScene, SIZE, fitted, text_width,
};
use crate::report::headline::label;
use crate::report::{Report, Row, display};
use crate::stats::{ConfidenceInterval, pareto};

/// Costs that are further above those of full history are drawn at the edge: one strategy that multiplies
/// the bill would squeeze all others into a corner.
const LOWEST: f64 = -0.5;

/// The colour of a strategy that another beats, readable on white and on black.
const BEATEN: Color = Color(125, 132, 140);

/// The radius of a point.
const RADIUS: f64 = 5.0;

/// The length of an arrow, in radii of its point.
const ARROW: f64 = 2.6;

/// The height of a chart.
const HEIGHT: f64 = 380.0;

/// A point of the chart.
struct PlotPoint {
    at: (f64, f64),
    /// The horizontal and the vertical interval.
    intervals: [Option<ConfidenceInterval>; 2],
    /// Whether it is broken or never fired.
    is_hollow: bool,
    /// Whether no other point is better: the line goes along these.
    on_front: bool,
    /// Beside the point; where there is no room for it, a number, which a list below explains.
    name: String,
    /// The text under the pointer.
    tip: String,
}

impl PlotPoint {
    fn color(&self) -> Color {
        match (self.is_hollow, self.on_front) {
            (true, _) => INK,
            (false, true) => BLUE,
            (false, false) => BEATEN,
        }
    }
}

/// One point per strategy.
pub(crate) fn scene(report: &Report, width: f64) -> PlotScene {
    let (column, kept) = report.kept();
    let mut scene = PlotScene::new(&format!("Bill saved against {kept}"), width);
    scene.legend(&[
        (KeyMark::Dot, BLUE, "no other is better on both"),
        (KeyMark::Dot, BEATEN, "another is better on both"),
        (KeyMark::Ring, INK, "broken or never fired: not compared"),
        (KeyMark::Line(0.8), ORANGE, "front"),
        (KeyMark::Line(0.35), INK, "95 % interval over sessions"),
    ]);
    let rows = report.strategies();
    let mut points: Vec<PlotPoint> = rows.filter_map(|row| point(report, row, column)).collect();
    if points.is_empty() {
        scene.note("cost and facts were not measured together for any strategy");
        return scene;
    }
    let compared =
        points.iter().map(|point| if point.is_hollow { [f64::NAN; 2] } else { point.at.into() });
    let on_front = pareto::front(&compared.collect::<Vec<_>>());
    for (point, on_front) in points.iter_mut().zip(on_front) {
        point.on_front = on_front;
    }
    draw(&mut scene, &points, kept);
    let rows = report.strategies();
    let left_out = rows.filter(|row| point(report, row, column).is_none());
    if let Some(names) = display::listed(left_out.map(|row| label(&row.name)), ", ") {
        scene.paragraph(&format!("not measured: {names}"));
    }
    scene
}

/// The range of the horizontal or the vertical axis.
fn range(points: &[PlotPoint], axis: usize) -> (f64, f64) {
    let lowest = if axis == 0 { LOWEST } else { f64::NEG_INFINITY };
    // Where all are broken, they alone say where the axes go.
    let all_hollow = points.iter().all(|point| point.is_hollow);
    let shown = points.iter().filter(|point| all_hollow || !point.is_hollow);
    let values = shown.clone().map(|point| <[f64; 2]>::from(point.at)[axis].max(lowest));
    let intervals = shown.filter_map(|point| point.intervals[axis]);
    let clamped = intervals.map(|one| (one.lower_bound.max(lowest), one.upper_bound.max(lowest)));
    let zero = (axis == 0).then_some(0.0);
    let (low, high) = reach(values.chain(zero), clamped, (0.1, 1.0), (0.07, 0.02));
    (low, high.min(1.05))
}

/// A strategy by its savings of the bill and what it keeps.
fn point(report: &Report, row: &Row, column: &str) -> Option<PlotPoint> {
    let (saved, saved_interval) = report.share(row, "bill_saved")?;
    let (kept, kept_interval) = report.share(row, column)?;
    let [in_words, kept_in_words] = [saved, kept].map(display::percent);
    let far = (saved < LOWEST).then(|| format!(", {in_words}"));
    let name = label(&row.name) + &far.unwrap_or_default();
    let tip = format!("{}: bill saved {in_words}, kept {kept_in_words}", row.name);
    Some(PlotPoint {
        at: (saved, kept),
        intervals: [saved_interval, kept_interval],
        is_hollow: !row.ranked,
        on_front: false,
        name,
        tip: [vec![tip], row.marks_in_words()].concat().join("; "),
    })
}

/// Draws the chart and the list; a point outside is drawn at the edge.
fn draw(scene: &mut PlotScene, points: &[PlotPoint], kept: &str) {
    let edges = [80.0, scene.y, scene.right(), scene.y + HEIGHT];
    let panel = PlotPanel { edges, x: range(points, 0), y: range(points, 1) };
    let columns = if scene.is_narrow() { 5 } else { 9 };
    let below = ("bill saved, % of full history; right is better", columns, &percent as _);
    panel.axes(scene, below, (&format!("{kept}; up is better"), 7, &percent));
    let mut taken = Taken {
        panel,
        points: points.iter().map(|point| panel.clamped(point.at)).collect(),
        lines: front(scene, &panel, points),
        boxes: Vec::new(),
    };
    for point in points {
        let (x, y) = point.at;
        let across = point.intervals[0].map(|one| [(one.lower_bound, y), (one.upper_bound, y)]);
        let up = point.intervals[1].map(|one| [(x, one.lower_bound), (x, one.upper_bound)]);
        for interval in across.into_iter().chain(up) {
            let ends = interval.map(|end| panel.clamped(end));
            scene.line(&ends, INK, 1, 0.35);
            taken.lines.push(around(ends));
        }
        let (x, y) = panel.clamped(point.at);
        let reach = beyond(&panel, point.at).map_or(1.0, |_| ARROW);
        let room = 1.0 + reach * RADIUS;
        taken.boxes.push([x - room, y - room, x + room, y + room]);
    }
    for point in points {
        let at = panel.clamped(point.at);
        scene.tip(&point.tip, |scene| match beyond(&panel, point.at) {
            Some(direction) => arrow(scene, at, direction, point),
            None => scene.dot(at, RADIUS, point.color(), point.is_hollow),
        });
    }
    scene.y += HEIGHT + 56.0;
    let mut listed = Vec::new();
    for point in points {
        let most = if scene.is_narrow() { 0.6 } else { 0.45 };
        let most = most * (panel.edges[2] - panel.edges[0]);
        let text = fitted(&point.name, most);
        if !write(scene, &mut taken, point, &text) {
            listed.push(point);
        }
    }
    for (point, number) in listed.into_iter().zip(1..) {
        write(scene, &mut taken, point, &number.to_string());
        scene.paragraph(&format!("{number}  {}", point.name));
    }
}

/// The edge beyond which a point lies, as a direction; `None` for a point inside.
fn beyond(panel: &PlotPanel, (x, y): (f64, f64)) -> Option<(f64, f64)> {
    let [right, up]: [f64; 2] =
        [(x, panel.x), (y, panel.y)].map(|(value, (low, high))| match value {
            _ if value < low => -1.0,
            _ if value > high => 1.0,
            _ => 0.0,
        });
    let length = libm::hypot(right, up);
    (length > 0.0).then(|| (right / length, -up / length))
}

/// Draws a point beyond the edge as an arrow that points there.
fn arrow(scene: &mut PlotScene, (x, y): (f64, f64), (right, down): (f64, f64), point: &PlotPoint) {
    let (length, half) = (ARROW * RADIUS, 1.2 * RADIUS);
    let base = (x - right * length, y - down * length);
    let [one, other] = [half, -half].map(|half| (base.0 - down * half, base.1 + right * half));
    let corners = [(x, y), one, other, (x, y)];
    let fill = if point.is_hollow { PAPER } else { point.color() };
    scene.area(&corners, fill);
    scene.line(&corners, point.color(), 2, 1.0);
}

/// The parts of a chart that names keep away from.
struct Taken {
    /// The edges that names do not cross.
    panel: PlotPanel,
    /// The positions of all points: a name is nearer to its own than to any other.
    points: Vec<(f64, f64)>,
    /// The boxes around intervals and the front, which a name covers only where there is no other room.
    lines: Vec<[f64; 4]>,
    /// The boxes of points and names, which no name covers.
    boxes: Vec<[f64; 4]>,
}

/// The box around a horizontal or vertical line.
fn around([(x, y), (to_x, to_y)]: [(f64, f64); 2]) -> [f64; 4] {
    let (left, upper, right, lower) = (x.min(to_x), y.min(to_y), x.max(to_x), y.max(to_y));
    [left - 1.0, upper - 1.0, right + 1.0, lower + 1.0]
}

fn is_apart(one: [f64; 4], other: [f64; 4]) -> bool {
    one[2] < other[0] || other[2] < one[0] || one[3] < other[1] || other[3] < one[1]
}

/// The distance of a point from a box.
fn distance((x, y): (f64, f64), [left, upper, right, lower]: [f64; 4]) -> f64 {
    let across = (left - x).max(x - right).max(0.0);
    libm::hypot(across, (upper - y).max(y - lower).max(0.0))
}

/// Draws the line along the points that no other beats, and returns the boxes around its parts.
fn front(scene: &mut PlotScene, panel: &PlotPanel, points: &[PlotPoint]) -> Vec<[f64; 4]> {
    let mut front: Vec<_> = points.iter().filter(|point| point.on_front).collect();
    front.sort_by(|one, other| one.at.0.total_cmp(&other.at.0));
    let mut steps = Vec::new();
    for (number, here) in front.iter().enumerate() {
        // Of two neighbours, each is better on one axis: the corner has the worse value of both.
        if let Some(before) = number.checked_sub(1).map(|before| front[before]) {
            steps.push(panel.clamped((before.at.0, here.at.1)));
        }
        steps.push(panel.clamped(here.at));
    }
    scene.line(&steps, ORANGE, 2, 0.8);
    steps.windows(2).map(|ends| around([ends[0], ends[1]])).collect()
}

/// Writes a text at the nearest free place around a point, with a line to it where it is far; `false` if
/// there is no such place.
fn write(scene: &mut PlotScene, taken: &mut Taken, point: &PlotPoint, text: &str) -> bool {
    let panel = taken.panel;
    let (x, y) = panel.clamped(point.at);
    let (half, high) = (text_width(text, SIZE) / 2.0 + 2.0, SIZE * 0.55);
    let [left, upper, right, lower] = panel.edges;
    let rings = (1..9).flat_map(|ring| (0..12).map(move |turn| (ring, turn)));
    let places = rings.map(|(ring, turn)| {
        let angle = std::f64::consts::TAU * (f64::from(turn) / 12.0 - 0.125);
        let far = 5.0 + 10.0 * f64::from(ring);
        let (right, down) = (libm::cos(angle), libm::sin(angle));
        // A text beside the point begins or ends there; one above or below is centred.
        let beside = half * (right * 1.5).clamp(-1.0, 1.0);
        let to = (x + right * far + beside, y + down * far);
        let place = [to.0 - half, to.1 - high, to.0 + half, to.1 + high];
        (far, to, place)
    });
    let mut free = places.filter(|(.., place)| {
        let inside =
            place[0] >= left && place[2] <= right && place[1] >= upper && place[3] <= lower;
        inside && taken.boxes.iter().all(|other| is_apart(*place, *other))
    });
    let Some(nearest) = free.next() else {
        return false;
    };
    let clear = std::iter::once(nearest).chain(free).find(|(.., place)| {
        let own = distance((x, y), *place);
        taken.points.iter().all(|other| distance(*other, *place) >= own)
            && taken.lines.iter().all(|line| is_apart(*place, *line))
    });
    let (far, to, place) = clear.unwrap_or(nearest);
    if clear.is_none() {
        scene.rect(place, PAPER, 0.8);
    }
    if far > 20.0 {
        let end = (x.clamp(place[0], place[2]), y.clamp(place[1], place[3]));
        // The line to an arrow begins at its base.
        let (right, down) = beyond(&panel, point.at).unwrap_or_default();
        let length = ARROW * RADIUS;
        let from = (x - right * length, y - down * length);
        scene.line(&[from, end], INK, 1, 0.35);
    }
    taken.boxes.push(place);
    scene.label(to, text, HPos::Center);
    true
}
