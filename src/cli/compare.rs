//! `proctor compare`: runs or baselines side by side, with statistics; with `--gate`, whether a change may go in.

use std::path::{Path, PathBuf};

use super::comparison::{self, ComparisonOptions, OutputFormat, RunSide, SEED, Unpaired, target};
use super::report::PrintedTables;
use super::{Exit, Result, models, read_run, read_text, say, stop_with};
use crate::compare::gate::{Rules, gate as gate_one};
use crate::compare::{Axis, Margins};
use crate::report::comparison::Comparisons;
use crate::scenario::{GateSetting, read_gate};
use crate::settings::{Place, SettingError, SettingTable, with_suggestion};

/// Arguments of `proctor compare`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Runs or baselines to compare, the baseline first; with `--gate`, the run that is the candidate
    #[arg(value_name = "SIDE", required = true)]
    sides: Vec<String>,
    #[command(flatten)]
    options: ComparisonOptions,
    #[command(flatten, next_help_heading = "Gate")]
    gate: GateOptions,
    #[command(flatten, next_help_heading = "Output")]
    output: OutputOptions,
}

/// The rules for a change, on the command line.
#[derive(Debug, clap::Args)]
struct GateOptions {
    /// Say whether the run is no worse than the baseline, and fail if it is
    #[arg(long, requires = "baseline")]
    gate: bool,
    /// The baseline: a name, a file, or another run
    #[arg(long, value_name = "NAME", requires = "gate")]
    baseline: Option<String>,
    /// Read the scenario's `[gate]` from this file
    #[arg(long, value_name = "SCENARIO", requires = "gate")]
    rules: Option<PathBuf>,
    #[command(flatten)]
    margins: MarginOptions,
    /// Verdict that fails in addition to `regressed`
    #[arg(long, value_name = "inconclusive", value_parser = ["inconclusive"], requires = "gate")]
    fail_on: Option<String>,
    /// An older baseline, such as the last release, that must hold as well
    #[arg(long, value_name = "NAME", requires = "gate")]
    anchor: Option<String>,
}

/// How much worse metrics may be.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct MarginOptions {
    /// How much worse a metric may be, as in `facts=0.03`; of a bill or tokens a share of the total; by default the
    /// scenario's `[gate]` (repeatable)
    #[arg(long, value_name = "METRIC=MARGIN", value_parser = margin)]
    pub(super) margin: Vec<(String, f64)>,
}

/// Where the comparison goes.
#[derive(Debug, clap::Args)]
struct OutputOptions {
    /// Also write the comparison to this file: .md for a comment, .full.md, .json, .txt, .junit.xml,
    /// or .svg for a forest plot; an older file is removed first (repeatable). `-` is standard output
    #[arg(short, long, value_name = "FILE", allow_hyphen_values = true)]
    output: Vec<PathBuf>,
    #[command(flatten)]
    tables: PrintedTables,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
}

impl OutputOptions {
    fn printed(&self) -> OutputFormat<'_> {
        if self.json { OutputFormat::Json } else { OutputFormat::Text(&self.tables) }
    }
}

impl MarginOptions {
    /// Lays the margins over those of a scenario.
    pub(super) fn lay_over(&self, setting: &mut GateSetting) {
        for (metric, margin) in &self.margin {
            let place = Place::Flag(format!("--margin {metric}={margin}").into());
            setting.margins.push((metric.clone(), *margin, place));
        }
    }
}

impl GateOptions {
    /// The `[gate]` of the file, or else the default, with the command line over it.
    fn setting(&self) -> Result<GateSetting> {
        let table = match &self.rules {
            Some(path) => {
                let text = read_text("scenario ", path, "check the path")?;
                SettingTable::parse(&path.display().to_string(), &text)?
            }
            None => SettingTable::new(Place::BuiltIn),
        };
        let mut setting = read_gate(&table)?;
        self.margins.lay_over(&mut setting);
        setting.fail_on_inconclusive |= self.fail_on.is_some();
        setting.anchor = self.anchor.clone().or(setting.anchor);
        Ok(setting)
    }
}

fn margin(typed: &str) -> Result<(String, f64), String> {
    let (metric, margin) = typed.split_once('=').unwrap_or((typed, ""));
    let margin = models::number(margin, "METRIC=MARGIN, as in `facts=0.03`")?;
    Margins::default().set(metric, margin)?;
    Ok((metric.to_owned(), margin))
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    match (&args.gate.baseline, &args.sides[..]) {
        (Some(baseline), [candidate]) => gate(args, candidate, baseline),
        (None, sides @ [_, _, ..]) => compare(args, sides),
        _ => {
            let problem = "two sides or more are compared, and `--gate` judges one run";
            let hint = "as in `proctor compare BASELINE RUN` or `proctor compare --gate RUN --baseline NAME`";
            stop_with(Exit::Usage, problem, hint)
        }
    }
}

/// Compares each side with the first, or with every other.
fn compare(args: &Args, sides: &[String]) -> Result<Exit> {
    let files = &args.output.output;
    comparison::prepare_ungated(files, args.output.json)?;
    let found = sides.iter().map(|typed| RunSide::find(typed, &args.options.baselines));
    let sides: Vec<RunSide> = found.collect::<Result<_, _>>()?;
    let rules = rules(&args.gate.setting()?)?;
    let mut found = Comparisons::default();
    for candidate in &sides[1..] {
        let (old, how) = (&sides[0], (&args.options, &rules));
        comparison::compare(&mut found, [old, candidate], how, Unpaired::Reported, SEED)?;
    }
    comparison::adjust(&mut found.comparisons);
    comparison::show(found, files, args.output.printed())
}

/// Gates a run.
fn gate(args: &Args, typed: &str, baseline: &str) -> Result<Exit> {
    comparison::prepare(&args.output.output, args.output.json)?;
    let setting = args.gate.setting()?;
    let rules = rules(&setting)?;
    let run = read_run(Path::new(typed.split("::").next().unwrap_or(typed)))?;
    let candidate = RunSide::find(typed, &args.options.baselines)?;
    let valid = comparison::controls_hold(&run);
    let mut baselines = vec![baseline];
    baselines.extend(setting.anchor.as_deref());
    let exit = against(
        &candidate,
        &baselines,
        &args.options,
        &rules,
        SEED,
        &args.output.output,
        args.output.printed(),
    )?;
    Ok(if valid { exit } else { Exit::ControlsFailed })
}

/// Gates a candidate against each baseline that is named.
pub(super) fn against(
    candidate: &RunSide,
    baselines: &[&str],
    options: &ComparisonOptions,
    rules: &Rules,
    seed: u64,
    files: &[PathBuf],
    printed: OutputFormat<'_>,
) -> Result<Exit> {
    let mut found = Comparisons::default();
    let named = baselines.iter();
    let olds = named.map(|name| RunSide::find(name, &options.baselines));
    let sides: Vec<RunSide> = olds.collect::<Result<_, _>>()?;
    for (at, baseline) in sides.iter().enumerate() {
        // Strategies that are newer than the anchor are compared with the baseline.
        let unpaired = if at == 0 { Unpaired::Refused } else { Unpaired::Reported };
        let sides = [baseline, candidate];
        comparison::compare(&mut found, sides, (options, rules), unpaired, seed)?;
    }
    let family = found.comparisons.len();
    for one in &mut found.comparisons {
        let mut named = sides.iter().filter(|side| side.name == one.baseline_source);
        let known = named.next().map(|side| &side.source);
        let old = known.and_then(|source| source.strategy(&one.comparison.baseline));
        let new = candidate.source.strategy(&one.comparison.candidate);
        let [old, new] = [old, new].map(|sample| sample.cloned().unwrap_or_default());
        one.gated = Some(gate_one(&one.comparison, [&old, &new], rules, family));
    }
    let gated = found.comparisons.iter();
    found.ending = Some(rules.ending(gated.filter_map(|one| one.gated.as_ref())));
    found.fails_on_inconclusive = rules.fail_on_inconclusive;
    let why = found.why().map_or(String::new(), |why| format!(": {why}"));
    let exit = comparison::show(found, files, printed)?;
    match exit {
        Exit::GateFailed => say!("the gate failed{why}"),
        Exit::GateInconclusive => say!("the gate is inconclusive, and that was to fail{why}"),
        _ => say("the gate passed"),
    }
    Ok(exit)
}

/// The rules of a scenario.
pub(super) fn rules(setting: &GateSetting) -> Result<Rules, SettingError> {
    let mut rules = Rules {
        hard_break: setting.hard_break,
        coverage: setting.coverage,
        fail_on_inconclusive: setting.fail_on_inconclusive,
        target: setting.target.as_deref().and_then(|name| target(name).ok()),
        ..Rules::default()
    };
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
    Ok(rules)
}
