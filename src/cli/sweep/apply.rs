//! `--apply`: the recommended setting as a preset's file. What is not recommended is not written.

use std::path::{Path, PathBuf};

use super::{Args, GridPoint, typed};
use crate::cli::apply::{not_written, unnamed};
use crate::cli::{Result, listed};
use crate::compare::sweep::{Choice, Sweep};
use crate::report::sweep::{no_choice, verdict};
use crate::settings::SettingValue;

/// The end of the name of a file that a sweep writes.
pub(super) const TUNED: &str = "tuned";

/// A choice with its settings: the one that was chosen, and the default in the same window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub(super) choice: Option<&'a Choice>,
    pub(super) setting: Option<&'a GridPoint>,
    pub(super) default: &'a GridPoint,
}

impl<'a> Chosen<'a> {
    /// The setting, if it is recommended.
    pub(super) fn recommended(self) -> Option<(&'a Choice, &'a GridPoint)> {
        let choice = self.choice.filter(|choice| choice.is_recommended())?;
        Some((choice, self.setting?))
    }
}

/// Each choice with its settings; without one, the default alone.
pub(super) fn chosen<'a>(sweep: &'a Sweep, points: &'a [GridPoint]) -> Vec<Chosen<'a>> {
    let choices = sweep.choices.iter().map(|choice| {
        let values = choice.values.as_ref();
        let setting = points.iter().find(|point| Some(&typed(&point.values)) == values);
        let mut defaults = points.iter().filter(|point| point.is_default);
        let default = defaults.find(|point| typed(&point.values) == choice.window);
        Chosen { choice: Some(choice), setting, default: default.unwrap_or(&points[0]) }
    });
    let mut all: Vec<Chosen<'_>> = choices.collect();
    if all.is_empty() {
        all.push(Chosen { choice: None, setting: None, default: &points[0] });
    }
    all
}

/// Writes the recommended setting of each window to a file of its own, and returns the files. Where no window has
/// one, the error says why.
pub(super) fn apply(
    args: &Args,
    sweep: &Sweep,
    all: &[Chosen<'_>],
    (scenario, seed): (&str, u64),
) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    let mut refused = None;
    for one in all {
        let Some(path) = args.apply.path(unnamed(&one.default.spec, TUNED)) else {
            continue;
        };
        let Some((choice, setting)) = one.recommended() else {
            let sentence = one.choice.and_then(|choice| verdict(sweep, choice).into_iter().next());
            let why = sentence.as_deref().unwrap_or_else(|| no_choice(sweep));
            let window = one.choice.map_or(&[][..], |choice| &choice.window);
            let file = in_window(&path, all.len(), window);
            refused.get_or_insert(not_written(&format!("`{}`", file.display()), why));
            continue;
        };
        let path = in_window(&path, all.len(), &choice.window);
        let comments = comments(sweep, choice, (scenario, seed));
        args.apply.write(&path, &comments, &preset(choice, setting))?;
        written.push(path);
    }
    match refused {
        Some(error) if written.is_empty() => Err(error),
        _ => Ok(written),
    }
}

/// The file of a preset; if there are several, each has its window in its name.
pub(super) fn in_window(path: &Path, of: usize, window: &[(String, String)]) -> PathBuf {
    if of < 2 || window.is_empty() {
        return path.to_owned();
    }
    let knobs = window.iter().map(|(knob, value)| format!("{knob}-{value}"));
    let suffix = knobs
        .collect::<Vec<_>>()
        .join("-")
        .replace(|letter: char| !letter.is_ascii_alphanumeric() && !"._-".contains(letter), "-");
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{suffix}.toml"))
}

/// The verdict and the sessions behind a preset.
fn comments(sweep: &Sweep, choice: &Choice, (scenario, seed): (&str, u64)) -> Vec<String> {
    let mut lines = vec![format!(
        "Recommended by a sweep of scenario `{scenario}`, seed {seed}, and confirmed on sessions that were not used to choose it."
    )];
    lines.extend(verdict(sweep, choice));
    lines.push(format!("Chosen on: {}.", sweep.tune.join(", ")));
    lines.push(format!("Confirmed on: {}.", sweep.confirm.join(", ")));
    let window = choice.window.iter();
    lines.extend(window.map(|(knob, value)| format!("It belongs to `--set {knob}={value}`.")));
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
