//! A lease: the lock of a run folder on file systems whose locks do nothing.
//!
//! Its file is made by whoever makes it first, and written again every two seconds, each time with a higher number. So
//! no clock is compared: a lease that does not change for ten seconds is of a process that has ended.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{JournalError, unwritable, write_private};
use crate::files;

/// Name of the lease in its folder.
pub(super) const LEASE: &str = "lease";

const RENEWED: Duration = Duration::from_secs(2);

/// Five renewals: on a shared folder one may be late.
const WATCHED: Duration = Duration::from_secs(10);

/// A lease that is held, and given back when it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    path: PathBuf,
    owner: String,
    is_lost: Arc<AtomicBool>,
    renewing: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Lease {
    /// Takes the lease of a folder, once nobody holds it any more.
    pub(super) fn take(folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join(LEASE);
        let owner = this_process();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let made = files::open_own(&path, &mut options)
            .and_then(|mut file| file.write_all(text(&owner, 0).as_bytes()));
        match made {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !held(&[folder]).is_empty() {
                    return Err(JournalError::Locked(folder.to_owned()));
                }
                write(&path, &owner, 0)?;
                // Another process may have seen the same: the last one that wrote has it.
                thread::sleep(RENEWED / 4);
                if !is_of(&path, &owner) {
                    return Err(JournalError::Locked(folder.to_owned()));
                }
            }
            Err(error) => return Err(unwritable(&path)(error)),
        }
        let lost = Arc::new(AtomicBool::new(false));
        let (held, ended) = mpsc::channel();
        let renewing = {
            let (path, owner, lost) = (path.clone(), owner.clone(), lost.clone());
            thread::spawn(move || {
                for number in 1_u64.. {
                    if ended.recv_timeout(RENEWED) != Err(RecvTimeoutError::Timeout) {
                        return;
                    }
                    if !is_of(&path, &owner) {
                        return lost.store(true, Ordering::Relaxed);
                    }
                    // One that cannot be written is late, and taken by others for given up.
                    drop(write(&path, &owner, number));
                }
            })
        };
        Ok(Self { path, owner, is_lost: lost, renewing: Some((held, renewing)) })
    }

    /// Whether another process took it, because it was not renewed in time.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some((held, renewing)) = self.renewing.take() {
            drop(held);
            drop(renewing.join());
        }
        if is_of(&self.path, &self.owner) {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Those of these folders whose lease is held. Looks for ten seconds where that cannot be known at once.
pub(super) fn held<'a>(folders: &[&'a Path]) -> Vec<&'a Path> {
    let mut open: Vec<(&Path, Option<String>)> =
        folders.iter().map(|folder| (*folder, read(folder))).collect();
    open.retain(|(_, text)| {
        let owner = text.as_ref().map(|text| text.lines().next().unwrap_or_default());
        owner.is_some_and(|owner| !is_dead(owner))
    });
    if open.is_empty() {
        return Vec::new();
    }
    thread::sleep(WATCHED);
    open.retain(|(folder, before)| {
        let now = read(folder);
        now.is_some() && now != *before
    });
    open.into_iter().map(|(folder, _)| folder).collect()
}

fn read(folder: &Path) -> Option<String> {
    files::read_to_string(&folder.join(LEASE)).ok()
}

fn text(owner: &str, number: u64) -> String {
    format!("{owner}\n{number}\n")
}

fn write(path: &Path, owner: &str, number: u64) -> Result<(), JournalError> {
    write_private(path, &mut |out| out.write_all(text(owner, number).as_bytes()))
}

fn is_of(path: &Path, owner: &str) -> bool {
    files::read_to_string(path).unwrap_or_default().lines().next() == Some(owner)
}

/// This process, by a name that no other has: not every system says which machine it is.
fn this_process() -> String {
    let drawn = RandomState::new().build_hasher().finish();
    format!("{} {drawn:x} {}", machine(), std::process::id())
}

/// The machine and its space of process ids, where that can be known.
fn machine() -> String {
    let boot =
        files::read_to_string(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default();
    let ids = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), ids.display())
}

/// Whether an owner is a process of this machine that is not there any more.
fn is_dead(owner: &str) -> bool {
    let Some((drawn, process)) = owner.rsplit_once(' ') else {
        return false;
    };
    let machine = drawn.rsplit_once(' ').map_or("", |(machine, _)| machine);
    machine == self::machine() && machine.len() > 1 && !Path::new("/proc").join(process).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_one_processs_until_it_ends_and_that_of_a_dead_one_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LEASE);
        // A process that is not there, on this machine.
        fs::write(&path, text(&format!("{} ff 4194999", machine()), 7)).unwrap();
        let lease = Lease::take(folder.path()).unwrap();
        let second = Lease::take(folder.path()).unwrap_err();
        assert!(matches!(second, JournalError::Locked(_)));
        assert!(!lease.is_lost());
        // Another machine takes it, between two renewals.
        thread::sleep(RENEWED / 2);
        write(&path, "elsewhere 1", 0).unwrap();
        thread::sleep(RENEWED * 2);
        assert!(lease.is_lost());
        drop(lease);
        assert!(path.exists(), "it is not ours to remove");
        // It is not renewed.
        drop(Lease::take(folder.path()).unwrap());
        assert!(!path.exists());
    }
}
