//! Cost against survival: the strategies that no other beats on both.

use super::scatter::{self, Point, Side, ends};
use super::scene::{BLUE, Mark, Scene};
use crate::report::{Report, Role};
use crate::stats::pareto::dominates;

/// One point per ranked strategy.
pub(crate) fn scene(report: &Report) -> Scene {
    let mut scene = Scene::new("Cost against survival");
    scene.legend(&[
        (Mark::Dot, BLUE, "not dominated"),
        (Mark::Ring, BLUE, "dominated"),
    ]);
    let points = points(report);
    if points.is_empty() {
        scene.note("no strategy fired, is unbroken and has both cost and survival");
        return scene;
    }
    let titles = ["cost, in percent of full history", "survival"];
    scatter::draw(&mut scene, &points, Side::Left, titles);
    let rows = report.compared().iter();
    let strategies = rows.filter(|row| row.role == Role::Strategy);
    let names = strategies.map(|row| row.name.as_str());
    let is_drawn = |name: &&str| points.iter().any(|it| it.name.as_deref() == Some(*name));
    let left_out: Vec<&str> = names.filter(|name| !is_drawn(name)).collect();
    if !left_out.is_empty() {
        scene.paragraph(&format!(
            "not drawn, for it is broken, never fired or was not measured: {}",
            left_out.join(", ")
        ));
    }
    scene
}

/// The ranked strategies by their cost, C/C⁰, and their survival.
fn points(report: &Report) -> Vec<Point> {
    let ranked = report.compared().iter().filter(|row| row.ranked);
    let points = ranked.filter_map(|row| {
        let (savings, savings_interval) = report.share(row, "cost_savings")?;
        let (survival, survival_interval) = report.share(row, "survival")?;
        let cost_interval = savings_interval.map(|it| (1.0 - it.upper_bound, 1.0 - it.lower_bound));
        Some(Point {
            at: (1.0 - savings, survival),
            intervals: [cost_interval, survival_interval.map(ends)],
            radius: 5.0,
            color: BLUE,
            on_front: true,
            name: Some(row.name.clone()),
        })
    });
    let mut points: Vec<Point> = points.collect();
    let all: Vec<[f64; 2]> = points.iter().map(|it| [-it.at.0, it.at.1]).collect();
    for (point, own) in points.iter_mut().zip(&all) {
        point.on_front = !all.iter().any(|other| dominates(other, own));
    }
    points
}
