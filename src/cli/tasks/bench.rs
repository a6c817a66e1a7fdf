//! Where tasks are run: a private folder with the agent, the scripted model and a repository for each trial.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::file::{Files, Task};
use crate::cli::{CliError, Exit, environment};
use crate::strategy::external::kill_group;

const AGENT: &str = include_str!("../../../scenarios/tasks/agent.py");
const POLICY: &str = include_str!("../../../scenarios/tasks/policy.py");

/// The longest that a check may take.
const CHECK_LIMIT: Duration = Duration::from_mins(2);

/// Seconds after which a container ends a command by itself, since ending `docker` does not end it.
const CONTAINER_SECONDS: &str = "120";

/// Between asking a program to end and killing it.
const GRACE: Duration = Duration::from_secs(5);

/// Between two looks at a process.
const MOMENT: Duration = Duration::from_millis(20);

/// Variables of commands in a repository, which are the same on every machine.
const FIXED: [(&str, &str); 3] = [
    ("LC_ALL", "C.UTF-8"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("PYTHONHASHSEED", "0"),
];

/// The model that agents ask.
#[derive(Debug)]
pub(super) enum Upstream {
    /// The steps of the task files, played by a server of this program.
    Scripted,
    /// An API of the user's.
    Api {
        /// Its base URL.
        url: String,
        /// The name of the model.
        model: String,
    },
}

/// The agent that works on the tasks.
#[derive(Debug)]
pub(super) enum Agent {
    /// The one of this program, by the API that it speaks: `anthropic` or `openai`.
    Own(String),
    /// A command of the user's.
    Command(String),
}

/// Where the commands of a model are run.
#[derive(Debug)]
pub(super) enum Shell {
    Host,
    /// A container of this image, without a network.
    Container(String),
}

impl Shell {
    /// The words in front of a command that runs in `work`.
    fn words(&self, work: &Path) -> Vec<String> {
        let Self::Container(image) = self else {
            return vec!["sh".to_owned(), "-c".to_owned()];
        };
        let mut words: Vec<String> = "docker run --rm --init --network none -w /work -e HOME=/work"
            .split(' ')
            .map(str::to_owned)
            .collect();
        for (name, value) in FIXED {
            words.extend(["-e".to_owned(), format!("{name}={value}")]);
        }
        #[cfg(unix)]
        {
            use rustix::process::{getgid, getuid};
            let owner = format!("{}:{}", getuid().as_raw(), getgid().as_raw());
            words.extend(["-u".to_owned(), owner]);
        }
        words.extend(["-v".to_owned(), format!("{}:/work", work.display())]);
        let rest = [image, "timeout", CONTAINER_SECONDS, "sh", "-c"];
        words.extend(rest.map(str::to_owned));
        words
    }
}

/// A task under a strategy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial<'a> {
    pub(super) task: &'a Task,
    pub(super) strategy: &'a str,
    /// The number of the strategy.
    pub(super) number: usize,
    pub(super) repeat: usize,
    /// Where it begins, if not with the prompt.
    pub(super) cut: Option<Cut<'a>>,
}

/// A saved history, cut at an answered call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut<'a> {
    /// Percent of the calls of the whole run.
    pub(super) percent: u8,
    /// Calls in the history.
    pub(super) calls: usize,
    pub(super) messages: &'a [Value],
}

impl Trial<'_> {
    /// The name of the cell: a continuation is a task of its own.
    pub(super) fn cell(&self) -> String {
        let name = &self.task.name;
        let cut = self.cut.map(|cut| format!("{name}@{}", cut.percent));
        cut.unwrap_or_else(|| name.clone())
    }

    /// `TASK/STRATEGY/REPEAT/FROM`: the name of the conversation, FROM being the calls that went before.
    pub(super) fn session(&self) -> String {
        let from = self.cut.map_or(0, |cut| cut.calls);
        let (task, strategy, repeat) = (&self.task.name, self.strategy, self.repeat);
        format!("{task}/{strategy}/{repeat}/{from}")
    }
}

/// The result of a trial: a line of `outcomes.jsonl`.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) session: String,
    #[serde(skip)]
    pub(super) cell: String,
    pub(super) task: String,
    pub(super) strategy: String,
    pub(super) repeat: usize,
    /// Percent of the calls after which it began, in a continuation.
    pub(super) cut: Option<u8>,
    pub(super) model: String,
    /// 1 if the task is solved.
    pub(super) score: u8,
    /// Calls of the model, where the agent counts them.
    pub(super) calls: Option<usize>,
    /// How the agent ended.
    pub(super) end: String,
}

/// The agent, the model behind it, and a folder for both.
#[derive(Debug)]
pub(super) struct Bench {
    agent: Agent,
    upstream: Upstream,
    shell: Shell,
    limit: Duration,
    /// The scripted model and its URL.
    policy: Option<(Policy, String)>,
    /// The proxy in front of the model.
    proxy: Option<SocketAddr>,
    folder: TempDir,
}

impl Bench {
    pub(super) fn new(
        (agent, upstream, shell): (Agent, Upstream, Shell),
        limit: Duration,
        tasks: &[Task],
    ) -> anyhow::Result<Self> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.prefix("proctor-tasks-").tempdir()?;
        fs::write(folder.path().join("agent.py"), AGENT)?;
        let policy = match upstream {
            Upstream::Scripted => Some(Policy::start(folder.path(), tasks)?),
            Upstream::Api { .. } => None,
        };
        Ok(Self {
            agent,
            upstream,
            shell,
            limit,
            policy,
            proxy: None,
            folder,
        })
    }

    /// The base URL of the model's API.
    pub(super) fn upstream(&self) -> &str {
        match (&self.upstream, &self.policy) {
            (Upstream::Api { url, .. }, _) => url.trim_end_matches("/v1"),
            (Upstream::Scripted, Some((_, url))) => url,
            (Upstream::Scripted, None) => "",
        }
    }

    /// Agents are given this address, which strategies stand behind.
    pub(super) fn pass_through(&mut self, address: SocketAddr) {
        self.proxy = Some(address);
    }

    /// The base URL that the agent of this trial is given.
    fn base_url(&self, trial: &Trial<'_>) -> String {
        let Some(address) = self.proxy else {
            return self.upstream().to_owned();
        };
        let (task, number, repeat) = (trial.cell(), trial.number, trial.repeat);
        format!("http://{address}/t/{task}/s/{number}/r/{repeat}")
    }

    pub(super) fn model(&self) -> &str {
        match &self.upstream {
            Upstream::Scripted => "scripted",
            Upstream::Api { model, .. } => model,
        }
    }

    /// Runs the agent in a new repository, then the check; also returns the messages, where the agent saves them.
    pub(super) fn run(&self, trial: &Trial<'_>) -> anyhow::Result<(Outcome, Vec<Value>)> {
        let private = TempDir::new_in(&self.folder)?;
        let work = private.path().join("work");
        fs::create_dir(&work)?;
        lay_out(&work, &trial.task.files).with_context(|| format!("task `{}`", trial.task.name))?;
        fs::write(private.path().join("prompt"), &trial.task.prompt)?;
        let errors = private.path().join("errors");
        let mut command = self.agent_command(trial, private.path())?;
        command
            .stdout(Stdio::null())
            .stderr(fs::File::create(&errors)?);
        let status = wait(start(&mut command)?, self.limit)?;
        let end = match status.map(|status| status.code()) {
            None => "time limit".to_owned(),
            Some(Some(0)) => "ended".to_owned(),
            Some(Some(4)) if matches!(self.agent, Agent::Own(_)) => "too many calls".to_owned(),
            Some(_) => {
                let errors = fs::read(&errors)?;
                let errors = String::from_utf8_lossy(&errors);
                let last = errors.lines().last().unwrap_or("no message");
                format!("failed: {}", last.chars().take(300).collect::<String>())
            }
        };
        let saved = fs::read(private.path().join("saved")).ok();
        let mut saved: Value = saved.map_or(Ok(Value::Null), |it| serde_json::from_slice(&it))?;
        let calls = saved["calls"].as_u64().and_then(|it| it.try_into().ok());
        let messages = match saved["messages"].take() {
            Value::Array(messages) => messages,
            _ => Vec::new(),
        };
        let outcome = Outcome {
            session: trial.session(),
            cell: trial.cell(),
            task: trial.task.name.clone(),
            strategy: trial.strategy.to_owned(),
            repeat: trial.repeat,
            cut: trial.cut.map(|cut| cut.percent),
            model: self.model().to_owned(),
            score: u8::from(self.is_solved(trial.task, &work)?),
            calls,
            end,
        };
        Ok((outcome, messages))
    }

    fn agent_command(&self, trial: &Trial<'_>, private: &Path) -> anyhow::Result<Command> {
        let (work, prompt) = (private.join("work"), private.join("prompt"));
        let url = self.base_url(trial);
        let api = match &self.agent {
            Agent::Own(api) => api,
            Agent::Command(words) => {
                let mut command = Command::new("sh");
                command.args(["-c", words]).current_dir(work);
                command.env("PROCTOR_PROMPT", prompt);
                command.env("PROCTOR_MODEL", self.model());
                command.env("ANTHROPIC_BASE_URL", &url);
                let with_version = format!("{}/v1", url.trim_end_matches("/v1"));
                command.env("OPENAI_BASE_URL", with_version);
                return Ok(command);
            }
        };
        let shell = self.shell.words(&work);
        let shell = shlex::try_join(shell.iter().map(String::as_str))?;
        let mut command = Command::new("python3");
        command.arg(self.folder.path().join("agent.py"));
        command.args(["--url", &url, "--api", api, "--model", self.model()]);
        command.args(["--user", &trial.session(), "--shell", &shell]);
        command.arg("--work").arg(&work);
        command.arg("--prompt-file").arg(prompt);
        command.arg("--save").arg(private.join("saved"));
        if let Some(cut) = trial.cut {
            let history = private.join("history");
            fs::write(&history, json!({ "messages": cut.messages }).to_string())?;
            command.arg("--history").arg(history);
        }
        if let Upstream::Scripted = self.upstream {
            command.env_remove("ANTHROPIC_API_KEY");
            command.env_remove("OPENAI_API_KEY");
        }
        Ok(command)
    }

    /// Whether the check of the task succeeds in this folder.
    fn is_solved(&self, task: &Task, work: &Path) -> anyhow::Result<bool> {
        lay_out(work, &task.check_files)?;
        let words = self.shell.words(work);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(&task.check).current_dir(work);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // The check runs what the model wrote, which must not see a key.
        let passed = ["PATH", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"];
        let passed = passed.map(|name| environment(name).map(|value| (name, value)));
        command.env_clear().envs(passed.into_iter().flatten());
        command.env("HOME", work).envs(FIXED);
        let status = wait(start(&mut command)?, CHECK_LIMIT)?;
        Ok(status.is_some_and(|status| status.success()))
    }
}

/// Writes files below a folder. Links that an agent left there are removed, never followed.
fn lay_out(folder: &Path, files: &Files) -> anyhow::Result<()> {
    for (path, text) in files {
        let mut place = PathBuf::from(folder);
        for part in Path::new(path) {
            place.push(part);
            let is_link = place.symlink_metadata().is_ok_and(|it| it.is_symlink());
            if is_link {
                fs::remove_file(&place)?;
            }
        }
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot make the folder of `{path}`"))?;
        }
        fs::write(&place, text).with_context(|| format!("cannot write `{path}`"))?;
    }
    Ok(())
}

/// Starts a program in a group of its own, so that it can be ended with all that it started.
fn start(command: &mut Command) -> anyhow::Result<Child> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null());
    command.spawn().map_err(|error| missing(&program, &error))
}

fn missing(program: &str, error: &std::io::Error) -> anyhow::Error {
    let problem = format!("cannot start `{program}`: {error}");
    let mut wrong = CliError::new(Exit::Usage, problem);
    if error.kind() == ErrorKind::NotFound {
        wrong = wrong.with_hint(
            "tasks need `sh` and `python3` (3.9 or later), and `--container` needs `docker`",
        );
    }
    wrong.into()
}

/// The exit status of a program, or `None` if it was ended at the limit.
fn wait(mut child: Child, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a trial ends after a time that the user sets"
    )]
    let begin = Instant::now();
    let mut is_late = false;
    loop {
        if let Some(status) = child.try_wait()? {
            kill_group(&child);
            return Ok(Some(status).filter(|_| !is_late));
        }
        if begin.elapsed() >= limit + GRACE {
            kill_group(&child);
            let _ = child.kill();
        } else if begin.elapsed() >= limit && !is_late {
            is_late = true;
            terminate(&child);
        }
        std::thread::sleep(MOMENT);
    }
}

/// Asks a program to end, with the command that it is running.
#[cfg(unix)]
fn terminate(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::TERM);
    }
}

#[cfg(not(unix))]
fn terminate(_: &Child) {}

/// The server of the scripted model, which ends when its input is closed.
#[derive(Debug)]
struct Policy(Child);

impl Policy {
    /// Starts it on the scripts of these tasks; also returns its URL.
    fn start(folder: &Path, tasks: &[Task]) -> anyhow::Result<(Self, String)> {
        let (program, scripts) = (folder.join("policy.py"), folder.join("tasks"));
        fs::write(&program, POLICY)?;
        fs::create_dir(&scripts)?;
        for task in tasks {
            let script = task.script.as_ref().map(Value::to_string);
            fs::write(
                scripts.join(format!("{}.json", task.name)),
                script.unwrap_or_default(),
            )?;
        }
        let mut command = Command::new("python3");
        command
            .arg(program)
            .arg("--until-eof")
            .arg("--tasks")
            .arg(scripts);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut server = server.map_err(|error| missing("python3", &error))?;
        let mut line = String::new();
        if let Some(output) = server.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let policy = Self(server);
        let url = line.trim_end().strip_prefix("listening at ");
        let url = url.context("the server of the scripted model did not start")?;
        Ok((policy, url.to_owned()))
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
