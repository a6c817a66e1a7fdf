//! HTML: the whole report as one page that needs nothing but a browser.
//!
//! The page works from a file. It loads nothing, and its Content-Security-Policy allows no script and
//! no style but its own two, by their hashes. Templates escape everything that was recorded; the probe
//! items are data that the script writes as text.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use crate::metric::survival::is_planted;
use crate::probe::Verdict;
use crate::record::{CellRecord, ProbeRecord, ProbeText};
use crate::report::plot::{Scene, cache, pareto, savings, svg, tokens};
use crate::report::{
    Cell, Column, RenderError, Report, Role, Row, Section, Subject, Value, display, format,
    probe_texts,
};

mod compactions;
mod retention;
mod template;

use template::InternedRows;

/// Sessions whose timeline is part of the page; a picture of any other is one command away.
const TIMELINES: usize = 40;

/// Probe items that are part of the page.
const ITEMS: usize = 20_000;

/// Sections that have a place of their own, and are not repeated among the tables.
const PLACED: &[&str] = &["comparison", "findings", "metrics"];

/// Writes the report as one self-contained page.
pub(super) fn render(report: &Report) -> Result<String, RenderError> {
    match &report.subject {
        Subject::Run => template::render("run.html", of_run(report)?),
        Subject::Comparison(_) | Subject::Sweep(_) => {
            let pictures: Result<Vec<Json>, RenderError> = format::pictures(report)
                .map(|scene| picture(&scene))
                .collect();
            let page = json!({
                "title": report.title,
                "lines": report.lines,
                "pictures": pictures?,
                "sections": report.sections.iter().map(view).collect::<Vec<_>>(),
            });
            template::render("report.html", page)
        }
    }
}

fn of_run(report: &Report) -> Result<Json, RenderError> {
    let mut sessions: Vec<&str> = report.first_cells().map(|it| &*it.session).collect();
    sessions.dedup();
    let timelines = sessions.iter().take(TIMELINES).map(|session| {
        let picture = picture(&tokens::of_session(report, session))?;
        Ok(json!({ "session": session, "picture": picture }))
    });
    let pictures = [savings::scene, pareto::scene, cache::scene].map(|scene| scene(report));
    let (items, texts) = (report.items(), probe_texts(&report.records));
    let evidence = items.iter().take(ITEMS).map(|(cell, item)| {
        let text = texts.get(&(&*cell.session, &*item.probe, item.percent));
        columns_of(cell, item, text.copied())
    });
    let compactions = compactions::all(report);
    let tables = report.sections.iter();
    let tables = tables.filter(|section| !PLACED.contains(&section.id));
    let section = |id: &str| report.section(id).map(view);
    Ok(json!({
        "title": report.title,
        "lines": report.lines,
        "banners": report.banners,
        "comparison": section("comparison"),
        "pictures": pictures.iter().map(picture).collect::<Result<Vec<Json>, RenderError>>()?,
        "timelines": timelines.collect::<Result<Vec<Json>, RenderError>>()?,
        "sessions": sessions.len(),
        "retention": retention::tables(report),
        "items": items.len(),
        "most_items": ITEMS,
        "evidence": InternedRows::data(evidence)?,
        "compactions": compactions.len(),
        "most_compactions": compactions::MOST,
        "changes": compactions::data(&compactions)?,
        "findings": section("findings"),
        "tables": tables.map(view).collect::<Vec<_>>(),
        "metrics": section("metrics"),
    }))
}

/// A picture; its colours follow the page's by rules of the style.
fn picture(scene: &Scene) -> Result<Json, RenderError> {
    let svg = svg(scene)?;
    let inner = svg.strip_prefix("<svg ").unwrap_or(&svg).trim_end();
    Ok(json!({ "title": scene.title, "inner": inner }))
}

/// A section as the template of tables shows it, without columns in which nothing was measured.
fn view(section: &Section) -> Json {
    let table = &section.table;
    let is_shown =
        |column: &Column| column.priority != Column::FILES_ONLY || section.id != "comparison";
    let columns = table.columns.iter().enumerate();
    let head = columns.filter(|(at, column)| *at == 0 || is_shown(column));
    let head = head.map(
        |(at, column)| json!({ "label": column.label, "is_text": at > 0 && table.is_text(at) }),
    );
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
            "cells": cells.map(|(cell, _)| self::cell(cell)).collect::<Vec<_>>(),
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

fn cell(cell: &Cell) -> Json {
    let number = match &cell.value {
        Value::Percent(share) => Some(*share),
        Value::Tokens(count) | Value::Count(count) => Some(*count as f64),
        Value::Fraction(part, whole) if *whole > 0 => Some(*part as f64 / *whole as f64),
        Value::Fraction(..) | Value::Text(_) | Value::NotMeasured | Value::NotApplicable => None,
    };
    json!({
        "number": number.map(|number| number.to_string()),
        "is_text": matches!(cell.value, Value::Text(_)),
        "text": display::value(&cell.value),
        "best": cell.best,
        "interval": display::interval(cell),
        "n": cell.n.map(display::n),
    })
}

/// One item as the texts of its columns.
fn columns_of(cell: &CellRecord, probe: &ProbeRecord, text: Option<&ProbeText>) -> Vec<String> {
    let of_text = |of: fn(&ProbeText) -> &String| {
        text.map_or_else(|| "not recorded".to_owned(), |text| of(text).clone())
    };
    let mut left = display::name_of(&probe.survival.fate);
    if let Some(place) = probe.survival.place {
        let _ = write!(left, " in what is {}", format!("{place:?}").to_lowercase());
    }
    if let Some(lost) = &probe.survival.lost_at {
        let _ = write!(left, "; lost at call {} by {}", lost.call, lost.stage);
        if !lost.reason.is_empty() {
            let _ = write!(left, " ({})", lost.reason);
        }
    }
    let (said, verdict) = match &probe.answer {
        None => ("–".to_owned(), "not asked".to_owned()),
        Some(answer) => (
            answer.text.clone().unwrap_or("no answer".to_owned()),
            verdict(probe.verdict().unwrap_or(answer.typed)),
        ),
    };
    let kind = if is_planted(probe.kind) {
        probe.kind.name().to_owned()
    } else {
        format!("{} (never planted)", probe.kind.name())
    };
    vec![
        cell.session.clone(),
        cell.strategy.clone(),
        kind,
        format!("{} %, call {}", probe.percent, probe.call),
        of_text(|text| &text.question),
        of_text(|text| &text.gold),
        left,
        said,
        verdict,
        display::name_of(&probe.survival.fate),
    ]
}

fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Scored { score, outcome } => {
            let word = display::name_of(&outcome);
            format!("{word}, {score:.2}")
        }
        Verdict::Unscored { .. } => "not scored".to_owned(),
    }
}

#[cfg(test)]
mod tests;
