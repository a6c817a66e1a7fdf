//! The command that comes after a sweep, and the knobs that it should sweep as well.

use super::Args;
use super::grid::Axis;
use super::preset::Chosen;
use crate::compare::sweep::{Choice, Sweep};
use crate::report::escape::flag;
use crate::strategy::StrategySpec;

/// The words of the command, a flag with its value in one: a run of the recommended preset. Where nothing is
/// recommended, the same sweep with the knobs that are missing; else the default and the chosen setting side
/// by side.
pub(super) fn command(
    args: &Args,
    sweep: &Sweep,
    chosen: &[Chosen<'_>],
    missing: &[String],
) -> Vec<String> {
    // Of several windows the first is shown.
    let Some(first) = chosen.first() else {
        return Vec::new();
    };
    let is_recommended = first.choice.is_some_and(Choice::is_recommended);
    let again = !is_recommended && !missing.is_empty();
    let mut words = vec![
        if again {
            "proctor sweep"
        } else {
            "proctor run"
        }
        .to_owned(),
    ];
    let inputs = &args.inputs;
    if again {
        words.extend(inputs.strategy.iter().map(|name| flag("--strategy", name)));
        words.extend(
            args.params
                .iter()
                .chain(missing)
                .map(|typed| flag("-P", typed)),
        );
        words.push(flag("--out", &args.folder().display().to_string()));
        inputs.complete(&mut words);
        return words;
    }
    let window = first.choice.iter().flat_map(|choice| &choice.window);
    words.extend(window.map(|(knob, value)| flag("--set", &format!("{knob}={value}"))));
    if let Some(choice) = first.choice.filter(|choice| choice.is_recommended()) {
        let path = super::preset_path(args, sweep.choices.len(), &choice.window);
        words.push(flag("--strategy", &path.display().to_string()));
    } else {
        words.push(flag("--strategy", first.default.spec.name()));
        let setting = first.setting.filter(|setting| !setting.is_default);
        words.extend(setting.map(|setting| flag("--strategy", setting.spec.name())));
    }
    words.push("-o report.html".to_owned());
    inputs.complete(&mut words);
    words
}

/// Knobs that matter together with a swept one and were not swept: a sentence, and what `-P` takes.
pub(super) fn missing_knobs(spec: &StrategySpec, axes: &[Axis]) -> Vec<(String, String)> {
    let base = format!("{}.", spec.base_name());
    let swept = axes.iter().map(Axis::path);
    let swept: Vec<&str> = swept
        .map(|path| path.strip_prefix(&base).unwrap_or(path))
        .collect();
    let missing = swept.iter().filter_map(|knob| {
        let (other, values) = spec.swept_with(knob)?;
        let typed = format!("{other}={values}");
        let hint =
            format!("`{other}` was not swept, and it decides with `{knob}`: add `-P {typed}`");
        (!swept.contains(&other.as_str())).then_some((hint, typed))
    });
    missing.collect()
}
