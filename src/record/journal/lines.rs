//! Files of JSON lines that are added to: what a crash left of a last line goes before more is added.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::{JournalError, damaged, no_json, private, unreadable, unwritable};

/// Bytes that are looked at together for the end of the last whole line.
const PIECE: usize = 8 * 1_024;

/// Opens a file to add whole lines to it, making it if it is not there. Half a line at its end is
/// taken away: a line behind it would be damaged by it, and the file could not be read again.
pub(super) fn open(path: &Path) -> Result<File, JournalError> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).read(true).write(true);
    let opened = private(options).open(path).and_then(|mut file| {
        let end = end_of_whole_lines(&mut file)?;
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        Ok(file)
    });
    opened.map_err(unwritable(path))
}

/// The byte behind the last line feed.
fn end_of_whole_lines(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut piece = [0; PIECE];
    while end > 0 {
        let start = end.saturating_sub(PIECE as u64);
        let length = usize::try_from(end - start).unwrap_or(PIECE);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut piece[..length])?;
        if let Some(at) = piece[..length].iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// All whole lines of a file that may not be there, each with its length in bytes.
pub(super) fn read_sized<T: DeserializeOwned>(path: &Path) -> Result<Vec<(T, u64)>, JournalError> {
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
        let length = read.map_err(unreadable(path))? as u64;
        // Without its line feed, the last line was cut off by a crash.
        if line.last() != Some(&b'\n') {
            return Ok(items);
        }
        let item = serde_json::from_slice(&line).map_err(damaged(path, items.len() + 1))?;
        items.push((item, length));
    }
}

/// The same, without the lengths.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, JournalError> {
    let items = read_sized(path)?.into_iter();
    Ok(items.map(|(item, _)| item).collect())
}

/// A line for each item, for a file of this name.
pub(super) fn of<T: serde::Serialize>(items: &[T], file: &str) -> Result<Vec<u8>, JournalError> {
    let mut bytes = Vec::new();
    for item in items {
        serde_json::to_writer(&mut bytes, item).map_err(no_json(file))?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.jsonl");
        fs::write(&path, before).unwrap();
        let mut file = open(&path).unwrap();
        file.write_all(b"2\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), after);
    }

    #[test]
    fn half_a_line_makes_way_for_a_whole_one() {
        check("", "2\n");
        check("1\n", "1\n2\n");
        check("1\n{\"a\":", "1\n2\n");
        check("{\"a\":", "2\n");
        // The last whole line ends before the piece that is looked at first, and at its edge.
        for more in [0, 1, 7] {
            let half = "x".repeat(PIECE + more);
            check(&format!("1\n{half}"), "1\n2\n");
            check(&half, "2\n");
        }
    }
}
