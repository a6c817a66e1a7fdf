//! Markdown: every section, as tables GitHub shows in the width of a pull request.

use std::fmt::Write as _;

use crate::report::layout::{self, Wish};
use crate::report::{
    Artifact, Audience, BannerLevel, Cell, Column, RenderError, Renderer, Report, Row, Section,
    Table, Value, escape, figure,
};
use crate::stats::SampleSize;

/// What the signs of the comparison mean.
const LEGEND: &str = "Bold: best, or within its ±, among the strategies that fired and are not broken. \
± is half of the 95 % t interval over sessions, in points, a range one that ends at 0 or 100; n is \
sessions/items, as in the heading unless a cell has its own.";

/// A table of more characters than this is not read beside a change.
const WIDTH: usize = 120;

/// Prose wraps: it asks for no more.
const PROSE: usize = 24;

/// Writes the report as GitHub Markdown: every section.
///
/// Columns of which there is something to say and which do not fit 120 characters stand in tables of their
/// own that are folded, and so do sections for files. What nobody measured takes no column: it is named.
#[derive(Debug, Clone, Copy, Default)]
pub struct Markdown;

impl Renderer for Markdown {
    fn format(&self) -> &'static str {
        "md"
    }

    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let mut out = format!("# {}\n\n", escape::markdown(&report.title));
        for banner in &report.banners {
            let kind = match banner.level {
                BannerLevel::Invalid => "CAUTION",
                BannerLevel::Warning => "WARNING",
                BannerLevel::Note => "NOTE",
            };
            let _ = writeln!(out, "> [!{kind}]\n> {}\n", escape::markdown(&banner.text));
        }
        for line in report.summary_lines() {
            let _ = writeln!(out, "- {}", escape::markdown(&line));
        }
        for section in &report.sections {
            write_section(&mut out, section);
        }
        Ok(vec![Artifact {
            name: "report.md".to_owned(),
            bytes: out.into_bytes(),
        }])
    }
}

fn write_section(out: &mut String, section: &Section) {
    let _ = write!(
        out,
        "\n## {}\n\n{}\n\n",
        escape::markdown(&section.title),
        escape::markdown(&section.about)
    );
    let table = &section.table;
    let columns = Columns::of(table);
    let is_folded = section.audience == Audience::Files;
    if is_folded {
        let rows = figure::many(table.rows.len(), "row", "rows");
        let _ = write!(out, "<details><summary>{rows}</summary>\n\n");
    }
    write_table(out, table, &columns.first);
    if !columns.further.is_empty() {
        let more = columns.further.iter().map(Vec::len).sum();
        let more = figure::many(more, "more column", "more columns");
        if !is_folded {
            let _ = write!(out, "\n<details><summary>{more}</summary>\n");
        }
        for further in &columns.further {
            out.push('\n');
            write_table(out, table, further);
        }
    }
    if is_folded || !columns.further.is_empty() {
        out.push_str("\n</details>\n");
    }
    let is_comparison = section.id == "comparison";
    let legend = is_comparison.then(|| LEGEND.to_owned());
    // The comparison says itself what nobody measured.
    let missing = named("not measured", &columns.missing).filter(|_| !is_comparison);
    let zero = named("0 in every row", &columns.zero);
    let notes = section.notes.iter().cloned();
    for note in legend.into_iter().chain(notes).chain(missing).chain(zero) {
        let _ = write!(out, "\n{}\n", escape::markdown(&note));
    }
}

fn named(what: &str, labels: &[&str]) -> Option<String> {
    (!labels.is_empty()).then(|| format!("{what}: {}", labels.join(", ")))
}

/// Which columns stand where.
struct Columns<'a> {
    /// The first table's, without the names.
    first: Vec<usize>,
    /// Those of tables that are folded.
    further: Vec<Vec<usize>>,
    /// Labels of those that nobody measured.
    missing: Vec<&'a str>,
    /// Labels of those that are aside because they are zero everywhere.
    zero: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(table: &'a Table) -> Self {
        let mut missing = Vec::new();
        let mut zero = Vec::new();
        let mut shown = vec![true];
        let mut wishes = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            wishes.push(wish(table, at, column));
            let Some(at) = at.checked_sub(1) else {
                continue;
            };
            let cells = || table.rows.iter().filter_map(|row| row.cells.get(at));
            let nothing =
                |cell: &Cell| matches!(cell.value, Value::NotMeasured | Value::NotApplicable);
            let is_missing = !table.rows.is_empty() && cells().all(nothing);
            let is_zero = column.rank == Column::FILES_ONLY
                && cells().all(|cell| nothing(cell) || cell.value == Value::Count(0));
            match (is_missing, is_zero) {
                (true, _) => missing.push(column.label.as_str()),
                (false, true) => zero.push(column.label.as_str()),
                (false, false) => {}
            }
            shown.push(!(is_missing || is_zero));
        }
        let wanted: Vec<usize> = (0..wishes.len()).filter(|at| shown[*at]).collect();
        let wishes: Vec<Wish> = wanted.iter().map(|at| wishes[*at]).collect();
        let fits: Vec<bool> = layout::columns(&wishes, WIDTH)
            .iter()
            .map(Option::is_some)
            .collect();
        let fitting = wanted.iter().zip(&fits).skip(1);
        let further = layout::further(&wishes, &fits, WIDTH);
        Self {
            first: fitting
                .filter(|(_, fits)| **fits)
                .map(|(at, _)| *at)
                .collect(),
            further: further
                .into_iter()
                .map(|table| table.into_iter().map(|at| wanted[at]).collect())
                .collect(),
            missing,
            zero,
        }
    }
}

/// How wide a column is where headings and prose wrap and numbers do not.
fn wish(table: &Table, at: usize, column: &Column) -> Wish {
    let shared = figure::shared_n(&table.rows, at);
    let cells = table.rows.iter().map(|row| match at.checked_sub(1) {
        None => layout::narrowest(&row.name, PROSE, PROSE),
        Some(at) => row.cells.get(at).map_or(0, |cell| match &cell.value {
            Value::Text(text) => layout::width(text).min(PROSE),
            _ => lines(cell, shared)
                .iter()
                .map(|line| layout::width(line))
                .max()
                .unwrap_or(0),
        }),
    });
    let head = layout::narrowest(&column.label, PROSE, PROSE);
    let n = shared.map_or(0, |n| layout::width(&figure::n(n)));
    let widest = cells.chain([head, n]).max().unwrap_or(0);
    Wish {
        // Here nothing is too long to come last.
        rank: column.rank.min(Wish::NEVER - 1),
        narrowest: widest,
        widest,
    }
}

fn write_table(out: &mut String, table: &Table, columns: &[usize]) {
    let label = |at: usize| {
        let column = table.columns.get(at);
        escape::markdown(column.map_or("", |column| &column.label))
    };
    let _ = write!(out, "| {} ", label(0));
    for at in columns {
        let _ = write!(out, "| {}", label(*at));
        if let Some(n) = figure::shared_n(&table.rows, *at) {
            let _ = write!(out, "<br>{}", figure::n(n));
        }
        out.push(' ');
    }
    out.push_str("|\n| :-- ");
    for at in columns {
        let is_text = |row: &Row| {
            let cell = row.cells.get(at - 1);
            cell.is_some_and(|cell| matches!(cell.value, Value::Text(_)))
        };
        out.push_str(if table.rows.iter().any(is_text) {
            "| :-- "
        } else {
            "| --: "
        });
    }
    out.push_str("|\n");
    for row in &table.rows {
        let _ = write!(out, "| {}", escape::markdown(&row.name));
        for mark in &row.marks {
            let _ = write!(out, "<br>*{}*", escape::markdown(mark));
        }
        for at in columns {
            let shared = figure::shared_n(&table.rows, *at);
            let cell = row.cells.get(at - 1);
            let words = cell.map(|cell| in_words(cell, shared));
            let _ = write!(out, " | {}", words.unwrap_or_default());
        }
        out.push_str(" |\n");
    }
}

/// `**61.2 %** ±3.1`, and below it the n where the heading has another: bold is best.
fn in_words(cell: &Cell, head: Option<SampleSize>) -> String {
    let lines = lines(cell, head);
    let mut words: Vec<String> = lines.iter().map(|line| escape::markdown(line)).collect();
    if let (true, Some(first)) = (cell.best, words.first_mut()) {
        let value = escape::markdown(&figure::value(&cell.value));
        *first = first.replacen(&value, &format!("**{value}**"), 1);
    }
    words.join("<br>")
}

fn lines(cell: &Cell, head: Option<SampleSize>) -> Vec<String> {
    let mut lines = vec![figure::value(&cell.value)];
    if let Some(interval) = figure::interval(cell) {
        lines[0].push(' ');
        lines[0].push_str(&interval);
    }
    lines.extend(cell.n.filter(|n| Some(*n) != head).map(figure::n));
    lines
}
