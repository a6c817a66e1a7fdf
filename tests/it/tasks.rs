//! The tasks for agents, with their agent and their scripted model: `scenarios/tasks/`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rayon::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::sampled;

/// A file of `scenarios/tasks/`.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("scenarios/tasks")
        .join(name)
}

/// The names of all tasks.
fn names() -> Vec<String> {
    let files = fs::read_dir(file("")).unwrap();
    let names = files.filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".toml").map(str::to_owned)
    });
    names.collect()
}

/// The scripted model, until it is dropped.
struct Policy {
    server: Child,
    url: String,
}

impl Policy {
    /// Starts it with these flags; `None` (with a line that says `skipped`) where there is no Python that reads TOML.
    fn start(flags: &[&str]) -> Option<Self> {
        let mut python = Command::new("python3");
        let reads_toml = python.args(["-c", "import tomllib"]).output();
        if !reads_toml.is_ok_and(|it| it.status.success()) {
            assert!(
                std::env::var_os("PROCTOR_SHARED_REQUIRED").is_none(),
                "python3 of 3.11 or later is missing"
            );
            println!("skipped: there is no python3 of 3.11 or later");
            return None;
        }
        let mut server = Command::new("python3")
            .arg(file("policy.py"))
            .arg("--tasks")
            .arg(file(""))
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = server.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let url = line
            .trim()
            .strip_prefix("listening at ")
            .unwrap()
            .to_owned();
        Some(Self { server, url })
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

/// A task, and its repository in a folder of its own.
struct Trial {
    name: String,
    task: toml::Table,
    folder: TempDir,
}

impl Trial {
    fn new(name: &str) -> Self {
        let text = fs::read_to_string(file(&format!("{name}.toml"))).unwrap();
        let task: toml::Table = text.parse().unwrap();
        let folder = TempDir::new().unwrap();
        fs::write(
            folder.path().join("prompt"),
            task["prompt"].as_str().unwrap(),
        )
        .unwrap();
        let trial = Self {
            name: name.to_owned(),
            task,
            folder,
        };
        fs::create_dir(trial.work()).unwrap();
        trial.lay_out(&trial.task["files"]);
        trial
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    fn lay_out(&self, files: &toml::Value) {
        for (path, text) in files.as_table().unwrap() {
            let path = self.work().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.as_str().unwrap()).unwrap();
        }
    }

    /// Runs the agent from that step on.
    fn run(&self, policy: &Policy, from: usize, flags: &[&str]) -> Output {
        Command::new("python3")
            .arg(file("agent.py"))
            .args(["--url", &policy.url, "--model", "scripted", "--work"])
            .arg(self.work())
            .arg("--prompt-file")
            .arg(self.folder.path().join("prompt"))
            .args(["--user", &format!("{}/none/1/{from}", self.name), "--save"])
            .arg(self.folder.path().join("saved"))
            .args(flags)
            .output()
            .unwrap()
    }

    fn saved(&self) -> Value {
        serde_json::from_slice(&fs::read(self.folder.path().join("saved")).unwrap()).unwrap()
    }

    fn is_solved(&self) -> bool {
        let check = self.task["check"].as_table().unwrap();
        self.lay_out(&check["files"]);
        Command::new("sh")
            .args(["-c", check["command"].as_str().unwrap()])
            .current_dir(self.work())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap()
            .status
            .success()
    }
}

#[test]
fn every_task_is_solved_with_the_whole_history_and_not_before() {
    let Some(policy) = Policy::start(&["--window", "80000"]) else {
        return;
    };
    let mut names = names();
    assert!(names.len() >= 12, "{names:?}");
    names.sort_unstable();
    let names: Vec<String> = sampled(names).collect();
    names.par_iter().for_each(|name| {
        assert!(!Trial::new(name).is_solved(), "{name} is solved untouched");
        let trial = Trial::new(name);
        let output = trial.run(&policy, 0, &[]);
        assert!(output.status.success(), "{name}: {output:?}");
        assert!(trial.is_solved(), "{name}");
        let saved = trial.saved();
        let (calls, tokens) = (&saved["calls"], saved["messages"].to_string().len() / 4);
        assert!(
            (35..=60).contains(&calls.as_u64().unwrap()),
            "{name}: {calls}"
        );
        assert!((40_000..=75_000).contains(&tokens), "{name}: {tokens}");
    });
}

#[test]
fn what_is_forgotten_decides_which_tasks_fail() {
    let tasks = ["csv-report", "rate-limiter", "log-analyser", "line-diff"];
    let tasks: Vec<&str> = sampled(tasks).collect();
    let tried = |names: [&'static str; 2]| -> BTreeSet<&str> {
        names.into_iter().filter(|it| tasks.contains(it)).collect()
    };
    let failed = |flags: &[&str]| -> Option<BTreeSet<&str>> {
        let policy = Policy::start(flags)?;
        let failed = tasks.par_iter().filter(|name| {
            let trial = Trial::new(name);
            trial.run(&policy, 0, &[]);
            !trial.is_solved()
        });
        Some(failed.copied().collect())
    };
    let Some(without_middle) = failed(&["--keep-ends", "8"]) else {
        return;
    };
    let without_results = failed(&["--keep-results", "5"]).unwrap();
    assert_eq!(without_middle, tried(["csv-report", "log-analyser"]));
    assert_eq!(without_results, tried(["log-analyser", "rate-limiter"]));
}

#[test]
fn a_task_goes_on_from_a_cut_history_with_either_api() {
    for api in sampled(["anthropic", "openai"]) {
        let Some(policy) = Policy::start(&[]) else {
            return;
        };
        let whole = Trial::new("rate-limiter");
        whole.run(&policy, 0, &["--api", api]);
        let saved = whole.saved();
        let messages = saved["messages"].as_array().unwrap();
        let calls = messages.iter().enumerate();
        let mut calls = calls.filter(|(_, message)| message["role"] == "assistant");
        let (end, _) = calls.nth(20).unwrap();
        let cut = whole.folder.path().join("cut");
        let history = serde_json::json!({ "messages": messages[..end] });
        fs::write(&cut, history.to_string()).unwrap();

        let trial = Trial::new("rate-limiter");
        let flags = ["--api", api, "--history", cut.to_str().unwrap()];
        let output = trial.run(&policy, 20, &flags);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{api}");
        assert!(trial.is_solved(), "{api}");
        let rest = trial.saved();
        assert_eq!(rest["messages"], saved["messages"], "{api}");
        assert_eq!(rest["calls"].as_u64(), Some(38 - 20), "{api}");
    }
}

#[test]
fn the_agent_stops_at_a_refusal_and_after_too_many_calls() {
    let Some(policy) = Policy::start(&["--window", "16000"]) else {
        return;
    };
    for api in sampled(["anthropic", "openai"]) {
        let trial = Trial::new("line-diff");
        let refused = trial.run(&policy, 0, &["--api", api]);
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{stderr}");
        assert!(
            stderr.contains("16000") && stderr.contains("400"),
            "{stderr}"
        );
        let stopped = Trial::new("csv-report").run(&policy, 0, &["--max-calls", "2", "--api", api]);
        assert_eq!(stopped.status.code(), Some(4), "{stopped:?}");
    }
}

/// A small task, whose agent replaces a folder by a link that leads out of the repository.
const OWN_TASK: &str = r#"
about = "A link that leads out"
prompt = "Write the word larch into `done`."
goal = "Write"
facts = [{ name = "word", pattern = "word (\\w+)" }]
steps = [
  { bash = "rm -r kept && ln -s .. kept && echo key: $ANTHROPIC_API_KEY >key" },
  { edit = { path = "done", old = "", new = "{word}" } },
  { read = "../prompt" },
]
[check]
command = "test -f kept/check && ls -ld ../.. | grep -q ^drwx------ && test ! -L kept && test ! -e ../check && grep -qx key: key && grep -q larch done && test -z \"$ANTHROPIC_API_KEY\""
[check.files]
"kept/check" = "here"
[files]
"kept/file" = "text"
"#;

/// Runs `proctor tasks` on this task file in this folder, and returns its exit code, its errors and the outcomes.
fn proctor_tasks(folder: &Path, task: &str, flags: &[&str]) -> (Option<i32>, String, Vec<Value>) {
    fs::write(folder.join("own.toml"), task).unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args([
            "tasks",
            "own.toml",
            "--force",
            "--strategies",
            "none",
            "--out",
            ".",
        ])
        .args(flags)
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("ANTHROPIC_API_KEY", "secret")
        .output()
        .unwrap();
    let lines = fs::read_to_string(folder.join("outcomes.jsonl")).unwrap_or_default();
    let outcomes = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let stderr = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), stderr, outcomes.collect())
}

#[test]
fn foreign_commands_run_only_where_they_are_allowed() {
    let folder = TempDir::new().unwrap();
    let (code, stderr, outcomes) = proctor_tasks(folder.path(), OWN_TASK, &[]);
    assert_eq!((code, outcomes.len()), (Some(2), 0), "{stderr}");
    assert!(stderr.contains("--allow-shell"), "{stderr}");
    if Policy::start(&[]).is_none() {
        return;
    }
    let docker = folder.path().join("docker");
    let script = "#!/bin/sh\necho \"$@\" >>\"${0%docker}calls\"\nwhile [ $1 != timeout ]; do\n\
                  [ $1 = -v ] && cd \"${2%:/work}\"\nshift\ndone\nexec \"$@\"\n";
    fs::write(&docker, script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&docker, executable).unwrap();
    for flags in [
        &["--allow-shell"][..],
        &["--container", "image:3", "--cuts", "70"],
    ] {
        let (code, stderr, outcomes) = proctor_tasks(folder.path(), OWN_TASK, flags);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(outcomes.iter().all(|it| it["score"] == 1), "{outcomes:?}");
        let sessions: Vec<&Value> = outcomes.iter().map(|it| &it["session"]).collect();
        let expected = ["own/none/0/0", "own/none/0/2"];
        assert_eq!(sessions, expected[..flags.len().div_ceil(2)], "{stderr}");
    }
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    assert!(
        calls.lines().all(|it| it.contains("--network none")),
        "{calls}"
    );
    assert_eq!(calls.lines().count(), 2 + 2, "{calls}");
}

#[test]
fn an_agent_of_ones_own_finds_its_task_and_is_ended_in_time() {
    for (agent, seconds, score, end) in [
        (
            "grep -o larch \"$PROCTOR_PROMPT\" >done; echo key: >key",
            "5",
            1,
            "ended",
        ),
        (
            "case $OPENAI_BASE_URL in http://127.0.0.1:*/t/own/s/0/r/0/v1) ;; *) exit 1 ;; esac",
            "5",
            0,
            "ended",
        ),
        ("echo no >&2; exit 4", "5", 0, "failed: no"),
        ("sleep 60", "1", 0, "time limit"),
    ] {
        let folder = TempDir::new().unwrap();
        let own = [
            "--model",
            "m",
            "--upstream",
            "http://127.0.0.1:9",
            "--allow-shell",
        ];
        let flags = [&own[..], &["--agent-cmd", agent, "--timeout", seconds]].concat();
        let (code, stderr, outcomes) = proctor_tasks(folder.path(), OWN_TASK, &flags);
        let failed = end.starts_with("failed");
        assert_eq!(code, Some(if failed { 104 } else { 0 }), "{stderr}");
        assert_eq!(outcomes[0]["score"], score, "{agent}");
        assert_eq!(outcomes[0]["end"], end, "{agent}");
        assert_eq!(outcomes[0]["calls"], Value::Null, "{agent}");
    }
}

#[test]
fn a_command_ends_with_the_agent() {
    if Policy::start(&[]).is_none() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let fifo = folder.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let command = format!(
        "exec 3>{} && sleep 20 && echo late >&3 && echo",
        fifo.display()
    );
    let task = OWN_TASK.replace("echo key:", &command);
    // Ends when nobody can write to it any more.
    let written = std::thread::spawn(|| fs::read_to_string(fifo).unwrap());
    let flags = ["--allow-shell", "--timeout", "2"];
    let (_, stderr, outcomes) = proctor_tasks(folder.path(), &task, &flags);
    assert_eq!(outcomes[0]["end"], "time limit", "{stderr}");
    assert_eq!(written.join().unwrap(), "");
}

#[test]
fn the_task_of_the_guide_is_solved() {
    if Policy::start(&[]).is_none() {
        return;
    }
    let guide = include_str!("../../docs/tasks.md");
    let (_, task) = guide.split_once("```toml\n").unwrap();
    let (task, _) = task.split_once("```").unwrap();
    let folder = TempDir::new().unwrap();
    let second = "observation-masking[clear_results.keep_last=5,clear_results.every=10]";
    let flags = ["--allow-shell", "--strategies", second];
    let (code, stderr, outcomes) = proctor_tasks(folder.path(), task, &flags);
    assert_eq!(code, Some(0), "{stderr}");
    let of = |outcome: &Value| (outcome["strategy"].clone(), outcome["score"].clone());
    let outcomes: Vec<_> = outcomes.iter().map(of).collect();
    assert_eq!(outcomes[0], ("none".into(), 1.into()), "{outcomes:?}");
    assert_eq!(outcomes[1], (second.into(), 1.into()), "{outcomes:?}");
}

#[test]
fn strategies_are_told_apart_by_the_tasks_that_are_solved() {
    if Policy::start(&[]).is_none() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args(["tasks", "rate-limiter", "--strategies", "none,codex"])
        .args(["--json", "--out"])
        .arg(folder.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tasks = report["report"]["verdict"]["tasks"].as_array().unwrap();
    let solved = |name: &str| {
        let row = tasks.iter().find(|it| it["strategy"] == name).unwrap();
        (row["tasks"].as_u64(), row["solved"].as_f64())
    };
    assert_eq!(solved("none"), (Some(1), Some(1.0)), "{stderr}");
    assert_eq!(solved("codex"), (Some(1), Some(0.0)), "{stderr}");
    assert!(tasks.iter().all(|row| row["dollars"].as_u64() > Some(0)));
    // What changed nothing is in no ranking, and its tasks are counted all the same.
    let mut runs = std::fs::read_dir(folder.path()).unwrap();
    let run = runs.find_map(|it| {
        let it = it.unwrap();
        it.file_name()
            .to_str()?
            .starts_with("tasks-")
            .then(|| it.path())
    });
    let screen = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .arg("report")
        .arg(run.unwrap())
        .output()
        .unwrap();
    let screen = String::from_utf8_lossy(&screen.stdout);
    let row = screen.lines().find(|line| line.starts_with("  none"));
    let row: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!(row.join(" "), "none 100 – changed nothing", "{screen}");
    // The log gives the same contexts again.
    let again = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args(["live", "--check", "--window", "16000", "--out"])
        .arg(folder.path())
        .args(["--strategy", "none", "--strategy", "codex"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&again.stdout);
    assert!(
        again.status.success() && told.contains(" are the same again, 0 are not"),
        "{told}"
    );
}
