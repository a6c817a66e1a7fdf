//! The settings of a sweep: how much each saves and keeps, and the front of those that nothing
//! beats.

use super::axes::percent;
use super::scatter::{self, Name, Point, ends};
use super::scene::{BLUE, GREEN, INK, Mark, ORANGE, SIZE, Scene, VERMILLION, fitted};
use crate::compare::sweep::{Sweep, SweepPoint};
use crate::report::display;
use crate::stats::Estimate;

/// The most settings that are numbered: with more, the numbers hide the points.
const MOST_NAMED: usize = 24;

/// One point per setting, and a list of those on the front.
pub(crate) fn scene(sweep: &Sweep, width: f64) -> Scene {
    let title = format!("What {} settings save and keep", sweep.points.len());
    let mut scene = Scene::new(&title, width);
    let sessions = display::many(sweep.tune.len(), "session", "sessions");
    let interval = format!("95 % interval over {sessions}");
    scene.legend(&[
        (Mark::Dot, BLUE, "on the front"),
        (Mark::Ring, BLUE, "beaten by another"),
        (Mark::Dot, VERMILLION, "chosen"),
        (Mark::Dot, GREEN, "default"),
        (Mark::Line(0.8), ORANGE, "front"),
        (Mark::Line(0.35), INK, &interval),
    ]);
    let drawn = sweep.points.iter().filter_map(|point| {
        let is_whole = point.broken.is_none();
        Some((point, (point.cost.filter(|_| is_whole)?, point.quality?)))
    });
    let drawn: Vec<(&SweepPoint, (Estimate, Estimate))> = drawn.collect();
    if drawn.is_empty() {
        scene.note("every setting is broken or was not measured");
        return scene;
    }
    // Named are the default, the chosen one, and each other result on the front once.
    let is_special = |point: &SweepPoint| point.standing.is_some() || point.values.is_empty();
    let special = drawn.iter().filter(|(point, _)| is_special(point));
    let mut named: Vec<(Estimate, Estimate)> = special.map(|(_, values)| *values).collect();
    let (mut same, mut others) = (0, 0);
    let points = drawn.iter().map(|(point, values)| {
        let is_known = named.contains(values);
        let is_new = point.on_front && !is_known && named.len() < MOST_NAMED;
        let is_named = is_special(point) || is_new;
        if is_new {
            named.push(*values);
        } else if point.on_front && !is_named {
            same += usize::from(is_known);
            others += usize::from(!is_known);
        }
        place(point, *values, is_named)
    });
    let points: Vec<Point> = points.collect();
    let titles = [sweep.cost.as_str(), sweep.quality.as_str()];
    scatter::draw(&mut scene, &points, titles);
    let counts = [
        (same, "more on the front, each the same as one above"),
        (others, "more on the front, not named here"),
        (
            sweep.points.len() - drawn.len(),
            "not drawn: broken, or not measured",
        ),
    ];
    for (count, words) in counts.into_iter().filter(|(count, _)| *count > 0) {
        scene.note(&format!("{count} {words}"));
    }
    if sweep.tune.len() > 1 {
        scene.note("on the front: in so many rounds, one session left out of each");
    }
    scene
}

fn place(point: &SweepPoint, (saves, keeps): (Estimate, Estimate), is_named: bool) -> Point {
    let (radius, color) = match (point.standing.is_some(), point.values.is_empty()) {
        (true, _) => (7.0, VERMILLION),
        (false, true) => (6.0, GREEN),
        (false, false) => (4.0, BLUE),
    };
    let interval = |it: Estimate| it.confidence_interval.filter(|_| is_named).map(ends);
    Point {
        at: (saves.point_estimate, keeps.point_estimate),
        intervals: [interval(saves), interval(keeps)],
        radius,
        color,
        is_hollow: !point.on_front,
        on_front: point.on_front,
        name: if is_named {
            Name::Listed(in_words(point, saves, keeps))
        } else {
            Name::None
        },
        tip: in_words(point, saves, keeps),
    }
}

/// The setting, how much it saves and keeps, and how often it is on the front.
fn in_words(point: &SweepPoint, saves: Estimate, keeps: Estimate) -> String {
    let standing = point
        .standing
        .map_or_else(String::new, |standing| format!("; {}", standing.words()));
    // A standing is never cut: it is what the point is named for.
    let room = if standing.is_empty() { 340.0 } else { 220.0 };
    let name = format!("{}{standing}", fitted(&point.label(), SIZE, room));
    let share = point
        .front_share
        .map(|share| format!(", on the front {}", percent(share)));
    let [saves, keeps] = [saves, keeps].map(|estimate| {
        let half = estimate.confidence_interval.map(|it| it.half_width());
        let half = half.map_or_else(String::new, |half| format!(" ± {}", display::points(half)));
        format!("{}{half}", display::percent(estimate.point_estimate))
    });
    format!(
        "{name}: saves {saves}, keeps {keeps}{}",
        share.unwrap_or_default()
    )
}
