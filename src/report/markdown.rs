//! Markdown in full: every section, as tables of GitHub, which scroll where they are wide.

use std::fmt::Write as _;

use crate::report::{
    Audience, Banner, BannerLevel, Cell, Column, Report, Section, Table, Value, display, escape,
};
use crate::stats::SampleSize;

/// The legend of the comparison's signs.
const LEGEND: &str = "Bold: best, or within its ±, among the strategies that fired and are not broken. \
± is half of the 95 % t interval over sessions, in points, a range one that ends at 0 or 100; n is \
sessions/items, as in the heading unless a cell has its own.";

/// Writes the report as GitHub Markdown: every section.
///
/// Sections for files are folded. Metrics that were not measured take no column: they are named.
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
    write_table(out, table, &columns.shown);
    if is_folded {
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

/// The columns of a table.
#[derive(Default)]
struct Columns<'a> {
    /// Those that are shown, without the names.
    shown: Vec<usize>,
    /// Labels of those that were not measured.
    missing: Vec<&'a str>,
    /// Labels of those that are left out because they are zero everywhere.
    zero: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(table: &'a Table) -> Self {
        let mut found = Self::default();
        for (at, column) in table.columns.iter().enumerate().skip(1) {
            if !table.rows.is_empty() && table.cells(at).all(is_nothing) {
                found.missing.push(&column.label);
            } else if column.priority == Column::FILES_ONLY && table.cells(at).all(is_zero) {
                found.zero.push(&column.label);
            } else {
                found.shown.push(at);
            }
        }
        found
    }
}

fn is_nothing(cell: &Cell) -> bool {
    matches!(cell.value, Value::NotMeasured | Value::NotApplicable)
}

fn is_zero(cell: &Cell) -> bool {
    is_nothing(cell) || cell.value == Value::Count(0)
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
