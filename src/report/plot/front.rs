//! The settings of a sweep: what each saves and keeps, and those that nothing beats.

use super::axes::{Axis, Panel, percent, reach};
use super::pareto::place;
use super::scene::{Anchor, BLUE, Color, GREEN, INK, Key, ORANGE, SIZE, Scene, VERMILLION, fitted};
use crate::compare::sweep::{Sweep, SweepPoint};
use crate::report::figure;
use crate::stats::Estimate;

const LEFT: f64 = 80.0;
const RIGHT: f64 = 780.0;
const HEIGHT: f64 = 380.0;
const ROW: f64 = 19.0;

/// Settings that are named: with more, the numbers hide the points.
const MOST_NAMED: usize = 24;

/// Where the columns of the list end, from the left: what is saved, what is kept, how often on the front.
const COLUMNS: [f64; 3] = [560.0, 690.0, 784.0];

/// A setting that is not broken and was measured.
struct Drawn<'a> {
    point: &'a SweepPoint,
    saves: Estimate,
    keeps: Estimate,
}

impl Drawn<'_> {
    fn at(&self) -> (f64, f64) {
        (self.saves.point_estimate, self.keeps.point_estimate)
    }

    fn is_same_as(&self, other: &Self) -> bool {
        (self.saves, self.keeps) == (other.saves, other.keeps)
    }

    fn is_default(&self) -> bool {
        self.point.values.is_empty()
    }

    fn look(&self) -> (f64, Color, bool) {
        let hollow = !self.point.on_front;
        match (self.point.recommended, self.is_default()) {
            (true, _) => (7.0, VERMILLION, hollow),
            (false, true) => (6.0, GREEN, hollow),
            (false, false) => (4.0, BLUE, hollow),
        }
    }
}

/// One point per setting, and a list of those on the front.
pub(crate) fn scene(sweep: &Sweep) -> Scene {
    let title = format!("What {} settings save and keep", sweep.points.len());
    let mut scene = Scene::new(&title);
    let drawn: Vec<Drawn<'_>> = sweep.points.iter().filter_map(drawn).collect();
    let dot = |hollow, color, text: &'static str| Key::dot(text, color, hollow);
    let sessions = figure::many(sweep.tune.len(), "session", "sessions");
    let intervals = format!("95 % interval over {sessions}");
    let keys = [
        dot(false, BLUE, "on the front"),
        dot(true, BLUE, "beaten by another"),
        dot(false, VERMILLION, "recommended: the knee"),
        dot(false, GREEN, "default"),
        Key::line("front", ORANGE, false).faint(0.8),
        Key::line(&intervals, INK, false).faint(0.35),
    ];
    let y = scene.legend(&keys);
    if drawn.is_empty() {
        let words = "every setting is broken or was not measured";
        return scene.with_only(y, words);
    }
    let listed = listed(&drawn);
    let panel = panel(&mut scene, sweep, &drawn, &listed, y);
    points(&mut scene, &panel, &drawn, &listed);
    let end = list(&mut scene, sweep, &drawn, &listed, y + 4.0 + HEIGHT + 62.0);
    scene.ends_at(end);
    scene
}

fn drawn(point: &SweepPoint) -> Option<Drawn<'_>> {
    Some(Drawn {
        saves: point.cost.filter(|_| point.broken.is_none())?,
        keeps: point.quality?,
        point,
    })
}

/// Which points are numbered: the front with what came out the same once, and always the default and the
/// recommended one.
fn listed(drawn: &[Drawn<'_>]) -> Vec<usize> {
    let is_special = |one: &Drawn<'_>| one.point.recommended || one.is_default();
    let mut left = MOST_NAMED - drawn.iter().filter(|one| is_special(one)).count().min(2);
    let mut listed: Vec<usize> = Vec::new();
    for (at, one) in drawn.iter().enumerate() {
        let same = |other: &Drawn<'_>| one.is_same_as(other);
        let has_better_name =
            || (drawn.iter().enumerate()).any(|(i, it)| i != at && is_special(it) && same(it));
        let is_new = || !listed.iter().any(|other| same(&drawn[*other]));
        if is_special(one) {
            listed.push(at);
        } else if one.point.on_front && left > 0 && is_new() && !has_better_name() {
            left -= 1;
            listed.push(at);
        }
    }
    listed
}

fn panel(scene: &mut Scene, sweep: &Sweep, drawn: &[Drawn<'_>], listed: &[usize], y: f64) -> Panel {
    let along = |of: fn(&Drawn<'_>) -> Estimate| {
        let listed = listed
            .iter()
            .filter_map(|at| of(&drawn[*at]).confidence_interval);
        let intervals = listed.map(|it| (it.lower_bound, it.upper_bound));
        let values = drawn.iter().map(|one| of(one).point_estimate);
        reach(values, intervals, (0.1, 1.0), (0.07, 0.02))
    };
    let panel = Panel {
        edges: [LEFT, y + 4.0, RIGHT, y + 4.0 + HEIGHT],
        x: along(|one| one.saves),
        y: along(|one| one.keeps),
    };
    let below: Axis<'_> = (&format!("{}; right is better", sweep.cost), 8, &percent);
    let beside: Axis<'_> = (&format!("{}; up is better", sweep.quality), 6, &percent);
    panel.axes(scene, below, beside);
    panel
}

fn points(scene: &mut Scene, panel: &Panel, drawn: &[Drawn<'_>], listed: &[usize]) {
    let clamped = |x: f64, y: f64| panel.clamped(x, y);
    let mut front: Vec<(f64, f64)> = drawn
        .iter()
        .filter(|one| one.point.on_front)
        .map(Drawn::at)
        .collect();
    front.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (at, here) in front.iter().enumerate() {
        // Up to the next point nothing saves less for the same: the corner is where both are met.
        if let Some(before) = at.checked_sub(1).map(|before| front[before]) {
            steps.push(clamped(before.0, here.1));
        }
        steps.push(clamped(here.0, here.1));
    }
    scene.line(steps, ORANGE, 2, 0.8);
    for one in listed.iter().map(|at| &drawn[*at]) {
        let (x, y) = one.at();
        if let Some(it) = one.saves.confidence_interval {
            let ends = [it.lower_bound, it.upper_bound].map(|end| clamped(end, y));
            scene.line(ends.to_vec(), INK, 1, 0.35);
        }
        if let Some(it) = one.keeps.confidence_interval {
            let ends = [it.lower_bound, it.upper_bound].map(|end| clamped(x, end));
            scene.line(ends.to_vec(), INK, 1, 0.35);
        }
    }
    let mut taken: Vec<[f64; 4]> = Vec::new();
    // The special ones on top.
    let mut order: Vec<&Drawn<'_>> = drawn.iter().collect();
    order.sort_by_key(|one| (one.point.recommended, one.is_default(), one.point.on_front));
    for one in order {
        let (x, y) = clamped(one.at().0, one.at().1);
        let (radius, color, hollow) = one.look();
        scene.dot((x, y), radius, color, hollow);
        let room = radius + 1.0;
        taken.push([x - room, y - room, x + room, y + room]);
    }
    for (number, one) in listed.iter().map(|at| &drawn[*at]).enumerate() {
        let at = clamped(one.at().0, one.at().1);
        place(scene, panel, at, &(number + 1).to_string(), &mut taken);
    }
}

fn list(scene: &mut Scene, sweep: &Sweep, drawn: &[Drawn<'_>], listed: &[usize], top: f64) -> f64 {
    let heads = [&sweep.cost, &sweep.quality, "on the front"];
    for (right, head) in COLUMNS.iter().zip(heads) {
        scene.label((*right, top), head, Anchor::End);
    }
    scene.label((44.0, top), "setting", Anchor::Start);
    let mut y = top + ROW;
    for (number, one) in listed.iter().map(|at| &drawn[*at]).enumerate() {
        scene.label((34.0, y), &(number + 1).to_string(), Anchor::End);
        let mut name = one.point.label();
        if one.point.recommended {
            name = format!("{name}; recommended");
        }
        let name = fitted(&name, SIZE, COLUMNS[0] - 44.0 - 120.0);
        scene.label((44.0, y), &name, Anchor::Start);
        let share = one.point.front_share.map(|share| {
            let text = figure::percent(share);
            text.replace(".0 %", " %")
        });
        let cells = [
            with_interval(one.saves),
            with_interval(one.keeps),
            share.unwrap_or_default(),
        ];
        for (right, cell) in COLUMNS.iter().zip(cells) {
            scene.label((*right, y), &cell, Anchor::End);
        }
        y += ROW;
    }
    let unlisted = || {
        let all = drawn.iter().enumerate();
        all.filter(|(at, one)| one.point.on_front && !listed.contains(at))
    };
    let same = unlisted()
        .filter(|(_, one)| listed.iter().any(|at| drawn[*at].is_same_as(one)))
        .count();
    let others = unlisted().count() - same;
    let broken = sweep.points.len() - drawn.len();
    let mut words = Vec::new();
    if same > 0 {
        words.push(format!(
            "{same} more on the front, each the same as one above"
        ));
    }
    if others > 0 {
        words.push(format!("{others} more on the front, not named here"));
    }
    if broken > 0 {
        words.push(format!("{broken} not drawn: broken, or not measured"));
    }
    if sweep.tune.len() > 1 {
        words.push("on the front: in so many rounds, one session left out of each".to_owned());
    }
    for line in words {
        y = scene.paragraph(y + 4.0, &line);
    }
    y + 8.0
}

fn with_interval(estimate: Estimate) -> String {
    let half = estimate.confidence_interval.map(|it| it.half_width());
    let half = half.map_or_else(String::new, |half| format!(" ± {}", figure::points(half)));
    format!("{}{half}", figure::percent(estimate.point_estimate))
}
