//! Request logs whose bodies are strings, event streams and lists of events.

use proctor_formats as import;
use proctor_sessions::CompactedTo;
use serde_json::{Value, json};

use super::{fixture, outline, read, round_trip};

#[test]
fn a_streamed_answer_is_read_from_its_events() {
    let sessions = import::load(&fixture("request-log/streamed.jsonl")).expect("a good file");
    let got: Vec<String> = sessions.iter().map(outline).collect();
    let expected = r#"0 user[typed_user] "How many sheep?"
1 model[] "I count.", other c1 {"field":1} = 90/0/0/0/20
2 user[] ->c1 "seven sheep"
3 model[] "Seven." = 20/0/0/100/4
4 user[typed_user] "And goats?"
5 model[] "No goat" = 30/0/0/0/1
skipped: key `max_tokens`: 3
skipped: key `stream`: 3
skipped: message key `stop_reason`: 2
warning: a streamed answer broke off; what came of it is kept: 1
"#;
    assert_eq!(got, [expected]);
    assert_eq!(sessions[0].source().format, "anthropic");
    assert_eq!(sessions[0].system(), Some(&"You count sheep.".into()));
    round_trip(&sessions[0]);
}

/// Both APIs of OpenAI, in whatever way a log holds their bodies.
#[track_caller]
fn check(
    format: &str,
    request: &serde_json::Value,
    answers: &[serde_json::Value],
    keys: [&str; 2],
) {
    let mut seen = Vec::new();
    for answer in answers {
        for request in [request.clone(), json!(request.to_string())] {
            let line = json!({keys[0]: request, keys[1]: answer}).to_string();
            let claimed =
                import::IMPORTERS.iter().find(|importer| importer.detect(line.as_bytes()));
            assert_eq!(claimed.map(proctor_formats::Importer::format), Some(format), "{line}");
            let sessions = read(format, line.as_bytes()).expect("a good log");
            seen.push(
                sessions
                    .iter()
                    .map(|it| {
                        let text = outline(it);
                        let told = text.lines().filter(|line| !line.starts_with("skipped"));
                        told.collect::<Vec<_>>().join("\n")
                    })
                    .collect::<Vec<_>>(),
            );
        }
    }
    for one in &seen {
        assert_eq!(*one, seen[0]);
    }
    assert!(seen[0][0].contains(r#"1 model[] "Seven.""#), "{:?}", seen[0]);
}

#[test]
fn bodies_are_read_whatever_they_are_wrapped_in() {
    let messages =
        json!([{"role": "system", "content": "Count."}, {"role": "user", "content": "Sheep?"}]);
    let request = json!({"model": "m", "stream": true, "messages": messages});
    let chunks = [
        json!({"id": "c", "object": "chat.completion.chunk", "created": 5, "model": "m",
               "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Sev"}, "finish_reason": null}]}),
        json!({"id": "c", "object": "chat.completion.chunk",
               "choices": [{"index": 0, "delta": {"content": "en."}, "finish_reason": "stop"}]}),
        json!({"id": "c", "object": "chat.completion.chunk", "choices": [],
               "usage": {"prompt_tokens": 7, "completion_tokens": 2}}),
    ];
    let lines: Vec<String> = chunks.iter().map(|it| format!("data: {it}\n\n")).collect();
    let stream = lines.concat() + "data: [DONE]\n\n";
    let whole = json!({"id": "c", "object": "chat.completion", "created": 5, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Seven."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2}});
    let answers = [
        whole.clone(),
        json!(whole.to_string()),
        json!(stream),
        json!(chunks),
        json!(lines),
        json!({"status": 200, "body": stream}),
    ];
    for keys in [["request", "response"], ["request_body", "response_body"]] {
        check("openai-chat", &request, &answers, keys);
    }

    let request = json!({"model": "m", "stream": true, "instructions": "Count.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Sheep?"}]}]});
    let item = json!({"type": "message", "id": "i", "role": "assistant", "content": [{"type": "output_text", "text": "Seven."}]});
    let whole = json!({"id": "r", "object": "response", "created_at": 5, "model": "m", "output": [item],
        "usage": {"input_tokens": 7, "output_tokens": 2}});
    let mut empty = whole.clone();
    empty["output"] = json!([]);
    let stream = |last: &serde_json::Value| {
        let events = [
            json!({"type": "response.created", "response": {"id": "r", "object": "response"}}),
            json!({"type": "response.output_text.delta", "delta": "Seven."}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": last}),
        ];
        let lines =
            events.map(|it| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap()));
        json!(lines.concat())
    };
    let answers = [whole.clone(), stream(&whole), stream(&empty)];
    check("openai-responses", &request, &answers, ["request", "response"]);
}

#[test]
fn what_is_no_body_is_left_as_it_is() {
    for odd in [
        json!({"request": "GET / HTTP/1.1", "response": "data: {"}),
        json!({"request": {"body": 7}, "response": ["x", 7]}),
        json!({"request_body": null, "response_body": "data: [DONE]"}),
        json!([{"request": "{}", "response": "event: x"}]),
    ] {
        for format in ["anthropic", "openai-chat", "openai-responses", "request-log"] {
            drop(read(format, odd.to_string().as_bytes()));
        }
    }
}

#[test]
fn a_context_that_the_provider_compacted_goes_on_with_its_session() {
    let user = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let round = |at: usize| {
        [
            json!({"type": "function_call", "call_id": format!("c{at}"), "name": "ls", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": format!("c{at}"), "output": format!("files {at}")}),
        ]
    };
    let sealed = json!({"type": "compaction", "id": "k", "encrypted_content": "gAAA"});
    let whole = [vec![user("Do it.")], (0..3).flat_map(round).collect()].concat();
    let rest: Vec<Value> = (3..6).flat_map(round).collect();
    let compacted = [vec![user("Do it."), sealed, user("Go on.")], rest].concat();
    let of = |list: &[Value], at: usize| {
        let answer = json!({"id": format!("r{at}"), "output": [round(at)[0].clone()], "usage": {"input_tokens": 9, "output_tokens": 1}});
        json!({"request": {"model": "m", "prompt_cache_key": "k", "input": list}, "response": answer}).to_string() + "\n"
    };
    let early = (0..3).map(|at| of(&whole[..=2 * at], at));
    let late = (3..6).map(|at| of(&compacted[..3 + 2 * (at - 3)], at));
    let log: String = early.chain(late).collect();
    let sessions = read("openai-responses", log.as_bytes()).expect("a log");
    let [session] = &sessions[..] else {
        panic!("{} sessions", sessions.len());
    };
    assert_eq!((session.calls().len(), session.compactions().len()), (6, 1));
    assert_eq!(session.compactions()[0].after, CompactedTo::Encrypted);
}
