//! The commands beside `run` keep to one screen: 40 lines of 80 columns, whatever they are given.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use proctor::strategy::preset::PRESETS;

use crate::shared;

/// East Asian characters of these tests take two columns.
fn columns(line: &str) -> usize {
    line.chars().map(|c| if c >= '\u{2e80}' { 2 } else { 1 }).sum()
}

#[track_caller]
fn check(folder: &Path, typed: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .env("COLUMNS", "80")
        .env("PROCTOR_COUNTER", "chars/4")
        .args(typed.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{typed}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().count();
    assert!(lines <= 40, "{typed}: {lines} lines\n{text}");
    let widest = text.lines().map(columns).max();
    assert!(widest <= Some(80), "{typed}: {widest:?} columns\n{text}");
    text
}

const INSPECTED: &str = "inspect --synthetic code-review:1:60 --window 60k";

#[test]
fn built_in_inputs_keep_to_one_screen() {
    let folder = tempfile::tempdir().unwrap();
    for typed in ["strategies", "strategies find e", "doctor", "run --dry-run"] {
        check(folder.path(), typed);
    }
    let words = PRESETS.iter().map(|(name, _)| name.split('-').next().unwrap());
    for word in words {
        check(folder.path(), &format!("strategies find {word}"));
    }
    for (strategy, at) in
        [("claude-code", 53), ("claude-code", 59), ("full", 3), ("observation-masking", 59)]
    {
        check(folder.path(), &format!("{INSPECTED} --strategy {strategy} --at {at}"));
    }
    let text = check(folder.path(), &format!("{INSPECTED} --strategy claude-code"));
    assert!(text.contains("in place of messages 0-"), "{text}");
    check(folder.path(), &format!("{INSPECTED} --diff full claude-code"));
}

#[test]
fn twelve_strategies_keep_to_one_screen() {
    let folder = tempfile::tempdir().unwrap();
    let mut scenario = "name = 'many'\n[window]\ntokens = 12_000\n[models]\n\
        reader = { kind = 'openai', model = 'gpt-5-mini', key = 'NO_SUCH_KEY' }\n[[sessions]]\n\
        synthetic = { family = 'code-review', seed = 1, rounds = 12 }\ncount = 2\n"
        .to_owned();
    for keep in 1..=12 {
        scenario += "[[strategies]]\npreset = 'observation-masking'\n";
        scenario += "set = { clear_results.placeholder = '会话记录会话记录";
        writeln!(scenario, "', clear_results.keep_last = {keep} }}").unwrap();
    }
    fs::write(folder.path().join("many.toml"), scenario).unwrap();
    let plan = check(folder.path(), "run many.toml --dry-run");
    assert!(plan.contains("more, and each bill"), "{plan}");
    let doctor = check(folder.path(), "doctor many.toml --set seed=9");
    assert!(doctor.starts_with("!! key NO_SUCH_KEY, for gpt-5-mini: not set\n"), "{doctor}");
    assert!(doctor.contains("9  (flag --set seed=9)"), "{doctor}");
}

#[test]
fn shared_recordings_keep_to_one_screen() {
    let Some(sessions) = shared::folder("sessions/claude-code") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join(".claude/projects/-home-ada-会话记录会话记录会话记录会话记录");
    fs::create_dir_all(&project).unwrap();
    let mut files: Vec<_> = fs::read_dir(&sessions).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    for copy in 0..3 {
        for file in &files {
            let name = format!("{copy}-{}", file.file_name().unwrap().to_string_lossy());
            fs::copy(file, project.join(name)).unwrap();
        }
    }
    let found = check(home.path(), &format!("sessions --home {}", home.path().display()));
    assert!(found.contains('…') && found.lines().count() == 32, "{found}");
    let folder = sessions.display();
    check(home.path(), &format!("doctor --session {folder} --strategy codex"));
    check(
        home.path(),
        &format!("run --dry-run --session {folder} --strategy codex --strategy none"),
    );
    for file in &files {
        check(home.path(), &format!("inspect {} --strategy recorded", file.display()));
    }
}
