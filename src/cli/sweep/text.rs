//! A sweep on a terminal, and the preset it recommends.

use std::fmt::Write as _;

use super::Point;
use crate::compare::sweep::{Recommendation, Sweep, SweepPoint};
use crate::report::escape::plain;
use crate::report::figure::{many, percent};
use crate::report::versus::signed;
use crate::settings::Value;
use crate::stats::Estimate;

/// So many settings off the front are listed.
const MOST_OFF_FRONT: usize = 12;

pub(super) fn render(sweep: &Sweep) -> String {
    let mut out = String::new();
    let labels = sweep
        .points
        .iter()
        .map(|point| point.label().chars().count());
    let width = labels.max().unwrap_or(0).min(60);
    let _ = writeln!(
        out,
        "{:<width$}  {:>20}  {:>20}  front  (95 % intervals over {})",
        "setting",
        sweep.cost,
        sweep.quality,
        many(
            sweep.tune.len() - sweep.left_out.len(),
            "session",
            "sessions"
        )
    );
    let (front, off): (Vec<&SweepPoint>, Vec<&SweepPoint>) =
        sweep.points.iter().partition(|point| point.on_front);
    let mut shown: Vec<&SweepPoint> = Vec::new();
    for point in &front {
        // What does nothing gives the same point many times: it is listed once.
        let same =
            |other: &&&SweepPoint| (other.cost, other.quality) == (point.cost, point.quality);
        if point.recommended || !shown.iter().any(|other| same(&other)) {
            line(&mut out, point, width);
            shown.push(point);
        }
    }
    if front.len() > shown.len() {
        let more = front.len() - shown.len();
        let _ = writeln!(
            out,
            "… and {more} on the front that came out the same as one above"
        );
    }
    if !off.is_empty() {
        out.push_str("off the front:\n");
    }
    for point in off.iter().take(MOST_OFF_FRONT) {
        line(&mut out, point, width);
    }
    if off.len() > MOST_OFF_FRONT {
        let _ = writeln!(out, "… and {} more", off.len() - MOST_OFF_FRONT);
    }
    if !sweep.left_out.is_empty() {
        let _ = writeln!(
            out,
            "left out for all, because not every setting was measured on them: {}",
            plain(&sweep.left_out.join(", "))
        );
    }
    for knob in &sweep.sensitivity {
        let _ = writeln!(
            out,
            "{} moves {} by {:.1} pts and {} by {:.1} pts",
            plain(&knob.knob),
            sweep.cost,
            knob.cost_range * 100.0,
            sweep.quality,
            knob.quality_range * 100.0
        );
    }
    out.push_str(&recommendation(sweep));
    out
}

fn line(out: &mut String, point: &SweepPoint, width: usize) {
    let figure = |estimate: Option<Estimate>| {
        estimate.map_or_else(
            || "not measured".to_owned(),
            |estimate| {
                // Of two sessions an interval is wider than anything that is measured.
                let interval = estimate
                    .confidence_interval
                    .filter(|_| estimate.n.sessions > 2);
                let half = interval.map(|i| i.half_width() * 100.0);
                let half = half.map_or_else(String::new, |half| format!(" ± {half:.1}"));
                format!("{}{half}", percent(estimate.point_estimate))
            },
        )
    };
    let share = point
        .front_share
        .map_or_else(String::new, |share| format!("{:.0} %", share * 100.0));
    let mark = match (&point.broken, point.recommended) {
        (Some(why), _) => format!("  broken: {why}"),
        (None, true) => "  recommended".to_owned(),
        (None, false) => String::new(),
    };
    let _ = writeln!(
        out,
        "{:<width$}  {:>20}  {:>20}  {share:>5}{mark}",
        plain(&point.label()),
        figure(point.cost),
        figure(point.quality),
    );
}

fn recommendation(sweep: &Sweep) -> String {
    if sweep.recommendations.is_empty() {
        return format!(
            "no recommendation: no setting that was tried has {} above 0, the default included\n",
            sweep.cost
        );
    }
    sweep
        .recommendations
        .iter()
        .map(|one| recommended(sweep, one))
        .collect()
}

fn recommended(sweep: &Sweep, one: &Recommendation) -> String {
    let sessions = sweep.tune.len() - sweep.left_out.len();
    let mut out = format!(
        "recommended: {}, the knee of the front on {}\n",
        plain(&one.label()),
        many(sessions, "session", "sessions")
    );
    match &one.confirmation {
        Some(found) => {
            let change = |estimate: Option<Estimate>| {
                estimate.map_or_else(
                    || "not measured".to_owned(),
                    |estimate| {
                        let interval = estimate
                            .confidence_interval
                            .filter(|_| estimate.n.sessions > 2);
                        let interval = interval.map_or_else(String::new, |i| {
                            let (low, high) = (i.lower_bound * 100.0, i.upper_bound * 100.0);
                            format!(" [{}, {}]", signed(low, 1), signed(high, 1))
                        });
                        let point = signed(estimate.point_estimate * 100.0, 1);
                        format!("{point} pts{interval}")
                    },
                )
            };
            let _ = writeln!(
                out,
                "{}: {} {}, {} {}",
                found.says,
                sweep.cost,
                change(found.cost),
                sweep.quality,
                change(found.quality)
            );
        }
        None if one.is_default => {
            out.push_str("the default is the best of those tried: there is nothing to confirm\n");
        }
        None => out.push_str("no session was left to confirm it on\n"),
    }
    out
}

/// The recommended preset: a file that `run --strategy` takes, with what it was chosen on.
pub(super) fn preset(
    sweep: &Sweep,
    one: &Recommendation,
    winner: &Point,
    scenario: &str,
    seed: u64,
) -> String {
    let mut out = format!(
        "# Recommended by a sweep of scenario `{scenario}`, seed {seed}: the knee of the front of {} and {}.\n",
        sweep.cost, sweep.quality
    );
    for line in recommended(sweep, one).lines() {
        let _ = writeln!(out, "# {line}");
    }
    let _ = writeln!(out, "# Chosen on: {}.", plain(&sweep.tune.join(", ")));
    if !sweep.confirm.is_empty() {
        let _ = writeln!(
            out,
            "# Not chosen on: {}.",
            plain(&sweep.confirm.join(", "))
        );
    }
    for (path, setting) in &winner.values {
        if path.starts_with("window.") {
            let _ = writeln!(
                out,
                "# It was chosen with `--set {path}={}`.",
                setting.value
            );
        }
    }
    out.push('\n');
    let knobs = winner.values.iter();
    let knobs: Vec<String> = knobs
        .filter(|(path, _)| !path.starts_with("window."))
        .map(|(path, setting)| format!("{path}={}", setting.value))
        .collect();
    for line in winner.spec.to_toml().lines() {
        // The preset's own sentence may tell of the values it had.
        if line.starts_with("description = ") && !knobs.is_empty() {
            let says = format!(
                "{} with {}, from a sweep",
                winner.spec.base_name(),
                knobs.join(", ")
            );
            let _ = writeln!(out, "description = {}", Value::Text(says));
        } else {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}
