//! The preset that a sweep recommends.

use std::fmt::Write as _;

use super::Point;
use crate::compare::sweep::{Recommendation, Sweep};
use crate::report::escape::plain;
use crate::report::sweep::recommendation;
use crate::settings::Value;

/// The recommended preset: a file that `run --strategy` takes, with what it was chosen on.
pub(super) fn text(
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
    for line in recommendation(sweep, one) {
        let _ = writeln!(out, "# {}", plain(&line));
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
