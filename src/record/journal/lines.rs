//! Files of JSON lines that are added to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files;

use super::{JournalError, damaged, no_json, unreadable, unwritable};

/// Opens a file to add lines at its end, making it if it is not there.
pub(super) fn open(path: &Path) -> Result<File, JournalError> {
    let opened = files::open_own(path, OpenOptions::new().append(true));
    opened.map_err(unwritable(path))
}

/// Adds lines to a file and waits until they are on disk. Half a line at its end is removed before.
pub(crate) fn append<T: Serialize>(path: &Path, added: &[T]) -> Result<(), JournalError> {
    drop_half_a_line(path)?;
    let lines = of(added, &path.display().to_string())?;
    let mut file = open(path)?;
    let written = file.write_all(&lines).and_then(|()| file.sync_data());
    written.map_err(unwritable(path))
}

/// Removes the rest of a last line after a crash, if the file exists: a line appended to it would
/// be damaged, and the file could not be read again.
pub(super) fn drop_half_a_line(path: &Path) -> Result<(), JournalError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(unreadable(path)(source)),
    };
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let whole = end.map_or(0, |end| end + 1);
    if whole == bytes.len() {
        return Ok(());
    }
    let cut = open(path)?.set_len(whole as u64);
    cut.map_err(unwritable(path))
}

/// All whole lines of a file that may not be there.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, JournalError> {
    let mut reader = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(unreadable(path)(source)),
    };
    let mut items = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line);
        read.map_err(unreadable(path))?;
        // Without its line feed, the last line was cut off by a crash.
        if line.last() != Some(&b'\n') {
            return Ok(items);
        }
        items.push(serde_json::from_slice(&line).map_err(damaged(path, items.len() + 1))?);
    }
}

/// A line for each item, for a file or cell of this name.
pub(super) fn of<T: Serialize>(items: &[T], name: &str) -> Result<Vec<u8>, JournalError> {
    let mut bytes = Vec::new();
    for item in items {
        serde_json::to_writer(&mut bytes, item).map_err(no_json(name))?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}
