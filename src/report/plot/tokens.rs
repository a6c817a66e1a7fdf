//! Prompt tokens per call: one panel per session, one line per strategy.

use std::cmp::Reverse;

use super::axes::{PlotPanel, tokens, whole};
use super::scene::{
    Color, FULL, HPos, INK, KeyMark, ORANGE, PlotScene, VERMILLION, YELLOW, fitted, line_keys,
    line_of,
};
use crate::record::{Arm, CellRecord};
use crate::report::headline::label;
use crate::report::{Report, display};
use crate::units::Tokens;
use crate::window::{WarningFrom, Window};

/// The most sessions in one picture: the longest ones.
const MOST_PANELS: usize = 6;

const LEFT: f64 = 88.0;
const PANEL: f64 = 190.0;

/// A compaction is marked if it freed at least this share of the messages.
const MARKED_FROM: f64 = 0.1;

/// Bands of the window, from below, and their opacity.
const ZONES: [(Color, &str); 3] =
    [(YELLOW, "warning"), (ORANGE, "automatic compaction"), (VERMILLION, "blocking")];
const BAND: f64 = 0.22;

/// All cells of one session.
struct SessionPanel<'a> {
    name: &'a str,
    cells: Vec<&'a CellRecord>,
    /// The window, unless it is so far above all prompts that it would flatten the lines.
    window_in_sight: Option<Window>,
    /// The tokens of the largest prompt.
    highest: f64,
}

impl<'a> SessionPanel<'a> {
    fn of(report: &'a Report, name: &'a str) -> Self {
        let cells: Vec<&CellRecord> =
            report.first_cells().filter(|cell| cell.session == name).collect();
        let prompts = cells.iter().flat_map(|cell| &cell.prompt_tokens);
        let highest = prompts.max().map_or(1.0, |most| most.0 as f64).max(1.0);
        let window_in_sight =
            window(&cells).filter(|window| window.tokens.0 as f64 <= 1.6 * highest);
        Self { name, cells, window_in_sight, highest }
    }

    /// The edges of [`ZONES`], if the window is in sight and larger than its buffers.
    fn zones(&self) -> Option<[f64; 4]> {
        let lines = self.window_in_sight?.lines(WarningFrom::AutoCompact);
        let (warning, auto) = (lines.warning, lines.auto_compact);
        let edges = [warning, auto, lines.blocking, lines.effective];
        (warning > Tokens::ZERO).then(|| edges.map(|tokens| tokens.0 as f64))
    }
}

fn window(cells: &[&CellRecord]) -> Option<Window> {
    cells.iter().find_map(|cell| cell.window)
}

/// One panel for each of the longest sessions.
pub(crate) fn scene(report: &Report, width: f64) -> PlotScene {
    let full = report.first_cells().filter(|cell| cell.arm == Arm::Reference);
    let mut longest: Vec<&CellRecord> = full.collect();
    let all = longest.len();
    longest.sort_by_key(|cell| Reverse(cell.prompt_tokens.len()));
    longest.truncate(MOST_PANELS);
    let sessions = longest.iter().map(|cell| SessionPanel::of(report, &cell.session));
    draw(report, &sessions.collect::<Vec<_>>(), all, width)
}

/// One session alone.
pub(crate) fn of_session(report: &Report, session: &str, width: f64) -> PlotScene {
    draw(report, &[SessionPanel::of(report, session)], 1, width)
}

fn draw(report: &Report, sessions: &[SessionPanel<'_>], all: usize, width: f64) -> PlotScene {
    let mut scene = PlotScene::new("Prompt tokens at each call", width);
    // The strategies that sent anything.
    let all_names = report.compared().iter().map(|row| row.name.as_str());
    let sent = all_names.filter(|name| {
        let mut cells = report.first_cells().filter(|cell| cell.arm == Arm::Strategy);
        cells.any(|cell| cell.strategy == *name && !cell.prompt_tokens.is_empty())
    });
    let series: Vec<(&str, String)> = sent.map(|name| (name, title(sessions, name))).collect();
    let mut keys = line_keys(series.iter().map(|(_, title)| title.as_str()).enumerate());
    keys.push((KeyMark::Ring, INK, "compaction that freed a tenth or more"));
    if sessions.iter().any(|session| session.zones().is_some()) {
        keys.extend(ZONES.map(|(color, text)| (KeyMark::Band(BAND), color, text)));
    }
    scene.legend(&keys);
    let mut shown = sessions.iter().flat_map(|session| &session.cells);
    if shown.any(|cell| cell.arm == Arm::Strategy && cell.end.call().is_some()) {
        let y = scene.y;
        cross(&mut scene, (26.0, y), INK);
        let words = "the session ended there: the next prompt was not sent";
        scene.label((44.0, y), words, HPos::Left);
        scene.y += 18.0;
    }
    if all > sessions.len() {
        scene.note(&format!("the longest {} of {all} sessions", sessions.len()));
    }
    for session in sessions {
        panel(&mut scene, session, &series);
    }
    if sessions.len() > 1 {
        scene.call_axis = None;
    }
    if sessions.is_empty() {
        scene.note("no session was replayed");
    }
    scene
}

/// The name of a strategy's line; in a picture of one session with the call at which it ended: beside the
/// lines there is no room for it if several end at once.
fn title(sessions: &[SessionPanel<'_>], name: &str) -> String {
    let cell = match sessions {
        [session] => session.cells.iter().find(|cell| cell.strategy == name),
        _ => None,
    };
    cell.map_or_else(|| label(name), |cell| series_name(cell))
}

/// The name of a cell's line in the picture of its session.
pub(crate) fn series_name(cell: &CellRecord) -> String {
    match (cell.arm, cell.end.call()) {
        (Arm::Strategy, None) => label(&cell.strategy),
        (Arm::Strategy, Some(call)) => format!("{}, ended at {call}", label(&cell.strategy)),
        (Arm::Reference | Arm::Floor, _) => FULL.to_owned(),
    }
}

/// The cross of a session that died.
fn cross(scene: &mut PlotScene, (x, y): (f64, f64), color: Color) {
    for sign in [-1.0, 1.0] {
        let line = [(x - 5.0, y - 5.0 * sign), (x + 5.0, y + 5.0 * sign)];
        scene.line(&line, color, 3, 1.0);
    }
}

/// Draws one session.
fn panel(scene: &mut PlotScene, session: &SessionPanel<'_>, series: &[(&str, String)]) {
    let right = scene.right();
    let top = scene.y + 6.0;
    let name = fitted(session.name, right - 216.0);
    scene.label((16.0, top), &name, HPos::Left);
    let in_sight = session.window_in_sight;
    if let Some(window) = window(&session.cells) {
        let far = in_sight.map_or(", far above", |_| "");
        let text = format!("window {}{far}", display::tokens(window.tokens.0));
        scene.label((right, top), &text, HPos::Right);
    }
    let calls = session.cells.iter().map(|cell| cell.prompt_tokens.len()).max().unwrap_or(1).max(1);
    let last = (calls - 1) as f64;
    let most = in_sight.map_or(0.0, |window| window.tokens.0 as f64);
    let panel = PlotPanel {
        edges: [LEFT, top + 14.0, right, top + 14.0 + PANEL],
        // A single call is in the middle.
        x: if calls == 1 { (-0.5, 0.5) } else { (0.0, last) },
        y: (0.0, 1.06 * session.highest.max(most)),
    };
    if let Some(edges) = session.zones() {
        for (band, (color, _)) in edges.windows(2).zip(ZONES) {
            let [lower, upper] = [band[0], band[1]].map(|tokens| panel.at(0.0, tokens).1);
            let edges = [LEFT, upper, right, lower];
            scene.rect(edges, color, BAND);
        }
    }
    if in_sight.is_some() {
        let (_, y) = panel.at(0.0, most);
        scene.dashes(&[(LEFT, y), (right, y)], INK, 1, 0.8);
    }
    let columns = if scene.is_narrow() { 6 } else { 11 };
    let below = ("call", calls.clamp(1, columns), &whole as _);
    scene.call_axis = Some(panel);
    panel.axes(scene, below, ("prompt tokens", 5, &tokens));
    for cell in &session.cells {
        let at = series.iter().position(|(name, _)| *name == cell.strategy);
        let title = at.map_or(FULL, |at| &*series[at].1);
        scene.series(title, |scene| line(scene, &panel, cell, at));
    }
    scene.y = top + 14.0 + PANEL + 50.0;
}

/// Draws the line of a cell: full history, or the strategy at this place.
fn line(scene: &mut PlotScene, panel: &PlotPanel, cell: &CellRecord, at: Option<usize>) {
    let prompts = cell.prompt_tokens.iter().enumerate();
    let points: Vec<(f64, f64)> =
        prompts.map(|(call, prompt)| panel.at(call as f64, prompt.0 as f64)).collect();
    let line = at.filter(|_| cell.arm == Arm::Strategy).map(line_of);
    let color = line.map_or(INK, |(color, _)| color);
    if let [point] = points[..] {
        scene.dot(point, 4.0, color, false);
    }
    let Some(line) = line else {
        scene.line(&points, INK, 3, 0.35);
        return;
    };
    scene.stroke(&points, line);
    // All patches of a call are one compaction.
    for events in cell.compactions.chunk_by(|one, next| one.call == next.call) {
        let (first, last) = (&events[0], &events[events.len() - 1]);
        let freed = (first.before - last.after).share_of(first.before);
        let marked = freed.is_some_and(|freed| freed >= MARKED_FROM);
        if let Some(point) = points.get(first.call).filter(|_| marked) {
            scene.dot(*point, 3.0, color, true);
        }
    }
    if let (Some(_), Some(point)) = (cell.end.call(), points.last()) {
        cross(scene, *point, color);
    }
}
