//! Markdown in full: every section, as tables GitHub shows in the width of a pull request.

use std::fmt::Write as _;

use crate::report::layout::{self, ColumnSpec};
use crate::report::{
    Audience, Banner, BannerLevel, Cell, Column, Report, Section, Table, Value, display, escape,
};
use crate::stats::SampleSize;

/// The legend of the comparison's signs.
const LEGEND: &str = "Bold: best, or within its ±, among the strategies that fired and are not broken. \
± is half of the 95 % t interval over sessions, in points, a range one that ends at 0 or 100; n is \
sessions/items, as in the heading unless a cell has its own.";

/// A table of more characters than this is too wide for the review of a change.
const WIDTH: usize = 120;

/// Prose wraps: it asks for no more.
const PROSE: usize = 24;

/// Writes the report as GitHub Markdown: every section.
///
/// Columns that do not fit 120 characters are in folded tables of their own, and sections for files
/// are folded. Metrics that were not measured take no column: they are named.
pub fn render(report: &Report) -> String {
    let mut out = format!("# {}\n\n", escape::markdown(&report.title));
    for shown in &report.banners {
        banner(&mut out, shown);
    }
    verdict(&mut out, report);
    for line in &report.lines {
        let _ = writeln!(out, "- {}", escape::markdown(line));
    }
    for section in &report.sections {
        write_section(&mut out, section);
    }
    out
}

/// Writes the verdict, a line each.
pub(super) fn verdict(out: &mut String, report: &Report) {
    let Some(verdict) = &report.verdict else {
        return;
    };
    out.push_str("## Verdict\n\n");
    for line in verdict.lines() {
        let _ = writeln!(out, "- {}", escape::markdown(&line.in_full()));
    }
    if !report.totals.is_empty() {
        let _ = writeln!(out, "- {}", escape::markdown(&report.totals));
    }
    out.push('\n');
}

/// Writes a banner as GitHub shows an alert.
pub(super) fn banner(out: &mut String, banner: &Banner) {
    let kind = match banner.level {
        BannerLevel::Invalid => "CAUTION",
        BannerLevel::Warning => "WARNING",
        BannerLevel::Note => "NOTE",
    };
    let _ = writeln!(
        out,
        "> [!{kind}]\n> {}\n",
        escape::markdown(&banner.in_full())
    );
}

pub(super) fn write_section(out: &mut String, section: &Section) {
    let title = escape::markdown(&section.title);
    let _ = write!(out, "\n## {title}\n\n");
    if !section.about.is_empty() {
        let _ = write!(out, "{}\n\n", escape::markdown(&section.about));
    }
    let table = &section.table;
    let columns = Columns::of(table);
    let is_folded = section.audience == Audience::Files || table.rows.len() > section.most_rows;
    if is_folded {
        let rows = display::many(table.rows.len(), "row", "rows");
        let _ = write!(out, "<details><summary>{rows}</summary>\n\n");
    }
    write_table(out, table, &columns.first);
    if !columns.overflow.is_empty() {
        let more = columns.overflow.iter().map(Vec::len).sum();
        let more = display::many(more, "more column", "more columns");
        if !is_folded {
            let _ = write!(out, "\n<details><summary>{more}</summary>\n");
        }
        for overflow in &columns.overflow {
            out.push('\n');
            write_table(out, table, overflow);
        }
    }
    if is_folded || !columns.overflow.is_empty() {
        out.push_str("\n</details>\n");
    }
    let is_comparison = section.id == "comparison";
    let legend = is_comparison.then(|| LEGEND.to_owned());
    // The comparison itself lists the metrics that were not measured.
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

/// The columns of each table.
#[derive(Default)]
struct Columns<'a> {
    /// The first table's, without the names.
    first: Vec<usize>,
    /// Those of tables that are folded.
    overflow: Vec<Vec<usize>>,
    /// Labels of those that were not measured.
    missing: Vec<&'a str>,
    /// Labels of those that are left out because they are zero everywhere.
    zero: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(table: &'a Table) -> Self {
        let mut found = Self::default();
        let nothing = |cell: &Cell| matches!(cell.value, Value::NotMeasured | Value::NotApplicable);
        let nothing_or_zero = |cell: &Cell| nothing(cell) || cell.value == Value::Count(0);
        let mut shown = vec![0];
        for (at, column) in table.columns.iter().enumerate().skip(1) {
            if !table.rows.is_empty() && table.cells(at).all(nothing) {
                found.missing.push(&column.label);
            } else if column.priority == Column::FILES_ONLY && table.cells(at).all(nothing_or_zero)
            {
                found.zero.push(&column.label);
            } else {
                shown.push(at);
            }
        }
        let specs: Vec<ColumnSpec> = shown.iter().map(|at| spec(table, *at)).collect();
        let widths = layout::columns(&specs, WIDTH);
        let fits: Vec<bool> = widths.iter().map(Option::is_some).collect();
        let place = |at: usize| shown[at];
        let fitting = (1..shown.len()).filter(|at| fits[*at]);
        found.first = fitting.map(place).collect();
        let overflow = layout::overflow(&specs, &fits, WIDTH).into_iter();
        let overflow = overflow.map(|table| table.into_iter().map(place).collect());
        found.overflow = overflow.collect();
        found
    }
}

/// How wide a column is where headings and prose wrap and numbers do not.
fn spec(table: &Table, at: usize) -> ColumnSpec {
    let column = &table.columns[at];
    let shared = table.shared_n(at);
    let names = table.rows.iter().filter(|_| at == 0);
    let names = names.map(|row| layout::narrowest(&row.name, PROSE, PROSE));
    let cells = table.cells(at).map(|cell| {
        if let Value::Text(text) = &cell.value {
            layout::width(text).min(PROSE)
        } else {
            let lines = lines(cell, shared);
            let widths = lines.iter().map(|line| layout::width(line));
            widths.max().unwrap_or(0)
        }
    });
    let head = layout::narrowest(&column.label, PROSE, PROSE);
    let n = shared.map_or(0, |n| layout::width(&display::n(n)));
    let widest = names.chain(cells).chain([head, n]).max().unwrap_or(0);
    ColumnSpec {
        // Here nothing is too long to come last.
        priority: column.priority.min(ColumnSpec::NEVER - 1),
        narrowest: widest,
        widest,
    }
}

pub(super) fn write_table(out: &mut String, table: &Table, columns: &[usize]) {
    let label = |at: usize| {
        let column = table.columns.get(at);
        escape::markdown(column.map_or("", |column| &column.label))
    };
    let _ = write!(out, "| {} ", label(0));
    for at in columns {
        let _ = write!(out, "| {}", label(*at));
        if let Some(n) = table.shared_n(*at) {
            let _ = write!(out, "<br>{}", display::n(n));
        }
        out.push(' ');
    }
    out.push_str("|\n| :-- ");
    for at in columns {
        let is_text = table.is_text(*at);
        out.push_str(if is_text { "| :-- " } else { "| --: " });
    }
    out.push_str("|\n");
    for row in &table.rows {
        let _ = write!(out, "| {}", escape::markdown(&row.name));
        for mark in row.marks_in_words() {
            let _ = write!(out, "<br>*{}*", escape::markdown(&mark));
        }
        for at in columns {
            let cell = row.cells.get(at - 1);
            let words = cell.map(|cell| in_words(cell, table.shared_n(*at)));
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
        let value = escape::markdown(&display::cell(cell));
        *first = first.replacen(&value, &format!("**{value}**"), 1);
    }
    words.join("<br>")
}

fn lines(cell: &Cell, head: Option<SampleSize>) -> Vec<String> {
    let mut lines = vec![display::cell(cell)];
    if let Some(interval) = display::interval(cell) {
        lines[0].push(' ');
        lines[0].push_str(&interval);
    }
    lines.extend(cell.n.filter(|n| Some(*n) != head).map(display::n));
    lines
}
