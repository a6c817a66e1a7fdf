//! The run folder: a manifest, and a journal of finished cells that survives being killed.
//!
//! A cell is one line. A line that was cut off by a crash is the last one; it is dropped when the
//! journal is opened again, and its cell is run once more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::checked::{self, DOCUMENT, Damage};
use crate::files::{self, Readers};

use super::calibration::{self, JudgeCalibration};
use super::shard::{self, Partition, PlannedSource, Shard};
use super::verdicts::{self, GivenVerdict};
use super::{CellKey, CellRecord, FORMAT_VERSION, Manifest, StrategyEntry, Timing};

mod error;
mod forget;
mod lease;
mod lines;
pub mod merge;

pub use error::JournalError;
use forget::FinishedCell;
use lease::Lease;
#[cfg(feature = "http")]
pub(crate) use lines::{append as append_lines, read as read_lines};

/// What a folder holds.
#[rustfmt::skip]
const FILES: [&str; 11] = [
    MANIFEST, CELLS, TIMINGS, CALL_TIMES, VERDICTS, CALIBRATIONS, SOURCES, SHARD, lease::LEASE, merge::CASSETTE, BATCHES,
];

/// Name of the file of batches that were sent.
pub const BATCHES: &str = "batches.jsonl";
/// Name of the manifest in its folder.
pub const MANIFEST: &str = "run.json";
/// Name of the journal in its folder.
pub const CELLS: &str = "cells.jsonl";
/// Name of the file of measured times in its folder.
pub const TIMINGS: &str = "timings.jsonl";
/// Name of the file of measured times of live models in its folder.
pub const CALL_TIMES: &str = "call-times.jsonl";
/// Name of the file of verdicts that were given after the run.
pub const VERDICTS: &str = "verdicts.jsonl";
/// Name of the file of calibrations that were added after the run began.
pub const CALIBRATIONS: &str = "calibrations.jsonl";
/// Name of the file of a plan that says which source has which sessions.
pub const SOURCES: &str = "sources.jsonl";
/// Name of the file that says which part of a run its folder holds.
pub const SHARD: &str = "shard.json";
const LOCK: &str = "lock";
/// The value of `format` in a manifest.
pub const FORMAT: &str = "proctor-run";

/// An open run folder. While it is open, no other process can open it.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    cells: File,
    done: BTreeSet<CellKey>,
    /// Of these, cells whose strategy failed before the folder was opened.
    failed: BTreeSet<CellKey>,
    /// The strategies of the run as its manifest has them.
    strategies: Vec<StrategyEntry>,
    /// The cells in the order of their lines.
    order: Vec<CellKey>,
    lease: Option<Lease>,
    _lock: File,
}

/// A run folder, read.
#[derive(Debug, Clone)]
pub struct RecordedRun {
    /// The manifest of the run.
    pub manifest: Manifest,
    /// The finished cells, sorted by session, strategy and repeat.
    pub cells: Vec<CellRecord>,
}

impl Journal {
    /// Opens the folder, making it if it is not there, and reads which cells are done.
    ///
    /// A folder that holds another run, or other files, is refused, and nothing in it is changed.
    pub fn open(folder: &Path, manifest: &Manifest) -> Result<Self, JournalError> {
        refuse_other_files(folder)?;
        fs::create_dir_all(folder).map_err(unwritable(folder))?;
        refuse_another_run(folder, manifest)?;
        let (lock, is_locked) = lock(folder)?;
        // On a shared folder a lock may do nothing, or not be known.
        let mut shared = [SHARD, lease::LEASE].iter();
        let lease = (shared.any(|name| folder.join(name).exists()) || !is_locked)
            .then(|| Lease::take(folder))
            .transpose()?;
        for name in FILES {
            files::remove_unfinished(&folder.join(name));
        }
        // Between the first look and the lock another process may have begun a run here.
        refuse_another_run(folder, manifest)?;
        let strategies = write_manifest(folder, manifest)?;
        let path = folder.join(CELLS);
        for name in [CELLS, TIMINGS, CALL_TIMES] {
            lines::mend(&folder.join(name))?;
        }
        let finished: Vec<FinishedCell> = lines::read(&path)?;
        lines::open(&folder.join(TIMINGS))?;
        let cells = lines::open(&path)?;
        let failed = finished.iter().filter(|cell| cell.has_failed());
        let order: Vec<CellKey> = finished.iter().map(FinishedCell::key).collect();
        Ok(Self {
            folder: folder.to_owned(),
            cells,
            done: order.iter().cloned().collect(),
            failed: failed.map(FinishedCell::key).collect(),
            strategies,
            order,
            lease,
            _lock: lock,
        })
    }

    /// Opens the folder of one part of a run, with a lease beside its lock. A folder that holds another part, or
    /// several, is refused.
    pub fn open_shard(
        folder: &Path,
        manifest: &Manifest,
        shard: &Shard,
    ) -> Result<Self, JournalError> {
        let held = read_shard(folder)?;
        if let Some(held) = held.filter(|held| held.part != shard.part || held.is_merged) {
            return Err(JournalError::AnotherShard {
                folder: folder.to_owned(),
                holds: held.part,
                wanted: shard.part,
            });
        }
        let mut journal = Self::open(folder, manifest)?;
        if journal.lease.is_none() {
            journal.lease = Some(Lease::take(folder)?);
        }
        journal.keep_shard(shard)?;
        Ok(journal)
    }

    /// Refuses to write what another process may be writing.
    fn is_ours(&self) -> Result<(), JournalError> {
        if self.lease.as_ref().is_some_and(Lease::is_lost) {
            return Err(JournalError::Locked(self.folder.clone()));
        }
        Ok(())
    }

    /// Writes which source of the run has which sessions.
    pub fn keep_sources(&self, sources: &[PlannedSource]) -> Result<(), JournalError> {
        self.write_lines(SOURCES, sources)
    }

    /// Writes a whole file of lines.
    fn write_lines<T: Serialize>(&self, name: &str, items: &[T]) -> Result<(), JournalError> {
        let bytes = lines::of(items, name)?;
        write_private(&self.folder.join(name), &mut |out| out.write_all(&bytes))
    }

    /// Writes which part of a run the folder holds.
    pub fn keep_shard(&self, shard: &Shard) -> Result<(), JournalError> {
        write_document(&self.folder, SHARD, shard)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The cells that are done.
    pub fn done(&self) -> &BTreeSet<CellKey> {
        &self.done
    }

    /// The cells whose strategy failed before the folder was opened.
    pub fn failed(&self) -> &BTreeSet<CellKey> {
        &self.failed
    }

    /// The strategies as they were when the cells of the folder were computed.
    pub fn strategies(&self) -> &[StrategyEntry] {
        &self.strategies
    }

    /// Notes that the folder holds no part of a run, but all of it.
    fn forget_shard(&self) -> Result<(), JournalError> {
        let path = self.folder.join(SHARD);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(&path)(error)),
            _ => Ok(()),
        }
    }

    /// Writes one finished cell.
    pub fn append(&mut self, record: &CellRecord) -> Result<(), JournalError> {
        let key = record.key();
        let path = self.folder.join(CELLS);
        self.is_ours()?;
        if !files::is_at(&self.cells, &path).map_err(unwritable(&path))? {
            return Err(JournalError::Gone(self.folder.clone()));
        }
        files::lines::add_one(&mut self.cells, record).map_err(unwritable(&path))?;
        self.order.push(key.clone());
        self.done.insert(key);
        Ok(())
    }

    /// Puts the cells into this order, so that the same cells are the same bytes however many workers
    /// there were and however often they were stopped. Cells that are not in it follow, in the order
    /// of the file. Where this fails, all cells are where they were.
    pub fn put_in_order(&mut self, order: &[CellKey]) -> Result<(), JournalError> {
        let ranks: BTreeMap<&CellKey, usize> = order.iter().zip(0..).collect();
        let rank = |key: &CellKey| ranks.get(key).copied().unwrap_or(order.len());
        if self.order.is_sorted_by_key(rank) {
            return Ok(());
        }
        self.is_ours()?;
        let path = self.folder.join(CELLS);
        let text = files::read_to_string(&path).map_err(unreadable(&path))?;
        let mut lines: Vec<(&CellKey, &str)> =
            self.order.iter().zip(text.split_inclusive('\n')).collect();
        lines.sort_by_key(|(key, _)| rank(key));
        write_private(&path, &mut |out| {
            lines.iter().try_for_each(|(_, line)| out.write_all(line.as_bytes()))
        })?;
        self.order.sort_by_key(rank);
        self.cells = lines::open(&path)?;
        Ok(())
    }

    /// Writes one line of measured times, in a file of their own. They are the only bytes that may differ
    /// between runs.
    pub fn time<T: Serialize>(&mut self, file: &str, time: &T) -> Result<(), JournalError> {
        self.is_ours()?;
        let path = self.folder.join(file);
        let line = lines::of(std::slice::from_ref(time), file)?;
        let written = files::lines::add(&mut lines::open(&path)?, &line);
        written.map_err(unwritable(&path))
    }

    /// Adds verdicts that were given after the run.
    pub fn keep_verdicts(&mut self, given: &[GivenVerdict]) -> Result<(), JournalError> {
        lines::append(&self.folder.join(VERDICTS), given)
    }

    /// Notes the calibrations of judges that the folder does not hold yet.
    pub fn keep_calibrations(&mut self, known: &[JudgeCalibration]) -> Result<(), JournalError> {
        let held = read_manifest(&self.folder)?.calibrations;
        if known.iter().all(|one| held.contains(one)) {
            return Ok(());
        }
        let mut all: Vec<JudgeCalibration> = lines::read(&self.folder.join(CALIBRATIONS))?;
        calibration::lay_over(&mut all, known.iter().cloned());
        self.write_lines(CALIBRATIONS, &all)
    }

    /// Waits until everything written is on disk.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        let synced = self.cells.sync_data();
        synced.map_err(unwritable(&self.folder.join(CELLS)))
    }
}

impl RecordedRun {
    /// Reads a run folder, finished or not, without locking it.
    pub fn read(folder: &Path) -> Result<Self, JournalError> {
        let mut manifest = read_manifest(folder)?;
        let mut cells: Vec<CellRecord> = lines::read(&folder.join(CELLS))?;
        let given: Vec<GivenVerdict> = lines::read(&folder.join(VERDICTS))?;
        verdicts::apply(&mut manifest, &mut cells, &given);
        let later = lines::read(&folder.join(CALIBRATIONS))?;
        calibration::lay_over(&mut manifest.calibrations, later);
        verdicts::disregard_unfit(&mut cells);
        let sorted: BTreeMap<CellKey, CellRecord> =
            cells.into_iter().map(|cell| (cell.key(), cell)).collect();
        Ok(Self { manifest, cells: sorted.into_values().collect() })
    }
}

/// Reads the measured times of a run folder; a torn last line is left out, and a folder without
/// times has none.
pub fn timings(folder: &Path) -> Result<Vec<Timing>, JournalError> {
    lines::read(&folder.join(TIMINGS))
}

/// Locks a folder against other processes, and says whether its file system knows locks.
fn lock(folder: &Path) -> Result<(File, bool), JournalError> {
    let path = folder.join(LOCK);
    let opened = files::open_own(&path, OpenOptions::new().truncate(false).write(true));
    let lock = opened.map_err(unwritable(&path))?;
    match lock.try_lock() {
        Ok(()) => Ok((lock, true)),
        Err(fs::TryLockError::Error(error)) if files::has_no_locks(&error) => Ok((lock, false)),
        Err(fs::TryLockError::WouldBlock) => Err(JournalError::Locked(folder.to_owned())),
        Err(fs::TryLockError::Error(source)) => Err(unwritable(&path)(source)),
    }
}

/// Which part of a run a folder holds; `None` for one that is no part.
pub fn read_shard(folder: &Path) -> Result<Option<Shard>, JournalError> {
    let path = folder.join(SHARD);
    if !path.exists() {
        return Ok(None);
    }
    let shard: Shard = document(&path, (shard::FORMAT, shard::VERSION))?;
    let part = shard.part;
    match Partition::new(part.by, part.shard, part.of) {
        Ok(_) => Ok(Some(shard)),
        Err(why) => Err(JournalError::NoPart(path, why)),
    }
}

/// Which source of a planned run has which sessions; nothing where no plan was kept.
pub fn read_sources(folder: &Path) -> Result<Vec<PlannedSource>, JournalError> {
    lines::read(&folder.join(SOURCES))
}

/// Reads the manifest of a run folder.
pub fn read_manifest(folder: &Path) -> Result<Manifest, JournalError> {
    document(&folder.join(MANIFEST), (FORMAT, FORMAT_VERSION))
}

/// Writes the manifest of a new run, and the margins of one that goes on. Returns the strategies that are written.
fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<Vec<StrategyEntry>, JournalError> {
    if !folder.join(MANIFEST).exists() {
        write_document(folder, MANIFEST, manifest)?;
        return Ok(manifest.strategies.clone());
    }
    let mut existing = read_manifest(folder)?;
    if existing.margins != manifest.margins {
        existing.margins.clone_from(&manifest.margins);
        write_document(folder, MANIFEST, &existing)?;
    }
    Ok(existing.strategies)
}

/// Refuses a folder with files of others, and none of a run. Hidden files do not count: a file browser makes them.
pub fn refuse_other_files(folder: &Path) -> Result<(), JournalError> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    if names.is_empty() || names.iter().any(|name| is_part_of_run(name)) {
        return Ok(());
    }
    Err(JournalError::OtherFiles(folder.to_owned()))
}

fn refuse_another_run(folder: &Path, manifest: &Manifest) -> Result<(), JournalError> {
    if !folder.join(MANIFEST).exists() {
        return Ok(());
    }
    let existing = read_manifest(folder)?;
    if existing.fingerprint == manifest.fingerprint {
        return Ok(());
    }
    Err(JournalError::AnotherRun {
        folder: folder.to_owned(),
        holds: existing.fingerprint,
        wanted: manifest.fingerprint.clone(),
    })
}

/// Reads a signed document of this format, up to this version.
fn document<T: DeserializeOwned>(
    path: &Path,
    (format, version): (&str, u32),
) -> Result<T, JournalError> {
    let bytes = files::read(path).map_err(unreadable(path))?;
    if memchr::memmem::find(&bytes, format.as_bytes()).is_none() {
        return Err(JournalError::NoRun(path.to_owned()));
    }
    let (value, is_signed) = checked::document(bytes).map_err(damaged(path))?;
    if value.get("format").and_then(serde_json::Value::as_str) != Some(format) {
        return Err(JournalError::NoRun(path.to_owned()));
    }
    let found = value.get("version").and_then(serde_json::Value::as_u64);
    if found.is_none_or(|found| found > u64::from(version)) {
        return Err(JournalError::Newer(path.to_owned(), found, version));
    }
    if !is_signed {
        return Err(damaged(path)(Damage::NoChecksum));
    }
    serde_json::from_value(value).map_err(|error| damaged(path)(error.into()))
}

/// Writes a signed document of this name.
fn write_document<T: Serialize>(folder: &Path, name: &str, it: &T) -> Result<(), JournalError> {
    let mut json = serde_json::to_string_pretty(it).map_err(no_json(name))?;
    checked::sign(&mut json, DOCUMENT);
    write_private(&folder.join(name), &mut |out| out.write_all(json.as_bytes()))
}

fn damaged(path: &Path) -> impl Fn(Damage) -> JournalError {
    move |damage| JournalError::Damaged(path.to_owned(), damage)
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> JournalError {
    move |source| JournalError::Unreadable(path.to_owned(), source)
}

fn unwritable(path: &Path) -> impl Fn(io::Error) -> JournalError {
    move |source| JournalError::Io(path.to_owned(), source)
}

fn no_json(cell: &str) -> impl Fn(serde_json::Error) -> JournalError {
    move |source| JournalError::Unwritable(cell.to_owned(), source)
}

/// Writes a whole file that whoever may read the process's other files can read.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    let replaced = files::replace(path, Readers::Everyone, &mut |out| out.write_all(bytes));
    replaced.map_err(unwritable(path))
}

/// Whether the folder of a run may hold a file of this name.
pub fn is_part_of_run(name: &str) -> bool {
    name == LOCK || FILES.contains(&name)
}

/// Fails where [`write_whole`] would fail, and writes nothing.
pub fn check_writable(path: &Path) -> Result<(), JournalError> {
    files::check_replace(path).map_err(unwritable(path))
}

/// Writes a file that holds text of sessions piece by piece: only its owner may read it.
pub fn write_private(
    path: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<(), JournalError> {
    files::replace(path, Readers::Owner, write).map_err(unwritable(path))
}

#[cfg(test)]
mod tests;
