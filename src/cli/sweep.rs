//! `proctor sweep`: many settings of one strategy, and the one that is worth having.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::apply::ApplyOptions;
use super::compare::{MarginOptions, rules};
use super::inputs::Inputs;
use super::interrupt::{FINISHING, stop_on_interrupt};
use super::parts::PartOptions;
use super::progress::ProgressDisplay;
use super::{
    CliError, Exit, Result, find_sessions, models, one_of, print, prompts, report, stop, stop_with,
    terminal,
};
use crate::compare::judge;
use crate::compare::sweep::{
    Confirmation, Objective, Sweep, Trial, is_of_window, judge as judge_settings,
};
use crate::compare::{Axis as Measured, ComparedRun, JudgingRule};
use crate::metric::cost::SimulatedCost;
use crate::record::journal::{Journal, RecordedRun};
use crate::record::{Arm, CellRecord, repairs};
use crate::report::{ReportKind, sweep};
use crate::runner::{self, Plan, Remembered, Workers};
use crate::scenario::Scenario;
use crate::settings::{Place, Setting, SettingTable};
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
    /// Which of the windows it runs in.
    window: usize,
    /// Whether no knob of the strategy is turned.
    is_default: bool,
    /// Whether each knob is turned to the value that it has.
    is_spelled: bool,
}

/// A window, with what ran in it.
struct WindowRun {
    /// The knobs of the window; none for the scenario's own.
    knobs: SweepKnobs,
    scenario: Scenario,
    /// Cells that are done already, in any folder.
    done: Vec<CellRecord>,
}

/// A sweep under way.
struct SweepRun<'a> {
    args: &'a Args,
    whole: &'a Plan,
    window_runs: Vec<WindowRun>,
    /// The spending that is still allowed unasked.
    consent: models::Consent,
    /// Set up once the first part is agreed to: before, Ctrl-C ends the program.
    stop: Option<StopToken>,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    report::check(ReportKind::Sweep, &args.output, args.json)?;
    args.inputs.refuse_caller("sweep")?;
    let (mut table, folder) = args.inputs.laid_over()?;
    if args.tuning.keeps.is_some_and(|axis| !axis.needs_reader()) {
        // Answers are not scored, so no reader is asked.
        let place = Place::Flag("sweep".into());
        table.overlay("models.reader", Setting::new("none", &place))?;
    }
    let mut scenario = args.inputs.scenario_of(table.clone(), &folder)?;
    let strategy = one_strategy(&scenario)?;
    let unnamed = super::apply::unnamed(strategy, apply::TUNED);
    args.apply.check(unnamed.clone())?;
    if let Some(path) = args.apply.path(unnamed) {
        super::apply::check_programs(&path, strategy)?;
    }
    let axes = grid::axes(&args.tuning.params, strategy)?;
    args.tuning.margins.lay_over(&mut scenario.gate);
    let rules = rules(&scenario.gate)?;
    let seed = scenario.seed;
    let rule = JudgingRule { margins: rules.margins, ..JudgingRule::of_population(seed) };
    let grid = grid::chosen(&axes, args.tuning.random, seed)?;
    let (points, window_runs) = points(&table, &folder, scenario, &grid)?;
    let mut whole = find_sessions::plan(window_runs[0].scenario.clone())?;
    let mut consent = args.consent;
    args.part.limit(&mut whole, &mut consent);
    args.models.connect(&mut whole, &args.folder(), &args.part)?;
    if window_runs.len() > 1 {
        // The same sessions run again and again: what their cells share is made once.
        whole.keep_prepared();
    }
    let halves = Halves::of(&whole, seed);
    halves.announce(points.len() - points.iter().filter(|point| point.is_spelled).count());
    let mut running = SweepRun { args, whole: &whole, window_runs, consent, stop: None };
    if args.part.partition.is_some() {
        return running.only_part(&points, &halves.tune);
    }
    let tried = running.on("tune", &points, &halves.tune)?;
    let kept = KeptMetric::of(args, &tried, &halves.tune);
    let objectives =
        [args.tuning.saves, kept.axis].map(|axis| Objective { axis, margin: rule.margin(axis) });
    let unmeasured = unmeasured(args, &kept, &tried, &halves.tune);
    let [_, independent_confirm] = halves.independent;
    let mut sweep = judge_settings(&tried, halves.tune, halves.confirm, objectives);
    sweep.independent_confirm = independent_confirm;
    sweep.quality_reason = kept.reason;
    sweep.repairs = repairs(&whole.manifest().sessions);
    let mut windows = running.window_runs.iter();
    sweep.simulated_cost = windows.find_map(|run| SimulatedCost::of(run.done.iter()));
    let swept = axes.iter().filter(|_| !args.tuning.params.is_empty());
    let (hints, missing) = next::missing_knobs(&points[0].spec, swept);
    sweep.hints = hints;
    confirm_choices(&mut running, &mut sweep, &points, objectives, &rule)?;
    models::close(whole.models(), false)?;
    let all = apply::chosen(&sweep, &points);
    let applied = apply::apply(args, &sweep, &all, (&whole.manifest().scenario, seed));
    let next = next::command(args, &all, applied.as_deref().unwrap_or_default(), &missing);
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
fn one_strategy(scenario: &Scenario) -> Result<&StrategySpec> {
    match scenario.strategies.as_slice() {
        [strategy] => Ok(strategy),
        all => {
            let count = all.len();
            let problem =
                format!("a sweep turns the knobs of one strategy, and the scenario has {count}");
            stop_with(Exit::Usage, problem, "name one with `--strategy NAME`")
        }
    }
}

/// Tries each choice that is not the default beside the default, on the sessions that did not choose it.
fn confirm_choices(
    running: &mut SweepRun<'_>,
    sweep: &mut Sweep,
    points: &[GridPoint],
    [saved, quality]: [Objective; 2],
    rule: &JudgingRule,
) -> Result<()> {
    if sweep.confirm.is_empty() {
        return Ok(());
    }
    let all = apply::chosen(sweep, points).into_iter().enumerate();
    let open: Vec<(usize, [GridPoint; 2])> = all
        .filter_map(|(at, one)| {
            let setting = one.setting.filter(|setting| !setting.is_default)?;
            Some((at, [one.default.clone(), setting.clone()]))
        })
        .collect();
    let pairs: Vec<GridPoint> = open.iter().flat_map(|(_, pair)| pair.clone()).collect();
    let tried = running.on("confirm", &pairs, &sweep.confirm)?;
    for ((at, _), pair) in open.into_iter().zip(tried.chunks_exact(2)) {
        let findings = judge::judge(&pair[0].sample, &pair[1].sample, rule);
        let [default, own] = &findings.broken;
        let own = own.as_ref().map(|why| format!("it is broken there: {why}"));
        let problem = own.or_else(|| {
            let why = default.as_ref()?;
            Some(format!("the default is broken there, so nothing can be compared with it: {why}"))
        });
        sweep.confirm(at, Confirmation::of(&findings, saved.axis, quality, problem));
    }
    Ok(())
}

/// Knobs and values as they are shown.
fn typed(knobs: &SweepKnobs) -> Vec<(String, String)> {
    knobs.iter().map(|(knob, setting)| (knob.clone(), setting.value.to_string())).collect()
}

/// The default, the grid, and the default in each further window; and the windows they run in.
fn points(
    table: &SettingTable,
    folder: &Path,
    own: Scenario,
    grid: &[SweepKnobs],
) -> Result<(Vec<GridPoint>, Vec<WindowRun>)> {
    let base = one_strategy(&own)?;
    let mut points = vec![GridPoint::default_in(0, Vec::new(), base)];
    let mut defaults = Vec::new();
    let mut window_runs = vec![WindowRun { knobs: Vec::new(), scenario: own, done: Vec::new() }];
    for values in grid {
        let all = values.iter().cloned();
        let (outer, knobs): (SweepKnobs, SweepKnobs) =
            all.partition(|(path, _)| is_of_window(path));
        let outer_typed = typed(&outer);
        let known = window_runs.iter().position(|window| typed(&window.knobs) == outer_typed);
        let window = known.unwrap_or(window_runs.len());
        if known.is_none() {
            let mut changed = table.clone();
            for (path, setting) in &outer {
                changed.overlay(path, setting.clone())?;
            }
            let mut scenario = Scenario::read(&changed, folder)?;
            prompts::read(&mut scenario.strategies)?;
            let sessions = &window_runs[0].scenario.sessions;
            scenario.sessions.clone_from(sessions);
            // Its settings are compared with the default in the same window.
            let default = &scenario.strategies[0];
            defaults.push(GridPoint::default_in(window, outer.clone(), default));
            window_runs.push(WindowRun { knobs: outer, scenario, done: Vec::new() });
        }
        if knobs.is_empty() {
            continue;
        }
        let default = &window_runs[window].scenario.strategies[0];
        points.push(GridPoint::of(window, values.clone(), &knobs, default)?);
    }
    points.extend(defaults);
    Ok((points, window_runs))
}

impl GridPoint {
    fn default_in(window: usize, values: SweepKnobs, spec: &StrategySpec) -> Self {
        Self { values, spec: spec.clone(), window, is_default: true, is_spelled: false }
    }

    /// The strategy with these knobs turned. Where all have the default's values it is the default, which runs once.
    fn of(
        window: usize,
        values: SweepKnobs,
        knobs: &SweepKnobs,
        default: &StrategySpec,
    ) -> Result<Self> {
        let mut spec = default.clone();
        let mut is_spelled = true;
        for (knob, setting) in knobs {
            let own = default.value_of(knob);
            if own.is_some_and(|own| own.value == setting.value) {
                continue;
            }
            is_spelled = false;
            let (knob, setting) = grid::trigger(default, knob, setting);
            spec = prompts::read_one(spec.with(&knob, setting)?)?;
        }
        Ok(Self { values, spec, window, is_default: false, is_spelled })
    }
}

impl SweepRun<'_> {
    /// Runs points on sessions, one run folder per window; cells that were run before are reused.
    fn on(&mut self, part: &str, points: &[GridPoint], sessions: &[String]) -> Result<Vec<Trial>> {
        let ids: BTreeSet<&str> = sessions.iter().map(String::as_str).collect();
        let mut tried: Vec<Option<Trial>> = vec![None; points.len()];
        let mut references: Vec<CellRecord> = Vec::new();
        for at in 0..self.window_runs.len() {
            let own: Vec<(usize, &GridPoint)> =
                points.iter().enumerate().filter(|(_, point)| point.window == at).collect();
            if own.is_empty() {
                continue;
            }
            let mut scenario = self.window_runs[at].scenario.clone();
            // Two settings may spell the same strategy, such as the default written out.
            let mut names = BTreeSet::new();
            let all = own.iter().map(|(_, point)| point.spec.clone());
            let specs = all.filter(|spec| names.insert(spec.name().to_owned()));
            scenario.strategies = specs.collect();
            let mut plan = self.whole.variant(scenario, &|id| ids.contains(id));
            let folder = self.args.folder().join(plan.folder(Path::new(part)));
            self.args.part.keep(&mut plan);
            let mut journal = self.args.part.open(&plan, &folder)?;
            let again = plan.stale(&journal, Remembered::PresetsOnly)?;
            journal.forget(&again, plan.manifest())?;
            let planned: BTreeSet<_> = plan.cells().into_iter().collect();
            // Full history knows no window: what one window measured of it holds for all.
            for cell in references.iter().chain(&self.window_runs[at].done) {
                let key = cell.key();
                if planned.contains(&key) && !journal.done().contains(&key) {
                    journal.append(cell)?;
                }
            }
            self.replay(&plan, &mut journal, planned.len())?;
            let run = RecordedRun::read(&folder).context("cannot read the run back")?;
            if !super::comparison::controls_hold(&run) {
                return stop(Exit::ControlsFailed, "a sweep needs valid runs");
            }
            if references.is_empty() {
                let shared = run.cells.iter().filter(|cell| cell.arm != Arm::Strategy);
                references = shared.cloned().collect();
            }
            let source = ComparedRun::of(&run.manifest, &run.cells);
            self.window_runs[at].done = run.cells;
            let usual = own.iter().find(|(_, point)| point.is_default);
            let default = usual.and_then(|(_, point)| source.strategy(point.spec.name()));
            for (place, point) in own {
                let sample = source.strategy(point.spec.name()).cloned().unwrap_or_default();
                let same = point.is_default || point.is_spelled;
                let mut trial = Trial::new(typed(&point.values), sample, same);
                if let Some(default) = default {
                    trial.held_against(default);
                }
                tried[place] = Some(trial);
            }
        }
        Ok(tried.into_iter().flatten().collect())
    }

    /// Runs the cells that are missing, all of them.
    fn replay(&mut self, plan: &Plan, journal: &mut Journal, cells: usize) -> Result<()> {
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
