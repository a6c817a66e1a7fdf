//! Thousands of recordings are listed in none of their size, and many messages are shown in little more than theirs.
//!
//! The system holds the program to the ceiling: one byte more, and it dies.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use proctor::context::Entry;
use proctor::session::{ContentBlock, Message};

use super::user;

/// Runs the program, which may hold so many kilobytes beside its code.
#[track_caller]
fn run(folder: &Path, ceiling: usize, arguments: &[&str]) -> Output {
    let output = Command::new("sh")
        .args(["-c", "ulimit -d \"$1\" && shift && exec \"$@\"", "sh"])
        .arg(ceiling.to_string())
        .arg(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

#[test]
fn thousands_of_recordings_are_listed_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    for at in 0..2_000 {
        let line = user("u", "", "Look.") + "\n";
        std::fs::write(folder.path().join(format!("{at}.jsonl")), line).unwrap();
    }
    let text = "the quick brown fox jumps over the lazy dog ".repeat(400_000);
    let long = [user("u", "", "Look."), user("v", "u", &text)].join("\n");
    std::fs::write(folder.path().join("long.jsonl"), long).unwrap();
    // About half of the longest file, and the stack of the thread that waits for Ctrl-C.
    let output = run(folder.path(), 11 << 10, &["sessions", "import", "--list", "."]);
    let listed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(listed.lines().count(), 2_001);
}

#[test]
fn a_session_of_many_tiny_messages_is_shown_in_little_memory() {
    const MESSAGES: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let mut session = r#"{"format":"proctor-session","version":1,"id":"long"}"#.to_owned();
    for at in 0..MESSAGES {
        let role = ["user", "assistant"][at % 2];
        let content = format!(r#"[{{"type":"text","text":"{at}"}}]"#);
        write!(session, "\n{{\"role\":\"{role}\",\"content\":{content}}}").unwrap();
    }
    std::fs::write(folder.path().join("a.session.jsonl"), session + "\n").unwrap();
    // A counter without tables. A kilobyte of JSON for each entry would be more than this.
    let shown = ["inspect", "a.session.jsonl", "--set", "counter=chars/4"];
    let output = run(folder.path(), 40 << 10, &shown);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains(&format!("[{}] user", MESSAGES - 2)));
    let sizes = [size_of::<Message>(), size_of::<ContentBlock>(), size_of::<Entry>()];
    assert_eq!(sizes, [40, 24, 56]);
}
