//! The files of lines in a run folder, and their errors.

use std::fs::{File, OpenOptions};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files;
use crate::files::lines::{self, CheckedLines, LineError};

use super::{JournalError, no_json, unreadable, unwritable};

/// Opens a file to add lines at its end, making it if it is not there.
pub(super) fn open(path: &Path) -> Result<File, JournalError> {
    let opened = files::open_own(path, OpenOptions::new().read(true).append(true));
    opened.map_err(unwritable(path))
}

/// Adds lines to a file and waits until they are on disk. What a crash left of lines is removed before.
pub(crate) fn append<T: Serialize>(path: &Path, added: &[T]) -> Result<(), JournalError> {
    mend(path)?;
    let lines = of(added, &path.display().to_string())?;
    let mut file = open(path)?;
    lines::add(&mut file, &lines).and_then(|()| file.sync_data()).map_err(unwritable(path))
}

/// Removes what a crash or a power cut left of lines, if the file exists.
pub(super) fn mend(path: &Path) -> Result<(), JournalError> {
    if !path.exists() {
        return Ok(());
    }
    lines::drop_zeroed(path).map_err(unwritable(path))?;
    lines::drop_half_a_line(&mut open(path)?).map_err(unwritable(path))
}

/// All whole lines of a file that may not be there.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, JournalError> {
    let mut items = Vec::new();
    let Some(mut lines) = CheckedLines::open(path).map_err(unreadable(path))? else {
        return Ok(items);
    };
    while let Some(item) = lines.read().map_err(refused(path))? {
        items.push(item);
    }
    Ok(items)
}

/// The error of a file that cannot be read, or of its line.
pub(super) fn refused(path: &Path) -> impl Fn(LineError) -> JournalError {
    move |error| match error {
        LineError::Io(source) => unreadable(path)(source),
        LineError::Damaged(line, source) => JournalError::BadLine(path.to_owned(), line, source),
    }
}

/// A line for each item, for a file or cell of this name.
pub(super) fn of<T: Serialize>(items: &[T], name: &str) -> Result<Vec<u8>, JournalError> {
    lines::of(items).map_err(no_json(name))
}
