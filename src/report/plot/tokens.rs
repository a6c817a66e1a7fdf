//! Prompt tokens per call: one panel per session, one line per strategy.

use std::cmp::Reverse;

use super::axes::{Panel, tokens, whole};
use super::scene::{
    Color, HPos, INK, Mark, ORANGE, SIZE, Scene, VERMILLION, YELLOW, fitted, line_keys, line_of,
};
use super::series::CellSeries;
use crate::record::Arm;
use crate::report::{Report, figure};
use crate::units::Tokens;
use crate::window::{WarningFrom, Window};

/// The most sessions in one picture: the longest ones.
const MOST_PANELS: usize = 6;

const LEFT: f64 = 88.0;
const RIGHT: f64 = 780.0;
const PANEL: f64 = 190.0;

/// A compaction is marked if it freed at least this share of the messages.
const MARKED_FROM: f64 = 0.1;

/// Bands of the window, from below, and their opacity.
const ZONES: [(Color, &str); 3] = [
    (YELLOW, "warning"),
    (ORANGE, "automatic compaction"),
    (VERMILLION, "blocking"),
];
const BAND: f64 = 0.22;

/// All cells of one session.
struct Session<'a> {
    name: &'a str,
    cells: Vec<&'a CellSeries>,
    window: Option<Window>,
    /// The tokens of the largest prompt.
    highest: f64,
}

impl<'a> Session<'a> {
    fn of(report: &'a Report, name: &'a str) -> Self {
        let cells = report.series.iter().filter(|cell| cell.session == name);
        let cells: Vec<&CellSeries> = cells.collect();
        let prompts = cells.iter().flat_map(|cell| &cell.prompts);
        Self {
            name,
            window: cells.iter().find_map(|cell| cell.window),
            highest: prompts.max().map_or(1.0, |most| most.0 as f64),
            cells,
        }
    }

    /// The window, unless it is so far above all prompts that it would flatten the lines.
    fn window_in_sight(&self) -> Option<Window> {
        let is_near = |window: &Window| window.tokens.0 as f64 <= 1.6 * self.highest;
        self.window.filter(is_near)
    }

    /// The edges of [`ZONES`], if the window is in sight and larger than its buffers.
    fn zones(&self) -> Option<[f64; 4]> {
        let lines = self.window_in_sight()?.lines(WarningFrom::AutoCompact);
        let edges = [
            lines.warning,
            lines.auto_compact,
            lines.blocking,
            lines.effective,
        ];
        (lines.warning > Tokens::ZERO).then(|| edges.map(|tokens| tokens.0 as f64))
    }
}

/// One panel for each of the longest sessions.
pub(crate) fn scene(report: &Report) -> Scene {
    let series = report.series.iter();
    let mut longest: Vec<&CellSeries> = series.filter(|it| it.arm == Arm::Reference).collect();
    let all = longest.len();
    longest.sort_by_key(|series| Reverse(series.prompts.len()));
    longest.truncate(MOST_PANELS);
    let sessions = longest.iter().map(|it| Session::of(report, &it.session));
    draw(report, &sessions.collect::<Vec<_>>(), all)
}

/// One session alone; nothing if it was not replayed.
pub(crate) fn of_session(report: &Report, session: &str) -> Option<Scene> {
    let session = Session::of(report, session);
    let has_cells = !session.cells.is_empty();
    has_cells.then(|| draw(report, &[session], 1))
}

fn draw(report: &Report, sessions: &[Session<'_>], all: usize) -> Scene {
    let mut scene = Scene::new("Prompt tokens at each call");
    let names = strategies(report);
    let titles: Vec<String> = names.iter().map(|name| title(sessions, name)).collect();
    let mut keys = line_keys(titles.iter().map(String::as_str).enumerate());
    keys.push((Mark::Ring, INK, "compaction that freed a tenth or more"));
    if sessions.iter().any(|session| session.zones().is_some()) {
        keys.extend(ZONES.map(|(color, text)| (Mark::Band(BAND), color, text)));
    }
    let mut y = scene.legend(&keys);
    let mut shown = sessions.iter().flat_map(|session| &session.cells);
    if shown.any(|cell| cell.arm == Arm::Strategy && cell.ended_at.is_some()) {
        cross(&mut scene, (26.0, y), INK);
        let words = "the session ended there: the next prompt was not sent";
        scene.label((44.0, y), words, HPos::Left);
        y += 18.0;
    }
    if all > sessions.len() {
        let words = format!("the longest {} of {all} sessions", sessions.len());
        y = scene.note(y, &words);
    }
    for session in sessions {
        y = panel(&mut scene, session, &names, y + 10.0);
    }
    if sessions.is_empty() {
        y = scene.note(y + 10.0, "no session was replayed") + 2.0;
    }
    scene.ends_at(y);
    scene
}

/// The strategies that sent anything.
fn strategies(report: &Report) -> Vec<&str> {
    let names = report.compared().iter().map(|row| row.name.as_str());
    let has_series = |name: &&str| {
        let mut series = report.series.iter();
        series.any(|it| it.strategy == *name && it.arm == Arm::Strategy && !it.prompts.is_empty())
    };
    names.filter(has_series).collect()
}

/// A strategy, and in a picture of one session the call at which it ended: beside the lines there is
/// no room for it if several end at once.
fn title(sessions: &[Session<'_>], name: &str) -> String {
    let ended_at = match sessions {
        [session] => {
            let mut cells = session.cells.iter().filter(|cell| cell.strategy == name);
            cells.find_map(|cell| cell.ended_at)
        }
        _ => None,
    };
    ended_at.map_or_else(
        || name.to_owned(),
        |call| format!("{name}, ended at {call}"),
    )
}

/// The cross of a session that died.
fn cross(scene: &mut Scene, (x, y): (f64, f64), color: Color) {
    for sign in [-1.0, 1.0] {
        let line = vec![(x - 5.0, y - 5.0 * sign), (x + 5.0, y + 5.0 * sign)];
        scene.line(line, color, 3, 1.0);
    }
}

/// Draws one session, and returns where its panel ends.
fn panel(scene: &mut Scene, session: &Session<'_>, names: &[&str], top: f64) -> f64 {
    let name = fitted(session.name, SIZE, RIGHT - 216.0);
    scene.label((16.0, top), &name, HPos::Left);
    let in_sight = session.window_in_sight();
    if let Some(window) = session.window {
        let far = if in_sight.is_some() {
            ""
        } else {
            ", far above"
        };
        let text = format!("window {}{far}", figure::tokens(window.tokens.0));
        scene.label((RIGHT, top), &text, HPos::Right);
    }
    let calls = session.cells.iter().map(|cell| cell.prompts.len()).max();
    let calls = calls.unwrap_or(1).max(1);
    let most = in_sight.map_or(0.0, |window| window.tokens.0 as f64);
    let panel = Panel {
        edges: [LEFT, top + 14.0, RIGHT, top + 14.0 + PANEL],
        // A single call is in the middle.
        x: if calls == 1 {
            (-0.5, 0.5)
        } else {
            (0.0, (calls - 1) as f64)
        },
        y: (0.0, 1.06 * session.highest.max(most)),
    };
    let height = |tokens: f64| panel.at(0.0, tokens).1;
    if let Some(edges) = session.zones() {
        for (band, (color, _)) in edges.windows(2).zip(ZONES) {
            let edges = [LEFT, height(band[1]), RIGHT, height(band[0])];
            scene.rect(edges, color, BAND);
        }
    }
    if in_sight.is_some() {
        let y = height(most);
        scene.dashes(&[(LEFT, y), (RIGHT, y)], INK, 1, 0.8);
    }
    let below = ("call", (calls - 1).clamp(1, 10), &whole as _);
    panel.axes(scene, below, ("prompt tokens", 4, &tokens));
    for cell in &session.cells {
        let at = names.iter().position(|name| *name == cell.strategy);
        line(scene, &panel, cell, at);
    }
    top + 14.0 + PANEL + 46.0
}

/// Draws the line of a cell: full history, or the strategy at this place.
fn line(scene: &mut Scene, panel: &Panel, series: &CellSeries, at: Option<usize>) {
    let prompts = series.prompts.iter().enumerate();
    let points: Vec<(f64, f64)> = prompts
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
        let is_marked = freed.is_some_and(|freed| freed >= MARKED_FROM);
        if let Some(point) = points.get(event.call).filter(|_| is_marked) {
            scene.dot(*point, 3.0, color, true);
        }
    }
    if let (Some(_), Some(point)) = (series.ended_at, points.last()) {
        cross(scene, *point, color);
    }
}
