//! HTML: the whole report as one page that needs nothing but a browser.
//!
//! The page works from a file. It loads nothing, and its Content-Security-Policy allows no script and
//! no style but its own two, by their hashes. Templates escape everything that was recorded; the probe
//! items are data that the script writes as text.

use serde_json::{Value as Json, json};

use crate::metric::metric;
use crate::report::headline::{HEADLINES, KEPT};
use crate::report::plot::{NARROW, Scene, WIDE, cache, pareto, savings, svg, tokens};
use crate::report::{
    BannerLevel, Cell, Column, RenderError, Report, Role, Row, Section, Subject, Value, display,
    escape, format,
};

mod calls;
mod compactions;
mod evidence;
mod retention;
mod template;

/// Sessions whose timeline is part of the page; a picture of any other is one command away.
const TIMELINES: usize = 40;

/// Sections that have a place of their own, and are not repeated among the tables.
const PLACED: &[&str] = &["comparison", "findings", "metrics"];

/// Writes the report as one self-contained page.
pub(super) fn render(report: &Report) -> Result<String, RenderError> {
    match &report.subject {
        Subject::Run => template::render("run.html", of_run(report)?),
        Subject::Comparison(_) | Subject::Sweep(_) => {
            let pictures: Result<Vec<Json>, RenderError> = format::pictures(report)
                .map(|scenes| figure(&scenes))
                .collect();
            let page = json!({
                "title": report.title,
                "lines": report.lines,
                "pictures": pictures?,
                "sections": report.sections.iter().map(|section| view(section, None)).collect::<Vec<_>>(),
            });
            template::render("report.html", page)
        }
    }
}

fn of_run(report: &Report) -> Result<Json, RenderError> {
    let evidence = evidence::Evidence::of(report);
    let sessions = evidence.sessions();
    let shown = &sessions[..sessions.len().min(TIMELINES)];
    let timelines = shown.iter().map(|session| {
        let picture = both(|width| tokens::of_session(report, session, width))?;
        Ok(json!({ "session": session, "picture": picture }))
    });
    let compactions = compactions::all(report, &sessions);
    let tables = report.sections.iter();
    let tables = tables.filter(|section| !PLACED.contains(&section.id));
    let section = |id: &str| report.section(id).map(|section| view(section, None));
    // Of what was kept, the page shows one column at first.
    let (kept, _) = report.kept();
    let is_headline = |id: &str| HEADLINES.iter().any(|it| it.column == id);
    let is_first = |id: &str| id == kept || !KEPT.contains(&id) && is_headline(id);
    let comparison = report.section("comparison");
    let verdict = report.verdict.as_ref().map(|verdict| {
        let lines = verdict.lines().into_iter();
        let lines: Vec<Json> = lines
            .map(|line| json!({ "label": line.label, "text": line.text }))
            .collect();
        json!({ "heading": "Verdict", "lines": lines, "trust": report.trust })
    });
    let banners = |is_urgent: bool| {
        let banners = report.banners.iter();
        let banners = banners.filter(|it| (it.level != BannerLevel::Note) == is_urgent);
        banners.collect::<Vec<_>>()
    };
    Ok(json!({
        "title": report.title,
        "verdict": verdict,
        "lines": report.lines,
        "urgent": banners(true),
        "caveats": banners(false),
        "headline": both(|width| pareto::scene(report, width))?,
        "comparison": comparison.map(|section| view(section, Some(&is_first))),
        "lost": evidence.lost(),
        "pictures": [
            both(|width| savings::scene(report, width))?,
            both(|width| cache::scene(report, width))?,
        ],
        "timelines": timelines.collect::<Result<Vec<Json>, RenderError>>()?,
        "calls": calls::data(report, shown)?,
        "sessions": sessions.len(),
        "retention": retention::tables(report)?,
        "items": evidence.items(),
        "most_items": evidence::MOST,
        "evidence": evidence.data()?,
        "compactions": compactions.len(),
        "most_compactions": compactions::MOST,
        "changes": compactions::data(&compactions)?,
        "findings": section("findings"),
        "tables": tables.map(|section| view(section, None)).collect::<Vec<_>>(),
        "metrics": section("metrics"),
    }))
}

/// A picture for every width of the page.
fn both(scene: impl Fn(f64) -> Scene) -> Result<Json, RenderError> {
    figure(&[WIDE, NARROW].map(scene))
}

/// A picture, drawn for wide and for narrow pages; its colours follow the page's by rules of the style.
fn figure([wide, narrow]: &[Scene; 2]) -> Result<Json, RenderError> {
    // A picture that has one width only is scrolled on a narrow page.
    let drawings = if narrow.width < wide.width {
        vec![drawing(wide, "wide")?, drawing(narrow, "narrow")?]
    } else {
        vec![drawing(wide, "only")?]
    };
    Ok(json!({ "title": wide.title, "drawings": drawings }))
}

fn drawing(scene: &Scene, class: &str) -> Result<Json, RenderError> {
    let svg = svg(scene)?;
    let inner = svg.strip_prefix("<svg ").unwrap_or(&svg).trim_end();
    // The boxes of the legend's entries, in percent of the picture.
    let (width, height) = (scene.width / 100.0, scene.height() / 100.0);
    let is_drawn = |name: &str| svg.contains(&format!("data-series=\"{}\"", escape::xml(name)));
    let series = scene.series.iter().filter(|(name, _)| is_drawn(name));
    let series = series.map(|(name, [left, upper, right, lower])| {
        let (left, upper) = (left / width, upper / height);
        let (wide, high) = (right / width - left, lower / height - upper);
        json!({ "name": name, "box": format!("{left:.2} {upper:.3} {wide:.2} {high:.3}") })
    });
    let axis = scene.call_axis.map(|axis| {
        let [left, upper, right, lower] = axis.edges;
        let (from, to) = axis.calls;
        format!("{left} {upper} {right} {lower} {from} {to} {}", axis.most)
    });
    Ok(json!({
        "class": class, "inner": inner, "series": series.collect::<Vec<_>>(), "axis": axis,
    }))
}

/// A section as the template of tables shows it, without columns in which nothing was measured.
///
/// The columns that `is_first` names are shown at first, and a reader chooses among the others; without
/// it all are shown.
fn view(section: &Section, is_first: Option<&dyn Fn(&str) -> bool>) -> Json {
    let table = &section.table;
    let is_shown =
        |column: &Column| column.priority != Column::FILES_ONLY || section.id != "comparison";
    let columns = table.columns.iter().enumerate();
    let head = columns.filter(|(at, column)| *at == 0 || is_shown(column));
    let is_hidden = |column: &Column| is_first.is_some_and(|is_first| !is_first(column.id));
    let head = head.map(|(at, column)| {
        json!({
            "label": column.label,
            "is_text": at > 0 && table.is_text(at),
            "is_hidden": at > 0 && is_hidden(column),
            "about": metric(column.id).map(|metric| metric.doc),
        })
    });
    // A row outside the ranking is greyed where others are ranked.
    let ranks = table.rows.iter().any(|row| row.ranked);
    let row = |row: &Row| {
        let cells = row.cells.iter().zip(table.columns.iter().skip(1));
        let cells = cells.filter(|(_, column)| is_shown(column));
        json!({
            "name": row.name,
            "is_control": matches!(row.role, Role::Reference | Role::Floor),
            "is_unranked": row.role == Role::Strategy && ranks && !row.ranked,
            "marks": row.marks.join("; "),
            "cells": cells.map(|(cell, column)| self::cell(cell, is_hidden(column))).collect::<Vec<_>>(),
        })
    };
    json!({
        "title": section.title,
        "about": section.about,
        "notes": section.notes,
        // Recorded texts keep their backticks.
        "sets_code": section.id == "metrics",
        "head": head.collect::<Vec<_>>(),
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn cell(cell: &Cell, is_hidden: bool) -> Json {
    let number = match &cell.value {
        Value::Percent(share) => Some(*share),
        Value::Tokens(count) | Value::Count(count) => Some(*count as f64),
        Value::Fraction(part, whole) if *whole > 0 => Some(*part as f64 / *whole as f64),
        Value::Fraction(..) | Value::Text(_) | Value::NotMeasured | Value::NotApplicable => None,
    };
    json!({
        "is_hidden": is_hidden,
        "number": number.map(|number| number.to_string()),
        "is_text": matches!(cell.value, Value::Text(_)),
        "text": display::value(&cell.value),
        "best": cell.best,
        "interval": display::interval(cell),
        "n": cell.n.map(display::n),
    })
}

#[cfg(test)]
mod tests;
