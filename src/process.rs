//! Programs that are started: each leads a process group, and all that it started ends with it.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::stop::StopToken;

/// How long to wait for something that is due: a busy machine is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Set for every program: the same answers on every machine.
const FIXED: [(&str, &str); 4] = [
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// The programs that run; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Groups(Arc<Mutex<BTreeSet<u32>>>);

impl Groups {
    /// Starts a program, with fixed variables and pipes for its streams.
    pub(crate) fn spawn(&self, mut command: Command) -> io::Result<Group> {
        command
            .envs(FIXED)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let leader = command.spawn()?;
        running.insert(leader.id());
        Ok(Group {
            leader,
            groups: self.clone(),
            is_over: false,
        })
    }

    /// Kills all programs and what they started: for a process that ends without dropping them.
    pub fn kill(&self) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.iter().copied().for_each(kill_group);
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
            let limit = Rlimit {
                current: Some(bytes),
                maximum: Some(bytes),
            };
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
            let clock = nix::time::ClockId::pid_cpu_clock_id(leader).ok()?;
            clock.now().ok().map(Duration::from)
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
        running.remove(&self.leader.id());
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
    let id = i32::try_from(leader).ok();
    id.and_then(rustix::process::Pid::from_raw)
}

#[cfg(unix)]
fn kill_group(leader: u32) {
    if let Some(group) = pid(leader) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_group(_: u32) {}
