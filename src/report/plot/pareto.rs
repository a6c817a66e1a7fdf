//! Cost against survival: the strategies that no other beats on both.

use super::scatter::{Better, HEIGHT, Point, Scatter, ends};
use super::scene::{BLUE, HPos, Mark, SIZE, Scene, WIDTH, fitted};
use crate::report::{Report, Role};
use crate::stats::pareto::dominates;

const RIGHT: f64 = 520.0;
const ROW: f64 = 19.0;

/// One point per ranked strategy.
pub(crate) fn scene(report: &Report) -> Scene {
    let mut scene = Scene::new("Cost against survival");
    let (names, points): (Vec<&str>, Vec<Point>) = points(report).into_iter().unzip();
    let y = scene.legend(&[
        (Mark::Dot, BLUE, "not dominated"),
        (Mark::Ring, BLUE, "dominated"),
    ]);
    if points.is_empty() {
        let words = "no strategy fired, is unbroken and has both cost and survival";
        return scene.with_only(y, words);
    }
    let titles = [("cost, in percent of full history", 6), ("survival", 6)];
    let place = (y + 4.0, RIGHT);
    let mut scatter = Scatter::new(&mut scene, &points, place, Better::Left, titles);
    for (point, number) in points.iter().zip(1..) {
        scatter.dot(&mut scene, point);
        scatter.number(&mut scene, point, number);
    }
    for (number, name) in names.iter().enumerate() {
        let y = y + 12.0 + ROW * number as f64;
        scene.label((RIGHT + 36.0, y), &(number + 1).to_string(), HPos::Right);
        let name = fitted(name, SIZE, WIDTH - RIGHT - 58.0);
        scene.label((RIGHT + 44.0, y), &name, HPos::Left);
    }
    let rows = report.compared().iter();
    let left_out: Vec<&str> = rows
        .filter(|row| row.role == Role::Strategy && !names.contains(&row.name.as_str()))
        .map(|row| row.name.as_str())
        .collect();
    let mut end = y + 4.0 + HEIGHT + 56.0;
    if !left_out.is_empty() {
        let words = format!(
            "not drawn, for it is broken, never fired or was not measured: {}",
            left_out.join(", ")
        );
        end = scene.paragraph(end, &words);
    }
    scene.ends_at(end);
    scene
}

/// The ranked strategies by their cost, C/C⁰, and their survival.
fn points(report: &Report) -> Vec<(&str, Point)> {
    let ranked = report.compared().iter().filter(|row| row.ranked);
    let points = ranked.filter_map(|row| {
        let (savings, savings_interval) = report.share(row, "cost_savings")?;
        let (survival, survival_interval) = report.share(row, "survival")?;
        let cost_interval = savings_interval.map(|it| (1.0 - it.upper_bound, 1.0 - it.lower_bound));
        let point = Point {
            at: (1.0 - savings, survival),
            intervals: [cost_interval, survival_interval.map(ends)],
            radius: 5.0,
            color: BLUE,
            on_front: true,
        };
        Some((row.name.as_str(), point))
    });
    let mut points: Vec<(&str, Point)> = points.collect();
    let all: Vec<[f64; 2]> = points.iter().map(|(_, it)| [-it.at.0, it.at.1]).collect();
    for ((_, point), own) in points.iter_mut().zip(&all) {
        point.on_front = !all.iter().any(|other| dominates(other, own));
    }
    points
}
