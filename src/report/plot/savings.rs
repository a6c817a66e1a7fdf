//! Token savings beside cost savings: the distance between the two is what the cache takes back.

use super::axes::{Panel, percent, ticks};
use super::scene::{Anchor, BLUE, INK, Key, SIZE, Scene, VERMILLION, fitted};
use crate::report::{Report, Role, Row, figure};
use crate::stats::ConfidenceInterval;

const LEFT: f64 = 270.0;
const RIGHT: f64 = 770.0;
const ROW: f64 = 30.0;

/// Where figures below this share are drawn at the edge, with the figure beside them.
const LOWEST: f64 = -2.0;

/// One row per strategy.
pub(crate) fn scene(report: &Report) -> Scene {
    let mut scene = Scene::new("Token savings and cost savings, against full history");
    let rows: Vec<(&Row, [Option<Share>; 2])> = rows(report);
    let keys = [
        (BLUE, "token savings"),
        (VERMILLION, "cost savings, with the prompt cache"),
    ];
    let mut keys: Vec<Key<'_>> = keys
        .iter()
        .map(|&(color, text)| Key::dot(text, color, false))
        .collect();
    keys.push(Key::dot(
        "broken or never fired: not to be compared",
        INK,
        true,
    ));
    let figures = rows.iter().flat_map(|(_, both)| both.iter().flatten());
    if figures.clone().any(|(_, interval)| interval.is_some()) {
        keys.push(Key::line("95 % interval over sessions", INK, false).faint(0.6));
    }
    let y = scene.legend(&keys);
    if rows.is_empty() {
        return scene.with_only(y, "no strategy was run");
    }
    let (mut from, mut to) = (0.0_f64, 0.1_f64);
    for (value, interval) in figures {
        let (low, high) = interval.map_or((0.0, 0.0), |it| (it.lower_bound, it.upper_bound));
        (from, to) = (from.min(*value).min(low), to.max(*value).max(high));
    }
    let from = from.max(LOWEST);
    let room = (to - from) * 0.04;
    let lower = y + 4.0 + ROW * rows.len() as f64;
    let panel = Panel {
        edges: [LEFT, y + 4.0, RIGHT, lower],
        x: (from - room, (to + room).min(1.05)),
        y: (0.0, 1.0),
    };
    grid(&mut scene, &panel);
    for (number, (row, both)) in rows.iter().enumerate() {
        let middle = y + 4.0 + ROW * (number as f64 + 0.5);
        draw(&mut scene, &panel, row, both, middle);
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    let words = "savings in percent of full history; right is better, left of 0 costs more";
    scene.label((middle, lower + 36.0), words, Anchor::Middle);
    let mut notes = report
        .section("comparison")
        .into_iter()
        .flat_map(|it| &it.notes);
    let scheme = notes.find(|note| note.starts_with("cost savings: "));
    let mut end = lower + 56.0;
    if let Some(scheme) = scheme {
        end = scene.paragraph(end, scheme);
    }
    scene.ends_at(end);
    scene
}

/// A share with its interval.
type Share = (f64, Option<ConfidenceInterval>);

fn rows(report: &Report) -> Vec<(&Row, [Option<Share>; 2])> {
    let rows = report.compared().iter();
    rows.filter(|row| row.role == Role::Strategy)
        .map(|row| {
            (
                row,
                ["token_savings", "cost_savings"].map(|column| report.share(row, column)),
            )
        })
        .collect()
}

fn grid(scene: &mut Scene, panel: &Panel) {
    let [_, upper, _, lower] = panel.edges;
    for value in ticks(panel.x, 8) {
        let (x, _) = panel.at(value, 0.0);
        let is_zero = value.abs() < 1e-9;
        let opacity = if is_zero { 0.7 } else { 0.13 };
        scene.line(vec![(x, upper), (x, lower)], INK, 1, opacity);
        scene.label((x, lower + 14.0), &percent(value), Anchor::Middle);
    }
}

fn draw(scene: &mut Scene, panel: &Panel, row: &Row, both: &[Option<Share>; 2], y: f64) {
    scene.label(
        (LEFT - 12.0, y),
        &fitted(&row.name, SIZE, LEFT - 28.0),
        Anchor::End,
    );
    let x = |share: f64| panel.clamped(share, 0.0).0;
    if let [Some(tokens), Some(cost)] = both {
        scene.line(vec![(x(tokens.0), y), (x(cost.0), y)], INK, 3, 0.25);
    }
    for (number, (figure, color)) in both.iter().zip([BLUE, VERMILLION]).enumerate() {
        let Some((value, interval)) = *figure else {
            continue;
        };
        // The two intervals stand above and below the line, so that neither hides the other.
        let off = if number == 0 { -5.0 } else { 5.0 };
        if let Some(interval) = interval {
            let ends = vec![
                (x(interval.lower_bound), y + off),
                (x(interval.upper_bound), y + off),
            ];
            scene.line(ends, color, 1, 0.8);
        }
        scene.dot((x(value), y), 5.0, color, !row.ranked);
        if value < panel.x.0 {
            let text = format!("← {}", figure::percent(value));
            scene.write(
                (x(value) + 10.0, y - 9.0),
                &text,
                11.0,
                color,
                Anchor::Start,
            );
        }
    }
}
