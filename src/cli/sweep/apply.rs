//! `--apply`: the recommended setting as a preset's file. What is not recommended is not written.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Args, Point, typed};
use crate::cli::{CliError, Exit, refuse_existing, report, template, write_new};
use crate::compare::sweep::{Choice, Sweep};
use crate::report::escape::plain;
use crate::report::sweep::verdict;
use crate::settings::Value;
use crate::strategy::StrategySpec;

/// The file where none is named, with the name of the strategy in it.
pub(super) const UNNAMED: &str = "STRATEGY-tuned.toml";

/// A choice with its settings: the one that was chosen, and the default in the same window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub(super) choice: Option<&'a Choice>,
    pub(super) setting: Option<&'a Point>,
    pub(super) default: &'a Point,
}

impl<'a> Chosen<'a> {
    /// The setting, if it is recommended.
    pub(super) fn recommended(self) -> Option<(&'a Choice, &'a Point)> {
        let choice = self.choice.filter(|choice| choice.is_recommended())?;
        Some((choice, self.setting?))
    }
}

/// Each choice with its settings; without one, the default alone.
pub(super) fn chosen<'a>(sweep: &'a Sweep, points: &'a [Point]) -> Vec<Chosen<'a>> {
    let choices = sweep.choices.iter().map(|choice| {
        let values = choice.values.as_ref();
        let setting = points
            .iter()
            .find(|point| Some(&typed(&point.values)) == values);
        let mut defaults = points.iter().filter(|point| point.is_default);
        let default = defaults.find(|point| typed(&point.values) == choice.window);
        Chosen {
            choice: Some(choice),
            setting,
            default: default.unwrap_or(&points[0]),
        }
    });
    let mut all: Vec<Chosen<'_>> = choices.collect();
    if all.is_empty() {
        all.push(Chosen {
            choice: None,
            setting: None,
            default: &points[0],
        });
    }
    all
}

impl Args {
    /// The file that `--apply` names, by default `S-tuned.toml`; `None` without the flag.
    pub(super) fn applied(&self, strategy: &StrategySpec) -> Option<PathBuf> {
        let path = self.apply.as_deref()?;
        let name = strategy.base_name();
        Some(if path == Path::new(UNNAMED) {
            UNNAMED.replace("STRATEGY", &name).into()
        } else {
            path.to_owned()
        })
    }

    /// Refuses a file that cannot be written, or is there already, before anything is run.
    pub(super) fn can_apply(&self, strategy: &StrategySpec) -> anyhow::Result<()> {
        let Some(path) = self.applied(strategy) else {
            return Ok(());
        };
        refuse_existing(&path, self.force)?;
        report::check_place(&path)
    }
}

/// Writes the recommended setting of each window to a file of its own, and returns the files. Where a window has
/// none, the error says why.
pub(super) fn apply(
    args: &Args,
    sweep: &Sweep,
    all: &[Chosen<'_>],
    (scenario, seed): (&str, u64),
) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for one in all {
        let Some(path) = args.applied(&one.default.spec) else {
            continue;
        };
        let Some((choice, setting)) = one.recommended() else {
            let why = one
                .choice
                .and_then(|choice| verdict(sweep, choice).into_iter().next());
            let why = why.unwrap_or_else(|| "one setting alone was tried".to_owned());
            let problem = format!("`{}` is not written: {}", path.display(), plain(&why));
            let problem = problem.trim_end_matches('.');
            return Err(CliError::new(Exit::NothingSelected, problem).into());
        };
        let path = in_window(&path, all.len(), &choice.window);
        let text = text(sweep, choice, setting, (scenario, seed))?;
        write_new(&path, text.as_bytes(), args.force)?;
        written.push(path);
    }
    Ok(written)
}

/// The file of a preset; if there are several, each has its window in its name.
pub(super) fn in_window(path: &Path, of: usize, window: &[(String, String)]) -> PathBuf {
    if of < 2 || window.is_empty() {
        return path.to_owned();
    }
    let knobs = window.iter().map(|(knob, value)| format!("{knob}-{value}"));
    let suffix = knobs.collect::<Vec<_>>().join("-");
    let suffix = suffix.replace(
        |letter: char| !letter.is_ascii_alphanumeric() && !"._-".contains(letter),
        "-",
    );
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{suffix}.toml"))
}

/// The preset as a file that `run --strategy` takes, with the verdict and the sessions behind it.
fn text(
    sweep: &Sweep,
    choice: &Choice,
    setting: &Point,
    (scenario, seed): (&str, u64),
) -> anyhow::Result<String> {
    let knobs = choice.changed.iter();
    let knobs: Vec<String> = knobs
        .map(|(knob, value)| format!("{knob}={value}"))
        .collect();
    let window = choice.window.iter();
    let window: Vec<String> = window
        .map(|(knob, value)| format!("{knob}={value}"))
        .collect();
    let mut preset = setting.spec.to_toml();
    // The preset's own description may name its old values.
    let mut lines = preset.lines();
    if let Some(own) = lines.find(|line| line.starts_with("description = ")) {
        let says = format!(
            "{} with {}, from a sweep",
            setting.spec.base_name(),
            knobs.join(", ")
        );
        let says = format!("description = {}", Value::Text(says));
        preset = preset.replace(&own.to_owned(), &says);
    }
    let lines = verdict(sweep, choice);
    let facts = json!({
        "scenario": scenario,
        "seed": seed,
        "lines": lines.iter().map(|line| plain(line)).collect::<Vec<_>>(),
        "tune": plain(&sweep.tune.join(", ")),
        "confirm": plain(&sweep.confirm.join(", ")),
        "window": window,
        "preset": preset,
    });
    template::fill(include_str!("../text/preset.txt"), facts)
}
