//! The preset that a sweep recommends.

use serde_json::json;

use super::Point;
use crate::cli::template;
use crate::compare::sweep::{Recommendation, Sweep};
use crate::report::escape::plain;
use crate::report::sweep::recommendation;
use crate::settings::Value;

/// The recommended preset: a file that `run --strategy` takes, with the sessions it was chosen on.
pub(super) fn text(
    sweep: &Sweep,
    one: &Recommendation,
    winner: &Point,
    scenario: &str,
    seed: u64,
) -> anyhow::Result<String> {
    let values = winner.values.iter();
    let typed = values.map(|(path, setting)| format!("{path}={}", setting.value));
    let (window, knobs): (Vec<String>, Vec<String>) =
        typed.partition(|typed| typed.starts_with("window."));
    let mut preset = winner.spec.to_toml();
    // The preset's own description may name its old values.
    let own = preset
        .lines()
        .find(|line| line.starts_with("description = "));
    if let Some(own) = own.filter(|_| !knobs.is_empty()).map(str::to_owned) {
        let (base, knobs) = (winner.spec.base_name(), knobs.join(", "));
        let says = Value::Text(format!("{base} with {knobs}, from a sweep"));
        preset = preset.replace(&own, &format!("description = {says}"));
    }
    let lines = recommendation(sweep, one);
    let facts = json!({
        "scenario": scenario,
        "seed": seed,
        "cost": sweep.cost,
        "quality": sweep.quality,
        "lines": lines.iter().map(|line| plain(line)).collect::<Vec<_>>(),
        "tune": plain(&sweep.tune.join(", ")),
        "confirm": plain(&sweep.confirm.join(", ")),
        "window": window,
        "preset": preset,
    });
    template::fill(include_str!("../text/preset.txt"), facts)
}
