//! `proctor run`: plan, replay, report; continues where it stopped.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;

use super::apply::{ApplyOptions, not_written};
use super::compare::{MarginOptions, against, rules};
use super::comparison::{self, ComparisonOptions, OutputFormat, Side};
use super::graded_run::GradedOptions;
use super::inputs::Inputs;
use super::interrupt::{FINISHING, stop_on_interrupt};
use super::messages::{self, MessageProgress, Summary};
use super::models;
use super::parts::RunPart;
use super::progress::ProgressDisplay;
use super::report::PrintedTables;
use super::{CliError, Exit, batch, find_sessions, report, say, stop, stop_with};
use crate::compare::advice::{Answer, Verdict};
use crate::metric::unscored::UnscoredItems;
use crate::model::cassette::ReplayMode;
use crate::record::journal::{Journal, JournalError, Run};
use crate::record::{CellKey, CellRecord, End};
use crate::report::{Report, escape};
use crate::runner::{self, Outcome, Plan, Progress, Remembered, RunModels, Workers};
use crate::scenario::{GateSetting, Scenario};
use crate::settings::Place;
use crate::units::many;

mod dry_run;
mod earlier;

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
    part: RunPart,
    #[command(flatten, next_help_heading = "Cells")]
    cells: CellOptions,
    #[command(flatten, next_help_heading = "Output")]
    output: report::Output,
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

/// Comparing with a baseline, and keeping one.
#[derive(Debug, clap::Args)]
struct AgainstBaseline {
    /// Fail if anything got worse than the baseline, by the rules of the scenario's `[gate]`
    #[arg(long)]
    gate: bool,
    /// Compare with this baseline, a name or a file
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Save the scores of the run under this name, after the comparison
    #[arg(long, value_name = "NAME", value_parser = comparison::baseline_name)]
    save_baseline: Option<String>,
    #[command(flatten)]
    margins: MarginOptions,
    /// Folder of the named baselines
    #[arg(long, value_name = "DIR", default_value = comparison::FOLDER)]
    baselines: PathBuf,
    /// Also write the comparison to this file; the ending sets the format: .md for a comment,
    /// .full.md, .json, .txt, .junit.xml, or .svg for a forest plot; an older file is
    /// removed before the run begins (repeatable)
    #[arg(long, value_name = "FILE")]
    comparison_output: Vec<PathBuf>,
}

impl AgainstBaseline {
    /// Whether a comparison, a gate or a new baseline is asked for.
    fn is_asked(&self) -> bool {
        self.is_compared() || self.save_baseline.is_some()
    }

    fn is_compared(&self) -> bool {
        self.gate || self.baseline.is_some()
    }

    /// Refuses files of a comparison that is not asked for, and removes those of an earlier one.
    fn prepare_files(&self) -> anyhow::Result<()> {
        let files = &self.comparison_output;
        if !self.is_compared() && !files.is_empty() {
            let problem = "`--comparison-output` has no comparison to write";
            let hint = "name what to compare with: `--baseline NAME`, or `--gate`";
            return stop_with(Exit::Usage, problem, hint);
        }
        comparison::prepare(files)
    }

    /// Finds mistakes in the rules, and baselines that are missing, before any work is done.
    fn check(&self, setting: &GateSetting) -> anyhow::Result<()> {
        rules(setting, &self.margins)?;
        let mut names = self.names(setting)?.into_iter();
        names.try_for_each(|name| Side::find(name, &self.baselines).map(drop))
    }

    /// The baselines that are asked for, the newest first.
    fn names<'a>(&'a self, setting: &'a GateSetting) -> anyhow::Result<Vec<&'a str>> {
        if !self.is_compared() {
            return Ok(Vec::new());
        }
        let Some(named) = self.baseline.as_deref().or(setting.baseline.as_deref()) else {
            let problem = "`--gate` has no baseline to compare with";
            let hint = "name one with `--baseline NAME`, or with `baseline` in `[gate]`";
            return stop_with(Exit::Usage, problem, hint);
        };
        let anchor = setting.anchor.as_deref().filter(|_| self.gate);
        let anchor = anchor.filter(|anchor| named != *anchor);
        Ok(std::iter::once(named).chain(anchor).collect())
    }

    /// Compares, gates and keeps. `exit` is how the run itself ended, which goes before the gate.
    fn apply(
        &self,
        plan: &Plan,
        run: &Run,
        folder: &str,
        exit: Exit,
        tables: Option<&PrintedTables>,
    ) -> anyhow::Result<Exit> {
        let setting = &plan.scenario().gate;
        let names = self.names(setting)?;
        if names.is_empty() && self.save_baseline.is_none() {
            return Ok(exit);
        }
        let candidate = Side::of_run(folder, run);
        let mut ending = exit;
        if !names.is_empty() {
            let rules = rules(setting, &self.margins)?;
            let names: Vec<Option<&str>> = names.into_iter().map(Some).collect();
            let tables = tables.map(PrintedTables::of_another);
            let printed = tables.as_ref();
            let printed = printed.map_or(OutputFormat::Nothing, OutputFormat::Text);
            let options = ComparisonOptions {
                baselines: self.baselines.clone(),
                ..ComparisonOptions::default()
            };
            let (files, seed) = (&self.comparison_output, run.manifest.seed);
            let gated = against(&candidate, &names, &options, &rules, seed, files, printed)?;
            if exit == Exit::Done && self.gate {
                ending = gated;
            }
        }
        if let Some(name) = &self.save_baseline {
            // Later changes may be as bad as the baseline.
            let why = match ending {
                Exit::Done => comparison::unfit(run).map(|(_, why)| why),
                Exit::GateFailed | Exit::GateInconclusive => {
                    Some("it did not pass the gate".to_owned())
                }
                _ => Some("the run is not valid, or not whole".to_owned()),
            };
            match why {
                None => {
                    super::baseline::save(&candidate.source, name, &self.baselines)?;
                }
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
    let number = typed.parse().ok();
    let number = number.filter(|share| (0.0..=1.0).contains(share));
    number.ok_or_else(|| "it must be a number from 0 to 1".to_owned())
}

/// Estimates a run, and runs nothing.
fn dry_run(args: &Args, scenario: Scenario) -> anyhow::Result<Exit> {
    args.dry_run
        .check(args.out.is_some(), args.graded.usd().is_some())?;
    let plan = Plan::new(scenario)?;
    find_sessions::say_passed_over(&plan);
    let plan = args.graded.to_look_at().sized(plan, args.batch)?;
    let is_whole = args.printed.tables().is_asked();
    args.dry_run
        .show(&plan, args.out.as_deref(), is_whole, args.json)
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let beside = args.out.as_deref().and_then(Path::parent);
    let beside = beside.unwrap_or(&args.reports);
    let is_typed_offline = args.models.is_offline();
    if !args.dry_run.dry_run {
        args.gate.prepare_files()?;
    }
    let mut scenario = args
        .graded
        .scenario(&args.inputs, is_typed_offline, beside)?;
    if args.dry_run.dry_run {
        return dry_run(args, scenario);
    }
    args.output.check()?;
    args.apply.check("STRATEGY-recommended.toml")?;
    if args.part.part().is_some() && args.gate.is_asked() {
        let problem = "a part of a run is not compared with a baseline";
        let hint = "`proctor merge` joins the parts, and `proctor compare --gate` compares the run";
        return stop_with(Exit::Usage, problem, hint);
    }
    args.gate.check(&scenario.gate)?;
    // The verdict of the run uses the same margins.
    for (metric, margin) in args.gate.margins.all()? {
        let place = Place::Flag("margin".into());
        scenario
            .gate
            .margins
            .push((metric.to_owned(), margin, place));
    }
    let mut plan = args.part.of(scenario, &args.graded, args.batch)?;
    let folder = args.out.clone();
    let folder = folder.unwrap_or_else(|| args.part.folder(plan.folder(&args.reports)));
    let mut consent = args.consent;
    args.part.limit(&mut plan, &mut consent);
    args.models.connect(&mut plan, &folder, &args.part)?;
    let cassette = plan.models().and_then(|models| models.cassette.as_ref());
    if let (true, Some(cassette)) = (args.batch, cassette) {
        cassette.defer();
    }
    let mut journal = args.part.open(&plan, &folder)?;
    if args.graded.usd().is_some() {
        // A run that was sized to an amount is agreed to, and its budget stops it there.
        consent.cost_limit = f64::INFINITY;
    }
    let is_offline = cassette.is_some_and(|cassette| cassette.mode() == ReplayMode::Strict);
    // Where nothing may be asked, what the same program asked before is not asked again.
    let remembered = if is_offline || args.part.part().is_some() {
        Remembered::Part
    } else {
        Remembered::Unfinished
    };
    let again = if args.cells.fresh {
        journal.done().clone()
    } else {
        plan.stale(&journal, remembered)
    };
    let kept: BTreeSet<CellKey> = journal.done().difference(&again).cloned().collect();
    consent.to_run(&plan, &kept, args.batch)?;
    let is_whole = args.part.part().is_none();
    let is_asked = !is_offline && !args.batch && is_whole && kept.len() < plan.cells().len();
    let stop = stop_on_interrupt(FINISHING);
    if is_asked {
        args.graded.check_reader(&plan, &stop)?;
    }
    let cells = plan.cells();
    let is_complete = cells.iter().all(|key| kept.contains(key));
    let earlier = (is_whole && !is_complete)
        .then(|| EarlierRun::find(&folder, &plan.manifest().scenario, !again.is_empty()))
        .flatten();
    journal.forget(&again, plan.manifest())?;
    say_again(&again, args.cells.fresh);
    let workers = Workers {
        threads: models::threads(args.cells.jobs, &plan),
        stop,
    };
    let already = cells.iter().filter(|key| journal.done().contains(*key));
    let (planned, already) = (cells.len(), already.count());
    let mut summary = Summary {
        planned,
        ..Summary::default()
    };
    if !args.json {
        return replay(
            args,
            &mut plan,
            &mut journal,
            &workers,
            (already, earlier.as_ref()),
            &mut summary,
        );
    }
    messages::send(&messages::launch(
        plan.manifest(),
        &folder,
        planned,
        already,
    ));
    let result = replay(
        args,
        &mut plan,
        &mut journal,
        &workers,
        (already, earlier.as_ref()),
        &mut summary,
    );
    let (exit, error) = match &result {
        Ok(exit) => (*exit, None),
        Err(error) => (super::explain(error).0, Some(super::chain(error))),
    };
    messages::send(&messages::done(&summary, exit, error.as_deref()));
    result
}

/// Says which finished cells are computed again.
fn say_again(cells: &BTreeSet<CellKey>, is_fresh: bool) {
    if cells.is_empty() {
        return;
    }
    let count = many(cells.len(), "finished cell is", "finished cells are");
    if is_fresh {
        say(&format!("{count} computed again (`--fresh`)"));
        return;
    }
    let strategies: BTreeSet<&str> = cells.iter().map(|key| key.strategy.as_str()).collect();
    let names = strategies.into_iter().collect::<Vec<_>>().join(", ");
    say(&format!(
        "{count} computed again, because a program may have changed or a cell failed: {names}"
    ));
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
    plan: &mut Plan,
    journal: &mut Journal,
    workers: &Workers,
    (already, earlier): (usize, Option<&EarlierRun>),
    summary: &mut Summary,
) -> anyhow::Result<Exit> {
    let started = now();
    let folder = journal.folder().to_owned();
    let outcome = run_cells(args, plan, journal, workers, already, summary.planned)?;
    // The report of a long session takes as much memory as the session.
    plan.forget_sessions();
    summary.outcome = Some(outcome.clone());
    args.part.note_stop(journal, outcome.budget.as_deref())?;
    models::close(plan.models(), outcome.missed)?;
    let shown = folder.display().to_string();
    if workers.stop.is_requested() && outcome.outstanding > 0 {
        say(&format!(
            "interrupted: {} of {} cells are kept in `{shown}`; the same command{} goes on",
            summary.planned - outcome.outstanding,
            summary.planned,
            if args.cells.fresh {
                " without `--fresh`"
            } else {
                ""
            }
        ));
        return Ok(Exit::Interrupted);
    }
    let run = Run::read(&folder).context("cannot read the run back")?;
    let is_failed = |cell: &&CellRecord| matches!(cell.end, End::Failed { .. });
    let failed = run.cells.iter().filter(is_failed).count();
    let silence = UnscoredItems::of(&run.cells);
    let mut made = Report::of(&run.manifest, &run.cells);
    if !made.next.is_empty() {
        args.inputs.complete(&mut made.next);
    }
    summary.failed = Some(failed);
    summary.answers = Some((silence.asked, silence.items()));
    if !args.json && args.part.part().is_none() && !args.output.takes_stdout() {
        // Piped output is the same bytes each time, so it holds no time.
        let is_terminal = io::stdout().is_terminal();
        let took = is_terminal.then(|| started.elapsed());
        args.printed.print(&made, took)?;
        let last = if outcome.done_now == 0 {
            let when = earlier::when(&folder);
            when.map(|when| format!("nothing was computed: shown from the run of {when}; `--fresh` computes it again"))
        } else {
            earlier.and_then(|earlier| earlier.difference(&run))
        };
        if let Some(line) = last {
            earlier::close_screen(&line, is_terminal)?;
        }
    }
    let mut exit = args.output.write(&made)?;
    if args.gate.names(&plan.scenario().gate)?.is_empty() && args.part.part().is_none() {
        comparison::summarise(&made)?;
    }
    summary.report = Some(made);
    let called = args
        .part
        .part()
        .map_or("run".to_owned(), |part| format!("part {part} in"));
    say_outcome(
        plan,
        &outcome,
        summary.planned,
        &format!("{called} `{shown}`"),
    );
    if let (Some(part), 0) = (args.part.part(), outcome.outstanding) {
        say(&format!(
            "`proctor merge FOLDER… --out RUN` joins the folders of all {} parts",
            part.of
        ));
    }
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
        say(&format!("error: {problem}"));
        say(&format!(
            "hint: `--max-error-rate` sets the share that may fail (now {})",
            args.cells.max_error_rate
        ));
        exit = Exit::TooManyFailures;
    } else if exit == Exit::Done && outcome.outstanding > 0 {
        exit = models::exit_of(plan, &outcome, summary.planned);
    }
    let tables = (!args.json).then_some(args.printed.tables());
    let exit = args.gate.apply(plan, &run, &shown, exit, tables)?;
    if exit == Exit::Done && args.apply.is_asked() {
        let verdict = summary
            .report
            .as_ref()
            .and_then(|made| made.verdict.as_ref());
        write_recommended(&args.apply, plan, verdict)?;
    }
    Ok(exit)
}

/// Writes the preset of the strategy that the verdict recommends.
fn write_recommended(
    apply: &ApplyOptions,
    plan: &Plan,
    verdict: Option<&Verdict>,
) -> anyhow::Result<()> {
    let recommended = verdict.filter(|verdict| verdict.answer == Answer::Use);
    let name = recommended.and_then(|verdict| verdict.strategy.as_deref());
    let mut specs = plan.scenario().strategies.iter();
    let spec = name.and_then(|name| specs.find(|spec| spec.name() == name));
    let (Some(spec), Some(verdict)) = (spec, verdict) else {
        let why = verdict.and_then(|verdict| verdict.sentences.first());
        let why = why.map_or("a part of a run has no verdict", String::as_str);
        return Err(not_written("a preset", why));
    };
    let unnamed = format!("{}-recommended.toml", spec.base_name());
    let Some(path) = apply.path(&unnamed) else {
        return Ok(());
    };
    let scenario = &plan.manifest().scenario;
    let mut comments = vec![format!("Recommended by a run of scenario `{scenario}`.")];
    comments.extend(verdict.sentences.iter().cloned());
    apply.write(&path, &comments, &spec.to_toml())?;
    say(&format!("wrote `{}`", path.display()));
    Ok(())
}

/// Runs the cells that are missing; with `--batch` again after each batch of answers.
fn run_cells(
    args: &Args,
    plan: &Plan,
    journal: &mut Journal,
    workers: &Workers,
    already: usize,
    planned: usize,
) -> anyhow::Result<Outcome> {
    let folder = journal.folder().to_owned();
    let pass = |journal: &mut Journal, already| {
        let bar = (!args.json).then(|| ProgressDisplay::new(planned, already, plan.sessions()));
        let progress = bar
            .as_ref()
            .map_or(&MessageProgress as &dyn Progress, |bar| bar);
        let outcome = runner::run(plan, journal, workers, progress)
            .map_err(|error| not_kept(error, &folder, plan))?;
        bar.iter().for_each(ProgressDisplay::finish);
        anyhow::Ok(outcome)
    };
    let mut outcome = pass(journal, already)?;
    // Each pass defers requests without an answer: first questions, then verdicts on the answers.
    while batch::is_answered(plan, &outcome, &folder, &workers.stop)? {
        let before = outcome;
        outcome = pass(journal, before.already_done + before.done_now)?;
        let done = outcome.already_done + outcome.done_now;
        outcome.already_done = before.already_done.min(done);
        outcome.done_now = done - outcome.already_done;
    }
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
            let cassette = cassette.map(|it| it.path()).filter(|path| path.exists());
            let kept = cassette.map(|path| format!("; answers are kept in `{}`", path.display()));
            format!(
                "the same command runs its cells again{}",
                kept.unwrap_or_default()
            )
        }
        _ => return error.into(),
    };
    let problem = super::chain(&error.into());
    CliError::new(Exit::NotWritten, problem)
        .with_hint(hint)
        .into()
}

/// Prints how far the run came, and its cost.
fn say_outcome(plan: &Plan, outcome: &Outcome, planned: usize, called: &str) {
    let kept = planned - outcome.outstanding;
    let progress = (outcome.outstanding, outcome.already_done, outcome.done_now);
    let state = match (progress, &outcome.budget) {
        ((0, _, 0), _) => format!("is complete: all {planned} cells were done before"),
        ((0, 0, _), _) => format!("is complete: {planned} cells"),
        ((0, before, now), _) => {
            format!("is complete: {before} cells were done before, {now} now")
        }
        (_, Some(reached)) => format!(
            "stopped at its budget: {reached}; {kept} of {planned} cells are kept, and the same \
             command goes on"
        ),
        (_, None) => format!("is not complete: {kept} of {planned} cells are kept"),
    };
    say(&format!("{called} {state}"));
    if let Some(why) = &outcome.unordered {
        say(&format!(
            "its cells are in the order in which they were finished, because they could not be sorted: \
             {why}; the same command tries again"
        ));
    }
    if let Some(spent) = models::spent(plan) {
        say(&spent);
    }
    if let Some(waited) = plan.models().and_then(RunModels::waited) {
        say(&waited);
    }
    if let Some((_, why)) = outcome.unreached.first() {
        if let (Some(_), taken @ 1..) = (outcome.cut_at, outcome.withdrawn) {
            say(&format!(
                "{taken} finished cells were taken back: a prompt of theirs may have been cut"
            ));
        }
        let paid = match outcome.cut_at {
            None => "pays nothing twice",
            Some(_) => "asks again what may have been cut",
        };
        say(&format!(
            "{} of {planned} cells are outstanding, because {}; the same command continues, and {paid}",
            outcome.outstanding,
            escape::plain(why)
        ));
    }
}
