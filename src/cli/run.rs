//! `proctor run`: plan, replay, report; continues where it stopped.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context as _;

use super::inputs::Inputs;
use super::messages::{self, Lines, MessageFormat, Summary};
use super::progress::Shown;
use super::{Exit, Stop, report, say};
use crate::record::End;
use crate::record::journal::{Journal, Run};
use crate::report::Report;
use crate::runner::{self, Outcome, Plan, Workers};

/// Arguments of `proctor run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    /// Threads; by default as many as there are processors
    #[arg(short, value_name = "N")]
    jobs: Option<usize>,
    /// Folder under which the run's folder is made
    #[arg(long, value_name = "DIR", default_value = "reports")]
    reports: PathBuf,
    /// The run's folder itself, instead of one named after the scenario
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Share of cells that may fail before the exit code says so
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    max_error_rate: f64,
    /// What standard output holds: the report, or one JSON object per line
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "human")]
    message_format: MessageFormat,
    #[command(flatten)]
    output: report::Output,
}

fn share(typed: &str) -> Result<f64, String> {
    let number = typed
        .parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share));
    number.ok_or_else(|| "it must be a number from 0 to 1".to_owned())
}

/// Set by the first Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let scenario = args.inputs.read()?;
    args.output.check()?;
    let plan = Plan::new(scenario)?;
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| plan.folder(&args.reports));
    let mut journal = Journal::open(&folder, plan.manifest())?;
    stop_on_interrupt();
    let cells = plan.cells();
    let already = cells
        .iter()
        .filter(|key| journal.done().contains(*key))
        .count();
    let mut summary = Summary {
        planned: cells.len(),
        ..Summary::default()
    };
    if args.message_format == MessageFormat::Human {
        return replay(args, &plan, &mut journal, already, &mut summary);
    }
    messages::send(&messages::launch(
        plan.manifest(),
        &folder,
        cells.len(),
        already,
    ));
    let result = replay(args, &plan, &mut journal, already, &mut summary);
    let (exit, error) = match &result {
        Ok(exit) => (*exit, None),
        Err(error) => (super::explain(error).0, Some(super::chain(error))),
    };
    messages::send(&messages::done(&summary, exit, error.as_deref()));
    result
}

/// Runs what is missing, and reports; `summary` is filled in as far as it comes.
fn replay(
    args: &Args,
    plan: &Plan,
    journal: &mut Journal,
    already: usize,
    summary: &mut Summary,
) -> anyhow::Result<Exit> {
    let folder = journal.folder().to_owned();
    let threads = args
        .jobs
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let workers = Workers {
        threads,
        stop: &STOP,
    };
    let outcome = match args.message_format {
        MessageFormat::Human => {
            let sessions = plan.manifest().sessions.len();
            let progress = Shown::new(summary.planned, already, sessions);
            let outcome = runner::run(plan, journal, &workers, &progress)?;
            progress.finish();
            outcome
        }
        MessageFormat::Json => runner::run(plan, journal, &workers, &Lines)?,
    };
    summary.outcome = Some(outcome.clone());
    let shown = folder.display();
    if STOP.load(Ordering::Relaxed) && outcome.outstanding > 0 {
        say(&format!(
            "interrupted: {} of {} cells are kept in `{shown}`; the same command goes on",
            summary.planned - outcome.outstanding,
            summary.planned
        ));
        return Ok(Exit::Interrupted);
    }
    let run = Run::read(&folder).context("cannot read the run back")?;
    let failed = run
        .cells
        .iter()
        .filter(|cell| matches!(cell.end, End::Failed { .. }))
        .count();
    summary.failed = Some(failed);
    let made = Report::of(&run.manifest, &run.cells);
    summary.controls = Some(made.controls.clone());
    if args.message_format == MessageFormat::Human {
        report::show(&made)?;
    }
    let exit = args.output.write(&made)?;
    say(&in_words(&outcome, summary.planned, &shown.to_string()));
    if !outcome.broken.is_empty() {
        let broken = outcome.broken.iter();
        let lines: Vec<String> = broken.map(|(key, why)| format!("{key}: {why}")).collect();
        let problem = format!("proctor itself failed in\n  {}", lines.join("\n  "));
        return Err(Stop::new(Exit::Internal, problem).into());
    }
    if exit == Exit::Done && failed as f64 > args.max_error_rate * run.cells.len() as f64 {
        say(&format!(
            "error: {failed} of {} cells failed",
            run.cells.len()
        ));
        return Ok(Exit::TooManyFailures);
    }
    Ok(exit)
}

fn in_words(outcome: &Outcome, cells: usize, folder: &str) -> String {
    match outcome {
        Outcome {
            done_now: 0,
            outstanding: 0,
            ..
        } => {
            format!("run `{folder}` is complete: all {cells} cells were done before")
        }
        Outcome {
            already_done: 0, ..
        } => format!("run `{folder}` is complete: {cells} cells"),
        Outcome {
            already_done,
            done_now,
            ..
        } => format!(
            "run `{folder}` is complete: {already_done} cells were done before, {done_now} now"
        ),
    }
}

/// Once: finish the cells under way and write them. Twice: leave at once.
fn stop_on_interrupt() {
    static TIMES: AtomicUsize = AtomicUsize::new(0);
    // A process has one handler; where another is set already, Ctrl-C ends the program as usual.
    let _ = ctrlc::set_handler(|| {
        if TIMES.fetch_add(1, Ordering::Relaxed) == 0 {
            STOP.store(true, Ordering::Relaxed);
            say("interrupted: finishing the cells under way; once more to leave at once");
        } else {
            #[expect(clippy::exit, reason = "the second Ctrl-C asks for exactly this")]
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
    });
}
