//! Retention curves: what survives, by how old it is.

use std::collections::BTreeMap;

use super::axes::{Axis, Panel};
use super::scene::{Anchor, INK, Key, Mark, Scene, line_of};
use crate::metric::survival::is_planted;
use crate::report::{Report, Role, figure};

const WIDTH: u32 = 800;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 780.0;
const HEIGHT: f64 = 280.0;

/// Mean survival by how far the session is, in percent.
type Curve = Vec<(f64, f64)>;

/// Survival at each asking point, for every strategy: all planted items together.
pub(super) fn scene(report: &Report) -> Scene {
    let mut scene = Scene::new(WIDTH, "What survives, as the session goes on");
    let rows = report.section("comparison").into_iter();
    let names: Vec<&str> = rows
        .flat_map(|section| &section.table.rows)
        .filter(|row| row.role == Role::Strategy)
        .map(|row| row.name.as_str())
        .collect();
    let curves: Vec<(usize, &str, Curve)> = names
        .iter()
        .enumerate()
        .map(|(at, name)| (at, *name, curve(report, name)))
        .filter(|(.., points)| !points.is_empty())
        .collect();
    let full = curve(report, "full");
    let mut keys = vec![Key {
        mark: Mark::Line { dashed: false },
        color: INK,
        opacity: 0.35,
        text: "full history",
    }];
    keys.extend(curves.iter().map(|&(at, name, _)| {
        let (color, dashed) = line_of(at);
        Key {
            mark: Mark::Line { dashed },
            color,
            opacity: 1.0,
            text: name,
        }
    }));
    let y = scene.legend((16.0, 46.0), f64::from(WIDTH) - 32.0, &keys);
    if curves.is_empty() {
        let words = "nothing was planted in these sessions";
        scene.label((16.0, y + 6.0), words, Anchor::Start);
        scene.ends_at(y + 30.0);
        return scene;
    }
    let panel = Panel {
        edges: [LEFT, y + 6.0, RIGHT, y + 6.0 + HEIGHT],
        x: (20.0, 105.0),
        y: (0.0, 1.05),
    };
    let percent = |value: f64| format!("{} %", figure::points(value).trim_end_matches(".0"));
    let far = |value: f64| format!("{value:.0} %");
    let below = Axis {
        label: "how far the session is when it is asked, in percent of its calls",
        figure: &far,
        ticks: 8,
    };
    let beside = Axis {
        label: "survival, not corrected for chance",
        figure: &percent,
        ticks: 5,
    };
    panel.axes(&mut scene, &below, &beside);
    let points = |curve: &[(f64, f64)]| -> Vec<(f64, f64)> {
        curve.iter().map(|(x, y)| panel.at(*x, *y)).collect()
    };
    scene.line(points(&full), INK, 3, 0.35);
    for (at, _, curve) in &curves {
        let (color, dashed) = line_of(*at);
        let points = points(curve);
        if dashed {
            scene.dashes(&points, color, 2, 1.0);
        } else {
            scene.line(points.clone(), color, 2, 1.0);
        }
        for point in points {
            scene.dot(point, 3.0, color, false);
        }
    }
    scene.ends_at(y + 6.0 + HEIGHT + 52.0);
    scene
}

/// The mean score of planted items at each asking point, in percent of the session's calls.
fn curve(report: &Report, strategy: &str) -> Curve {
    let mut sums: BTreeMap<u8, (f64, usize)> = BTreeMap::new();
    for item in &report.items {
        if item.strategy == strategy && is_planted(item.probe.kind) {
            let (sum, items) = sums.entry(item.probe.percent).or_default();
            *sum += item.probe.survival.score;
            *items += 1;
        }
    }
    sums.into_iter()
        .map(|(percent, (sum, items))| (f64::from(percent), sum / items as f64))
        .collect()
}
