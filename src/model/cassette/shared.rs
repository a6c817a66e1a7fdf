//! Answers that several processes use at once: of two that want the same one, the first asks and the other waits for it.
//!
//! The process that asks holds a lock until the answer is written, on a file that is named after the request. On a file
//! system without locks both ask.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::file::{self, Tail};
use super::{CassetteEntry, CassetteError};
use crate::files;
use crate::model::Purpose;
use crate::stop::StopToken;

/// Which answers are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Only answers that qualify probes. They are never scored, so runs that share them stay independent.
    Qualifying,
    /// All: the processes make parts of one run.
    All,
}

/// A cassette beside the run's own, for other processes too.
#[derive(Debug)]
pub(super) struct SharedAnswers {
    path: PathBuf,
    sharing: Sharing,
    known: Mutex<KnownAnswers>,
    /// Whether an answer was added.
    is_unsorted: AtomicBool,
    /// Whether locks fail. Nothing is added then: two processes could write into each other's lines.
    has_no_locks: AtomicBool,
}

#[derive(Debug, Default)]
struct KnownAnswers {
    tail: Tail,
    entries: BTreeMap<String, CassetteEntry>,
}

/// The right to ask, given back when it is dropped. Without a file where none can be made.
#[derive(Debug)]
pub(super) struct Claim(Option<(File, PathBuf)>);

impl Drop for Claim {
    fn drop(&mut self) {
        // Removed before it is unlocked: whoever waits for it looks whether it is still there.
        if let Some((_, path)) = &self.0 {
            drop(fs::remove_file(path));
        }
    }
}

impl SharedAnswers {
    /// Reads what is there already; a damaged line is an error now, and not in the middle of a run.
    pub(super) fn open(path: &Path, sharing: Sharing) -> Result<Self, CassetteError> {
        let mut known = KnownAnswers::default();
        known.read(path)?;
        Ok(Self {
            path: path.to_owned(),
            sharing,
            known: Mutex::new(known),
            is_unsorted: AtomicBool::new(false),
            has_no_locks: AtomicBool::new(false),
        })
    }

    /// Whether answers of this purpose are shared.
    pub(super) fn takes(&self, purpose: Purpose) -> bool {
        self.sharing == Sharing::All || purpose == Purpose::Qualification
    }

    /// The answer, if some process has it by now.
    pub(super) fn answer(&self, key: &str) -> Option<CassetteEntry> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // If the file cannot be read any more, the answer is asked for again; `close` returns the error.
        drop(known.read(&self.path));
        known.entries.get(key).cloned()
    }

    /// Adds an answer. Where this fails, other processes ask again.
    pub(super) fn add(&self, entry: &CassetteEntry) {
        if !self.has_no_locks.load(Ordering::Relaxed) && file::append(&self.path, entry).is_ok() {
            self.is_unsorted.store(true, Ordering::Relaxed);
        }
    }

    /// Takes answers out, here and in the file.
    pub(super) fn forget(
        &self,
        is_void: &dyn Fn(&CassetteEntry) -> bool,
    ) -> Result<(), CassetteError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entries.retain(|_, entry| !is_void(entry));
        if self.path.exists() {
            file::forget(&self.path, is_void)?;
        }
        Ok(())
    }

    /// Takes the right to ask, once no other process has it; `None` if the run `is_stopped` first.
    pub(super) fn claim(&self, key: &str, is_stopped: &dyn Fn() -> bool) -> Option<Claim> {
        let folder = self.claims();
        let path = folder.join(key);
        loop {
            let mut options = OpenOptions::new();
            options.write(true);
            if fs::create_dir_all(&folder).is_err() {
                return Some(Claim(None));
            }
            let file = match files::open_own(&path, &mut options) {
                Ok(file) => file,
                // Another process has just removed the folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => return Some(Claim(None)),
            };
            match file.try_lock() {
                Ok(()) if files::is_at(&file, &path).unwrap_or(true) => {
                    return Some(Claim(Some((file, path))));
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if is_stopped() => return None,
                Err(TryLockError::WouldBlock) => thread::sleep(StopToken::POLL),
                Err(TryLockError::Error(_)) => {
                    self.has_no_locks.store(true, Ordering::Relaxed);
                    return Some(Claim(Some((file, path))));
                }
            }
        }
    }

    fn claims(&self) -> PathBuf {
        self.path.with_extension("asked")
    }

    /// Puts the file in order, if answers were added.
    pub(super) fn close(&self) -> Result<(), CassetteError> {
        // It stays while another process asks.
        drop(fs::remove_dir(self.claims()));
        if !self.is_unsorted.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        file::sort(&self.path)
    }
}

impl KnownAnswers {
    fn read(&mut self, path: &Path) -> Result<(), CassetteError> {
        let Self { tail, entries } = self;
        tail.read(path, &mut |entry| {
            entries.insert(entry.key.clone(), entry);
        })
    }
}
