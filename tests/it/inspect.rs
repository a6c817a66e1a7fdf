//! A look at one call: the same context that a replay sends, and a fate for every message.

use std::process::Command;
use std::sync::Arc;

use proctor::model::offline::Offline;
use proctor::replay::observe::look::{Look, Onlooker, Presence, Seen};
use proctor::replay::{Models, NoClock, Replay, Replayed, replay_observed};
use proctor::units::Tokens;
use proctor::window::Window;

use crate::support::{cell, prepared, reading_session, strategy};

/// Replays under an onlooker at `call`.
fn look(name: &str, window: u64, call: usize) -> (Option<Look>, Replay) {
    let prepared = prepared(reading_session(12, 2_000));
    let seen = Seen::default();
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
    };
    let onlooker = Box::new(Onlooker::new(call, seen.clone()));
    let replay = replay_observed(
        &prepared,
        cell(name),
        replayed,
        &models,
        &NoClock,
        vec![onlooker],
    );
    (seen.take(), replay)
}

#[test]
fn a_look_shows_the_prompt_that_the_replay_counted() {
    for name in [
        "full",
        "none",
        "observation-masking",
        "learn-claude-code-s06",
        "tail@2000",
    ] {
        let window = if name == "tail@2000" { 4_000 } else { 100_000 };
        for call in [0, 3, 7, 12] {
            let (seen, replay) = look(name, window, call);
            let seen = seen.unwrap();
            let size: Tokens = seen.entries.iter().map(|entry| entry.size.tokens).sum();
            assert_eq!(
                seen.fixed.tokens + size,
                replay.record.prompt_tokens[call],
                "{name} {call}"
            );
            assert_eq!(seen.fates.len(), seen.before, "{name} {call}");
            for fate in &seen.fates {
                assert_eq!(
                    fate.fate == Presence::Verbatim,
                    fate.decided.is_none(),
                    "{name}: {fate:?}"
                );
            }
        }
    }
}

#[test]
fn each_fate_names_the_stage_and_the_call_that_decided_it() {
    let (seen, replay) = look("observation-masking", 100_000, 12);
    let seen = seen.unwrap();
    let edited: Vec<_> = seen
        .fates
        .iter()
        .filter_map(|fate| fate.decided.as_ref())
        .collect();
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
    let (seen, _) = look("tail@2000", 4_000, 12);
    let derived = seen
        .unwrap()
        .fates
        .into_iter()
        .filter_map(|fate| match fate.fate {
            Presence::Derived => fate.decided,
            _ => None,
        });
    let stages: Vec<String> = derived.map(|decided| decided.stage.to_string()).collect();
    assert!(stages.len() > 5 && stages.iter().all(|stage| stage == "extract"));
}

#[test]
fn a_session_that_died_before_shows_nothing() {
    let (seen, replay) = look("none", 2_000, 12);
    assert!(seen.is_none());
    assert!(replay.record.reached_calls < 12);
}

#[test]
fn the_command_shows_text_and_json() {
    let run = |arguments: &[&str]| {
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
    };
    let masked = ["--strategy", "observation-masking", "--window", "40000"];
    let (code, text, said) = run(&masked);
    assert_eq!(code, Some(0), "{said}");
    for words in [
        "Usage",
        "system prompt",
        "tool results: read",
        "verbatim",
        "by clear_results",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    let (_, text, _) = run(&[&masked[..], &["--json", "--chars", "0", "--at", "15"]].concat());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let total: u64 = json["usage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(Some(total), json["prompt_tokens"].as_u64());
    assert_eq!(json["call"], 15);
    let (code, _, said) = run(&["--at", "99"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("hint: its calls are 0 to"));
    let (code, _, said) = run(&["--strategy", "none", "--window", "2000"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("the session dies at call"), "{said}");
}
