//! `proctor baseline`: what a run scored, kept as a file for git.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::versus::{self, FOLDER, Side, baseline_path, read_baseline};
use super::{Exit, Stop, print, print_json, prose, say};
use crate::compare::baseline::Baseline;
use crate::compare::{Mismatch, Source};
use crate::record::journal::{Run, write_whole};
use crate::report::escape::plain;
use crate::report::figure::many;

/// Arguments of `proctor baseline`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Keep what a run scored under a name; an older one of that name is written over
    Save {
        /// Folder of the run
        run: String,
        /// Name of the baseline, or its file
        name: String,
        /// A second run of the same, from which the noise between two runs is taken
        #[arg(long, value_name = "RUN")]
        again: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Save it although the run is invalid, or cells of it are missing or failed
        #[arg(short, long)]
        force: bool,
        /// Folder that baselines are named in
        #[arg(long, value_name = "DIR", default_value = FOLDER)]
        baselines: PathBuf,
    },
    /// List the baselines of the folder
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Folder that baselines are named in
        #[arg(long, value_name = "DIR", default_value = FOLDER)]
        baselines: PathBuf,
    },
    /// Say what a baseline holds
    Show {
        /// Name of the baseline, or its file
        name: String,
        /// Print the file as it is: JSON
        #[arg(long)]
        json: bool,
        /// Folder that baselines are named in
        #[arg(long, value_name = "DIR", default_value = FOLDER)]
        baselines: PathBuf,
    },
    /// Delete a baseline
    Rm {
        /// Name of the baseline, or its file
        name: String,
        /// Folder that baselines are named in
        #[arg(long, value_name = "DIR", default_value = FOLDER)]
        baselines: PathBuf,
    },
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.action {
        Action::Save {
            run,
            name,
            again,
            json,
            force,
            baselines,
        } => {
            let side = Side::find(run, baselines)?;
            let mut checked = vec![run.as_str()];
            let again = again
                .as_deref()
                .map(|second| {
                    checked.push(second);
                    let second = Side::find(second, baselines)?;
                    same_again(run, &side, &second)?;
                    Ok::<_, anyhow::Error>(second)
                })
                .transpose()?;
            if !force {
                for typed in checked {
                    fit(typed)?;
                }
            }
            save(
                &side.source,
                again.as_ref().map(|side| &side.source),
                name,
                baselines,
            )?;
            if *json {
                let path = baseline_path(name, baselines);
                let mut saved = row(name, baselines);
                saved["format"] = json!("proctor-baseline-saved");
                saved["version"] = json!(1);
                saved["file"] = json!(path.display().to_string());
                print_json(&saved)?;
            }
        }
        Action::List { json, baselines } => list(baselines, *json)?,
        Action::Show {
            name,
            json,
            baselines,
        } => show(name, baselines, *json)?,
        Action::Rm { name, baselines } => {
            let path = baseline_path(name, baselines);
            // Only what is a baseline is deleted: a name may be a path to anything.
            read_baseline(name, baselines)?;
            std::fs::remove_file(&path).map_err(|error| {
                let problem = format!("cannot delete `{}`: {error}", path.display());
                Stop::new(Exit::NotWritten, problem)
            })?;
            say(&format!("deleted `{}`", path.display()));
        }
    }
    Ok(Exit::Done)
}

/// The folder of a side, where it is a run.
fn folder(typed: &str) -> Option<&Path> {
    let place = Path::new(typed.split("::").next().unwrap_or(typed));
    place.is_dir().then_some(place)
}

/// Refuses a run that is no baseline: invalid, or not whole.
fn fit(typed: &str) -> anyhow::Result<()> {
    let Some(folder) = folder(typed) else {
        return Ok(());
    };
    let run = Run::read(folder).with_context(|| format!("cannot read the run in `{typed}`"))?;
    match versus::unfit(&run) {
        None => Ok(()),
        Some((exit, why)) => Err(Stop::new(exit, format!("`{typed}` is not saved: {why}"))
            .with_hint("`--force` saves it all the same")
            .into()),
    }
}

/// Refuses a second run that is not one of the same, or that is the first itself: its noise would be that
/// of something else, or nothing.
fn same_again(run: &str, first: &Side, second: &Side) -> anyhow::Result<()> {
    let real = |typed: &str| folder(typed).and_then(|path| path.canonicalize().ok());
    if real(run).is_some() && real(run) == real(&second.name) {
        let problem = format!(
            "`--again {}` is the run itself: it has no noise",
            second.name
        );
        return Err(Stop::new(Exit::Usage, problem)
            .with_hint("run the same scenario again with another `--out`")
            .into());
    }
    let mut mismatches = first.source.mismatches(&second.source);
    for strategy in &first.source.strategies {
        let name = &strategy.strategy;
        let other = second.source.strategy(name).map(|other| &other.definition);
        if other != Some(&strategy.definition) {
            mismatches.push(Mismatch {
                what: format!("strategy {name}"),
                baseline: strategy.definition.clone(),
                candidate: other.map_or_else(|| "not there".to_owned(), String::clone),
            });
        }
    }
    match mismatches.first() {
        None => Ok(()),
        Some(_) => Err(versus::refused(first, second, &mismatches)),
    }
}

/// Writes a baseline.
pub(super) fn save(
    source: &Source,
    again: Option<&Source>,
    name: &str,
    baselines: &Path,
) -> anyhow::Result<()> {
    let path = baseline_path(name, baselines);
    let text = Baseline::of(source, again).to_text()?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| {
            let problem = format!("cannot make folder `{}`: {error}", folder.display());
            Stop::new(Exit::NotWritten, problem)
        })?;
    }
    write_whole(&path, text.as_bytes())?;
    say(&format!("saved baseline `{}`", path.display()));
    Ok(())
}

fn list(baselines: &Path, as_json: bool) -> anyhow::Result<()> {
    let entries = match std::fs::read_dir(baselines) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            say(&format!(
                "there is no folder `{}`: no baseline was saved",
                baselines.display()
            ));
            if as_json {
                print_json(
                    &json!({ "format": "proctor-baselines", "version": 1, "baselines": [] }),
                )?;
            }
            return Ok(());
        }
        Err(error) => {
            let problem = format!("cannot read folder `{}`: {error}", baselines.display());
            return Err(Stop::new(Exit::Invalid, problem).into());
        }
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_json = path.extension()? == "json";
            is_json.then(|| {
                path.file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned())
            })?
        })
        .collect();
    names.sort();
    if as_json {
        let rows: Vec<_> = names.iter().map(|name| row(name, baselines)).collect();
        return print_json(
            &json!({ "format": "proctor-baselines", "version": 1, "baselines": rows }),
        );
    }
    for name in names {
        let line = match read_baseline(&name, baselines) {
            Ok(baseline) => format!("{name}: {}\n", summary(&baseline)),
            Err(error) => format!("{name}: {}\n", super::chain(&error)),
        };
        prose::say(&line)?;
    }
    Ok(())
}

/// A baseline of the list, or why it cannot be read.
fn row(name: &str, baselines: &Path) -> Value {
    match read_baseline(name, baselines) {
        Ok(baseline) => json!({
            "name": name,
            "scenario": baseline.conditions.scenario,
            "sessions": baseline.sessions.len(),
            "strategies": baseline.order,
            "proctor": baseline.conditions.proctor,
        }),
        Err(error) => json!({ "name": name, "error": super::chain(&error) }),
    }
}

fn summary(baseline: &Baseline) -> String {
    plain(&format!(
        "scenario {}, {}, {}, proctor {}",
        baseline.conditions.scenario,
        many(baseline.sessions.len(), "session", "sessions"),
        many(baseline.order.len(), "strategy", "strategies"),
        baseline.conditions.proctor
    ))
}

fn show(name: &str, baselines: &Path, as_json: bool) -> anyhow::Result<()> {
    let baseline = read_baseline(name, baselines)?;
    if as_json {
        return print(&baseline.to_text()?);
    }
    let conditions = &baseline.conditions;
    let mut text = format!(
        "{}\ncounter {}, window {}, summariser {}, reader {}, {}\n",
        summary(&baseline),
        conditions.counter,
        conditions.window,
        conditions.summariser.name,
        conditions.reader.name,
        many(conditions.repeats as usize, "repeat", "repeats")
    );
    for name in &baseline.order {
        let Some(stored) = baseline.strategies.get(name) else {
            continue;
        };
        let probes: usize = stored
            .sessions
            .values()
            .map(|session| session.probes.len())
            .sum();
        let lost = stored
            .sessions
            .values()
            .flat_map(|session| session.probes.values())
            .filter(|probe| probe.survival.iter().all(|score| *score < 0.5))
            .count();
        text.push_str(&plain(&format!(
            "{name}: {probes} probe items, {lost} lost"
        )));
        text.push('\n');
        for (metric, noise) in baseline.noise.get(name).into_iter().flatten() {
            let _ = writeln!(text, "  noise of {metric}: {noise:.4}");
        }
    }
    prose::say(&text)
}
