//! Tuning in one command: the grid of what a strategy offers, few sessions, and the preset that it ends with.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder with `suite.toml`: so many sessions, most of them larger than the window.
fn bench(sessions: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "name = 'suite'\ncounter = 'chars/4'\n[window]\ntokens = 70_000\n\
         [[sessions]]\nsynthetic = {{ family = 'code-review', rounds = 40 }}\ncount = {sessions}\n"
    );
    fs::write(folder.path().join("suite.toml"), text).unwrap();
    folder
}

fn proctor(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args(arguments)
        .current_dir(folder)
        .env("COLUMNS", "80")
        .output()
        .unwrap()
}

/// Runs a sweep, and returns what it prints; what goes to standard error comes behind.
#[track_caller]
fn swept(folder: &Path, arguments: &str, code: i32) -> String {
    let words = arguments.split_whitespace();
    let words: Vec<&str> = ["sweep", "suite.toml"].into_iter().chain(words).collect();
    let output = proctor(folder, &words);
    let [printed, said] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(output.status.code(), Some(code), "{printed}{said}");
    format!("{printed}\n{said}")
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    for part in parts {
        assert!(text.contains(part), "{text}\n\ndoes not say\n\n{part}");
    }
}

#[test]
fn a_grid_shows_trigger_and_keep_count_on_one_screen() {
    let folder = bench(12);
    // One of the two knobs does nothing: a code review has one message of the user.
    let screen = swept(folder.path(), "--strategy codex", 0);
    let (screen, _) = screen.split_once("\n\n25 settings;").unwrap();
    assert!(screen.lines().count() <= 31, "{screen}");
    // A command is one line where it cannot be folded.
    let (shown, _) = screen.split_once("Next").unwrap();
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{screen}");
    insta::assert_snapshot!("sweep_grid", screen);
    // A preset without a trigger: how often it acts. What saves more and keeps too little is named.
    let screen = swept(folder.path(), "--strategy observation-masking", 0);
    says(
        &screen,
        &[
            "rows: clear_results.every; columns: clear_results.keep_last",
            "Refused: every=",
            "points of facts; `--margin facts=0.",
        ],
    );
}

#[test]
fn a_preset_is_written_where_a_setting_is_recommended_and_never_over_another_file() {
    let folder = bench(12);
    let path = folder.path();
    // With this margin a setting is chosen that other sessions confirm.
    let masking = "--strategy observation-masking --margin facts=0.11";
    let said = swept(path, &format!("{masking} --apply"), 0);
    says(
        &said,
        &["wrote `observation-masking-tuned.toml`", "--strategy ./observation-masking-tuned.toml"],
    );
    let preset = fs::read_to_string(path.join("observation-masking-tuned.toml")).unwrap();
    assert!(preset.starts_with("# Recommended by a sweep of scenario `suite`"), "{preset}");
    assert!(preset.contains("from a sweep\""), "{preset}");
    let run = ["run", "suite.toml", "--strategy", "./observation-masking-tuned.toml"];
    let ran = proctor(path, &run);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said = swept(path, &format!("{masking} --apply"), 110);
    says(&said, &["`observation-masking-tuned.toml` is there already", "`--force` writes over it"]);
    swept(path, &format!("{masking} --apply --force"), 0);
    // A run needs no name for its file either.
    let unnamed = ["run", "suite.toml", "--strategy", "codex", "--apply", "--out", "all"];
    let ended = proctor(path, &unnamed);
    assert_ne!(ended.status.code(), Some(2), "{}", String::from_utf8_lossy(&ended.stderr));
    // Nothing is written where nothing is recommended.
    let said = swept(path, "--strategy codex --apply mine.toml", 4);
    says(&said, &["`mine.toml` is not written: "]);
    assert!(!path.join("mine.toml").exists());
}

#[test]
fn few_sessions_are_described_and_choose_nothing() {
    for (sessions, parts) in [
        (1, ["On this session: ", "One session decides nothing: give a folder."]),
        (
            5,
            [
                "On these 5 sessions: ",
                "12 independent sessions are the least that can choose and confirm.",
            ],
        ),
    ] {
        let folder = bench(sessions);
        let said = swept(folder.path(), "--strategy observation-masking", 0);
        says(&said, &parts);
        says(&said, &["Nothing is recommended; the default stays."]);
        let said = swept(folder.path(), "--strategy observation-masking --apply", 4);
        says(&said, &["`observation-masking-tuned.toml` is not written: on th"]);
    }
}

#[test]
fn a_strategy_with_nothing_to_tune_and_one_that_never_fires_say_so() {
    let folder = bench(1);
    let said = swept(folder.path(), "--strategy none", 2);
    says(&said, &["`none` has nothing to tune", "-P stage.knob=1,3,10", "[[tune]]"]);
    let said = swept(folder.path(), "--strategy codex --window 500k", 0);
    says(&said, &["Nothing fires, whatever the values", "`--window fit:0.6`"]);
    let preset = "[[stage]]\nkind = 'clear_results'\nkeep_last = 4\n[[tune]]\nknob = 'clear_results.keep_last'\nvalues = [2, 3]\n";
    fs::write(folder.path().join("mine.toml"), preset).unwrap();
    let said = swept(folder.path(), "--strategy mine.toml", 0);
    says(
        &said,
        &["3 settings; chosen on 1 session, tried on 0", "columns: clear_results.keep_last 2 3 4"],
    );
}
