//! One or two knobs as a grid on a terminal: what each pair of values saves and keeps.

use super::screen::number;
use crate::compare::sweep::{KnobPair, PairCell, Standing, Sweep, SweepPoint, pairs};
use crate::report::grid::{GridRow, INDENT};
use crate::report::layout;
use crate::report::terminal::Terminal;
use crate::report::{display, escape};

/// A grid with more values of a knob is no longer read at a glance.
const MOST_VALUES: usize = 10;

/// Lays out the grid of a sweep; `None` where it has not one or two knobs, or does not fit.
pub(super) fn grid(sweep: &Sweep, terminal: Terminal) -> Option<Vec<String>> {
    let pair = match sweep.sensitivity.as_slice() {
        [one] => pairs::pair(&sweep.points, "", &one.knob),
        [_, _] => sweep.pairs.first()?.clone(),
        _ => return None,
    };
    if pair.rows.len().max(pair.columns.len()) > MOST_VALUES {
        return None;
    }
    let columns = pair.columns.iter().map(|value| escape::plain(value) + " ");
    let mut rows = vec![GridRow::of("", columns)];
    rows.extend(
        pair.rows.iter().zip(&pair.cells).map(|(name, cells)| {
            GridRow::of(name, cells.iter().map(|cell| cell_text(cell.as_ref())))
        }),
    );
    let table = terminal.grid(&rows);
    if table.iter().map(|line| layout::width(line)).any(|width| width > terminal.columns()) {
        return None;
    }
    let mut lines = terminal.paragraph(INDENT, &title(sweep, &pair), INDENT.len());
    lines.extend(table);
    lines.extend(legend(sweep, &pair).iter().map(|line| format!("{INDENT}{line}")));
    Some(lines)
}

/// Numbers and knobs in words.
fn title(sweep: &Sweep, pair: &KnobPair) -> String {
    let (rows, columns) = (&pair.knobs.0, &pair.knobs.1);
    let (saved, kept) = (sweep.cost, sweep.quality);
    let numbers = format!("{saved} saved / {kept} kept, in percent");
    match rows.as_str() {
        "" => format!("{numbers}; columns: {columns}"),
        rows => format!("{numbers}; rows: {rows}; columns: {columns}"),
    }
}

/// `12 / 90`, in the brackets of the chosen setting or of the default.
fn cell_text(cell: Option<&PairCell>) -> String {
    let Some(cell) = cell else {
        return String::new();
    };
    let text = match (cell.cost, cell.quality) {
        _ if cell.settings == cell.broken => "✗".to_owned(),
        (None, None) => "–".to_owned(),
        (saved, kept) => format!("{} / {}", percent(saved), percent(kept)),
    };
    match (cell.chosen, cell.default) {
        (true, _) => format!("[{text}]"),
        (false, true) => format!("({text})"),
        (false, false) => format!("{text} "),
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), display::whole)
}

/// The marks that occur, with the numbers behind them.
fn legend(sweep: &Sweep, pair: &KnobPair) -> Vec<String> {
    let chosen = sweep.points.iter().find(|point| point.standing.is_some());
    let default =
        sweep.points.iter().find(|point| point.is_default).filter(|point| point.standing.is_none());
    let marked = [
        chosen.map(|point| ("[ ]", point.standing.map_or("", Standing::words), point)),
        default.map(|point| ("( )", "the default", point)),
    ];
    let lines = marked.into_iter().flatten().map(|(sign, words, point)| {
        let words = match point.standing {
            Some(Standing::Default) => "the default, chosen",
            _ => words,
        };
        format!("{sign} {words}: {}", numbers(sweep, point))
    });
    let mut cells = pair.cells.iter().flatten().flatten();
    let broken = cells.any(|cell| cell.broken > 0).then(|| "✗ broken".to_owned());
    lines.chain(broken).collect()
}

/// `bill 28.6 ±5.2, facts 69.5 ±3.0`, or why a setting is broken.
fn numbers(sweep: &Sweep, point: &SweepPoint) -> String {
    if let Some(why) = &point.broken {
        return escape::plain(why);
    }
    let [saved, kept] = [point.cost, point.quality].map(number);
    let (cost, quality) = (sweep.cost, sweep.quality);
    let text = format!("{cost} saved {saved}, {quality} kept {kept}");
    let level = if text.contains('±') { " (± 95 %)" } else { "" };
    text + level
}
