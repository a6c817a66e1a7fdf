//! Finds recordings: named files, and the files in named folders.

use std::path::{Path, PathBuf};

use super::{CliError, Exit, say, stop_with};
use crate::report::display::many;
use crate::report::escape::plain;
use crate::runner::Plan;
use crate::scenario::SessionSource;
use crate::session::import::file_info::format_of;
use crate::session::import::{self, ImportError};

/// A session to read, a file or a folder, and whether it was named or found in a folder.
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) is_named: bool,
}

/// The files, and those in the folders, in the order of their paths. A folder that is a session is
/// read as one. Links are not followed into folders; hidden files and facts about sessions are skipped.
pub(super) fn inputs(paths: &[PathBuf]) -> Vec<anyhow::Result<Input>> {
    let mut inputs = Vec::new();
    for path in paths {
        if is_walked(path) {
            walk(path, &mut inputs);
        } else {
            let path = path.clone();
            let is_named = true;
            inputs.push(Ok(Input { path, is_named }));
        }
    }
    inputs
}

/// Whether the path is a folder that is not itself a session.
pub(super) fn is_walked(path: &Path) -> bool {
    path.is_dir() && !import::is_session_folder(path)
}

fn walk(folder: &Path, inputs: &mut Vec<anyhow::Result<Input>>) {
    let entries = std::fs::read_dir(folder)
        .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
        .map_err(|source| ImportError::Io(folder.to_owned(), source));
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => return inputs.push(Err(error.into())),
    };
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Facts about a session stand beside it.
        let is_hidden = name.starts_with('.') || name.ends_with(".truth.json");
        let path = entry.path();
        let is_named = false;
        match entry.file_type() {
            _ if is_hidden => {}
            Ok(kind) if kind.is_dir() && !import::is_session_folder(&path) => {
                walk(&path, inputs);
            }
            Ok(kind) if kind.is_dir() || path.is_file() => {
                inputs.push(Ok(Input { path, is_named }));
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// The recordings in a folder, and why other files were passed over. A file is recognised by its
/// beginning.
pub(super) fn recordings(folder: &Path) -> anyhow::Result<(Vec<PathBuf>, Vec<ImportError>)> {
    let mut inputs = Vec::new();
    walk(folder, &mut inputs);
    let (mut found, mut passed_over) = (Vec::new(), Vec::new());
    for input in inputs {
        let path = input?.path;
        match format_of(&path) {
            Ok(_) => found.push(path),
            Err(error) if is_something_else(&error) => passed_over.push(error),
            Err(error) => return Err(error.into()),
        }
    }
    Ok((found, passed_over))
}

/// How many skipped files a run names. A folder may hold a whole project.
const NAMED: usize = 10;

/// The error of a folder without a recording.
pub(super) fn no_recording(exit: Exit, place: &str, folder: &Path) -> CliError {
    let shown = plain(&folder.display().to_string());
    let problem = format!("{place}there is no recording in the folder `{shown}`");
    let hint = "`proctor import --list FOLDER` says what it sees in one";
    CliError::new(exit, problem).with_hint(hint)
}

/// The sources, all of which have to be there, with the recordings in a folder in place of the folder.
pub(super) fn found_in_folders(sources: Vec<SessionSource>) -> anyhow::Result<Vec<SessionSource>> {
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        let (path, place) = match &source {
            SessionSource::File(path, place) => (path, place),
            SessionSource::Found(_) | SessionSource::Synthetic(_) => {
                all.push(source);
                continue;
            }
        };
        let shown = plain(&path.display().to_string());
        if !path.exists() {
            let problem = format!("{place}: there is no session `{shown}`");
            let hint = "check the path; patterns are expanded by the shell alone, and a folder means all recordings in it";
            return stop_with(Exit::Invalid, problem, hint);
        } else if !is_walked(path) {
            all.push(source);
            continue;
        }
        let (found, passed_over) = recordings(path)?;
        if found.is_empty() {
            return Err(no_recording(Exit::Invalid, &format!("{place}: "), path).into());
        }
        all.extend(found.into_iter().map(SessionSource::Found));
        for error in passed_over.iter().take(NAMED) {
            say(&format!("passed over: {}", plain(&error.to_string())));
        }
        if passed_over.len() > NAMED {
            let files = many(passed_over.len(), "file", "files");
            say(&format!(
                "passed over in `{shown}`: {files} in all; `proctor import` names each"
            ));
        }
    }
    Ok(all)
}

/// Lists the files in folders that are not among a run's sessions, and counts the sessions that are
/// left out.
pub(super) fn say_passed_over(plan: &Plan) {
    for why in plan.passed_over() {
        say(&format!("passed over: {}", plain(why)));
    }
    for (reason, count) in &plan.manifest().left_out {
        let sessions = many(*count, "session", "sessions");
        say(&format!("left out: {sessions}: {}", plain(reason)));
    }
}

/// Whether a file, by its beginning, is something else than a recording.
pub(super) fn is_something_else(error: &ImportError) -> bool {
    error.is_no_recording() || matches!(error, ImportError::Utf16 { .. })
}
