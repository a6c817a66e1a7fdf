//! `proctor sweep`: many settings of one strategy, and the one that is worth having.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;

use super::inputs::Inputs;
use super::progress::Shown;
use super::{
    Exit, Stop, columns, confirm, gate, models, plan as forecast, print_json, prompts, prose, say,
    walk,
};
use crate::compare::sweep::{Confirmation, Objective, Sweep, Tried, better_half, broken, judge};
use crate::compare::{Chance, Comparison, Settings as CompareSettings, Source};
use crate::record::journal::{Journal, Run, write_whole};
use crate::record::{Arm, CellRecord};
use crate::report::html;
use crate::report::plot::{self, Plot};
use crate::runner::{self, Plan, Workers};
use crate::scenario::Scenario;
use crate::settings::{Place, Setting, Table};
use crate::stats::gate::Target;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::strategy::StrategySpec;
use crate::units::ContentHash;

mod grid;
mod text;

use grid::Axis;

/// By how much what has no margin in `[gate]` may be worse than the default: what `survival` has there.
const MARGIN: f64 = 0.05;

/// Arguments of `proctor sweep`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Settings are chosen on one half of the sessions and tried on the other, in each window by itself; only \
what saves something is recommended. A knob is \
`stage.knob`, `stage.when.CONDITION` (which takes the place of the stage's own condition), `guards.…`, `overflow.…` or `window.…`; its values are a list (`1,3,10`) or a range \
(`0.5..0.9:0.1`)."
)]
pub(super) struct Args {
    #[command(flatten, next_help_heading = "What is run")]
    inputs: Inputs,
    #[command(flatten, next_help_heading = "Models and budgets")]
    models: models::ModelOptions,
    /// Dollars that calls of live models may cost unasked
    #[arg(long, value_name = "USD", default_value_t = confirm::DEFAULT_LIMIT, value_parser = confirm::dollars)]
    cost_limit: f64,
    /// Agree to what the sweep costs
    #[arg(short, long)]
    yes: bool,
    /// A knob and the values it takes (repeatable)
    #[arg(
        short = 'P',
        long = "param",
        value_name = "KNOB=VALUES",
        required = true
    )]
    params: Vec<String>,
    /// Try only so many settings, drawn from the grid
    #[arg(long, value_name = "N")]
    random: Option<usize>,
    /// Begin with few sessions; after each round the better half of the settings goes on, on twice as many
    #[arg(long)]
    halving: bool,
    /// What is saved
    #[arg(long, value_name = "METRIC", default_value = "cost_savings", value_parser = ["cost_savings", "token_savings"])]
    saves: String,
    /// What is kept
    #[arg(long, value_name = "METRIC", default_value = "survival", value_parser = ["survival", "action_support", "extract", "accuracy"])]
    keeps: String,
    /// Threads; by default as many as there are processors, and with a live model as many as requests
    /// may be under way (at most 64)
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// Folder for the runs, and for the recommended preset
    #[arg(long, value_name = "DIR", default_value = "reports/sweep")]
    out: PathBuf,
    /// Where the recommended preset is written; by default `recommended.toml` in the sweep's folder. Where
    /// windows are swept, each has one, and its name gets the window
    #[arg(long, value_name = "FILE")]
    recommend: Option<PathBuf>,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
    /// Also write what was found to this file: .html, .json, .txt, or a picture, `pareto.svg` or `heat.svg`, as in
    /// `any.pareto.svg` (repeatable)
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
}

/// One setting to be tried.
#[derive(Debug, Clone)]
struct Point {
    /// Each knob with its value; empty for the default.
    values: Vec<(String, Setting)>,
    /// The strategy with its knobs set.
    spec: StrategySpec,
    /// Which of the windows it runs in.
    window: usize,
    /// Whether no knob of the strategy is turned.
    is_default: bool,
}

/// A window, with the points that run in it.
struct Arena {
    scenario: Scenario,
    /// Cells that are done already, whatever folder they stand in.
    done: Vec<CellRecord>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let outputs: Vec<Output> = args
        .output
        .iter()
        .map(|path| Output::of(path))
        .collect::<Result<_, _>>()?;
    let (mut table, folder) = args.inputs.laid_over()?;
    if matches!(args.keeps.as_str(), "survival" | "action_support") {
        // Nobody looks at answers: nobody is asked.
        let place = Place::Flag("sweep".into());
        table.overlay("models.reader", Setting::new("none", &place))?;
    }
    let mut scenario = Scenario::read(&table, &folder)?;
    scenario.sessions = walk::found_in_folders(scenario.sessions)?;
    prompts::read(&mut scenario.strategies)?;
    args.models.limit(&mut scenario);
    let rules = gate::rules(&scenario.gate, &gate::Asked::default())?;
    let seed = scenario.seed;
    let axes: Vec<Axis> = args
        .params
        .iter()
        .map(|typed| Axis::read(typed))
        .collect::<Result<_, _>>()?;
    let grid = grid::chosen(&axes, args.random, seed)?;
    let (mut points, mut arenas) = points(&table, &folder, scenario, &grid, args)?;
    let mut whole = Plan::new(arenas[0].scenario.clone())?;
    walk::say_passed_over(&whole);
    args.models.connect(&mut whole, &args.out)?;
    if arenas.len() > 1 || args.halving {
        // The same sessions run again and again: what their cells share is made once.
        whole.keep_prepared();
    }
    let (tune, confirm) = split(&whole, seed);
    let runs = Runs {
        args,
        whole: &whole,
        left: Cell::new(args.cost_limit),
    };
    say(&format!(
        "{} settings; chosen on {} sessions, tried on {}",
        points.len(),
        tune.len(),
        confirm.len()
    ));
    let few = FEWEST_SESSIONS * 2;
    if tune.len() + confirm.len() < few {
        say(&format!(
            "warning: sessions: {}, too few to choose on one half and confirm on the other; {few} are needed",
            tune.len() + confirm.len()
        ));
    }
    if args.halving {
        let rounds = points.len().ilog2();
        for round in 0..rounds {
            let count = (tune.len() >> (rounds - round)).max(2).min(tune.len());
            let sessions = &tune[..count];
            let tried = runs.on(
                &format!("round-{}", round + 1),
                &points,
                &mut arenas,
                sessions,
            )?;
            let mut kept = better_half(&tried, sessions, &args.saves, &args.keeps);
            // The defaults stay: the choice is compared with them.
            kept.extend((0..points.len()).filter(|at| points[*at].is_default));
            kept.sort_unstable();
            kept.dedup();
            if kept.len() == points.len() {
                break;
            }
            points = kept.into_iter().map(|at| points[at].clone()).collect();
        }
    }
    let tried = runs.on("tune", &points, &mut arenas, &tune)?;
    let mut sweep = judge(&tried, tune, confirm, &args.saves, &args.keeps);
    if sweep.points.iter().all(|point| !point.on_front) {
        tell(&sweep, args)?;
        let problem = "no setting can be recommended: each is broken, or nothing was measured";
        return Err(Stop::new(Exit::NothingSelected, problem).into());
    }
    let winners: Vec<(Point, Point)> = sweep
        .recommendations
        .iter()
        .filter_map(|found| {
            let winner = points.iter().find(|point| typed(point) == found.values)?;
            let same_window = |point: &&Point| point.is_default && point.window == winner.window;
            Some((points.iter().find(same_window)?.clone(), winner.clone()))
        })
        .collect();
    if !sweep.confirm.is_empty() {
        let mut settings: Vec<Point> = Vec::new();
        for (default, winner) in winners.iter().filter(|(_, winner)| !winner.is_default) {
            settings.extend([default.clone(), winner.clone()]);
        }
        let tried = runs.on("confirm", &settings, &mut arenas, &sweep.confirm)?;
        let about = CompareSettings {
            target: Target::Population,
            chance: Chance::Everywhere,
            seed,
        };
        let objective = |metric| Objective {
            metric,
            margin: rules.margins.get(metric).copied().unwrap_or(MARGIN),
        };
        let open = sweep.recommendations.iter_mut().filter(|r| !r.is_default);
        for (recommendation, pair) in open.zip(tried.chunks_exact(2)) {
            let comparison = Comparison::of(&pair[0].sample, &pair[1].sample, about);
            recommendation.confirmation = Some(Confirmation::of(
                &comparison,
                objective(&args.saves),
                objective(&args.keeps),
                broken(&pair[1].sample),
            ));
        }
    }
    models::finish_plan(&whole)?;
    let mut written = Vec::new();
    for (recommendation, (_, winner)) in sweep.recommendations.iter().zip(&winners) {
        let path = preset_path(args, sweep.recommendations.len(), &recommendation.window);
        let preset = text::preset(
            &sweep,
            recommendation,
            winner,
            &whole.manifest().scenario,
            seed,
        );
        write_whole(&path, preset.as_bytes())?;
        written.push(path);
    }
    tell(&sweep, args)?;
    for (path, output) in args.output.iter().zip(&outputs) {
        write_whole(path, &output.bytes(&sweep)?)?;
        say(&format!("wrote `{}`", path.display()));
    }
    for path in written {
        say(&format!(
            "wrote `{}`: `proctor run --strategy {}` runs it",
            path.display(),
            path.display()
        ));
    }
    Ok(Exit::Done)
}

/// A point's knobs and values as they are shown.
fn typed(point: &Point) -> Vec<(String, String)> {
    let item = |(knob, setting): &(String, Setting)| (knob.clone(), setting.value.to_string());
    point.values.iter().map(item).collect()
}

/// Where a recommended preset goes: where there are several, each with its window in its name.
fn preset_path(args: &Args, of: usize, window: &[(String, String)]) -> PathBuf {
    let default = || args.out.join("recommended.toml");
    let path = args.recommend.clone().unwrap_or_else(default);
    if of < 2 || window.is_empty() {
        return path;
    }
    let knobs = window.iter().map(|(knob, value)| format!("{knob}-{value}"));
    let suffix: String = knobs
        .collect::<Vec<_>>()
        .join("-")
        .chars()
        .map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() => letter,
            '.' | '_' | '-' => letter,
            _ => '-',
        })
        .collect();
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    path.with_file_name(format!("{stem}-{suffix}.toml"))
}

/// What is written to a file.
enum Output {
    Html,
    Json,
    Text,
    Picture(Plot<Sweep>),
}

impl Output {
    /// What a file of this name holds, known before any work is done.
    fn of(path: &Path) -> anyhow::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        let picture = plot::for_file(&plot::OF_SWEEP, &name);
        let output = match ending.to_str() {
            Some("html") => Some(Self::Html),
            Some("json") => Some(Self::Json),
            Some("txt") => Some(Self::Text),
            _ => picture.map(Self::Picture),
        };
        output.ok_or_else(|| {
            let problem = format!("nothing writes a sweep to `{}`", path.display());
            let hint = "the file's ending must be one of .html, .json, .txt, pareto.svg, heat.svg";
            Stop::new(Exit::Usage, problem).with_hint(hint).into()
        })
    }

    fn bytes(&self, sweep: &Sweep) -> anyhow::Result<Vec<u8>> {
        Ok(match self {
            Self::Json => {
                let text = serde_json::to_string_pretty(sweep)?;
                (crate::report::escape::json(&text) + "\n").into_bytes()
            }
            Self::Html => html::sweep(sweep)?,
            Self::Text => text::render(sweep, None).into_bytes(),
            Self::Picture((_, scene)) => plot::svg(&scene(sweep))?.into_bytes(),
        })
    }
}

fn tell(sweep: &Sweep, args: &Args) -> anyhow::Result<()> {
    if args.json {
        return print_json(sweep);
    }
    prose::say(&text::render(sweep, columns()))
}

/// The default, the grid, and the default in each further window; and the windows they run in.
fn points(
    table: &Table,
    folder: &Path,
    scenario: Scenario,
    grid: &[Vec<(String, Setting)>],
    args: &Args,
) -> anyhow::Result<(Vec<Point>, Vec<Arena>)> {
    let [base] = scenario.strategies.as_slice() else {
        let problem = format!(
            "a sweep turns the knobs of one strategy, and the scenario has {}",
            scenario.strategies.len()
        );
        return Err(Stop::new(Exit::Usage, problem)
            .with_hint("name one with `--strategy NAME`")
            .into());
    };
    let mut points = vec![Point {
        values: Vec::new(),
        spec: base.clone(),
        window: 0,
        is_default: true,
    }];
    let mut arenas = vec![Arena {
        scenario,
        done: Vec::new(),
    }];
    let mut windows: Vec<Vec<(String, Setting)>> = vec![Vec::new()];
    let mut defaults = Vec::new();
    for values in grid {
        let (outer, knobs): (Vec<_>, Vec<_>) = values
            .iter()
            .cloned()
            .partition(|(path, _)| path.starts_with("window."));
        let same = |other: &Vec<(String, Setting)>| {
            other.len() == outer.len()
                && other
                    .iter()
                    .zip(&outer)
                    .all(|(l, r)| l.0 == r.0 && l.1.value == r.1.value)
        };
        let window = if let Some(at) = windows.iter().position(same) {
            at
        } else {
            let mut changed = table.clone();
            for (path, setting) in &outer {
                changed.overlay(path, setting.clone())?;
            }
            let mut scenario = Scenario::read(&changed, folder)?;
            let sessions = &arenas[0].scenario.sessions;
            scenario.sessions.clone_from(sessions);
            prompts::read(&mut scenario.strategies)?;
            args.models.limit(&mut scenario);
            // Its settings are compared with the default in the same window.
            defaults.push(Point {
                values: outer.clone(),
                spec: scenario.strategies[0].clone(),
                window: arenas.len(),
                is_default: true,
            });
            arenas.push(Arena {
                scenario,
                done: Vec::new(),
            });
            windows.push(outer);
            arenas.len() - 1
        };
        if knobs.is_empty() {
            continue;
        }
        let mut spec = arenas[window].scenario.strategies[0].clone();
        for (path, setting) in &knobs {
            // A knob may be named with its strategy, as `--set` takes it.
            let knob = path
                .strip_prefix(&format!("{}.", spec.base_name()))
                .unwrap_or(path)
                .to_owned();
            let (knob, setting) = grid::trigger(&knob, setting);
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
    Ok((points, arenas))
}

/// Sessions to choose on and sessions to try on, by a hash of seed and id: half and half.
fn split(plan: &Plan, seed: u64) -> (Vec<String>, Vec<String>) {
    let mut ids: Vec<(String, String)> = plan
        .manifest()
        .sessions
        .iter()
        .map(|session| {
            let hash = ContentHash::of_parts([&seed.to_le_bytes()[..], session.id.as_bytes()]);
            (hash.hex(16), session.id.clone())
        })
        .collect();
    ids.sort();
    let tune = ids.len().div_ceil(2);
    let mut ids: Vec<String> = ids.into_iter().map(|(_, id)| id).collect();
    let confirm = ids.split_off(tune);
    (ids, confirm)
}

struct Runs<'a> {
    args: &'a Args,
    whole: &'a Plan,
    /// Dollars that may still be spent unasked.
    left: Cell<f64>,
}

impl Runs<'_> {
    /// Runs points on sessions, one run folder per window; what was run before is taken over.
    fn on(
        &self,
        part: &str,
        points: &[Point],
        arenas: &mut [Arena],
        sessions: &[String],
    ) -> anyhow::Result<Vec<Tried>> {
        let ids: BTreeSet<&str> = sessions.iter().map(String::as_str).collect();
        let mut tried: Vec<Option<Tried>> = vec![None; points.len()];
        let mut references: Vec<CellRecord> = Vec::new();
        for (at, arena) in arenas.iter_mut().enumerate() {
            let own: Vec<usize> = (0..points.len())
                .filter(|p| points[*p].window == at)
                .collect();
            if own.is_empty() {
                continue;
            }
            let mut scenario = arena.scenario.clone();
            let mut names = BTreeSet::new();
            let specs = own.iter().map(|point| points[*point].spec.clone());
            // Two settings may spell the same strategy, such as the default written out.
            scenario.strategies = specs
                .filter(|spec| names.insert(spec.name().to_owned()))
                .collect();
            let plan = self.whole.variant(scenario, &|id| ids.contains(id));
            let folder = self.args.out.join(plan.folder(Path::new(part)));
            let mut journal = Journal::open(&folder, plan.manifest())?;
            let planned: BTreeSet<_> = plan.cells().into_iter().collect();
            // Full history knows no window: what one window measured of it holds for all.
            for cell in references.iter().chain(&arena.done) {
                let key = cell.key();
                if planned.contains(&key) && !journal.done().contains(&key) {
                    journal.append(cell)?;
                }
            }
            self.go(&plan, &mut journal, planned.len())?;
            let run = Run::read(&folder).context("cannot read the run back")?;
            if !super::versus::controls_hold(&run) {
                return Err(Stop::new(
                    Exit::ControlsFailed,
                    "a sweep of an invalid run says nothing",
                )
                .into());
            }
            if references.is_empty() {
                let shared = run.cells.iter().filter(|cell| cell.arm != Arm::Strategy);
                references = shared.cloned().collect();
            }
            let source = Source::of(&run.manifest, &run.cells);
            arena.done = run.cells;
            for point in own {
                let name = points[point].spec.name();
                let sample = source.strategy(name).cloned().unwrap_or_default();
                tried[point] = Some(Tried {
                    values: typed(&points[point]),
                    sample,
                });
            }
        }
        Ok(tried.into_iter().flatten().collect())
    }

    fn go(&self, plan: &Plan, journal: &mut Journal, cells: usize) -> anyhow::Result<()> {
        static STOP: AtomicBool = AtomicBool::new(false);
        self.agree(plan, journal)?;
        let threads = self
            .args
            .jobs
            .or_else(|| plan.at_once().map(|most| most.min(64)))
            .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
            .unwrap_or(1);
        let workers = Workers {
            threads,
            stop: &STOP,
        };
        let done = journal.done().len();
        let progress = Shown::new(cells, done, plan.manifest().sessions.len());
        let outcome = runner::run(plan, journal, &workers, &progress)?;
        progress.finish();
        if outcome.missed {
            models::close(plan, &outcome)?;
        }
        if let Some((key, why)) = outcome.broken.first() {
            return Err(Stop::new(
                Exit::Internal,
                format!("proctor itself failed in {key}: {why}"),
            )
            .into());
        }
        if outcome.outstanding > 0 {
            let why = outcome.budget.as_deref().unwrap_or("cells are missing");
            let problem = format!("the sweep stopped: {why}; the same command goes on");
            return Err(Stop::new(models::exit_of(plan, &outcome, cells), problem).into());
        }
        Ok(())
    }

    /// Asks before live models cost more than the limit, all parts of the sweep together.
    fn agree(&self, plan: &Plan, journal: &Journal) -> anyhow::Result<()> {
        if !forecast::asks_live_models(plan) || models::is_recorded(plan) || self.args.yes {
            return Ok(());
        }
        let spend = forecast::forecast(plan, journal.done())?.spend;
        say(&forecast::spend_in_words(plan, &spend));
        confirm::confirm(&spend, self.left.get(), self.args.yes)?;
        let dollars = spend.dollars.map_or(0.0, |span| span.high.0 as f64 / 1e9);
        self.left.set((self.left.get() - dollars).max(0.0));
        Ok(())
    }
}
