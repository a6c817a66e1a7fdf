//! Thousands of recordings are listed in none of their size.
//!
//! The system holds the program to the ceiling: one byte more, and it dies.

use std::process::Command;

use super::user;

/// How many kilobytes the program may hold beside its code: about half of the longest file.
const CEILING: usize = 9 << 10;

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
    let output = Command::new("sh")
        .args(["-c", "ulimit -d \"$1\" && shift && exec \"$@\"", "sh"])
        .arg(CEILING.to_string())
        .arg(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder.path())
        .args(["import", "--list", "."])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(listed.lines().count(), 2_001);
}
