//! The preset that a sweep ends with: the recommended setting, or the default where nothing is recommended.

use serde_json::json;

use super::{Point, typed};
use crate::cli::template;
use crate::compare::sweep::{Choice, Sweep};
use crate::report::escape::plain;
use crate::report::sweep::verdict;
use crate::settings::Value;

/// A choice with its settings: the one that was chosen, and the default in the same window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub(super) choice: Option<&'a Choice>,
    pub(super) setting: Option<&'a Point>,
    pub(super) default: &'a Point,
}

impl<'a> Chosen<'a> {
    /// The setting that is written: what is not recommended takes no default's place, unless the default
    /// cannot be used itself.
    pub(super) fn written(self, sweep: &Sweep) -> &'a Point {
        let values = typed(&self.default.values);
        let default = sweep.points.iter().find(|point| point.values == values);
        let is_broken = default.is_some_and(|point| point.broken.is_some());
        let is_recommended = self.choice.is_some_and(Choice::is_recommended);
        match self.setting {
            Some(setting) if is_recommended || is_broken => setting,
            Some(_) | None => self.default,
        }
    }

    /// The preset as a file that `run --strategy` takes, with the verdict and the sessions behind it.
    pub(super) fn text(self, sweep: &Sweep, scenario: &str, seed: u64) -> anyhow::Result<String> {
        let written = self.written(sweep);
        let values = written.values.iter();
        let typed = values.map(|(path, setting)| format!("{path}={}", setting.value));
        let (window, knobs): (Vec<String>, Vec<String>) =
            typed.partition(|typed| typed.starts_with("window."));
        let mut preset = written.spec.to_toml();
        // The preset's own description may name its old values.
        let own = preset
            .lines()
            .find(|line| line.starts_with("description = "));
        if let Some(own) = own.filter(|_| !knobs.is_empty()).map(str::to_owned) {
            let (base, knobs) = (written.spec.base_name(), knobs.join(", "));
            let says = Value::Text(format!("{base} with {knobs}, from a sweep"));
            preset = preset.replace(&own, &format!("description = {says}"));
        }
        let lines = self.choice.map(|choice| verdict(sweep, choice));
        let other = self.setting.filter(|_| written.is_default);
        let other = other.filter(|setting| !setting.is_default);
        let candidate = other.map(|setting| crate::report::escape::shell(setting.spec.name()));
        let facts = json!({
            "scenario": scenario,
            "seed": seed,
            "standing": self.choice.and_then(|choice| choice.standing),
            "is_default": written.is_default,
            "lines": lines.iter().flatten().map(|line| plain(line)).collect::<Vec<_>>(),
            "tune": plain(&sweep.tune.join(", ")),
            "confirm": plain(&sweep.confirm.join(", ")),
            "window": window,
            "candidate": candidate.map(|name| plain(&name)),
            "preset": preset,
        });
        template::fill(include_str!("../text/preset.txt"), facts)
    }
}

/// Each choice with its settings; without one, the default alone.
pub(super) fn chosen<'a>(sweep: &'a Sweep, points: &'a [Point]) -> Vec<Chosen<'a>> {
    let of = |choice: &'a Choice| {
        let setting = points
            .iter()
            .find(|point| Some(typed(&point.values)) == choice.values);
        let default = points
            .iter()
            .find(|point| point.is_default && typed(&point.values) == choice.window);
        Chosen {
            choice: Some(choice),
            setting,
            default: default.unwrap_or(&points[0]),
        }
    };
    if sweep.choices.is_empty() {
        return vec![Chosen {
            choice: None,
            setting: None,
            default: &points[0],
        }];
    }
    sweep.choices.iter().map(of).collect()
}
