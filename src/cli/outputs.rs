//! Files that a command is told to write: where they can be, and what they never take the place of.

use std::ffi::OsStr;
use std::path::Path;

use super::{Exit, Result, has_ending, report, stop_with};
use crate::compare::baseline;
use crate::files;
use crate::record::journal::{MANIFEST, check_writable, is_part_of_run};
use crate::report::escape::shell;
use crate::session::ground_truth::GroundTruth;
use crate::session::import::{self, file_info::format_of};

/// Refuses a file that cannot be written, whose folder is not there, or that would take the place of an input.
pub(super) fn check(path: &Path) -> Result<()> {
    if report::is_stdout(path) {
        return Ok(());
    }
    refuse_input(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(check_writable(path)?);
    }
    let problem =
        format!("cannot write `{}`: there is no folder `{}`", path.display(), folder.display());
    let hint = format!("`mkdir -p {}` makes it", shell(&folder.display().to_string()));
    stop_with(Exit::NotWritten, problem, hint)
}

/// Refuses a file that a command reads: one that this command names twice, a recording, a baseline, facts, or a part
/// of a run. A link is what it leads to.
fn refuse_input(path: &Path) -> Result<()> {
    let Some(input) = input_at(path) else {
        return Ok(());
    };
    let problem = format!("`{}` is {input}, and would be overwritten", path.display());
    stop_with(Exit::Usage, problem, "name another file to write")
}

/// The kind of input that is at this path.
fn input_at(path: &Path) -> Option<&'static str> {
    let found = path.canonicalize();
    let target = found.as_deref().unwrap_or(path);
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = target.file_name()?.to_string_lossy();
    if is_part_of_run(&name) && folder.unwrap_or(Path::new(".")).join(MANIFEST).is_file() {
        return Some("part of a run");
    }
    let there = found.ok().filter(|path| path.is_file())?;
    if std::env::args_os().skip(1).filter(|word| names(word, &there)).count() > 1 {
        return Some("named twice in this command");
    }
    let mut own = [(baseline::FORMAT, "a baseline"), (GroundTruth::FORMAT, "a file of facts")]
        .into_iter()
        .filter(|(format, _)| is_of_format(&there, format));
    if let Some((_, kind)) = own.next() {
        return Some(kind);
    }
    let toml = has_ending(&there, "toml").then(|| files::read_to_string(&there));
    if toml.is_some_and(|text| text.is_ok_and(|text| is_scenario(&text))) {
        return Some("a scenario");
    }
    // A trace that Proctor wrote is of a known format, and holds no session.
    (format_of(&there).is_ok() && import::load(&there).is_ok()).then_some("a recording")
}

/// Whether these settings are those of a scenario: a preset has stages, and neither sessions nor strategies.
fn is_scenario(text: &str) -> bool {
    let table: toml::Table = text.parse().unwrap_or_default();
    ["sessions", "strategies"].iter().any(|key| table.contains_key(*key))
}

/// Whether a word of the command line, its value, or a word of the command in it, leads to this file.
fn names(typed: &OsStr, file: &Path) -> bool {
    let word = typed.to_string_lossy();
    let value = word.split_once('=').map(|(_, value)| value);
    let attached = word.strip_prefix("-o");
    let mut parts = [Some(&*word), value, attached].into_iter().flatten();
    parts.any(|part| {
        let mut paths = std::iter::once(part).chain(part.split_whitespace());
        paths.any(|path| Path::new(path).canonicalize().is_ok_and(|path| path == file))
    })
}

/// Whether a file is, whole or damaged, JSON of this format of Proctor's.
pub(super) fn is_of_format(path: &Path, format: &str) -> bool {
    let text = has_ending(path, "json").then(|| files::read_to_string(path));
    text.is_some_and(|text| text.is_ok_and(|text| text.contains(&format!("\"{format}\""))))
}
