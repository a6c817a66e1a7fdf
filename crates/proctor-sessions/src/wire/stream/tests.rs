//! Streams put together as the API would have given them whole.

use super::*;

/// Feeds the stream in pieces of every size, which must not matter.
fn whole(api: Api, stream: &str) -> Result<Value, StreamProblem> {
    let feed = |size: usize| {
        let mut assembly = Assembly::new(api, true);
        for piece in stream.as_bytes().chunks(size) {
            assembly.push(piece);
        }
        assembly.finish().map(|raw| raw.get().to_owned())
    };
    let at_once = feed(stream.len().max(1));
    for size in [1, 2, 3, 7, 64] {
        assert_eq!(feed(size), at_once, "pieces of {size} bytes");
    }
    at_once.map(|text| serde_json::from_str(&text).unwrap())
}

/// Searched again from its start at each piece, this stream would take hours.
#[test]
fn a_stream_without_line_feeds_is_searched_once() {
    let mut assembly = Assembly::new(Api::Messages, true);
    for _ in 0..4 << 20 {
        assembly.push(b"x");
    }
    assert_eq!(assembly.bytes.len(), 4 << 20);
}

#[test]
fn a_streamed_message_is_put_together() {
    let stream = r#"event: message_start
data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"some-model","content":[],"stop_reason":null,"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}
data: {"type":"content_block_stop","index":0}
event: ping
data: {"type":"ping"}
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Grüß "}}
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"dich"}}
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"read","input":{}}}
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"a.rs\"}"}}
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t2","name":"list","input":{}}}
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":31}}
data: {"type":"message_stop"}
"#;
    let expected = json!({
        "id": "m1", "type": "message", "role": "assistant", "model": "some-model",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Grüß dich"},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.rs"}},
            {"type": "tool_use", "id": "t2", "name": "list", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 31},
    });
    assert_eq!(whole(Api::Messages, stream), Ok(expected));
    let cut = stream.replace("data: {\"type\":\"message_stop\"}\n", "");
    assert_eq!(whole(Api::Messages, &cut), Err(StreamProblem::BrokeOff));
    let failed = format!("{cut}data: {{\"type\":\"error\",\"error\":{{}}}}\n");
    assert!(whole(Api::Messages, &failed).is_err());
}

#[test]
fn a_streamed_completion_is_put_together() {
    let stream = "data: {\"id\":\"c1\",\"created\":5,\"model\":\"some-model\",\"choices\":[{\"index\":0,\
            \"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\r\n\r\n\
            data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\r\n\r\n\
            data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\
            \"id\":\"t1\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"\"}}]}}]}\n\n\
            data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\
            \"function\":{\"arguments\":\"{\\\"a\\\":\"}},{\"index\":1,\"id\":\"t2\",\"type\":\"function\",\
            \"function\":{\"name\":\"grep\",\"arguments\":\"{}\"}}]}}]}\n\n\
            data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\
            \"function\":{\"arguments\":\"1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n\
            data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n\
            data: [DONE]\n\n";
    let expected = json!({
        "id": "c1", "object": "chat.completion", "created": 5, "model": "some-model",
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant", "content": "Hi",
                "tool_calls": [
                    {"id": "t1", "type": "function",
                     "function": {"name": "read", "arguments": "{\"a\":1}"}},
                    {"id": "t2", "type": "function",
                     "function": {"name": "grep", "arguments": "{}"}},
                ],
            },
            "finish_reason": "tool_calls",
        }],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    });
    assert_eq!(whole(Api::ChatCompletions, stream), Ok(expected.clone()));
    // Some servers leave out the last line.
    let without_end = stream.replace("data: [DONE]\n\n", "");
    assert_eq!(whole(Api::ChatCompletions, &without_end), Ok(expected));
    let cut_character = stream.replace("\"Hi\"", r#""\ud83d""#);
    let answer = whole(Api::ChatCompletions, &cut_character).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "\u{fffd}");
}

#[test]
fn a_stream_is_one_under_any_content_type() {
    let stream = "\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
            data: {\"type\":\"message_stop\"}\n\n";
    for (text, expected) in [
        (stream, Ok(json!({"id": "m"}))),
        (&stream[..stream.len() - 32], Err(StreamProblem::BrokeOff)),
        ("evening", Err(StreamProblem::Unreadable)),
    ] {
        let mut answer = Assembly::new(Api::Messages, false);
        answer.push(text.as_bytes());
        let whole = answer.finish().map(|raw| serde_json::from_str(raw.get()).unwrap());
        assert_eq!(whole, expected, "{text}");
    }
}

#[test]
fn what_gateways_do_to_a_stream_changes_nothing() {
    let stream = [
        r#"{"id":"","created":0,"model":"","choices":[],"prompt_filter_results":[]}"#,
        r#"{"id":"c1","created":5,"model":"some-model","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"read","arguments":"{\"a\":"}}]}}]}"#,
        r#"{"id":"c1","choices":[{"index":0,"delta":{"role":"","tool_calls":[{"index":0,"id":"","type":"","function":{"name":"","arguments":"1}"}}]}}]}"#,
        // Another call under the same index.
        r#"{"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t2","type":"function","function":{"name":"grep","arguments":"{}"}}]}}]}"#,
        r#"{"id":"c1","choices":[7,{"delta":{},"finish_reason":"tool_calls","usage":{"prompt_tokens":7,"completion_tokens":3}}]}"#,
        "[DONE]",
    ];
    let stream: Vec<String> = stream.iter().map(|it| format!("data: {it}\n\n")).collect();
    let expected = json!({
        "id": "c1", "object": "chat.completion", "created": 5, "model": "some-model",
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant", "content": null,
                "tool_calls": [
                    {"id": "t1", "type": "function",
                     "function": {"name": "read", "arguments": "{\"a\":1}"}},
                    {"id": "t2", "type": "function",
                     "function": {"name": "grep", "arguments": "{}"}},
                ],
            },
            "finish_reason": "tool_calls",
        }],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    });
    assert_eq!(whole(Api::ChatCompletions, &stream.concat()), Ok(expected));
    let stream = r#"data: {"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}}
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"cache_read_input_tokens":0,"output_tokens":3}}
data: {"type":"message_stop"}
"#;
    let usage = whole(Api::Messages, stream).map(|whole| whole["usage"].clone());
    let expected = json!({"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 3});
    assert_eq!(usage, Ok(expected));
}

#[test]
fn a_streamed_response_is_in_its_last_event() {
    let stream = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\
            data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[1]}}\n";
    let expected = json!({"id": "r", "output": [1]});
    assert_eq!(whole(Api::Responses, stream), Ok(expected));
    let items = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\
            data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":2}\n";
    assert_eq!(whole(Api::Responses, items), Err(StreamProblem::BrokeOff));
    let mut broken = Assembly::new(Api::Responses, true);
    broken.push(items.as_bytes());
    let (so_far, problem) = broken.so_far();
    let so_far = so_far.map(|raw| raw.get().to_owned());
    assert_eq!(so_far.as_deref(), Some(r#"{"id":"r","output":[2]}"#));
    assert_eq!(problem, Some(StreamProblem::BrokeOff));
    let done = format!(
        "{items}data: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"r\",\"output\":[]}}}}\n"
    );
    let expected = json!({"id": "r", "output": [2]});
    assert_eq!(whole(Api::Responses, &done), Ok(expected));
    let failed = "data: {\"type\":\"response.failed\",\"response\":{}}\n";
    assert!(whole(Api::Responses, failed).is_err());
}

#[test]
fn hostile_streams_are_errors() {
    let odd = "data: {\"type\":\"message_start\",\"message\":[]}\n\
            data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"citation\":1,\"text\":2}}\n\
            data: {\"choices\":[7,{\"index\":0,\"delta\":{\"tool_calls\":[\"x\",[]],\"content\":[3]}}]}\n\
            data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"tool_calls\":\"b\"}}]}\n";
    let far =
        "data: {\"type\":\"content_block_start\",\"index\":99999999999,\"content_block\":{}}\n";
    let torn = ["", "data: {\n", "data: []\ndata: [DONE]\n", "nonsense\n\n"];
    for stream in torn.into_iter().chain([odd, far]) {
        for api in Api::ALL {
            drop(whole(api, stream));
        }
    }
}
