//! The importer of Qwen Code.

use proctor_formats as import;
use proctor_sessions::Recorded;
use proctor_sessions::units::{Tokens, Usage};
use serde_json::{Value, json};

use super::outline::{calls_before_compactions, unpacked};
use super::{fixture, outline, read, round_trip};

#[test]
fn a_chat_of_qwen_code_is_read_with_what_its_compactions_left() {
    let bytes = std::fs::read(fixture("qwen-code/chat.jsonl")).expect("a fixture");
    let claims = import::IMPORTERS.iter().find(|it| it.detect(&bytes));
    assert_eq!(claims.map(import::Importer::format), Some("qwen-code"));
    let sessions = read("qwen-code", &bytes).expect("a good file");
    let [session] = &sessions[..] else {
        panic!("{} sessions", sessions.len());
    };
    // A compaction that was written when the answer behind it was there; a prompt that was sent
    // behind the compaction that follows it in the file; thoughts within and beside the answer.
    let expected = r#"0 user[typed_user] "Which boat is damaged?"
1 model[] thinking "Both logs.", "I look.", read c1 {"path":"log/1"}, read c2 {"path":"log/2"} = 600/0/0/400/30
2 user[] ->c1 "Sails torn.\n", ->!c2 "no such log"
3 model[] shell c3 {"command":"ls log"} = 100/0/0/1000/25
4 user[] ->c3 "1\n3\n"
5 model[] "Only boat one is damaged." = 400/0/0/0/9
6 user[typed_user] "Mend it."
7 model[] "Mended." = 90/0/0/0/2
8 user[meta] "<task-notification>The tide is in.</task-notification>"
9 model[] "Then she sails." = 20/0/0/90/4
compaction before 5: - 1140: (user[compact_summary] "Boat one: sails torn."), (model[synthetic] "Got it. Thanks for the additional context!"), (user[meta] "Continue with the prior task using the context above."), kept 3..5
compaction before 6: - 420: (user[compact_summary] "Boat one is damaged: its sails."), (model[synthetic] "Got it. Thanks for the additional context!"), kept 3..6
skipped: record of an abandoned branch: 2
skipped: system/ui_telemetry: 1
"#;
    assert_eq!(outline(session), expected);
    assert_eq!(session.context_window(), Some(Tokens(32_000)));
    round_trip(session);
}

#[test]
fn a_chat_whose_records_lost_their_parents_is_read_whole() {
    let text = std::fs::read_to_string(fixture("qwen-code/chat.jsonl")).expect("a fixture");
    let whole = read("qwen-code", text.as_bytes()).expect("a good file");
    for key in ["parentUuid", "uuid"] {
        let renamed = text.replace(&format!("\"{key}\""), "\"other\"");
        let read = read("qwen-code", renamed.as_bytes()).expect("a file");
        assert!(read[0].messages().len() >= whole[0].messages().len(), "{key}");
    }
}

#[test]
fn parts_of_the_wrong_speaker_are_kept_and_refuse_no_chat() {
    let text = std::fs::read_to_string(fixture("qwen-code/chat.jsonl")).expect("a fixture");
    for (from, to) in [
        (r#""type":"tool_result""#, r#""type":"assistant""#),
        (r#""type":"assistant""#, r#""type":"user""#),
    ] {
        let sessions = read("qwen-code", text.replace(from, to).as_bytes()).expect(to);
        assert!(!sessions[0].source().unknown.is_empty(), "{to}");
        round_trip(&sessions[0]);
    }
}

/// The requests of the same run say where it compacted.
#[test]
fn shared_chat_of_qwen_code_has_the_calls_and_compactions_of_its_requests() {
    let folder = "agents/qwen-code";
    let requests = unpacked(folder, "requests.jsonl.gz");
    let Some((requests, chat)) = requests.zip(unpacked(folder, "chat.jsonl.gz")) else {
        return;
    };
    let (mut calls, mut before) = (0, Vec::new());
    for line in requests.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        match line["kind"].as_str() {
            Some("summary") => before.push(calls),
            _ => calls += 1,
        }
    }
    let sessions = read("qwen-code", chat.as_bytes()).expect("a good chat");
    let [session] = &sessions[..] else {
        panic!("{} sessions", sessions.len());
    };
    assert_eq!((session.calls().len(), calls), (45, 45));
    assert_eq!(calls_before_compactions(session), before);
    // Each left a summary, its acknowledgement, a request to go on, and the newest rounds.
    for compaction in session.compactions() {
        let proctor_sessions::CompactedTo::Replaced(pieces) = &compaction.after else {
            panic!("nothing is left before {}", compaction.at);
        };
        let [.., Recorded::Kept(kept)] = &pieces[..] else {
            panic!("no message stayed before {}", compaction.at);
        };
        assert_eq!((pieces.len(), kept.end), (4, compaction.at));
    }
    assert!(session.source().unknown.is_empty());
    round_trip(session);
}

#[test]
fn a_summary_costs_what_the_telemetry_in_front_of_it_says() {
    let text = std::fs::read_to_string(fixture("qwen-code/chat.jsonl")).expect("a fixture");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // In front of the second compaction, and behind the answer before the first.
    for (at, [input, cached, output, thoughts]) in
        [(12, [420, 380, 30, 0]), (6, [1100, 1000, 20, 20])]
    {
        let event = json!({
            "event.name": "qwen-code.api_response",
            "input_token_count": input,
            "cached_content_token_count": cached,
            "output_token_count": output,
            "thoughts_token_count": thoughts,
            "total_token_count": input + output + thoughts,
        });
        let payload = json!({"uiEvent": event});
        let record = json!({"type": "system", "subtype": "ui_telemetry", "systemPayload": payload});
        lines.insert(at, record.to_string());
    }
    let sessions = read("qwen-code", lines.join("\n").as_bytes()).expect("a good file");
    let bills = sessions[0].compactions().iter().map(|one| one.usage);
    let own = Usage { cache_read: Tokens(380), ..Usage::uncached(Tokens(40), Tokens(30)) };
    assert_eq!(bills.collect::<Vec<Option<Usage>>>(), [None, Some(own)]);
}

#[test]
fn a_compaction_that_failed_is_none() {
    let text = std::fs::read_to_string(fixture("qwen-code/chat.jsonl")).expect("a fixture");
    let mut failed = String::new();
    for line in text.lines() {
        let mut record: Value = serde_json::from_str(line).expect("an object");
        if let Some(payload) = record.get_mut("systemPayload") {
            *payload = json!({"info": {"originalTokenCount": 1140, "compressionStatus": 2}});
        }
        failed += &(record.to_string() + "\n");
    }
    let sessions = read("qwen-code", failed.as_bytes()).expect("a good file");
    assert!(sessions[0].compactions().is_empty());
    assert_eq!(sessions[0].source().skipped["compaction that failed"], 2);
}
