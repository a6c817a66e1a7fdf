//! Bill saved against facts kept: the strategies that no other beats on both.

use super::axes::reach;
use super::scatter::{self, PlotPoint, ends};
use super::scene::{BLUE, Color, INK, KeyMark, ORANGE, PlotScene};
use crate::report::headline::label;
use crate::report::{Report, Row, display};
use crate::stats::pareto::dominates;

/// Costs that are further above those of full history are drawn at the edge: one strategy that multiplies
/// the bill would squeeze all others into a corner.
const LOWEST: f64 = -0.5;

/// The colour of a strategy that another beats, readable on white and on black.
const BEATEN: Color = Color(125, 132, 140);

/// One point per strategy.
pub(crate) fn scene(report: &Report, width: f64) -> PlotScene {
    let (column, kept) = report.kept();
    let mut scene = PlotScene::new(&format!("Bill saved against {kept}"), width);
    scene.legend(&[
        (KeyMark::Dot, BLUE, "no other is better on both"),
        (KeyMark::Dot, BEATEN, "another is better on both"),
        (KeyMark::Ring, INK, "broken or never fired: not compared"),
        (KeyMark::Line(0.8), ORANGE, "front"),
        (KeyMark::Line(0.35), INK, "95 % interval over sessions"),
    ]);
    let rows = report.strategies();
    let mut points: Vec<PlotPoint> = rows.filter_map(|row| point(report, row, column)).collect();
    if points.is_empty() {
        scene.note("cost and facts were not measured together for any strategy");
        return scene;
    }
    mark_front(&mut points);
    let saved = "bill saved, % of full history";
    let axes = [(range(&points, 0), saved), (range(&points, 1), kept)];
    scatter::draw(&mut scene, &points, axes);
    let rows = report.strategies();
    let left_out = rows.filter(|row| point(report, row, column).is_none());
    if let Some(names) = display::listed(left_out.map(|row| label(&row.name)), ", ") {
        scene.paragraph(&format!("not measured: {names}"));
    }
    scene
}

/// The range of the horizontal or the vertical axis.
fn range(points: &[PlotPoint], axis: usize) -> (f64, f64) {
    let lowest = if axis == 0 { LOWEST } else { f64::NEG_INFINITY };
    // Where all are broken, they alone say where the axes go.
    let all_hollow = points.iter().all(|point| point.is_hollow);
    let shown = points.iter().filter(|point| all_hollow || !point.is_hollow);
    let values = shown.clone().map(|point| <[f64; 2]>::from(point.at)[axis].max(lowest));
    let intervals = shown.filter_map(|point| point.intervals[axis]);
    let clamped = intervals.map(|(low, high)| (low.max(lowest), high.max(lowest)));
    let zero = (axis == 0).then_some(0.0);
    let (low, high) = reach(values.chain(zero), clamped, (0.1, 1.0), (0.07, 0.02));
    (low, high.min(1.05))
}

/// A strategy by its savings of the bill and what it keeps.
fn point(report: &Report, row: &Row, column: &str) -> Option<PlotPoint> {
    let (saved, saved_interval) = report.share(row, "bill_saved")?;
    let (kept, kept_interval) = report.share(row, column)?;
    let [in_words, kept_in_words] = [saved, kept].map(display::percent);
    let far = (saved < LOWEST).then(|| format!(", {in_words}"));
    let name = label(&row.name) + &far.unwrap_or_default();
    let tip = format!("{}: bill saved {in_words}, kept {kept_in_words}", row.name);
    Some(PlotPoint {
        at: (saved, kept),
        intervals: [saved_interval.map(ends), kept_interval.map(ends)],
        color: if row.ranked { BLUE } else { INK },
        is_hollow: !row.ranked,
        on_front: row.ranked,
        name,
        tip: [vec![tip], row.marks_in_words()].concat().join("; "),
    })
}

/// Takes from the front what another beats.
fn mark_front(points: &mut [PlotPoint]) {
    let ranked = points.iter().filter(|point| point.on_front);
    let all: Vec<[f64; 2]> = ranked.map(|point| point.at.into()).collect();
    for point in points.iter_mut().filter(|point| point.on_front) {
        let own: [f64; 2] = point.at.into();
        point.on_front = !all.iter().any(|other| dominates(other, &own));
        if !point.on_front {
            point.color = BEATEN;
        }
    }
}
