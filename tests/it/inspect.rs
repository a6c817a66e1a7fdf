//! A snapshot of one call: the context that a replay sends, and the fate of every message.

use std::process::Command;
use std::sync::Arc;

use proctor::context::Entry;
use proctor::model::offline::Offline;
use proctor::replay::observe::snapshot::{Representation, Snapshot, SnapshotObserver};
use proctor::replay::{Models, NoClock, Replay, Replayed, replay_observed};
use proctor::units::Tokens;
use proctor::window::Window;
use serde_json::Value;

use crate::support::{cell, prepared, reading_session, strategy};

/// Replays a session and takes a snapshot at `call`.
fn snapshot_of(name: &str, window: u64, call: usize) -> (Option<Snapshot>, Replay) {
    let prepared = prepared(reading_session(12, 2_000));
    let mut snapshot = None;
    let replayed = match name {
        "full" => Replayed::Full,
        name => {
            let strategy = Box::new(strategy(name).build().unwrap());
            Replayed::Strategy(strategy, Window::new(Tokens(window)))
        }
    };
    let models = Models {
        summariser: Arc::new(Offline::new(prepared.counts().clone())),
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    };
    let observer = Box::new(SnapshotObserver::new(call, &mut snapshot));
    let replay =
        replay_observed(&prepared, cell(name), replayed, &models, &NoClock, vec![observer]);
    (snapshot, replay)
}

#[test]
fn a_snapshot_shows_the_prompt_that_the_replay_counted() {
    for name in ["full", "none", "observation-masking", "learn-claude-code-s06", "tail@2000"] {
        let window = if name == "tail@2000" { 4_000 } else { 100_000 };
        for call in [0, 3, 7, 12] {
            let (snapshot, replay) = snapshot_of(name, window, call);
            let snapshot = snapshot.unwrap();
            let size: Tokens = snapshot.entries.iter().map(|entry| entry.size().tokens).sum();
            assert_eq!(
                snapshot.fixed.tokens + size,
                replay.record.prompt_tokens[call],
                "{name} {call}"
            );
            assert_eq!(snapshot.fates.len(), snapshot.before, "{name} {call}");
            for fate in &snapshot.fates {
                assert_eq!(
                    fate.fate == Representation::Verbatim,
                    fate.decided.is_none(),
                    "{name}: {fate:?}"
                );
            }
        }
    }
}

#[test]
fn each_fate_names_the_stage_and_the_call_that_decided_it() {
    let (snapshot, replay) = snapshot_of("observation-masking", 100_000, 12);
    let snapshot = snapshot.unwrap();
    let edited: Vec<_> = snapshot.fates.iter().filter_map(|fate| fate.decided.as_ref()).collect();
    assert!(!edited.is_empty());
    for decided in edited {
        assert_eq!(&*decided.stage, "clear_results");
        assert!(
            replay
                .record
                .compactions
                .iter()
                .any(|event| { event.call == decided.call && event.reason == decided.reason })
        );
    }
    let (snapshot, _) = snapshot_of("tail@2000", 4_000, 12);
    let derived = snapshot.unwrap().fates.into_iter().filter_map(|fate| match fate.fate {
        Representation::Derived => fate.decided,
        _ => None,
    });
    let stages: Vec<String> = derived.map(|decided| decided.stage.to_string()).collect();
    assert!(stages.len() > 5 && stages.iter().all(|stage| stage == "select"));
}

#[test]
fn a_session_that_died_before_shows_nothing() {
    let (snapshot, replay) = snapshot_of("none", 2_000, 12);
    assert!(snapshot.is_none());
    assert!(replay.record.reached_calls < 12);
}

/// What was compacted for a call is what the record says was, entry by entry.
#[test]
fn a_snapshot_shows_each_compaction_before_and_after() {
    let (snapshot, replay) = snapshot_of("observation-masking", 100_000, 12);
    let snapshot = snapshot.unwrap();
    let events = replay.record.compactions.iter();
    let events: Vec<_> = events
        .filter(|event| event.call == 12)
        .map(|event| (event.stage.as_str(), event.before, event.after))
        .collect();
    let patches = snapshot.patches.iter();
    let shown: Vec<_> = patches
        .map(|patch| (&*patch.stage, patch.change.before.tokens, patch.change.after.tokens))
        .collect();
    assert_eq!(shown, events);
    assert_eq!(shown.len(), 1);
    let size =
        |entries: &[Entry]| -> Tokens { entries.iter().map(|entry| entry.size().tokens).sum() };
    let patch = &snapshot.patches[0];
    let change = &patch.change;
    let added: Vec<Entry> = change.edits.iter().flat_map(|it| it.with.clone()).collect();
    assert!(!change.removed.is_empty() && change.removed.len() == added.len());
    assert_eq!(size(&change.removed) - size(&added), change.before.tokens - change.after.tokens);
    let (snapshot, _) = snapshot_of("none", 100_000, 12);
    assert!(snapshot.unwrap().patches.is_empty());
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_proctor"))
        .args(["inspect", "--synthetic", "code-review:7:20"])
        .args(arguments)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn json(arguments: &[&str]) -> Value {
    let (code, text, said) = run(&[arguments, &["--json"]].concat());
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn two_strategies_are_compared_at_one_call() {
    let arguments = ["--diff", "full", "observation-masking", "--at", "15"];
    let diff = json(&arguments);
    assert_eq!((&diff["a"]["strategy"], &diff["a"]["call"]), (&"full".into(), &15.into()));
    let sum = |side: &str| -> u64 {
        let parts = diff["usage"].as_array().unwrap().iter();
        parts.map(|part| part[side].as_u64().unwrap()).sum()
    };
    assert_eq!(Some(sum("a")), diff["a"]["prompt_tokens"].as_u64());
    assert_eq!(Some(sum("b")), diff["b"]["prompt_tokens"].as_u64());
    assert!(sum("a") > sum("b"));
    let messages = diff["messages"].as_array().unwrap();
    assert!(!messages.is_empty());
    for span in messages {
        assert_eq!((&span["a"], &span["b"]), (&"verbatim".into(), &"edited".into()));
    }
    // The same context beside itself differs in nothing, and the two sides are what the command
    // shows of each alone.
    let same = json(&["--diff", "observation-masking", "observation-masking", "--at", "15"]);
    assert_eq!(same["messages"], Value::Array(Vec::new()));
    assert_eq!(same["a"], same["b"]);
    let alone = json(&["--strategy", "observation-masking", "--at", "15"]);
    for key in ["prompt_tokens", "usage", "zone", "compactions"] {
        assert_eq!(alone[key], same["a"][key], "{key}");
    }
    let (_, text, _) = run(&arguments);
    for words in ["A  full at call 15", "B  edited (block", "by clear_results"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn a_control_is_shown_in_the_sizes_of_the_strategy_that_it_follows() {
    let masking = "observation-masking[clear_results.keep_last=3]";
    let control = format!("tail@{masking}");
    let alone = json(&["--strategy", &control, "--at", "15"]);
    assert_eq!(alone["strategy"], *control);
    // Beside the strategy it is the same, and no larger.
    let diff = json(&["--diff", masking, &control, "--at", "15"]);
    assert_eq!(diff["b"]["prompt_tokens"], alone["prompt_tokens"]);
    let tokens = |side: &str| diff[side]["prompt_tokens"].as_u64().unwrap();
    assert!(tokens("b") <= tokens("a"), "{diff}");
    assert!(tokens("a") < json(&["--at", "15"])["prompt_tokens"].as_u64().unwrap());
    let (code, _, said) = run(&["--strategy", "tail@nothing"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("follows `nothing`"), "{said}");
}

#[test]
fn two_calls_are_compared_under_one_strategy() {
    let diff = json(&["--diff", "5", "15", "--strategy", "observation-masking"]);
    assert_eq!((&diff["a"]["call"], &diff["b"]["call"]), (&5.into(), &15.into()));
    let messages = diff["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    assert_eq!((&last["a"], &last["b"]), (&Value::Null, &"verbatim".into()));
    let (_, text, _) = run(&["--diff", "5", "15"]);
    assert!(text.contains("A  not said yet"), "{text}");
    for arguments in [
        &["--diff", "5", "none"][..],
        &["--diff", "5", "15", "--at", "3"],
        &["--diff", "none", "full", "--strategy", "none"],
    ] {
        let (code, _, said) = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains("hint: "), "{said}");
    }
}

#[test]
fn the_zone_and_its_lines_stand_in_the_bar() {
    let narrow = ["--strategy", "none", "--window", "40k", "--at", "3"];
    let shown = json(&narrow);
    // 40,000 less 13,000, and 20,000 below that; 40,000 less 3,000.
    let lines = &shown["lines"];
    let of = |key: &str| lines[key].as_u64().unwrap();
    assert_eq!((of("warning"), of("auto_compact"), of("blocking")), (7_000, 27_000, 37_000));
    let prompt = shown["prompt_tokens"].as_u64().unwrap();
    assert_eq!(shown["zone"] == "normal", prompt < 7_000);
    assert_eq!(shown["flags"]["warning"], prompt >= 7_000);
    let (_, text, _) = run(&narrow);
    let bar = text.lines().find(|line| line.starts_with("zone: ")).unwrap();
    let at = |sign: char| bar.chars().rev().position(|c| c == sign).unwrap();
    assert!(at('b') < at('a') && at('a') < at('w'), "{bar}");
}

#[test]
fn the_command_shows_text_and_json() {
    let masked = ["--strategy", "observation-masking", "--window", "40000"];
    let (code, text, said) = run(&masked);
    assert_eq!(code, Some(0), "{said}");
    for words in ["Usage", "system prompt", "tool results: read", "verbatim", "by clear_results"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let (_, text, _) = run(&[&masked[..], &["--at", "17", "--all"]].concat());
    let compaction = "Compaction before this call by clear_results: ";
    assert!(text.contains(compaction), "{text}");
    assert!(text.contains("\n- user, message ") && text.contains("\n+ user, message "));
    let (_, text, _) = run(&[&masked[..], &["--json", "--chars", "0", "--at", "15"]].concat());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let total: u64 =
        json["usage"].as_array().unwrap().iter().map(|part| part["tokens"].as_u64().unwrap()).sum();
    assert_eq!(Some(total), json["prompt_tokens"].as_u64());
    assert_eq!(json["call"], 15);
    let (code, _, said) = run(&["--at", "99"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("hint: its calls are 0 to"));
    let (code, _, said) = run(&["--strategy", "none", "--window", "2000"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("the session dies at call"), "{said}");
}
