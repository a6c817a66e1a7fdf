//! Markdown in full: every section, as tables of GitHub, which scroll where they are wide.

use serde_json::{Value as Json, json};

use crate::report::{
    Audience, Banner, BannerLevel, Column, RenderError, Report, Section, Value, display, template,
    view,
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
    let alerts = banners.into_iter().map(|banner| {
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
        "banners": alerts.collect::<Vec<_>>(),
        "verdict": verdict,
    })
}

/// A section with the columns that say anything; those that were not measured, and those that are zero
/// everywhere and meant for files, are named below it.
pub(super) fn section(section: &Section) -> Json {
    let table = &section.table;
    let (mut columns, mut missing, mut zero) = (Vec::new(), Vec::new(), Vec::new());
    for (at, column) in table.columns.iter().enumerate().skip(1) {
        let mut counts = table.cells(at).filter(|cell| !cell.value.is_nothing()).peekable();
        if !table.rows.is_empty() && counts.peek().is_none() {
            missing.push(column);
        } else if column.is_for_files() && counts.all(|cell| cell.value == Value::Count(0)) {
            zero.push(column);
        } else {
            columns.push(at);
        }
    }
    let few = Section { table: table.pick(&columns), ..section.clone() };
    let mut shown = view::section(&few, &[]);
    let folded = section.audience == Audience::Files || table.rows.len() > section.most_rows;
    let rows = display::many(table.rows.len(), "row", "rows");
    shown["folded"] = json!(folded.then_some(rows));
    let comparison = section.id == "comparison";
    let legend = comparison.then(|| LEGEND.to_owned());
    // The comparison itself lists the metrics that were not measured.
    let missing = named("not measured", &missing).filter(|_| !comparison);
    let zero = named("0 in every row", &zero);
    let notes = legend.into_iter().chain(section.notes.iter().cloned());
    shown["notes"] = notes.chain(missing).chain(zero).collect();
    shown
}

fn named(what: &str, columns: &[&Column]) -> Option<String> {
    let labels = display::listed(columns.iter().map(|column| &column.label), ", ")?;
    Some(format!("{what}: {labels}"))
}
