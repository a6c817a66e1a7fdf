//! Traces that observability tools keep: each call of a model with its context.

use proctor_formats::{self as import, ImportError};

use super::{check_fixture as check, fixture, outline, read, round_trip};

#[test]
fn spans_of_opentelemetry_are_requests_and_show_a_compaction() {
    let sessions = check(
        "otlp/traces.jsonl",
        "otlp",
        &[
            r#"0 user[typed_user] "When does the last boat leave?"
1 model[] thinking "Two quays.", "I look at both quays.", other f1 {"quay":"north"}, other f2 {"quay":"south"} = 10/300/0/0/40
2 user[] ->f1 "21:40, and every hour before that", ->f2 "{\"last\":\"22:10\"}"
3 model[] "At 22:10, from the south quay, and at 21:40 from the north quay." = 120/0/0/300/22
4 user[typed_user] "Is it on time?", image {"url":"https://example.org/board.png"}
5 model[] "Yes." = 130/0/0/0/2
compaction before 4: - 420: (user[typed_user] "So far: the last boats leave at 22:10 (south) and 21:40 (north)."), kept 3..4
skipped: attribute `gen_ai.request.max_tokens`: 1
skipped: span of execute_tool: 1
skipped: span of invoke_agent: 1
skipped: span of no model: 1
"#,
            r#"0 user[typed_user] "High water?"
1 model[] other t1 {"day":3} = 20/0/0/0/8
2 user[] ->t1 "14:05"
3 model[] "At 14:05." = 44/0/0/0/5
skipped: attribute `llm.request.type`: 1
"#,
        ],
    );
    assert_eq!(sessions[0].system(), Some(&"You run ferries.".into()));
    assert_eq!(sessions[0].tools().len(), 1);
    assert_eq!(sessions[0].model(), Some("ferry-model"));
    assert_eq!(sessions[1].system(), Some(&"You read tides.".into()));
}

#[test]
fn calls_of_strands_and_of_the_ai_sdk_are_read_once() {
    let sessions = check(
        "otlp/libraries.jsonl",
        "otlp",
        &[
            r#"0 user[typed_user] "How long is the cloth?"
1 model[] thinking "Two looms.", "I measure.", other m1 {"loom":1}, other m2 {"loom":2} = 10/30/0/0/9
2 user[] ->m1 "9 m"+"{\"width\":2}", ->!m2 "jammed"
3 model[] "Nine metres." = 30/0/0/30/5
skipped: span of no model: 3
"#,
            r#"0 user[typed_user] "Which thread?"
1 model[] other p1 {"loom":1} = 42/0/0/0/6
2 user[] ->p1 "wool"
3 model[] "Wool." = 52/0/0/0/3
"#,
            r#"0 user[typed_user] "Is the atlas here?"
1 model[] thinking "Ask the shelf.", other b {"title":"atlas"} = 50/0/0/0/12
2 user[] ->b "{\"copies\":2}"
3 model[] "Two are." = 32/0/0/48/4
skipped: attribute `ai.operationId`: 2
"#,
        ],
    );
    assert_eq!(sessions[2].system(), Some(&"You sell books.".into()));
    assert_eq!(sessions[2].tools().len(), 1);
}

/// Reads one span with these attributes and events, which are in the form of OTLP.
#[track_caller]
fn check_span(attributes: &str, events: &str, expected: &str) {
    let span = format!(
        r#"{{"spanId":"s","startTimeUnixNano":"5","attributes":[{attributes}],"events":[{events}]}}"#
    );
    let text = format!(r#"[{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}]"#);
    assert!(import::importer("otlp").expect("known").detect(text.as_bytes()));
    let sessions = read("otlp", text.as_bytes()).expect("a good file");
    let got: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(got, [expected]);
    round_trip(&sessions[0]);
}

#[test]
fn messages_of_a_span_are_read_in_every_form() {
    let text = |key: &str, value: &str| {
        let value = serde_json::json!({"key": key, "value": {"stringValue": value}});
        value.to_string()
    };
    let input = |value: &str| text("gen_ai.input.messages", value);
    let output = |value: &str| text("gen_ai.output.messages", value);
    // Without roles and parts, as some instrumentations write them.
    check_span(
        &[input("Tide?"), output("Low.")].join(","),
        "",
        "0 user[typed_user] \"Tide?\"\n1 model[] \"Low.\"\n",
    );
    check_span(
        &[
            input(r#"[{"role":"human","content":"Tide?"},{"role":"model","content":"Low."},{"role":"user","content":"Sure?"}]"#),
            output(r#"[{"role":"model","parts":["Yes."]},{"role":"model","parts":[{"type":"blob","modality":"image","mime_type":"image/png","content":"AA"},{"type":"blob","modality":"audio","content":"AA"}]}]"#),
        ]
        .join(","),
        "",
        r#"0 user[typed_user] "Tide?"
1 model[] "Low."
2 user[typed_user] "Sure?"
3 model[] "Yes.", image {"type":"base64","media_type":"image/png","data":"AA"}, <blob>
"#,
    );
    // Calls without an id are paired by their order.
    check_span(
        &[
            input(r#"[{"role":"user","parts":[{"type":"text","content":"Tide?"}]},{"role":"assistant","parts":[{"type":"tool_call","name":"tide","arguments":"{\"day\":3}"}]},{"role":"tool","parts":[{"type":"tool_call_response","response":[{"type":"text","content":"low"}]}]}]"#),
            output(r#"[{"role":"assistant","parts":[{"type":"text","content":"Low."},{"type":"never-heard-of","words":"and rising"}]},{"role":"assistant","parts":[{"type":"text","content":"High."}]}]"#),
            r#"{"key":"gen_ai.request.choice.count","value":{"intValue":2}}"#.to_owned(),
        ]
        .join(","),
        "",
        r#"0 user[typed_user] "Tide?"
1 model[] other unnamed-call-a1641e46 {"day":3}
2 user[] ->unnamed-call-a1641e46 "low"
3 model[] "Low.", <never-heard-of>
unknown: block never-heard-of: 1
warning: a response has a second choice, which is left out: 1
warning: a tool result does not say what it answers; it was paired by order: 1
"#,
    );
    // Events of one message each, with their content as JSON or as attributes.
    check_span(
        &text("gen_ai.operation.name", "chat"),
        &[
            format!(
                r#"{{"name":"gen_ai.user.message","attributes":[{}]}}"#,
                text("gen_ai.event.content", r#"{"content":"[1, 2]?"}"#)
            ),
            format!(
                r#"{{"name":"gen_ai.choice","attributes":[{}]}}"#,
                text("message", r#"{"content":"[3]"}"#)
            ),
            r#"{"name":"exception","attributes":[]}"#.to_owned(),
        ]
        .join(","),
        "0 user[typed_user] \"[1, 2]?\"\n1 model[] \"[3]\"\nskipped: event exception: 1\n",
    );
}

#[test]
fn cached_tokens_in_the_details_of_a_usage_are_read() {
    let text = |key: &str, value: &str| {
        format!(r#"{{"key":"gen_ai.{key}","value":{{"stringValue":"{value}"}}}}"#)
    };
    let count = |key: &str, value: u64| {
        format!(r#"{{"key":"gen_ai.usage.{key}","value":{{"intValue":"{value}"}}}}"#)
    };
    check_span(
        &[
            text("input.messages", "Tide?"),
            text("output.messages", "Low."),
            count("input_tokens", 12103),
            count("output_tokens", 60),
            count("details.cache_read_tokens", 12000),
            count("details.cache_write_tokens", 100),
        ]
        .join(","),
        "",
        "0 user[typed_user] \"Tide?\"\n1 model[] \"Low.\" = 3/100/0/12000/60\n",
    );
}

#[test]
fn spans_without_messages_are_told_and_log_records_of_a_call_are_enough() {
    let export =
        |spans: &str| format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#);
    let chat = r#"{"spanId":"s","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}}]}"#;
    let error = read("otlp", export(chat).as_bytes()).expect_err("no message");
    assert!(matches!(error, ImportError::NoConversation(_)), "{error}");
    let messages = r#"{"key":"gen_ai.input.messages","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"user"}},{"key":"parts","value":{"stringValue":"Tide?"}}]}}]}}},{"key":"gen_ai.output.messages","value":{"stringValue":"Low."}}"#;
    let log = format!(
        r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"eventName":"gen_ai.client.inference.operation.details","attributes":[{messages}]}},{{"eventName":"boot"}}]}}]}}]}}"#
    );
    // A span that was exported twice is one call.
    let span = format!(r#"{{"spanId":"t","attributes":[{messages}]}}"#).replace("Tide", "Wind");
    let text = [log, export(&[chat, &span, &span].join(","))].join("\n");
    // So is an export that was sent again.
    let again = read("otlp", format!("{text}\n{text}").as_bytes()).expect("a good file");
    let copied = again[0].source().warnings["a record stands in the file twice"];
    assert_eq!((again.len(), copied), (2, 2));
    let sessions = read("otlp", text.as_bytes()).expect("a good file");
    let got: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(
        got,
        [
            "0 user[typed_user] \"Wind?\"\n1 model[] \"Low.\"\nskipped: call without messages: 1\nskipped: log record of no call: 1\nskipped: response without a message: 1\nskipped: span recorded twice: 1\n",
            "0 user[typed_user] \"Tide?\"\n1 model[] \"Low.\"\n",
        ]
    );
}

#[test]
fn generations_of_langfuse_are_requests_of_any_library() {
    let sessions = check(
        "langfuse/trace.json",
        "langfuse",
        &[r#"0 user[typed_user] "Which tree is dry?"
1 model[] "I look at both rows.", other t1 {"row":1}, other t2 {"row":2} = 300/0/0/0/30
2 user[] ->t1 "wet, all eleven of them", ->t2 "{\"tree\":4,\"moisture\":0.1}"
3 model[] "Tree four in row two is dry; row one is wet." = 60/0/0/300/14
4 user[typed_user] "Water it."
5 model[] "Watered." = 90/0/0/0/3
compaction before 4: - 360: (user[typed_user] "So far: tree four in row two is dry, all of row one is wet."), kept 3..4
skipped: observation AGENT: 1
skipped: observation TOOL: 1
"#],
    );
    assert_eq!(sessions[0].system(), Some(&"You tend an orchard.".into()));
    assert_eq!(sessions[0].tools().len(), 1);
    check(
        "langfuse/observations.jsonl",
        "langfuse",
        &[
            r#"0 user[typed_user] "How deep is the well?"
1 model[] thinking "Measure it.", other w1 {"well":1} = 40/0/0/0/9
2 user[] ->w1 "12 m"
3 model[] "12 metres." = 50/0/0/20/4
skipped: observation SPAN: 1
"#,
            r#"0 user[typed_user] "Pump."
1 model[] "Pumping.", other p1 {} = 5/10/0/80/7
skipped: key `max_tokens`: 1
skipped: message key `id`: 1
skipped: message key `type`: 1
"#,
            r#"0 user[typed_user] "Is the gate shut?"
1 model[] "Yes."
"#,
            r#"0 user[typed_user] "Shut it."
1 model[] "I shut it.", other s1 {"gate":2}
2 user[] ->s1 "shut"
3 model[] other s2 {"gate":2} = 31/0/0/0/6
skipped: message key `additional_kwargs`: 1
"#,
        ],
    );
}

#[test]
fn messages_of_the_ai_sdk_of_opentelemetry_and_of_gemini_are_read() {
    let sessions = check(
        "langfuse/libraries.jsonl",
        "langfuse",
        &[
            r#"0 user[typed_user] "Is kiln 1 hot?"
1 model[] "I look.", other k1 {"kiln":1} = 27/0/0/100/55
2 user[] ->!k1 "no sensor"
3 model[] "I cannot tell." = 20/0/0/0/5
"#,
            r#"0 user[typed_user] "Heat of kilns 2 and 3?"
1 model[] other k2 {"kiln":2}, other k3 {"kiln":3} = 20/0/0/0/5
2 user[] ->k2 "{\"celsius\":900}", ->k3 "cold"
3 model[] "900 and cold." = 20/0/0/0/5
"#,
            r#"0 user[typed_user] "Is kiln 4 hot?"
1 model[] thinking "Measure.", other k4 {"kiln":4} = 20/0/0/0/5
2 user[] ->k4 "880"
3 model[] "Yes." = 20/0/0/0/5
"#,
            r#"0 user[typed_user] "Is kiln 5 hot?", image {"mimeType":"image/png","data":"AA"}
1 model[] thinking "Measure.", other unnamed-call-a49c787b {"kiln":5} = 20/0/0/0/5
2 user[] ->unnamed-call-a49c787b "910"
3 model[] "Yes." = 20/0/0/0/5
skipped: key `temperature`: 2
warning: a response has a second choice, which is left out: 1
warning: a tool result does not say what it answers; it was paired by order: 1
"#,
        ],
    );
    for session in [&sessions[0], &sessions[3]] {
        assert_eq!(session.system(), Some(&"You fire clay.".into()));
    }
    assert_eq!(sessions[3].tools().len(), 1);
}

#[test]
fn runs_of_langsmith_are_requests_and_show_a_summary() {
    let sessions = check(
        "langsmith/runs.jsonl",
        "langsmith",
        &[
            r#"0 user[typed_user] "Is the oven hot?"
1 model[] "I measure it.", other m1 {"oven":1} = 10/200/0/0/18
2 user[] ->m1 "231 degrees in the middle, 228 at the door"
3 model[] "It is hot: 231 degrees." = 60/0/0/200/11
4 user[typed_user] "Put the bread in."
5 model[] "It is in." = 90/0/0/0/5
compaction before 4: - 260: (user[compact_summary] "Summary: the oven was at 231 degrees."), kept 3..4
skipped: run of chain: 1
skipped: run of tool: 1
skipped: run recorded twice: 1
"#,
            r#"0 user[typed_user] "Two rolls."
1 model[] "Here." = 21/0/0/0/2
skipped: key `id`: 1
skipped: key `temperature`: 1
"#,
        ],
    );
    assert_eq!(sessions[0].system(), Some(&"You bake bread.".into()));
    assert_eq!(sessions[0].model(), Some("oven-model"));
    assert_eq!(sessions[0].tools().len(), 1);
    // Indented, a child is not written as the same run beside its parent.
    let text = std::fs::read_to_string(fixture("langsmith/runs.jsonl")).expect("a fixture");
    let runs = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let list: serde_json::Value = runs.collect::<Vec<serde_json::Value>>().into();
    let indented = read("langsmith", format!("{list:#}").as_bytes()).expect("a good file");
    assert_eq!(indented[0].source().skipped["run recorded twice"], 1);
}

/// Reads a generation with this input and this output.
#[track_caller]
fn check_generation(input: &str, output: &str, expected: &str) {
    let text = format!(
        r#"{{"data":[{{"id":"g","traceId":"t","type":"GENERATION","input":{input},"output":{output}}}],"meta":{{}}}}"#
    );
    assert!(import::importer("langfuse").expect("known").detect(text.as_bytes()));
    let sessions = read("langfuse", text.as_bytes()).expect("a good file");
    assert_eq!(outline(&sessions[0]), expected, "{input}");
    round_trip(&sessions[0]);
}

#[test]
fn an_input_or_output_of_another_shape_loses_no_words() {
    let user = "0 user[typed_user] \"Wind?\"\n";
    for (output, said) in [
        (r#""{\"wind\": 3}""#, r#""{\"wind\": 3}""#),
        (r#"{"wind":3}"#, r#""{\"wind\":3}""#),
        (r#"{"completion":"3"}"#, r#""3""#),
        (r#"["3","4"]"#, r#""3""#),
        (r#"{"content":[{"type":"text","text":"3"}]}"#, r#""3""#),
        (r#"{"message":{"role":"ai","content":"3"}}"#, r#""3""#),
        (r#"[[{"role":"model","content":"3"}]]"#, r#""3""#),
        ("3", r#""3""#),
        (r#"[{"type":"text","text":"3"}]"#, r#""3""#),
    ] {
        let second = if output.starts_with("[\"") {
            "warning: a response has a second choice, which is left out: 1\n"
        } else {
            ""
        };
        check_generation(r#""Wind?""#, output, &format!("{user}1 model[] {said}\n{second}"));
    }
    for input in [
        r#"{"prompt":"Wind?"}"#,
        r#"{"prompts":["Wind?"]}"#,
        r#"{"input":[{"role":"human","content":"Wind?"}]}"#,
        r#""[\"Wind?\"]""#,
        r#"[[{"type":"human","data":{"content":"Wind?"}}]]"#,
    ] {
        check_generation(input, r#""3""#, &format!("{user}1 model[] \"3\"\n"));
    }
    check_generation(
        r#"{"question":"Wind?","messages":[]}"#,
        r#""3""#,
        "0 model[] \"3\"\nskipped: key `question`: 1\n",
    );
}

#[test]
fn a_trace_with_every_sign_of_a_compaction_is_read() {
    check(
        "otlp/compactions.jsonl",
        "otlp",
        &[r#"0 user[typed_user] "Which lamp is out?"
1 model[] "The third." = 100/0/0/0/5
2 user[typed_user] "Light it."
3 model[] "Lit." = 200/0/0/0/5
4 user[typed_user] "And the fourth?"
5 model[] "It burns." = 500/0/0/0/5
compaction before 2: - 100: missing
compaction before 4: token_threshold 200: (user[compact_summary] "So far: the third lamp was out, and it is lit again, as was asked."), (model[] "Understood.")
compaction before 5: compaction 0: (user[compact_summary] "The fourth burns.")
skipped: span of compact_events: 1
warning: a compaction is recorded that no later call follows: 2
warning: a request was sent again; its first answer stands: 1
"#],
    );
}

/// A span from `at` to `at + 1`, with attributes as JSON and events by name.
fn span_at(at: u32, attributes: &serde_json::Value, events: &[&str]) -> serde_json::Value {
    let attributes = attributes.as_object().expect("attributes");
    let attributes = attributes.iter().map(|(key, value)| {
        let kind = if value.is_boolean() { "boolValue" } else { "stringValue" };
        serde_json::json!({"key": key, "value": {kind: value}})
    });
    let events = events.iter().map(|name| serde_json::json!({"name": name}));
    serde_json::json!({
        "spanId": format!("s{at}"),
        "startTimeUnixNano": format!("{at}000"),
        "endTimeUnixNano": format!("{}000", at + 1),
        "attributes": attributes.collect::<Vec<_>>(),
        "events": events.collect::<Vec<_>>(),
    })
}

/// A call that asks these messages, of the user's and the model's by turns.
fn call_at(at: u32, asked: &[&str], answer: &str, more: &[(&str, bool)]) -> serde_json::Value {
    let roles = ["user", "assistant"].iter().cycle();
    let asked = roles.zip(asked).map(|(role, said)| {
        let said = serde_json::from_str(said)
            .unwrap_or_else(|_| serde_json::json!({"type": "text", "content": said}));
        serde_json::json!({"role": role, "parts": [said]})
    });
    let asked: serde_json::Value = asked.collect();
    let mut attributes = serde_json::json!({
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "c",
        "gen_ai.input.messages": asked.to_string(),
        "gen_ai.output.messages": answer,
    });
    for (key, value) in more {
        attributes[*key] = (*value).into();
    }
    span_at(at, &attributes, &[])
}

#[test]
fn compactions_that_a_trace_tells_of_are_recorded_or_named() {
    const FLAG: &str = "gen_ai.conversation.compacted";
    let adk = |more: &[(&str, &str)]| {
        let mut attributes = serde_json::json!({
            "gen_ai.operation.name": "compact_events",
            "gen_ai.conversation.id": "c",
            "gen_ai.compaction.trigger": "token_threshold",
            "gen_ai.compaction.event_count": "4",
        });
        for (key, value) in more {
            attributes[*key] = (*value).into();
        }
        attributes
    };
    let done = ("gen_ai.compaction.result_event_id", "e");
    let first = call_at(1, &["Tide?"], "Low.", &[]);
    let whole = ["Tide?", "Low.", "Wind?"];
    let summed =
        ["So far: the tide is low, as the one who watches the quay said.", "Yes.", "Wind?"];
    let written = r#"[{"role":"assistant","parts":[{"type":"compaction","id":"k","content":"The tide is low."},{"type":"text","content":"West."}]}]"#;
    let sealed = written.replace(r#","content":"The tide is low.""#, "");
    let part = r#"{"type":"compaction","content":"The tide is low."}"#;
    let said = "0 user[typed_user] \"Tide?\"\n1 model[] \"Low.\"\n2 user[typed_user] \"Wind?\"\n3 model[] \"West.\"\n";
    let never = "warning: a compaction is recorded that no later call follows: 1\n";
    let left = "compaction before 2: - 0: (user[compact_summary] \"The tide is low.\"), (model[] \"Yes.\")\n";
    let event = {
        let mut call = call_at(4, &whole, "West.", &[]);
        call["events"] = serde_json::json!([{"name": FLAG}]);
        call
    };
    for (what, spans, expected) in [
        ("nothing", vec![call_at(4, &whole, "West.", &[])], said.to_owned()),
        (
            "the flag",
            vec![
                call_at(4, &whole, "West.", &[(FLAG, true)]),
                call_at(6, &["Tide?", "Low.", "Wind?", "West.", "Rain?"], "No.", &[(FLAG, true)]),
            ],
            format!(
                "{said}4 user[typed_user] \"Rain?\"\n5 model[] \"No.\"\ncompaction before 2: - 0: missing\n"
            ),
        ),
        ("no flag", vec![call_at(4, &whole, "West.", &[(FLAG, false)])], said.to_owned()),
        ("an event", vec![event], format!("{said}compaction before 2: - 0: missing\n")),
        (
            "ADK",
            vec![span_at(2, &adk(&[done]), &[]), call_at(4, &whole, "West.", &[])],
            format!("{said}compaction before 2: token_threshold 0: missing\n"),
        ),
        (
            "ADK, declined",
            vec![span_at(2, &adk(&[]), &[]), call_at(4, &whole, "West.", &[])],
            format!("{said}skipped: span of compact_events: 1\n"),
        ),
        (
            "ADK, at the end",
            vec![call_at(4, &whole, "West.", &[]), span_at(9, &adk(&[done]), &[])],
            format!("{said}{never}"),
        ),
        (
            "what ADK left",
            vec![span_at(2, &adk(&[done]), &[]), call_at(4, &summed, "West.", &[])],
            format!(
                "{said}{}",
                left.replace("- 0", "token_threshold 0").replace("The tide is low.", summed[0])
            ),
        ),
        (
            "a part of the answer",
            vec![call_at(4, &whole, written, &[(FLAG, true)])],
            format!(
                "{said}compaction before 3: compaction 0: (user[compact_summary] \"The tide is low.\")\n"
            ),
        ),
        (
            "a sealed part",
            vec![call_at(4, &whole, &sealed, &[])],
            format!("{said}compaction before 3: compaction 0: encrypted\n"),
        ),
        (
            "a part of the question",
            vec![call_at(4, &[part, "Yes.", "Wind?"], "West.", &[(FLAG, true)])],
            format!("{said}{left}"),
        ),
    ] {
        let spans = [vec![first.clone()], spans].concat();
        let text = serde_json::json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
        let sessions = read("otlp", text.to_string().as_bytes()).expect("a good file");
        let got: Vec<String> = sessions.iter().map(outline).collect();
        assert_eq!(got.join("--\n"), expected, "{what}");
    }
    // What was before the first call is not recorded.
    let first = call_at(1, &["Tide?"], "Low.", &[(FLAG, true)]);
    for spans in [
        vec![first.clone()],
        vec![first.clone(), call_at(4, &whole, "West.", &[])],
        // It may be said again at each later call.
        vec![first, call_at(4, &whole, "West.", &[(FLAG, true)])],
    ] {
        let text = serde_json::json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
        let sessions = read("otlp", text.to_string().as_bytes()).expect("a good file");
        let [session] = &sessions[..] else {
            panic!("{} sessions", sessions.len());
        };
        assert!(session.compactions().is_empty());
        let warning = "a conversation was compacted before its first call that is recorded";
        assert_eq!(session.source().warnings.get(warning), Some(&1));
    }
}
