//! `proctor sessions`: the recordings that agents left on this machine.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::find_sessions::{self, Input};
use super::{Exit, Result, models, print, say, show, stop_with, terminal_width};
use crate::report::display::{many, tokens};
use crate::report::escape::plain;
use crate::report::layout::cut_middle;
use crate::session::import::{ImportError, file_info::file_info, load};
use crate::session::{Session, Tag};
use crate::units::Timestamp;
use places::Start;

mod facts;
mod generate;
pub(super) mod import;
pub(super) mod places;

/// Arguments of `proctor sessions`.
#[derive(Debug, clap::Args)]
#[command(after_help = places::help(), args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<SessionsAction>,
    /// Show so many, the newest first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 16, value_parser = models::at_least_one)]
    limit: usize,
    /// Home folder in which to look, in place of your own; the current folder and environment variables are left out then
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum SessionsAction {
    /// Convert recordings to the native format, to that of a provider's API, to ATIF or OTLP
    Import(import::Args),
    /// Write synthetic sessions and the facts planted in them
    Generate(generate::Args),
    /// Derive facts to ask about from recordings, or check a file of facts
    Facts(facts::Args),
}

/// One line of the list: a conversation and its key figures.
#[derive(Serialize)]
struct Found {
    #[serde(skip)]
    path: PathBuf,
    file: String,
    format: String,
    /// Its id, where the file holds several conversations of the user's: a database.
    session: Option<String>,
    /// When the file was last written, in UTC; of several conversations in it, when this one went on last.
    written: String,
    bytes: u64,
    /// Conversations in the file: the user's, and those of sub-agents.
    sessions: usize,
    calls: usize,
    /// Tokens of the largest prompt that was billed.
    largest_prompt: Option<u64>,
    /// Compactions that the product made.
    compactions: usize,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    match &args.action {
        None => list(args),
        Some(SessionsAction::Import(args)) => import::run(args),
        Some(SessionsAction::Generate(args)) => generate::run(args),
        Some(SessionsAction::Facts(args)) => facts::run(args),
    }
}

fn list(args: &Args) -> Result<Exit> {
    let Some(home) = args.home.clone().or_else(std::env::home_dir) else {
        let hint = "name it: `proctor sessions --home DIR`";
        return stop_with(Exit::Usage, "there is no home folder".to_owned(), hint);
    };
    if args.home.is_some() && !home.is_dir() {
        let problem = format!("there is no folder `{}`", plain(&home.display().to_string()));
        let hint = "`--home` is a home folder, in which agents' own folders are, such as `.claude`";
        return stop_with(Exit::NothingSelected, problem, hint);
    }
    let start = Start::of_home(&home, args.home.is_none());
    let (found, older, rest, passed_over) = found_among(&files(&start), args.limit);
    if args.json {
        show(true, "proctor-sessions", json!({ "recordings": found }), "")?;
    } else {
        let width = found.iter().map(|one| one.format.len()).max().unwrap_or(0);
        for one in &found {
            let (figures, place) = (figures(one, width), place(one));
            print(&match terminal_width() {
                // The name of a file may be as long as a line.
                Some(columns) => format!("{figures}\n  {}\n", cut_middle(&place, columns - 2)),
                None => format!("{figures}  {place}\n"),
            })?;
        }
    }
    if older > 0 {
        let sessions = many(older, "older session", "older sessions");
        say!("{sessions} not shown: `-n` shows more");
    }
    if rest > 0 {
        let files = many(rest, "older file", "older files");
        say!("{files} not looked at: `-n` shows more");
    }
    if passed_over > 0 {
        let files = many(passed_over, "file", "files");
        say!("passed over: {files} without an answer of a model, or of no format that is read");
    }
    if found.is_empty() {
        let problem = "there is no recording that can be read where agents keep theirs";
        let hint = "`proctor run FOLDER` takes a folder with some; `proctor run` alone needs none";
        return stop_with(Exit::NothingSelected, problem, hint);
    }
    if !args.json {
        say("`proctor run FILE` replays one, and `proctor run FOLDER` all in a folder");
    }
    Ok(Exit::Done)
}

/// The newest recordings of this machine's agents.
pub(super) fn newest(limit: usize) -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let files = home.map_or_else(Vec::new, |home| files(&Start::of_home(&home, true)));
    let mut newest: Vec<PathBuf> = Vec::new();
    for one in found_among(&files, limit).0 {
        // A file may hold several.
        if !newest.contains(&one.path) {
            newest.push(one.path);
        }
    }
    newest
}

/// The newest conversations in these files, and how many older ones they hold, how many files were not looked at, and how
/// many hold none.
fn found_among(
    files: &[(Reverse<SystemTime>, PathBuf)],
    limit: usize,
) -> (Vec<Found>, usize, usize, usize) {
    let (mut found, mut passed_over, mut rest): (Vec<Found>, _, _) = (Vec::new(), 0, files);
    while !rest.is_empty() && !is_enough(&mut found, limit, rest) {
        let wanted = limit.saturating_sub(found.len()).max(1);
        let (batch, others) = rest.split_at(rest.len().min(wanted));
        rest = others;
        let looked: Vec<Vec<Found>> = batch.par_iter().map(look).collect();
        passed_over += looked.iter().filter(|found| found.is_empty()).count();
        found.extend(looked.into_iter().flatten());
    }
    found.sort_by(|one, two| two.written.cmp(&one.written));
    let older = found.len().saturating_sub(limit);
    found.truncate(limit);
    (found, older, rest.len(), passed_over)
}

/// The files at all places with the time at which each was written, the newest first. Says which folders cannot be read.
fn files(start: &Start<'_>) -> Vec<(Reverse<SystemTime>, PathBuf)> {
    let mut files = Vec::new();
    for Input { path, .. } in find_sessions::inputs(&start.places()) {
        match written(&path) {
            Some(at) => files.push((Reverse(at), path)),
            None => drop(look(&(Reverse(SystemTime::UNIX_EPOCH), path))),
        }
    }
    files.sort();
    files
}

/// Whether so many are found that no file of the rest holds a newer one: a database holds old conversations too.
fn is_enough(found: &mut [Found], limit: usize, rest: &[(Reverse<SystemTime>, PathBuf)]) -> bool {
    found.sort_by(|one, two| two.written.cmp(&one.written));
    let Some(last) = limit.checked_sub(1) else {
        return true;
    };
    let newest = rest.first().and_then(|(at, _)| in_utc(at.0));
    let last = found.get(last);
    last.is_some_and(|last| newest.is_none_or(|newest| last.written >= newest))
}

pub(super) fn in_utc(time: SystemTime) -> Option<String> {
    let time = jiff::Timestamp::try_from(time).ok()?;
    Some(format!("{time:.0}"))
}

/// The same of a time in a recording.
fn recorded_in_utc(time: Timestamp) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(time.0).ok()?;
    Some(format!("{time:.0}"))
}

/// The user's conversations in a file; none if it is no recording, or cannot be read.
fn look((written, path): &(Reverse<SystemTime>, PathBuf)) -> Vec<Found> {
    let sessions = match load(path) {
        Ok(sessions) => sessions,
        Err(error) => {
            if matches!(error, ImportError::Database(_)) || !error.is_no_recording() {
                say!("passed over: {error}");
            }
            if let (ImportError::Database(_), Some(hint)) = (&error, error.hint()) {
                say!(" hint: {hint}");
            }
            return Vec::new();
        }
    };
    let mut own: Vec<&Session> = sessions.iter().collect();
    own.retain(|session| !session.message(0).has_tag(Tag::Sidechain));
    if own.is_empty() {
        own.extend(sessions.first());
    }
    let several = own.len() > 1;
    let file = in_utc(written.0).unwrap_or_default();
    let found = own.into_iter().map(|session| {
        let mut times = session.messages().iter().rev();
        let time = times.find_map(|message| message.details.timestamp.filter(|_| several));
        let last = time.and_then(recorded_in_utc);
        Found {
            path: path.clone(),
            file: path.display().to_string(),
            format: session.source().format.clone(),
            session: several.then(|| session.id().to_owned()),
            written: last.unwrap_or_else(|| file.clone()),
            bytes: file_info(path).map_or(0, |info| info.bytes),
            sessions: sessions.len(),
            calls: session.calls().len(),
            largest_prompt: largest_prompt(session),
            compactions: session.compactions().len(),
        }
    });
    found.collect()
}

/// When a file, or any in a folder, was last written. Links are not followed.
pub(super) fn written(path: &Path) -> Option<SystemTime> {
    let about = path.symlink_metadata().ok()?;
    if !about.is_dir() {
        return about.modified().ok();
    }
    let entries = std::fs::read_dir(path).ok()?.flatten();
    entries.filter_map(|entry| written(&entry.path())).max()
}

fn largest_prompt(session: &Session) -> Option<u64> {
    let billed = session.messages().iter().filter_map(|message| message.details.usage);
    billed.map(|usage| usage.prompt().0).max()
}

/// The key figures of a conversation; `width` is that of the longest format.
fn figures(one: &Found, width: usize) -> String {
    let utc = one.written.replace('T', " ");
    let written = utc.get(..16).unwrap_or(&utc);
    let prompt = one.largest_prompt.map_or("?".to_owned(), tokens);
    let calls = many(one.calls, "call", "calls");
    let compactions = many(one.compactions, "compaction", "compactions");
    let format = &one.format;
    format!("{written}  {format:<width$} {calls:>11}, {compactions:>13}, up to {prompt:>6} tokens")
}

/// The file of a conversation, and its id where the file holds several.
fn place(one: &Found) -> String {
    let session = one.session.iter().map(|id| format!(", session {id}"));
    plain(&(one.file.clone() + &session.collect::<String>()))
}
