//! Every place of the table of `docs/reference/formats.md`, with a recording in it, through `proctor sessions`.

use std::fs;
use std::path::Path;
use std::process::Command;

/// By format, and by the end of a place: a fixture, and where it lies below the place. A place that is a file is
/// the fixture itself.
const FIXTURES: &[(&str, &str, &str, &str)] = &[
    ("claude-code", "", "claude-code/compaction.jsonl", "p/a.jsonl"),
    ("codex", "", "codex/rollout.jsonl", "2026/01/02/rollout-a.jsonl"),
    ("gemini-cli", "", "gemini-cli/chat.jsonl", "p/chats/a.jsonl"),
    ("qwen-code", "", "qwen-code/chat.jsonl", "p/chats/a.jsonl"),
    ("iflow", "", "iflow/session.jsonl", "p/session-a.jsonl"),
    ("kimi-cli", "", "kimi-cli/session", "p/a"),
    ("kimi-code", "", "kimi-code/session", "wd_p/a"),
    ("grok-build", "", "grok-build/chat_history.jsonl", "p/a/chat_history.jsonl"),
    ("factory-droid", "", "factory-droid/session.jsonl", "p/a.jsonl"),
    ("amp", "", "amp/thread.json", "T-a.json"),
    ("copilot-cli", "session-state", "copilot-cli/events.jsonl", "a/events.jsonl"),
    ("copilot-chat", "", "copilot-chat/chat.json", "a.json"),
    ("cursor", "", "cursor/transcript.jsonl", "a/a.jsonl"),
    ("cline", "tasks", "cline/task", "a"),
    ("cline", "", "cline/session.messages.json", "a/a.messages.json"),
    ("goose", "", "goose/session.jsonl", "a.jsonl"),
    ("crush", ".db", "../../../../fuzz/seeds/crush.db", ""),
    ("opencode", "storage", "opencode/storage", ""),
    ("opencode", "project", "opencode/first/project", ""),
    ("opencode", "", "../../../../fuzz/seeds/opencode.db", ""),
    ("openhands", "", "openhands/conversation", "a"),
    ("swe-agent", "", "swe-agent/plain.traj", "user/a/a.traj"),
    ("mini-swe-agent", ".json", "mini-swe-agent/tools.traj.json", ""),
    ("pi", ".sqlite", "../../../../fuzz/seeds/openclaw.sqlite", ""),
    ("pi", "", "pi/tree.jsonl", "p/a.jsonl"),
    ("aider", "", "aider/history.md", ""),
    ("specstory", "", "specstory/history.md", "a.md"),
];

/// Products, formats and paths of the table.
fn table() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let page = include_str!("../../../docs/reference/formats.md");
    let (_, section) = page.split_once("\n## Where `proctor sessions` looks").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    let rows = cells.filter(|cells| cells[1] != "format").map(|cells| {
        let paths = cells[2..].iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let product = cells[0].trim_start_matches("| ");
        (product, cells[1].trim_matches('`'), paths.collect())
    });
    rows.collect()
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}

/// The formats of what is found where one recording of the format lies at this path, and nothing else anywhere.
fn found_at(path: &str, format: &str) -> Result<Vec<String>, String> {
    let is_its = |it: &&(&str, &str, &str, &str)| it.0 == format && path.ends_with(it.1);
    let fixture = FIXTURES.iter().find(is_its);
    let (_, _, fixture, name) = fixture.ok_or("has no fixture")?;
    let all = tempfile::tempdir().unwrap();
    let [home, here, moved] = ["home", "here", "moved"].map(|name| all.path().join(name));
    fs::create_dir(&here).unwrap();
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let place = match first.strip_prefix('$') {
        Some(_) if rest.is_empty() => moved.clone(),
        Some(_) => moved.join(rest),
        None if first == "~" => home.join(rest),
        None => here.join(path),
    };
    let place = place.display().to_string().replace('*', "x");
    let file = match *name {
        "" => place.into(),
        name => Path::new(&place).join(name),
    };
    copy(&super::fixture(fixture), &file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
    command.env_clear().env("HOME", &home).current_dir(&here);
    if let Some(name) = first.strip_prefix('$') {
        command.env(name, &moved);
    }
    let output = command.args(["sessions", "--json"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = json["recordings"].as_array().unwrap().iter();
    Ok(found.map(|one| one["format"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn a_recording_is_found_at_each_place_of_the_table() {
    let table = table();
    assert!(table.len() > 25, "{}", table.len());
    let mut wrong = Vec::new();
    for (product, format, paths) in table {
        for path in paths {
            let lower = path.to_lowercase();
            let is_database = lower.ends_with("db") || lower.ends_with(".sqlite");
            if is_database && !cfg!(feature = "sqlite") {
                continue;
            }
            match found_at(path, format) {
                Ok(found) if !found.is_empty() && found.iter().all(|it| it == format) => {}
                told => wrong.push(format!("{product}: `{path}`: {told:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
