//! `proctor baseline`: the scores of a run as a file for git.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::comparison::{self, FOLDER, Side, baseline_path, read_baseline};
use super::{Exit, chain, make_folder, print, read_run, say, show, show_text, stop, stop_with};
use crate::compare::judge::judge;
use crate::compare::{AxisFinding, ComparedRun, Rule};
use crate::record::journal::write_whole;
use crate::report::comparison::change;
use crate::report::display::many;

/// Arguments of `proctor baseline`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Save the scores of a run under a name, in place of an older baseline of that name
    Save(SaveArgs),
    /// Measure a baseline again, after new defaults or evaluators
    ///
    /// RUN is a run, by this version of Proctor, of the commit that the baseline was saved from. It is
    /// refused if its strategies, sessions or probes are not those of the baseline: then more than the
    /// measurement has changed.
    Refresh(RefreshArgs),
    /// List the baselines of the folder
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        folder: Folder,
    },
    /// Show the contents of a baseline
    Show {
        /// Name of the baseline, or its file
        name: String,
        /// Print the file as it is: JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        folder: Folder,
    },
    /// Delete a baseline
    Rm {
        /// Name of the baseline, or its file
        name: String,
        #[command(flatten)]
        folder: Folder,
    },
}

#[derive(Debug, clap::Args)]
struct SaveArgs {
    /// Folder of the run
    run: String,
    /// Name of the baseline, or its file
    #[arg(value_parser = comparison::baseline_name)]
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Save it although the run is invalid, or cells of it are missing or failed
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    folder: Folder,
}

#[derive(Debug, clap::Args)]
struct RefreshArgs {
    /// Name of the baseline, or its file
    name: String,
    /// Folder of a run, by this version, of the commit that the baseline was saved from
    #[arg(long)]
    run: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folder: Folder,
}

#[derive(Debug, clap::Args)]
struct Folder {
    /// Folder of the named baselines
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    baselines: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.action {
        Action::Save(args) => save_run(args),
        Action::Refresh(args) => refresh(args),
        Action::List { json, folder } => list(&folder.baselines, *json),
        Action::Show { name, json, folder } => show_one(name, &folder.baselines, *json),
        Action::Rm { name, folder } => {
            let path = baseline_path(name, &folder.baselines);
            // Only a baseline is deleted: a name may be a path to any file.
            read_baseline(name, &folder.baselines)?;
            if let Err(error) = std::fs::remove_file(&path) {
                let problem = format!("cannot delete `{}`: {error}", path.display());
                return stop(Exit::NotWritten, problem);
            }
            say(&format!("deleted `{}`", path.display()));
            Ok(Exit::Done)
        }
    }
}

fn save_run(args: &SaveArgs) -> anyhow::Result<Exit> {
    let (name, baselines) = (&args.name, &args.folder.baselines);
    let side = Side::find(&args.run, baselines)?;
    if !args.force {
        check_fit(&args.run)?;
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
fn refresh(args: &RefreshArgs) -> anyhow::Result<Exit> {
    let (name, baselines) = (&args.name, &args.folder.baselines);
    let old = read_baseline(name, baselines)?;
    let shown = args.run.display().to_string();
    let run = read_run(&args.run)?;
    if let Some((exit, why)) = comparison::unfit(&run) {
        return stop(
            exit,
            format!("`{name}` is not refreshed from `{shown}`: {why}"),
        );
    }
    let source = Side::of_run(&shown, &run).source;
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
        say(&format!(
            "note: `{shown}` was run by proctor {}: run it again with {version} to measure it as today",
            source.conditions.proctor
        ));
    }
    write(&source, name, baselines)?;
    let rule = Rule::of_population(1);
    let pairs = old.samples().filter_map(|sample| {
        let again = source.strategy(&sample.strategy)?;
        Some(judge(sample, again, &rule))
    });
    let mut moved = Vec::new();
    for pair in pairs {
        let counts = |metric: &AxisFinding| metric.paired.counts;
        let metrics = pair.axes.iter();
        for metric in metrics.filter(|it| counts(it).wins + counts(it).losses > 0) {
            moved.push(json!({
                "strategy": pair.candidate,
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
    show(
        args.json,
        "proctor-baseline-refreshed",
        facts,
        include_str!("text/refreshed.txt"),
    )
}

/// The folder of a side, where it is a run.
fn folder(typed: &str) -> Option<&Path> {
    let place = Path::new(typed.split("::").next().unwrap_or(typed));
    place.is_dir().then_some(place)
}

/// Refuses a run that cannot be a baseline: invalid, or incomplete.
fn check_fit(typed: &str) -> anyhow::Result<()> {
    let Some(folder) = folder(typed) else {
        return Ok(());
    };
    match comparison::unfit(&read_run(folder)?) {
        None => Ok(()),
        Some((exit, why)) => {
            let problem = format!("`{typed}` is not saved: {why}");
            stop_with(exit, problem, "`--force` saves it all the same")
        }
    }
}

/// Writes a baseline.
pub(super) fn save(source: &ComparedRun, name: &str, baselines: &Path) -> anyhow::Result<()> {
    write(source, name, baselines)?;
    let path = baseline_path(name, baselines);
    say(&format!("saved baseline `{}`", path.display()));
    Ok(())
}

fn write(source: &ComparedRun, name: &str, baselines: &Path) -> anyhow::Result<()> {
    let path = baseline_path(name, baselines);
    let text = source.to_text()?;
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    write_whole(&path, text.as_bytes())?;
    Ok(())
}

fn list(baselines: &Path, as_json: bool) -> anyhow::Result<Exit> {
    let shown = baselines.display();
    let paths: Vec<PathBuf> = match std::fs::read_dir(baselines) {
        Ok(entries) => entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            say(&format!(
                "there is no folder `{shown}`: no baseline was saved"
            ));
            Vec::new()
        }
        Err(error) => {
            let problem = format!("cannot read folder `{shown}`: {error}");
            return stop(Exit::Invalid, problem);
        }
    };
    let named = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|it| it == "json"));
    let named = named.filter_map(|path| path.file_stem());
    let mut names: Vec<String> = named.map(|it| it.to_string_lossy().into_owned()).collect();
    names.sort();
    let rows = names
        .iter()
        .map(|name| row(name, &read_baseline(name, baselines)));
    let facts = json!({ "baselines": rows.collect::<Vec<_>>() });
    show(
        as_json,
        "proctor-baselines",
        facts,
        include_str!("text/baselines.txt"),
    )
}

/// A baseline of the list, or why it cannot be read.
fn row(name: &str, baseline: &anyhow::Result<ComparedRun>) -> Value {
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

fn show_one(name: &str, baselines: &Path, as_json: bool) -> anyhow::Result<Exit> {
    let baseline = read_baseline(name, baselines)?;
    if as_json {
        print(&baseline.to_text()?)?;
        return Ok(Exit::Done);
    }
    let strategies = baseline.samples().map(|stored| {
        let name = &stored.strategy;
        let sessions = stored.sessions.values();
        let probes = || sessions.clone().flat_map(|session| session.probes.values());
        let lost = probes().filter(|probe| probe.survival.iter().all(|score| *score < 0.5));
        json!({
            "name": name,
            "items": probes().count(),
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
