//! Exact bytes out, and answers in, cut anywhere.

use super::*;
use crate::model::{CallFailure, CallResult, Purpose, Response, Stop};
use crate::session::{JsonText, Opaque, Role, Thinking, ToolClass, ToolResult, ToolUse};
use crate::units::{Tokens, Usage};

fn request(task: Task) -> Request {
    let thought = ContentBlock::Thinking(Box::new(Thinking { text: "hm".into(), signature: None }));
    let call = ContentBlock::ToolUse(Box::new(ToolUse {
        id: "t1".into(),
        name: "Read".into(),
        class: ToolClass::Read,
        input: JsonText::parse(r#"{"b":1}"#).unwrap(),
    }));
    let result = ContentBlock::ToolResult(Box::new(ToolResult {
        tool_use_id: "t1".into(),
        content: vec![ContentBlock::Text("x".into())],
        is_error: false,
    }));
    let opaque = ContentBlock::Opaque(Box::new(Opaque {
        kind: "odd".into(),
        json: JsonText::parse(r#"{"type":"odd","v":1}"#).unwrap(),
    }));
    let question = ContentBlock::Text("Question: what?".into());
    let messages = vec![
        Message::text(Role::User, "go"),
        Message::new(Role::Assistant, vec![thought.clone(), call]),
        Message::new(Role::User, vec![result]),
        Message::new(Role::Assistant, vec![thought]),
        Message::new(Role::User, vec![opaque, question]),
    ];
    Request {
        purpose: Purpose::Probe,
        task,
        system: Some("You \"act\".".into()),
        tools: None,
        messages: messages.into_iter().map(Arc::new).collect(),
        max_output: Tokens(64),
        model: None,
    }
}

#[test]
fn the_same_request_is_the_same_valid_json_and_holds_no_thinking() {
    let dialect = Dialect::new(Provider::Anthropic, "claude-x");
    let body = dialect.body(&request(Task::Answer));
    assert_eq!(body, dialect.body(&request(Task::Answer)));
    let value: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(value["tools"][0]["name"], "Read");
    assert_eq!(value["tool_choice"]["type"], "none");
    assert_eq!(value["system"][0]["cache_control"]["type"], "ephemeral");
    assert!(!body.contains("thinking"));
    let messages = value["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4);
    // The cache ends before the question and after the user's last word before it.
    let marked = |message: usize, block: usize| {
        messages[message]["content"][block]["cache_control"].is_object()
    };
    assert!(marked(3, 0) && !marked(3, 1) && marked(2, 0) && !marked(0, 0));
    assert_eq!(body.matches("cache_control").count(), 3);
}

#[test]
fn openai_gets_tool_messages_and_its_own_names() {
    let mut dialect = Dialect::new(Provider::OpenAi, "gpt-x");
    dialect.limit = "max_completion_tokens";
    dialect.temperature = Some(0.5);
    dialect.thinking = Tokens(4_000);
    dialect.structured = true;
    let value: Value = serde_json::from_str(&dialect.body(&request(Task::Judge))).unwrap();
    assert_eq!(value["max_completion_tokens"], 4_064);
    assert_eq!(value["temperature"], 0.5);
    assert_eq!(value["response_format"]["type"], "json_schema");
    assert_eq!(value["stream_options"]["include_usage"], true);
    let roles: Vec<&str> =
        value["messages"].as_array().unwrap().iter().filter_map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    let value: Value = serde_json::from_str(&dialect.body(&request(Task::Answer))).unwrap();
    assert!(value["response_format"].is_null() && value["tools"].is_null());
}

#[test]
fn verdicts_are_asked_for_with_a_schema_by_both_providers() {
    let mut dialect = Dialect::new(Provider::Anthropic, "claude-x");
    dialect.structured = true;
    let judged: Value = serde_json::from_str(&dialect.body(&request(Task::Judge))).unwrap();
    let format = &judged["output_config"]["format"];
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["schema"]["required"][0], "reason");
    let asked: Value = serde_json::from_str(&dialect.body(&request(Task::Answer))).unwrap();
    assert!(asked["output_config"].is_null());
    dialect.provider = Provider::OpenAi;
    let judged: Value = serde_json::from_str(&dialect.body(&request(Task::Judge))).unwrap();
    let format = &judged["response_format"]["json_schema"];
    assert_eq!(format["strict"], true);
    assert_eq!(format["schema"]["properties"]["verdict"]["type"], "string");
}

#[test]
fn thoughts_in_front_of_an_answer_are_left_out() {
    let check = |text: &str, expected: &str| assert_eq!(without_thoughts(text), expected, "{text}");
    check("48213", "48213");
    check("\n<think>\nis it 7?\n</think>\n\n48213", "48213");
    check("<think>a</think><thinking>b</thinking> 48213", "48213");
    // The template of some models opens the thought.
    check("is it 7?\n</think>\n\n48213", "48213");
    check("<think>cut off at the lim", "");
    check("The file says `</think>` twice.", "The file says `</think>` twice.");
    check("It is <think>7</think>", "It is <think>7</think>");
    let body = r#"{"model":"m","choices":[{"message":{"content":"<think>hm</think>\n48213"},"finish_reason":"stop"}]}"#;
    let expected = Ok(answered("48213", Stop::End, Usage::default(), "m"));
    self::check(Provider::OpenAi, false, body, &expected);
}

/// Every cut of the bytes gives the same answer.
#[track_caller]
fn check(provider: Provider, is_stream: bool, bytes: &str, expected: &CallResult) {
    for size in [1, 7, bytes.len().max(1)] {
        let mut incoming = IncomingAnswer::new(provider, is_stream, 1 << 20);
        for part in bytes.as_bytes().chunks(size) {
            incoming.push(part);
        }
        assert_eq!(&incoming.finish(), expected, "in pieces of {size}");
    }
}

fn answered(text: &str, stop: Stop, usage: Usage, model: &str) -> Response {
    Response { text: text.into(), stop, usage, model: model.into() }
}

#[test]
fn anthropic_answers_are_read_with_all_four_counters_of_the_prompt() {
    let stream = concat!(
        "event: message_start\r\n",
        "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-x-1\",\"usage\":{\"input_tokens\":3,\"cache_creation_input_tokens\":30,\"cache_creation\":{\"ephemeral_5m_input_tokens\":10,\"ephemeral_1h_input_tokens\":20},\"cache_read_input_tokens\":500,\"output_tokens\":1}}}\r\n\r\n",
        "data: {\"type\":\"ping\"}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"48\"}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"213 ü\"}}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"cache_creation_input_tokens\":30,\"output_tokens\":7}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\n",
    );
    let usage = Usage {
        input_uncached: Tokens(3),
        cache_write_5m: Tokens(10),
        cache_write_1h: Tokens(20),
        cache_read: Tokens(500),
        output: Tokens(7),
    };
    let whole = Ok(answered("48213 ü", Stop::End, usage, "claude-x-1"));
    check(Provider::Anthropic, true, stream, &whole);
    let cut = &stream[..stream.find("data: {\"type\":\"message_stop\"").unwrap()];
    check(Provider::Anthropic, true, cut, &Err(CallFailure::Cut));
    let refused = stream.replace("end_turn", "refusal");
    let expected = Ok(answered("48213 ü", Stop::Refusal, usage, "claude-x-1"));
    check(Provider::Anthropic, true, &refused, &expected);
    let overloaded = "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    check(Provider::Anthropic, true, overloaded, &Err(CallFailure::SERVER));
    let body = r#"{"type":"message","model":"m","content":[{"type":"tool_use","id":"a","name":"b","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":2,"output_tokens":3}}"#;
    let expected = Ok(answered("", Stop::ToolUse, Usage::uncached(Tokens(2), Tokens(3)), "m"));
    check(Provider::Anthropic, false, body, &expected);
}

#[test]
fn openai_answers_are_read_and_cached_tokens_are_not_counted_twice() {
    let chunk = |rest: &str| format!("data: {{\"model\":\"gpt-x-1\",{rest}}}\n\n");
    let stream = |reason: &str| {
        [
            chunk(r#""choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null"#),
            chunk(r#""choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":null}]"#),
            chunk(&format!(r#""choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]"#)),
            chunk(r#""choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":64}}"#),
            "data: [DONE]\n\n".to_owned(),
        ]
        .concat()
    };
    let usage = Usage { cache_read: Tokens(64), ..Usage::uncached(Tokens(36), Tokens(5)) };
    for (reason, stop) in [
        ("stop", Stop::End),
        ("length", Stop::Length),
        ("content_filter", Stop::ContentFilter),
        ("tool_calls", Stop::ToolUse),
    ] {
        let expected = Ok(answered("yes", stop, usage, "gpt-x-1"));
        check(Provider::OpenAi, true, &stream(reason), &expected);
    }
    let cut = chunk(r#""choices":[{"index":0,"delta":{"content":"ye"},"finish_reason":null}]"#);
    check(Provider::OpenAi, true, &cut, &Err(CallFailure::Cut));
    let broken = "data: {\"choices\":[{\n\n";
    check(Provider::OpenAi, true, broken, &Err(CallFailure::Unreadable));
    check(Provider::OpenAi, false, "<html>", &Err(CallFailure::Unreadable));
    let too_long = r#"{"error":{"code":400,"message":"request (1618 tokens) exceeds the available context size (512 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":1618,"n_ctx":512}}"#;
    check(Provider::OpenAi, false, too_long, &Err(CallFailure::Overflow));
    let refusal = r#"{"model":"m","choices":[{"message":{"content":null,"refusal":"I cannot."},"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"completion_tokens":2}}"#;
    let expected =
        Ok(answered("I cannot.", Stop::Refusal, Usage::uncached(Tokens(4), Tokens(2)), "m"));
    check(Provider::OpenAi, false, refusal, &expected);
}

#[test]
fn a_verdict_ends_with_its_first_object_however_it_comes() {
    let piece = |text: &str| {
        let text = Value::from(text);
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}}}}]}}\n\n")
    };
    let object = r#"{"reason": "as {said}", "verdict": "right"}"#;
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":90}}\n\n";
    let stream =
        piece(object) + &piece("\n``` and so") + &piece(" {\"verdict\": \"stale\"}") + usage;
    let texts = [1, 7, stream.len()].map(|size| {
        let mut incoming = IncomingAnswer::new(Provider::OpenAi, true, 10_000);
        incoming.ends_with_object = true;
        for bytes in stream.as_bytes().chunks(size) {
            incoming.push(bytes);
            if incoming.is_enough() {
                break;
            }
        }
        let answer = incoming.finish().unwrap();
        assert_eq!((answer.stop, answer.usage), (Stop::End, Usage::default()));
        answer.text.to_string()
    });
    assert_eq!(texts, [object; 3]);
    // One that writes nothing more is read to its end.
    let whole = piece(object)
        + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
        + usage;
    let mut incoming = IncomingAnswer::new(Provider::OpenAi, true, 10_000);
    incoming.ends_with_object = true;
    incoming.push(whole.as_bytes());
    assert!(!incoming.is_enough());
    assert_eq!(incoming.finish().unwrap().usage.output, Tokens(90));
}
