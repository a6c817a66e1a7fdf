//! `proctor run`: plan, replay, report; continues where it stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context as _;

use super::graded::Graded;
use super::inputs::Inputs;
use super::messages::{self, Lines, MessageFormat, Summary};
use super::models;
use super::progress::Shown;
use super::versus::{self, Files, How, Printed, Side};
use super::{Exit, Stop, batch, confirm, gate, plan as forecast, report, say, walk};
use crate::metric::silent::Silence;
use crate::record::End;
use crate::record::journal::{Journal, JournalError, Run};
use crate::report::Report;
use crate::runner::{self, Outcome, Plan, Workers};
use crate::scenario::GateSetting;

/// Arguments of `proctor run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten, next_help_heading = "What is run")]
    inputs: Inputs,
    #[command(flatten, next_help_heading = "A graded run")]
    graded: Graded,
    /// Threads; by default as many as there are processors, and with a live model as many as
    /// requests may be under way (at most 64)
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    #[command(flatten, next_help_heading = "Models and budgets")]
    models: models::ModelOptions,
    /// Folder under which the run's folder is made
    #[arg(long, value_name = "DIR", default_value = "reports")]
    reports: PathBuf,
    /// The run's folder itself, instead of one named after the scenario
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Share of cells that may fail, and share of answers that may stay without a score, before the exit
    /// code says so
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    max_error_rate: f64,
    /// Dollars that calls of live models may cost unasked
    #[arg(long, value_name = "USD", default_value_t = confirm::DEFAULT_LIMIT, value_parser = confirm::dollars)]
    cost_limit: f64,
    /// Agree to what the run costs
    #[arg(short, long)]
    yes: bool,
    /// Ask readers and judges in batches of their provider's: at half the price, within a day
    #[arg(long)]
    batch: bool,
    /// What standard output holds: the report, or one JSON object per line
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "human")]
    message_format: MessageFormat,
    /// The same as `--message-format json`
    #[arg(long, conflicts_with = "message_format")]
    json: bool,
    #[command(flatten)]
    output: report::Output,
    #[command(flatten, next_help_heading = "Against a baseline")]
    gate: AgainstBaseline,
}

impl Args {
    fn message_format(&self) -> MessageFormat {
        if self.json {
            MessageFormat::Json
        } else {
            self.message_format
        }
    }
}

/// Comparing with a baseline, and keeping one.
#[derive(Debug, clap::Args)]
struct AgainstBaseline {
    /// Fail if anything got worse than the baseline
    #[arg(long)]
    gate: bool,
    /// Compare with this baseline, a name or a file; it must be there
    #[arg(long, value_name = "NAME", conflicts_with = "baseline_lenient")]
    baseline: Option<String>,
    /// Compare with this baseline if it is there
    #[arg(long, value_name = "NAME")]
    baseline_lenient: Option<String>,
    /// Keep what the run scored under this name, after it was compared
    #[arg(long, value_name = "NAME")]
    save_baseline: Option<String>,
    #[command(flatten)]
    asked: gate::Asked,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    files: Files,
}

impl AgainstBaseline {
    fn is_there(&self, name: &str) -> bool {
        versus::baseline_path(name, &self.how.baselines).exists()
    }

    /// The baselines that are asked for and there, the newest first.
    fn names<'a>(&'a self, setting: &'a GateSetting) -> anyhow::Result<Vec<&'a str>> {
        let lenient = self
            .baseline_lenient
            .as_deref()
            .filter(|name| self.is_there(name));
        let named = match (&self.baseline, &self.baseline_lenient) {
            (Some(name), _) => Some(name.as_str()),
            (None, Some(_)) => lenient,
            (None, None) if self.gate => setting.baseline.as_deref(),
            (None, None) => None,
        };
        if self.gate && named.is_none() && self.baseline_lenient.is_none() {
            return Err(
                Stop::new(Exit::Usage, "`--gate` has no baseline to compare with")
                    .with_hint("name one with `--baseline NAME`, or with `baseline` in `[gate]`")
                    .into(),
            );
        }
        let anchor = self.asked.anchor.as_deref().or(setting.anchor.as_deref());
        let anchor = anchor.filter(|_| self.gate || self.asked.anchor.is_some());
        Ok(named
            .into_iter()
            .chain(anchor.filter(|anchor| named != Some(anchor)))
            .collect())
    }

    /// Compares, gates and keeps. `exit` is how the run itself ended, which goes before the gate.
    fn apply(
        &self,
        plan: &Plan,
        run: &Run,
        folder: &str,
        exit: Exit,
        human: bool,
    ) -> anyhow::Result<Exit> {
        let setting = &plan.scenario().gate;
        let names = self.names(setting)?;
        let candidate =
            (!names.is_empty() || self.save_baseline.is_some()).then(|| Side::of_run(folder, run));
        let mut gated = Exit::Done;
        if let Some(candidate) = candidate.as_ref().filter(|_| !names.is_empty()) {
            let rules = gate::rules(setting, &self.asked)?;
            let names: Vec<Option<&str>> = names.into_iter().map(Some).collect();
            let seed = run.manifest.seed;
            gated = gate::against(
                candidate,
                &names,
                &self.how,
                &rules,
                seed,
                &self.files,
                if human {
                    Printed::Text
                } else {
                    Printed::Nothing
                },
            )?;
        }
        let ending = match (exit, self.gate) {
            (Exit::Done, true) => gated,
            (exit, _) => exit,
        };
        if let (Some(name), Some(candidate)) = (&self.save_baseline, &candidate) {
            // What is kept is what later changes may be as bad as.
            let why = match ending {
                Exit::Done => versus::unfit(run).map(|(_, why)| why),
                Exit::GateFailed | Exit::GateInconclusive => {
                    Some("it did not pass the gate".to_owned())
                }
                _ => Some("the run is not valid, or not whole".to_owned()),
            };
            match why {
                None => super::baseline::save(&candidate.source, None, name, &self.how.baselines)?,
                Some(why) => say(&format!(
                    "warning: baseline `{name}` is not saved: {why}; \
                     `proctor baseline save {folder} {name} --force` saves it all the same"
                )),
            }
        }
        Ok(ending)
    }
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
    let mut scenario = args.graded.scenario(&args.inputs)?;
    args.models.limit(&mut scenario);
    args.output.check()?;
    args.gate.files.check()?;
    // What is wrong with the rules, or missing, is said before any work is done.
    gate::rules(&scenario.gate, &args.gate.asked)?;
    if let Some(name) = &args.gate.baseline_lenient
        && !args.gate.is_there(name)
    {
        say(&format!(
            "note: there is no baseline `{name}` yet: nothing is compared"
        ));
    }
    for name in args.gate.names(&scenario.gate)? {
        Side::find(name, &args.gate.how.baselines)?;
    }
    let plan = Plan::new(scenario)?;
    walk::say_passed_over(&plan);
    let mut plan = args.graded.sized(plan, args.batch)?;
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| plan.folder(&args.reports));
    args.models.connect(&mut plan, &folder)?;
    if args.batch {
        models::ModelOptions::defer(&plan);
    }
    if args.models.limits_tokens() && !forecast::asks_live_models(&plan) {
        say("note: `--token-limit` counts what live models are sent, and none is asked here");
    }
    let mut journal = Journal::open(&folder, plan.manifest())?;
    if forecast::asks_live_models(&plan) && !models::is_recorded(&plan) && !args.yes {
        let mut spend = forecast::forecast(&plan, journal.done())?.spend;
        say(&forecast::spend_in_words(&plan, &spend));
        if args.batch {
            spend.dollars = spend.batch_dollars;
        }
        // A run that was sized to an amount is agreed to, and its budget stops it there.
        let agreed = args.yes || args.graded.usd().is_some();
        confirm::confirm(&spend, args.cost_limit, agreed)?;
    }
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
    if args.message_format() == MessageFormat::Human {
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
        .or_else(|| plan.at_once().map(|most| most.min(64)))
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let workers = Workers {
        threads,
        stop: &STOP,
    };
    let pass = |journal: &mut Journal, already| match args.message_format() {
        MessageFormat::Human => {
            let sessions = plan.manifest().sessions.len();
            let progress = Shown::new(summary.planned, already, sessions);
            let outcome = runner::run(plan, journal, &workers, &progress);
            let outcome = outcome.map_err(|error| unwritten(error, &folder))?;
            progress.finish();
            Ok(outcome)
        }
        MessageFormat::Json => {
            runner::run(plan, journal, &workers, &Lines).map_err(|error| unwritten(error, &folder))
        }
    };
    let mut outcome = pass(journal, already)?;
    // Each pass puts off what it finds no answer to: first questions, then verdicts on the answers.
    while batch::is_answered(plan, &outcome, &folder, &STOP)? {
        let before = outcome;
        outcome = pass(journal, before.already_done + before.done_now)?;
        outcome.already_done = before.already_done;
        outcome.done_now += before.done_now;
    }
    summary.outcome = Some(outcome.clone());
    models::close(plan, &outcome)?;
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
    let silence = Silence::of(&run.cells);
    summary.answers = Some((silence.asked, silence.items()));
    let made = Report::of(&run.manifest, &run.cells);
    summary.controls = Some(made.controls.clone());
    if args.message_format() == MessageFormat::Human {
        report::show(&made)?;
    }
    let exit = args.output.write(&made)?;
    let human = args.message_format() == MessageFormat::Human;
    if args.gate.names(&plan.scenario().gate)?.is_empty() {
        versus::summarise(&made)?;
    }
    say(&in_words(&outcome, summary.planned, &shown.to_string()));
    if let Some(why) = &outcome.unordered {
        say(&format!(
            "its cells stand in the order in which they were finished, for they could not be sorted: \
             {why}; the same command tries again"
        ));
    }
    if let Some(spent) = models::spent(plan) {
        say(&spent);
    }
    if let Some((_, why)) = outcome.unreached.first() {
        say(&format!(
            "{} of {} cells are outstanding, for a model could not be asked: {why}; the same \
             command goes on, and pays nothing twice",
            outcome.outstanding, summary.planned
        ));
    }
    if !outcome.broken.is_empty() {
        let broken = outcome.broken.iter();
        let lines: Vec<String> = broken.map(|(key, why)| format!("{key}: {why}")).collect();
        let problem = format!("proctor itself failed in\n  {}", lines.join("\n  "));
        return Err(Stop::new(Exit::Internal, problem).into());
    }
    let problem = if failed as f64 > args.max_error_rate * run.cells.len() as f64 {
        Some(format!("{failed} of {} cells failed", run.cells.len()))
    } else if silence.share() > args.max_error_rate {
        Some(silence.to_string())
    } else {
        None
    };
    if let Some(problem) = problem.filter(|_| exit == Exit::Done) {
        say(&format!("error: {problem}"));
        say(&format!(
            "hint: `--max-error-rate` says how many are accepted, {} here",
            args.max_error_rate
        ));
        return args
            .gate
            .apply(plan, &run, &shown.to_string(), Exit::TooManyFailures, human);
    }
    let exit = if exit == Exit::Done && outcome.outstanding > 0 {
        models::exit_of(plan, &outcome, summary.planned)
    } else {
        exit
    };
    args.gate.apply(plan, &run, &shown.to_string(), exit, human)
}

/// What was finished before a file could not be written is kept.
fn unwritten(error: JournalError, folder: &Path) -> anyhow::Error {
    match error {
        JournalError::Io { .. } => {
            let hint = format!(
                "finished cells are kept in `{}`: once it can be written to, the same command goes on",
                folder.display()
            );
            let problem = super::chain(&error.into());
            Stop::new(Exit::NotWritten, problem).with_hint(hint).into()
        }
        error => error.into(),
    }
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
            budget: Some(reached),
            outstanding,
            ..
        } if *outstanding > 0 => format!(
            "run `{folder}` stopped at its budget: {reached}; {} of {cells} cells are kept, \
             and the same command goes on",
            cells - outstanding
        ),
        Outcome { outstanding, .. } if *outstanding > 0 => format!(
            "run `{folder}` is not complete: {} of {cells} cells are kept",
            cells - outstanding
        ),
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
