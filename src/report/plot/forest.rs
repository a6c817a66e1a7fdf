//! Forest plots: one panel per metric, one row per comparison, each difference with its interval.

use super::axes::reach;
use super::rows::{self, Row, Value};
use super::scene::{BLUE, Color, GREEN, INK, Key, Mark, ORANGE, Scene, VERMILLION, WIDE};
use crate::compare::gate::Verdict;
use crate::compare::{Axis, AxisFinding, Kind};
use crate::metric::Direction;
use crate::report::Report;
use crate::report::comparison::{self, GatedComparison};

/// The differences, metric by metric. Their words need the whole width, whatever is asked for.
pub(crate) fn scene(report: &Report, _: f64) -> Scene {
    let comparisons = report.comparisons();
    let mut scene = Scene::new("Differences, candidate − baseline", WIDE);
    legend(&mut scene, comparisons);
    let titles = titles(comparisons);
    if let Some(baseline) = shared_baseline(comparisons) {
        scene.note(&format!("baseline: {baseline}"));
    }
    let mut same: Vec<&str> = Vec::new();
    for axis in axes(comparisons) {
        let differs = |one: &GatedComparison| {
            let found = one.comparison.axis(axis);
            found.is_some_and(|it| it.paired.counts.wins + it.paired.counts.losses > 0)
        };
        if comparisons.iter().any(differs) {
            panel(&mut scene, axis, comparisons, &titles);
        } else {
            same.push(axis.name());
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

fn legend(scene: &mut Scene, comparisons: &[GatedComparison]) {
    let is_gated = comparisons.iter().any(|one| one.gated.is_some());
    let mut keys: Vec<Key<'_>> = Vec::new();
    if is_gated {
        use Verdict::{Improved, Inconclusive, NonInferior, Regressed};
        let verdicts = [Improved, NonInferior, Inconclusive, Regressed];
        keys.extend(verdicts.map(|it| (Mark::Dot, color(Some(it)), it.name())));
        keys.push((Mark::Dashes(0.6), INK, "margin"));
    } else {
        let words = "difference, each session weighing the same";
        keys.push((Mark::Dot, BLUE, words));
    }
    keys.push((Mark::Line(1.0), INK, "95 % interval"));
    keys.push((Mark::Ring, INK, "exact on these sessions: no interval"));
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

/// The axes of all comparisons, in the order of tables.
fn axes(comparisons: &[GatedComparison]) -> Vec<Axis> {
    let has = |axis: &Axis| {
        comparisons
            .iter()
            .any(|one| one.comparison.axis(*axis).is_some())
    };
    Axis::ALL.into_iter().filter(has).collect()
}

/// The difference with its interval, in the unit of the panel, and the verdict of the gate.
fn row(one: &GatedComparison, title: &str, metric: &AxisFinding) -> Option<Row> {
    let target = one.comparison.target;
    let at = metric.axis.turned(metric.bounds?.difference);
    let interval = comparison::ends(metric, target);
    let interval = interval.filter(|(low, high)| low.is_finite() && high.is_finite());
    let gated = one.gated_axis(metric.axis);
    let verdict = gated.map(|gated| gated.verdict);
    let (change, words) = (
        comparison::change(metric),
        comparison::interval(metric, target),
    );
    let says = verdict.map(|verdict| format!(" {verdict}"));
    at.is_finite().then(|| Row {
        title: title.to_owned(),
        words: format!("{change} {words}{}", says.unwrap_or_default()),
        margin: gated.map(|gated| margin(metric, gated.margin)),
        values: vec![Value {
            at,
            interval,
            color: color(verdict),
            hollow: interval.is_none(),
        }],
    })
}

/// The baseline, where all comparisons have the same.
fn shared_baseline(comparisons: &[GatedComparison]) -> Option<&str> {
    let first = comparisons.first()?;
    let same = |one: &GatedComparison| {
        one.baseline_source == first.baseline_source
            && one.comparison.baseline == first.comparison.baseline
    };
    let is_shared = comparisons.iter().all(same);
    is_shared.then_some(first.comparison.baseline.as_str())
}

/// The candidates; with the baseline if there are several, and with the sources if two would be the
/// same.
fn titles(comparisons: &[GatedComparison]) -> Vec<String> {
    let is_shared = shared_baseline(comparisons).is_some();
    let name = |one: &GatedComparison| {
        if is_shared {
            one.comparison.candidate.clone()
        } else {
            one.title()
        }
    };
    let title = |one: &GatedComparison| {
        let own = name(one);
        let same = comparisons.iter().filter(|other| name(other) == own);
        let (candidate, baseline) = (&one.candidate_source, &one.baseline_source);
        match (same.count(), is_shared) {
            (0 | 1, _) => own,
            (_, true) => format!("{own} ({candidate})"),
            (_, false) => format!("{own} ({candidate} against {baseline})"),
        }
    };
    comparisons.iter().map(title).collect()
}

fn panel(scene: &mut Scene, axis: Axis, comparisons: &[GatedComparison], titles: &[String]) {
    let found = comparisons.iter().zip(titles);
    let found = found.filter_map(|(one, title)| Some((one, title, one.comparison.axis(axis)?)));
    let Some((_, _, first)) = found.clone().next() else {
        return;
    };
    let rows = found.filter_map(|(one, title, metric)| row(one, title, metric));
    let rows: Vec<Row> = rows.collect();
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
    let values = || rows.iter().flat_map(|row| &row.values);
    let margins = rows.iter().filter_map(|row| row.margin);
    let points = values().map(|value| value.at).chain(margins).chain([0.0]);
    let intervals = values().filter_map(|value| value.interval);
    let x = reach(points, intervals, (0.01, 5.0), (0.06, 0.004));
    let shown = |value: f64| match first.kind {
        Kind::Probes | Kind::Share | Kind::Total => {
            let text = comparison::signed(value * 100.0, 1);
            text.trim_end_matches(".0").to_owned()
        }
        Kind::Count => {
            let text = comparison::signed(value, 2);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    rows::draw(scene, &rows, x, &shown);
}

/// The margin of a gate, on the side that is worse.
fn margin(metric: &AxisFinding, margin: f64) -> f64 {
    match metric.direction {
        Direction::Lower => margin,
        Direction::Higher | Direction::Neutral => -margin,
    }
}
