//! Reads sessions of many products: detection, and the rules every importer shares.
//!
//! An [`Importer`] turns one file of one format into [`Session`]s. [`load`] finds the importer by
//! the file's first bytes, or by the names in a [`Folder`] where a product keeps a session in many
//! files. What the importers share lies below: `lines` reads recordings line by line and
//! `documents` as whole JSON values, `conversations` finds the conversations in API logs
//! and `sketch` tells whose they are, `assemble` makes messages out of records, [`tool_names`]
//! knows what a tool does by its name.
//!
//! Nothing is lost silently. What is no part of the conversation is counted by type in
//! [`Source::skipped`](super::Source::skipped), what is not understood in `unknown`, what had to
//! be mended in `warnings`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{Session, SessionError};
use crate::session::native::Native;
use anthropic::Anthropic;
use claude_code::ClaudeCode;
use cline::Cline;
use codex::Codex;
use copilot_cli::CopilotCli;
use gemini_cli::GeminiCli;
use goose::Goose;
use iflow::IFlow;
use inspect::Inspect;
use langchain::LangChain;
use locomo::Locomo;
use longmemeval::LongMemEval;
use mini_swe_agent::MiniSweAgent;
use openai_chat::OpenAiChat;
use openai_responses::OpenAiResponses;
use opencode::Opencode;
use openhands::OpenHands;
use pi::Pi;
use request_log::RequestLog;
use swe_agent::SweAgent;
use tau_bench::TauBench;
use tau2::Tau2;

mod anthropic;
mod assemble;
mod bodies;
mod chats;
mod claude_code;
mod cline;
mod codex;
mod common;
mod content;
mod conversations;
mod copilot_cli;
mod documents;
mod folders;
mod forks;
mod gemini_cli;
pub mod glance;
mod goose;
mod images;
mod iflow;
mod inspect;
mod langchain;
mod left;
mod lenient;
pub(super) mod lines;
mod mini_swe_agent;
mod locomo;
mod longmemeval;
mod openai_chat;
mod openai_responses;
mod openhands;
mod opencode;
mod partial;
mod pi;
mod prelude;
mod pieces;
mod request_log;
mod requests;
mod sketch;
mod sqlite;
mod swe_agent;
mod tau2;
mod tau_bench;
pub mod tool_names;
mod truth;
mod unrecorded;

pub use folders::{Folder, SessionFiles};
pub use forks::{Beginnings, Repeated};
pub use truth::Recording;

/// Reads one format. A new format is one file here and one line in [`IMPORTERS`].
pub trait Importer: Sync {
    /// The format's name, as in `--format` and [`Source::format`](super::Source::format).
    fn format(&self) -> &'static str;

    /// Whether a file whose first bytes are `head` (up to 64 KiB, cut anywhere) is of this format.
    fn detect(&self, head: &[u8]) -> bool;

    /// Reads all sessions of one file: the main conversation first, then its side chains.
    ///
    /// `path` names the file in errors and gives the session ids their stem; it is never opened.
    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError>;

    /// Reads all sessions of one file with what the file asks about them; most ask nothing.
    fn import_with_truth(
        &self,
        path: &Path,
        input: &mut dyn BufRead,
    ) -> Result<Vec<Recording>, ImportError> {
        let sessions = self.import(path, input)?;
        Ok(sessions.into_iter().map(Recording::from).collect())
    }

    /// The folder that a file is the conversation of, where the rest of the session stands beside
    /// it; mostly none.
    fn folder_of(&self, _path: &Path) -> Option<Folder> {
        None
    }

    /// Whether a folder is a session of this format; most formats keep a session in one file.
    fn detect_folder(&self, _folder: &Folder) -> bool {
        false
    }

    /// Reads all sessions of a folder that is one.
    fn import_folder(
        &self,
        folder: &Folder,
        _files: &mut SessionFiles,
    ) -> Result<Vec<Session>, ImportError> {
        Err(ImportError::Directory {
            path: folder.path().to_owned(),
        })
    }
}

/// All formats, in the order in which they are tried.
pub static IMPORTERS: &[&dyn Importer] = &[
    &Native,
    &IFlow,
    &Locomo,
    &LongMemEval,
    &ClaudeCode,
    &Codex,
    &Pi,
    &SweAgent,
    &MiniSweAgent,
    &OpenHands,
    &Opencode,
    &CopilotCli,
    &Cline,
    &Goose,
    &GeminiCli,
    &TauBench,
    &LangChain,
    &Inspect,
    &Tau2,
    &OpenAiResponses,
    &Anthropic,
    &OpenAiChat,
    &RequestLog,
];

/// The largest file that is read, and the most that a folder or an archive may hold.
const MAX_FILE: u64 = 1 << 30;

/// How much of a file [`Importer::detect`] sees.
const HEAD: u64 = 64 * 1024;

/// The importer of that format, or `None` if there is none.
pub fn importer(format: &str) -> Option<&'static dyn Importer> {
    IMPORTERS
        .iter()
        .copied()
        .find(|importer| importer.format() == format)
}

/// Whether the folder at `path` is a session, rather than a folder of some.
pub fn is_session_folder(path: &Path) -> bool {
    Folder::open(path).is_ok_and(|folder| importer_of_folder(&folder).is_some())
}

fn importer_of_folder(folder: &Folder) -> Option<&'static dyn Importer> {
    let mut importers = IMPORTERS.iter().copied();
    importers.find(|importer| importer.detect_folder(folder))
}

/// Reads all sessions of the file at `path`, or of a folder that is one, whatever its format.
pub fn load(path: &Path) -> Result<Vec<Session>, ImportError> {
    let recordings = load_with_truth(path, None)?;
    Ok(recordings.into_iter().map(|it| it.session).collect())
}

/// Reads all sessions of the file or folder at `path`, which the user says is of the importer's
/// format.
pub fn load_as(path: &Path, importer: &dyn Importer) -> Result<Vec<Session>, ImportError> {
    let recordings = load_with_truth(path, Some(importer))?;
    Ok(recordings.into_iter().map(|it| it.session).collect())
}

/// Reads all sessions of the file or folder at `path` with what is known about them; without an
/// importer, whatever their format.
pub fn load_with_truth(
    path: &Path,
    importer: Option<&dyn Importer>,
) -> Result<Vec<Recording>, ImportError> {
    let known = |sessions: Vec<Session>| sessions.into_iter().map(Recording::from).collect();
    if path.is_dir() {
        let folder = Folder::open(path)?;
        let Some(importer) = importer.or_else(|| importer_of_folder(&folder)) else {
            return Err(ImportError::Directory {
                path: path.to_owned(),
            });
        };
        return importer
            .import_folder(&folder, &mut SessionFiles::new())
            .map(known);
    }
    let (head, mut input) = open(path)?;
    if path.metadata().is_ok_and(|it| it.len() > MAX_FILE) {
        return Err(ImportError::TooLarge {
            path: path.to_owned(),
            limit: MAX_FILE,
        });
    }
    if sqlite::is_database(&head) {
        return sqlite::load(path).map(known);
    }
    let Some(importer) = importer.or_else(|| claimant(&head)) else {
        return Err(unknown_format(path, &head));
    };
    if let Some(folder) = importer.folder_of(path) {
        return importer
            .import_folder(&folder, &mut SessionFiles::new())
            .map(known);
    }
    let mut recordings = importer.import_with_truth(path, &mut input)?;
    if importer.format() == Native.format()
        && let [recording] = &mut recordings[..]
    {
        truth::beside(path, recording)?;
    }
    Ok(recordings)
}

/// The importer that claims a file with these first bytes.
fn claimant(head: &[u8]) -> Option<&'static dyn Importer> {
    let mut importers = IMPORTERS.iter().copied();
    importers.find(|importer| importer.detect(head))
}

/// Opens a file and returns its first bytes, and a reader that starts with them again.
fn open(path: &Path) -> Result<(Vec<u8>, impl BufRead), ImportError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ImportError::NotFound {
            path: path.to_owned(),
        },
        io::ErrorKind::IsADirectory => ImportError::Directory {
            path: path.to_owned(),
        },
        _ => ImportError::Io {
            path: path.to_owned(),
            source,
        },
    };
    let mut file = File::open(path).map_err(failed)?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(ImportError::Directory {
            path: path.to_owned(),
        });
    }
    let mut head = Vec::new();
    (&mut file)
        .take(HEAD)
        .read_to_end(&mut head)
        .map_err(failed)?;
    if lines::strip_bom(&head).trim_ascii().is_empty() && (head.len() as u64) < HEAD {
        return Err(ImportError::Empty {
            path: path.to_owned(),
        });
    }
    let again = io::Cursor::new(head.clone());
    Ok((head, BufReader::with_capacity(1 << 16, again.chain(file))))
}

/// Says as much as the first bytes tell about a file that no importer wants.
fn unknown_format(path: &Path, head: &[u8]) -> ImportError {
    let path = path.to_owned();
    let start = lines::strip_bom(head).trim_ascii_start();
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        ImportError::Utf16 { path }
    } else if sqlite::is_named_so(&path) {
        ImportError::NoDatabase { path }
    } else if matches!(start.first(), Some(b'{' | b'[')) {
        ImportError::UnknownFormat { path }
    } else {
        ImportError::NotJson { path }
    }
}

/// Why a file is not read. Every variant names the file; most name the line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There is no such file.
    #[error("there is no file `{}`", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The path names a folder.
    #[error("`{}` is a folder, not a session", path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system refuses.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file holds no byte, or only white space.
    #[error("`{}` is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// No importer recognises the file.
    #[error("cannot tell the format of `{}`", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// Every format that can be read is JSON.
    #[error("`{}` is not JSON", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
    },
    /// Every format that can be read is UTF-8.
    #[error("`{}` is in UTF-16", path.display())]
    Utf16 {
        /// The file.
        path: PathBuf,
    },
    /// A database, which takes the feature `sqlite`.
    #[error(
        "`{}` is an SQLite database, which this build of Proctor cannot read",
        path.display()
    )]
    Database {
        /// The file.
        path: PathBuf,
    },
    /// The file is named as a database and is none.
    #[error("`{}` is named as an SQLite database and is none", path.display())]
    NoDatabase {
        /// The file.
        path: PathBuf,
    },
    /// The database cannot be read: it is cut, locked or damaged.
    #[error("`{}` cannot be read as an SQLite database: {problem}", path.display())]
    DamagedDatabase {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        problem: String,
    },
    /// A line is no JSON.
    #[error("`{}`: line {line}, column {column}: {problem}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The byte in the line, from 1.
        column: usize,
        /// What the JSON parser says.
        problem: String,
    },
    /// A line is JSON, but not what the format puts there: an unknown key, a number for a text.
    #[error("`{}`: line {line}, column {column}: {problem}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The byte in the line, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// The file ends within a line.
    #[error("`{}`: line {line}: the file ends within this line", path.display())]
    TornLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
    },
    /// A line is longer than any message can be.
    #[error("`{}`: line {line} is longer than {limit} bytes", path.display())]
    LongLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A file that is read as a whole is larger than memory should hold.
    #[error("`{}` is larger than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What is allowed.
        limit: u64,
    },
    /// Arrays and objects stand in each other deeper than any message needs.
    #[error("`{}`: line {line}: JSON nested deeper than {limit} levels", path.display())]
    Nesting {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is allowed.
        limit: usize,
    },
    /// A line is not UTF-8.
    #[error(
        "`{}`: line {line}: invalid UTF-8 at byte {column} of the line, byte {offset} of the file",
        path.display()
    )]
    Utf8 {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The first bad byte in the line, from 1.
        column: usize,
        /// The first bad byte in the file, from 0.
        offset: u64,
    },
    /// The file is of a later version of the native format.
    #[error(
        "`{}` is of version {found} of the session format; this build reads up to {supported}",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// What the file says.
        found: u64,
        /// What this build writes.
        supported: u64,
    },
    /// A recording without a single message.
    #[error("`{}` holds no conversation", path.display())]
    NoConversation {
        /// The file.
        path: PathBuf,
    },
    /// An archive cannot be unpacked.
    #[error("`{}` is a damaged archive: {problem}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A recording of something that is no conversation in texts.
    #[error("`{}` cannot be replayed: {what}", path.display())]
    NoMessages {
        /// The file.
        path: PathBuf,
        /// What it holds.
        what: &'static str,
    },
    /// The messages do not make a session.
    #[error("`{}` holds no valid session", path.display())]
    Session {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: SessionError,
    },
}

impl ImportError {
    /// Whether the file is no recording, or one in which nothing was said: among others in a folder
    /// it is passed over.
    pub fn is_no_recording(&self) -> bool {
        matches!(
            self,
            Self::NotJson { .. }
                | Self::Empty { .. }
                | Self::NoConversation { .. }
                | Self::NoMessages { .. }
                | Self::UnknownFormat { .. }
                | Self::Database { .. }
                | Self::NoDatabase { .. }
        )
    }

    /// How to mend it, where that can be said in general; printed on a line of its own.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotFound { .. } => Some(
                "check the path; patterns are expanded by the shell alone, and a folder stands for all recordings in it",
            ),
            Self::Directory { .. } => {
                Some("name a session in it; `proctor import --list FOLDER` says which there are")
            }
            Self::Empty { .. } | Self::NoConversation { .. } | Self::NoMessages { .. } => {
                Some("leave the file out; the product wrote nothing worth replaying")
            }
            Self::UnknownFormat { .. } => Some(
                "`proctor import --format NAME` reads it as that; `proctor import --help` lists the formats",
            ),
            Self::NotJson { .. } => {
                Some("session files are JSON or JSONL; unpack archives first, but for `.eval` logs")
            }
            Self::Database { .. } => Some(
                "install it with the feature: `cargo install proctor-bench --features sqlite`; \
                 or have the product export the session",
            ),
            Self::NoDatabase { .. } => {
                Some("check what the file is; one that was moved with its log beside it may be cut")
            }
            Self::DamagedDatabase { .. } => {
                Some("copy the database while the product is not running, and try the copy")
            }
            Self::Utf16 { .. } => Some("convert the file to UTF-8"),
            Self::Json { .. } => {
                Some("the line was cut or edited: restore it, or delete it to go on without it")
            }
            Self::Shape { .. } => Some(
                "compare the line with its neighbours; the format may be newer than this build",
            ),
            Self::TornLine { .. } => Some(
                "the file was cut while it was written: make it again, or delete its last line",
            ),
            Self::Archive { .. } => Some("get the file again; it was cut or changed"),
            Self::TooLarge { .. } => Some("split the file: one conversation per file"),
            Self::LongLine { .. } => Some("check that the file is one JSON object per line"),
            Self::Nesting { .. } => Some("delete the line: no product nests its records so deep"),
            Self::Utf8 { .. } => Some("the file is damaged at that byte: make it again"),
            Self::Version { .. } => Some("update Proctor"),
            Self::Io { .. } | Self::Session { .. } => None,
        }
    }
}
