//! `proctor sweep`: many settings of one strategy, and the one that is worth having.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;

use super::inputs::Inputs;
use super::progress::Shown;
use super::{Exit, Stop, print, say};
use crate::compare::sweep::{Confirmation, Sweep, Tried, better_half, judge};
use crate::compare::{Chance, Comparison, Settings as CompareSettings, Source};
use crate::record::journal::{Journal, Run, write_whole};
use crate::record::{Arm, CellRecord};
use crate::report::html;
use crate::report::plot::{ImageFormat, SweepPlot};
use crate::runner::{self, Plan, Workers};
use crate::scenario::Scenario;
use crate::settings::{Place, Setting, Table, Value};
use crate::stats::gate::Target;
use crate::strategy::StrategySpec;
use crate::units::ContentHash;

mod grid;
mod text;

use grid::Axis;

/// Arguments of `proctor sweep`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Settings are chosen on one half of the sessions and tried on the other. A knob is \
`stage.knob`, `stage.when.CONDITION` (which takes the place of the stage's own condition), `guards.…`, `overflow.…` or `window.…`; its values are a list (`1,3,10`) or a range \
(`0.5..0.9:0.1`)."
)]
pub(super) struct Args {
    #[command(flatten)]
    inputs: Inputs,
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
    /// Threads; by default as many as there are processors
    #[arg(short, value_name = "N")]
    jobs: Option<usize>,
    /// Folder for the runs, and for the recommended preset
    #[arg(long, value_name = "DIR", default_value = "reports/sweep")]
    out: PathBuf,
    /// Where the recommended preset is written; by default `recommended.toml` in the sweep's folder
    #[arg(long, value_name = "FILE")]
    recommend: Option<PathBuf>,
    /// Also write what was found to this file: .html, .json, .txt, or a picture, `pareto.svg` or `heat.png`, as in
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
        let value = Value::Text("none".to_owned());
        table.overlay("models.reader", Setting { value, place })?;
    }
    let scenario = Scenario::read(&table, &folder)?;
    let seed = scenario.seed;
    let axes: Vec<Axis> = args
        .params
        .iter()
        .map(|typed| Axis::read(typed))
        .collect::<Result<_, _>>()?;
    let (mut points, mut arenas) = points(&table, &folder, scenario, &axes)?;
    if let Some(most) = args.random {
        // The default stays: the choice is compared with it.
        let chosen = grid::drawn(points.len() - 1, most, seed);
        points = std::iter::once(points[0].clone())
            .chain(chosen.into_iter().map(|at| points[at + 1].clone()))
            .collect();
    }
    let whole = Plan::new(arenas[0].scenario.clone())?;
    let (tune, confirm) = split(&whole, seed);
    let runs = Runs {
        args,
        whole: &whole,
    };
    say(&format!(
        "{} settings; chosen on {} sessions, tried on {}",
        points.len(),
        tune.len(),
        confirm.len()
    ));
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
            if !kept.contains(&0) {
                kept.insert(0, 0);
            }
            if kept.len() == points.len() {
                break;
            }
            points = kept.into_iter().map(|at| points[at].clone()).collect();
        }
    }
    let tried = runs.on("tune", &points, &mut arenas, &tune)?;
    let mut sweep = judge(&tried, tune, confirm, &args.saves, &args.keeps);
    let chosen = sweep
        .points
        .iter()
        .find(|point| point.recommended)
        .map(|point| point.values.clone());
    let Some(chosen) = chosen else {
        print(&text::render(&sweep))?;
        let problem = "no setting can be recommended: each is broken, or nothing was measured";
        return Err(Stop::new(Exit::NothingSelected, problem).into());
    };
    let typed = |point: &Point| -> Vec<(String, String)> {
        let item = |(knob, setting): &(String, Setting)| (knob.clone(), setting.value.to_string());
        point.values.iter().map(item).collect()
    };
    let winner = points
        .iter()
        .find(|point| typed(point) == chosen)
        .unwrap_or(&points[0])
        .clone();
    if !sweep.confirm.is_empty() && !winner.values.is_empty() {
        let two = [points[0].clone(), winner.clone()];
        let tried = runs.on("confirm", &two, &mut arenas, &sweep.confirm)?;
        let settings = CompareSettings {
            target: Target::Population,
            chance: Chance::Everywhere,
            seed,
        };
        let comparison = Comparison::of(&tried[0].sample, &tried[1].sample, settings);
        sweep.confirmation = Some(Confirmation::of(&comparison, &args.saves, &args.keeps));
    }
    let path = args
        .recommend
        .clone()
        .unwrap_or_else(|| args.out.join("recommended.toml"));
    let preset = text::preset(&sweep, &winner, &whole.manifest().scenario, seed);
    write_whole(&path, preset.as_bytes())?;
    print(&text::render(&sweep))?;
    for (path, output) in args.output.iter().zip(&outputs) {
        write_whole(path, &output.bytes(&sweep)?)?;
        say(&format!("wrote `{}`", path.display()));
    }
    say(&format!(
        "wrote `{}`: `proctor run --strategy {}` runs it",
        path.display(),
        path.display()
    ));
    Ok(Exit::Done)
}

/// What is written to a file.
enum Output {
    Html,
    Json,
    Text,
    Picture(SweepPlot, ImageFormat),
}

impl Output {
    /// What a file of this name holds, known before any work is done.
    fn of(path: &Path) -> anyhow::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        let picture = SweepPlot::for_file(&name);
        let output = match ending.to_str() {
            Some("html") => Some(Self::Html),
            Some("json") => Some(Self::Json),
            Some("txt") => Some(Self::Text),
            _ => picture.map(|(plot, format)| Self::Picture(plot, format)),
        };
        output.ok_or_else(|| {
            let problem = format!("nothing writes a sweep to `{}`", path.display());
            let hint = "the file's ending must be one of .html, .json, .txt, pareto.svg, pareto.png, heat.svg, heat.png";
            Stop::new(Exit::Usage, problem).with_hint(hint).into()
        })
    }

    fn bytes(&self, sweep: &Sweep) -> anyhow::Result<Vec<u8>> {
        Ok(match self {
            Self::Json => {
                let text = serde_json::to_string_pretty(sweep)?;
                (crate::report::escape::json(&text) + "\n").into_bytes()
            }
            Self::Html => html::sweep(sweep)?.into_bytes(),
            Self::Text => text::render(sweep).into_bytes(),
            Self::Picture(plot, format) => plot.render(sweep, *format)?,
        })
    }
}

/// The grid, the default first, and the windows its points run in.
fn points(
    table: &Table,
    folder: &Path,
    scenario: Scenario,
    axes: &[Axis],
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
    }];
    let mut arenas = vec![Arena {
        scenario,
        done: Vec::new(),
    }];
    let mut windows: Vec<Vec<(String, Setting)>> = vec![Vec::new()];
    for values in grid::product(axes) {
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
            arenas.push(Arena {
                scenario: Scenario::read(&changed, folder)?,
                done: Vec::new(),
            });
            windows.push(outer);
            arenas.len() - 1
        };
        let mut spec = arenas[window].scenario.strategies[0].clone();
        for (path, setting) in &knobs {
            // A knob may be named with its strategy, as `--set` takes it.
            let knob = path
                .strip_prefix(&format!("{}.", spec.base_name()))
                .unwrap_or(path)
                .to_owned();
            let (knob, setting) = grid::trigger(&knob, setting);
            spec = spec.with(&knob, setting)?;
        }
        points.push(Point {
            values,
            spec,
            window,
        });
    }
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
                let item =
                    |(knob, setting): &(String, Setting)| (knob.clone(), setting.value.to_string());
                tried[point] = Some(Tried {
                    values: points[point].values.iter().map(item).collect(),
                    sample,
                });
            }
        }
        Ok(tried.into_iter().flatten().collect())
    }

    fn go(&self, plan: &Plan, journal: &mut Journal, cells: usize) -> anyhow::Result<()> {
        static STOP: AtomicBool = AtomicBool::new(false);
        let threads = self
            .args
            .jobs
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
        if let Some((key, why)) = outcome.broken.first() {
            return Err(Stop::new(
                Exit::Internal,
                format!("proctor itself failed in {key}: {why}"),
            )
            .into());
        }
        Ok(())
    }
}
