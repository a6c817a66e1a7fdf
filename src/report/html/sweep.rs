//! A sweep as one page: both pictures, and every setting in a table that sorts.

use super::page::Page;
use super::{SCRIPT, STYLE, Sorting, heading, table};
use crate::compare::sweep::{Sweep, SweepPoint};
use crate::report::plot;
use crate::report::{Cell, Column, RenderError, Role, Row, Section, Value, figure};

/// The page, which needs nothing but a browser.
pub fn sweep(sweep: &Sweep) -> Result<String, RenderError> {
    let title = format!("Sweep of {} settings", sweep.points.len());
    let mut page = Page::new(&title, STYLE, SCRIPT);
    page.raw("<header>\n<h1>");
    page.text(&title);
    page.raw("</h1>\n");
    let sessions = |ids: &[String]| figure::many(ids.len(), "session", "sessions");
    page.paragraph(&format!(
        "Chosen on {}, tried on {} others. Nothing is tested over the grid: among many settings some look better by chance.",
        sessions(&sweep.tune),
        sweep.confirm.len()
    ));
    for found in &sweep.recommendations {
        page.paragraph(&format!("Recommended: {}", found.label()));
        if let Some(confirmation) = &found.confirmation {
            page.paragraph(&confirmation.says);
        }
    }
    if sweep.recommendations.is_empty() {
        page.paragraph("No setting that was tried saves anything: none is recommended.");
    }
    page.raw("</header>\n<main id=\"main\">\n");
    heading(&mut page, "pictures", "Pictures");
    for (_, scene) in plot::OF_SWEEP {
        page.picture(&scene(sweep))?;
    }
    page.raw("</section>\n");
    heading(&mut page, "settings", "Settings");
    table(&mut page, &settings(sweep), Sorting::ByHeading);
    page.raw("</section>\n</main>\n");
    Ok(page.finish())
}

fn settings(sweep: &Sweep) -> Section {
    Section::new(
        "settings",
        "Settings",
        String::new(),
        vec![
            Column::new("setting", "setting", 0),
            Column::new("cost", &sweep.cost, 0),
            Column::new("quality", &sweep.quality, 0),
            Column::new("front", "on the front, one session left out in turn", 0),
        ],
        sweep.points.iter().map(row).collect(),
    )
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
