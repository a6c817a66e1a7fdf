//! A pipe into which nobody writes, in place of every file that a command reads: it is refused at once.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cli::proctor;

/// A command with each file that it reads in turn. `X` is the name of a pipe without its ending, `RUN` a folder
/// of pipes, and `ok` a run.
const LINES: &str = "
run X.jsonl
run X.toml --out new
run --session X.jsonl --out new
run s.toml --set models.reader.kind=scripted --set models.reader.script=X.jsonl --out new
run s.toml --set cache.prices=X.toml --out new
run s.toml --strategy X.toml --out new
run s.toml --out RUN
run s.toml --gate --baseline X.json --out new
run s.toml --plan RUN --partition hash:1/2 --out new
sweep X.toml --strategy codex
sweep --session X.jsonl --strategy codex
compare X.json ok
compare ok RUN
compare ok --gate --baseline ok --rules X.toml
autopsy X.jsonl
autopsy s.session.jsonl --prices X.toml
live --upstream http://127.0.0.1:9 X.toml
live --upstream http://127.0.0.1:9 --strategy X.toml
sessions import X.jsonl -o new
sessions import X.eval -o new
sessions import X.db -o new
sessions facts X.jsonl -o new
sessions facts --check X.truth.json
sessions facts --check s.truth.json --session X.jsonl
sessions facts --show X.truth.json
inspect X.jsonl
inspect RUN --metric decided
inspect s.session.jsonl --strategy X.toml
report RUN
baseline save RUN main
baseline refresh X.json --run ok
baseline show X.json
judge test X.csv
judge test X.jsonl
judge test --from-run RUN -o new.csv
judge score RUN --judge scripted:m
doctor X.toml
doctor X.jsonl
merge RUN --out new
cache list X.jsonl
cache verify X.jsonl
cache verify --run RUN
cache clear X.jsonl
";

/// The commands that read no file which is named to them.
const READS_NONE: [&str; 10] = [
    "record",
    "check",
    "strategies show",
    "init",
    "sessions generate",
    "strategies find",
    "strategies stages",
    "baseline list",
    "baseline rm",
    "help",
];

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

/// Runs a command, and says what is wrong with how it ended.
fn problem(folder: &Path, line: &str) -> Option<String> {
    let errors = folder.join(format!("errors of {}", line.replace('/', "-")));
    let mut child = proctor()
        .current_dir(folder)
        .args(line.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&errors).unwrap())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > Duration::from_mins(1) {
            child.kill().unwrap();
            child.wait().unwrap();
            return Some(format!("`{line}` waits"));
        }
        thread::sleep(Duration::from_millis(10));
    };
    let said = fs::read_to_string(errors).unwrap();
    let is_refused = !status.success() && said.contains("is a pipe or a device, and no file");
    (!is_refused).then(|| format!("`{line}`: {status}: {said}"))
}

#[test]
fn no_command_waits_for_what_never_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let scenario = "[[sessions]]\nsynthetic = { family = 'code-review', seed = 1, tokens = 20_000 }\n\
        [[strategies]]\npreset = 'codex'\n";
    fs::write(path.join("s.toml"), scenario).unwrap();
    for arguments in ["run s.toml --out ok", "sessions generate code-review --rounds 5 -o made"] {
        let made = proctor().current_dir(path).args(arguments.split(' ')).output();
        assert!(made.as_ref().unwrap().status.success(), "{made:?}");
    }
    for made in fs::read_dir(path.join("made")).unwrap() {
        let made = made.unwrap().path();
        let name = made.file_name().unwrap().to_string_lossy().into_owned();
        let (_, ending) = name.split_once('.').unwrap();
        fs::rename(&made, path.join(format!("s.{ending}"))).unwrap();
    }
    for ending in ["jsonl", "toml", "json", "truth.json", "csv", "eval", "db"] {
        make_pipe(&path.join(format!("pipe.{ending}")));
    }
    fs::create_dir(path.join("pipes")).unwrap();
    for file in ["run.json", "cells.jsonl", "cassette.jsonl", "plan.json", "lock"] {
        make_pipe(&path.join("pipes").join(file));
    }
    let lines = LINES.lines().filter(|line| !line.is_empty());
    let found = lines
        .filter_map(|line| problem(path, &line.replace("X.", "pipe.").replace("RUN", "pipes")));
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The commands below these, as help lists them.
fn commands(of: &str) -> Vec<String> {
    let help = proctor().args(of.split_whitespace()).arg("--help").output();
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    let listed = help.split_once("\nCommands:\n").map(|(_, rest)| rest);
    let listed = listed.and_then(|rest| rest.split("\n\n").next());
    let names = listed.into_iter().flat_map(str::lines).filter_map(|line| {
        let is_first = line.starts_with("  ") && !line.starts_with("   ");
        line.split_whitespace().next().filter(|_| is_first)
    });
    names.map(|name| format!("{of} {name}").trim().to_owned()).collect()
}

#[test]
fn every_command_is_tried_that_reads_files() {
    for command in commands("") {
        let below = commands(&command);
        let below = below.into_iter().filter(|name| !name.ends_with(" help"));
        let mut below: Vec<String> = below.collect();
        if below.is_empty() {
            below.push(command);
        }
        for command in below {
            let is_tried = LINES.lines().any(|line| line.starts_with(&format!("{command} ")));
            assert!(is_tried || READS_NONE.contains(&&*command), "`{command}` is in no line");
        }
    }
}
