//! Markdown in full: every section, as tables of GitHub, which scroll where they are wide.

use serde_json::{Value as Json, json};

use crate::report::{
    Audience, Banner, BannerLevel, Cell, Column, RenderError, Report, Section, Value, display,
    template, view,
};

/// The legend of the comparison's signs.
const LEGEND: &str = "Bold: best, or within its ±, among the strategies that fired and are not broken. \
± is half of the 95 % t interval over sessions, in points, a range one that ends at 0 or 100; n is \
sessions/items, as in the heading unless a cell has its own.";

/// Writes the report as GitHub Markdown: every section.
///
/// Sections for files are folded. Metrics that were not measured take no column: they are named.
pub fn render(report: &Report) -> Result<String, RenderError> {
    let sections = report.sections.iter().map(section);
    let mut page = head(report, &report.banners);
    page["lines"] = json!(report.lines);
    page["sections"] = sections.collect();
    template::render("full.md.j2", page)
}

/// The title, banners as GitHub shows alerts, and the verdict in lines.
pub(super) fn head<'a>(report: &Report, banners: impl IntoIterator<Item = &'a Banner>) -> Json {
    let banners = banners.into_iter().map(|banner| {
        let kind = match banner.level {
            BannerLevel::Invalid => "CAUTION",
            BannerLevel::Warning => "WARNING",
            BannerLevel::Note => "NOTE",
        };
        json!({ "kind": kind, "text": banner.in_full() })
    });
    let totals = Some(&report.totals).filter(|totals| !totals.is_empty());
    let verdict = report.verdict.as_ref().map(|verdict| {
        let lines = verdict.lines().into_iter().map(|line| line.in_full());
        lines.chain(totals.cloned()).collect::<Vec<_>>()
    });
    json!({
        "title": report.title,
        "banners": banners.collect::<Vec<_>>(),
        "verdict": verdict,
    })
}

/// A section with the columns that say anything; those that were not measured, and those that are zero
/// everywhere and meant for files, are named below it.
pub(super) fn section(section: &Section) -> Json {
    let table = &section.table;
    let (mut columns, mut missing, mut zero) = (Vec::new(), Vec::new(), Vec::new());
    for (at, column) in table.columns.iter().enumerate().skip(1) {
        let is_zero = |cell: &Cell| cell.value.is_nothing() || cell.value == Value::Count(0);
        if !table.rows.is_empty() && table.cells(at).all(|cell| cell.value.is_nothing()) {
            missing.push(column);
        } else if column.is_for_files() && table.cells(at).all(is_zero) {
            zero.push(column);
        } else {
            columns.push(at);
        }
    }
    let mut shown = view::section(section, &table.pick(&columns), &[]);
    let is_folded = section.audience == Audience::Files || table.rows.len() > section.most_rows;
    let rows = display::many(table.rows.len(), "row", "rows");
    shown["folded"] = json!(is_folded.then_some(rows));
    let is_comparison = section.id == "comparison";
    let legend = is_comparison.then(|| LEGEND.to_owned());
    // The comparison itself lists the metrics that were not measured.
    let missing = named("not measured", &missing).filter(|_| !is_comparison);
    let zero = named("0 in every row", &zero);
    let notes = legend.into_iter().chain(section.notes.iter().cloned());
    shown["notes"] = notes.chain(missing).chain(zero).collect();
    shown
}

fn named(what: &str, columns: &[&Column]) -> Option<String> {
    let labels = display::listed(columns.iter().map(|column| &column.label), ", ")?;
    Some(format!("{what}: {labels}"))
}
