//! A sweep as one page: both pictures, and every setting in a table that sorts.

use serde_json::json;

use super::{pictures, template, view};
use crate::compare::sweep::{Sweep, SweepPoint};
use crate::report::plot;
use crate::report::{Cell, Column, RenderError, Role, Row, Section, Value, figure};

/// The page, which needs nothing but a browser.
pub fn sweep(sweep: &Sweep) -> Result<Vec<u8>, RenderError> {
    let recommended = sweep.recommendations.iter().flat_map(|found| {
        let says = found.confirmation.iter().map(|it| it.says.clone());
        std::iter::once(format!("Recommended: {}", found.label())).chain(says)
    });
    let page = json!({
        "title": format!("Sweep of {} settings", sweep.points.len()),
        "sessions": figure::many(sweep.tune.len(), "session", "sessions"),
        "confirmed": sweep.confirm.len(),
        "recommended": recommended.collect::<Vec<_>>(),
        "pictures": pictures(&plot::OF_SWEEP.map(|(_, scene)| scene(sweep)))?,
        "settings": view(&settings(sweep)),
    });
    template::render("sweep.html", page)
}

fn settings(sweep: &Sweep) -> Section {
    Section::new("settings", sweep.points.iter().map(row)).more_columns([
        Column::new("cost", &sweep.cost, 0),
        Column::new("quality", &sweep.quality, 0),
        Column::new("front", "on the front, one session left out in turn", 0),
    ])
}

fn row(point: &SweepPoint) -> Row {
    let mut marks = Vec::new();
    if point.recommended {
        marks.push("recommended".to_owned());
    }
    if let Some(why) = &point.broken {
        marks.push(format!("broken: {why}"));
    }
    let share = point
        .front_share
        .filter(|_| point.broken.is_none())
        .map_or(Value::NotApplicable, Value::Percent);
    Row {
        name: point.label(),
        role: Role::Strategy,
        marks,
        ranked: point.broken.is_none(),
        cells: vec![
            Cell::savings(point.cost),
            Cell::estimate(point.quality),
            Cell::exact(share),
        ],
    }
}
