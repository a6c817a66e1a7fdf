//! The common part of `compare` and `run --gate`: it finds the sides, pairs strategies and
//! writes the results.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::report::PrintedTables;
use super::{
    CliError, Exit, Result, cannot, environment, has_ending, listed, read_run, report, say, stop,
    stop_with,
};
use crate::compare::gate::{Ending, Rules};
use crate::compare::judge::judge;
use crate::compare::{self, Chance, ComparedRun, Findings, JudgingRule, Mismatch, Target};
use crate::record::journal::RecordedRun;
use crate::record::{Arm, CellRecord, End};
use crate::report::comparison::{Comparisons, GatedComparison};
use crate::report::display::many;
use crate::report::screen::ScreenOptions;
use crate::report::{Report, ReportKind, comment, github};

/// The reason why a run cannot be a baseline: a comparison treats a baseline as complete and valid.
pub(super) fn unfit(run: &RecordedRun) -> Option<(Exit, String)> {
    if let Err(invalid) = Report::of(&run.manifest, &run.cells).controls.check() {
        return Some((Exit::ControlsFailed, invalid.to_string()));
    }
    let (there, planned) = cells(run);
    if there < planned {
        let missing = planned - there;
        let why = format!("{missing} of its {planned} cells are missing");
        return Some((Exit::Outstanding, why));
    }
    let failed = own_cells(run).filter(|cell| matches!(cell.end, End::Failed { .. })).count();
    let why = format!("{failed} of its {planned} cells failed");
    (failed > 0).then_some((Exit::TooManyFailures, why))
}

fn own_cells(run: &RecordedRun) -> impl Iterator<Item = &CellRecord> {
    run.cells.iter().filter(|cell| cell.arm == Arm::Strategy)
}

/// The cells of strategies that a run has, and those that it is to have.
fn cells(run: &RecordedRun) -> (usize, usize) {
    let manifest = &run.manifest;
    let repeats = manifest.repeats.max(1) as usize;
    let planned = manifest.sessions.len() * manifest.strategies.len() * repeats;
    (own_cells(run).count(), planned)
}

/// Refuses a run without a cell, and says where some are missing.
fn refuse_empty(name: &str, run: &RecordedRun) -> Result<()> {
    let (there, planned) = cells(run);
    if there == planned {
        return Ok(());
    }
    let problem = format!("`{name}` has {there} of {planned} cells");
    let hint = "the command that made it runs those that are missing";
    if there == 0 {
        return stop_with(Exit::Outstanding, problem, hint);
    }
    say!("!! {problem}: {hint}");
    Ok(())
}

/// Where baselines are kept, for git.
pub(super) const FOLDER: &str = "baselines";

/// How sides are compared.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ComparisonOptions {
    /// Subject of verdicts: exactly these sessions, or sessions like these; by default `suite` if
    /// nothing depends on chance
    #[arg(long, value_name = "suite|population", value_parser = target)]
    pub(super) target: Option<Target>,
    /// Compare although sessions, counter, window or models differ, and costs at different prices where
    /// they cannot be priced again; only sessions with the same content are used
    #[arg(long)]
    pub(super) allow_different: bool,
    /// Folder of the named baselines
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    pub(super) baselines: PathBuf,
}

pub(super) fn target(typed: &str) -> Result<Target, String> {
    match typed {
        "suite" => Ok(Target::Suite),
        "population" => Ok(Target::Population),
        _ => Err("it must be `suite` or `population`".to_owned()),
    }
}

/// Seed of the resampling tests where no run names one.
pub(super) const SEED: u64 = 1;

/// The form of a comparison on standard output.
#[derive(Debug, Clone, Copy)]
pub(super) enum OutputFormat<'a> {
    /// One screen, or tables.
    Text(&'a PrintedTables),
    Json,
    Nothing,
}

/// One side: a run, or a baseline.
#[derive(Debug, Clone)]
pub(super) struct RunSide {
    /// As it was typed.
    pub(super) name: String,
    pub(super) source: ComparedRun,
}

impl RunSide {
    /// Finds `PATH` or `NAME`, or one strategy of it: `PATH::STRATEGY`.
    pub(super) fn find(typed: &str, baselines: &Path) -> Result<Self> {
        let (place, strategy) = match typed.split_once("::") {
            Some((place, strategy)) => (place, Some(strategy)),
            None => (typed, None),
        };
        let path = Path::new(place);
        let mut source = if path.is_dir() {
            let run = read_run(path)?;
            refuse_empty(place, &run)?;
            // One that is named may be a control that the run added.
            let of = match strategy {
                Some(_) => ComparedRun::with_added,
                None => ComparedRun::of,
            };
            of(&run.manifest, &run.cells)
        } else {
            let file = baseline_path(place, baselines);
            if !file.exists() && path.is_file() {
                let problem = format!("`{place}` is neither the folder of a run nor a baseline");
                let hint = "`proctor run` replays recordings, and names the folder that it writes";
                return stop_with(Exit::Baseline, problem, hint);
            }
            if !file.exists() {
                let problem = format!(
                    "there is no run in a folder `{place}`, and no baseline `{}`",
                    file.display()
                );
                let save = match baseline_name(place) {
                    Ok(name) => format!("; `proctor baseline save RUN {name}` writes a baseline"),
                    Err(_) => String::new(),
                };
                let hint = format!("a run says at its end which folder it wrote{save}");
                return stop_with(Exit::Baseline, problem, hint);
            }
            read_baseline(place, baselines)?
        };
        if let Some(strategy) = strategy {
            let hint = format!("it has {}", strategies(&source));
            if !source.keep(strategy) {
                let problem = format!("`{place}` has no strategy `{strategy}`");
                return stop_with(Exit::Baseline, problem, hint);
            }
        }
        let name = typed.to_owned();
        Ok(Self { name, source })
    }

    pub(super) fn of_run(name: &str, run: &RecordedRun) -> Self {
        Self { name: name.to_owned(), source: ComparedRun::of(&run.manifest, &run.cells) }
    }
}

/// The file of a baseline: a path, or a name in the folder.
pub(super) fn baseline_path(name: &str, baselines: &Path) -> PathBuf {
    let path = Path::new(name);
    if has_ending(path, "json") || path.components().count() > 1 {
        path.to_owned()
    } else {
        baselines.join(format!("{name}.json"))
    }
}

/// A name or a file that a baseline can be saved under.
pub(super) fn baseline_name(typed: &str) -> Result<String, String> {
    let folder = typed.ends_with(['/', '\\']) || Path::new(typed).file_name().is_none();
    let nested = Path::new(typed).components().count() > 1;
    if folder || typed.trim().is_empty() || nested && !has_ending(typed, "json") {
        return Err("it must be a name, or a file that ends in `.json`".to_owned());
    }
    Ok(typed.to_owned())
}

pub(super) fn read_baseline(name: &str, baselines: &Path) -> Result<ComparedRun> {
    let path = baseline_path(name, baselines);
    let bytes =
        crate::files::read(&path).map_err(cannot(Exit::Baseline, "read baseline", &path)).map_err(
            |stop| stop.with_hint(format!("`proctor baseline save RUN {name}` writes one")),
        )?;
    let text = String::from_utf8_lossy(&bytes);
    ComparedRun::parse(&text).with_context(|| format!("baseline `{}`", path.display()))
}

/// Whether a strategy of the candidate without a counterpart is refused or only reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unpaired {
    Refused,
    Reported,
}

/// Compares two sides, and adds what is found. Strategies without a counterpart are reported; `unpaired` says what
/// happens to those of the candidate.
pub(super) fn compare(
    found: &mut Comparisons,
    [baseline, candidate]: [&RunSide; 2],
    (options, rules): (&ComparisonOptions, &Rules),
    unpaired: Unpaired,
    seed: u64,
) -> Result<()> {
    let [one, other] = [baseline, candidate].map(|side| &side.name);
    if baseline.source == candidate.source {
        say!("note: `{one}` and `{other}` are the same results");
    }
    let (mut old, mut new) = (baseline.source.clone(), candidate.source.clone());
    let (all, left_out) = (old.sessions.len(), old.keep_sample_of(&new));
    if left_out > 0 {
        say!(
            "note: `{other}` is a sample: {left_out} of {all} sessions of `{one}` are not compared"
        );
    }
    let mismatches = old.mismatches(&new);
    if !mismatches.is_empty() && !options.allow_different {
        return Err(refused(baseline, candidate, &mismatches));
    }
    if !mismatches.is_empty() {
        old.keep_sessions_of(&candidate.source);
        new.keep_sessions_of(&baseline.source);
        if old.sessions.is_empty() {
            let problem = format!("`{one}` and `{other}` have no session in common");
            return stop(Exit::Baseline, problem);
        }
    }
    let (repriced, mut unpriced) = old.reprice(&new, &old.repriced(&new));
    if options.allow_different {
        unpriced.clear();
    }
    if !unpriced.is_empty() {
        old.forget_costs(&unpriced);
        new.forget_costs(&unpriced);
        say!(
            "note: the prices of {} are not the same in `{one}` and `{other}`, and their tokens or prices are not all \
             known: their cost is not compared; `proctor baseline refresh` measures a baseline again with today's \
             prices",
            many(unpriced.len(), "session", "sessions")
        );
    }
    if let Some(mixed) = old.other_reader(&new) {
        old.forget_answers();
        new.forget_answers();
        say!("note: {mixed}; answers are not compared");
    } else if !old.same_judge(&new) {
        old.forget_answers();
        new.forget_answers();
        say("note: two judges graded the answers, or one in two ways; answers are not compared");
    }
    let [before, now] = [&old, &new].map(|side| &side.conditions.proctor);
    if before != now {
        say!(
            "note: `{one}` was measured by proctor {before}, `{other}` by {now}: what an evaluator sees may have changed"
        );
    }
    let chance = old.chance().max(new.chance());
    let chosen = options.target.or(rules.target);
    let rule = JudgingRule {
        target: chosen.unwrap_or(match chance {
            Chance::Nowhere => Target::Suite,
            Chance::Answers | Chance::Everywhere => Target::Population,
        }),
        margins: rules.margins.clone(),
        chance,
        seed,
    };
    let pairs = old.pairs(&new);
    if let ([first, ..], Unpaired::Refused) = (pairs.candidate_alone.as_slice(), unpaired) {
        let problem = format!(
            "strategy `{first}` of `{other}` has no counterpart in `{one}`: nothing would be compared with it"
        );
        let hint = format!(
            "it has {}; name both sides, as in `RUN::STRATEGY`, or save the baseline again",
            strategies(&old)
        );
        return stop_with(Exit::Baseline, problem, hint);
    }
    for (names, has, lacks) in
        [(&pairs.baseline_alone, one, other), (&pairs.candidate_alone, other, one)]
    {
        for name in names {
            say!(
                "note: `{has}` has `{name}`, which has no counterpart in `{lacks}`: it is not compared"
            );
        }
    }
    let repriced = Some(repriced).filter(|repriced| repriced.sessions > 0);
    let both = [&old, &new].into_iter();
    let compared = pairs.pairs.iter().map(|(sample, newer)| GatedComparison {
        baseline_source: one.clone(),
        candidate_source: other.clone(),
        gated: None,
        comparison: Findings {
            repriced: repriced.clone(),
            unpriced_sessions: unpriced.len(),
            ..judge(sample, newer, &rule).with_texts(&[&new, &old])
        },
        repairs: both.clone().filter_map(|side| side.repairs.clone()).collect(),
        simulated_cost: both.clone().filter_map(|side| side.simulated_cost).collect(),
    });
    found.comparisons.extend(compared);
    if pairs.pairs.is_empty() {
        let problem = format!("`{one}` and `{other}` have no strategy to compare");
        let hint = format!(
            "name both, as in `RUN::STRATEGY`; the first has {}, the second {}",
            strategies(&old),
            strategies(&new)
        );
        return stop_with(Exit::Baseline, problem, hint);
    }
    found.mismatches.extend(mismatches);
    Ok(())
}

fn strategies(source: &ComparedRun) -> String {
    let names = source.samples();
    listed(names.map(|sample| format!("`{}`", sample.strategy)))
}

/// A hash by its first digits, anything else whole.
fn short(text: &str) -> &str {
    let hash = text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hash { &text[..8] } else { text }
}

fn refused(baseline: &RunSide, candidate: &RunSide, mismatches: &[Mismatch]) -> anyhow::Error {
    let lines = mismatches.iter().take(12).map(|mismatch| {
        format!(
            "\n  {}: {} in the baseline, {} in the candidate",
            mismatch.what,
            short(&mismatch.baseline),
            short(&mismatch.candidate)
        )
    });
    let mut problem = format!("`{}` and `{}` cannot be compared:", baseline.name, candidate.name);
    problem.extend(lines);
    if mismatches.len() > 12 {
        let _ = write!(problem, "\n  … and {} more", mismatches.len() - 12);
    }
    say(&format!("error: {problem}"));
    CliError::new(Exit::Baseline, "they were not measured by the same")
        .with_hint(
            "if only Proctor changed, `proctor baseline refresh NAME --run RUN` measures the baseline again; \
             `--allow-different` compares all the same, on sessions of the same content",
        )
        .into()
}

/// Adjusts p values over comparisons of the same strategy.
pub(super) fn adjust(comparisons: &mut [GatedComparison]) {
    let all = comparisons.iter();
    let mut names: Vec<String> = all.map(|one| one.comparison.baseline.clone()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let all = comparisons.iter_mut().map(|one| &mut one.comparison);
        let mut group: Vec<&mut Findings> = all.filter(|own| own.baseline == name).collect();
        compare::adjust(&mut group);
    }
}

/// Prints and writes a comparison; the exit code says how the gate ended.
pub(super) fn show(
    comparisons: Comparisons,
    files: &[PathBuf],
    printed: OutputFormat<'_>,
) -> Result<Exit> {
    let exit = match comparisons.ending {
        None | Some(Ending::Passed) => Exit::Done,
        Some(Ending::Failed) => Exit::GateFailed,
        Some(Ending::Inconclusive) => Exit::GateInconclusive,
    };
    let outputs = github::outputs(&comparisons);
    let annotations = github::annotations(&comparisons);
    let report = comparisons.report();
    match printed {
        _ if report::takes_stdout(files) => {}
        OutputFormat::Text(tables) => _ = tables.print(&report, ScreenOptions::default())?,
        OutputFormat::Json => _ = report::print_as(&report, true)?,
        OutputFormat::Nothing => {}
    }
    report::write(ReportKind::Comparison, &report, files)?;
    if environment("GITHUB_ACTIONS").is_some() {
        append_to("GITHUB_STEP_SUMMARY", &comment::render(&report)?)?;
        append_to("GITHUB_OUTPUT", &outputs)?;
        // The runner obeys such lines on either stream; standard output is for results.
        say(&annotations);
    }
    Ok(exit)
}

/// Checks the files that a comparison is to be written to, before any work is done, and removes earlier
/// ones: none of them is taken for a comparison that was never made.
pub(super) fn prepare(files: &[PathBuf], is_json: bool) -> Result<()> {
    report::check(ReportKind::Comparison, files, is_json)?;
    files.iter().try_for_each(|path| remove_earlier(path))
}

/// Removes a file or a link, and never what a link leads to.
fn remove_earlier(path: &Path) -> Result<()> {
    let there = path.is_symlink() || path.is_file();
    if report::is_stdout(path) || !there {
        return Ok(());
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => Ok(removed.map_err(cannot(Exit::NotWritten, "remove the comparison", path))?),
    }
}

/// The same as [`prepare`] where nothing is gated. Refuses results for build servers: a suite of no tests
/// reads as a success.
pub(super) fn prepare_ungated(files: &[PathBuf], is_json: bool) -> Result<()> {
    for path in files {
        if report::format_of(ReportKind::Comparison, path)?.ending == "junit.xml" {
            let problem =
                format!("`{}` would have no test case: nothing is gated here", path.display());
            let hint = "`proctor compare --gate RUN --baseline NAME -o gate.junit.xml` writes one";
            return stop_with(Exit::Usage, problem, hint);
        }
    }
    prepare(files, is_json)
}

/// The report of a run that is compared with nothing, as the summary of its step.
pub(super) fn summarise(report: &Report) -> Result<()> {
    if environment("GITHUB_ACTIONS").is_none() {
        return Ok(());
    }
    append_to("GITHUB_STEP_SUMMARY", &comment::render(report)?)
}

/// Appends to the file that a variable of the workflow names.
fn append_to(variable: &str, text: &str) -> Result<()> {
    let Some(path) = environment(variable).map(PathBuf::from) else {
        return Ok(());
    };
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    let doing = format!("write {variable}");
    Ok(written.map_err(cannot(Exit::NotWritten, &doing, &path))?)
}

/// Whether the controls of a run held: a run that says nothing passes no gate.
pub(super) fn controls_hold(run: &RecordedRun) -> bool {
    match Report::of(&run.manifest, &run.cells).controls.check() {
        Ok(()) => true,
        Err(invalid) => {
            say!("error: {invalid}");
            false
        }
    }
}
