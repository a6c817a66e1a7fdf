//! A sweep on one screen: the settings that matter, the verdict, and what to do next.

use std::fmt::Write as _;

use super::{kept, moved, sessions, verdict};
use crate::compare::sweep::{Standing, Sweep, SweepPoint};
use crate::report::display::{self, many};
use crate::report::escape;
use crate::report::layout::{self, command, wrap};
use crate::report::screen::{INDENT, LINES, add};
use crate::report::terminal::Terminal;
use crate::stats::Estimate;

/// The most lines of the verdict: with more windows than fit, the others are counted.
const VERDICT_LINES: usize = 14;

/// The fewest settings that are shown.
const FEWEST_ROWS: usize = 3;

/// Up to so many settings are all shown, where there is room.
const ALL_ROWS: usize = 12;

/// Columns of a number with its interval.
const NUMBER: usize = 16;

/// Lays a sweep out for a terminal of this width. `next` holds the words of the command that comes next.
pub(crate) fn screen(sweep: &Sweep, next: &[String], width: usize) -> String {
    let terminal = Terminal::plain(width);
    let mut tail = Vec::new();
    add(
        &mut tail,
        terminal.titled("Verdict", verdict_lines(sweep, width)),
    );
    let mut trust = vec![kept(sweep)];
    if !sweep.left_out.is_empty() {
        trust.push(format!(
            "{} left out, because not every setting was measured there.",
            many(sweep.left_out.len(), "session is", "sessions are")
        ));
    }
    let knobs = sweep.sensitivity.iter().filter_map(|it| moved(sweep, it));
    let knobs: Vec<String> = knobs.take(2).collect();
    if !knobs.is_empty() {
        trust.push(format!("{}.", knobs.join("; ")));
    }
    let mut ends = terminal.ends(&[("Trust", &trust.join(" "))]);
    ends.truncate(5);
    let more = "-o sweep.html: pictures and all settings; --json: all numbers";
    let hints = sweep.hints.iter().take(2).map(|hint| ("Hint", &**hint));
    let paragraphs: Vec<(&str, &str)> = hints.chain([("More", more)]).collect();
    ends.extend(terminal.ends(&paragraphs));
    ends.extend(command("Next", next, width));
    add(&mut tail, ends);
    let mut out = head(sweep, width);
    // The heading, and the line that counts the others.
    let room = LINES.saturating_sub(out.len() + tail.len() + 1);
    out.extend(rows(sweep, room.max(FEWEST_ROWS), width));
    out.extend(tail);
    let mut text = String::new();
    for line in out {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn head(sweep: &Sweep, width: usize) -> Vec<String> {
    let title = format!(
        "Sweep of {}: chosen on {}, {} to confirm on",
        many(sweep.points.len(), "setting", "settings"),
        sessions(sweep),
        many(sweep.confirm.len(), "other", "others")
    );
    let mut lines = wrap(&title, width);
    lines.push(String::new());
    let columns = [&sweep.cost, &sweep.quality].map(|metric| format!("{metric:>NUMBER$}"));
    lines.push(format!(
        "{INDENT}{:<name$}{}  {}",
        "setting",
        columns.concat(),
        "± 95 %",
        name = name_width(sweep, width)
    ));
    lines
}

/// Columns that are left for the names of settings.
fn name_width(sweep: &Sweep, width: usize) -> usize {
    let marks = sweep.points.iter().filter_map(|point| point.standing);
    let mark = marks.map(|it| it.words().len()).max().unwrap_or(0).max(6);
    width
        .saturating_sub(INDENT.len() + 2 * NUMBER + 2 + mark)
        .clamp(12, 60)
}

/// The chosen settings and the defaults, then the front, as many as there is room for, and a count of the
/// others; all settings where they are few.
fn rows(sweep: &Sweep, room: usize, width: usize) -> Vec<String> {
    let is_default = |point: &SweepPoint| {
        let mut knobs = point.values.iter();
        knobs.all(|(knob, _)| knob.starts_with("window."))
    };
    let rank = |point: &SweepPoint| match (point.standing, point.on_front) {
        (Some(_), _) => 0,
        (None, _) if is_default(point) => 1,
        (None, true) => 2,
        (None, false) => 3,
    };
    let mut order: Vec<usize> = (0..sweep.points.len()).collect();
    order.sort_by_key(|at| rank(&sweep.points[*at]));
    let all = order.iter().map(|at| {
        let point = &sweep.points[*at];
        (*at, row(sweep, point, is_default(point), width))
    });
    let all: Vec<(usize, Vec<String>)> = all.collect();
    let is_short =
        all.len() <= ALL_ROWS && all.iter().map(|(_, it)| it.len()).sum::<usize>() <= room;
    let mut shown: Vec<(usize, Vec<String>)> = Vec::new();
    let mut used = 0;
    for (at, lines) in all {
        let point = &sweep.points[at];
        // Knobs that change nothing give the same numbers many times.
        let is_same = |(other, _): &(usize, Vec<String>)| {
            let other = &sweep.points[*other];
            (other.cost, other.quality) == (point.cost, point.quality)
        };
        let is_needed = match rank(point) {
            0 | 1 => true,
            2 => !shown.iter().any(is_same),
            _ => shown.len() < FEWEST_ROWS,
        };
        if is_short || is_needed && used + lines.len() <= room {
            used += lines.len();
            shown.push((at, lines));
        }
    }
    // As the points are: the cheapest first.
    shown.sort_by_key(|(at, _)| *at);
    let others = sweep.points.len() - shown.len();
    let mut lines: Vec<String> = shown.into_iter().flat_map(|(_, lines)| lines).collect();
    if others > 0 {
        let others = many(others, "more setting", "more settings");
        lines.push(format!(
            "{INDENT}… and {others}: -o sweep.html / --json has them"
        ));
    }
    lines
}

/// One setting: its name, and both numbers with its mark, or why it is broken.
fn row(sweep: &Sweep, point: &SweepPoint, is_default: bool, width: usize) -> Vec<String> {
    let room = name_width(sweep, width);
    let mut name = short_label(sweep, point);
    if is_default && !point.values.is_empty() {
        name.push_str(" default");
    }
    let names = wrap(&escape::plain(&name), room);
    let facts: Vec<String> = if let Some(why) = &point.broken {
        let lines = wrap(&escape::plain(why), width.saturating_sub(room + 6));
        let signed = lines.iter().enumerate().map(|(at, line)| {
            let sign = if at == 0 { "✗" } else { " " };
            format!("  {sign} {line}")
        });
        signed.collect()
    } else {
        let numbers = [point.cost, point.quality].map(number).concat();
        let mark = point.standing.map_or("", Standing::words);
        vec![format!("{numbers}  {mark}")]
    };
    let lines = (0..names.len().max(facts.len())).map(|at| {
        let [name, fact] = [&names, &facts].map(|it| it.get(at).map_or("", String::as_str));
        let blanks = layout::blanks(name, room);
        format!("{INDENT}{name}{blanks}{fact}")
    });
    lines.collect()
}

/// `28.6 ±5.2`, right-aligned; of two sessions an interval is wider than anything that is measured.
fn number(estimate: Option<Estimate>) -> String {
    let text = estimate.map(|it| {
        let half = it.confidence_interval.filter(|_| it.n.sessions > 2);
        let half = half.map(|it| format!(" ±{}", display::points(it.half_width())));
        display::points(it.point_estimate) + &half.unwrap_or_default()
    });
    let text = text.as_deref().unwrap_or("not measured");
    format!("{text:>NUMBER$}")
}

/// The setting with knobs named by their last word, where no other swept knob ends in it.
pub(crate) fn short_label(sweep: &Sweep, point: &SweepPoint) -> String {
    if point.values.is_empty() {
        return "default".to_owned();
    }
    let last = |knob: &str| knob.rsplit('.').next().unwrap_or_default().to_owned();
    let is_alone = |knob: &str| {
        let others = sweep.sensitivity.iter();
        others.filter(|it| last(&it.knob) == last(knob)).count() < 2
    };
    let values = point.values.iter().map(|(knob, value)| {
        let is_short = is_alone(knob) && !knob.starts_with("window.");
        let name = if is_short { last(knob) } else { knob.clone() };
        format!("{name}={value}")
    });
    values.collect::<Vec<_>>().join(", ")
}

/// The verdicts of all windows. Where they are too long, each has its first sentence alone; where that is
/// too long as well, the others are counted.
fn verdict_lines(sweep: &Sweep, width: usize) -> Vec<String> {
    let of = |sentences: usize| -> Vec<Vec<String>> {
        let choices = sweep.choices.iter();
        let texts = choices.map(|choice| {
            let sentences = verdict(sweep, choice).into_iter().take(sentences);
            paragraphs(sentences, width)
        });
        texts.collect()
    };
    if sweep.choices.is_empty() {
        let text = "no choice: one setting alone was tried in each window.".to_owned();
        return paragraphs(std::iter::once(text), width);
    }
    let length = |all: &Vec<Vec<String>>| all.iter().map(Vec::len).sum::<usize>();
    let all = [usize::MAX, 1].map(of);
    let mut lines = Vec::new();
    let fitting = all.iter().find(|all| length(all) <= VERDICT_LINES);
    for (at, one) in fitting.unwrap_or(&all[1]).iter().enumerate() {
        if lines.len() + one.len() > VERDICT_LINES && at > 0 {
            let others = many(sweep.choices.len() - at, "more window", "more windows");
            lines.push(format!("{INDENT}… and {others}: --json has them"));
            break;
        }
        lines.extend(one.iter().cloned());
    }
    lines
}

/// Sentences, the first with an indent, and all further lines indented deeper.
fn paragraphs(sentences: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let deeper = " ".repeat(9);
    let lines =
        sentences.flat_map(|text| wrap(&escape::plain(&text), width.saturating_sub(deeper.len())));
    let indented = lines.enumerate().map(|(at, line)| match at {
        0 => format!("{INDENT}{line}"),
        _ => format!("{deeper}{line}"),
    });
    indented.collect()
}
