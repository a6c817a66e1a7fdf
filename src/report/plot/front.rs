//! The settings of a sweep: what each saves and keeps, and those that nothing beats.

use super::axes::{Axis, Panel};
use super::pareto::{place, reach};
use super::scene::{
    Anchor, BLUE, Color, GREEN, INK, Key, Mark, ORANGE, SIZE, Scene, VERMILLION, fitted,
};
use crate::compare::sweep::{Sweep, SweepPoint};
use crate::report::figure;
use crate::stats::Estimate;

const WIDTH: u32 = 800;
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
    let mut scene = Scene::new(WIDTH, &title);
    let drawn: Vec<Drawn<'_>> = sweep.points.iter().filter_map(drawn).collect();
    let dot = |hollow, color, text: &'static str| Key {
        mark: Mark::Dot { hollow },
        color,
        opacity: 1.0,
        text,
    };
    let sessions = figure::many(sweep.tune.len(), "session", "sessions");
    let intervals = format!("95 % interval over {sessions}");
    let keys = [
        dot(false, BLUE, "on the front"),
        dot(true, BLUE, "beaten by another"),
        dot(false, VERMILLION, "recommended: the knee"),
        dot(false, GREEN, "default"),
        Key {
            mark: Mark::Line { dashed: false },
            color: ORANGE,
            opacity: 0.8,
            text: "front",
        },
        Key {
            mark: Mark::Line { dashed: false },
            color: INK,
            opacity: 0.35,
            text: &intervals,
        },
    ];
    let y = scene.legend((16.0, 46.0), f64::from(WIDTH) - 32.0, &keys);
    if drawn.is_empty() {
        let words = "every setting is broken or was not measured";
        scene.label((16.0, y + 6.0), words, Anchor::Start);
        scene.ends_at(y + 30.0);
        return scene;
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
    let ends = |estimate: Estimate| {
        let interval = estimate.confidence_interval;
        interval.map(|it| (it.lower_bound, it.upper_bound))
    };
    let along = |of: fn(&Drawn<'_>) -> Estimate| -> Vec<(f64, Option<(f64, f64)>)> {
        let each = |(at, one): (usize, &Drawn<'_>)| {
            let estimate = of(one);
            let interval = ends(estimate).filter(|_| listed.contains(&at));
            (estimate.point_estimate, interval)
        };
        drawn.iter().enumerate().map(each).collect()
    };
    let panel = Panel {
        edges: [LEFT, y + 4.0, RIGHT, y + 4.0 + HEIGHT],
        x: reach(along(|one| one.saves).iter().copied()),
        y: reach(along(|one| one.keeps).iter().copied()),
    };
    let percent = |value: f64| format!("{} %", figure::points(value).trim_end_matches(".0"));
    let below = Axis {
        label: &format!("{}; right is better", sweep.cost),
        figure: &percent,
        ticks: 8,
    };
    let beside = Axis {
        label: &format!("{}; up is better", sweep.quality),
        figure: &percent,
        ticks: 6,
    };
    panel.axes(scene, &below, &beside);
    panel
}

fn points(scene: &mut Scene, panel: &Panel, drawn: &[Drawn<'_>], listed: &[usize]) {
    let clamped =
        |x: f64, y: f64| panel.at(x.clamp(panel.x.0, panel.x.1), y.clamp(panel.y.0, panel.y.1));
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
        y = scene.paragraph((16.0, y + 4.0), &line, f64::from(WIDTH) - 32.0);
    }
    y + 8.0
}

fn with_interval(estimate: Estimate) -> String {
    let half = estimate.confidence_interval.map(|it| it.half_width());
    let half = half.map_or_else(String::new, |half| format!(" ± {}", figure::points(half)));
    format!("{}{half}", figure::percent(estimate.point_estimate))
}
