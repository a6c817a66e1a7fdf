//! The sessions recorded on a project of our own: they load, and their recorder makes them again.

use std::path::{Path, PathBuf};
use std::process::Command;

use proctor::session::import::load;
use proctor::session::{Session, Tag, ToolClass};

const SESSIONS: [&str; 3] = ["add-weeks", "mend-the-alarms", "walk-through"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn path(name: &str) -> PathBuf {
    root().join(format!("scenarios/recorded/{name}.session.jsonl"))
}

fn session(name: &str) -> Session {
    let mut sessions = load(&path(name)).unwrap();
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

#[test]
fn recorded_sessions_are_valid_and_every_call_is_answered() {
    for name in SESSIONS {
        let session = session(name);
        assert!(session.id().starts_with(name), "{}", session.id());
        let (mut uses, mut results) = (Vec::new(), Vec::new());
        for message in session.messages() {
            assert!(!message.has_tag(Tag::Orphan));
            uses.extend(message.tool_uses().map(|(_, it)| it.id.clone()));
            results.extend(message.tool_results().map(|(_, it)| it.tool_use_id.clone()));
        }
        assert_eq!(uses, results, "{name}");
        assert!(uses.len() >= 20, "{name}: {}", uses.len());
        assert!(session.calls().len() >= 15, "{name}");
        assert!(std::fs::metadata(path(name)).unwrap().len() < 300_000);
    }
}

/// A read after an edit shows what the edit wrote: these are no made-up results.
#[test]
fn what_was_edited_is_read_again_and_tests_tell_the_difference() {
    let session = session("mend-the-alarms");
    let text = |at: usize| session.message(at).model_text().join("\n");
    let all: Vec<String> = (0..session.messages().len()).map(text).collect();
    let position = |part: &str| all.iter().position(|text| text.contains(part)).unwrap();
    assert!(position("14 passed, 3 failed") < position("3 passed, 1 failed"));
    assert!(position("3 passed, 1 failed") < position("17 passed, 0 failed"));
    let last = all.last().unwrap();
    assert!(last.contains("17"), "{last}");
    let edits: Vec<&str> = session
        .messages()
        .iter()
        .flat_map(|message| message.tool_uses())
        .filter(|(_, tool)| tool.class == ToolClass::Edit)
        .map(|(_, tool)| &*tool.id)
        .collect();
    assert_eq!(edits.len(), 3);
    let reread = all.iter().rposition(|text| text.contains("station.off:"));
    assert!(reread.unwrap() > position("17 passed, 0 failed"));
}

/// Byte for byte, where Python and the usual tools are there.
#[test]
fn the_recorder_makes_the_same_sessions_again() {
    let there = |program: &str| {
        let asked = Command::new(program).arg("--version").output();
        asked.is_ok_and(|output| output.status.success())
    };
    if !there("python3") || !there("grep") {
        println!("skipped: no python3 or no grep");
        return;
    }
    let output = Command::new("python3")
        .arg(root().join("scripts/record_fixture"))
        .arg("--check")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn no_recorded_session_tells_where_it_was_recorded() {
    for name in SESSIONS {
        let text = std::fs::read_to_string(path(name)).unwrap();
        for part in [std::env::temp_dir(), root().to_owned()] {
            let part = part.display().to_string();
            assert!(!text.contains(&part), "{name}: {part}");
        }
        assert!(!text.contains("timestamp"), "{name}");
    }
}
