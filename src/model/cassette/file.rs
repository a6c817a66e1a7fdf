//! A cassette as a file: read, appended to by several processes at once, put in order.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{CassetteEntry, CassetteError, FORMAT, VERSION};
use crate::files::lines::{self, CheckedLines, LineError};
use crate::files::{self, Readers};
use crate::model::Purpose;

#[derive(Serialize, Deserialize)]
struct CassetteHead {
    format: String,
    version: u32,
}

/// Writes one answer at once. A first line says what the file is.
pub(super) fn append(path: &Path, entry: &CassetteEntry) -> io::Result<()> {
    let line = lines::of(&[sorted(entry)?])?;
    // Of a name without a folder it is empty, and there.
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = locked(path)?;
    lines::drop_half_a_line(&mut file)?;
    if file.metadata()?.len() == 0 {
        lines::add(&mut file, &head()?)?;
    }
    lines::add(&mut file, &line)
}

/// Where a cassette truly is: one that is shared may be named by a link.
fn target(path: &Path) -> std::path::PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The file, open for appending and locked until it is dropped, where the file system knows locks.
pub(super) fn locked(path: &Path) -> io::Result<File> {
    let path = &target(path);
    loop {
        let file = files::open_own(path, OpenOptions::new().read(true).append(true))?;
        match file.lock() {
            Err(error) if !files::has_no_locks(&error) => return Err(error),
            _ => {}
        }
        if files::is_at(&file, path)? {
            return Ok(file);
        }
    }
}

/// Removes the lines that a power cut left as zeros. Where the first one was among them, it is written again.
pub(super) fn drop_zeroed(path: &Path) -> Result<(), CassetteError> {
    if !path.exists() {
        return Ok(());
    }
    let lock = locked(path).map_err(at(path))?;
    lines::drop_zeroed(&target(path)).map_err(at(path))?;
    // Another file may be in its place now, which others may add to.
    drop(lock);
    restore_head(path)
}

/// Writes the first line of a cassette that begins with an answer.
fn restore_head(path: &Path) -> Result<(), CassetteError> {
    let _lock = locked(path).map_err(at(path))?;
    let path = &target(path);
    let Some(mut lines) = CheckedLines::open(path).map_err(at(path))? else {
        return Ok(());
    };
    let first = lines.read::<CassetteEntry>();
    // Some systems replace no file that is open.
    drop(lines);
    if !matches!(first, Ok(Some(_))) {
        return Ok(());
    }
    let mut bytes = head().map_err(|error| at(path)(error.into()))?;
    bytes.extend(files::read(path).map_err(at(path))?);
    files::replace(path, Readers::Owner, &mut |out| out.write_all(&bytes)).map_err(at(path))
}

/// Waits until all that was written is on disk.
pub(super) fn sync(path: &Path) -> Result<(), CassetteError> {
    // Some systems sync only what is open for writing.
    let opened = files::open_own(&target(path), OpenOptions::new().append(true));
    opened.and_then(|file| file.sync_data()).map_err(at(path))
}

fn head() -> Result<Vec<u8>, serde_json::Error> {
    let (format, version) = (FORMAT.to_owned(), VERSION);
    lines::of(&[CassetteHead { format, version }])
}

fn at(path: &Path) -> impl Fn(io::Error) -> CassetteError + Copy {
    move |error| CassetteError::Io(path.to_owned(), error)
}

/// A cassette, read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    /// The answers, in the order of the file; of a key that is there twice, the last.
    pub entries: Vec<CassetteEntry>,
    /// Whether the last line was cut off by a crash. It is left out.
    pub is_torn: bool,
    /// Whether it is not in the canonical form. A process that was killed did not close it.
    pub is_unsorted: bool,
}

/// Reads a cassette; one that is not there is empty.
pub fn read(path: &Path) -> Result<Contents, CassetteError> {
    read_lines(path, false)
}

fn read_lines(path: &Path, accepts_unsigned: bool) -> Result<Contents, CassetteError> {
    let mut contents = Contents::default();
    let Some(mut lines) = begin(path, accepts_unsigned)? else {
        return Ok(contents);
    };
    let mut entries: BTreeMap<String, CassetteEntry> = BTreeMap::new();
    let mut last = None;
    while let Some(entry) = lines.read::<CassetteEntry>().map_err(bad(path))? {
        let place = Some(place(&entry));
        contents.is_unsorted |= last >= place;
        last = place;
        entries.insert(entry.key.clone(), entry);
    }
    contents.entries = entries.into_values().collect();
    contents.is_torn = !lines.bytes().is_empty();
    contents.is_unsorted |= contents.is_torn;
    Ok(contents)
}

/// Opens a cassette, and reads its first line, if that is written; `None` if there is no file.
fn begin(path: &Path, accepts_unsigned: bool) -> Result<Option<CheckedLines>, CassetteError> {
    let Some(mut lines) = CheckedLines::open(path).map_err(at(path))? else {
        return Ok(None);
    };
    lines.accepts_unsigned = accepts_unsigned;
    let first: Result<Option<CassetteHead>, _> = lines.read();
    match first {
        Ok(Some(head)) if head.format == FORMAT && head.version <= VERSION => Ok(Some(lines)),
        // Nothing was kept before the crash.
        Ok(None) if head().is_ok_and(|head| head.starts_with(lines.bytes())) => Ok(Some(lines)),
        Err(error) if String::from_utf8_lossy(lines.bytes()).contains(FORMAT) => {
            Err(bad(path)(error))
        }
        Err(LineError::Io(error)) => Err(at(path)(error)),
        Ok(_) | Err(LineError::Damaged(..)) => Err(CassetteError::NoCassette(path.to_owned())),
    }
}

fn bad(path: &Path) -> impl Fn(LineError) -> CassetteError {
    move |error| match error {
        LineError::Io(error) => at(path)(error),
        LineError::Damaged(line, damage) => CassetteError::BadLine(path.to_owned(), line, damage),
    }
}

/// A cassette that other processes add to, read as far as it is written.
#[derive(Debug, Default)]
pub(super) struct Tail(Option<CheckedLines>);

impl Tail {
    /// Hands over the answers that were added; all of them, where another file took the place of the last one.
    pub(super) fn read(
        &mut self,
        path: &Path,
        take: &mut dyn FnMut(CassetteEntry),
    ) -> Result<(), CassetteError> {
        let mut lines = match self.0.take() {
            Some(lines) if lines.is_at(path).map_err(at(path))? => Some(lines),
            _ => begin(path, false)?,
        };
        // The first line is not written yet.
        lines.take_if(|lines| lines.number() == 0);
        if let Some(mut lines) = lines {
            while let Some(entry) = lines.read().map_err(bad(path))? {
                take(entry);
            }
            self.0 = Some(lines);
        }
        Ok(())
    }
}

/// Writes a cassette again, in its canonical form, whose lines may have no checksums: somebody edited them.
/// Says how many answers it holds.
pub fn renew(path: &Path) -> Result<usize, CassetteError> {
    let _lock = locked(path).map_err(at(path))?;
    let contents = read_lines(path, true)?;
    if contents.is_torn {
        let half = "its last line has no line feed: add one if it is whole, else remove it";
        return Err(at(path)(io::Error::other(half)));
    }
    let entries = contents.entries;
    write_sorted(path, &entries)?;
    Ok(entries.len())
}

/// Puts a cassette into its canonical form. What another process has kept there meanwhile stays.
pub(super) fn sort(path: &Path) -> Result<(), CassetteError> {
    forget(path, &|_| false)
}

/// Takes answers out of a cassette, and puts it into its canonical form.
pub(super) fn forget(
    path: &Path,
    is_void: &dyn Fn(&CassetteEntry) -> bool,
) -> Result<(), CassetteError> {
    // Held until the new file is in its place.
    let _lock = locked(path).map_err(at(path))?;
    let entries = read(path)?.entries;
    write_sorted(path, entries.iter().filter(|entry| !is_void(entry)))
}

/// Writes entries in the canonical form.
pub fn write_sorted<'a>(
    path: &Path,
    entries: impl IntoIterator<Item = &'a CassetteEntry>,
) -> Result<(), CassetteError> {
    let bytes = canonical(entries).map_err(|error| at(path)(error.into()))?;
    files::replace(&target(path), Readers::Owner, &mut |out| out.write_all(&bytes))
        .map_err(at(path))
}

/// The canonical form: sorted by model, purpose and key, keys of objects sorted.
pub fn canonical<'a>(
    entries: impl IntoIterator<Item = &'a CassetteEntry>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut ordered: Vec<&CassetteEntry> = entries.into_iter().collect();
    ordered.sort_by_cached_key(|entry| place(entry));
    let mut bytes = head()?;
    for entry in ordered {
        bytes.append(&mut lines::of(&[sorted(entry)?])?);
    }
    Ok(bytes)
}

/// The sort key of the canonical form.
fn place(entry: &CassetteEntry) -> (String, Purpose, String) {
    (entry.model.clone(), entry.purpose, entry.key.clone())
}

/// An entry with the keys of its objects sorted.
fn sorted(entry: &CassetteEntry) -> Result<serde_json::Value, serde_json::Error> {
    let mut value = serde_json::to_value(entry)?;
    value.sort_all_objects();
    Ok(value)
}
