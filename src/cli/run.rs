//! `proctor run`: plan, replay, report; continues where it stopped.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context as _;

use super::inputs::Inputs;
use super::progress::Shown;
use super::{Exit, Stop, report, say};
use crate::record::End;
use crate::record::journal::{Journal, Run};
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
    let progress = Shown::new(cells.len(), already, plan.manifest().sessions.len());
    let threads = args
        .jobs
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let workers = Workers {
        threads,
        stop: &STOP,
    };
    let outcome = runner::run(&plan, &mut journal, &workers, &progress)?;
    progress.finish();
    drop(journal);
    let shown = folder.display();
    if STOP.load(Ordering::Relaxed) && outcome.outstanding > 0 {
        say(&format!(
            "interrupted: {} of {} cells are kept in `{shown}`; the same command goes on",
            cells.len() - outcome.outstanding,
            cells.len()
        ));
        return Ok(Exit::Interrupted);
    }
    let run = Run::read(&folder).context("cannot read the run back")?;
    let exit = args.output.show(&run)?;
    say(&summary(&outcome, cells.len(), &shown.to_string()));
    if !outcome.broken.is_empty() {
        return Err(Stop::new(
            Exit::Internal,
            format!(
                "proctor itself failed in cells {}",
                outcome.broken.join(", ")
            ),
        )
        .into());
    }
    let failed = run
        .cells
        .iter()
        .filter(|cell| matches!(cell.end, End::Failed { .. }))
        .count();
    if exit == Exit::Done && failed as f64 > args.max_error_rate * run.cells.len() as f64 {
        say(&format!(
            "error: {failed} of {} cells failed",
            run.cells.len()
        ));
        return Ok(Exit::TooManyFailures);
    }
    Ok(exit)
}

fn summary(outcome: &Outcome, cells: usize, folder: &str) -> String {
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
