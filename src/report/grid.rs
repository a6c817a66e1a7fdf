//! Rows of short values under headings, one line each: the tables of every screen.

use super::escape;
use super::layout::{blanks, cut, cut_middle, width};
use super::terminal::{Style, Terminal};

/// Blanks in front of every row.
pub(super) const INDENT: &str = "  ";

/// Blanks between columns at least and at most.
const GAPS: std::ops::RangeInclusive<usize> = 2..=4;

/// The room that names have at least.
const SHORTEST_NAME: usize = 12;

/// The longest name that is not cut.
const LONGEST_NAME: usize = 36;

/// One row.
#[derive(Debug, Clone, Default)]
pub(super) struct GridRow {
    /// Its name, cut in the middle where there is no room.
    pub(super) name: String,
    /// Its values, aligned to the right; none where its end stands in their place.
    pub(super) cells: Vec<String>,
    /// Text behind the values, cut where the line ends.
    pub(super) end: String,
    /// How the end is shown.
    pub(super) style: Style,
    /// A remark on the values, on a line of its own.
    pub(super) below: String,
}

impl GridRow {
    /// A row of these values.
    pub(super) fn of(name: &str, cells: impl IntoIterator<Item = String>) -> Self {
        Self { name: name.to_owned(), cells: cells.into_iter().collect(), ..Self::default() }
    }
}

impl Terminal {
    /// Rows with their headings, which come first. Texts are escaped here.
    pub(super) fn grid(self, rows: &[GridRow]) -> Vec<String> {
        let count = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
        let widest = (0..count).map(|at| {
            let cells = rows.iter().filter_map(|row| row.cells.get(at));
            cells.map(|cell| width(cell)).max().unwrap_or(0)
        });
        let widths: Vec<usize> = widest.collect();
        let values: usize = widths.iter().sum();
        let ends = rows.iter().filter(|row| !row.cells.is_empty());
        let end = ends.map(|row| width(&row.end)).max().unwrap_or(0);
        let end = if end == 0 { 0 } else { end + GAPS.start() };
        let room = self.columns().saturating_sub(INDENT.len() + values + end);
        let names = rows.iter().map(|row| width(&escape::plain(&row.name)));
        let wanted = names.max().unwrap_or(0).min(LONGEST_NAME);
        let least = room.saturating_sub(GAPS.start() * count);
        let name = wanted.min(least.max(SHORTEST_NAME));
        let gap = room.saturating_sub(name) / count.max(1);
        let gap = " ".repeat(gap.clamp(*GAPS.start(), *GAPS.end()));
        let lines = rows.iter().enumerate().flat_map(|(at, row)| {
            let label = cut_middle(&escape::plain(&row.name), name);
            let mut line = format!("{INDENT}{label}{}", blanks(&label, name));
            for (cell, width) in row.cells.iter().zip(&widths) {
                line.extend([&gap, &*blanks(cell, *width), cell]);
            }
            if at == 0 {
                return vec![self.heading(line.trim_end())];
            }
            if row.end.is_empty() {
                line.truncate(line.trim_end().len());
            } else {
                let room = self.columns().saturating_sub(width(&line) + GAPS.start());
                let end = self.paint(row.style, &cut(&escape::plain(&row.end), room));
                line.extend(["  ", &end]);
            }
            let below = (!row.below.is_empty()).then(|| {
                let below = format!("{INDENT}{INDENT}{}", escape::plain(&row.below));
                self.paint(Style::Dim, &cut(&below, self.columns()))
            });
            [Some(line), below].into_iter().flatten().collect()
        });
        lines.collect()
    }
}
