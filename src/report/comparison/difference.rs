//! How a difference is written: its change, its interval and its sample.

use crate::compare::{AxisFinding, Kind, Target};
use crate::report::display;
use crate::stats::power;
use crate::units::{Usd, whole};
use std::fmt::Write as _;

/// The factor, the digits and the unit in which differences of a kind are written.
fn scale(kind: Kind) -> (f64, usize, &'static str) {
    match kind {
        Kind::Probes | Kind::Share => (100.0, 1, " pts"),
        Kind::Total => (100.0, 1, " %"),
        Kind::Count => (1.0, 2, ""),
    }
}

/// A difference in the direction of its number: `−3.1 pts`, `+2.0 %` of the total, `+2.0`.
pub(crate) fn change(metric: &AxisFinding) -> String {
    if metric.bounds.is_none() {
        return "not known".to_owned();
    }
    let (factor, digits, unit) = scale(metric.kind);
    let difference = metric.axis.turned(metric.difference());
    format!("{}{unit}", signed(difference * factor, digits))
}

/// Whether the difference is exact on these sessions.
fn is_exact(metric: &AxisFinding) -> bool {
    metric.bounds.is_some_and(|bounds| bounds.is_exact())
}

/// The interval of candidate − baseline; of a total, as a share of the baseline's.
pub(crate) fn ends(metric: &AxisFinding, target: Target) -> Option<[f64; 2]> {
    metric.ends().filter(|_| target != Target::Suite || !is_exact(metric))
}

/// The interval of a change, in the same unit; `exact` where it has none.
pub(crate) fn interval(metric: &AxisFinding, target: Target) -> String {
    let Some(ends) = ends(metric, target) else {
        return metric.bounds.map_or("no interval", |_| "exact").to_owned();
    };
    let (factor, digits, _) = scale(metric.kind);
    let [low, high] = ends.map(|end| signed(end * factor, digits));
    format!("[{low}, {high}]")
}

/// `+2.7`, `−3.1`, `0.0`.
pub(crate) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    if text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        text
    } else if value < 0.0 {
        format!("−{text}")
    } else {
        format!("+{text}")
    }
}

/// A margin as it is written: `5 pts`, `5 %` of an amount, `0`.
pub(super) fn margin(kind: Kind, margin: f64) -> String {
    let percent = format!("{:.2}", margin * 100.0);
    let number = percent.trim_end_matches('0').trim_end_matches('.');
    match kind {
        Kind::Probes | Kind::Share => format!("{number} pts"),
        Kind::Total => format!("{number} %"),
        Kind::Count => format!("{margin}"),
    }
}

/// A level of a metric: `61.2 %`, `12.3k`, `$76.30`.
pub(super) fn level(metric: &AxisFinding, value: f64) -> String {
    match metric.kind {
        Kind::Probes | Kind::Share => display::percent(value),
        Kind::Count => format!("{value:.2}"),
        Kind::Total if metric.is_in_dollars => Usd::of_dollars(value).to_string(),
        Kind::Total => display::tokens(whole(value.round())),
    }
}

/// The number of pairs: `20 sessions, 398 of 400 probes paired, wins/ties/losses 31/324/43`.
pub(super) fn paired(metric: &AxisFinding) -> String {
    let paired = &metric.paired;
    let n = paired.by_session.n;
    let mut text = display::many(n.sessions, "session", "sessions");
    let (scored, all) = (n.items, n.items + paired.unscored);
    if metric.kind == Kind::Probes {
        let _ = write!(text, ", {scored} of {all} probes paired");
    }
    let counts = paired.counts;
    let (wins, ties, losses) = (counts.wins, counts.ties, counts.losses);
    format!("{text}, wins/ties/losses {wins}/{ties}/{losses}")
}

/// How the interval was made: `t(19), clustered by session · MDE 8.1`.
pub(super) fn basis(metric: &AxisFinding) -> String {
    if is_exact(metric) {
        return "exact on this suite".to_owned();
    }
    let freedom = metric.paired.by_session.n.sessions.max(1) - 1;
    let interval = metric.bounds.map(|_| format!("t({freedom}), clustered by session"));
    let mut parts: Vec<String> = interval.into_iter().collect();
    let shares = matches!(metric.kind, Kind::Probes | Kind::Share);
    if let Some(drawn) = metric.paired.bootstrap.filter(|_| shares) {
        let ends = [drawn.lower_bound, drawn.upper_bound];
        let [low, high] = ends.map(|end| signed(end * 100.0, 1));
        parts.push(format!("bootstrap [{low}, {high}]"));
    }
    if let Some(p) = metric.adjusted_p {
        parts.push(format!("sign flip p {p:.3}"));
    }
    parts.extend(detectable(metric));
    parts.join(" · ")
}

/// `MDE 8.1 pts`: the smallest difference that would have been seen, in the unit of the change.
fn detectable(metric: &AxisFinding) -> Option<String> {
    let bounds = metric.bounds?;
    let found = power::detectable(bounds.error?, bounds.sessions)?;
    let (factor, _, unit) = scale(metric.kind);
    Some(format!("MDE {:.1}{unit}", found * factor))
}

/// A warning on a metric with pairs without a score.
pub(super) fn warning(metric: &AxisFinding) -> Option<String> {
    let (worst, best) = metric.ends.as_ref()?;
    let [worst, best] = [worst, best].map(|end| signed(end.difference * 100.0, 1));
    let (name, open) = (metric.axis, metric.open());
    Some(format!(
        "warning: {name}: {open}; at worst and at best for the candidate they make it {worst} to {best} pts"
    ))
}
