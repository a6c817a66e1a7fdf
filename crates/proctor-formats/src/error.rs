//! Why a recording cannot be read, and how to mend it.

use std::io;
use std::path::{Path, PathBuf};

use proctor_sessions::{Session, SessionError};

/// The result of reading something of a recording.
pub(crate) type Result<T, E = ImportError> = std::result::Result<T, E>;

/// The sessions of a file or folder, or why they are not read.
pub(crate) type Imported = Result<Vec<Session>>;

/// Why a file is not read. Every variant names the file; most name the line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There is no such file.
    #[error("there is no file `{}`", .0.display())]
    NotFound(PathBuf),
    /// The path names a folder.
    #[error("`{}` is a folder, not a session", .0.display())]
    Directory(PathBuf),
    /// A pipe, a socket or a device: it may never end, and cannot be read twice.
    #[error("`{}` is a pipe or a device, and no file", .0.display())]
    NoFile(PathBuf),
    /// The operating system refuses.
    #[error("cannot read `{}`", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// The file holds no byte, or only white space.
    #[error("`{}` is empty", .0.display())]
    Empty(PathBuf),
    /// No importer recognises the file: its content, in words.
    #[error("cannot tell the format of `{}`: it is {}", .0.display(), .1)]
    UnknownFormat(PathBuf, String),
    /// A recording of a product that is not read, and what to do instead.
    #[error("`{}` is a recording of {}, which is not read", .0.display(), .1)]
    UnreadProduct(PathBuf, &'static str, &'static str),
    /// Every format that can be read is JSON.
    #[error("`{}` is not JSON", .0.display())]
    NotJson(PathBuf),
    /// A database, which takes the feature `sqlite`.
    #[error("`{}` is an SQLite database, which this build of Proctor cannot read", .0.display())]
    Database(PathBuf),
    /// The file is named as a database and is none.
    #[error("`{}` has the name of an SQLite database but is not one", .0.display())]
    NoDatabase(PathBuf),
    /// The database is cut, locked or damaged.
    #[error("`{}` cannot be read as an SQLite database: {}", .0.display(), .1)]
    DamagedDatabase(PathBuf, String),
    /// The file is compressed, and what is in it is no recording.
    #[error("`{}` is compressed, and what is in it is no recording that can be read", .0.display())]
    Compressed(PathBuf),
    /// The file is an archive or a pointer: its kind, and how to get at the recording.
    #[error("`{}` is {}", .0.display(), .1)]
    Packed(PathBuf, &'static str, &'static str),
    /// The user named one format, and the file looks like another.
    #[error("`{}` is no recording of {}: it looks like {}", .0.display(), .1, .2)]
    OtherFormat(PathBuf, &'static str, &'static str),
    /// A line is not JSON: the line, and the byte in it, from 1; and the parser's message.
    #[error("`{}`: line {}, column {}: {}", .0.display(), .1, .2, .3)]
    Json(PathBuf, u64, usize, String),
    /// A line is JSON of another shape than the format's: an unknown key, a number for a text. The same, with the
    /// importer's message where the parser has none.
    #[error("`{}`: line {}, column {}: {}", .0.display(), .1, .2, .3)]
    Shape(PathBuf, u64, usize, String),
    /// A file of facts beside the recording, and what is wrong in it.
    #[error("`{}`: {}", .0.display(), .1)]
    Facts(PathBuf, String),
    /// The file ends within this line.
    #[error("`{}`: line {}: the file ends within this line", .0.display(), .1)]
    TornLine(PathBuf, u64),
    /// A row of a database has a text of more bytes than the limit: it is longer than any message can be.
    #[error("`{}`: a row: a text is longer than {} bytes", .0.display(), .1)]
    LongText(PathBuf, usize),
    /// The file has more bytes than the limit.
    #[error("`{}` holds more than {} bytes", .0.display(), .1)]
    TooLarge(PathBuf, u64),
    /// Arrays and objects are nested deeper than any message needs: line and limit.
    #[error("`{}`: line {}: JSON nested deeper than {} levels", .0.display(), .1, .2)]
    Nesting(PathBuf, u64, usize),
    /// A line is not UTF-8: the line, from 1; the first bad byte in it, from 1; and that in the file, from 0.
    #[error("`{}`: line {}: invalid UTF-8 at byte {} of the line, byte {} of the file", .0.display(), .1, .2, .3)]
    Utf8(PathBuf, u64, usize, usize),
    /// The file is of a later version of the native format: its version, and the latest one that
    /// can be read.
    #[error(
        "`{}` is of version {} of the session format; this build reads up to {}",
        .0.display(), .1, .2
    )]
    Version(PathBuf, u64, u64),
    /// A recording without a single message.
    #[error("`{}` holds no conversation", .0.display())]
    NoConversation(PathBuf),
    /// A database without a conversation in the tables that are read, and with these rows in others.
    #[error("`{}` holds no conversation in a table that is read, but rows in others: {}", .0.display(), .1)]
    UnreadTables(PathBuf, String),
    /// A file that looks like this format, and holds no answer of a model.
    #[error("`{}` looks like {}, and holds no answer of a model", .0.display(), .1)]
    NoAnswer(PathBuf, &'static str),
    /// A file that looks like this format, of which most is not understood: what, and how often.
    #[error("`{}` looks like {}, but most of it is not understood: {}", .0.display(), .1, .2)]
    NotUnderstood(PathBuf, &'static str, String),
    /// An archive cannot be unpacked.
    #[error("`{}` is a damaged archive: {}", .0.display(), .1)]
    Archive(PathBuf, String),
    /// A recording of something that is not a conversation in texts.
    #[error("`{}` cannot be replayed: {}", .0.display(), .1)]
    NoMessages(PathBuf, &'static str),
    /// The messages do not make a session.
    #[error("`{}` holds no valid session", .0.display())]
    Session(PathBuf, #[source] SessionError),
}

impl ImportError {
    /// Whether the file is not a recording, or an empty one: found in a folder, it is passed over.
    pub fn is_no_recording(&self) -> bool {
        matches!(
            self,
            Self::NotJson(_)
                | Self::Empty(_)
                | Self::NoConversation(_)
                | Self::UnreadTables(..)
                | Self::NoMessages(..)
                | Self::NoAnswer(..)
                | Self::NotUnderstood(..)
                | Self::UnknownFormat(..)
                | Self::UnreadProduct(..)
                | Self::Compressed(_)
                | Self::Packed(..)
                | Self::Database(_)
                | Self::NoDatabase(_)
        )
    }

    /// The error of a file that cannot be opened or read, for this reason.
    pub(crate) fn unopened(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path.into()),
            io::ErrorKind::IsADirectory => Self::Directory(path.into()),
            io::ErrorKind::NotSeekable => Self::NoFile(path.into()),
            _ => Self::Io(path.into(), source),
        }
    }

    /// How to mend it, where that can be said in general; printed on a line of its own.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Session(..) => {
                "its messages break a rule of docs/reference/session-format.md: make the file again, or mend it"
            }
            Self::Io(_, cause) => match cause.kind() {
                io::ErrorKind::PermissionDenied => {
                    "make it readable for the user that runs this, or move it elsewhere"
                }
                io::ErrorKind::NotFound => "it is a link to nothing, or was removed just now",
                _ => "check it with another program; it may be a link to itself, or damaged",
            },
            Self::NotFound(_) => {
                "check the path; patterns are expanded by the shell alone, \
                 and a folder stands for all recordings in it"
            }
            Self::NoFile(_) => "write what it gives to a file, and name that",
            Self::Directory(_) => {
                "name a session in it; `proctor sessions import --list FOLDER` says which there are"
            }
            Self::Empty(_) | Self::NoConversation(_) | Self::NoMessages(..) => {
                "leave the file out; the product wrote nothing worth replaying"
            }
            Self::UnreadTables(..) => {
                "it may be of a newer version than this build: have the product export the session"
            }
            Self::NoAnswer(..) | Self::NotUnderstood(..) => {
                "it may be of another product, or of a newer version: `proctor sessions import --format NAME` \
                 reads it as that all the same"
            }
            Self::UnknownFormat(..) => {
                "a recording has the messages or requests of an agent; `proctor sessions` lists those on this machine, \
                 and `proctor sessions import --format NAME` reads one whose beginning is lost"
            }
            Self::UnreadProduct(_, _, hint) | Self::Packed(_, _, hint) => hint,
            Self::NotJson(_) => "session files are JSON or JSONL",
            Self::OtherFormat(..) => "leave `--format` out, or name the format that it has",
            Self::Compressed(_) => "unpack it: databases and folders are read unpacked alone",
            Self::Database(_) => {
                "install it with the feature: `cargo install proctor-bench --features sqlite`; \
                 or have the product export the session"
            }
            Self::NoDatabase(_) => {
                "check what the file is; one that was moved with its log beside it may be cut"
            }
            Self::DamagedDatabase(..) => {
                "copy the database while the product is not running, and try the copy"
            }
            Self::Json(..) => {
                "the line was cut or edited: restore it, or delete it to go on without it"
            }
            Self::Shape(..) => {
                "compare the line with its neighbours; the format may be newer than this build"
            }
            Self::Facts(..) => {
                "`proctor sessions facts --check FILE --session RECORDING` lists each mistake in it with its line"
            }
            Self::TornLine(..) => {
                "the file was cut while it was written: make it again, or delete what stands behind the last whole \
                 item and close the brackets that are open"
            }
            Self::Archive(..) => "get the file again; it was cut or changed",
            Self::TooLarge(..) => "split the file: one conversation per file",
            Self::LongText(..) => "shorten the text; no model reads one of this length",
            Self::Nesting(..) => {
                "remove the value that is nested too deep: nothing else in the file could be read"
            }
            Self::Utf8(..) => "the file is damaged at that byte: make it again",
            Self::Version(..) => "update Proctor",
        })
    }
}
