//! `proctor sweep`: many settings of one strategy, and the one that is worth having.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::apply::ApplyOptions;
use super::compare::{MarginOptions, rules};
use super::inputs::{Inputs, QUICK};
use super::interrupt::{FINISHING, stop_on_interrupt};
use super::parts::PartOptions;
use super::progress::ProgressDisplay;
use super::{
    CliError, Exit, Result, find_sessions, models, one_of, print, prompts, report, stop, stop_with,
    terminal,
};
use crate::compare::judge;
use crate::compare::sweep::{Confirmation, Objective, Sweep, Trial, judge as judge_settings};
use crate::compare::{Axis as Measured, ComparedRun, JudgingRule};
use crate::metric::cost::SimulatedCost;
use crate::record::journal::{Journal, RecordedRun};
use crate::record::repairs;
use crate::report::{ReportKind, sweep};
use crate::runner::{self, Plan, Remembered, Workers};
use crate::scenario::Scenario;
use crate::settings::{Place, Setting};
use crate::stop::StopToken;
use crate::strategy::StrategySpec;

mod apply;
mod grid;
mod kept;
mod next;
mod part;

use kept::{KeptMetric, unmeasured};
use part::Halves;

/// Arguments of `proctor sweep`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten, next_help_heading = "Settings to try")]
    tuning: TuneOptions,
    #[command(flatten, next_help_heading = "Input")]
    inputs: Inputs,
    #[command(flatten, next_help_heading = "Models")]
    models: models::ModelOptions,
    #[command(flatten)]
    consent: models::Consent,
    #[command(flatten, next_help_heading = "Parts of a sweep")]
    part: PartOptions,
    /// Threads; by default as many as there are processors, and with a live model as many as requests
    /// may be under way (at most 64)
    #[arg(short, long, value_name = "N", value_parser = models::jobs)]
    jobs: Option<usize>,
    #[command(flatten, next_help_heading = "Output")]
    apply: ApplyOptions,
    /// Also write the results to this file: .html, .json, .txt, or a picture, `sweep.svg`, as in
    /// `any.sweep.svg` (repeatable)
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Folder for the runs; by default `reports/sweep`, and for a part `reports/sweep-K-of-N`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The settings that are tried, and what decides among them.
#[derive(Debug, clap::Args)]
struct TuneOptions {
    /// A knob and the values it takes (repeatable); by default the knobs that the strategy offers
    #[arg(short = 'P', long = "param", value_name = "KNOB=VALUES")]
    params: Vec<String>,
    /// Try only this many settings, drawn from the grid
    #[arg(long, value_name = "N", value_parser = models::at_least_one)]
    random: Option<usize>,
    /// What to save
    #[arg(long, value_name = "METRIC", default_value = "bill", value_parser = one_of(metrics(Measured::is_saved), Measured::name))]
    saves: Measured,
    /// What to keep; by default the first that was measured: answers (where the scenario names a
    /// reader), facts, actions
    #[arg(long, value_name = "METRIC", value_parser = one_of(metrics(Measured::is_read_from_text), Measured::name))]
    keeps: Option<Measured>,
    #[command(flatten)]
    margins: MarginOptions,
}

/// The metrics of a kind.
fn metrics(is_meant: fn(Measured) -> bool) -> impl Iterator<Item = Measured> {
    Measured::ALL.into_iter().filter(move |axis| is_meant(*axis))
}

/// Knobs with the values they are set to.
type SweepKnobs = Vec<(String, Setting)>;

/// One setting to be tried.
#[derive(Debug, Clone)]
struct GridPoint {
    /// Each knob with its value; empty for the default.
    values: SweepKnobs,
    /// The strategy with its knobs set.
    spec: StrategySpec,
    /// Whether each knob is turned to the value that it has.
    is_default: bool,
}

/// A sweep under way.
struct SweepRun<'a> {
    args: &'a Args,
    whole: &'a Plan,
    scenario: &'a Scenario,
    /// The spending that is still allowed unasked.
    consent: models::Consent,
    /// Set up once the first part is agreed to: before, Ctrl-C ends the program.
    stop: Option<StopToken>,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    report::check(ReportKind::Sweep, &args.output, args.json)?;
    args.inputs.refuse_caller("sweep")?;
    let (mut table, folder) = args.inputs.laid_over(QUICK)?;
    if args.tuning.keeps.is_some_and(|axis| !axis.needs_reader()) {
        // Answers are not scored, so no reader is asked.
        let place = Place::Flag("sweep".into());
        table.overlay("models.reader", Setting::new("none", &place))?;
    }
    let mut scenario = args.inputs.scenario_of(table, &folder)?;
    let strategy = one_strategy(&scenario)?;
    let unnamed = super::apply::unnamed(&strategy, apply::TUNED);
    args.apply.check(unnamed.clone())?;
    if let Some(path) = args.apply.path(unnamed) {
        super::apply::check_programs(&path, &strategy)?;
    }
    let axes = grid::axes(&args.tuning.params, &strategy)?;
    args.tuning.margins.lay_over(&mut scenario.gate);
    let rules = rules(&scenario.gate)?;
    let seed = scenario.seed;
    let rule = JudgingRule { margins: rules.margins, ..JudgingRule::of_population(seed) };
    let points = grid_points(&strategy, grid::chosen(&axes, args.tuning.random, seed)?)?;
    let mut whole = find_sessions::plan(scenario.clone())?;
    let mut consent = args.consent;
    args.part.limit(&mut whole, &mut consent);
    args.models.connect(&mut whole, &args.folder(), &args.part)?;
    let halves = Halves::of(&whole, seed);
    halves.announce(1 + points.iter().filter(|point| !point.is_default).count());
    let mut running = SweepRun { args, whole: &whole, scenario: &scenario, consent, stop: None };
    if args.part.partition.is_some() {
        return running.only_part(&points, &halves.tune);
    }
    let (tried, simulated_cost) = running.on("tune", &points, &halves.tune)?;
    let kept = KeptMetric::of(args, &tried, &halves.tune);
    let objectives =
        [args.tuning.saves, kept.axis].map(|axis| Objective { axis, margin: rule.margin(axis) });
    let unmeasured = unmeasured(args, &kept, &tried, &halves.tune);
    let [_, independent_confirm] = halves.independent;
    let mut sweep = judge_settings(&tried, halves.tune, halves.confirm, objectives);
    sweep.independent_confirm = independent_confirm;
    sweep.quality_reason = kept.reason;
    sweep.repairs = repairs(&whole.manifest().sessions);
    sweep.simulated_cost = simulated_cost;
    let swept = axes.iter().filter(|_| !args.tuning.params.is_empty());
    let (hints, missing) = next::missing_knobs(&strategy, swept);
    sweep.hints = hints;
    confirm(&mut running, &mut sweep, &points, objectives, &rule)?;
    models::close(whole.models(), false)?;
    let applied = apply::apply(args, &sweep, &points, (&whole.manifest().scenario, seed));
    let written = applied.as_ref().ok().and_then(Option::as_deref);
    let next = next::command(args, &sweep, &points, written, &missing);
    let empty = sweep.points.iter().all(|point| !point.on_front);
    if !args.json {
        print(&sweep::screen(&sweep, &next, terminal().columns()))?;
    }
    let made = sweep::report(sweep);
    if args.json {
        report::print_as(&made, true)?;
    }
    report::write(ReportKind::Sweep, &made, &args.output)?;
    if let Some(stopped) = unmeasured {
        return Err(stopped.into());
    }
    if empty {
        let problem = "no setting can be chosen: the verdict says why";
        return stop(Exit::NothingSelected, problem);
    }
    applied.map(|_| Exit::Done)
}

/// The strategy whose knobs are turned.
fn one_strategy(scenario: &Scenario) -> Result<StrategySpec> {
    match scenario.strategies.as_slice() {
        [strategy] => Ok(strategy.clone()),
        all => {
            let count = all.len();
            let problem =
                format!("a sweep turns the knobs of one strategy, and the scenario has {count}");
            stop_with(Exit::Usage, problem, "name one with `--strategy NAME`")
        }
    }
}

/// Tries the choice beside the default, on the sessions that did not make it.
fn confirm(
    running: &mut SweepRun<'_>,
    sweep: &mut Sweep,
    points: &[GridPoint],
    [saved, quality]: [Objective; 2],
    rule: &JudgingRule,
) -> Result<()> {
    let chosen = apply::chosen(sweep, points).filter(|setting| !setting.is_default);
    let Some(setting) = chosen.filter(|_| !sweep.confirm.is_empty()) else {
        return Ok(());
    };
    let pair = [points[0].clone(), setting.clone()];
    let (tried, _) = running.on("confirm", &pair, &sweep.confirm)?;
    let findings = judge::judge(&tried[0].sample, &tried[1].sample, rule);
    let [default, own] = &findings.broken;
    let own = own.as_ref().map(|why| format!("it is broken there: {why}"));
    let problem = own.or_else(|| {
        let why = default.as_ref()?;
        Some(format!("the default is broken there, so nothing can be compared with it: {why}"))
    });
    sweep.confirm(Confirmation::of(&findings, saved.axis, quality, problem));
    Ok(())
}

/// Knobs and values as they are shown.
fn typed(knobs: &SweepKnobs) -> Vec<(String, String)> {
    knobs.iter().map(|(knob, setting)| (knob.clone(), setting.value.to_string())).collect()
}

/// The default, and the settings of the grid.
fn grid_points(default: &StrategySpec, grid: Vec<SweepKnobs>) -> Result<Vec<GridPoint>> {
    let all = std::iter::once(Vec::new()).chain(grid);
    all.map(|values| GridPoint::of(values, default)).collect()
}

impl GridPoint {
    /// The strategy with these knobs turned. Where all have the default's values it is the default, which runs once.
    fn of(values: SweepKnobs, default: &StrategySpec) -> Result<Self> {
        let mut spec = default.clone();
        let mut is_default = true;
        for (knob, setting) in &values {
            let own = default.value_of(knob);
            if own.is_some_and(|own| own.value == setting.value) {
                continue;
            }
            is_default = false;
            let (knob, setting) = grid::trigger(default, knob, setting);
            spec = prompts::read_one(spec.with(&knob, setting)?)?;
        }
        Ok(Self { values, spec, is_default })
    }
}

impl SweepRun<'_> {
    /// Runs points, the default first, on sessions; cells that were run before are reused. Returns their results, and
    /// how far simulated costs are from the bill.
    fn on(
        &mut self,
        part: &str,
        points: &[GridPoint],
        sessions: &[String],
    ) -> Result<(Vec<Trial>, Option<SimulatedCost>)> {
        let ids: BTreeSet<&str> = sessions.iter().map(String::as_str).collect();
        let mut scenario = self.scenario.clone();
        // Two settings may spell the same strategy, such as the default written out.
        let mut names = BTreeSet::new();
        let all = points.iter().map(|point| point.spec.clone());
        let specs = all.filter(|spec| names.insert(spec.name().to_owned()));
        scenario.strategies = specs.collect();
        let mut plan = self.whole.variant(scenario, &|id| ids.contains(id));
        let folder = self.args.folder().join(plan.folder(Path::new(part)));
        self.args.part.keep(&mut plan);
        let mut journal = self.args.part.open(&plan, &folder)?;
        let again = plan.stale(&journal, Remembered::PresetsOnly)?;
        journal.forget(&again, plan.manifest())?;
        self.replay(&plan, &mut journal)?;
        let run = RecordedRun::read(&folder).context("cannot read the run back")?;
        if !super::comparison::controls_hold(&run) {
            return stop(Exit::ControlsFailed, "a sweep needs valid runs");
        }
        let source = ComparedRun::of(&run.manifest, &run.cells);
        let default = source.strategy(points[0].spec.name());
        let tried = points.iter().map(|point| {
            let sample = source.strategy(point.spec.name()).cloned().unwrap_or_default();
            let mut trial = Trial::new(typed(&point.values), sample, point.is_default);
            if let Some(default) = default {
                trial.held_against(default);
            }
            trial
        });
        Ok((tried.collect(), source.simulated_cost))
    }

    /// Runs the cells that are missing, all of them.
    fn replay(&mut self, plan: &Plan, journal: &mut Journal) -> Result<()> {
        let cells = plan.cells().len();
        let spend = self.consent.to_run(plan, journal.done(), false)?;
        // The limit is one for all parts of the sweep.
        let dollars = spend.dollars.map_or(0.0, |span| span.high.0 as f64 / 1e9);
        self.consent.cost_limit = (self.consent.cost_limit - dollars).max(0.0);
        let token = self.stop.get_or_insert_with(|| stop_on_interrupt(FINISHING));
        let workers =
            Workers { threads: models::threads(self.args.jobs, plan), stop: token.clone() };
        let progress = ProgressDisplay::new(plan, journal);
        let outcome = runner::run(plan, journal, &workers, &progress)?;
        self.args.part.note_stop(journal, outcome.budget.as_deref())?;
        progress.finish();
        if outcome.missed || outcome.outstanding > 0 {
            models::close(plan.models(), outcome.missed)?;
        }
        if let Some((key, why)) = outcome.broken.first() {
            let problem = format!("proctor itself failed in {key}: {why}");
            return stop(Exit::Internal, problem);
        }
        if outcome.outstanding > 0 && workers.stop.is_requested() {
            let kept = cells - outcome.outstanding;
            let folder = journal.folder().display();
            let problem = format!(
                "interrupted: {kept} of {cells} cells are kept in `{folder}`; the same command goes on"
            );
            return stop(Exit::Interrupted, problem);
        }
        if outcome.outstanding > 0 {
            let why = outcome.budget.as_deref().unwrap_or("cells are missing");
            let problem = format!("the sweep stopped: {why}; the same command goes on");
            return stop(models::exit_of(plan, &outcome, cells), problem);
        }
        Ok(())
    }
}
