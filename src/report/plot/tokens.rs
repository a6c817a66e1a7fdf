//! Prompt tokens per call: one panel per session, one line per strategy.

use super::axes::{Panel, whole};
use super::scene::{
    Anchor, Color, INK, Key, ORANGE, SIZE, Scene, VERMILLION, YELLOW, fitted, line_of,
};
use super::series::CellSeries;
use crate::record::Arm;
use crate::report::{Report, figure};
use crate::units::Tokens;
use crate::window::{WarningFrom, Window};

/// Sessions that one picture shows: the longest ones.
const MOST_PANELS: usize = 6;

const LEFT: f64 = 88.0;
const RIGHT: f64 = 780.0;
const PANEL: f64 = 190.0;

/// A compaction is marked where it freed at least this share of the messages.
const MARKED_FROM: f64 = 0.1;

/// One panel for each of the longest sessions.
pub(crate) fn scene(report: &Report) -> Scene {
    let mut sessions: Vec<(&str, usize)> = Vec::new();
    for series in &report.series {
        if series.arm == Arm::Reference {
            sessions.push((&series.session, series.prompts.len()));
        }
    }
    let all = sessions.len();
    sessions.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    sessions.truncate(MOST_PANELS);
    let named: Vec<&str> = sessions.into_iter().map(|(session, _)| session).collect();
    draw(report, &named, all)
}

/// One session alone; nothing where it was not replayed.
pub(crate) fn of_session(report: &Report, session: &str) -> Option<Scene> {
    let is_there = report.series.iter().any(|series| series.session == session);
    is_there.then(|| draw(report, &[session], 1))
}

fn draw(report: &Report, sessions: &[&str], all: usize) -> Scene {
    let mut scene = Scene::new("Prompt tokens at each call");
    let names = strategies(report);
    let titles = names.iter().map(|name| title(report, sessions, name));
    let titles: Vec<String> = titles.collect();
    let mut keys: Vec<Key<'_>> = vec![Key::line("full history", INK, false).faint(0.35)];
    keys.extend(titles.iter().enumerate().map(|(at, title)| {
        let (color, dashed) = line_of(at);
        Key::line(title, color, dashed)
    }));
    keys.push(Key::dot("compaction that freed a tenth or more", INK, true));
    if sessions.iter().any(|session| has_zones(report, session)) {
        keys.extend(ZONES.map(|(color, text)| Key::band(text, color).faint(BAND)));
    }
    let mut y = scene.legend(&keys);
    let mut shown = sessions.iter().flat_map(|session| of(report, session));
    if shown.any(|series| series.arm == Arm::Strategy && series.ended_at.is_some()) {
        cross(&mut scene, (26.0, y), INK);
        let words = "the session ended there: the next prompt was not sent";
        scene.label((44.0, y), words, Anchor::Start);
        y += 18.0;
    }
    if all > sessions.len() {
        let words = format!("the longest {} of {all} sessions", sessions.len());
        y = scene.note(y, &words);
    }
    for session in sessions {
        y = panel(&mut scene, report, session, &names, y + 10.0);
    }
    if sessions.is_empty() {
        y = scene.note(y + 10.0, "no session was replayed") + 2.0;
    }
    scene.ends_at(y);
    scene
}

/// Bands of the window, from below.
const ZONES: [(Color, &str); 3] = [
    (YELLOW, "warning"),
    (ORANGE, "automatic compaction"),
    (VERMILLION, "blocking"),
];

const BAND: f64 = 0.22;

fn strategies(report: &Report) -> Vec<&str> {
    let names = report.compared().iter().map(|row| row.name.as_str());
    let has_series = |name: &&str| {
        let mut series = report.series.iter();
        series.any(|it| it.strategy == *name && it.arm == Arm::Strategy && !it.prompts.is_empty())
    };
    names.filter(has_series).collect()
}

/// A strategy, and in a picture of one session where that ended: beside the lines there is no room
/// for it where several end at once.
fn title(report: &Report, sessions: &[&str], name: &str) -> String {
    let [session] = sessions else {
        return name.to_owned();
    };
    let mut series = of(report, session).filter(|series| series.strategy == name);
    match series.find_map(|series| series.ended_at) {
        Some(call) => format!("{name}, ended at {call}"),
        None => name.to_owned(),
    }
}

/// The cross of a session that died.
fn cross(scene: &mut Scene, (x, y): (f64, f64), color: Color) {
    for sign in [-1.0, 1.0] {
        let line = vec![(x - 5.0, y - 5.0 * sign), (x + 5.0, y + 5.0 * sign)];
        scene.line(line, color, 3, 1.0);
    }
}

fn of<'a>(report: &'a Report, session: &'a str) -> impl Iterator<Item = &'a CellSeries> {
    let series = report.series.iter();
    series.filter(move |series| series.session == session)
}

/// The lines of a session's window, where it is larger than its buffers.
fn has_zones(report: &Report, session: &str) -> bool {
    of(report, session)
        .filter_map(|series| series.window)
        .any(|window| zones(window).is_some() && is_in_sight(report, session, window))
}

fn zones(window: Window) -> Option<[f64; 4]> {
    let lines = window.lines(WarningFrom::AutoCompact);
    let edges = [
        lines.warning,
        lines.auto_compact,
        lines.blocking,
        lines.effective,
    ];
    (lines.warning > Tokens::ZERO).then(|| edges.map(|tokens| tokens.0 as f64))
}

fn highest(report: &Report, session: &str) -> f64 {
    let prompts = of(report, session).flat_map(|series| &series.prompts);
    prompts.map(|prompt| prompt.0).max().unwrap_or(1) as f64
}

/// A window far above all prompts would press them to the ground.
fn is_in_sight(report: &Report, session: &str, window: Window) -> bool {
    window.tokens.0 as f64 <= 1.6 * highest(report, session)
}

fn panel(scene: &mut Scene, report: &Report, session: &str, names: &[&str], top: f64) -> f64 {
    let room = RIGHT - 16.0;
    scene.label(
        (16.0, top),
        &fitted(session, SIZE, room - 200.0),
        Anchor::Start,
    );
    let window = of(report, session).find_map(|series| series.window);
    let in_sight = window.filter(|window| is_in_sight(report, session, *window));
    if let Some(window) = window {
        let far = if in_sight.is_some() {
            ""
        } else {
            ", far above"
        };
        let text = format!("window {}{far}", figure::tokens(window.tokens.0));
        scene.label((RIGHT, top), &text, Anchor::End);
    }
    let calls = of(report, session).map(|series| series.prompts.len()).max();
    let calls = calls.unwrap_or(1).max(1);
    let most = in_sight.map_or(0.0, |window| window.tokens.0 as f64);
    let panel = Panel {
        edges: [LEFT, top + 14.0, RIGHT, top + 14.0 + PANEL],
        // A single call stands in the middle.
        x: if calls == 1 {
            (-0.5, 0.5)
        } else {
            (0.0, (calls - 1) as f64)
        },
        y: (0.0, 1.06 * highest(report, session).max(most)),
    };
    if let Some(window) = in_sight {
        if let Some(edges) = zones(window) {
            for (band, (color, _)) in edges.windows(2).zip(ZONES) {
                let (_, upper) = panel.at(0.0, band[1]);
                let (_, lower) = panel.at(0.0, band[0]);
                scene.rect([LEFT, upper, RIGHT, lower], color, BAND);
            }
        }
        let (_, y) = panel.at(0.0, window.tokens.0 as f64);
        scene.dashes(&[(LEFT, y), (RIGHT, y)], INK, 1, 0.8);
    }
    let tokens = |value: f64| figure::tokens(super::count(value));
    panel.axes(
        scene,
        ("call", (calls - 1).clamp(1, 10), &whole),
        ("prompt tokens", 4, &tokens),
    );
    for series in of(report, session) {
        let at = names.iter().position(|name| *name == series.strategy);
        line(scene, &panel, series, at);
    }
    top + 14.0 + PANEL + 46.0
}

fn line(scene: &mut Scene, panel: &Panel, series: &CellSeries, at: Option<usize>) {
    let points: Vec<(f64, f64)> = series
        .prompts
        .iter()
        .enumerate()
        .map(|(call, prompt)| panel.at(call as f64, prompt.0 as f64))
        .collect();
    let Some(at) = at.filter(|_| series.arm == Arm::Strategy) else {
        if let [point] = points[..] {
            scene.dot(point, 4.0, INK, false);
        }
        scene.line(points, INK, 3, 0.35);
        return;
    };
    let (color, dashed) = line_of(at);
    if let [point] = points[..] {
        scene.dot(point, 3.0, color, false);
    }
    scene.stroke(&points, color, dashed);
    for event in &series.compactions {
        let freed = (event.before - event.after).share_of(event.before);
        let Some(point) = points.get(event.call) else {
            continue;
        };
        if freed.is_some_and(|freed| freed >= MARKED_FROM) {
            scene.dot(*point, 3.0, color, true);
        }
    }
    if let (Some(_), Some(point)) = (series.ended_at, points.last()) {
        cross(scene, *point, color);
    }
}
