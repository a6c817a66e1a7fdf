//! The command that comes after a sweep, and the knobs that it should sweep as well.

use std::path::Path;

use super::apply::chosen;
use super::{Args, GridPoint};
use crate::compare::Axis as Measured;
use crate::compare::sweep::Sweep;
use crate::report::escape::flag;
use crate::strategy::StrategySpec;
use crate::strategy::preset::Tune;

/// The words of the command, a flag with its value in one: a run of the preset that was written. Else the same
/// sweep, to write what is recommended, or with the knobs that are missing; else the default and the chosen setting
/// side by side.
pub(super) fn command(
    args: &Args,
    sweep: &Sweep,
    points: &[GridPoint],
    applied: Option<&Path>,
    missing: &[String],
) -> Vec<String> {
    let is_recommended = sweep.choice.is_recommended();
    let mut words = if is_recommended && applied.is_none() {
        sweep_again(args, &[], Some("--apply"))
    } else if !is_recommended && !missing.is_empty() {
        sweep_again(args, missing, None)
    } else {
        let names = if let Some(path) = applied {
            let below = path.strip_prefix(".").unwrap_or(path);
            vec![Path::new(".").join(below).display().to_string()]
        } else {
            let other = chosen(sweep, points).filter(|setting| !setting.is_default);
            let specs = points.first().into_iter().chain(other);
            specs.map(|point| point.spec.name().to_owned()).collect()
        };
        let strategies = names.iter().map(|name| flag("--strategy", name));
        let words = ["proctor run".to_owned()].into_iter();
        words.chain(strategies).chain(["-o report.html".to_owned()]).collect()
    };
    args.inputs.complete(&mut words);
    words
}

/// The same sweep, with more knobs or another flag.
fn sweep_again(args: &Args, missing: &[String], more: Option<&str>) -> Vec<String> {
    let mut words = vec!["proctor sweep".to_owned()];
    let strategies = args.inputs.strategy.iter();
    words.extend(strategies.map(|name| flag("--strategy", name)));
    let params = args.tuning.params.iter().chain(missing);
    words.extend(params.map(|typed| flag("-P", typed)));
    let margins =
        args.tuning.margins.margin.iter().map(|(metric, margin)| format!("{metric}={margin}"));
    words.extend(margins.map(|typed| flag("--margin", &typed)));
    words.extend(args.tuning.keeps.map(|axis| flag("--keeps", axis.name())));
    if args.tuning.saves != Measured::Bill {
        words.push(flag("--saves", args.tuning.saves.name()));
    }
    words.extend(args.tuning.random.map(|count| flag("--random", &count.to_string())));
    if let Some(folder) = args.out.as_deref() {
        words.push(flag("--out", &folder.display().to_string()));
    }
    words.extend(more.map(str::to_owned));
    words
}

/// Knobs that matter together with a swept one and were not swept: sentences, and what `-P` takes.
pub(super) fn missing_knobs<'t>(
    spec: &StrategySpec,
    axes: impl Iterator<Item = &'t Tune>,
) -> (Vec<String>, Vec<String>) {
    let swept: Vec<&str> = axes.map(|axis| &*axis.knob).collect();
    let missing = swept.iter().filter_map(|knob| {
        let (other, values) = spec.swept_with(knob)?;
        let typed = format!("{other}={values}");
        let hint =
            format!("`{other}` was not swept, and it decides with `{knob}`: add `-P {typed}`");
        (!swept.contains(&other.as_str())).then_some((hint, typed))
    });
    missing.unzip()
}
