//! The tasks for agents, with their agent and their scripted model: `examples/tasks/`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rayon::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use crate::goldens::sampled;

/// A file of `examples/tasks/`.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/tasks")
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
