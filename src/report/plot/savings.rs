//! Tokens saved next to the bill saved: the prompt cache accounts for the distance.

use super::axes::{percent, reach};
use super::rows::{self, Row, Value};
use super::scatter::ends;
use super::scene::{BLUE, INK, Mark, Scene, VERMILLION};
use crate::report::{Report, Role, display, headline};

/// Values below this share are drawn at the edge.
const LOWEST: f64 = -2.0;

/// One row per strategy.
pub(crate) fn scene(report: &Report, width: f64) -> Scene {
    let mut scene = Scene::new("Tokens and bill saved, against full history", width);
    scene.legend(&[
        (Mark::Dot, BLUE, "tokens saved"),
        (Mark::Dot, VERMILLION, "bill saved, with the prompt cache"),
        (Mark::Ring, INK, "broken or never fired: not to be compared"),
        (Mark::Line(0.6), INK, "95 % interval over sessions"),
    ]);
    let strategies = headline::rows(report).into_iter();
    let strategies = strategies.filter(|row| row.role == Role::Strategy);
    let rows = strategies.map(|row| {
        let [tokens, cost] = ["tokens", "bill_saved"].map(|column| report.share(row, column));
        let values = [(tokens, BLUE), (cost, VERMILLION)].into_iter();
        let values = values.filter_map(|(share, color)| {
            let (at, interval) = share?;
            Some(Value {
                at,
                interval: interval.map(ends),
                color,
                hollow: !row.ranked,
            })
        });
        let in_words = [(tokens, "tokens"), (cost, "bill")].map(|(share, of)| {
            let share = share.map(|(share, _)| display::percent(share));
            format!("{of} {}", share.as_deref().unwrap_or("not measured"))
        });
        Row {
            title: headline::label(&row.name),
            words: in_words.join(", "),
            margin: None,
            values: values.collect(),
        }
    });
    let rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        scene.note("no strategy was run");
        return scene;
    }
    let values = || rows.iter().flat_map(|row| &row.values);
    let intervals = values().filter_map(|value| value.interval);
    let points = values().map(|value| value.at).chain([0.0]);
    let (from, to) = reach(points, intervals, (0.1, 5.0), (0.04, 0.0));
    let x = (from.max(LOWEST), to.clamp(0.1, 1.05));
    rows::draw(&mut scene, &rows, x, &percent);
    scene.paragraph("savings in percent of full history; right is better, left of 0 costs more");
    let comparison = report.section("comparison").into_iter();
    let mut notes = comparison.flat_map(|section| &section.notes);
    if let Some(scheme) = notes.find(|note| note.starts_with("bill saved: ")) {
        scene.paragraph(scheme);
    }
    scene
}
