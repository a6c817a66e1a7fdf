//! Programs that are started: each leads a process group, and all that it started ends with it.
//!
//! A process that left the group, as with `setsid`, is found by its environment (Linux): `TMPDIR` is a folder of the
//! program's own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt;

use crate::stop::StopToken;

/// How long to wait for something that is due: a busy machine is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Set for every program: the same answers on every machine.
const FIXED: [(&str, &str); 3] =
    [("LANG", "C.UTF-8"), ("TZ", "UTC"), ("PYTHONDONTWRITEBYTECODE", "1")];

/// The variable whose value a program shares with what it started and with nothing else.
pub(crate) const OWN_FOLDER: &str = "TMPDIR";

/// The programs that run, each with the value of its `OWN_FOLDER`; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Groups(Arc<Mutex<BTreeMap<u32, OsString>>>);

impl Groups {
    /// Starts a program that has this folder to itself, with fixed variables and pipes for its streams.
    pub(crate) fn spawn(&self, mut command: Command, folder: &Path) -> io::Result<Group> {
        command
            .envs(FIXED)
            .env(OWN_FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let leader = command.spawn()?;
        running.insert(leader.id(), folder.into());
        Ok(Group { leader, groups: self.clone(), is_over: false })
    }

    /// Kills all programs and what they started: for a process that ends without dropping them.
    pub fn kill(&self) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.keys().copied().for_each(kill_group);
        running.values().for_each(|folder| kill_those_of(folder));
    }
}

/// A program and everything that it started. What still runs is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Group {
    /// The program itself, with its pipes.
    pub(crate) leader: Child,
    groups: Groups,
    /// Whether the leader was waited for and the rest killed.
    is_over: bool,
}

impl Group {
    /// Limits the memory of each process, where the system can.
    pub(crate) fn limit_memory(&self, bytes: u64) {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Resource, Rlimit, prlimit};
            let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
            let _ = prlimit(pid(self.leader.id()), Resource::Data, limit);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = bytes;
    }

    /// Processor time of the leader alone; nothing where the system does not tell.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        #[cfg(target_os = "linux")]
        {
            let leader = nix::unistd::Pid::from_raw(i32::try_from(self.leader.id()).ok()?);
            nix::time::ClockId::pid_cpu_clock_id(leader).ok()?.now().ok().map(Duration::from)
        }
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// The status of a leader that ends within [`PATIENCE`]; what it started and left is killed.
    pub(crate) fn wait(&mut self) -> Option<ExitStatus> {
        let mut left = PATIENCE;
        loop {
            if let Ok(Some(status)) = self.leader.try_wait() {
                self.kill();
                return Some(status);
            }
            left = left.checked_sub(StopToken::POLL)?;
            // The standard library cannot wait for a limited time.
            std::thread::sleep(StopToken::POLL);
        }
    }

    /// Kills what runs of the group. Before the leader is waited for, its number belongs to nobody else.
    fn kill(&mut self) {
        kill_group(self.leader.id());
        let mut running = self.groups.0.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = running.remove(&self.leader.id());
        drop(running);
        if let Some(folder) = folder {
            kill_those_of(&folder);
        }
        self.is_over = true;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.kill();
        let _ = self.leader.kill();
        let _ = self.leader.wait();
    }
}

#[cfg(unix)]
fn pid(leader: u32) -> Option<rustix::process::Pid> {
    i32::try_from(leader).ok().and_then(rustix::process::Pid::from_raw)
}

#[cfg(unix)]
fn kill_group(leader: u32) {
    if let Some(group) = pid(leader) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_group(_: u32) {}

/// Kills all processes whose [`OWN_FOLDER`] this is, until none is left: one that is killed may just have started another.
#[cfg(target_os = "linux")]
fn kill_those_of(folder: &OsStr) {
    let variable = [OWN_FOLDER.as_bytes(), b"=", folder.as_bytes()].concat();
    for _ in 0..200 {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        if processes.filter(|process| kill_if_it_has(&variable, &process.path())).count() == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills the process of this folder in `/proc` if its environment has the variable. The handle is opened first, so that
/// no other process can come by its number in between.
#[cfg(target_os = "linux")]
fn kill_if_it_has(variable: &[u8], process: &Path) -> bool {
    use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let id = process.file_name().and_then(|name| name.to_str()?.parse().ok());
    let Some(id) = id.and_then(pid) else {
        return false;
    };
    let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else {
        return false;
    };
    let environment = crate::files::read(&process.join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|one| one == variable)
        && pidfd_send_signal(handle, Signal::KILL).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn kill_those_of(_: &OsStr) {}
