//! One process: started, written to, read from within limits, and ended with all that it started.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;

use super::protocol::{FromProgram, Hello, PROTOCOL, ToProgram};
use super::{Host, Launch, ProgramError};
use crate::script::shortened;

/// Bytes of standard error that are kept: its end says most.
const STDERR_BYTES: usize = 4_096;

/// Characters of a line that an error shows.
const SHOWN: usize = 200;

/// Moments in which a program may end by itself once its input is closed.
const GRACE: u32 = 100;

/// Moments to wait for the exit status once its output is closed: a busy machine is slow.
const PATIENCE: u32 = 1_000;

/// The length of a moment.
const MOMENT: Duration = Duration::from_millis(2);

/// A running program.
#[derive(Debug)]
pub(crate) struct Process {
    pub(super) launch: Launch,
    /// Its answer to `hello`.
    pub(crate) hello: Hello,
    child: Child,
    /// Lines to write: a thread of its own does it, so that a program that does not read is no deadlock.
    input: Option<Sender<Vec<u8>>>,
    output: Receiver<Output>,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Reads standard error until its end.
    listener: Option<JoinHandle<()>>,
    /// Whether it has ended and was waited for.
    is_over: bool,
    _folder: TempDir,
}

/// A piece of standard output.
#[derive(Debug)]
enum Output {
    Line(Vec<u8>),
    TooLong,
    Closed,
}

impl Process {
    /// Starts a program and greets it.
    pub(super) fn start(host: &Host, launch: &Launch) -> Result<Self, ProgramError> {
        let program = launch.command.first().cloned().unwrap_or_default();
        let failed = |why: String| ProgramError::Start {
            program: program.clone(),
            why,
        };
        let folder = empty_folder(&host.folder).map_err(|error| {
            // Which name was tried does not matter.
            let source = error.source().map(ToString::to_string);
            failed(source.unwrap_or_else(|| error.to_string()))
        })?;
        let mut words = launch.command.iter().map(|word| {
            let file = host.files.get(word);
            file.map_or_else(|| word.into(), |path| path.clone().into_os_string())
        });
        let mut command = Command::new(words.next().unwrap_or_default());
        let passed = host.environment.iter();
        command
            .args(words)
            .env_clear()
            .envs(passed.filter(|(name, _)| is_let_in(name, &launch.env)))
            .envs(FIXED)
            .env("TMPDIR", folder.path())
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        limit_memory(&child, launch.memory);
        let (input, lines) = channel();
        let (found, output) = sync_channel(4);
        let stderr = Arc::default();
        if let Some(pipe) = child.stdin.take() {
            spawn(move || write_lines(pipe, &lines));
        }
        if let Some(pipe) = child.stdout.take() {
            let longest = launch.line;
            spawn(move || read_lines(pipe, longest, &found));
        }
        let listener = child.stderr.take().map(|pipe| {
            let kept = Arc::clone(&stderr);
            std::thread::spawn(move || keep_end(pipe, &kept))
        });
        let mut process = Self {
            launch: launch.clone(),
            hello: Hello::default(),
            child,
            input: Some(input),
            output,
            stderr,
            listener,
            is_over: false,
            _folder: folder,
        };
        process.greet()?;
        Ok(process)
    }

    fn greet(&mut self) -> Result<(), ProgramError> {
        self.send(&ToProgram::Hello {
            protocol: PROTOCOL,
            proctor: env!("CARGO_PKG_VERSION"),
        });
        let (answer, line) = self.read()?;
        let FromProgram::Hello(hello) = answer else {
            return Err(self.wrong("the first line must be `hello`".to_owned(), &line));
        };
        if hello.protocol != PROTOCOL {
            let own = hello.protocol;
            let problem = format!("the program speaks version {own}, and this build {PROTOCOL}");
            return Err(self.wrong(problem, &line));
        }
        self.hello = hello;
        Ok(())
    }

    /// Sends a line. That nobody reads it shows when an answer is due.
    pub(crate) fn send(&mut self, line: &ToProgram) {
        let mut bytes = serde_json::to_vec(line).unwrap_or_default();
        bytes.push(b'\n');
        if let Some(input) = &self.input {
            let _ = input.send(bytes);
        }
    }

    /// The next line, and how it is written.
    pub(crate) fn read(&mut self) -> Result<(FromProgram, String), ProgramError> {
        let line = match self.output.recv_timeout(self.launch.timeout) {
            Ok(Output::Line(line)) => line,
            Ok(Output::TooLong) => {
                let mb = self.launch.line >> 20;
                return Err(self.failed(format!("a line of more than {mb} MB")));
            }
            Ok(Output::Closed) | Err(RecvTimeoutError::Disconnected) => {
                let how = self.how_it_ended();
                return Err(self.failed(format!("the program {how} where an answer was due")));
            }
            Err(RecvTimeoutError::Timeout) => {
                let seconds = self.launch.timeout.as_secs();
                return Err(self.failed(format!("no answer within {seconds} s")));
            }
        };
        let shown = String::from_utf8_lossy(&line).into_owned();
        match serde_json::from_slice(&line) {
            Ok(read) => Ok((read, shown)),
            Err(error) if error.is_data() => Err(self.wrong(error.to_string(), &shown)),
            Err(_) => Err(self.failed(format!(
                "the program printed a line that is not JSON: `{}`; print other text to standard error",
                shortened(shown.trim_end(), SHOWN)
            ))),
        }
    }

    /// Processor time that it has used, without that of processes which it started; nothing where the system does not tell.
    pub(crate) fn cpu(&self) -> Duration {
        cpu(&self.child).unwrap_or_default()
    }

    /// An answer that does not fit.
    pub(crate) fn wrong(&self, problem: String, line: &str) -> ProgramError {
        self.failed(match line {
            "" => problem,
            _ => format!("{problem}, in `{}`", shortened(line, SHOWN)),
        })
    }

    fn failed(&self, problem: String) -> ProgramError {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr = String::from_utf8_lossy(&kept).into_owned();
        ProgramError::Output { problem, stderr }
    }

    fn how_it_ended(&mut self) -> String {
        let Some(status) = wait(&mut self.child) else {
            return "closed its output".to_owned();
        };
        kill_group(&self.child);
        self.is_over = true;
        // The end of its standard error may still be on the way.
        for _ in 0..PATIENCE {
            if self.listener.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
            std::thread::sleep(MOMENT);
        }
        match status.code() {
            Some(code) => format!("exited with status {code}"),
            None => format!("was ended ({status})"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A program that is done reads the end of its input, and ends.
        self.input = None;
        if self.is_over {
            return;
        }
        for _ in 0..GRACE {
            match self.output.recv_timeout(MOMENT) {
                Ok(Output::Line(_)) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Output::TooLong | Output::Closed) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // Before it is waited for: its number belongs to nobody else until then.
        kill_group(&self.child);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Set for every program: the same answers on every machine.
const FIXED: [(&str, &str); 4] = [
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
    ("PYTHONHASHSEED", "0"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// Variables that every program gets: without them no program is found.
pub(crate) const ALWAYS: [&str; 3] = ["PATH", "HOME", "SYSTEMROOT"];

fn is_let_in(name: &std::ffi::OsStr, named: &[String]) -> bool {
    ALWAYS.iter().any(|known| name == *known) || named.iter().any(|known| name == known.as_str())
}

fn spawn(work: impl FnOnce() + Send + 'static) {
    std::thread::spawn(work);
}

fn write_lines(mut pipe: ChildStdin, lines: &Receiver<Vec<u8>>) {
    for line in lines {
        if pipe.write_all(&line).and_then(|()| pipe.flush()).is_err() {
            return;
        }
    }
}

fn read_lines(pipe: impl Read, longest: usize, found: &SyncSender<Output>) {
    let mut pipe = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        let most = longest as u64 + 1;
        let read = (&mut pipe).take(most).read_until(b'\n', &mut line);
        let output = match read {
            // A line without an end is cut off.
            Ok(_) if line.last() == Some(&b'\n') => Output::Line(line),
            Ok(_) if line.len() > longest => Output::TooLong,
            _ => Output::Closed,
        };
        let is_last = !matches!(output, Output::Line(_));
        if found.send(output).is_err() || is_last {
            return;
        }
    }
}

fn keep_end(mut pipe: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(STDERR_BYTES);
        kept.drain(..excess);
    }
}

/// Waits for the end of a program, but not for ever.
fn wait(child: &mut Child) -> Option<std::process::ExitStatus> {
    for _ in 0..PATIENCE {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(MOMENT);
    }
    None
}

/// Ends everything that the program started and left.
#[cfg(unix)]
fn kill_group(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_group(_: &Child) {}

#[cfg(target_os = "linux")]
fn limit_memory(child: &Child, bytes: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let _ = prlimit(process, Resource::Data, limit);
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: &Child, _: u64) {}

#[cfg(target_os = "linux")]
fn cpu(child: &Child) -> Option<Duration> {
    let process = nix::unistd::Pid::from_raw(i32::try_from(child.id()).ok()?);
    let clock = nix::time::ClockId::pid_cpu_clock_id(process).ok()?;
    clock.now().ok().map(Duration::from)
}

#[cfg(not(target_os = "linux"))]
fn cpu(_: &Child) -> Option<Duration> {
    None
}

/// An empty folder, deleted with all that was put into it.
fn empty_folder(parent: &Path) -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("proctor-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(parent)
}
