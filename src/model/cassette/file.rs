//! A cassette as a file: read, appended to by several processes at once, put in order.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{CassetteError, Entry, FORMAT, VERSION};
use crate::files::{self, Readers};

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// Writes one answer at once. A first line says what the file is.
pub(super) fn append(path: &Path, entry: &Entry) -> io::Result<()> {
    let mut line = serde_json::to_vec(&serde_json::to_value(entry)?)?;
    line.push(b'\n');
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = locked(path)?;
    if file.metadata()?.len() == 0 {
        file.write_all(head().as_bytes())?;
    } else if !ends_whole(&mut file)? {
        // A line that broke off stays by itself, and is dropped when it is read.
        file.write_all(b"\n")?;
    }
    file.write_all(&line)
}

/// Where a cassette truly is: one that is shared may be named by a link.
fn target(path: &Path) -> std::path::PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The file, open for appending and locked until it is dropped.
pub(super) fn locked(path: &Path) -> io::Result<File> {
    let path = &target(path);
    loop {
        let file = files::open_own(path, OpenOptions::new().read(true).append(true))?;
        file.lock()?;
        if is_at(&file, path)? {
            return Ok(file);
        }
    }
}

/// Whether the path still leads to this file: the previous holder of the lock may have replaced it.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let id = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match std::fs::metadata(path) {
        Ok(now) => Ok(id(now) == id(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A file that is open cannot be replaced here.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

fn ends_whole(file: &mut File) -> io::Result<bool> {
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn head() -> String {
    format!("{{\"format\":\"{FORMAT}\",\"version\":{VERSION}}}\n")
}

fn at(path: &Path) -> impl Fn(io::Error) -> CassetteError + Copy {
    move |source| CassetteError::Io {
        path: path.to_owned(),
        source,
    }
}

/// A cassette, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// The answers, in the order of the file; of a key that is there twice, the last.
    pub entries: Vec<Entry>,
    /// Lines that are not entries: cut off by a crash.
    pub torn: usize,
}

/// Reads a cassette; one that is not there is empty.
pub fn read(path: &Path) -> Result<Contents, CassetteError> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(at(path))?,
    };
    // A line may have broken off in the middle of a character.
    let text = String::from_utf8_lossy(&bytes);
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    let mut torn = 0;
    for (line_at, line) in text.lines().enumerate() {
        if line_at == 0 {
            let head: Option<Head> = serde_json::from_str(line).ok();
            if head.is_some_and(|head| head.format == FORMAT && head.version <= VERSION) {
                continue;
            }
            let path = path.to_owned();
            return Err(CassetteError::NoCassette { path });
        }
        match serde_json::from_str::<Entry>(line) {
            Ok(entry) => {
                entries.insert(entry.key.clone(), entry);
            }
            // Half a line is not JSON; a whole line that is not an entry is a mistake.
            Err(error) if error.is_eof() || line.is_empty() => torn += 1,
            Err(source) => {
                return Err(CassetteError::BadLine {
                    path: path.to_owned(),
                    line: line_at + 1,
                    source,
                });
            }
        }
    }
    Ok(Contents {
        entries: entries.into_values().collect(),
        torn,
    })
}

/// Puts a cassette into its canonical form. What another process has kept there meanwhile stays.
pub(super) fn sort(path: &Path) -> Result<(), CassetteError> {
    // Held until the new file is in its place.
    let _lock = locked(path).map_err(at(path))?;
    write_sorted(path, &read(path)?.entries)
}

/// Writes entries in the canonical form.
pub fn write_sorted<'a>(
    path: &Path,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Result<(), CassetteError> {
    let at = at(path);
    let text = canonical(entries).map_err(|error| at(error.into()))?;
    let mut write = |out: &mut dyn io::Write| out.write_all(text.as_bytes());
    files::replace(&target(path), Readers::Owner, &mut write).map_err(at)
}

/// The canonical form: sorted by model, purpose and key, keys of objects sorted.
pub fn canonical<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
) -> Result<String, serde_json::Error> {
    let mut sorted: Vec<&Entry> = entries.into_iter().collect();
    sorted.sort_by_cached_key(|entry| (entry.model.clone(), entry.purpose, entry.key.clone()));
    let mut text = head();
    for entry in sorted {
        let mut value = serde_json::to_value(entry)?;
        value.sort_all_objects();
        text.push_str(&value.to_string());
        text.push('\n');
    }
    Ok(text)
}
