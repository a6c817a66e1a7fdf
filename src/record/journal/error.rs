//! Why a run folder cannot be used, and how that is mended.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use super::Partition;
use crate::files::checked::Damage;

/// Why a run folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A file cannot be read.
    #[error("cannot read `{}`", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// A file cannot be written.
    #[error("cannot write `{}`", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// A line, counted from 1, is not what was written.
    #[error("`{}`: line {} is damaged", .0.display(), .1)]
    BadLine(PathBuf, usize, #[source] Damage),
    /// The manifest is not what was written.
    #[error("`{}` is damaged", .0.display())]
    Damaged(PathBuf, #[source] Damage),
    /// The folder of the run was removed or replaced while it was open.
    #[error("the run folder `{}` was removed or replaced while the run went on", .0.display())]
    Gone(PathBuf),
    /// The folder is in use.
    #[error("another process is running in `{}`", .0.display())]
    Locked(PathBuf),
    /// The folder holds files, and none of a run.
    #[error("the folder `{}` holds other files, and no run", .0.display())]
    OtherFiles(PathBuf),
    /// The folder holds another run.
    #[error("`{}` holds run {holds}, and this is run {wanted}: name another folder", folder.display())]
    AnotherRun {
        /// The folder.
        folder: PathBuf,
        /// Fingerprint of what is there.
        holds: String,
        /// Fingerprint of what was to be run.
        wanted: String,
    },
    /// The folder holds another part of the run.
    #[error("`{}` holds part {holds} of the run, and this is part {wanted}: name another folder", folder.display())]
    AnotherShard {
        /// The folder.
        folder: PathBuf,
        /// The part that is there.
        holds: Partition,
        /// The part that was to be run.
        wanted: Partition,
    },
    /// The part that a folder says it is cannot be one.
    #[error("`{}`: {}", .0.display(), .1)]
    NoPart(PathBuf, String),
    /// The folder holds no run at all.
    #[error("`{}` is not a file of a run", .0.display())]
    NoRun(PathBuf),
    /// The folder was written by a newer Proctor, in this version of the format.
    #[error(
        "`{}` has format version {}, and this build reads up to {}: use a newer proctor",
        .0.display(),
        .1.map_or_else(|| "?".to_owned(), |version| version.to_string()),
        .2
    )]
    Newer(PathBuf, Option<u64>, u32),
    /// A record, named by its cell or file, cannot be written as JSON.
    #[error("cannot write `{0}` as JSON")]
    Unwritable(String, #[source] serde_json::Error),
}

impl JournalError {
    /// How it is mended.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::BadLine(_, _, Damage::NoChecksum) | Self::Damaged(_, Damage::NoChecksum) => Some(
                "it was edited, or another program wrote it: the same command with another `--out` makes it again, \
                 and a copy of `cassette.jsonl` beside it saves asking for answers again"
                    .to_owned(),
            ),
            Self::BadLine(_, line, _) => Some(format!(
                "delete line {line}: the command that wrote it makes it again"
            )),
            Self::Damaged(..) => {
                Some("delete it: the same `proctor run` writes it again, and keeps the cells".to_owned())
            }
            Self::Unreadable(..) => {
                Some("a run folder is what `proctor run` names when it is done".to_owned())
            }
            Self::OtherFiles(_) => Some("name a new folder: a run has one of its own".to_owned()),
            Self::NoRun(_) => Some("it is another program's: name another folder".to_owned()),
            Self::Io(_, cause)
                if matches!(cause.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory) =>
            {
                Some("name a new folder: there is a file of this name".to_owned())
            }
            Self::Io(..) => {
                Some("make the folder first, or name a place where files can be written".to_owned())
            }
            _ => None,
        }
    }
}
