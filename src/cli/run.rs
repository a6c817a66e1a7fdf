//! `proctor run`: plan, replay, report; continues where it stopped.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use serde_json::json;

use super::apply::{ApplyOptions, check_programs, not_written, unnamed};
use super::comparison;
use super::graded_run::GradedOptions;
use super::inputs::Inputs;
use super::interrupt::{FINISHING, stop_on_interrupt};
use super::messages::{self, MessageProgress, RunSummary};
use super::models;
use super::parts::PartOptions;
use super::progress::ProgressDisplay;
use super::{
    CliError, Exit, Result, batch, find_sessions, listed, report, say, stop, stop_with, template,
};
use crate::compare::advice::{Answer, Verdict};
use crate::metric::unscored::UnscoredItems;
use crate::model::cassette::ReplayMode;
use crate::record::journal::{
    Journal, JournalError, RecordedRun, read_manifest, read_sources, refuse_other_files,
};
use crate::record::shard::Partition;
use crate::record::{CellKey, CellRecord, End};
use crate::report::Report;
use crate::runner::{self, Plan, Progress, Remembered, RunModels, RunOutcome, Workers};
use crate::scenario::Scenario;
use crate::units::many;

mod against;
mod dry_run;
mod earlier;

use against::AgainstBaseline;
use dry_run::DryRunOptions;
use earlier::EarlierRun;

/// Arguments of `proctor run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten, next_help_heading = "Input")]
    inputs: Inputs,
    #[command(flatten, next_help_heading = "Models")]
    graded: GradedOptions,
    /// Send the questions to readers and judges as batches of the provider: half the price, answers within a day
    #[arg(long)]
    batch: bool,
    #[command(flatten)]
    models: models::ModelOptions,
    #[command(flatten)]
    consent: models::Consent,
    #[command(flatten, next_help_heading = "Plans and parts")]
    dry_run: DryRunOptions,
    #[command(flatten)]
    part: PartOptions,
    /// A folder that `run --dry-run --shards N --out DIR` wrote: the sessions of other parts are neither read nor counted
    #[arg(long, value_name = "DIR")]
    #[arg(requires = "partition", conflicts_with = "usd")]
    plan: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Cells")]
    cells: CellOptions,
    #[command(flatten, next_help_heading = "Output")]
    output: report::ReportOutput,
    #[command(flatten)]
    printed: report::Printed,
    /// Print one JSON object per line: messages while the run goes on, and its results in the last
    #[arg(long)]
    json: bool,
    /// Folder under which the run's folder is made
    #[arg(long, value_name = "DIR", default_value = "reports")]
    reports: PathBuf,
    /// The run's folder itself, instead of one named after the scenario
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    apply: ApplyOptions,
    #[command(flatten, next_help_heading = "Against a baseline")]
    gate: AgainstBaseline,
}

/// How cells are computed.
#[derive(Debug, clap::Args)]
struct CellOptions {
    /// Threads; by default as many as there are processors, and with a live model as many as
    /// requests may be under way (at most 64)
    #[arg(short, long, value_name = "N", value_parser = models::jobs)]
    jobs: Option<usize>,
    /// Compute every cell again, even those that an earlier run finished; an interrupted run goes on without it
    #[arg(long)]
    fresh: bool,
    /// Largest share of cells that may fail, and of answers that may have no score, without an
    /// error as exit code
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    max_error_rate: f64,
}

fn share(typed: &str) -> Result<f64, String> {
    let what = "a number from 0 to 1";
    let share = models::number(typed, what)?;
    (share <= 1.0).then_some(share).ok_or_else(|| format!("it must be {what}"))
}

/// Estimates a run, and runs nothing.
fn dry_run(args: &Args, scenario: Scenario) -> Result<Exit> {
    args.dry_run.check(args.out.is_some(), args.graded.usd.is_some())?;
    let plan = find_sessions::plan(scenario)?;
    let plan = args.graded.to_look_at().sized(plan, args.batch)?;
    args.dry_run.show(&plan, args.out.as_deref(), args.printed.tables.tables.is_some(), args.json)
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    let prints = [
        (args.json, "--json"),
        (args.output.takes_stdout(), "-o -"),
        (args.dry_run.dry_run, "--dry-run"),
        (args.gate.is_asked(), "--baseline"),
        (args.part.partition.is_some(), "--partition"),
    ];
    if let Some((_, flag)) = prints.iter().find(|(is_given, _)| *is_given) {
        args.inputs.refuse_caller(flag)?;
    }
    let beside = args.out.as_deref().and_then(Path::parent).unwrap_or(&args.reports);
    if !args.dry_run.dry_run {
        args.gate.prepare_files(args.json)?;
    }
    let folders = (beside, args.out.as_deref());
    let graded = &args.graded;
    let mut scenario = graded.scenario(&args.inputs, args.models.is_offline(), folders)?;
    if args.dry_run.dry_run {
        return dry_run(args, scenario);
    }
    if args.batch && !scenario.models.has_live() {
        let hint = "name a model in `[models]`, or with `--graded`; or leave `--batch` out";
        return stop_with(Exit::Usage, "`--batch` has no model to ask", hint);
    }
    args.output.check(args.json)?;
    args.out.iter().try_for_each(|folder| refuse_other_files(folder))?;
    args.apply.check("strategy.recommended.toml".into())?;
    // The verdict of the run uses the same margins.
    args.gate.margins.lay_over(&mut scenario.gate);
    args.gate.check(&scenario.gate)?;
    let mut plan = args.planned(scenario)?;
    let folder = args.out.clone().unwrap_or_else(|| args.part.folder(plan.folder(&args.reports)));
    let mut consent = args.consent;
    args.part.limit(&mut plan, &mut consent);
    args.models.connect(&mut plan, &folder, &args.part)?;
    let cassette = plan.models().and_then(|models| models.cassette.as_ref());
    if let (true, Some(cassette)) = (args.batch, cassette) {
        cassette.defer();
    }
    let mut journal = args.part.open(&plan, &folder)?;
    if args.graded.usd.is_some() {
        // A run that was sized to an amount is agreed to, and its budget stops it there.
        consent.cost_limit = f64::INFINITY;
    }
    let offline = cassette.is_some_and(|cassette| cassette.mode() == ReplayMode::Strict);
    // Where nothing may be asked, what the same program asked before is not asked again.
    let remembered = if offline || args.part.partition.is_some() {
        Remembered::Part
    } else {
        Remembered::Unfinished
    };
    let again =
        if args.cells.fresh { journal.done().clone() } else { plan.stale(&journal, remembered)? };
    let kept: BTreeSet<CellKey> = journal.done().difference(&again).cloned().collect();
    consent.to_run(&plan, &kept, args.batch)?;
    let whole = args.part.partition.is_none();
    let asked = !offline && !args.batch && whole && kept.len() < plan.cells().len();
    let stop = stop_on_interrupt(FINISHING);
    if asked {
        args.graded.check_reader(&plan, &stop)?;
    }
    let cells = plan.cells();
    let earlier = (whole && !cells.iter().all(|key| kept.contains(key)))
        .then(|| EarlierRun::find(&folder, &plan.manifest().scenario, !again.is_empty()))
        .flatten();
    journal.forget(&again, plan.manifest())?;
    say_again(&again, args.cells.fresh);
    let workers = Workers {
        threads: if args.inputs.has_caller() { 1 } else { models::threads(args.cells.jobs, &plan) },
        stop,
    };
    let already = cells.iter().filter(|key| journal.done().contains(*key));
    let (planned, already) = (cells.len(), already.count());
    let mut summary = RunSummary { planned, ..RunSummary::default() };
    if args.json {
        let manifest = plan.manifest();
        messages::send(&messages::launch(manifest, &folder, planned, already));
    }
    let work = (&mut plan, &mut journal, &workers);
    let result = replay(args, work, earlier.as_ref(), &mut summary);
    if args.json {
        let (exit, error) = match &result {
            Ok(exit) => (*exit, None),
            Err(error) => (super::explain(error).0, Some(super::chain(error))),
        };
        messages::send(&messages::done(&summary, exit, error.as_deref()));
    }
    result
}

impl Args {
    /// The plan of what is run; its manifest is that of the whole run.
    fn planned(&self, scenario: Scenario) -> Result<Plan> {
        if let (Some(folder), Some(part)) = (&self.plan, self.part.partition) {
            let (manifest, sources) = (read_manifest(folder)?, read_sources(folder)?);
            let plan = Plan::planned(scenario, (&manifest, &sources), part)?;
            find_sessions::say_passed_over(&plan);
            return Ok(plan);
        }
        let mut plan = self.graded.sized(find_sessions::plan(scenario)?, self.batch)?;
        self.part.keep(&mut plan);
        Ok(plan)
    }
}

/// Says which finished cells are computed again.
fn say_again(cells: &BTreeSet<CellKey>, is_fresh: bool) {
    if cells.is_empty() {
        return;
    }
    let count = many(cells.len(), "finished cell is", "finished cells are");
    if is_fresh {
        say!("{count} computed again (`--fresh`)");
        return;
    }
    let strategies: BTreeSet<&str> = cells.iter().map(|key| key.strategy.as_str()).collect();
    let names = listed(strategies);
    say!(
        "{count} computed again, because a cell failed, a program may have changed or recorded answers are gone: {names}"
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a run took is printed, and part of no result"
)]
fn now() -> Instant {
    Instant::now()
}

/// Runs the missing cells, and reports; `summary` is filled in step by step.
fn replay(
    args: &Args,
    (plan, journal, workers): (&mut Plan, &mut Journal, &Workers),
    earlier: Option<&EarlierRun>,
    summary: &mut RunSummary,
) -> Result<Exit> {
    let started = now();
    let folder = journal.folder().to_owned();
    let outcome = run_cells(args.json, plan, journal, workers)?;
    // The report of a long session takes as much memory as the session.
    plan.forget_sessions();
    summary.outcome = Some(outcome.clone());
    args.part.note_stop(journal, outcome.budget.as_deref())?;
    models::close(plan.models(), outcome.missed)?;
    let shown = folder.display().to_string();
    if workers.stop.is_requested() && outcome.outstanding > 0 {
        let without = if args.cells.fresh { " without `--fresh`" } else { "" };
        let (all, kept) = (summary.planned, summary.planned - outcome.outstanding);
        say!(
            "interrupted: {kept} of {all} cells are kept in `{shown}`; the same command{without} goes on"
        );
        return Ok(Exit::Interrupted);
    }
    let run = RecordedRun::read(&folder).context("cannot read the run back")?;
    let failed = run.cells.iter().filter(|cell| is_failed(cell)).count();
    let silence = UnscoredItems::of(&run.cells);
    let mut made = Report::of(&run.manifest, &run.cells);
    if !made.next.is_empty() {
        args.inputs.complete(&mut made.next);
    }
    summary.failed = Some(failed);
    summary.answers = Some((silence.asked, silence.items()));
    let to_screen = !args.json && !args.output.takes_stdout() && !args.inputs.has_caller();
    if to_screen && args.part.partition.is_none() {
        // Piped output is the same bytes each time, so it holds no time.
        let interactive = io::stdout().is_terminal();
        let took = interactive.then(|| started.elapsed());
        args.printed.print(&made, took)?;
        let last = if outcome.done_now == 0 && outcome.outstanding == 0 {
            let when = earlier::when(&folder);
            when.map(|when| format!("nothing was computed: shown from the run of {when}; `--fresh` computes it again"))
        } else {
            earlier.and_then(|earlier| earlier.difference(&run))
        };
        if let Some(line) = last {
            earlier::close_screen(&line, interactive)?;
        }
    }
    let mut exit = args.output.write(&made)?;
    if args.gate.names(&plan.scenario().gate)?.is_empty() && args.part.partition.is_none() {
        comparison::summarise(&made)?;
    }
    summary.report = Some(made);
    let of = (args.part.partition, &*shown);
    say_outcome(plan, &outcome, summary.planned, of)?;
    if !outcome.broken.is_empty() {
        let broken = outcome.broken.iter();
        let lines: Vec<String> = broken.map(|(key, why)| format!("{key}: {why}")).collect();
        let problem = format!("proctor itself failed in\n  {}", lines.join("\n  "));
        return stop(Exit::Internal, problem);
    }
    let problem = if failed as f64 > args.cells.max_error_rate * run.cells.len() as f64 {
        Some(format!("{failed} of {} cells failed", run.cells.len()))
    } else {
        (silence.share() > args.cells.max_error_rate).then(|| silence.to_string())
    };
    if exit == Exit::Done
        && let Some(problem) = problem
    {
        say!("error: {problem}");
        say!(
            "hint: `--max-error-rate` sets the share that may fail (now {})",
            args.cells.max_error_rate
        );
        exit = Exit::TooManyFailures;
    } else if exit == Exit::Done && outcome.outstanding > 0 {
        exit = models::exit_of(plan, &outcome, summary.planned);
    }
    let tables = (!args.json).then_some(&args.printed.tables);
    let (gate, setting) = (&args.gate, &plan.scenario().gate);
    let exit = gate.apply(setting, &run, &shown, exit, tables)?;
    if exit == Exit::Done && args.apply.apply.is_some() {
        let made = summary.report.as_ref();
        let verdict = made.and_then(|made| made.verdict.as_ref());
        write_recommended(&args.apply, plan, verdict)?;
    }
    Ok(exit)
}

fn is_failed(cell: &CellRecord) -> bool {
    matches!(cell.end, End::Failed { .. })
}

/// Writes the preset of the strategy that the verdict recommends.
fn write_recommended(apply: &ApplyOptions, plan: &Plan, verdict: Option<&Verdict>) -> Result<()> {
    let recommended = verdict.filter(|verdict| verdict.answer == Answer::Use);
    let name = recommended.and_then(|verdict| verdict.strategy.as_deref());
    let mut specs = plan.scenario().strategies.iter();
    let spec = name.and_then(|name| specs.find(|spec| spec.name() == name));
    let (Some(spec), Some(verdict)) = (spec, verdict) else {
        let sentence = verdict.and_then(|verdict| verdict.sentences.first());
        let why = sentence.map_or("the run has no verdict", String::as_str);
        return Err(not_written("a preset", why));
    };
    let Some(path) = apply.path(unnamed(spec, "recommended")) else {
        return Ok(());
    };
    check_programs(&path, spec)?;
    let scenario = &plan.manifest().scenario;
    let mut comments = vec![format!("Recommended by a run of scenario `{scenario}`.")];
    comments.extend(verdict.sentences.iter().cloned());
    apply.write(&path, &comments, &spec.to_toml())
}

/// Runs the cells that are missing; with `--batch` again after each batch of answers.
fn run_cells(
    json: bool,
    plan: &Plan,
    journal: &mut Journal,
    workers: &Workers,
) -> Result<RunOutcome> {
    let mut outcome = pass(json, plan, journal, workers)?;
    // Each pass defers requests without an answer: first questions, then verdicts on the answers.
    while batch::is_answered(plan, &outcome, journal.folder(), &workers.stop)? {
        let before = outcome;
        outcome = pass(json, plan, journal, workers)?;
        let done = outcome.already_done + outcome.done_now;
        outcome.already_done = before.already_done.min(done);
        outcome.done_now = done - outcome.already_done;
    }
    Ok(outcome)
}

/// Runs the cells that are missing once.
fn pass(json: bool, plan: &Plan, journal: &mut Journal, workers: &Workers) -> Result<RunOutcome> {
    let folder = journal.folder().to_owned();
    let bar = (!json).then(|| ProgressDisplay::new(plan, journal));
    let progress = bar.as_ref().map_or(&MessageProgress as &dyn Progress, |bar| bar);
    let outcome = runner::run(plan, journal, workers, progress)
        .map_err(|error| not_kept(error, &folder, plan))?;
    bar.iter().for_each(ProgressDisplay::finish);
    Ok(outcome)
}

/// Says what is kept where a file could not be written.
fn not_kept(error: JournalError, folder: &Path, plan: &Plan) -> anyhow::Error {
    let hint = match &error {
        JournalError::Io { .. } => format!(
            "finished cells are kept in `{}`: once it can be written to, the same command goes on",
            folder.display()
        ),
        JournalError::Gone(_) => {
            let cassette = plan.models().and_then(|models| models.cassette.as_ref());
            let path = cassette.map(|cassette| cassette.path()).filter(|path| path.exists());
            let kept = path.map(|path| format!("; answers are kept in `{}`", path.display()));
            format!("the same command runs its cells again{}", kept.unwrap_or_default())
        }
        _ => return error.into(),
    };
    let problem = super::chain(&error.into());
    CliError::new(Exit::NotWritten, problem).with_hint(hint).into()
}

/// Says how far the run came, and its cost.
fn say_outcome(
    plan: &Plan,
    outcome: &RunOutcome,
    planned: usize,
    (part, folder): (Option<Partition>, &str),
) -> Result<()> {
    let called = part.map_or("run".to_owned(), |part| format!("part {part} in"));
    let facts = json!({
        "called": format!("{called} `{folder}`"),
        "parts": part.map(|part| part.of),
        "planned": planned,
        "outstanding": outcome.outstanding,
        "before": outcome.already_done,
        "now": outcome.done_now,
        "budget": outcome.budget,
        "unordered": outcome.unordered,
        "spent": models::spent(plan),
        "waited": plan.models().and_then(RunModels::waited),
        "withdrawn": outcome.withdrawn,
        "is_cut": outcome.cut_at.is_some(),
        "unreached": outcome.unreached.first().map(|(_, why)| why),
    });
    say(&template::fill(include_str!("text/outcome.txt"), facts)?);
    Ok(())
}
