//! Databases in which a product keeps all its sessions. Told by the file's first bytes, and whose
//! they are by their tables.
//!
//! A database is opened for reading only and as one that does not change, so that not even a lock
//! is left beside it. What the product has not yet moved from its log into the database is laid
//! over it in memory; a log that cannot be read so is counted. Reading takes the feature `sqlite`;
//! without it a database is refused by its name.

use super::prelude::*;

/// The first bytes of every such database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// How databases are named.
const EXTENSIONS: &[&str] = &["db", "sqlite", "sqlite3"];

/// Whether a file with these first bytes is a database.
pub(super) fn is_database(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Whether the name of the file says that it is a database.
pub(super) fn is_named_so(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()))
}

/// Reads all sessions of the database at `path`.
#[cfg(not(feature = "sqlite"))]
pub(super) fn load(path: &Path) -> Imported {
    Err(ImportError::Database(path.to_owned()))
}

#[cfg(feature = "sqlite")]
pub(super) use reading::load;

#[cfg(feature = "sqlite")]
mod log;
#[cfg(feature = "sqlite")]
pub(super) mod reading;
