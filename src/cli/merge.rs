//! `proctor merge`: the parts of a run joined to one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::parts::command;
use super::{CliError, Exit, Result, say, show, stop_with, template};
use crate::record::journal::merge::{MergeError, MissingPart, join_answers, merge};
use crate::record::journal::{MANIFEST, SHARD};

/// Arguments of `proctor merge`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folders of parts, as `proctor run --partition` made them, of runs or of sweeps
    #[arg(value_name = "FOLDER", required = true)]
    folders: Vec<PathBuf>,
    /// Folder of the run that they make; what it holds of the run already is kept
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Print what was joined as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    let mut runs = BTreeSet::new();
    for folder in &args.folders {
        runs.extend(runs_in(folder)?);
    }
    let mut facts = Vec::new();
    let mut is_whole = true;
    let sweep = runs.iter().any(|run| !run.as_os_str().is_empty());
    for run in runs {
        // Of a sweep, a part without sessions in one of its runs has no folder of it.
        let folders = args.folders.iter().map(|folder| inside(folder, &run));
        let folders: Vec<PathBuf> =
            folders.filter(|folder| run.as_os_str().is_empty() || folder.exists()).collect();
        let out = inside(&args.out, &run);
        let merged = merge(&folders, &out).map_err(explained)?;
        is_whole &= merged.missing.is_empty();
        let shown = out.display().to_string();
        // A sweep is made again as a whole.
        let missing = merged.missing.iter().map(|(named, cells)| {
            let part = named.as_ref();
            json!({
                "part": part.map(|part| part.part.to_string()),
                "cells": cells,
                "stopped": part.and_then(|part| part.stopped.clone()),
                "command": part.map(|part| typed(part, &args.folders)),
                "is_there": part.is_some_and(|part| part.folder.is_some()),
            })
        });
        let run = json!({
            "run": shown,
            "cells": merged.cells,
            "planned": merged.planned,
            "other_answers": merged.other_answers,
            "folders": folders.len(),
            "missing": missing.collect::<Vec<_>>(),
        });
        say(&template::fill(include_str!("text/merge.txt"), &run)?);
        facts.push(run);
    }
    if sweep {
        // The runs of a sweep have one cassette, in the sweep's folder.
        let folders: Vec<_> =
            args.folders.iter().chain([&args.out]).map(|folder| (folder.as_path(), None)).collect();
        join_answers(&folders, &args.out).map_err(explained)?;
    }
    if args.json {
        show(true, "proctor-merge", json!({ "runs": facts }), "")?;
    }
    Ok(if is_whole { Exit::Done } else { Exit::Outstanding })
}

/// A run in a folder that is named; the folder itself where the run has no name in it.
fn inside(folder: &Path, run: &Path) -> PathBuf {
    if run.as_os_str().is_empty() { folder.to_owned() } else { folder.join(run) }
}

/// The run folders of a folder that is named: itself, or those that a sweep made in it.
fn runs_in(folder: &Path) -> Result<Vec<PathBuf>> {
    if folder.join(MANIFEST).exists() || folder.join(SHARD).exists() {
        return Ok(vec![PathBuf::new()]);
    }
    let mut found = Vec::new();
    for step in folder.read_dir().into_iter().flatten().flatten() {
        for run in step.path().read_dir().into_iter().flatten().flatten() {
            if run.path().join(MANIFEST).exists() {
                found.push(Path::new(&step.file_name()).join(run.file_name()));
            }
        }
    }
    if found.is_empty() {
        let problem = format!("`{}` holds no run", folder.display());
        let hint =
            "name the folders that `proctor run --partition` or `proctor sweep --partition` made";
        return stop_with(Exit::Invalid, problem, hint);
    }
    Ok(found)
}

/// The command that makes a part again, in the folder that was named.
fn typed(part: &MissingPart, folders: &[PathBuf]) -> String {
    let own = part.folder.as_ref();
    let named = own.and_then(|own| folders.iter().find(|folder| own.starts_with(folder)));
    command(&part.command, part.part, named.map(PathBuf::as_path))
}

/// The error with the command that mends it.
fn explained(error: MergeError) -> anyhow::Error {
    let error = match error {
        MergeError::Journal(error) => return error.into(),
        MergeError::Cassette(error) => return error.into(),
        error => error,
    };
    let hint = match &error {
        MergeError::OntoItself(_) => "name another folder with `--out`".to_owned(),
        MergeError::OntoPart(..) => {
            "name another folder with `--out`, and this one among the parts".to_owned()
        }
        MergeError::TwoRuns { .. } => {
            "merge the parts of one scenario with one set of options, made by one version"
                .to_owned()
        }
        MergeError::TwoPrograms { .. } => {
            "run the parts again with the same program: each computes its cells anew".to_owned()
        }
        MergeError::TwoDivisions { one, .. } => format!(
            "merge parts that are divided alike, `{}:K/{}`; a folder that is a whole run fits any of them",
            one.1.by.name(),
            one.1.of
        ),
        MergeError::Running(_) => "wait until it ends, or end it: nothing was written".to_owned(),
        MergeError::Torn(folder, shard) => {
            let own = shard.as_ref().map(|shard| command(&shard.command, shard.part, Some(folder)));
            let command = own.unwrap_or_else(|| "the command that made it".to_owned());
            format!("`{command}` removes it and goes on")
        }
        MergeError::TwoCells { folders, .. } => format!(
            "leave out one of them: `{}` was run twice, with models or programs that answer differently; if it holds \
             what was merged before a part was run again, merge into a new folder",
            folders[1].display()
        ),
        MergeError::StrayCell { folder, .. } => {
            format!("`{}` was edited, or holds another run: make it again", folder.display())
        }
        _ => return error.into(),
    };
    let problem = super::chain(&error.into());
    CliError::new(Exit::Invalid, problem).with_hint(hint).into()
}
