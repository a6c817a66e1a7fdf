//! Token savings beside cost savings: the distance between the two is what the cache takes back.

use super::axes::{Panel, ticks};
use super::scene::{Anchor, BLUE, INK, Key, Mark, SIZE, Scene, VERMILLION, fitted};
use crate::report::{Report, Role, Row, Value, figure};
use crate::stats::ConfidenceInterval;

const WIDTH: u32 = 800;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 770.0;
const ROW: f64 = 30.0;

/// Where figures below this share are drawn at the edge, with the figure beside them.
const LOWEST: f64 = -2.0;

/// One row per strategy.
pub(crate) fn scene(report: &Report) -> Scene {
    let mut scene = Scene::new(
        WIDTH,
        "Token savings and cost savings, against full history",
    );
    let rows: Vec<(&Row, [Option<Figure>; 2])> = rows(report);
    let keys = [
        (BLUE, "token savings"),
        (VERMILLION, "cost savings, with the prompt cache"),
    ];
    let mut keys: Vec<Key<'_>> = keys
        .iter()
        .map(|&(color, text)| Key {
            mark: Mark::Dot { hollow: false },
            color,
            opacity: 1.0,
            text,
        })
        .collect();
    keys.push(Key {
        mark: Mark::Dot { hollow: true },
        color: INK,
        opacity: 1.0,
        text: "broken or never fired: not to be compared",
    });
    let figures = rows.iter().flat_map(|(_, both)| both.iter().flatten());
    if figures.clone().any(|figure| figure.interval.is_some()) {
        keys.push(Key {
            mark: Mark::Line { dashed: false },
            color: INK,
            opacity: 0.6,
            text: "95 % interval over sessions",
        });
    }
    let y = scene.legend((16.0, 46.0), f64::from(WIDTH) - 32.0, &keys);
    if rows.is_empty() {
        scene.label((16.0, y + 6.0), "no strategy was run", Anchor::Start);
        scene.ends_at(y + 30.0);
        return scene;
    }
    let (mut from, mut to) = (0.0_f64, 0.1_f64);
    for figure in figures {
        let interval = figure.interval;
        from = from
            .min(figure.value)
            .min(interval.map_or(0.0, |it| it.lower_bound));
        to = to
            .max(figure.value)
            .max(interval.map_or(0.0, |it| it.upper_bound));
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
    let below = report.section("comparison").into_iter();
    let scheme = below
        .flat_map(|section| &section.notes)
        .find(|note| note.starts_with("cost savings: "));
    let mut end = lower + 56.0;
    if let Some(scheme) = scheme {
        end = scene.paragraph((16.0, end), scheme, f64::from(WIDTH) - 32.0);
    }
    scene.ends_at(end);
    scene
}

#[derive(Debug, Clone, Copy)]
struct Figure {
    value: f64,
    interval: Option<ConfidenceInterval>,
}

fn rows(report: &Report) -> Vec<(&Row, [Option<Figure>; 2])> {
    let Some(section) = report.section("comparison") else {
        return Vec::new();
    };
    let of = |row: &Row, column: &str| {
        let cell = section.table.cell(row, column)?;
        match cell.value {
            Value::Percent(value) => Some(Figure {
                value,
                interval: cell.interval,
            }),
            _ => None,
        }
    };
    let rows = section.table.rows.iter();
    rows.filter(|row| row.role == Role::Strategy)
        .map(|row| (row, [of(row, "token_savings"), of(row, "cost_savings")]))
        .collect()
}

fn grid(scene: &mut Scene, panel: &Panel) {
    let [_, upper, _, lower] = panel.edges;
    for value in ticks(panel.x, 8) {
        let (x, _) = panel.at(value, 0.0);
        let is_zero = value.abs() < 1e-9;
        let opacity = if is_zero { 0.7 } else { 0.13 };
        scene.line(vec![(x, upper), (x, lower)], INK, 1, opacity);
        let text = format!("{} %", figure::points(value).trim_end_matches(".0"));
        scene.label((x, lower + 14.0), &text, Anchor::Middle);
    }
}

fn draw(scene: &mut Scene, panel: &Panel, row: &Row, both: &[Option<Figure>; 2], y: f64) {
    scene.label(
        (LEFT - 12.0, y),
        &fitted(&row.name, SIZE, LEFT - 28.0),
        Anchor::End,
    );
    let x = |share: f64| panel.at(share.clamp(panel.x.0, panel.x.1), 0.0).0;
    if let [Some(tokens), Some(cost)] = both {
        scene.line(vec![(x(tokens.value), y), (x(cost.value), y)], INK, 3, 0.25);
    }
    for (number, (figure, color)) in both.iter().zip([BLUE, VERMILLION]).enumerate() {
        let Some(found) = figure else {
            continue;
        };
        // The two intervals stand above and below the line, so that neither hides the other.
        let off = if number == 0 { -5.0 } else { 5.0 };
        if let Some(interval) = found.interval {
            let ends = vec![
                (x(interval.lower_bound), y + off),
                (x(interval.upper_bound), y + off),
            ];
            scene.line(ends, color, 1, 0.8);
        }
        scene.dot((x(found.value), y), 5.0, color, !row.ranked);
        if found.value < panel.x.0 {
            let text = format!("← {}", figure::percent(found.value));
            scene.write(
                (x(found.value) + 10.0, y - 9.0),
                &text,
                11.0,
                color,
                Anchor::Start,
            );
        }
    }
}
