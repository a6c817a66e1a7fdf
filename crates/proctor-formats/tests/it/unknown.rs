//! A law of every format of records: one that nobody has heard of is kept, and counted.

use proctor_sessions::{ContentBlock, Session};
use serde_json::Value;

use super::{fixture, read, round_trip, written};

const SAID: &str = "the mill stands still";

/// Records that say something, each in another place.
const RECORDS: &[&str] = &[
    r#"{"type":"never-heard-of","text":"SAID"}"#,
    r#"{"type":"never-heard-of","content":[{"type":"text","text":"SAID"}]}"#,
    r#"{"type":"never-heard-of","payload":{"note":"SAID"}}"#,
    r#"{"type":"never-heard-of","data":{"deep":[{"words":"SAID"}]}}"#,
    r#"{"type":"never-heard-of","message":{"role":"never-heard-of","content":"SAID"}}"#,
];

fn sessions(format: &str, text: &str) -> Vec<Session> {
    read(format, text.as_bytes()).unwrap_or_else(|error| panic!("{format}: {error}"))
}

/// Blocks that are not opaque, and all that is counted as unknown.
fn counted(sessions: &[Session]) -> (usize, u64) {
    let blocks = sessions.iter().flat_map(Session::messages);
    let blocks = blocks.flat_map(|message| message.content());
    let is_read = |block: &&ContentBlock| !matches!(block, ContentBlock::Opaque(_));
    let unknown = sessions.iter().flat_map(|it| it.source().unknown.values());
    (blocks.filter(is_read).count(), unknown.sum())
}

/// Puts each record in every place of a list of records but the first, one at a time.
#[track_caller]
fn check(format: &str, records: &[String], whole: impl Fn(&[String]) -> String) {
    let (blocks, unknown) = counted(&sessions(format, &whole(records)));
    for record in RECORDS {
        let record = record.replace("SAID", SAID);
        for at in 1..=records.len() {
            let mut more = records.to_vec();
            more.insert(at, record.clone());
            let found = sessions(format, &whole(&more));
            let told: Vec<String> =
                found.iter().map(|session| String::from_utf8(written(session)).unwrap()).collect();
            let place = format!("{format}: {record} before record {at}");
            assert!(told.iter().any(|it| it.contains(SAID)), "{place}");
            // A result that was written twice stays where something else stands beside it.
            let (more, counted) = counted(&found);
            assert!(more >= blocks && counted == unknown + 1, "{place}");
            for session in &found {
                round_trip(session);
            }
        }
    }
}

#[track_caller]
fn check_lines(format: &str, file: &str) {
    let text = std::fs::read_to_string(fixture(file)).unwrap();
    // What a person went back from is gone, known or not.
    let lines = text.lines().filter(|line| !line.contains("rewind"));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    check(format, &lines, |lines| lines.join("\n") + "\n");
}

#[test]
fn an_unknown_record_of_claude_code_is_kept() {
    check_lines("claude-code", "claude-code/split-calls.jsonl");
    check_lines("claude-code", "claude-code/compaction.jsonl");
}

#[test]
fn an_unknown_record_of_codex_is_kept() {
    check_lines("codex", "codex/rollout.jsonl");
}

#[test]
fn an_unknown_record_of_pi_is_kept() {
    check_lines("pi", "pi/tree.jsonl");
}

#[test]
fn an_unknown_record_of_iflow_is_kept() {
    check_lines("iflow", "iflow/session.jsonl");
}

#[test]
fn an_unknown_record_of_copilot_is_kept() {
    check_lines("copilot-cli", "copilot-cli/events.jsonl");
}

#[test]
fn an_unknown_record_of_gemini_is_kept() {
    check_lines("gemini-cli", "gemini-cli/chat.jsonl");
}

#[test]
fn an_unknown_record_of_qwen_is_kept() {
    check_lines("qwen-code", "qwen-code/chat.jsonl");
}

#[test]
fn an_unknown_record_of_goose_is_kept() {
    check_lines("goose", "goose/session.jsonl");
}

#[test]
fn an_unknown_record_of_openhands_is_kept() {
    let text = std::fs::read_to_string(fixture("openhands/trajectory.json")).unwrap();
    let events: Vec<Value> = serde_json::from_str(&text).unwrap();
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    check("openhands", &events, |events| format!("[{}]", events.join(",")));
}

#[test]
fn an_unknown_message_of_the_apis_is_kept() {
    for (format, asks) in [
        (
            "anthropic",
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"read","input":{}}]}"#,
        ),
        ("openai-chat", r#"{"role":"assistant","content":"Yes.","tool_calls":[]}"#),
    ] {
        let messages =
            [r#"{"role":"user","content":"Look."}"#, asks, r#"{"role":"user","content":"And?"}"#];
        let messages = messages.map(str::to_owned);
        check(format, &messages, |it| format!(r#"{{"model":"m","messages":[{}]}}"#, it.join(",")));
    }
}

#[test]
fn an_unknown_record_among_whole_conversations_is_none() {
    for (format, file) in [
        ("openai-responses", "openai-responses/chain.jsonl"),
        ("openhands", "openhands/output.jsonl"),
    ] {
        let text = std::fs::read_to_string(fixture(file)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let own = sessions(format, &text);
        for record in RECORDS {
            for at in 1..=lines.len() {
                let more = [&lines[..at], &[record], &lines[at..]].concat();
                let found = sessions(format, &more.join("\n"));
                let messages = found.iter().map(Session::messages);
                assert!(messages.eq(own.iter().map(Session::messages)), "{format}: {record}");
                assert_eq!(counted(&found).1, counted(&own).1 + 1, "{format}: {record}");
            }
        }
    }
}
