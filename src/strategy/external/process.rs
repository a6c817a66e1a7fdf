//! One program: started or met, written to, read from within limits, and ended with all that it started.

use std::error::Error;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use super::lines::{CallingProgram, Chunk, ProgramLines};
use super::protocol::{FromProgram, Hello, Numbered, PROTOCOL, ToProgram};
use super::{Host, Launch, ProgramError};
use crate::process::{Group, PATIENCE};
use crate::script::shortened;

/// Bytes of standard error that are kept: its end says most.
const STDERR_BYTES: usize = 4_096;

/// Characters of a line that an error shows.
const SHOWN: usize = 200;

/// How long a program may take to end by itself once its input is closed.
const GRACE: Duration = Duration::from_millis(200);

/// Files that it may say it loaded.
const MOST_FILES: usize = 2_000;

/// The client for programs in Python, and the folder in that of each process where it is.
const PYTHON_CLIENT: &str = include_str!("../../../clients/python/proctor_strategy.py");
const CLIENT_FOLDER: &str = ".proctor";

/// A running program.
#[derive(Debug)]
pub(crate) struct Process {
    pub(super) launch: Launch,
    /// Its answer to `hello`.
    pub(crate) hello: Hello,
    lines: ProgramLines,
    owner: Owner,
}

/// Who started a program.
#[derive(Debug)]
enum Owner {
    /// Proctor did.
    Proctor(Child),
    /// The program started Proctor, and gets its lines back.
    Program(CallingProgram),
}

/// A process that Proctor started.
#[derive(Debug)]
struct Child {
    group: Group,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Disconnected once standard error is read to its end.
    silent: Receiver<()>,
    _folder: TempDir,
}

impl Process {
    /// Starts a program and greets it.
    pub(super) fn start(host: &Host, launch: &Launch) -> Result<Self, ProgramError> {
        let program = launch.command.join(" ");
        let folder = empty_folder(&host.folder).map_err(|error| ProgramError::Start {
            program: program.clone(),
            // Which name was tried does not matter.
            why: error.source().unwrap_or(&error).to_string(),
            hint: "it works in a new folder in that for temporary files".to_owned(),
        })?;
        let mut words = launch.command.iter().map(|word| {
            host.files.get(word).map_or_else(|| word.into(), |path| path.clone().into_os_string())
        });
        let mut command = Command::new(words.next().unwrap_or_default());
        let passed = host.environment.iter();
        // The program's own modules and a `PYTHONPATH` that is let in come first.
        let client = folder.path().join(CLIENT_FOLDER);
        command.args(words).env_clear();
        if put_client(&client).is_ok() {
            command.env("PYTHONPATH", client);
        }
        command
            .envs(passed.filter(|(name, _)| is_let_in(name, &launch.env)))
            .env("PYTHONHASHSEED", host.hash_seed.to_string())
            .current_dir(folder.path());
        let mut group = host
            .groups
            .spawn(command, folder.path())
            .map_err(|error| ProgramError::refused(&program, &error))?;
        group.limit_memory(launch.memory_mb << 20);
        let stderr = Arc::default();
        let lines = match (group.leader.stdout.take(), group.leader.stdin.take()) {
            (Some(source), Some(sink)) => {
                ProgramLines::over(Box::new(source), Box::new(sink), launch.line_mb << 20)
            }
            _ => return Err(ProgramError::NotLocated),
        };
        let (listening, silent) = channel();
        if let Some(pipe) = group.leader.stderr.take() {
            let kept = Arc::clone(&stderr);
            std::thread::spawn(move || {
                keep_end(pipe, &kept);
                drop(listening);
            });
        }
        let child = Child { group, stderr, silent, _folder: folder };
        Self::met(launch, lines, Owner::Proctor(child))
    }

    /// Greets the program that started this process.
    pub(super) fn of_caller(
        caller: &CallingProgram,
        launch: &Launch,
    ) -> Result<Self, ProgramError> {
        let Some(mut lines) = caller.take() else {
            return Err(ProgramError::Start {
                program: launch.command.join(" "),
                why: "another cell has its only connection".to_owned(),
                hint: "give `--jobs 1`".to_owned(),
            });
        };
        lines.forget_answers();
        Self::met(launch, lines, Owner::Program(caller.clone()))
    }

    fn met(launch: &Launch, lines: ProgramLines, owner: Owner) -> Result<Self, ProgramError> {
        let mut process = Self { launch: launch.clone(), hello: Hello::default(), lines, owner };
        // One that does not say hello was never asked anything.
        match (process.greet(), &process.owner) {
            (Ok(()), _) => Ok(process),
            (Err(error), Owner::Proctor(_)) => Err(error.at_start(&launch.command.join(" "))),
            (Err(error), Owner::Program(_)) => {
                // It is not asked again: each time would take as long.
                process.lines = ProgramLines::default();
                Err(error)
            }
        }
    }

    fn greet(&mut self) -> Result<(), ProgramError> {
        self.send(&ToProgram::Hello { protocol: PROTOCOL, proctor: env!("CARGO_PKG_VERSION") })?;
        let mut line = self.next_line(self.launch.start_seconds, "start_seconds")?;
        let (mut answer, mut id) = self.parsed(&line)?;
        while self.is_late(id.as_ref()) {
            line = self.next_line(self.launch.start_seconds, "start_seconds")?;
            (answer, id) = self.parsed(&line)?;
        }
        let FromProgram::Hello(hello) = answer else {
            return Err(self.wrong("the first line must be `hello`".to_owned(), &line));
        };
        if hello.protocol != PROTOCOL {
            let own = hello.protocol;
            let update = if own < PROTOCOL {
                "; update its client: that of this build is `clients/python` or `clients/typescript`"
            } else {
                ""
            };
            let problem = format!(
                "the program speaks version {own} of the protocol, and this build {PROTOCOL}{update}"
            );
            return Err(self.wrong(problem, &line));
        }
        self.must_answer(id, &line)?;
        if hello.files.len() > MOST_FILES {
            let count = hello.files.len();
            let problem = format!("`hello` names {count} files, and {MOST_FILES} are the most");
            return Err(self.failed(problem));
        }
        self.hello = hello;
        Ok(())
    }

    /// Sends a line, unless the program wrote one that nobody asked for. That nobody reads it shows when an answer is due.
    pub(crate) fn send(&mut self, line: &ToProgram) -> Result<(), ProgramError> {
        self.must_be_quiet()?;
        let json = if matches!(line, ToProgram::Session { .. }) {
            serde_json::to_vec(line)
        } else {
            let id = self.lines.next_id();
            serde_json::to_vec(&Numbered { id, line })
        };
        let mut bytes = json.unwrap_or_default();
        bytes.push(b'\n');
        self.lines.send(bytes);
        Ok(())
    }

    /// The answer to the line that was sent last, and how it is written.
    pub(crate) fn read(&mut self) -> Result<(FromProgram, String), ProgramError> {
        let line = self.next_line(self.launch.timeout_seconds, "timeout_seconds")?;
        let (answer, id) = self.parsed(&line)?;
        self.must_answer(id, &line)?;
        Ok((answer, line))
    }

    /// Fails where the program wrote a line since its last answer.
    pub(crate) fn must_be_quiet(&mut self) -> Result<(), ProgramError> {
        match self.lines.next(self.lines.followed()) {
            Ok(Chunk::Line(text)) => {
                let line = String::from_utf8_lossy(&text).into_owned();
                self.parsed(&line)?;
                Err(self.unasked(&line))
            }
            Ok(Chunk::TooLong) => Err(self.too_long()),
            // A closed input shows when an answer is due.
            Ok(Chunk::Closed) | Err(_) => Ok(()),
        }
    }

    fn next_line(&mut self, seconds: u64, knob: &str) -> Result<String, ProgramError> {
        match self.lines.next(Duration::from_secs(seconds)) {
            Ok(Chunk::Line(text)) => String::from_utf8(text).map_err(|error| {
                let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
                self.not_json(&shown)
            }),
            Ok(Chunk::TooLong) => Err(self.too_long()),
            Ok(Chunk::Closed) | Err(RecvTimeoutError::Disconnected) => {
                let how = self.how_it_ended();
                Err(self.failed(format!("the program {how} where an answer was due")))
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(self.failed(format!("no answer within {seconds} s (`{knob}`)")))
            }
        }
    }

    /// A line of the protocol, and the `id` that it has.
    fn parsed(&self, line: &str) -> Result<(FromProgram, Option<Value>), ProgramError> {
        let mut value: Value = serde_json::from_str(line).map_err(|_| self.not_json(line))?;
        let id = value.as_object_mut().and_then(|keys| keys.remove("id"));
        let answer =
            FromProgram::deserialize(value).map_err(|error| self.wrong(error.to_string(), line))?;
        Ok((answer, id))
    }

    fn must_answer(&self, id: Option<Value>, line: &str) -> Result<(), ProgramError> {
        match id {
            Some(id) if id.as_u64().is_some() && id.as_u64() == self.lines.last_id => Ok(()),
            Some(_) => Err(self.unasked(line)),
            None => {
                let problem =
                    "an answer repeats the `id` of the line it answers; this one has none";
                Err(self.wrong(problem.to_owned(), line))
            }
        }
    }

    /// Whether a line answers an earlier line of a connection that outlived its cell.
    fn is_late(&self, id: Option<&Value>) -> bool {
        matches!(self.owner, Owner::Program(_)) && id.and_then(Value::as_u64) < self.lines.last_id
    }

    fn unasked(&self, line: &str) -> ProgramError {
        let shown = shortened(line.trim_end(), SHOWN);
        self.failed(format!("it sent a line that nothing asked for: `{shown}`"))
    }

    fn not_json(&self, line: &str) -> ProgramError {
        let shown = shortened(line.trim_end(), SHOWN);
        self.failed(format!(
            "the program printed a line that is not JSON: `{shown}`; print other text to standard error"
        ))
    }

    fn too_long(&self) -> ProgramError {
        let mb = self.launch.line_mb;
        self.failed(format!("a line of more than {mb} MB (`line_mb`)"))
    }

    /// Processor time that it has used, without that of processes which it started; nothing where the system does not tell.
    pub(crate) fn cpu(&self) -> Duration {
        match &self.owner {
            Owner::Proctor(child) => child.group.cpu().unwrap_or_default(),
            Owner::Program(_) => Duration::ZERO,
        }
    }

    /// An answer that does not fit.
    pub(crate) fn wrong(&self, problem: String, line: &str) -> ProgramError {
        self.failed(match line {
            "" => problem,
            _ => format!("{problem}, in `{}`", shortened(line, SHOWN)),
        })
    }

    fn failed(&self, problem: String) -> ProgramError {
        let stderr = match &self.owner {
            Owner::Proctor(child) => {
                let kept = child.stderr.lock().unwrap_or_else(PoisonError::into_inner);
                String::from_utf8_lossy(&kept).into_owned()
            }
            Owner::Program(_) => String::new(),
        };
        ProgramError::Output { problem, stderr }
    }

    fn how_it_ended(&mut self) -> String {
        let closed = "closed its output".to_owned();
        let Owner::Proctor(child) = &mut self.owner else {
            return closed;
        };
        let Some(status) = child.group.wait() else {
            return closed;
        };
        // The end of its standard error may still be on the way.
        let _ = child.silent.recv_timeout(PATIENCE);
        match status.code() {
            Some(code) => format!("exited with status {code}"),
            None => format!("was ended ({status})"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        match &self.owner {
            Owner::Proctor(_) => self.lines.hang_up(GRACE),
            Owner::Program(caller) => caller.give_back(std::mem::take(&mut self.lines)),
        }
    }
}

/// Variables that every program gets: without them no program is found.
pub(crate) const ALWAYS: [&str; 3] = ["PATH", "HOME", "SYSTEMROOT"];

fn is_let_in(name: &std::ffi::OsStr, named: &[String]) -> bool {
    ALWAYS.iter().any(|known| name == *known) || named.iter().any(|known| name == known.as_str())
}

fn keep_end(mut pipe: impl Read, stderr: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4_096];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        let mut kept = stderr.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(STDERR_BYTES);
        kept.drain(..excess);
    }
}

fn put_client(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir(folder)?;
    std::fs::write(folder.join("proctor_strategy.py"), PYTHON_CLIENT)
}

/// An empty folder, deleted with all that was put into it.
fn empty_folder(parent: &Path) -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("proctor-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(parent)
}
