//! Sessions that repeat the beginning of another: the first one keeps its calls, later ones go on.

use std::fs;
use std::path::Path;
use std::process::Command;

use proctor::session::import::{self, ForkIndex};
use serde_json::{Value, json};

/// A Claude Code recording of these turns, under a session's own record names.
pub(crate) fn recording(session: &str, turns: &[(&str, &str)]) -> String {
    let mut lines = Vec::new();
    let mut parent = Value::Null;
    for (at, (asked, answered)) in turns.iter().enumerate() {
        let time = format!("2026-03-01T09:{at:02}:00Z");
        let uuid = format!("{session}-{at}");
        lines
            .push(json!({"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": session,
            "timestamp": time, "message": {"role": "user", "content": asked}}));
        let reply = format!("{uuid}-r");
        lines.push(json!({"type": "assistant", "uuid": reply, "parentUuid": uuid, "sessionId": session,
            "timestamp": time, "message": {"id": format!("msg_01{at}{answered}"), "role": "assistant",
            "model": "m", "content": [{"type": "text", "text": answered}]}}));
        parent = json!(reply);
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

fn proctor(folder: &Path, arguments: &[&str]) -> (String, String, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

const BEGUN: [(&str, &str); 2] = [("Mend the gate.", "It hangs."), ("Oil it.", "Oiled.")];

/// Imports these files together, and runs them together: what is told of each after `repeated`, its
/// messages, and the calls that count in the run. On disk each file is what it is alone.
#[track_caller]
fn check(files: &[(&str, String)], expected: &[(&str, usize, usize)]) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    for (name, text) in files {
        fs::write(folder.path().join("in").join(name), text).unwrap();
    }
    let (told, errors, is_done) =
        proctor(folder.path(), &["sessions", "import", "in", "-o", "out"]);
    assert!(is_done, "{errors}");
    let repeated: Vec<String> = told
        .lines()
        .map(|line| line.split("; repeated: ").nth(1).unwrap_or("").to_owned())
        .map(|words| words.split(" `").next().unwrap().to_owned())
        .collect();
    let told: Vec<&str> = expected.iter().map(|it| it.0).collect();
    assert_eq!(repeated, told);
    for entry in fs::read_dir(folder.path().join("out")).unwrap() {
        let session = import::load(&entry.unwrap().path()).unwrap().remove(0);
        assert_eq!(session.loaded(), 0);
        assert!(session.source().warnings.is_empty());
    }
    let run = manifest(folder.path(), files.iter().map(|(name, _)| format!("in/{name}")));
    let sessions = run["sessions"].as_array().unwrap().iter();
    let found: Vec<(u64, u64)> = sessions
        .map(|it| (it["messages"].as_u64().unwrap(), it["calls"].as_u64().unwrap()))
        .collect();
    // A session without a call of its own is left out.
    let expected: Vec<(u64, u64)> =
        expected.iter().filter(|it| it.2 > 0).map(|it| (it.1 as u64, it.2 as u64)).collect();
    assert_eq!(found, expected);
}

/// Runs these sessions together; what was run.
fn manifest(folder: &Path, paths: impl Iterator<Item = String>) -> Value {
    let paths: Vec<String> = paths.collect();
    let mut arguments = vec!["run", "--strategy", "recorded"];
    arguments.extend(paths.iter().flat_map(|path| ["--session", path.as_str()]));
    let (_, errors, is_done) = proctor(folder, &arguments);
    assert!(is_done, "{errors}");
    let mut runs = fs::read_dir(folder.join("reports")).unwrap();
    let run = runs.next().unwrap().unwrap().path();
    let text = fs::read_to_string(run.join("run.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_fork_goes_on_after_what_it_repeats() {
    let with = |last| [BEGUN[0], BEGUN[1], last];
    check(
        &[
            ("a.jsonl", recording("s1", &with(("Paint it.", "Red.")))),
            ("b.jsonl", recording("s2", &with(("Close it.", "Shut.")))),
        ],
        &[("", 6, 3), ("the first 4 messages are those of session", 6, 1)],
    );
}

#[test]
fn a_copy_is_left_out_and_a_longer_one_has_the_rest() {
    let longer = [BEGUN[0], BEGUN[1], ("Paint it.", "Red.")];
    check(
        &[
            ("a.jsonl", recording("s1", &BEGUN)),
            ("b.jsonl", recording("s2", &BEGUN)),
            ("c.jsonl", recording("s3", &longer)),
        ],
        &[
            ("", 4, 2),
            ("all of it stands in session", 4, 0),
            ("the first 4 messages are those of session", 6, 1),
        ],
    );
}

#[test]
fn a_copy_without_times_and_drawn_names_is_left_out() {
    let plain = |session: &str, turns: &[(&str, &str)]| {
        let text = recording(session, turns).replace("msg_01", "m");
        let lines = text.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("timestamp");
            line.to_string() + "\n"
        });
        lines.collect::<String>()
    };
    let longer = [BEGUN[0], BEGUN[1], ("Paint it.", "Red.")];
    check(
        &[
            ("a.jsonl", plain("s1", &BEGUN)),
            ("b.jsonl", plain("s2", &BEGUN)),
            ("c.jsonl", plain("s3", &longer)),
        ],
        &[("", 4, 2), ("all of it stands in session", 4, 0), ("", 6, 3)],
    );
}

#[test]
fn sessions_that_only_say_the_same_are_two() {
    // Another time, and another name of the call: the model said it twice.
    let other = recording("s2", &BEGUN).replace("T09:", "T10:").replace("msg_01", "msg_02");
    check(&[("a.jsonl", recording("s1", &BEGUN)), ("b.jsonl", other)], &[("", 4, 2), ("", 4, 2)]);
}

#[test]
fn what_was_compacted_in_the_repeated_part_was_loaded_so() {
    let compacted = |last: &str| {
        let mut text = recording("s", &BEGUN);
        text.push_str(r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"s-1-r","compactMetadata":{"trigger":"auto","preTokens":9}}
{"type":"user","uuid":"c","parentUuid":"b","isCompactSummary":true,"message":{"role":"user","content":"The gate is oiled."}}
"#);
        for (uuid, parent, asked) in [("d", "c", "Paint it."), ("e", "d-r", last)] {
            let reply = json!({"type": "assistant", "uuid": format!("{uuid}-r"), "parentUuid": uuid,
                "timestamp": "2026-03-01T11:00:00Z",
                "message": {"id": format!("msg_{asked}"), "role": "assistant", "content": [{"type": "text", "text": "Yes."}]}});
            let question = json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"role": "user", "content": asked}});
            text.extend([
                question.to_string(),
                "\n".to_owned(),
                reply.to_string(),
                "\n".to_owned(),
            ]);
        }
        text
    };
    let mut forks = ForkIndex::default();
    let mut loaded = |name: &str, last: &str| {
        let path = Path::new(name);
        let importer = import::importer("claude-code").unwrap();
        let text = compacted(last);
        let session = importer.import(path, &mut text.as_bytes()).unwrap().remove(0);
        match forks.repeated(&session) {
            Some(shared) => shared.after(session).unwrap(),
            None => session,
        }
    };
    let (first, fork) = (loaded("a.jsonl", "Close it."), loaded("b.jsonl", "Open it."));
    assert_eq!(first.loaded(), 0);
    let told = super::outline(&fork);
    let expected =
        r#"compaction before 6: auto 9: (user[compact_summary] "The gate is oiled."), kept 4..6"#;
    assert!(told.contains(expected), "{told}");
    assert!(told.contains("counts there"), "{told}");
    assert_eq!((fork.loaded(), fork.calls()), (6, &[7][..]));
}
