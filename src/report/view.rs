//! Tables as templates show them, of pages and of Markdown.

use serde_json::{Value as Json, json};

use crate::metric::metric;
use crate::report::{Cell, Column, Role, Row, Section, Table, Value, display};
use crate::stats::SampleSize;

/// A section; a row that is a session links to its timeline.
pub(super) fn section(section: &Section, sessions: &[&str]) -> Json {
    let table = &section.table;
    let heads = table.columns.iter().enumerate().map(|column| head(table, column, false));
    let rows = table.rows.iter().map(|row| {
        let cells =
            row.cells.iter().zip(1..).map(|(cell, at)| self::cell(cell, table.shared_n(at), false));
        let mut own = self::row(table, row, &row.name, &cells.collect::<Vec<_>>());
        own["timeline"] = json!(sessions.iter().position(|id| *id == row.name));
        own
    });
    json!({
        "title": section.title,
        "about": section.about,
        "notes": section.notes,
        // Recorded texts keep their backticks.
        "sets_code": section.id == "metrics",
        "head": heads.collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
    })
}

pub(super) fn head(table: &Table, (at, column): (usize, &Column), is_hidden: bool) -> Json {
    json!({
        "label": column.label,
        "metric": column.id,
        "is_text": at > 0 && table.is_text(at),
        "is_hidden": is_hidden,
        "about": metric(column.id).map(|metric| metric.doc),
        "n": table.shared_n(at).map(display::n),
    })
}

pub(super) fn row(table: &Table, row: &Row, label: &str, cells: &[Json]) -> Json {
    // A row outside the ranking is greyed where others are ranked.
    let ranks = table.rows.iter().any(|row| row.ranked);
    json!({
        "name": label,
        "id": row.name,
        "full_name": (label != row.name).then_some(&row.name),
        "is_control": matches!(row.role, Role::Reference | Role::Floor),
        "is_unranked": row.role == Role::Strategy && ranks && !row.ranked,
        "marks": row.marks_in_words(),
        "cells": cells,
    })
}

/// A cell whose column has this n in its heading.
pub(super) fn cell(cell: &Cell, shared_n: Option<SampleSize>, is_hidden: bool) -> Json {
    let number = match &cell.value {
        Value::Fraction(part, whole) if *whole > 0 => Some(*part as f64 / *whole as f64),
        value => value.number(),
    };
    json!({
        "is_hidden": is_hidden,
        "number": number.map(|number| number.to_string()),
        "is_text": matches!(cell.value, Value::Text(_)),
        "text": display::cell(cell),
        "best": cell.best,
        "interval": display::interval(cell),
        "n": cell.n.filter(|n| Some(*n) != shared_n).map(display::n),
    })
}
