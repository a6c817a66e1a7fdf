//! The settings of a sweep: what each saves and keeps, and those that nothing beats.

use super::scatter::{Better, HEIGHT, Point, Scatter, ends};
use super::scene::{BLUE, GREEN, HPos, INK, Mark, ORANGE, SIZE, Scene, VERMILLION, fitted};
use crate::compare::sweep::{Sweep, SweepPoint};
use crate::report::figure;
use crate::stats::Estimate;

const RIGHT: f64 = 780.0;
const ROW: f64 = 19.0;

/// The most settings that are numbered: with more, the numbers hide the points.
const MOST_NAMED: usize = 24;

/// The right edges of the list's columns: savings, quality, share of rounds on the front.
const COLUMNS: [f64; 3] = [560.0, 690.0, 784.0];

/// A setting that is not broken and was measured.
struct Drawn<'a> {
    point: &'a SweepPoint,
    saves: Estimate,
    keeps: Estimate,
}

impl Drawn<'_> {
    fn is_same_as(&self, other: &Self) -> bool {
        (self.saves, self.keeps) == (other.saves, other.keeps)
    }

    fn is_default(&self) -> bool {
        self.point.values.is_empty()
    }

    fn is_special(&self) -> bool {
        self.point.recommended || self.is_default()
    }

    fn place(&self, is_listed: bool) -> Point {
        let (radius, color) = match (self.point.recommended, self.is_default()) {
            (true, _) => (7.0, VERMILLION),
            (false, true) => (6.0, GREEN),
            (false, false) => (4.0, BLUE),
        };
        let interval = |it: Estimate| it.confidence_interval.filter(|_| is_listed).map(ends);
        Point {
            at: (self.saves.point_estimate, self.keeps.point_estimate),
            intervals: [interval(self.saves), interval(self.keeps)],
            radius,
            color,
            on_front: self.point.on_front,
        }
    }
}

/// One point per setting, and a list of those on the front.
pub(crate) fn scene(sweep: &Sweep) -> Scene {
    let title = format!("What {} settings save and keep", sweep.points.len());
    let mut scene = Scene::new(&title);
    let drawn = sweep.points.iter().filter_map(|point| {
        Some(Drawn {
            saves: point.cost.filter(|_| point.broken.is_none())?,
            keeps: point.quality?,
            point,
        })
    });
    let drawn: Vec<Drawn<'_>> = drawn.collect();
    let sessions = figure::many(sweep.tune.len(), "session", "sessions");
    let y = scene.legend(&[
        (Mark::Dot, BLUE, "on the front"),
        (Mark::Ring, BLUE, "beaten by another"),
        (Mark::Dot, VERMILLION, "recommended: the knee"),
        (Mark::Dot, GREEN, "default"),
        (Mark::Line(0.8), ORANGE, "front"),
        (
            Mark::Line(0.35),
            INK,
            &format!("95 % interval over {sessions}"),
        ),
    ]);
    if drawn.is_empty() {
        let words = "every setting is broken or was not measured";
        return scene.with_only(y, words);
    }
    let listed = listed(&drawn);
    let points = drawn.iter().enumerate();
    let points: Vec<Point> = points
        .map(|(at, one)| one.place(listed.contains(&at)))
        .collect();
    let titles = [(sweep.cost.as_str(), 8), (sweep.quality.as_str(), 6)];
    let place = (y + 4.0, RIGHT);
    let mut scatter = Scatter::new(&mut scene, &points, place, Better::Right, titles);
    // The special ones on top.
    let mut order: Vec<(&Drawn<'_>, &Point)> = drawn.iter().zip(&points).collect();
    order.sort_by_key(|(one, _)| (one.point.recommended, one.is_default(), one.point.on_front));
    for (_, point) in order {
        scatter.dot(&mut scene, point);
    }
    for (at, number) in listed.iter().zip(1..) {
        scatter.number(&mut scene, &points[*at], number);
    }
    let end = list(&mut scene, sweep, &drawn, &listed, y + 4.0 + HEIGHT + 62.0);
    scene.ends_at(end);
    scene
}

/// The points that get a number: the default, the recommended one, and each other result on the front
/// once.
fn listed(drawn: &[Drawn<'_>]) -> Vec<usize> {
    let special = drawn.iter().filter(|one| one.is_special());
    let mut left = MOST_NAMED - special.clone().count().min(2);
    let mut listed: Vec<usize> = Vec::new();
    for (at, one) in drawn.iter().enumerate() {
        let is_new = || {
            let mut named = listed
                .iter()
                .map(|other| &drawn[*other])
                .chain(special.clone());
            !named.any(|other| one.is_same_as(other))
        };
        if one.is_special() {
            listed.push(at);
        } else if one.point.on_front && left > 0 && is_new() {
            left -= 1;
            listed.push(at);
        }
    }
    listed
}

fn list(scene: &mut Scene, sweep: &Sweep, drawn: &[Drawn<'_>], listed: &[usize], top: f64) -> f64 {
    let heads = [&sweep.cost, &sweep.quality, "on the front"];
    for (right, head) in COLUMNS.iter().zip(heads) {
        scene.label((*right, top), head, HPos::Right);
    }
    scene.label((44.0, top), "setting", HPos::Left);
    let mut y = top + ROW;
    for (number, one) in listed.iter().map(|at| &drawn[*at]).enumerate() {
        scene.label((34.0, y), &(number + 1).to_string(), HPos::Right);
        let mut name = one.point.label();
        if one.point.recommended {
            name = format!("{name}; recommended");
        }
        let name = fitted(&name, SIZE, COLUMNS[0] - 44.0 - 120.0);
        scene.label((44.0, y), &name, HPos::Left);
        let share = one.point.front_share.map(super::axes::percent);
        let cells = [
            with_interval(one.saves),
            with_interval(one.keeps),
            share.unwrap_or_default(),
        ];
        for (right, cell) in COLUMNS.iter().zip(cells) {
            scene.label((*right, y), &cell, HPos::Right);
        }
        y += ROW;
    }
    let all = drawn.iter().enumerate();
    let unlisted = all.filter(|(at, one)| one.point.on_front && !listed.contains(at));
    let is_same = |(_, one): &(usize, &Drawn<'_>)| {
        let mut listed = listed.iter();
        listed.any(|at| drawn[*at].is_same_as(one))
    };
    let (same, others): (Vec<_>, Vec<_>) = unlisted.partition(is_same);
    let counts = [
        (same.len(), "more on the front, each the same as one above"),
        (others.len(), "more on the front, not named here"),
        (
            sweep.points.len() - drawn.len(),
            "not drawn: broken, or not measured",
        ),
    ];
    for (count, words) in counts.into_iter().filter(|(count, _)| *count > 0) {
        y = scene.paragraph(y + 4.0, &format!("{count} {words}"));
    }
    if sweep.tune.len() > 1 {
        let words = "on the front: in so many rounds, one session left out of each";
        y = scene.paragraph(y + 4.0, words);
    }
    y + 8.0
}

fn with_interval(estimate: Estimate) -> String {
    let half = estimate.confidence_interval.map(|it| it.half_width());
    let half = half.map_or_else(String::new, |half| format!(" ± {}", figure::points(half)));
    format!("{}{half}", figure::percent(estimate.point_estimate))
}
