//! Logs of the two APIs: what their importers make of every shape a log may have.

use proctor_formats::{self as import, ImportError};
use proctor_sessions::Session;
use proctor_sessions::units::{Timestamp, Tokens};
use proptest::prelude::*;
use serde_json::json;

use super::{fixture, outline, read, round_trip};
use crate::shared;

/// The outlines of all sessions that an importer makes of a text.
#[track_caller]
fn check(format: &str, text: &str, expected: &[&str]) {
    let sessions = match read(format, text.as_bytes()) {
        Ok(sessions) => sessions,
        Err(error) => panic!("{error}"),
    };
    let got: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(got.join("--\n").trim_end(), expected.join("\n"));
    for session in &sessions {
        assert_eq!(session.source().format, format);
        round_trip(session);
    }
}

#[test]
fn a_request_of_the_messages_api_is_read_whole() {
    let sessions = import::load(&fixture("anthropic/request.json")).expect("a good file");
    let [session] = &sessions[..] else { panic!("one session") };
    assert_eq!(
        outline(session),
        r#"0 user[typed_user] "Which beds are dry?"
1 model[] thinking "Two logs.", "I read both logs.", read t1 {"path" : "beds/east.log"}, read t2 {}
2 user[] ->t1 "dry since Monday", ->!t2 "no such file"+image {"type": "base64", "media_type": "image/png", "data": "AAAA"}, "Look at the plan too.", <document>
3 model[] <server_tool_use>, <web_search_tool_result>, "East is dry." = 12/80/0/700/9
skipped: key `max_tokens`: 1
"#
    );
    assert_eq!(session.source().format, "anthropic");
    assert_eq!(session.system().map(|text| &**text), Some("You tend a garden.\nWater sparingly."));
    assert_eq!(session.model(), Some("some-model"));
    let tools: Vec<&str> = session.tools().iter().map(|tool| &*tool.name).collect();
    assert_eq!(tools, ["read_file", "web_search"]);
    round_trip(session);
}

#[test]
fn what_the_messages_api_summed_up_is_an_event_and_its_summary_no_message() {
    let text = r#"{"messages": [
        {"role": "user", "content": "Prune the hedge."},
        {"role": "assistant", "content": [{"type": "text", "text": "It is long."}]},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": [
            {"type": "compaction", "content": "The hedge is to be pruned."},
            {"type": "text", "text": "Half is done."}]},
        {"role": "user", "content": "And?"},
        {"role": "assistant", "content": [{"type": "compaction", "content": null}, {"type": "text", "text": "Done."}]},
        {"role": "user", "content": "Thanks."}
    ], "response": {"type": "message", "role": "assistant", "stop_reason": "compaction",
        "content": [{"type": "compaction", "content": null, "encrypted_content": "gAAA"}],
        "usage": {"input_tokens": 0, "output_tokens": 0, "iterations": [
            {"type": "compaction", "input_tokens": 170, "cache_read_input_tokens": 10, "output_tokens": 9}]}}}"#;
    let expected = r#"0 user[typed_user] "Prune the hedge."
1 model[] "It is long."
2 user[typed_user] "Go on."
3 model[] "Half is done."
4 user[typed_user] "And?"
5 model[] "Done."
6 user[typed_user] "Thanks."
compaction before 3: compaction 0: (user[compact_summary] "The hedge is to be pruned.")
compaction before 7: compaction 180 = 170/0/0/10/9: encrypted
skipped: compaction that failed: 1
skipped: message key `stop_reason`: 1"#;
    check("anthropic", text, &[expected]);
}

#[test]
fn results_that_the_messages_api_cleared_are_events_once() {
    let asks = |id: &str, tool: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": tool, "input": {}}]});
    let told = |id: &str| {
        let result =
            json!({"type": "tool_result", "tool_use_id": id, "content": format!("out {id}")});
        json!({"role": "user", "content": [result]})
    };
    let mut messages = vec![json!({"role": "user", "content": "Count."})];
    for (id, tool) in [("a", "read"), ("b", "memory"), ("c", "read")] {
        messages.extend([asks(id, tool), told(id)]);
    }
    let answer = |text: &str, cleared: u64| {
        json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 100, "output_tokens": 1},
        "context_management": {"applied_edits": [
            {"type": "clear_thinking_20251015", "cleared_thinking_turns": 1, "cleared_input_tokens": 5},
            {"type": "clear_tool_uses_20250919", "cleared_tool_uses": cleared, "cleared_input_tokens": 50},
        ]}})
    };
    let asked =
        json!({"edits": [{"type": "clear_tool_uses_20250919", "exclude_tools": ["memory"]}]});
    let log = |messages: &[serde_json::Value], response: &serde_json::Value| {
        let request = json!({"model": "m", "messages": messages, "context_management": asked});
        json!({"request": request, "response": response}).to_string()
    };
    let first = log(&messages, &answer("One.", 1));
    messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "One."}]}));
    messages.push(json!({"role": "user", "content": "More."}));
    let second = log(&messages, &answer("Two.", 1));
    messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "Two."}]}));
    messages.push(json!({"role": "user", "content": "Still more."}));
    let third = log(&messages, &answer("Three.", 2));
    let text = [first, second, third].join("\n");
    let sessions = read("anthropic", text.as_bytes()).expect("a good file");
    let [session] = &sessions[..] else { panic!("one session: {}", sessions.len()) };
    let told = outline(session);
    let events: Vec<&str> = told.lines().skip(session.messages().len()).collect();
    assert_eq!(
        events,
        [
            "compaction before 7: clear_tool_uses_20250919 150: kept 0..2, edited 2, kept 3..7",
            "compaction before 11: clear_tool_uses_20250919 150: kept 0..2, edited 2, kept 3..6, edited 6, kept 7..11",
            "skipped: edit clear_thinking_20251015: 3",
        ]
    );
    round_trip(session);
    // More than there is was cleared: what the model saw cannot be told.
    let text = log(&messages, &answer("Four.", 9));
    let sessions = read("anthropic", text.as_bytes()).expect("a good file");
    assert!(outline(&sessions[0]).contains("clear_tool_uses_20250919 150: missing"));
}

#[test]
fn requests_that_begin_with_a_summary_of_the_api_go_on_with_their_session() {
    let said =
        |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let summed = json!({"role": "assistant", "content": [
        {"type": "compaction", "content": "A summary that is long enough to be told from chance."},
        {"type": "text", "text": "Two."}]});
    let log = |messages: Vec<serde_json::Value>, response: &serde_json::Value| {
        let mut response = response.clone();
        response["type"] = json!("message");
        let request = json!({"model": "m", "messages": messages});
        json!({"request": request, "response": response}).to_string()
    };
    let begun = vec![said("user", "First."), said("assistant", "One."), said("user", "Second.")];
    let first = log(begun.clone(), &summed);
    let dropped = vec![summed.clone(), said("user", "Third.")];
    let whole: Vec<_> = begun.into_iter().chain(dropped.clone()).collect();
    let expected = r#"0 user[typed_user] "First."
1 model[] "One."
2 user[typed_user] "Second."
3 model[] "Two."
4 user[typed_user] "Third."
5 model[] "Three."
compaction before 3: compaction 0: (user[compact_summary] "A summary that is long enough to be told from chance.")"#;
    for later in [dropped, whole] {
        let text = [first.clone(), log(later, &said("assistant", "Three."))].join("\n");
        check("anthropic", &text, &[expected]);
    }
}

#[test]
fn a_completion_log_is_read_with_its_response() {
    let sessions = import::load(&fixture("openai-chat/completion.json")).expect("a good file");
    let [session] = &sessions[..] else { panic!("one session") };
    assert_eq!(
        outline(session),
        r#"0 user[typed_user] "Is the dough ready?", image {"url": "https://example.org/dough.png"}
1 model[] read c1 {"path" : "oven.log"}, shell c2 "{\"command\": \"cat"
2 user[typed_user] ->c2 "cut", ->c1 "", "Well?"
3 model[] thinking "It must rise.", "Ten more minutes." = 260/0/0/640/14
skipped: key `cost`: 1
skipped: response key `object`: 1
warning: tool arguments are no JSON; they are kept as a string: 1
"#
    );
    assert_eq!(session.source().format, "openai-chat");
    assert_eq!(session.system().map(|text| &**text), Some("You bake bread.\nWeigh everything."));
    assert_eq!(session.model(), Some("some-model"));
    assert_eq!(session.context_window(), Some(Tokens(128_000)));
    assert_eq!(session.tools().len(), 1);
    assert_eq!(session.message(3).details.timestamp, Some(Timestamp(1_757_015_036_500)));
    round_trip(session);
}

#[test]
fn several_conversations_of_a_file_are_numbered() {
    let path = fixture("openai-chat/conversations.jsonl");
    let sessions = import::load(&path).expect("a good file");
    let ids: Vec<&str> = sessions.iter().map(Session::id).collect();
    let stem = ids[0].strip_suffix("-1").expect("the first is numbered");
    assert!(stem.starts_with("conversations-"), "{stem}");
    assert_eq!(ids, [format!("{stem}-1"), format!("{stem}-2")]);
    assert_eq!(
        outline(&sessions[1]),
        "0 user[typed_user] \"Name a bird.\"\n1 model[] \"Wren.\"\nskipped: key `instance_id`: 1\n"
    );
}

#[test]
fn every_layout_gives_the_same_conversation() {
    let one = r#"{"role":"user","content":"a"}"#;
    let two = r#"{"role":"assistant","content":"b"}"#;
    let expected = [r#"0 user[typed_user] "a""#, r#"1 model[] "b""#];
    let twice = [expected[0], expected[1], "--", expected[0], expected[1]];
    for format in ["anthropic", "openai-chat"] {
        check(format, &format!("[{one},{two}]"), &expected);
        check(format, &format!("{{\n\"messages\": [\n{one},\n{two}\n]\n}}\n"), &expected);
        check(format, &format!("{one}\n{two}\n"), &expected);
        check(format, &format!("\u{feff}{one}\r\n\r\n{two}"), &expected);
        check(format, &format!("[[{one},{two}],[{one},{two}]]"), &twice);
        let object = format!("{{\"messages\":[{one},{two}]}}");
        check(format, &format!("[{object},{object}]"), &twice);
        check(format, &format!("{object}\n{object}\n"), &twice);
        check(format, &format!("{one}\n{two}\n{object}\n"), &twice);
    }
}

#[test]
fn older_function_calls_are_paired_by_order() {
    let call = |name: &str| json!({"role": "assistant", "content": null, "function_call": {"name": name, "arguments": "{}"}});
    let result = |name: &str| json!({"role": "function", "name": name, "content": name});
    let messages = json!([call("ls"), result("ls"), call("grep"), result("grep"), result("ls")]);
    check(
        "openai-chat",
        &messages.to_string(),
        &[
            "0 model[] glob unnamed-call-f2056b74 {}",
            r#"1 user[] ->unnamed-call-f2056b74 "ls""#,
            "2 model[] grep unnamed-call-b504b758 {}",
            r#"3 user[orphan] ->unnamed-call-b504b758 "grep", ->unnamed-result-1 "ls""#,
            "warning: a tool result answers no earlier tool use: 1",
            "warning: a tool result does not say what it answers; it was paired by order: 3",
        ],
    );
}

#[test]
fn what_is_not_understood_is_kept_and_counted() {
    check(
        "openai-chat",
        &json!([
            {"role": "user", "content": [{"type": "hologram"}, "loose", {"type": "input_audio"}], "name": "Ann"},
            {"role": "oracle", "content": "x"},
            {"content": "y"},
            7,
            {"role": "assistant", "refusal": "No.", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "bash", "arguments": {"b": 1}}},
                {"id": "b", "type": "custom", "custom": {"name": "bash", "input": "ls"}},
                {"id": "c"},
            ]},
            {"role": "tool", "tool_call_id": "z", "content": null},
            {"role": "system", "content": "Hurry."},
            {"role": "assistant", "content": "", "usage": {"prompt_tokens": 5, "completion_tokens": -1, "prompt_tokens_details": {"cached_tokens": 9}}, "tool_calls": [
                {"id": "d", "type": "function", "function": {"name": "bash"}},
            ]},
        ])
        .to_string(),
        &[
            r#"0 user[typed_user meta] <hologram>, "loose", <input_audio>, <oracle>, <without role>, <malformed>"#,
            r#"1 model[] <refusal>, shell a {"b":1}, shell b "ls", <tool_call>"#,
            r#"2 user[meta orphan] ->z , "Hurry.""#,
            r#"3 model[] shell d "" = 5/0/0/9/0"#,
            "skipped: message key `name`: 1",
            "unknown: block hologram: 1",
            "unknown: block tool_call: 1",
            "unknown: message malformed: 1",
            "unknown: message oracle: 1",
            "unknown: message without role: 1",
            "warning: a system message within the conversation is kept as the user's: 1",
            "warning: a tool call has no arguments: 1",
            "warning: a tool result answers no earlier tool use: 1",
            "warning: a usage counter is no count and was taken as zero: 1",
            "warning: a usage counts cached tokens apart from the prompt: 1",
            "warning: tool arguments stand as JSON, not as a string: 1",
        ],
    );
    check(
        "anthropic",
        &json!({"system": 5, "usage": {"input_tokens": 1}, "messages": [
            {"role": "assistant", "content": [{"type": "hologram"}], "id": "m1", "stop_reason": "end_turn", "usage": 3},
            {"role": "system", "content": "Hurry.", "timestamp": "never"},
        ]})
        .to_string(),
        &[
            "0 model[] <hologram>",
            r#"1 user[meta] "Hurry.""#,
            "skipped: message key `stop_reason`: 1",
            "skipped: usage without a response: 1",
            "unknown: block content: 1",
            "unknown: block hologram: 1",
            "warning: a part of the system prompt is no text and is left out: 1",
            "warning: a system message within the conversation is kept as the user's: 1",
            "warning: a timestamp cannot be read: 1",
            "warning: a usage cannot be read: 1",
        ],
    );
}

#[test]
fn errors_name_the_place_in_the_whole_file() {
    let check = |text: &str, expected: &str| {
        for format in ["anthropic", "openai-chat"] {
            match read(format, text.as_bytes()) {
                Ok(sessions) => panic!("read {} sessions of {text}", sessions.len()),
                Err(error) => assert!(error.to_string().contains(expected), "{error}"),
            }
        }
    };
    check("", "is empty");
    check("{}", "line 1, column 1: neither a message with `role` nor a conversation");
    check("[]", "holds no conversation");
    check("[7", "line 1: the file ends within this line");
    check("\n{\n \"messages\": 5}", "line 3, column 14: invalid type: integer `5`");
    check("[\n{\"messages\":[]},\n{\"messages\":\n{}}]", "line 4, column 0: invalid type: map");
    check("{\"messages\":[]}\n{\"messages\":[}", "line 2, column 14: expected value");
    check("7", "line 1, column 1: invalid type: integer `7`");
    let bomb = format!("{{\"messages\":{}{}}}", "[".repeat(1_000), "]".repeat(1_000));
    check(&bomb, "line 1: JSON nested deeper than 127");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_chat_importer_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        at in 0_usize..3000,
        length in 0_usize..60,
    ) {
        for (format, file) in [
            ("anthropic", "anthropic/request.json"),
            ("openai-chat", "openai-chat/completion.json"),
        ] {
            let good = std::fs::read(fixture(file)).unwrap_or_default();
            let at = at.min(good.len());
            let mut broken = good[..at].to_vec();
            broken.extend(&bytes);
            broken.extend(&good[(at + length).min(good.len())..]);
            for importer in import::IMPORTERS {
                importer.detect(&broken);
            }
            for session in read(format, &broken).unwrap_or_default() {
                round_trip(&session);
            }
        }
    }
}

#[test]
fn shared_recordings_are_claimed_by_no_foreign_importer() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    let all = shared::files(&folder);
    for path in all {
        let name = path.strip_prefix(&folder).expect("below").display().to_string();
        let mut head = std::fs::read(&path).expect("readable");
        head.truncate(64 * 1024);
        let claimed = import::IMPORTERS
            .iter()
            .find(|importer| importer.detect(&head))
            .map(proctor_formats::Importer::format);
        let expected = match name.split('/').next().expect("a part") {
            "tau-bench" if name.contains("few_shot") => None,
            "tau2-bench" => Some("tau2"),
            "inspect-ai" => Some("inspect"),
            product => import::importer(product).map(proctor_formats::Importer::format),
        };
        assert_eq!(claimed, expected, "{name}");
    }
}

#[test]
fn shared_completion_logs_are_read_whole() {
    let Some(folder) = shared::folder("sessions/openai-chat") else {
        return;
    };
    let all = shared::files(&folder);
    assert_eq!(all.len(), 4);
    for path in all {
        let sessions = import::load(&path).expect("a good file");
        for session in &sessions {
            println!("{}\n{:?}", session.id(), session.source());
            assert!(session.source().unknown.is_empty());
            assert!(session.system().is_some());
            round_trip(session);
        }
        if path.extension().is_some_and(|extension| extension == "json") {
            let last = sessions[0].messages().last().expect("a message");
            assert!(last.details.usage.is_some_and(|usage| usage.prompt() > Tokens(6_000)));
            assert!(last.tool_uses().count() == 1);
        } else {
            assert_eq!(sessions.len(), 3);
        }
    }
}

#[test]
fn shared_sessions_of_both_shapes_say_the_same() {
    let Some(folder) = shared::folder("oracles/peers/sessions") else {
        return;
    };
    for name in ["small1", "small2"] {
        let load = |shape: &str| {
            let path = folder.join(format!("{name}.{shape}.json"));
            import::load(&path).expect("a good file").swap_remove(0)
        };
        let (anthropic, openai) = (load("anthropic"), load("openai"));
        assert_eq!(anthropic.source().format, "anthropic");
        assert_eq!(openai.source().format, "openai-chat");
        assert_eq!(anthropic.system(), openai.system());
        assert_eq!(anthropic.messages().len(), openai.messages().len());
        for (left, right) in anthropic.messages().iter().zip(openai.messages()) {
            let plain = |text: &str| text.replace(['"', ' ', '\\'], "");
            let texts = |message: &proctor_sessions::Message| -> Vec<String> {
                message.model_text().iter().map(|text| plain(text)).collect()
            };
            assert_eq!(texts(left), texts(right));
        }
    }
}

#[test]
fn an_error_is_typed() {
    for format in ["anthropic", "claude-code", "goose"] {
        let error = read(format, b"[{").expect_err("torn");
        assert!(matches!(error, ImportError::TornLine(_, 1)), "{format}: {error}");
    }
}
