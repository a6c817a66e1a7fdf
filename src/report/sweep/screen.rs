//! A sweep on one screen: the settings that matter, the verdict, and what to do next.

use super::grid::grid;
use super::{idle, interval, kept, moved, overflow, section, sessions, settings, verdict};
use crate::compare::sweep::{Sweep, SweepPoint};
use crate::report::display::{self, many};
use crate::report::evidence::capital;
use crate::report::grid::INDENT;
use crate::report::layout::wrap;
use crate::report::screen::LINES;
use crate::report::terminal::{Terminal, add};
use crate::stats::Estimate;

/// The most lines of the verdict.
const VERDICT_LINES: usize = 14;

/// The fewest settings that are shown.
const FEWEST_ROWS: usize = 3;

/// Lays a sweep out for a terminal of this width. `next` holds the words of the command that comes next.
pub(crate) fn screen(sweep: &Sweep, next: &[String], width: usize) -> String {
    let terminal = Terminal::plain(width);
    let table = grid(sweep, terminal);
    let mut trust = vec![kept(sweep)];
    trust.extend(overflow(sweep));
    if !sweep.left_out.is_empty() {
        let sessions = many(sweep.left_out.len(), "session is", "sessions are");
        let why = "because not every setting was measured there";
        trust.push(format!("{sessions} left out, {why}."));
    }
    trust.extend(sweep.notes().map(|said| format!("{}.", capital(&said))));
    if table.is_none() {
        let knobs = sweep.sensitivity.iter().filter_map(|one| moved(sweep, one));
        trust.extend(display::listed(knobs.take(2), "; ").map(|knobs| knobs + "."));
    }
    let mut ends = terminal.beside("Sure?", &trust.join(" "));
    ends.truncate(5);
    let hints = sweep.hints.iter().take(2);
    ends.extend(hints.flat_map(|hint| terminal.beside("Hint", hint)));
    ends.extend(terminal.beside("More", MORE));
    ends.extend(terminal.command("Next", next, ""));
    let mut tail = Vec::new();
    add(&mut tail, verdict_lines(sweep, terminal));
    add(&mut tail, ends);
    let mut out = wrap(&title(sweep), width);
    // The title, and the blank lines around.
    let room = LINES.saturating_sub(tail.len() + 3).max(FEWEST_ROWS);
    add(&mut out, table.unwrap_or_else(|| list(sweep, room, terminal)));
    out.extend(tail);
    let lines = out.iter().map(|line| line.trim_end());
    display::joined(lines, "\n") + "\n"
}

/// Where the rest is.
const MORE: &str = "-o sweep.html: pictures, all settings; --json; proctor explain V1: codes";

fn title(sweep: &Sweep) -> String {
    let confirm = match sweep.confirm.len() {
        0 => "none to confirm on".to_owned(),
        count => format!("{} to confirm on", many(count, "other", "others")),
    };
    let settings = many(settings(sweep), "setting", "settings");
    format!("Sweep of {settings}: chosen on {}, {confirm}", sessions(sweep))
}

/// The chosen settings and the defaults, then the front, then others, as many as there is room for, and a count of
/// the rest.
fn list(sweep: &Sweep, room: usize, terminal: Terminal) -> Vec<String> {
    let mut order: Vec<usize> = (0..sweep.points.len()).collect();
    order.sort_by_key(|at| (!is_named(&sweep.points[*at]), !sweep.points[*at].on_front));
    let mut shown: Vec<usize> = Vec::new();
    for at in order {
        // Knobs that change nothing give the same numbers many times.
        let point = &sweep.points[at];
        let mut others = shown.iter().map(|other| &sweep.points[*other]);
        if is_named(point) || !others.any(|other| other.has_numbers_of(point)) {
            shown.push(at);
        }
    }
    shown.truncate(room);
    loop {
        // As the points are: the cheapest first.
        let mut rows = shown.clone();
        rows.sort_unstable();
        let left_out = sweep.points.len() - rows.len();
        let others = many(left_out, "more setting", "more settings");
        let more = format!("… and {others}: -o sweep.html / --json has them");
        let rows: Vec<&SweepPoint> = rows.iter().map(|at| &sweep.points[*at]).collect();
        let table = section("settings", sweep, &rows);
        let text = terminal.section(&table.with_notes((left_out > 0).then_some(more)));
        if text.lines().count() <= room || shown.len() <= FEWEST_ROWS {
            return text.trim().lines().map(str::to_owned).collect();
        }
        shown.pop();
    }
}

fn is_named(point: &SweepPoint) -> bool {
    point.standing.is_some() || point.values.is_empty()
}

/// `28.6 ±5.2`.
pub(super) fn number(estimate: Option<Estimate>) -> String {
    let Some(found) = estimate else {
        return "not measured".to_owned();
    };
    let half = interval(found).map(|ends| format!(" ±{}", display::points(ends.half_width())));
    display::points(found.point_estimate) + &half.unwrap_or_default()
}

/// The verdict; where it is too long, its first sentence alone.
fn verdict_lines(sweep: &Sweep, terminal: Terminal) -> Vec<String> {
    let mut lines = first_sentences(sweep, usize::MAX, terminal);
    if lines.len() > VERDICT_LINES {
        lines = first_sentences(sweep, 1, terminal);
    }
    lines.extend(idle(sweep).iter().flat_map(|text| terminal.paragraph("", text, INDENT.len())));
    lines
}

/// The first sentences of the verdict, in lines.
fn first_sentences(sweep: &Sweep, most: usize, terminal: Terminal) -> Vec<String> {
    let first = verdict(sweep).into_iter().take(most);
    terminal.paragraph("", &capital(&display::joined(first, " ")), INDENT.len())
}
