//! Tables as the templates show them: the comparison with its short values, and all others.

use serde_json::{Value as Json, json};

use crate::metric::{Unit, metric};
use crate::report::explain;
use crate::report::headline::{self, OnScreen};
use crate::report::{Cell, RenderError, Report, Row, Value, template, view};
use crate::stats::SampleSize;

/// Lost facts that are shown before all evidence.
const LOST: usize = 12;

/// The comparison: at first the headlines with short values. A reader chooses among the other columns.
pub(super) fn comparison(report: &Report) -> Option<Json> {
    let section = report.section("comparison")?;
    let table = &section.table;
    let rows = headline::with_controls(report, headline::rows(report));
    let mut first = headline::columns(report, &rows);
    // Of what was kept, the page shows one column at first.
    headline::keep_one(&mut first);
    first.retain(|it| it.screen != OnScreen::Never);
    // The place of a column among those that are shown at first: how full the window was stands behind `fired`.
    let place = |id: &str| {
        let behind = id == "fired_at";
        let of = if behind { "fired" } else { id };
        Some(2 * first.iter().position(|it| it.column == of)? + usize::from(behind))
    };
    let shown = table.columns.iter().enumerate().skip(1).filter(|(_, it)| !it.is_for_files());
    let mut columns: Vec<_> = shown.map(|(at, it)| (place(it.id), (at, it))).collect();
    columns.sort_by_key(|(place, (at, _))| (place.is_none(), *place, *at));
    let name = table.columns.first().map(|column| view::head(table, (0, column), false));
    let heads = columns.iter().map(|(place, (at, column))| {
        let mut head = view::head(table, (*at, column), place.is_none());
        let headline = first.iter().find(|it| it.column == column.id);
        if let Some(headline) = headline {
            head["label"] = json!(headline.words(report));
        }
        // A telephone has room for dollars, and not for the share of them.
        let is_wide = headline.is_none_or(|it| it.screen != OnScreen::Always);
        head["is_wide"] = json!(place.is_some() && (is_wide || column.id == "bill_saved"));
        head
    });
    let none = Cell::NOT_MEASURED;
    Some(json!({
        "title": section.title,
        "notes": section.notes,
        "head": name.into_iter().chain(heads).collect::<Vec<_>>(),
        "rows": rows.iter().map(|row: &&Row| {
        let cells: Vec<Json> = columns.iter().map(|(place, (at, _))| {
            let cell = row.cells.get(at - 1).unwrap_or(&none);
            match place {
                Some(_) => short_cell(cell, table.shared_n(*at)),
                None => view::cell(cell, table.shared_n(*at), true),
            }
        }).collect();
        let mut own = view::row(table, row, &headline::label(&row.name), &cells);
        own["is_quoted"] = json!(!report.compared().contains(row));
        if headline::is_avoided(report, row) {
            let marks = std::iter::once("avoid".to_owned()).chain(row.marks_in_words());
            own["marks"] = json!(marks.collect::<Vec<_>>());
        }
        own
    }).collect::<Vec<_>>(),
    }))
}

/// The numbers of the comparison with all that they are made of, by metric.
pub(super) fn numbers(report: &Report) -> Result<String, RenderError> {
    let columns = explain::explained(report).into_iter();
    let found = columns.filter_map(|metric| explain::explain_column(report, metric).ok());
    let numbers = found.map(|numbers| {
        let pooling = numbers.pooling;
        let in_percent = metric(numbers.metric).is_some_and(|metric| metric.unit == Unit::Share)
            && !pooling.is_of_pairs();
        json!({ "numbers": numbers, "pooling": pooling.in_words(), "in_percent": in_percent })
    });
    template::data(&numbers.collect::<Vec<_>>())
}

/// The lost facts of high importance: those that tell strategies apart come first.
pub(super) fn lost(report: &Report, sessions: &[&str]) -> Option<Json> {
    let table = &report.section("lost")?.table;
    let rows = table.rows.iter().take(LOST).map(|row| {
        let text = |column: &str| table.text(row, column);
        let session = text("session");
        json!({
            "question": row.name,
            "value": text("value"),
            "changed_to": Some(text("changed_to")).filter(|text| text != "–"),
            "lost": text("lost").replace('/', " of "),
            "stages": text("stage"),
            "kept": text("kept"),
            "first": format!("call {}, {}", text("call"), headline::label(&text("strategy"))),
            "timeline": sessions.iter().position(|it| *it == session),
            "session": session,
        })
    });
    Some(json!({ "rows": rows.collect::<Vec<_>>(), "all": table.rows.len() }))
}

/// A cell in whole points; its decimals are in its tooltip.
fn short_cell(cell: &Cell, shared_n: Option<SampleSize>) -> Json {
    let mut exact = view::cell(cell, shared_n, false);
    let (mut text, half) = headline::short_value(cell);
    let parts = [&exact["text"], &exact["interval"]].map(|it| it.as_str().unwrap_or_default());
    let title = parts.join(" ").trim().to_owned();
    match cell.value {
        Value::Share(_) => text += " %",
        Value::Seconds(seconds) => text = format!("{seconds:.0} s"),
        _ => {}
    }
    exact["text"] = json!(text);
    exact["interval"] = json!(half);
    exact["exact"] = json!((exact["text"] != json!(title)).then_some(title));
    exact
}
