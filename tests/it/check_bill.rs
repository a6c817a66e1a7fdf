//! `scripts/check_bill` says how many recorded compactions it judged, and fails where it judged none.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A rollout of Codex in a window of 40,000 tokens: a compaction in place of call `compacted`, in a task of
/// its own where a person asks for it, and a few calls behind it. `reasoning` of each of the first ten calls
/// is part of their output, and then somebody types again.
fn rollout(compacted: u64, asks: bool, reasoning: u64) -> String {
    let mut text = String::new();
    // Equal lines of one time are copies.
    let mut at = 0;
    let mut add = |kind: &str, payload: Value| {
        at += 1;
        let time = format!("2026-11-22T16:38:17.{at:03}Z");
        let line = json!({"timestamp": time, "type": kind, "payload": payload});
        writeln!(text, "{line}").unwrap();
    };
    let event = |kind: &str| json!({"type": kind, "model_context_window": 38_000});
    let said = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Read."}]});
    add("session_meta", json!({"base_instructions": {"text": "You mend clocks."}}));
    add("event_msg", event("task_started"));
    add("response_item", said.clone());
    for number in 0..compacted + 5 {
        if number == compacted {
            if asks {
                add("event_msg", event("task_complete"));
                add("event_msg", event("task_started"));
            }
            add("compacted", json!({"message": "", "replacement_history": [said]}));
            if asks {
                add("event_msg", event("task_complete"));
                add("event_msg", event("task_started"));
            }
        }
        let size = 5_000 + 1_000 * if number < compacted { number } else { number - compacted };
        let mut usage = json!({"input_tokens": size, "output_tokens": 20});
        if number < 10 {
            usage["reasoning_output_tokens"] = json!(reasoning);
        } else if number == 10 {
            add("response_item", said.clone());
        }
        let id = format!("c{number}");
        add(
            "response_item",
            json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": id}),
        );
        add(
            "event_msg",
            json!({"type": "token_count", "info": {"last_token_usage": usage, "number": number}}),
        );
        let output = format!("{number} gears: {}", "gear ".repeat(980));
        add(
            "response_item",
            json!({"type": "function_call_output", "call_id": id, "output": output}),
        );
    }
    text
}

#[track_caller]
fn check(recording: &str, passes: bool, says: &[&str]) {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.jsonl");
    std::fs::write(&path, recording).unwrap();
    let output = Command::new("python3")
        .arg(root().join("scripts/check_bill"))
        .arg(path)
        .env("PROCTOR", env!("CARGO_BIN_EXE_proctor"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.success(),
        passes,
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for line in says {
        assert!(said.contains(line), "{line}: {said}");
    }
}

#[test]
fn it_counts_what_is_recorded_and_judged_and_fails_where_nothing_is_judged_or_met() {
    let row = |judged: &str| {
        format!("codex    1         {judged}  0 of 0          0 of 0            0 of 0   0 of 0")
    };
    // The preset compacts at 36,000 of 40,000 tokens.
    let met = row("1       1    0      0     0    ");
    check(&rollout(32, false, 0), true, &[&met]);
    // Half a thousand tokens of reasoning in each of ten calls are part of Codex's sum.
    check(&rollout(27, false, 500), true, &[&met]);
    check(
        &rollout(27, false, 0),
        false,
        &[
            &row("1       0    0      1     0    "),
            "FAILED: codex: none of 1 automatic compactions is met",
        ],
    );
    check(
        &rollout(32, true, 0),
        false,
        &["a person asked for it: 1", "FAILED: codex: 1 recorded, and none of them is judged"],
    );
    let pi = std::fs::read_to_string(
        root().join("crates/proctor-formats/tests/fixtures/agents/pi.own.jsonl"),
    )
    .unwrap();
    check(&pi, true, &["pi       2         no preset"]);
}
