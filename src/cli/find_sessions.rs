//! Finds recordings: named files, and the files in named folders.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::sessions::places;
use super::{CliError, Exit, Result, listed, stop_with};
use crate::report::display::many;
use crate::report::escape::plain;
use crate::runner::{Plan, PlanError};
use crate::scenario::{Scenario, SessionSource};
use crate::session::import::file_info::format_of;
use crate::session::import::{self, ImportError};
use crate::settings::Place;

/// A session to read, a file or a folder, and whether it was named or found in a folder.
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) is_named: bool,
}

/// The files, and those in the folders, in the order of their paths. A folder that is a session is
/// read as one, and so is one that cannot be opened: the error says so. Links are not followed into
/// folders; hidden files are skipped, but for the places where products keep recordings of a project, and so
/// are facts about sessions.
pub(super) fn inputs(paths: &[PathBuf]) -> Vec<Input> {
    let mut inputs = Vec::new();
    for path in paths {
        if is_walked(path) {
            walk(path, true, &mut inputs);
        } else {
            inputs.push(Input { path: path.clone(), is_named: true });
        }
    }
    inputs
}

/// Whether the path is a folder that is not itself a session.
pub(super) fn is_walked(path: &Path) -> bool {
    path.is_dir() && !import::is_session_folder(path)
}

fn walk(folder: &Path, is_named: bool, inputs: &mut Vec<Input>) {
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let Ok(mut entries) = entries else {
        return inputs.push(Input { path: folder.to_owned(), is_named });
    };
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let (file_name, path) = (entry.file_name(), entry.path());
        let name = file_name.to_string_lossy();
        if name.starts_with('.') {
            let places = places::in_project(&name);
            for place in places.filter(|place| **place == name || !path.is_symlink()) {
                add(folder.join(place), inputs);
            }
        } else if !name.ends_with(".truth.json") {
            // Facts about a session stand beside it.
            add(path, inputs);
        }
    }
}

/// Adds a file that is in a folder, or the files in a folder that is.
fn add(path: PathBuf, inputs: &mut Vec<Input>) {
    match path.symlink_metadata() {
        Ok(about) if about.is_dir() && !import::is_session_folder(&path) => {
            walk(&path, false, inputs);
        }
        // A link to nothing or to itself is named, and not followed.
        Ok(about) if about.is_dir() || path.is_file() || path.metadata().is_err() => {
            inputs.push(Input { path, is_named: false });
        }
        // A pipe, or a link to a folder.
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(_) => inputs.push(Input { path, is_named: false }),
    }
}

/// The recordings in a folder, and why other files are none. A file that cannot be opened counts as a recording: reading
/// it says why.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    pub(super) recordings: Vec<PathBuf>,
    pub(super) passed_over: Vec<ImportError>,
}

/// The recordings in a folder. A file is recognised by its beginning.
pub(super) fn recordings(folder: &Path) -> Result<FoundFiles, ImportError> {
    let mut inputs = Vec::new();
    walk(folder, true, &mut inputs);
    sorted(inputs, |path| format_of(path).map(|_| ()))
}

/// Tells recordings from other files: `look` looks at the beginning of one.
fn sorted(
    inputs: Vec<Input>,
    look: impl Fn(&Path) -> Result<(), ImportError>,
) -> Result<FoundFiles, ImportError> {
    let mut found = FoundFiles::default();
    for Input { path, is_named } in inputs {
        match look(&path) {
            Err(error) if is_named => return Err(error),
            Err(error) if error.is_no_recording() => found.passed_over.push(error),
            Ok(()) | Err(_) => found.recordings.push(path),
        }
    }
    Ok(found)
}

/// Fails where a file that was found in a folder, or named, cannot be opened or is no recording.
pub(super) fn all_open(sources: &[SessionSource]) -> Result<(), ImportError> {
    for source in sources {
        if let SessionSource::File(path, _) = source {
            format_of(path)?;
        }
    }
    Ok(())
}

/// How many skipped files a run names. A folder may hold a whole project.
const NAMED: usize = 10;

/// The error of a folder without a recording.
pub(super) fn no_recording(exit: Exit, place: &str, folder: &Path) -> CliError {
    let shown = plain(&folder.display().to_string());
    let problem = format!("{place}there is no recording in the folder `{shown}`");
    let hint = "`proctor sessions import --list FOLDER` says what it sees in one; most hidden folders in it are \
                not looked into: name the one that holds recordings";
    CliError::new(exit, problem).with_hint(hint)
}

/// The sources, all of which have to be there, with the recordings in a folder in place of the folder.
pub(super) fn found_in_folders(sources: Vec<SessionSource>) -> Result<Vec<SessionSource>> {
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        let SessionSource::File(path, Some(place)) = &source else {
            all.push(source);
            continue;
        };
        let shown = plain(&path.display().to_string());
        if !path.exists() {
            let problem = match place {
                Place::Flag(typed) => {
                    let session = typed.strip_prefix("--session ").unwrap_or(typed);
                    format!("there is no session `{}`", plain(session))
                }
                place => format!("{place}: there is no session `{shown}`"),
            };
            let hint = "check the path; patterns are expanded by the shell alone, and a folder means all recordings in it";
            return stop_with(Exit::Invalid, problem, hint);
        } else if !is_walked(path) {
            all.push(source);
            continue;
        }
        let found = recordings(path)?;
        if found.recordings.is_empty() {
            let place = match place {
                Place::Flag(_) => String::new(),
                place => format!("{place}: "),
            };
            return Err(no_recording(Exit::Invalid, &place, path).into());
        }
        let recordings = found.recordings.into_iter();
        all.extend(recordings.map(|path| SessionSource::File(path, None)));
        let others = found.passed_over.iter().map(ToString::to_string);
        say_each(&others.collect::<Vec<_>>(), &format!(" in `{shown}`"));
    }
    Ok(all)
}

/// Names files that were passed over; of many, the first, and how many there are.
fn say_each(passed_over: &[String], place: &str) {
    for why in passed_over.iter().take(NAMED) {
        say!("passed over: {why}");
    }
    if passed_over.len() > NAMED {
        let files = many(passed_over.len(), "file", "files");
        say!("passed over{place}: {files} in all; `proctor sessions import` names each");
    }
}

/// The plan of a scenario; says what of its folders is not in it.
pub(super) fn plan(scenario: Scenario) -> Result<Plan, PlanError> {
    let plan = Plan::new(scenario)?;
    say_passed_over(&plan);
    Ok(plan)
}

/// Lists the files in folders that are not among a run's sessions, and counts the sessions that are
/// left out.
pub(super) fn say_passed_over(plan: &Plan) {
    for lost in plan.lost_lines().iter().take(NAMED) {
        say!("!! {lost}");
    }
    say_each(plan.passed_over(), "");
    let kinds = &plan.scenario().selection.kinds;
    let mut entries = plan.manifest().sessions.iter();
    if !kinds.is_empty() && entries.all(|entry| entry.items == 0) {
        let kinds = listed(kinds.iter().map(|kind| kind.name()));
        say!("!! no session has facts of the kinds in `probes.kinds`: {kinds}");
    }
    if let Some(unused) = plan.unused_prices() {
        say!("!! {unused}");
    }
    for (reason, count) in &plan.manifest().left_out {
        let sessions = many(*count, "session", "sessions");
        say!("left out: {sessions}: {reason}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_in_a_folder_may_be_a_recording_and_where_it_is_named_is_an_error() {
        let look = |path: &Path| match path.to_str() {
            Some("closed") => {
                let denied = std::io::ErrorKind::PermissionDenied.into();
                Err(ImportError::Io(path.to_owned(), denied))
            }
            Some("notes.txt") => Err(ImportError::NotJson(path.to_owned())),
            _ => Ok(()),
        };
        let inputs = |is_named: bool| {
            let paths = ["chat.json", "closed", "notes.txt"].map(PathBuf::from);
            paths.map(|path| Input { path, is_named }).into_iter().collect::<Vec<_>>()
        };
        let found = sorted(inputs(false), look).unwrap();
        assert_eq!(found.recordings, ["chat.json", "closed"].map(PathBuf::from));
        assert_eq!(found.passed_over.len(), 1);
        let error = sorted(inputs(true), look).unwrap_err();
        assert_eq!(error.to_string(), "cannot read `closed`");
        assert!(error.hint().unwrap().contains("readable"), "{error:?}");
    }
}
