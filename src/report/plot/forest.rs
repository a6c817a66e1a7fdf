//! Forest plots: one panel per metric, one row per comparison, each difference with its interval.

use super::axes::{PlotPanel, reach, ticks};
use super::scene::{
    BLUE, Color, GREEN, HPos, INK, KeyMark, LegendKey, ORANGE, PlotScene, VERMILLION, WIDE, fitted,
};
use crate::compare::gate::Verdict;
use crate::compare::{Axis, AxisFinding, Kind};
use crate::metric::Direction;
use crate::report::Report;
use crate::report::comparison::{self, GatedComparison};

const LEFT: f64 = 32.0;
/// The room for the words beside the values.
const BESIDE: f64 = 300.0;
const HEIGHT: f64 = 42.0;

/// A difference.
struct ForestRow {
    /// The text above it.
    title: String,
    /// The text next to it.
    words: String,
    /// The limit of the gate, a dashed line.
    margin: Option<f64>,
    at: f64,
    interval: Option<(f64, f64)>,
    color: Color,
}

/// The differences, metric by metric. Their words need the whole width, whatever is asked for.
pub(crate) fn scene(report: &Report, _: f64) -> PlotScene {
    let comparisons = report.comparisons();
    let mut scene = PlotScene::new("Differences, candidate − baseline", WIDE);
    legend(&mut scene, comparisons);
    let titles = candidates(comparisons);
    if let Some(baseline) = shared_baseline(comparisons) {
        scene.note(&format!("baseline: {baseline}"));
    }
    let mut same: Vec<&str> = Vec::new();
    for axis in Axis::ALL {
        let all = comparisons.iter();
        let found = all.filter_map(|one| one.comparison.axis(axis));
        let mut counts = found.map(|found| found.paired.counts).peekable();
        if counts.peek().is_some() && counts.all(|count| count.wins + count.losses == 0) {
            same.push(axis.name());
        } else {
            panel(&mut scene, axis, comparisons, &titles);
        }
    }
    if !same.is_empty() {
        scene.paragraph(&format!("the same on every session: {}", same.join(", ")));
    }
    if comparisons.is_empty() {
        scene.note("nothing was compared");
    }
    scene
}

fn legend(scene: &mut PlotScene, comparisons: &[GatedComparison]) {
    let mut keys: Vec<LegendKey<'_>> = Vec::new();
    if comparisons.iter().any(|one| one.gated.is_some()) {
        use Verdict::{Improved, Inconclusive, NonInferior, Regressed};
        let verdicts = [Improved, NonInferior, Inconclusive, Regressed];
        keys.extend(verdicts.map(|verdict| (KeyMark::Dot, color(Some(verdict)), verdict.name())));
        keys.push((KeyMark::Dashes(0.6), INK, "margin"));
    } else {
        let words = "difference, each session weighing the same";
        keys.push((KeyMark::Dot, BLUE, words));
    }
    keys.push((KeyMark::Line(1.0), INK, "95 % interval"));
    keys.push((KeyMark::Ring, INK, "exact on these sessions: no interval"));
    scene.legend(&keys);
}

/// The colour of a verdict. The words beside each row name the verdict too.
fn color(verdict: Option<Verdict>) -> Color {
    match verdict {
        None | Some(Verdict::NonInferior) => BLUE,
        Some(Verdict::Improved) => GREEN,
        Some(Verdict::Inconclusive) => ORANGE,
        Some(Verdict::Regressed) => VERMILLION,
    }
}

/// The difference with its interval, in the unit of the panel, and the verdict of the gate.
fn row(one: &GatedComparison, title: &str, metric: &AxisFinding) -> Option<ForestRow> {
    let target = one.comparison.target;
    let at = metric.axis.turned(metric.bounds?.difference);
    let ends = comparison::ends(metric, target).map(<(f64, f64)>::from);
    let interval = ends.filter(|(low, high)| low.is_finite() && high.is_finite());
    let gated = one.gated_axis(metric.axis);
    let verdict = gated.map(|gated| gated.verdict);
    let mut words = format!("{} ", comparison::change(metric));
    words += &comparison::interval(metric, target);
    words.extend(verdict.map(|verdict| format!(" {verdict}")));
    at.is_finite().then(|| ForestRow {
        title: title.to_owned(),
        words,
        margin: gated.map(|gated| margin(metric, gated.margin)),
        at,
        interval,
        color: color(verdict),
    })
}

/// The baseline, where all comparisons have the same.
fn shared_baseline(comparisons: &[GatedComparison]) -> Option<&str> {
    let first = comparisons.first()?;
    let same = comparisons.iter().all(|one: &GatedComparison| {
        one.baseline_source == first.baseline_source
            && one.comparison.baseline == first.comparison.baseline
    });
    same.then_some(first.comparison.baseline.as_str())
}

/// The candidates; with the baseline if there are several, and with the sources if two would be the
/// same.
fn candidates(comparisons: &[GatedComparison]) -> Vec<String> {
    let shared = shared_baseline(comparisons).is_some();
    let names = comparisons
        .iter()
        .map(|one| if shared { one.comparison.candidate.clone() } else { one.title() });
    let names: Vec<String> = names.collect();
    let titles = comparisons.iter().zip(&names).map(|(one, own)| {
        let same = names.iter().filter(|name| *name == own);
        let (candidate, baseline) = (&one.candidate_source, &one.baseline_source);
        match (same.count(), shared) {
            (0 | 1, _) => own.clone(),
            (_, true) => format!("{own} ({candidate})"),
            (_, false) => format!("{own} ({candidate} against {baseline})"),
        }
    });
    titles.collect()
}

fn panel(scene: &mut PlotScene, axis: Axis, comparisons: &[GatedComparison], titles: &[String]) {
    let titled = comparisons.iter().zip(titles);
    let found = titled.filter_map(|(one, title)| Some((one, title, one.comparison.axis(axis)?)));
    let Some((_, _, first)) = found.clone().next() else {
        return;
    };
    let rows: Vec<ForestRow> =
        found.filter_map(|(one, title, metric)| row(one, title, metric)).collect();
    let better = match first.direction {
        Direction::Higher => ", right is better",
        Direction::Lower => ", left is better",
        Direction::Neutral => "",
    };
    let unit = match first.kind {
        Kind::Probes | Kind::Share => " in points",
        Kind::Count => "",
        Kind::Total => " in percent of the baseline's total",
    };
    scene.y += 6.0;
    scene.note(&format!("{axis}{unit}{better}"));
    // All differences, zero and the margins.
    let margins = rows.iter().filter_map(|row| row.margin);
    let points = rows.iter().map(|row| row.at).chain(margins).chain([0.0]);
    let intervals = rows.iter().filter_map(|row| row.interval);
    let x = reach(points, intervals, (0.01, 5.0), (0.06, 0.004));
    draw(scene, &rows, x, first.kind);
}

/// A figure of the axis.
fn figure(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Probes | Kind::Share | Kind::Total => {
            let text = comparison::signed(value * 100.0, 1);
            text.trim_end_matches(".0").to_owned()
        }
        Kind::Count => {
            let text = comparison::signed(value, 2);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// The margin of a gate, on the side that is worse.
fn margin(metric: &AxisFinding, margin: f64) -> f64 {
    match metric.direction {
        Direction::Lower => margin,
        Direction::Higher | Direction::Neutral => -margin,
    }
}

/// Draws the rows on an axis that goes from the first to the second end, with a line at each figure.
fn draw(scene: &mut PlotScene, rows: &[ForestRow], x: (f64, f64), kind: Kind) {
    let right = scene.width - BESIDE;
    let (upper, lower) = (scene.y, scene.y + HEIGHT * rows.len() as f64);
    let panel = PlotPanel { edges: [LEFT, upper, right, lower], x, y: (0.0, 1.0) };
    for value in ticks(x, 7) {
        let (x, _) = panel.at(value, 0.0);
        let opacity = if value.abs() < 1e-9 { 0.7 } else { 0.13 };
        scene.line(&[(x, upper), (x, lower)], INK, 1, opacity);
        scene.label((x, lower + 14.0), &figure(kind, value), HPos::Center);
    }
    scene.line(&[(LEFT, lower), (right, lower)], INK, 1, 0.4);
    let x = |value: f64| panel.clamped((value, 0.0)).0;
    for row in rows {
        let y = scene.y + 28.0;
        let title = fitted(&row.title, scene.width - 2.0 * LEFT);
        scene.label((LEFT, scene.y + 9.0), &title, HPos::Left);
        if let Some(margin) = row.margin.map(x) {
            scene.dashes(&[(margin, y - 9.0), (margin, y + 9.0)], INK, 1, 0.6);
        }
        scene.tip(&format!("{}: {}", row.title, row.words), |scene| {
            if let Some((from, to)) = row.interval {
                scene.line(&[(x(from), y), (x(to), y)], row.color, 2, 0.8);
                // The end of an interval beyond the edge is not drawn.
                for end in [from, to] {
                    if (panel.x.0..=panel.x.1).contains(&end) {
                        let cap = [(x(end), y - 4.0), (x(end), y + 4.0)];
                        scene.line(&cap, row.color, 2, 0.8);
                    }
                }
            }
            scene.dot((x(row.at), y), 4.5, row.color, row.interval.is_none());
        });
        let words = fitted(&row.words, BESIDE - 26.0);
        scene.label((right + 14.0, y), &words, HPos::Left);
        scene.y += HEIGHT;
    }
    scene.y += 36.0;
}
