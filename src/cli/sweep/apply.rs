//! `--apply`: the recommended setting as a preset's file. What is not recommended is not written.

use std::path::PathBuf;

use super::{Args, GridPoint, typed};
use crate::cli::apply::{not_written, unnamed};
use crate::cli::{Result, listed};
use crate::compare::sweep::{Choice, Sweep};
use crate::report::sweep::verdict;
use crate::settings::SettingValue;

/// The end of the name of a file that a sweep writes.
pub(super) const TUNED: &str = "tuned";

/// The setting that was chosen, if any.
pub(super) fn chosen<'p>(sweep: &Sweep, points: &'p [GridPoint]) -> Option<&'p GridPoint> {
    let values = sweep.choice.values.as_ref()?;
    points.iter().find(|point| typed(&point.values) == *values)
}

/// Writes the recommended setting to a file, and returns that. Where there is none, the error says why.
pub(super) fn apply(
    args: &Args,
    sweep: &Sweep,
    points: &[GridPoint],
    (scenario, seed): (&str, u64),
) -> Result<Option<PathBuf>> {
    let Some(path) = args.apply.path(unnamed(&points[0].spec, TUNED)) else {
        return Ok(None);
    };
    let recommended = chosen(sweep, points).filter(|_| sweep.choice.is_recommended());
    let Some(setting) = recommended else {
        let why = verdict(sweep).swap_remove(0);
        return Err(not_written(&format!("`{}`", path.display()), &why));
    };
    args.apply.write(&path, &comments(sweep, (scenario, seed)), &preset(&sweep.choice, setting))?;
    Ok(Some(path))
}

/// The verdict and the sessions behind a preset.
fn comments(sweep: &Sweep, (scenario, seed): (&str, u64)) -> Vec<String> {
    let mut lines = vec![format!(
        "Recommended by a sweep of scenario `{scenario}`, seed {seed}, and confirmed on sessions that were not used to choose it."
    )];
    lines.extend(verdict(sweep));
    lines.push(format!("Chosen on: {}.", sweep.tune.join(", ")));
    lines.push(format!("Confirmed on: {}.", sweep.confirm.join(", ")));
    lines
}

/// The preset as a file that `run --strategy` takes.
fn preset(choice: &Choice, setting: &GridPoint) -> String {
    let preset = setting.spec.to_toml();
    // The preset's own description may name its old values, and have several lines.
    let own = description(setting.spec.description().to_owned());
    let changed = choice.changed.iter();
    let knobs = listed(changed.map(|(knob, value)| format!("{knob}={value}")));
    let name = setting.spec.base_name();
    let says = format!("{name} with {knobs}, from a sweep");
    preset.replacen(&own, &description(says), 1)
}

fn description(says: String) -> String {
    format!("description = {}\n", SettingValue::Text(says))
}
