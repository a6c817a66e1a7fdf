//! Retention: facts kept by age.

use super::axes::{AxisScale, PlotPanel, percent};
use super::scene::{FULL, INK, KeyMark, PlotScene, line_keys, line_of};
use crate::metric::retention::TOKENS;
use crate::report::{Report, headline};

/// The opacity of the line of a broken strategy.
const FAINT: f64 = 0.5;

/// The curve of one strategy.
struct Curve {
    /// Its place among all strategies.
    at: usize,
    is_broken: bool,
    title: String,
    points: Vec<(f64, f64)>,
}

/// Facts kept by age, for every strategy.
pub(crate) fn scene(report: &Report, width: f64) -> PlotScene {
    let mut scene = PlotScene::new("Facts kept, by how old they are", width);
    let curves = report.strategies().enumerate().map(|(at, row)| Curve {
        at,
        is_broken: row.is_broken(),
        title: headline::title(row),
        points: curve(report, &row.name),
    });
    let curves: Vec<_> = curves.filter(|curve| !curve.points.is_empty()).collect();
    let keys = curves.iter().map(|curve| (curve.at, curve.title.as_str()));
    let mut keys = line_keys(keys);
    for ((mark, ..), curve) in keys.iter_mut().skip(1).zip(&curves) {
        if curve.is_broken {
            *mark = KeyMark::Dashes(FAINT);
        }
    }
    if curves.iter().any(|curve| curve.is_broken) {
        keys.push((KeyMark::Ring, INK, "broken: only the calls before its death"));
    }
    scene.legend(&keys);
    if curves.is_empty() {
        scene.note("nothing was planted in these sessions, or nobody noted when it was said");
        return scene;
    }
    let panel = PlotPanel {
        edges: [80.0, scene.y, scene.right(), scene.y + 280.0],
        x: (-0.25, TOKENS.len() as f64 - 0.75),
        y: (0.0, 1.05),
    };
    let title = "tokens of full history since it was said";
    let below: AxisScale<'_> = (title, TOKENS.len() + 1, &age);
    let beside: AxisScale<'_> = ("facts kept, not corrected for chance", 6, &percent);
    panel.axes(&mut scene, below, beside);
    let full: Vec<_> = curve(report, "full").into_iter().map(|(x, y)| panel.at(x, y)).collect();
    scene.series(FULL, |scene| scene.line(&full, INK, 3, 0.35));
    for curve in &curves {
        let points: Vec<_> = curve.points.iter().map(|(x, y)| panel.at(*x, *y)).collect();
        let (color, dashed) = line_of(curve.at);
        scene.series(&curve.title, |scene| {
            if curve.is_broken {
                scene.dashes(&points, color, 2, FAINT);
            } else {
                scene.stroke(&points, (color, dashed));
            }
            for point in points {
                scene.dot(point, 3.0, color, curve.is_broken);
            }
        });
    }
    scene.y += 280.0 + 46.0;
    scene
}

/// The age at a place of the axis, in words.
fn age(value: f64) -> String {
    let found = TOKENS.iter().zip(0_u8..).find(|(_, at)| (value - f64::from(*at)).abs() < 0.5);
    found.map_or(String::new(), |((words, _), _)| (*words).to_owned())
}

/// The mean score of planted items of each age that occurs. Along the axis, an age is its place in
/// [`TOKENS`].
fn curve(report: &Report, strategy: &str) -> Vec<(f64, f64)> {
    let items = report.retention(strategy);
    let ages = items.by_tokens();
    ages.iter().enumerate().filter_map(|(at, age)| Some((at as f64, age.mean()?))).collect()
}
