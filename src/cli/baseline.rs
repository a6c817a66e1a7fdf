//! `proctor baseline`: the scores of a run as a file for git.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::comparison::{self, RunSide, baseline_path, read_baseline};
use super::{
    Exit, Result, cannot, chain, has_ending, make_folder, outputs, print, read_run, show,
    show_text, stop, stop_with,
};
use crate::compare::baseline::FORMAT;
use crate::compare::judge::judge;
use crate::compare::{AxisFinding, ComparedRun, JudgingRule};
use crate::record::journal::write_whole;
use crate::report::comparison::change;
use crate::report::display::many;

/// Arguments of `proctor baseline`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: BaselineAction,
    /// Folder of the named baselines
    #[arg(long, value_name = "DIR", default_value = comparison::FOLDER, global = true)]
    baselines: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum BaselineAction {
    /// Save the scores of a run under a name, in place of an older baseline of that name
    Save {
        /// Folder of the run
        run: String,
        /// Name of the baseline, or its file
        #[arg(value_parser = comparison::baseline_name)]
        name: String,
        /// Save it although the run is invalid, or cells of it are missing or failed
        #[arg(short, long)]
        force: bool,
    },
    /// Measure a baseline again, after new defaults or evaluators
    ///
    /// RUN is a run, by this version of Proctor, of the commit that the baseline was saved from. It is
    /// refused if its strategies, sessions or probes are not those of the baseline: then more than the
    /// measurement has changed.
    Refresh {
        /// Name of the baseline, or its file
        name: String,
        /// Folder of a run, by this version, of the commit that the baseline was saved from
        #[arg(long)]
        run: PathBuf,
    },
    /// List the baselines of the folder
    List,
    /// Show the contents of a baseline; with `--json` its file as it is
    Show {
        /// Name of the baseline, or its file
        name: String,
    },
    /// Delete a baseline
    Rm {
        /// Name of the baseline, or its file
        name: String,
    },
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    let (baselines, json) = (&*args.baselines, args.json);
    match &args.action {
        BaselineAction::Save { run, name, force } => save_run(run, name, *force, args),
        BaselineAction::Refresh { name, run } => refresh(name, run, args),
        BaselineAction::List => list(baselines, json),
        BaselineAction::Show { name } => show_one(name, baselines, json),
        BaselineAction::Rm { name } => {
            let path = baseline_path(name, baselines);
            // Only a baseline is deleted: a name may be a path to any file.
            read_baseline(name, baselines)?;
            std::fs::remove_file(&path).map_err(cannot(Exit::NotWritten, "delete", &path))?;
            say!("deleted `{}`", path.display());
            let facts = json!({ "file": path.display().to_string() });
            show(json, "proctor-baseline-deleted", facts, "")
        }
    }
}

fn save_run(typed: &str, name: &str, force: bool, args: &Args) -> Result<Exit> {
    let baselines = &args.baselines;
    let side = RunSide::find(typed, baselines)?;
    // Another baseline was fit when it was saved.
    let place = Path::new(typed.split("::").next().unwrap_or(typed));
    let unfit = if place.is_dir() && !force { comparison::unfit(&read_run(place)?) } else { None };
    if let Some((exit, why)) = unfit {
        let problem = format!("`{typed}` is not saved: {why}");
        return stop_with(exit, problem, "`--force` saves it all the same");
    }
    save(&side.source, name, baselines)?;
    if !args.json {
        return Ok(Exit::Done);
    }
    let mut saved = row(name, &read_baseline(name, baselines));
    saved["file"] = json!(baseline_path(name, baselines).display().to_string());
    show(true, "proctor-baseline-saved", saved, "")
}

/// Writes a baseline again from a run of the same, as this version measures it.
fn refresh(name: &str, run: &Path, args: &Args) -> Result<Exit> {
    let baselines = &args.baselines;
    let old = read_baseline(name, baselines)?;
    let shown = run.display().to_string();
    let run = read_run(run)?;
    if let Some((exit, why)) = comparison::unfit(&run) {
        return stop(exit, format!("`{name}` is not refreshed from `{shown}`: {why}"));
    }
    let source = RunSide::of_run(&shown, &run).source;
    let mut mismatches = old.definition_mismatches(&source);
    mismatches.extend(old.subject_mismatches(&source));
    if let [first, ..] = mismatches.as_slice() {
        let problem = format!(
            "`{shown}` is not a run of what `{name}` was saved from: {}: {} in the baseline, {} in the run ({})",
            first.what,
            first.baseline,
            first.candidate,
            many(mismatches.len(), "difference", "differences")
        );
        let hint = "run the commit that the baseline was saved from; `proctor baseline save` saves another";
        return stop_with(Exit::Baseline, problem, hint);
    }
    let version = env!("CARGO_PKG_VERSION");
    if source.conditions.proctor != version {
        say!(
            "note: `{shown}` was run by proctor {}: run it again with {version} to measure it as today",
            source.conditions.proctor
        );
    }
    write(&source, name, baselines)?;
    let rule = JudgingRule::of_population(1);
    let mut moved = Vec::new();
    for sample in old.samples() {
        let Some(now) = source.strategy(&sample.strategy) else {
            continue;
        };
        let found = judge(sample, now, &rule);
        for metric in found.axes.iter().filter(|metric| has_moved(metric)) {
            moved.push(json!({
                "strategy": found.candidate,
                "metric": metric.axis,
                "baseline": metric.baseline,
                "candidate": metric.candidate,
                "change": change(metric),
            }));
        }
    }
    let facts = json!({
        "file": baseline_path(name, baselines).display().to_string(),
        "proctor": source.conditions.proctor,
        "conditions": old.conditions.mismatches(&source.conditions),
        "repriced_sessions": old.repriced(&source),
        "moved": moved,
    });
    let template = include_str!("text/refreshed.txt");
    show(args.json, "proctor-baseline-refreshed", facts, template)
}

fn has_moved(metric: &AxisFinding) -> bool {
    let counts = metric.paired.counts;
    counts.wins + counts.losses > 0
}

/// Writes a baseline.
pub(super) fn save(source: &ComparedRun, name: &str, baselines: &Path) -> Result<()> {
    write(source, name, baselines)?;
    let path = baseline_path(name, baselines);
    say!("saved baseline `{}`", path.display());
    Ok(())
}

/// Refuses a name under which there is something else than a baseline.
pub(super) fn refuse_other(name: &str, baselines: &Path) -> Result<()> {
    let path = baseline_path(name, baselines);
    if !path.exists() || outputs::is_of_format(&path, FORMAT) {
        return Ok(());
    }
    let problem = format!("`{}` is there, and is not a baseline", path.display());
    let hint = "name another file for the baseline";
    stop_with(Exit::NotWritten, problem, hint)
}

fn write(source: &ComparedRun, name: &str, baselines: &Path) -> Result<()> {
    refuse_other(name, baselines)?;
    let path = baseline_path(name, baselines);
    let text = source.to_text()?;
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    write_whole(&path, text.as_bytes())?;
    Ok(())
}

fn list(baselines: &Path, as_json: bool) -> Result<Exit> {
    let shown = baselines.display();
    let mut names = Vec::new();
    match std::fs::read_dir(baselines) {
        Ok(entries) => {
            let paths = entries.flatten().map(|entry| entry.path());
            let named = paths.filter(|path| has_ending(path, "json"));
            names.extend(
                named.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())),
            );
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            say!("there is no folder `{shown}`: no baseline was saved");
        }
        Err(error) => return Err(cannot(Exit::Invalid, "read folder", baselines)(error).into()),
    }
    names.sort();
    let rows = names.iter().map(|name| row(name, &read_baseline(name, baselines)));
    let facts = json!({ "baselines": rows.collect::<Vec<_>>() });
    let template = include_str!("text/baselines.txt");
    show(as_json, "proctor-baselines", facts, template)
}

/// A baseline of the list, or why it cannot be read.
fn row(name: &str, baseline: &Result<ComparedRun>) -> Value {
    match baseline {
        Ok(baseline) => json!({
            "name": name,
            "scenario": baseline.conditions.scenario,
            "sessions": baseline.sessions.len(),
            "strategies": baseline.order,
            "proctor": baseline.conditions.proctor,
        }),
        Err(error) => json!({ "name": name, "error": chain(error) }),
    }
}

fn show_one(name: &str, baselines: &Path, as_json: bool) -> Result<Exit> {
    let baseline = read_baseline(name, baselines)?;
    if as_json {
        return print(&baseline.to_text()?);
    }
    let strategies = baseline.samples().map(|stored| {
        let probes: Vec<_> =
            stored.sessions.values().flat_map(|session| session.probes.values()).collect();
        let lost = probes.iter().filter(|probe| probe.survival.iter().all(|score| *score < 0.5));
        json!({
            "name": stored.strategy,
            "items": probes.len(),
            "lost": lost.count(),
        })
    });
    let facts = json!({
        "conditions": baseline.conditions,
        "sessions": baseline.sessions.len(),
        "strategies": strategies.collect::<Vec<_>>(),
    });
    show_text(facts, include_str!("text/baseline.txt"))
}
