//! `proctor sweep`: many settings of one strategy, and the one that is worth having.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::inputs::Inputs;
use super::interrupt::{FINISHING, stop_on_interrupt};
use super::metric_name::MetricName;
use super::parts::PartOptions;
use super::progress::ProgressDisplay;
use super::{
    CliError, Exit, find_sessions, gate, models, print, prompts, report, say, stop, stop_with,
    terminal,
};
use crate::compare::judge;
use crate::compare::sweep::{
    Choice, Confirmation, Objective, Sweep, Trial, better_half, broken, judge as judge_settings,
};
use crate::compare::{Axis as Measured, ComparedRun, Margins, Rule};
use crate::record::journal::{Journal, Run, write_whole};
use crate::record::{Arm, CellRecord};
use crate::report::display::many;
use crate::report::{Kind, sweep};
use crate::runner::{self, Plan, Remembered, Workers};
use crate::scenario::Scenario;
use crate::settings::{Place, Setting, Table};
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stop::StopToken;
use crate::strategy::StrategySpec;

mod grid;
mod kept;
mod next;
mod part;
mod preset;

use grid::Axis;
use kept::{KeptMetric, unmeasured};

/// The metrics that `--keeps` takes.
const KEEPABLE: [&str; 3] = ["facts", "actions", "answers"];

/// The metrics that `--saves` takes.
const SAVABLE: [&str; 2] = ["bill", "tokens"];

/// Of these, the ones that need no answer to a question.
const UNANSWERED: [&str; 2] = ["facts", "actions"];

/// Arguments of `proctor sweep`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "On one half of the sessions the cheapest setting is chosen that keeps no less than the best kept, give or \
take the margin; in each window by itself. It is recommended only if the other half confirms it against the default: \
shown to be cheaper, and no worse by more than the margin. A knob is \
`stage.knob`, `stage.when.CONDITION` (which takes the place of the stage's own condition), `guards.…`, `overflow.…` or `window.…`; its values are a list (`1,3,10`) or a range \
(`0.5..0.9:0.1`)."
)]
pub(super) struct Args {
    #[command(flatten, next_help_heading = "Input")]
    inputs: Inputs,
    #[command(flatten, next_help_heading = "Parts of a sweep")]
    part: PartOptions,
    #[command(flatten, next_help_heading = "Models and budgets")]
    models: models::ModelOptions,
    #[command(flatten)]
    consent: models::Consent,
    /// A knob and the values it takes (repeatable)
    #[arg(
        short = 'P',
        long = "param",
        value_name = "KNOB=VALUES",
        required = true
    )]
    params: Vec<String>,
    /// Try only this many settings, drawn from the grid
    #[arg(long, value_name = "N")]
    random: Option<usize>,
    /// Begin with few sessions; each round keeps the better half of the settings and doubles the
    /// sessions
    #[arg(long)]
    halving: bool,
    /// What to save
    #[arg(long, value_name = "METRIC", default_value = "bill", value_parser = MetricName(&SAVABLE))]
    saves: String,
    /// What to keep; by default the first that was measured: answers (where the scenario names a
    /// reader), facts, actions
    #[arg(long, value_name = "METRIC", value_parser = MetricName(&KEEPABLE))]
    keeps: Option<String>,
    /// How much worse the kept metric may be, as in `facts=0.03`; by default the scenario's
    /// `[gate]`, else 0.05 (repeatable)
    #[arg(long, value_name = "METRIC=MARGIN")]
    margin: Vec<String>,
    /// Threads; by default as many as there are processors, and with a live model as many as requests
    /// may be under way (at most 64)
    #[arg(short, long, value_name = "N", value_parser = models::jobs)]
    jobs: Option<usize>,
    /// Folder for the runs, and for the preset; by default `reports/sweep`, and for a part `reports/sweep-K-of-N`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// File of the recommended preset, or of the default where nothing is recommended: its first line
    /// says which. By default `recommended.toml` in the sweep's folder. Where windows are swept, each
    /// has one, with the window in its name
    #[arg(long, value_name = "FILE")]
    recommend: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Also write the results to this file: .html, .json, .txt, or a picture, `pareto.svg` or
    /// `heat.svg`, as in `any.pareto.svg` (repeatable)
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
}

/// Knobs with the values they are set to.
type Knobs = Vec<(String, Setting)>;

/// One setting to be tried.
#[derive(Debug, Clone)]
struct Point {
    /// Each knob with its value; empty for the default.
    values: Knobs,
    /// The strategy with its knobs set.
    spec: StrategySpec,
    /// Which of the windows it runs in.
    window: usize,
    /// Whether no knob of the strategy is turned.
    is_default: bool,
}

/// A window, with what ran in it.
struct WindowRun {
    /// The knobs of the window; none for the scenario's own.
    knobs: Knobs,
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

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    report::check(Kind::Sweep, &args.output)?;
    args.has_whole_rounds()?;
    args.recommend
        .iter()
        .try_for_each(|path| report::check_place(path))?;
    let (mut table, folder) = args.inputs.laid_over()?;
    let mut scenario = scenario(&table, &folder, args)?;
    let keeps = args.keeps.as_deref();
    if keeps.is_some_and(|name| UNANSWERED.contains(&name)) {
        // Answers are not scored, so no reader is asked.
        let place = Place::Flag("sweep".into());
        table.overlay("models.reader", Setting::new("none", &place))?;
        scenario = self::scenario(&table, &folder, args)?;
    }
    scenario.sessions = find_sessions::found_in_folders(scenario.sessions)?;
    let limits = gate::GateOptions {
        margin: args.margin.clone(),
        ..gate::GateOptions::default()
    };
    let rules = gate::rules(&scenario.gate, &limits)?;
    let seed = scenario.seed;
    let axes = args.params.iter().map(|typed| Axis::read(typed));
    let axes = axes.collect::<anyhow::Result<Vec<Axis>>>()?;
    let grid = grid::chosen(&axes, args.random, seed)?;
    let (mut points, window_runs) = points(&table, &folder, scenario, &grid, args)?;
    let mut whole = Plan::new(window_runs[0].scenario.clone())?;
    find_sessions::say_passed_over(&whole);
    let mut consent = args.consent;
    args.part.limit(&mut whole, &mut consent);
    args.models
        .connect(&mut whole, &args.folder(), &args.part)?;
    if window_runs.len() > 1 || args.halving {
        // The same sessions run again and again: what their cells share is made once.
        whole.keep_prepared();
    }
    let (tune, confirm) = part::split(&whole, seed);
    let mut running = SweepRun {
        args,
        whole: &whole,
        window_runs,
        consent,
        stop: None,
    };
    let (settings, sessions) = (points.len(), tune.len() + confirm.len());
    say(&format!(
        "{}; chosen on {}, tried on {}",
        many(settings, "setting", "settings"),
        many(tune.len(), "session", "sessions"),
        confirm.len()
    ));
    let few = FEWEST_SESSIONS * 2;
    if sessions < few {
        say(&format!(
            "warning: sessions: {sessions}, too few to choose on one half and confirm on the other; {few} are needed"
        ));
    }
    if args.halving {
        points = running.halve(points, &tune)?;
    }
    if args.part.part().is_some() {
        return running.only_part(&points, &tune);
    }
    let tried = running.on("tune", &points, &tune)?;
    let kept = KeptMetric::of(args, &tried, &tune);
    let usual = Margins::default().get(kept.axis);
    let quality = Objective {
        axis: kept.axis,
        margin: rules.margins.get(kept.axis).or(usual).unwrap_or_default(),
    };
    let unmeasured = unmeasured(args, &kept, &tried, &tune);
    let mut sweep = judge_settings(&tried, tune, confirm, args.saved(), quality);
    sweep.quality_reason = kept.reason;
    let missing = next::missing_knobs(&points[0].spec, &axes);
    sweep.hints = missing.iter().map(|(hint, _)| hint.clone()).collect();
    let missing: Vec<String> = missing.into_iter().map(|(_, typed)| typed).collect();
    confirm_choices(&mut running, &mut sweep, &points, quality, seed)?;
    models::close(whole.models(), false)?;
    let all = preset::chosen(&sweep, &points);
    let name = &whole.manifest().scenario;
    let mut written = Vec::new();
    for one in &all {
        let window = one.choice.map_or(&[][..], |choice| &choice.window);
        let path = preset_path(args, all.len(), window);
        write_whole(&path, one.text(&sweep, name, seed)?.as_bytes())?;
        written.push((path, one.choice.is_some_and(Choice::is_recommended)));
    }
    let next = next::command(args, &sweep, &all, &missing);
    let is_empty = sweep.points.iter().all(|point| !point.on_front);
    if !args.json {
        print(&sweep::screen(&sweep, &next, terminal().columns()))?;
    }
    let made = sweep::report(sweep);
    if args.json {
        report::print_as(&made, true)?;
    }
    report::write(Kind::Sweep, &made, &args.output)?;
    for (path, is_recommended) in written {
        let path = path.display();
        let what = if is_recommended {
            ""
        } else {
            ", which recommends nothing"
        };
        say(&format!("wrote `{path}`{what}"));
    }
    if let Some(stopped) = unmeasured {
        return Err(stopped.into());
    }
    if is_empty {
        let problem = "no setting can be chosen: the verdict says why";
        return stop(Exit::NothingSelected, problem);
    }
    Ok(Exit::Done)
}

impl Args {
    /// What is saved.
    fn saved(&self) -> Measured {
        Measured::named(&self.saves).unwrap_or(Measured::Bill)
    }
}

/// Tries each choice that is not the default beside the default, on the sessions that did not choose it.
fn confirm_choices(
    running: &mut SweepRun<'_>,
    sweep: &mut Sweep,
    points: &[Point],
    quality: Objective,
    seed: u64,
) -> anyhow::Result<()> {
    if sweep.confirm.is_empty() {
        return Ok(());
    }
    let open = preset::chosen(sweep, points).into_iter().enumerate();
    let open: Vec<(usize, [Point; 2])> = open
        .filter_map(|(at, one)| {
            let setting = one.setting.filter(|setting| !setting.is_default)?;
            Some((at, [one.default.clone(), setting.clone()]))
        })
        .collect();
    let pairs: Vec<Point> = open.iter().flat_map(|(_, pair)| pair.clone()).collect();
    let tried = running.on("confirm", &pairs, &sweep.confirm)?;
    let mut rule = Rule::of_population(seed);
    if let Err(problem) = rule.margins.set(quality.axis.name(), quality.margin) {
        return stop(Exit::Usage, problem);
    }
    for ((at, _), pair) in open.into_iter().zip(tried.chunks_exact(2)) {
        let [default, setting] = [&pair[0].sample, &pair[1].sample];
        let problem = broken(setting).map(|why| format!("it is broken there: {why}"));
        let problem = problem.or_else(|| {
            let why = broken(default)?;
            Some(format!(
                "the default is broken there, so nothing can be compared with it: {why}"
            ))
        });
        let findings = judge::judge(default, setting, &rule);
        let saves = running.args.saved();
        sweep.confirm(at, Confirmation::of(&findings, saves, quality, problem));
    }
    Ok(())
}

/// The scenario of these settings, before folders of sessions are read.
fn scenario(table: &Table, folder: &Path, args: &Args) -> anyhow::Result<Scenario> {
    let mut scenario = Scenario::read(table, folder)?;
    prompts::read(&mut scenario.strategies)?;
    args.models.limit(&mut scenario);
    Ok(scenario)
}

/// Knobs and values as they are shown.
fn typed(knobs: &Knobs) -> Vec<(String, String)> {
    let knobs = knobs.iter();
    knobs
        .map(|(knob, setting)| (knob.clone(), setting.value.to_string()))
        .collect()
}

/// The file of a preset; if there are several, each has its window in its name.
fn preset_path(args: &Args, of: usize, window: &[(String, String)]) -> PathBuf {
    let default = || args.folder().join("recommended.toml");
    let path = args.recommend.clone().unwrap_or_else(default);
    if of < 2 || window.is_empty() {
        return path;
    }
    let knobs = window.iter().map(|(knob, value)| format!("{knob}-{value}"));
    let suffix = knobs.collect::<Vec<_>>().join("-");
    let is_kept = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let suffix = suffix.replace(|letter| !is_kept(letter), "-");
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{suffix}.toml"))
}

/// The default, the grid, and the default in each further window; and the windows they run in.
fn points(
    table: &Table,
    folder: &Path,
    own: Scenario,
    grid: &[Knobs],
    args: &Args,
) -> anyhow::Result<(Vec<Point>, Vec<WindowRun>)> {
    let [base] = own.strategies.as_slice() else {
        let count = own.strategies.len();
        let problem =
            format!("a sweep turns the knobs of one strategy, and the scenario has {count}");
        return stop_with(Exit::Usage, problem, "name one with `--strategy NAME`");
    };
    let default = |values: &Knobs, spec: &StrategySpec, window| Point {
        values: values.clone(),
        spec: spec.clone(),
        window,
        is_default: true,
    };
    let mut points = vec![default(&Vec::new(), base, 0)];
    let mut defaults = Vec::new();
    let window_run = |knobs, scenario| WindowRun {
        knobs,
        scenario,
        done: Vec::new(),
    };
    let mut window_runs = vec![window_run(Vec::new(), own)];
    for values in grid {
        let is_outer = |(path, _): &(String, Setting)| path.starts_with("window.");
        let (outer, knobs): (Knobs, Knobs) = values.iter().cloned().partition(is_outer);
        let known = window_runs
            .iter()
            .position(|it| typed(&it.knobs) == typed(&outer));
        let window = known.unwrap_or(window_runs.len());
        if known.is_none() {
            let mut changed = table.clone();
            for (path, setting) in &outer {
                changed.overlay(path, setting.clone())?;
            }
            let mut scenario = scenario(&changed, folder, args)?;
            let sessions = &window_runs[0].scenario.sessions;
            scenario.sessions.clone_from(sessions);
            // Its settings are compared with the default in the same window.
            defaults.push(default(&outer, &scenario.strategies[0], window));
            window_runs.push(window_run(outer, scenario));
        }
        if knobs.is_empty() {
            continue;
        }
        let mut spec = window_runs[window].scenario.strategies[0].clone();
        for (path, setting) in &knobs {
            // A knob may be named with its strategy, as `--set` takes it.
            let base = format!("{}.", spec.base_name());
            let knob = path.strip_prefix(&base).unwrap_or(path);
            let (knob, setting) = grid::trigger(knob, setting);
            spec = prompts::read_one(spec.with(&knob, setting)?)?;
        }
        points.push(Point {
            values: values.clone(),
            spec,
            window,
            is_default: false,
        });
    }
    points.extend(defaults);
    Ok((points, window_runs))
}

impl SweepRun<'_> {
    /// Tries all points on few sessions, the better half on twice as many, and so on.
    fn halve(&mut self, mut points: Vec<Point>, tune: &[String]) -> anyhow::Result<Vec<Point>> {
        let saves = self.args.saved();
        let rounds = points.len().ilog2();
        for round in 0..rounds {
            let count = (tune.len() >> (rounds - round)).max(2).min(tune.len());
            let sessions = &tune[..count];
            let tried = self.on(&format!("round-{}", round + 1), &points, sessions)?;
            let keeps = KeptMetric::of(self.args, &tried, sessions).axis;
            let better = better_half(&tried, sessions, saves, keeps);
            let before = points.len();
            // The defaults stay: the choice is compared with them.
            let kept = points.into_iter().enumerate();
            points = kept
                .filter(|(at, point)| point.is_default || better.contains(at))
                .map(|(_, point)| point)
                .collect();
            if points.len() == before {
                break;
            }
        }
        Ok(points)
    }

    /// Runs points on sessions, one run folder per window; cells that were run before are reused.
    fn on(
        &mut self,
        part: &str,
        points: &[Point],
        sessions: &[String],
    ) -> anyhow::Result<Vec<Trial>> {
        let ids: BTreeSet<&str> = sessions.iter().map(String::as_str).collect();
        let mut tried: Vec<Option<Trial>> = vec![None; points.len()];
        let mut references: Vec<CellRecord> = Vec::new();
        for at in 0..self.window_runs.len() {
            let own = || {
                points
                    .iter()
                    .enumerate()
                    .filter(|(_, point)| point.window == at)
            };
            if own().next().is_none() {
                continue;
            }
            let mut scenario = self.window_runs[at].scenario.clone();
            let mut names = BTreeSet::new();
            // Two settings may spell the same strategy, such as the default written out.
            let specs = own().map(|(_, point)| point.spec.clone());
            scenario.strategies = specs
                .filter(|spec| names.insert(spec.name().to_owned()))
                .collect();
            let mut plan = self.whole.variant(scenario, &|id| ids.contains(id));
            let folder = self.args.folder().join(plan.folder(Path::new(part)));
            self.args.part.keep(&mut plan);
            let mut journal = self.args.part.open(&plan, &folder)?;
            let again = plan.stale(&journal, Remembered::PresetsOnly);
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
            let run = Run::read(&folder).context("cannot read the run back")?;
            if !super::comparison::controls_hold(&run) {
                let problem = "a sweep needs valid runs";
                return stop(Exit::ControlsFailed, problem);
            }
            if references.is_empty() {
                let shared = run.cells.iter().filter(|cell| cell.arm != Arm::Strategy);
                references = shared.cloned().collect();
            }
            let source = ComparedRun::of(&run.manifest, &run.cells);
            self.window_runs[at].done = run.cells;
            for (place, point) in own() {
                let sample = source.strategy(point.spec.name()).cloned();
                tried[place] = Some(Trial {
                    values: typed(&point.values),
                    sample: sample.unwrap_or_default(),
                });
            }
        }
        Ok(tried.into_iter().flatten().collect())
    }

    /// Runs the cells that are missing, all of them.
    fn replay(&mut self, plan: &Plan, journal: &mut Journal, cells: usize) -> anyhow::Result<()> {
        let spend = self.consent.to_run(plan, journal.done(), false)?;
        // The limit is one for all parts of the sweep.
        let dollars = spend.dollars.map_or(0.0, |span| span.high.0 as f64 / 1e9);
        self.consent.cost_limit = (self.consent.cost_limit - dollars).max(0.0);
        let token = self
            .stop
            .get_or_insert_with(|| stop_on_interrupt(FINISHING));
        let workers = Workers {
            threads: models::threads(self.args.jobs, plan),
            stop: token.clone(),
        };
        let done = journal.done().len();
        let progress = ProgressDisplay::new(cells, done, plan.sessions());
        let outcome = runner::run(plan, journal, &workers, &progress)?;
        let part = &self.args.part;
        part.note_stop(journal, outcome.budget.as_deref())?;
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
