//! Reads sessions of many products: detection, and the rules every importer shares.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::{Session, SessionError};

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
}

/// All formats, in the order in which they are tried.
pub static IMPORTERS: &[&dyn Importer] = &[];

/// Reads all sessions of the file at `path`, whatever its format.
pub fn load(path: &Path) -> Result<Vec<Session>, ImportError> {
    Err(ImportError::UnknownFormat {
        path: path.to_owned(),
    })
}

/// Why a file is not read. Every variant names the file; most name the line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// No importer recognises the file.
    #[error("cannot tell the format of `{}`", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
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
