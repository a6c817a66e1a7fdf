//! Tables as the templates show them: the comparison with its short values, and all others.

use serde_json::{Value as Json, json};

use crate::metric::{Unit, metric};
use crate::report::explain;
use crate::report::headline::{self, Headline, OnScreen};
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
    first.retain(|headline| headline.screen != OnScreen::Never);
    let all = table.columns.iter().enumerate().skip(1);
    let shown = all.filter(|(_, column)| !column.is_for_files());
    let mut columns: Vec<_> =
        shown.map(|(at, column)| (place(&first, column.id), (at, column))).collect();
    columns.sort_by_key(|(place, (at, _))| (place.is_none(), *place, *at));
    let name = table.columns.first().map(|column| view::head(table, (0, column), false));
    let heads = columns.iter().map(|(place, (at, column))| {
        let mut head = view::head(table, (*at, column), place.is_none());
        let headline = first.iter().find(|headline| headline.column == column.id);
        if let Some(headline) = headline {
            head["label"] = json!(headline.words(report));
        }
        // A telephone has room for dollars, and not for the share of them.
        let wide = headline.is_none_or(|headline| headline.screen != OnScreen::Always);
        head["is_wide"] = json!(place.is_some() && (wide || column.id == "bill_saved"));
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

/// The place of a column among those that are shown at first: how full the window was stands behind `fired`.
fn place(first: &[&Headline], id: &str) -> Option<usize> {
    let behind = id == "fired_at";
    let of = if behind { "fired" } else { id };
    let at = first.iter().position(|headline| headline.column == of)?;
    Some(2 * at + usize::from(behind))
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
        let session = table.text(row, "session");
        let strategy = headline::label(&table.text(row, "strategy"));
        json!({
            "question": row.name,
            "value": table.text(row, "value"),
            "changed_to": Some(table.text(row, "changed_to")).filter(|text| text != "–"),
            "lost": table.text(row, "lost").replace('/', " of "),
            "stages": table.text(row, "stage"),
            "kept": table.text(row, "kept"),
            "first": format!("call {}, {strategy}", table.text(row, "call")),
            "timeline": sessions.iter().position(|id| *id == session),
            "session": session,
        })
    });
    Some(json!({ "rows": rows.collect::<Vec<_>>(), "all": table.rows.len() }))
}

/// A cell in whole points; its decimals are in its tooltip.
fn short_cell(cell: &Cell, shared_n: Option<SampleSize>) -> Json {
    let mut exact = view::cell(cell, shared_n, false);
    let (mut text, half) = headline::short_value(cell);
    let parts = [&exact["text"], &exact["interval"]].map(|part| part.as_str().unwrap_or_default());
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
