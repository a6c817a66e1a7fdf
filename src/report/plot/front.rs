//! The settings of a sweep: how much each saves and keeps, and the front of those that nothing
//! beats.

use super::axes::percent;
use super::scatter::{self, Name, Point, ends};
use super::scene::{BLUE, GREEN, INK, Mark, ORANGE, SIZE, Scene, VERMILLION, fitted};
use crate::compare::sweep::{Sweep, SweepPoint, short_label};
use crate::report::display;
use crate::stats::Estimate;

/// The most settings that are numbered: with more, the numbers hide the points.
const MOST_NAMED: usize = 24;

/// Up to so many settings are all listed.
const MOST_LISTED: usize = 8;

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
        scene.paragraph("every setting is broken or was not measured");
        return scene;
    }
    // Listed are the default, the chosen one, and each other result on the front once; all settings where
    // they are few.
    let is_special = |point: &&SweepPoint| point.standing.is_some() || point.values.is_empty();
    let all = drawn.iter().map(|(point, _)| *point);
    let mut listed: Vec<&SweepPoint> = all.filter(is_special).collect();
    let is_same = |one: &SweepPoint, other: &SweepPoint| {
        (one.cost, one.quality) == (other.cost, other.quality)
    };
    let is_short = drawn.len() <= MOST_LISTED;
    let mut others = 0;
    for (point, _) in &drawn {
        let is_known = listed.iter().any(|it| is_same(it, point));
        if is_known || !(point.on_front || is_short) {
            continue;
        }
        if listed.len() < MOST_NAMED {
            listed.push(point);
        } else {
            others += 1;
        }
    }
    let points = drawn.iter().map(|(point, values)| {
        let name = listed.iter().any(|it| std::ptr::eq(*it, *point));
        let name = name.then(|| {
            let same = drawn.iter().map(|(other, _)| *other);
            let same = same.filter(|other| is_same(other, point));
            let same = same.filter(|other| !listed.iter().any(|it| std::ptr::eq(*it, *other)));
            let same: Vec<String> = same.map(|other| short_label(&other.values)).collect();
            // A standing is never cut: it is what the point is named for.
            let room = point.standing.map_or(340.0, |_| 220.0);
            let short = fitted(&short_label(&point.values), SIZE, room);
            let words = in_words(&short, point, *values);
            match same.as_slice() {
                [] => words,
                [one] => format!("{words}; the same: {one}"),
                [one, ..] => format!("{words}; the same: {one} and {} more", same.len() - 1),
            }
        });
        place(point, *values, name)
    });
    let points: Vec<Point> = points.collect();
    let titles = [sweep.cost, sweep.quality].map(|axis| axis.name().to_owned());
    scatter::draw(&mut scene, &points, [&titles[0], &titles[1]]);
    let not_drawn = sweep.points.len() - drawn.len();
    let counts = [
        (others, "more on the front, not named here"),
        (not_drawn, "not drawn: broken, or not measured"),
    ];
    for (count, words) in counts.into_iter().filter(|(count, _)| *count > 0) {
        scene.paragraph(&format!("{count} {words}"));
    }
    if sweep.tune.len() > 1 {
        scene.paragraph("on the front: in so many rounds, one session left out of each");
    }
    scene
}

/// A setting as a point; the intervals are those of the ones that are in the list.
fn place(point: &SweepPoint, (saves, keeps): (Estimate, Estimate), name: Option<String>) -> Point {
    let (radius, color) = match (point.standing.is_some(), point.values.is_empty()) {
        (true, _) => (7.0, VERMILLION),
        (false, true) => (6.0, GREEN),
        (false, false) => (4.0, BLUE),
    };
    let interval = |it: Estimate| it.confidence_interval.filter(|_| name.is_some()).map(ends);
    Point {
        at: (saves.point_estimate, keeps.point_estimate),
        intervals: [interval(saves), interval(keeps)],
        radius,
        color,
        is_hollow: !point.on_front,
        on_front: point.on_front,
        name: name.map_or(Name::None, Name::Listed),
        tip: in_words(&point.label(), point, (saves, keeps)),
    }
}

/// The setting, how much it saves and keeps, and how often it is on the front.
fn in_words(name: &str, point: &SweepPoint, (saves, keeps): (Estimate, Estimate)) -> String {
    let standing = point.standing.map(|it| format!("; {}", it.words()));
    let standing = standing.unwrap_or_default();
    let share = point
        .front_share
        .map(|it| format!(", on the front {}", percent(it)));
    let share = share.unwrap_or_default();
    let [saves, keeps] = [saves, keeps].map(|estimate| {
        let half = estimate.confidence_interval.map(|it| it.half_width());
        let half = half.map(|half| format!(" ± {}", display::points(half)));
        display::percent(estimate.point_estimate) + &half.unwrap_or_default()
    });
    format!("{name}{standing}: saves {saves}, keeps {keeps}{share}")
}
