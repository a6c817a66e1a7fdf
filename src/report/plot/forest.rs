//! Forest plots: one panel per metric, one row per comparison, each difference with its interval.

use super::axes::{Panel, reach, ticks};
use super::scene::{
    Anchor, BLUE, Color, GREEN, INK, Key, ORANGE, SIZE, Scene, VERMILLION, WIDTH, fitted,
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

/// A difference with its interval, in the unit of the panel.
struct Found<'a> {
    one: &'a GatedComparison,
    title: &'a Title,
    metric: &'a MetricDifference,
    at: f64,
    between: Option<(f64, f64)>,
}

/// What changed, metric by metric.
pub(crate) fn scene(report: &Report) -> Scene {
    let comparisons = report.comparisons();
    let mut scene = Scene::new("Differences, candidate − baseline");
    let mut y = legend(&mut scene, comparisons);
    let titles = titles(comparisons);
    let shared = shared_baseline(comparisons);
    if let Some(baseline) = shared {
        y = scene.note(y, &format!("baseline: {baseline}"));
    }
    let mut same: Vec<&str> = Vec::new();
    for metric in metrics(comparisons) {
        let rows: Vec<Found<'_>> = comparisons
            .iter()
            .zip(&titles)
            .filter_map(|(one, title)| found(one, title, metric))
            .collect();
        let moved = |it: &Found<'_>| {
            let counts = it.metric.paired.counts;
            counts.wins + counts.losses > 0
        };
        if rows.iter().any(moved) {
            y = panel(&mut scene, metric, &rows, y + 8.0);
        } else {
            same.push(metric);
        }
    }
    if !same.is_empty() {
        let words = format!("the same on every session: {}", same.join(", "));
        y = scene.paragraph(y + 8.0, &words);
    }
    let mut whole = titles
        .iter()
        .filter_map(|title| title.whole.as_ref())
        .peekable();
    if whole.peek().is_some() {
        y += 8.0;
    }
    for name in whole {
        y = scene.note(y, name);
    }
    if comparisons.is_empty() {
        y = scene.note(y + 6.0, "nothing was compared");
    }
    scene.ends_at(y + 8.0);
    scene
}

fn legend(scene: &mut Scene, comparisons: &[GatedComparison]) -> f64 {
    let dot = |color, text| Key::dot(text, color, false);
    let is_gated = comparisons.iter().any(|one| one.gated.is_some());
    let mut keys = if is_gated {
        use Verdict::{Improved, Inconclusive, NonInferior, Regressed};
        let verdicts = [Improved, NonInferior, Inconclusive, Regressed];
        let mut keys = verdicts.map(|it| dot(color(Some(it)), it.name())).to_vec();
        keys.push(Key::line("margin", INK, true).faint(0.6));
        keys
    } else {
        vec![dot(BLUE, "difference, each session weighing the same")]
    };
    keys.push(Key::line("95 % interval", INK, false));
    keys.push(Key::dot("exact on these sessions: no interval", INK, true));
    scene.legend(&keys)
}

/// Told apart by the words beside each row too.
fn color(verdict: Option<Verdict>) -> Color {
    match verdict {
        None | Some(Verdict::NonInferior) => BLUE,
        Some(Verdict::Improved) => GREEN,
        Some(Verdict::Inconclusive) => ORANGE,
        Some(Verdict::Regressed) => VERMILLION,
    }
}

/// The metrics that some comparison has, in the order of tables.
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

fn found<'a>(one: &'a GatedComparison, title: &'a Title, name: &str) -> Option<Found<'a>> {
    let metric = one.comparison.metric(name)?;
    let between = comparison::ends(metric, one.comparison.target);
    let at = match (metric.kind, &metric.ratio) {
        (Kind::Amount, ratio) => libm::log(ratio.as_ref()?.geometric.point_estimate),
        (Kind::Probes | Kind::Share | Kind::Count, _) => metric.paired.by_session.point_estimate,
    };
    at.is_finite().then(|| Found {
        one,
        title,
        metric,
        at,
        between: between.filter(|(low, high)| low.is_finite() && high.is_finite()),
    })
}

/// What stands beside a row, and the whole name where there is no room for it.
struct Title {
    short: String,
    whole: Option<String>,
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

/// The candidates; with the baseline where there are several, with the sources where both are the same,
/// and with numbers where a name is too long.
fn titles(comparisons: &[GatedComparison]) -> Vec<Title> {
    let shared = shared_baseline(comparisons).is_some();
    let name = |one: &GatedComparison| {
        if shared {
            one.comparison.candidate.clone()
        } else {
            one.title()
        }
    };
    let names: Vec<String> = comparisons
        .iter()
        .map(|one| {
            let own = name(one);
            let all = comparisons.iter();
            match (all.filter(|other| name(other) == own).count(), shared) {
                (0 | 1, _) => own,
                (_, true) => format!("{own} ({})", one.candidate_source),
                (_, false) => {
                    format!(
                        "{own} ({} against {})",
                        one.candidate_source, one.baseline_source
                    )
                }
            }
        })
        .collect();
    let room = LEFT - 16.0 - 14.0;
    let all_fit = names.iter().all(|name| text_width(name, SIZE) <= room);
    names
        .into_iter()
        .enumerate()
        .map(|(at, name)| {
            if all_fit {
                return Title {
                    short: name,
                    whole: None,
                };
            }
            let number = at + 1;
            Title {
                short: fitted(&format!("{number}  {name}"), SIZE, room),
                whole: Some(format!("{number}  {name}")),
            }
        })
        .collect()
}

fn panel(scene: &mut Scene, name: &str, rows: &[Found<'_>], top: f64) -> f64 {
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
    scene.label((16.0, top), &title, Anchor::Start);
    let top = top + 14.0;
    let lower = top + ROW * rows.len() as f64;
    let margins: Vec<Option<f64>> = rows.iter().map(|row| margin(row, name)).collect();
    // All differences, zero and the margins.
    let points = rows.iter().map(|row| row.at);
    let values = points.chain(margins.iter().flatten().copied()).chain([0.0]);
    let intervals = rows.iter().filter_map(|row| row.between);
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

/// Where the margin stands: on the side that is worse.
fn margin(row: &Found<'_>, name: &str) -> Option<f64> {
    let margin = row.one.gated_metric(name)?.margin;
    Some(match (row.metric.kind, row.metric.direction) {
        (Kind::Amount, Direction::Lower) => libm::log1p(margin),
        (Kind::Amount, Direction::Higher | Direction::Neutral) => -libm::log1p(margin),
        (Kind::Probes | Kind::Share | Kind::Count, Direction::Lower) => margin,
        (Kind::Probes | Kind::Share | Kind::Count, Direction::Higher | Direction::Neutral) => {
            -margin
        }
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
    let mut free = left - 20.0;
    for value in ticks(panel.x, 5) {
        let (x, _) = panel.at(value, 0.0);
        scene.line(vec![(x, upper), (x, lower)], INK, 1, 0.13);
        let text = shown(value);
        let half = text_width(&text, SIZE) / 2.0;
        if x - half > free && x + half < right + 20.0 {
            scene.label((x, lower + 13.0), &text, Anchor::Middle);
            free = x + half + 6.0;
        }
    }
    let (zero, _) = panel.at(0.0, 0.0);
    scene.line(vec![(zero, upper - 3.0), (zero, lower)], INK, 1, 0.7);
    scene.line(vec![(left, lower), (right, lower)], INK, 1, 0.4);
}

fn line(
    scene: &mut Scene,
    panel: &Panel,
    row: &Found<'_>,
    margin: Option<f64>,
    y: f64,
    name: &str,
) {
    let x = |value: f64| panel.clamped(value, 0.0).0;
    scene.label((16.0, y), &row.title.short, Anchor::Start);
    if let Some(margin) = margin {
        let x = x(margin);
        let ends = [(x, y - ROW / 2.0), (x, y + ROW / 2.0)];
        scene.dashes(&ends, INK, 1, 0.6);
    }
    let verdict = row.one.gated_metric(name).map(|gated| gated.verdict);
    let color = color(verdict);
    if let Some((from, to)) = row.between {
        scene.line(vec![(x(from), y), (x(to), y)], INK, 2, 1.0);
        // What goes on beyond the edge has no end drawn.
        for end in [from, to] {
            if (panel.x.0..=panel.x.1).contains(&end) {
                scene.line(vec![(x(end), y - 4.0), (x(end), y + 4.0)], INK, 2, 1.0);
            }
        }
    }
    scene.dot((x(row.at), y), 4.5, color, row.between.is_none());
    let mut words = format!(
        "{} {}",
        comparison::change(row.metric),
        comparison::interval(row.metric, row.one.comparison.target)
    );
    if let Some(verdict) = verdict {
        words = format!("{words} {verdict}");
    }
    let right = WIDTH - 12.0;
    let words = fitted(&words, SIZE, right - RIGHT - 14.0);
    scene.label((RIGHT + 14.0, y), &words, Anchor::Start);
}
