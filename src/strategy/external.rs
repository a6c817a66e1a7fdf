//! Strategies outside Proctor: programs in any language that answer on standard output.
//!
//! The protocol is `docs/reference/external-strategies.md`; [`schema`] says the same as a JSON Schema. A program serves one
//! cell after the other: when a cell is over its process waits in [`Programs`] for the next one that runs the same
//! command. Everything that goes wrong is a [`ProgramError`], which ends the cell and no other.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Deserialize;

pub mod protocol;

mod contents;
mod lines;
mod loaded;
mod process;

pub(crate) use contents::edits_to;
pub(super) use contents::{AnswerReader, SentMessages, message_line, raw};
pub use lines::CallingProgram;
pub use loaded::LoadedFiles;
pub(crate) use process::ALWAYS;
pub(super) use process::Process;
pub use protocol::{Hello, PROTOCOL, schema};

use crate::process::Groups;

/// How the programs of a run are started: filled in by whoever reads the environment.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// The variables that every program gets.
    pub environment: BTreeMap<OsString, OsString>,
    /// Where each process gets an empty folder of its own.
    pub folder: PathBuf,
    /// The folders in which programs are found by their name.
    pub search: Vec<PathBuf>,
    /// Arguments that name files, with the absolute path that is passed instead.
    pub files: BTreeMap<String, PathBuf>,
    /// Decides in which order Python's sets are.
    pub hash_seed: u32,
    /// Where they are entered while they run.
    pub groups: Groups,
    /// The program that started this process, which is spoken to in place of any command.
    pub caller: Option<CallingProgram>,
}

/// A command with its limits, as the knobs of its stage set them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Launch {
    /// The program and its arguments, as written.
    pub(super) command: Vec<String>,
    /// Names of variables that it gets beside those of every program.
    pub(super) env: Vec<String>,
    /// For the answer to `hello`.
    pub(super) start_seconds: u64,
    /// For each other answer.
    pub(super) timeout_seconds: u64,
    /// Memory of its own.
    pub(super) memory_mb: u64,
    /// The longest line that is read.
    pub(super) line_mb: usize,
}

/// The processes of one strategy that wait for a cell; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    host: Option<Arc<Host>>,
    waiting: Arc<Mutex<Vec<Process>>>,
    /// The same programs, started so that sets have another order.
    shuffled: Arc<OnceLock<Box<Programs>>>,
}

impl Programs {
    /// Programs that are started so.
    pub fn on(host: Host) -> Self {
        Self { host: Some(Arc::new(host)), waiting: Arc::default(), shuffled: Arc::default() }
    }

    /// The same programs, in processes of their own in which sets have another order.
    pub(super) fn in_another_order(&self) -> Self {
        match &self.host {
            Some(host) if host.caller.is_none() => {
                let hash_seed = host.hash_seed + 1;
                let shuffled = self
                    .shuffled
                    .get_or_init(|| Box::new(Self::on(Host { hash_seed, ..Host::clone(host) })));
                Self::clone(shuffled)
            }
            _ => self.clone(),
        }
    }

    /// Whether it is known how to start a program.
    pub fn is_located(&self) -> bool {
        self.host.is_some()
    }

    /// A process that waits, or a new one.
    pub(super) fn take(&self, launch: &Launch) -> Result<Process, ProgramError> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let found = waiting.iter().position(|process| process.launch == *launch);
        if let Some(at) = found {
            return Ok(waiting.swap_remove(at));
        }
        drop(waiting);
        let Some(host) = &self.host else {
            return Err(ProgramError::NotLocated);
        };
        match &host.caller {
            Some(caller) => Process::of_caller(caller, launch),
            None => Process::start(host, launch),
        }
    }

    /// The files that the program of this command consists of now: as it says itself when it is started, else those that
    /// are seen. One that cannot be started consists of those, too.
    pub(super) fn loaded(&self, launch: &Launch) -> LoadedFiles {
        let Some(host) = &self.host else {
            return LoadedFiles::new();
        };
        // It is one process from the first cell to the last: nothing of it can be edited meanwhile.
        if host.caller.is_some() {
            return LoadedFiles::new();
        }
        let started = Process::start(host, launch);
        let said = started.map(|process| process.hello.files.clone()).unwrap_or_default();
        if said.is_empty() { loaded::below_folders(host, launch) } else { said }
    }

    /// The answer of this command's program to `hello`.
    pub(super) fn hello(&self, launch: &Launch) -> Result<Hello, ProgramError> {
        let process = self.take(launch)?;
        let hello = process.hello.clone();
        self.give_back(process);
        Ok(hello)
    }

    /// Takes a process back whose cell is over.
    pub(super) fn give_back(&self, process: Process) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(process);
    }
}

/// Why a program cannot go on: its cell ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// Nobody said how programs are started.
    #[error("the program was not located")]
    NotLocated,
    /// It cannot be started.
    #[error("`{program}` does not start: {why}")]
    Start {
        /// Its command.
        program: String,
        /// Why, in words.
        why: String,
        /// How to mend it.
        hint: String,
    },
    /// It ended, gave no answer in time, or one that does not fit what was asked.
    #[error("{problem}{}", behind(stderr))]
    Output {
        /// The mistake, in words.
        problem: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// It says itself that it cannot go on.
    #[error("the program gave up: {0}")]
    GaveUp(String),
}

impl ProgramError {
    /// The same failure of a program that was asked for nothing yet, without all of its standard error.
    fn at_start(self, program: &str) -> Self {
        let why = match self {
            Self::Output { problem, stderr } => problem + &last_words(stderr.trim()),
            other => return other,
        };
        let hint = format!(
            "`{program}` alone shows all that it prints; a program answers as \
             `docs/reference/external-strategies.md` says"
        );
        Self::Start { program: program.to_owned(), why, hint }
    }

    /// How to mend it.
    pub fn hint(&self) -> &str {
        match self {
            Self::Start { hint, .. } => hint,
            _ => "`proctor check` says which rule of the protocol a program breaks",
        }
    }

    /// The operating system does not start it.
    fn refused(program: &str, error: &io::Error) -> Self {
        let (why, hint) = match error.kind() {
            io::ErrorKind::NotFound => (
                "there is no such program".to_owned(),
                "check the name; a path starts at the working directory, or at the folder of the file that names it",
            ),
            io::ErrorKind::PermissionDenied => (
                "it is not executable".to_owned(),
                "`chmod +x FILE` makes it so; or name what runs it, as in `python3 FILE`",
            ),
            _ => (
                error.to_string(),
                "a script begins with a line such as `#!/usr/bin/env python3`; or name what runs it, as in `python3 FILE`",
            ),
        };
        let (program, hint) = (program.to_owned(), hint.to_owned());
        Self::Start { program, why, hint }
    }
}

/// The line of standard error that says most first, for tables cut what is long; then how to mend it, then the rest.
fn behind(stderr: &str) -> String {
    let text = stderr.trim();
    let words = last_words(text);
    if last_line(text).is_none_or(|last| last == text) {
        words
    } else {
        format!("{words}; all of it: {text}")
    }
}

/// The line of standard error that says most, and how to mend it.
fn last_words(text: &str) -> String {
    let Some(last) = last_line(text) else {
        return String::new();
    };
    let hint = if last.contains("proctor_strategy") && last.contains("Cannot find module") {
        "; copy `clients/typescript/proctor_strategy.js` beside the program"
    } else {
        ""
    };
    let ends = if last == text { "" } else { " ends with" };
    format!("; standard error{ends}: {last}{hint}")
}

/// The last line that is neither indented nor a mere sign, as `}`: Node prints the call stack and its version after the
/// error. Else the last that is not empty.
fn last_line(text: &str) -> Option<&str> {
    let said = text.lines().rev().find(|line: &&str| {
        line.starts_with(|first: char| !first.is_whitespace() && first != '}')
            && !line.starts_with("Node.js v")
    });
    said.or_else(|| text.lines().next_back()).map(str::trim)
}
