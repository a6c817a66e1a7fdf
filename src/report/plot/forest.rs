//! Forest plots: one panel per metric, one row per comparison, each difference with its interval.

use super::axes::{Panel, Spacing, reach, ticks};
use super::scene::{
    BLUE, Color, GREEN, HPos, INK, Key, Mark, ORANGE, SIZE, Scene, VERMILLION, WIDTH, fitted,
    text_width,
};
use crate::compare::{Kind, MetricDifference};
use crate::metric::Direction;
use crate::report::Report;
use crate::report::comparison::{self, GatedComparison};
use crate::stats::gate::Verdict;

const LEFT: f64 = 244.0;
const RIGHT: f64 = 500.0;
const ROW: f64 = 22.0;

/// The room for the title of a row.
const TITLE: f64 = LEFT - 16.0 - 14.0;

/// A difference with its interval, in the unit of the panel.
struct Difference<'a> {
    comparison: &'a GatedComparison,
    title: &'a str,
    metric: &'a MetricDifference,
    at: f64,
    interval: Option<(f64, f64)>,
}

/// The differences, metric by metric.
pub(crate) fn scene(report: &Report) -> Scene {
    let comparisons = report.comparisons();
    let mut scene = Scene::new("Differences, candidate − baseline");
    let mut y = legend(&mut scene, comparisons);
    let (titles, are_numbered) = titles(comparisons);
    if let Some(baseline) = shared_baseline(comparisons) {
        y = scene.note(y, &format!("baseline: {baseline}"));
    }
    let mut same: Vec<&str> = Vec::new();
    for metric in metrics(comparisons) {
        let rows: Vec<Difference<'_>> = comparisons
            .iter()
            .zip(&titles)
            .filter_map(|(comparison, title)| difference(comparison, title, metric))
            .collect();
        let differs = |row: &Difference<'_>| {
            let counts = row.metric.paired.counts;
            counts.wins + counts.losses > 0
        };
        if rows.iter().any(differs) {
            y = panel(&mut scene, metric, &rows, y + 8.0);
        } else {
            same.push(metric);
        }
    }
    if !same.is_empty() {
        let words = format!("the same on every session: {}", same.join(", "));
        y = scene.paragraph(y + 8.0, &words);
    }
    if are_numbered {
        y += 8.0;
        for title in &titles {
            y = scene.note(y, title);
        }
    }
    if comparisons.is_empty() {
        y = scene.note(y + 6.0, "nothing was compared");
    }
    scene.ends_at(y + 8.0);
    scene
}

fn legend(scene: &mut Scene, comparisons: &[GatedComparison]) -> f64 {
    let is_gated = comparisons.iter().any(|one| one.gated.is_some());
    let mut keys: Vec<Key<'_>> = if is_gated {
        use Verdict::{Improved, Inconclusive, NonInferior, Regressed};
        let verdicts = [Improved, NonInferior, Inconclusive, Regressed];
        let mut keys = verdicts
            .map(|verdict| (Mark::Dot, color(Some(verdict)), verdict.name()))
            .to_vec();
        keys.push((Mark::Dashes(0.6), INK, "margin"));
        keys
    } else {
        let words = "difference, each session weighing the same";
        vec![(Mark::Dot, BLUE, words)]
    };
    keys.push((Mark::Line(1.0), INK, "95 % interval"));
    keys.push((Mark::Ring, INK, "exact on these sessions: no interval"));
    scene.legend(&keys)
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

/// The metrics of all comparisons, in the order of tables.
fn metrics(comparisons: &[GatedComparison]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    let all = comparisons.iter().flat_map(|one| &one.comparison.metrics);
    for metric in all {
        if !names.contains(&metric.metric) {
            names.push(metric.metric);
        }
    }
    names
}

fn difference<'a>(one: &'a GatedComparison, title: &'a str, name: &str) -> Option<Difference<'a>> {
    let metric = one.comparison.metric(name)?;
    let interval = comparison::ends(metric, one.comparison.target);
    let at = match metric.kind {
        Kind::Amount => libm::log(metric.ratio.as_ref()?.geometric.point_estimate),
        Kind::Probes | Kind::Share | Kind::Count => metric.paired.by_session.point_estimate,
    };
    at.is_finite().then(|| Difference {
        comparison: one,
        title,
        metric,
        at,
        interval: interval.filter(|(low, high)| low.is_finite() && high.is_finite()),
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
/// same. If one is too long, all are numbered.
fn titles(comparisons: &[GatedComparison]) -> (Vec<String>, bool) {
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
        match (same.count(), is_shared) {
            (0 | 1, _) => own,
            (_, true) => format!("{own} ({})", one.candidate_source),
            (_, false) => format!(
                "{own} ({} against {})",
                one.candidate_source, one.baseline_source
            ),
        }
    };
    let titles: Vec<String> = comparisons.iter().map(title).collect();
    if titles.iter().all(|title| text_width(title, SIZE) <= TITLE) {
        return (titles, false);
    }
    let numbered = titles.iter().zip(1..);
    let numbered = numbered.map(|(title, number)| format!("{number}  {title}"));
    (numbered.collect(), true)
}

fn panel(scene: &mut Scene, name: &str, rows: &[Difference<'_>], top: f64) -> f64 {
    let Some(first) = rows.first().map(|row| row.metric) else {
        return top;
    };
    let better = match first.direction {
        Direction::Higher => ", right is better",
        Direction::Lower => ", left is better",
        Direction::Neutral => "",
    };
    let unit = match first.kind {
        Kind::Probes | Kind::Share => " in points",
        Kind::Count => "",
        Kind::Amount => " as a ratio",
    };
    let title = format!("{name}{unit}{better}");
    scene.label((16.0, top), &title, HPos::Left);
    let top = top + 14.0;
    let lower = top + ROW * rows.len() as f64;
    let margins: Vec<Option<f64>> = rows.iter().map(|row| margin(row, name)).collect();
    // All differences, zero and the margins.
    let points = rows.iter().map(|row| row.at);
    let values = points.chain(margins.iter().flatten().copied()).chain([0.0]);
    let intervals = rows.iter().filter_map(|row| row.interval);
    let panel = Panel {
        edges: [LEFT, top, RIGHT, lower],
        x: reach(values, intervals, (0.01, 5.0), (0.06, 0.004)),
        y: (0.0, 1.0),
    };
    axis(scene, &panel, first.kind);
    for (at, (row, margin)) in rows.iter().zip(margins).enumerate() {
        let y = top + ROW * (at as f64 + 0.5);
        line(scene, &panel, row, margin, y, name);
    }
    lower + 36.0
}

/// The margin of a gate, on the side that is worse.
fn margin(row: &Difference<'_>, name: &str) -> Option<f64> {
    let margin = row.comparison.gated_metric(name)?.margin;
    let size = match row.metric.kind {
        Kind::Amount => libm::log1p(margin),
        Kind::Probes | Kind::Share | Kind::Count => margin,
    };
    Some(match row.metric.direction {
        Direction::Lower => size,
        Direction::Higher | Direction::Neutral => -size,
    })
}

fn axis(scene: &mut Scene, panel: &Panel, kind: Kind) {
    let [left, upper, right, lower] = panel.edges;
    let shown = |value: f64| match kind {
        Kind::Probes | Kind::Share => {
            let text = comparison::signed(value * 100.0, 1);
            text.trim_end_matches(".0").to_owned()
        }
        Kind::Count => {
            let text = comparison::signed(value, 2);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Kind::Amount => format!("×{:.2}", libm::exp(value)),
    };
    let mut spacing = Spacing::new(6.0);
    for value in ticks(panel.x, 5) {
        let (x, _) = panel.at(value, 0.0);
        scene.line(vec![(x, upper), (x, lower)], INK, 1, 0.13);
        let text = shown(value);
        let width = text_width(&text, SIZE);
        let (from, to) = (x - width / 2.0, x + width / 2.0);
        let is_inside = from > left - 20.0 && to < right + 20.0;
        if is_inside && spacing.fits(x, width) {
            scene.label((x, lower + 13.0), &text, HPos::Center);
        }
    }
    let (zero, _) = panel.at(0.0, 0.0);
    scene.line(vec![(zero, upper - 3.0), (zero, lower)], INK, 1, 0.7);
    scene.line(vec![(left, lower), (right, lower)], INK, 1, 0.4);
}

fn line(
    scene: &mut Scene,
    panel: &Panel,
    row: &Difference<'_>,
    margin: Option<f64>,
    y: f64,
    name: &str,
) {
    let x = |value: f64| panel.clamped(value, 0.0).0;
    let title = fitted(row.title, SIZE, TITLE);
    scene.label((16.0, y), &title, HPos::Left);
    if let Some(margin) = margin {
        let x = x(margin);
        let ends = [(x, y - ROW / 2.0), (x, y + ROW / 2.0)];
        scene.dashes(&ends, INK, 1, 0.6);
    }
    let verdict = row.comparison.gated_metric(name).map(|gated| gated.verdict);
    let color = color(verdict);
    if let Some((from, to)) = row.interval {
        scene.line(vec![(x(from), y), (x(to), y)], INK, 2, 1.0);
        // An interval that goes on beyond the edge has no end drawn.
        for end in [from, to] {
            if (panel.x.0..=panel.x.1).contains(&end) {
                scene.line(vec![(x(end), y - 4.0), (x(end), y + 4.0)], INK, 2, 1.0);
            }
        }
    }
    scene.dot((x(row.at), y), 4.5, color, row.interval.is_none());
    let mut words = format!(
        "{} {}",
        comparison::change(row.metric),
        comparison::interval(row.metric, row.comparison.comparison.target)
    );
    if let Some(verdict) = verdict {
        words = format!("{words} {verdict}");
    }
    let words = fitted(&words, SIZE, WIDTH - 12.0 - RIGHT - 14.0);
    scene.label((RIGHT + 14.0, y), &words, HPos::Left);
}
