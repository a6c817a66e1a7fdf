//! Token savings beside cost savings: the cache takes the distance between the two back.

use super::axes::{Panel, percent, ticks};
use super::scatter::ends;
use super::scene::{BLUE, HPos, INK, Mark, SIZE, Scene, VERMILLION, fitted};
use crate::report::{Report, Role, Row, figure};
use crate::stats::ConfidenceInterval;

const LEFT: f64 = 270.0;
const RIGHT: f64 = 770.0;
const ROW: f64 = 30.0;

/// Values below this share are drawn at the edge, with the figure beside them.
const LOWEST: f64 = -2.0;

/// A share with its interval; nothing where it was not measured.
type Share = Option<(f64, Option<ConfidenceInterval>)>;

/// One row per strategy.
pub(crate) fn scene(report: &Report) -> Scene {
    let mut scene = Scene::new("Token savings and cost savings, against full history");
    let rows = report.compared().iter();
    let rows = rows.filter(|row| row.role == Role::Strategy).map(|row| {
        let columns = ["token_savings", "cost_savings"];
        (row, columns.map(|column| report.share(row, column)))
    });
    let rows: Vec<(&Row, [Share; 2])> = rows.collect();
    let mut keys = vec![
        (Mark::Dot, BLUE, "token savings"),
        (Mark::Dot, VERMILLION, "cost savings, with the prompt cache"),
        (Mark::Ring, INK, "broken or never fired: not to be compared"),
    ];
    let figures = rows.iter().flat_map(|(_, both)| both.iter().flatten());
    if figures.clone().any(|(_, interval)| interval.is_some()) {
        keys.push((Mark::Line(0.6), INK, "95 % interval over sessions"));
    }
    let y = scene.legend(&keys);
    if rows.is_empty() {
        return scene.with_only(y, "no strategy was run");
    }
    let (mut from, mut to) = (0.0_f64, 0.1_f64);
    for (value, interval) in figures {
        let (low, high) = interval.map_or((0.0, 0.0), ends);
        (from, to) = (from.min(*value).min(low), to.max(*value).max(high));
    }
    let from = from.max(LOWEST);
    let room = (to - from) * 0.04;
    let (upper, lower) = (y + 4.0, y + 4.0 + ROW * rows.len() as f64);
    let panel = Panel {
        edges: [LEFT, upper, RIGHT, lower],
        x: (from - room, (to + room).min(1.05)),
        y: (0.0, 1.0),
    };
    for value in ticks(panel.x, 8) {
        let (x, _) = panel.at(value, 0.0);
        let opacity = if value.abs() < 1e-9 { 0.7 } else { 0.13 };
        scene.line(vec![(x, upper), (x, lower)], INK, 1, opacity);
        scene.label((x, lower + 14.0), &percent(value), HPos::Center);
    }
    for (number, (row, both)) in rows.iter().enumerate() {
        let middle = upper + ROW * (number as f64 + 0.5);
        draw(&mut scene, &panel, row, both, middle);
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    let words = "savings in percent of full history; right is better, left of 0 costs more";
    scene.label((middle, lower + 36.0), words, HPos::Center);
    let comparison = report.section("comparison").into_iter();
    let mut notes = comparison.flat_map(|section| &section.notes);
    let mut end = lower + 56.0;
    if let Some(scheme) = notes.find(|note| note.starts_with("cost savings: ")) {
        end = scene.paragraph(end, scheme);
    }
    scene.ends_at(end);
    scene
}

/// Draws the row of a strategy.
fn draw(scene: &mut Scene, panel: &Panel, row: &Row, both: &[Share; 2], y: f64) {
    let name = fitted(&row.name, SIZE, LEFT - 28.0);
    scene.label((LEFT - 12.0, y), &name, HPos::Right);
    let x = |share: f64| panel.clamped(share, 0.0).0;
    if let [Some(tokens), Some(cost)] = both {
        scene.line(vec![(x(tokens.0), y), (x(cost.0), y)], INK, 3, 0.25);
    }
    // One interval is above the line and one below, so that neither hides the other.
    for (share, (color, off)) in both.iter().zip([(BLUE, -5.0), (VERMILLION, 5.0)]) {
        let Some((value, interval)) = *share else {
            continue;
        };
        if let Some((low, high)) = interval.map(ends) {
            let line = vec![(x(low), y + off), (x(high), y + off)];
            scene.line(line, color, 1, 0.8);
        }
        scene.dot((x(value), y), 5.0, color, !row.ranked);
        if value < panel.x.0 {
            let text = format!("← {}", figure::percent(value));
            let at = (x(value) + 10.0, y - 9.0);
            scene.write(at, &text, 11.0, color, HPos::Left);
        }
    }
}
