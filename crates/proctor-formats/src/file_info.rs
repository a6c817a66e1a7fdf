//! The format and size of a recording and when it was written, from the two ends of its file.

use super::prelude::*;
use std::io::{Read, Seek, SeekFrom};

use super::{HEAD, importer_of_file, importer_of_folder, open, sqlite, unknown_format};
use proctor_sessions::files;

/// A recording that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// Its format; `sqlite` for a database of any product.
    pub format: &'static str,
    /// Its size; of a folder that is a session, that of all files in it.
    pub bytes: u64,
    /// The first time in the first 64 KiB.
    pub first: When,
    /// The last time in the last 64 KiB; of a compressed file, in its beginning.
    pub last: When,
}

/// Keys of times, as the products name them.
const KEYS: &str = "timestamp ts created created_at createdAt startTime start_time time_created";

/// How many bytes of either end are searched first.
const NEAR: usize = 4_096;

/// The format of the file at `path`, or of a folder that is a session, by its beginning; `sqlite` for a database of
/// any product.
pub fn format_of(path: &Path) -> Result<&'static str, ImportError> {
    if path.is_dir() {
        return Ok(importer_of_folder(path, &Folder::open(path)?)?.format());
    }
    let (head, _) = open(path)?;
    format_of_head(path, &head)
}

fn format_of_head(path: &Path, head: &[u8]) -> Result<&'static str> {
    if sqlite::is_database(head) {
        return Ok("sqlite");
    }
    Ok(importer_of_file(head).ok_or_else(|| unknown_format(path.to_owned(), head))?.format())
}

/// Looks at the file at `path`, or at a folder that is a session.
pub fn file_info(path: &Path) -> Result<FileInfo, ImportError> {
    if path.is_dir() {
        let folder = Folder::open(path)?;
        return Ok(FileInfo {
            format: importer_of_folder(path, &folder)?.format(),
            bytes: size_of(&folder),
            first: None,
            last: None,
        });
    }
    let (head, _) = open(path)?;
    let io = |source| ImportError::Io(path.to_owned(), source);
    let mut file = files::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len();
    let format = format_of_head(path, &head)?;
    let mut tail = Vec::new();
    let most = HEAD as u64;
    if bytes > most && !compressed::is_compressed(path) {
        file.seek(SeekFrom::Start(bytes - most)).map_err(io)?;
        file.take(most).read_to_end(&mut tail).map_err(io)?;
    }
    let end = if tail.is_empty() { &head } else { &tail };
    // There is nearly always a time near either end.
    let near = &head[..head.len().min(NEAR)];
    let first = times(near).next().or_else(|| times(&head).next());
    let near = &end[end.len().saturating_sub(NEAR)..];
    let last = times(near).last().or_else(|| times(end).last());
    Ok(FileInfo { format, bytes, first, last })
}

fn size_of(folder: &Folder) -> u64 {
    let sizes = folder.names().iter().map(|name| match folder.folder(name) {
        Some(inner) => size_of(&inner),
        None => folder.child(name).symlink_metadata().map_or(0, |metadata| metadata.len()),
    });
    sizes.sum()
}

/// The times in a part of a file that may be cut anywhere, in order.
fn times(bytes: &[u8]) -> impl Iterator<Item = Timestamp> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut found: Vec<(usize, Timestamp)> = Vec::new();
    for key in KEYS.split(' ') {
        let key = format!("\"{key}\"");
        for (at, _) in text.match_indices(&key) {
            found.extend(value_after(&text[at + key.len()..]).map(|time| (at, time)));
        }
    }
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, time)| time)
}

/// The time that follows a key.
fn value_after(text: &str) -> When {
    let value = text.trim_start().strip_prefix(':')?.trim_start();
    let end = match value.strip_prefix('"') {
        Some(inside) => inside.find('"')? + 2,
        None => value.find([',', '}', ']', '\n'])?,
    };
    let raw: &RawValue = serde_json::from_str(value.get(..end)?).ok()?;
    time(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[i64]) {
        let found: Vec<i64> = times(text.as_bytes()).map(|time| time.0).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn times_are_found_in_a_text_that_is_cut_anywhere() {
        check(
            r#"0Z"}{"timestamp": "1970-01-01T00:00:01Z","ts":2000000000000,"a":{"timestamp":null}} {"created":3}"#,
            &[1_000, 2_000_000_000_000, 3_000],
        );
        check(r#"{"timestamp":"yesterday","ts":{},"timestamp":"1970-"#, &[]);
        check(r#"the key "timestamp" is a word here"#, &[]);
    }
}
