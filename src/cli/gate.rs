//! `proctor gate`: may this change go in? Non-inferiority against a baseline.

use std::path::{Path, PathBuf};

use super::comparison::{
    self, ComparisonArgs, ComparisonOptions, OutputFormat, Side, Unpaired, target,
};
use super::{CliError, Exit, read_run, read_text, say, stop_with};
use crate::compare::gate::Rules;
use crate::compare::{Axis, Margins};
use crate::report::comparison::Comparisons;
use crate::report::escape::plain;
use crate::scenario::{GateSetting, read_gate};
use crate::settings::{Place, SettingError, Table, did_you_mean, with_suggestion};

/// Arguments of `proctor gate`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Each metric is improved, non-inferior, regressed or inconclusive. Where prices changed, both \
sides are priced with the candidate's, and the result says so. Exit codes: 0 passed, \
100 regressed, 102 the run is invalid, 103 inconclusive with `--fail-on inconclusive`, 106 no such \
baseline, or one measured by something else."
)]
pub(super) struct Args {
    /// Folder of the run that is the candidate; `RUN::STRATEGY` for one strategy of it
    run: String,
    /// The baseline: a name, a file, or another run
    #[arg(long, value_name = "NAME")]
    baseline: String,
    /// Read the scenario's `[gate]` from this file
    #[arg(long, value_name = "SCENARIO")]
    rules: Option<PathBuf>,
    #[command(flatten)]
    gate: GateOptions,
    #[command(flatten)]
    comparing: ComparisonArgs,
}

/// The rules for a change, on the command line.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct GateOptions {
    /// How much worse a metric may be, as in `facts=0.03`; of a bill or tokens a share
    /// of the total
    /// (repeatable)
    #[arg(long, value_name = "METRIC=MARGIN")]
    pub(super) margin: Vec<String>,
    /// Verdict that fails in addition to `regressed`
    #[arg(long, value_name = "inconclusive", value_parser = ["inconclusive"])]
    pub(super) fail_on: Option<String>,
    /// An older baseline, such as the last release, that must hold as well
    #[arg(long, value_name = "NAME")]
    pub(super) anchor: Option<String>,
}

impl GateOptions {
    /// The margins as they are typed; their names are checked where they are set.
    pub(super) fn margins(&self) -> anyhow::Result<Vec<(&str, f64)>> {
        let mut found = Vec::new();
        for typed in &self.margin {
            let parsed = typed.split_once('=').and_then(|(metric, margin)| {
                let margin: f64 = margin.parse().ok()?;
                (margin >= 0.0 && margin.is_finite()).then_some((metric, margin))
            });
            let Some(parsed) = parsed else {
                let problem = format!("`--margin {typed}` names no margin");
                let hint = "write `--margin METRIC=MARGIN`, as in `--margin facts=0.03`";
                return stop_with(Exit::Usage, problem, hint);
            };
            found.push(parsed);
        }
        Ok(found)
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    comparison::prepare(&args.comparing.output)?;
    let setting = match &args.rules {
        Some(path) => {
            let text = read_text("scenario ", path)?;
            let table = Table::parse(&path.display().to_string(), &text)?;
            read_gate(&table)?
        }
        None => read_gate(&Table::new(Place::BuiltIn))?,
    };
    let rules = rules(&setting, &args.gate)?;
    let place = args.run.split("::").next().unwrap_or(&args.run);
    let run = read_run(Path::new(place))?;
    let candidate = Side::find(&args.run, &args.comparing.options.baselines)?;
    let valid = comparison::controls_hold(&run);
    let anchor = args.gate.anchor.as_deref().or(setting.anchor.as_deref());
    let exit = against(
        &candidate,
        &[Some(args.baseline.as_str()), anchor],
        &args.comparing.options,
        &rules,
        args.comparing.seed,
        &args.comparing.output,
        OutputFormat::of(&args.comparing),
    )?;
    Ok(if valid { exit } else { Exit::ControlsFailed })
}

/// Gates a candidate against each baseline that is named.
pub(super) fn against(
    candidate: &Side,
    baselines: &[Option<&str>],
    options: &ComparisonOptions,
    rules: &Rules,
    seed: u64,
    files: &[PathBuf],
    printed: OutputFormat,
) -> anyhow::Result<Exit> {
    let (mut comparisons, mut mismatches) = (Vec::new(), Vec::new());
    let sides: Vec<Side> = baselines
        .iter()
        .flatten()
        .map(|name| Side::find(name, &options.baselines))
        .collect::<Result<_, _>>()?;
    for (at, baseline) in sides.iter().enumerate() {
        // Strategies that are newer than the anchor are compared with the baseline.
        let unpaired = if at == 0 {
            Unpaired::Refused
        } else {
            Unpaired::Reported
        };
        let found = comparison::compare(baseline, candidate, options, rules, unpaired, seed)?;
        comparisons.extend(found.comparisons);
        mismatches.extend(found.mismatches);
    }
    comparison::gate(&mut comparisons, &sides, candidate, rules);
    let ending = rules.ending(comparisons.iter().filter_map(|one| one.gated.as_ref()));
    let mut comparisons = Comparisons::new(comparisons, mismatches, Some(ending));
    comparisons.fails_on_inconclusive = rules.fail_on_inconclusive;
    let why = comparisons.why();
    let exit = comparison::show(comparisons, files, printed)?;
    let why = why.map_or(String::new(), |why| plain(&format!(": {why}")));
    match exit {
        Exit::GateFailed => say(&format!("the gate failed{why}")),
        Exit::GateInconclusive => say(&format!(
            "the gate is inconclusive, and that was to fail{why}"
        )),
        _ => say("the gate passed"),
    }
    Ok(exit)
}

/// The rules of a scenario with the command line over them.
pub(super) fn rules(setting: &GateSetting, gate: &GateOptions) -> anyhow::Result<Rules> {
    let mut rules = Rules {
        hard_break: setting.hard_break,
        coverage: setting.coverage,
        fail_on_inconclusive: setting.fail_on_inconclusive || gate.fail_on.is_some(),
        ..Rules::default()
    };
    rules.target = setting.target.as_deref().and_then(|it| target(it).ok());
    if setting.replaces_margins {
        rules.margins = Margins::none();
    }
    for (metric, margin, place) in &setting.margins {
        rules.margins.set(metric, *margin).map_err(|problem| {
            let known = Axis::ALL.into_iter().map(Axis::name);
            let problem = format!("`gate.margins`: {problem}");
            with_suggestion(SettingError::new(place, problem), metric, known)
        })?;
    }
    for (typed, (metric, margin)) in gate.margin.iter().zip(gate.margins()?) {
        rules.margins.set(metric, margin).map_err(|problem| {
            let problem = format!("`--margin {typed}`: {problem}");
            let known = Axis::ALL.into_iter().map(Axis::name);
            let stop = CliError::new(Exit::Usage, problem);
            match did_you_mean(metric, known) {
                Some(meant) => stop.with_hint(format!("did you mean `{meant}`?")),
                None => stop,
            }
        })?;
    }
    Ok(rules)
}
