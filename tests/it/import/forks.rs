//! Sessions that repeat the beginning of another: the first one keeps its calls, later ones go on.

use std::fs;
use std::path::Path;
use std::process::Command;

use proctor::session::import;
use serde_json::{Value, json};

/// A Claude Code recording of these turns, under a session's own record names.
fn recording(session: &str, turns: &[(&str, &str)]) -> String {
    let mut lines = Vec::new();
    let mut parent = Value::Null;
    for (at, (asked, answered)) in turns.iter().enumerate() {
        let time = format!("2026-03-01T09:{at:02}:00Z");
        let uuid = format!("{session}-{at}");
        lines.push(
            json!({"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": session,
            "timestamp": time, "message": {"role": "user", "content": asked}}),
        );
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
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.success(),
    )
}

const BEGUN: [(&str, &str); 2] = [("Mend the gate.", "It hangs."), ("Oil it.", "Oiled.")];

/// Imports these files together; what each then holds: messages, calls, where it was resumed.
#[track_caller]
fn check(files: &[(&str, String)], expected: &[(&str, usize, usize, usize)]) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    for (name, text) in files {
        fs::write(folder.path().join("in").join(name), text).unwrap();
    }
    let (told, errors, is_done) = proctor(folder.path(), &["import", "in", "-o", "out"]);
    assert!(is_done, "{errors}");
    assert_eq!(told.lines().count(), files.len(), "{told}");
    let mut paths: Vec<_> = fs::read_dir(folder.path().join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let session = import::load(&path).unwrap().remove(0);
        let name = session.id().split('-').next().unwrap().to_owned();
        let warned = session
            .source()
            .warnings
            .keys()
            .any(|what| what.contains("session `"));
        assert_eq!(warned, session.loaded() > 0, "{:?}", session.source());
        found.push((
            name,
            session.messages().len(),
            session.calls().len(),
            session.loaded(),
        ));
    }
    let found: Vec<_> = found
        .iter()
        .map(|(name, a, b, c)| (name.as_str(), *a, *b, *c))
        .collect();
    assert_eq!(found, expected);
    // A run counts the same calls.
    let paths: Vec<String> = files.iter().map(|(name, _)| format!("in/{name}")).collect();
    let mut arguments = vec!["run", "--strategy", "none", "-o", "report.json"];
    arguments.extend(paths.iter().flat_map(|path| ["--session", path.as_str()]));
    let (_, errors, is_done) = proctor(folder.path(), &arguments);
    assert!(is_done, "{errors}");
    let run = fs::read_dir(folder.path().join("reports"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let manifest = fs::read_to_string(run.join("run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let calls = manifest["sessions"].as_array().unwrap().iter();
    let calls: usize = calls
        .map(|it| usize::try_from(it["calls"].as_u64().unwrap()).unwrap())
        .sum();
    assert_eq!(calls, expected.iter().map(|it| it.2).sum::<usize>());
}

#[test]
fn a_fork_goes_on_after_what_it_repeats() {
    let with = |last| [BEGUN[0], BEGUN[1], last];
    check(
        &[
            ("a.jsonl", recording("s1", &with(("Paint it.", "Red.")))),
            ("b.jsonl", recording("s2", &with(("Close it.", "Shut.")))),
        ],
        &[("a", 6, 3, 0), ("b", 6, 1, 4)],
    );
}

#[test]
fn a_copy_has_no_call_of_its_own_and_a_longer_one_has_the_rest() {
    let longer = [BEGUN[0], BEGUN[1], ("Paint it.", "Red.")];
    check(
        &[
            ("a.jsonl", recording("s1", &BEGUN)),
            ("b.jsonl", recording("s2", &BEGUN)),
            ("c.jsonl", recording("s3", &longer)),
        ],
        &[("a", 4, 2, 0), ("b", 4, 0, 4), ("c", 6, 1, 4)],
    );
}

#[test]
fn sessions_that_only_say_the_same_are_two() {
    // Another time, and another name of the call: the model said it twice.
    let other = recording("s2", &BEGUN)
        .replace("T09:", "T10:")
        .replace("msg_01", "msg_02");
    check(
        &[("a.jsonl", recording("s1", &BEGUN)), ("b.jsonl", other)],
        &[("a", 4, 2, 0), ("b", 4, 2, 0)],
    );
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
    let folder = tempfile::tempdir().unwrap();
    for (name, last) in [("a", "Close it."), ("b", "Open it.")] {
        fs::write(folder.path().join(format!("{name}.jsonl")), compacted(last)).unwrap();
    }
    let (_, errors, is_done) = proctor(
        folder.path(),
        &["import", "a.jsonl", "b.jsonl", "-o", "out"],
    );
    assert!(is_done, "{errors}");
    let mut paths: Vec<_> = fs::read_dir(folder.path().join("out"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    paths.sort();
    let fork = import::load(&paths[1]).unwrap().remove(0);
    let told = super::outline(&fork);
    let expected =
        r#"compaction before 6: auto 9: (user[compact_summary] "The gate is oiled."), kept 4..6"#;
    assert!(told.contains(expected), "{told}");
    assert_eq!((fork.loaded(), fork.calls()), (6, &[7][..]));
}
