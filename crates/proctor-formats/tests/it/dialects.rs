//! What gateways, older versions and newer ones write differently.

use super::{outline, read, round_trip};

/// The outlines of all sessions that an importer makes of a text.
#[track_caller]
fn check(format: &str, text: &str, expected: &str) {
    let sessions = match read(format, text.as_bytes()) {
        Ok(sessions) => sessions,
        Err(error) => panic!("{error}"),
    };
    let got: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(got.join("--\n"), expected);
    for session in &sessions {
        round_trip(session);
    }
}

/// The format that detection tells, and the outline.
#[track_caller]
fn check_file(name: &str, text: &str, format: &str, expected: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("the folder can be written to");
    let sessions = proctor_formats::load(&path).expect("a good file");
    assert_eq!(sessions[0].source().format, format);
    let got: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(got.join("--\n"), expected);
}

#[test]
fn langchain_kept_the_calls_of_the_provider_before_it_had_its_own() {
    check(
        "langchain",
        r#"[{"type":"chat","data":{"role":"user","content":"Look."}},
{"type":"ai","data":{"content":"","additional_kwargs":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"p\":1}"}}]}}},
{"type":"tool","data":{"content":"one","tool_call_id":"c1"}},
{"type":"ai","data":{"content":"","additional_kwargs":{"function_call":{"name":"read_file","arguments":"{\"p\":2}"},"mood":"good"}}},
{"type":"function","data":{"content":"two","name":"read_file"}},
{"type":"ai","data":{"content":"Done.","additional_kwargs":{}}}]"#,
        r#"0 user[typed_user] "Look."
1 model[] read c1 {"p":1}
2 user[] ->c1 "one"
3 model[] read unnamed-call-5c4c70fa {"p":2}
4 user[] ->unnamed-call-5c4c70fa "two"
5 model[] "Done."
skipped: additional key `mood`: 1
"#,
    );
}

#[test]
fn gateways_count_the_cache_and_tell_thoughts_in_their_own_ways() {
    let log = |message: &str, usage: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"Hi."}}],"response":{{"id":"r","choices":[{{"message":{{"role":"assistant","content":"Yo."{message}}}}}],"usage":{{{usage}}}}}}}"#
        )
    };
    // The prompt without the cache.
    check(
        "openai-chat",
        &log(
            "",
            r#""prompt_tokens":10,"completion_tokens":5,"cache_read_input_tokens":1000,"cache_creation_input_tokens":200"#,
        ),
        r#"0 user[typed_user] "Hi."
1 model[] "Yo." = 10/200/0/1000/5
warning: a usage counts cached tokens apart from the prompt: 1
"#,
    );
    check(
        "openai-chat",
        &log(
            r#","reasoning":"Greet.","reasoning_details":[{"type":"reasoning.text","text":"Greet.","signature":"s"},{"type":"reasoning.encrypted","data":"AA"}]"#,
            r#""prompt_tokens":1000,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":300,"cache_write_tokens":200}"#,
        ),
        r#"0 user[typed_user] "Hi."
1 model[] thinking "Greet.", <reasoning_details>, "Yo." = 500/200/0/300/5
"#,
    );
    // What was thought, beside the output and within it.
    for (total, output) in [(135, 103), (41, 9)] {
        let usage = format!(
            r#""prompt_tokens":32,"completion_tokens":9,"total_tokens":{total},"prompt_tokens_details":{{"cached_tokens":6}},"completion_tokens_details":{{"reasoning_tokens":94}}"#
        );
        let said = format!("0 user[typed_user] \"Hi.\"\n1 model[] \"Yo.\" = 26/0/0/6/{output}\n");
        check("openai-chat", &log("", &usage), &said);
    }
}

#[test]
fn a_call_may_be_a_part_of_the_content() {
    let part = r#"{"type":"tool_call","tool_call_id":"c1","name":"look","arguments":"{\"at\":1}"}"#;
    let call =
        r#"{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}"#;
    for calls in [String::new(), format!(r#","tool_calls":[{call}]"#)] {
        check(
            "openai-chat",
            &format!(
                r#"[{{"role":"user","content":"Which lock?"}},
{{"role":"assistant","content":[{part}]{calls}}},
{{"role":"tool","tool_call_id":"c1","content":[{{"type":"tool_output","text":"The third."}}]}}]"#
            ),
            r#"0 user[typed_user] "Which lock?"
1 model[] other c1 {"at":1}
2 user[] ->c1 "The third."
"#,
        );
    }
}

#[test]
fn hermes_agent_says_its_tools_in_a_line_and_its_prompt_beside_the_messages() {
    let tools = r#""tools":[{"type":"function","function":{"name":"terminal"},"input_schema":{}}]"#;
    let messages = [
        r#"{"role":"user","content":"Which lock?","timestamp":"2026-05-11T20:31:08.015498"}"#,
        r#"{"role":"assistant","content":"The third.","timestamp":"2026-05-11T20:31:09.0"}"#,
    ];
    let meta = format!(r#"{{"role":"session_meta","model":"m",{tools},"platform":"cli"}}"#);
    let said = "0 user[typed_user] \"Which lock?\"\n1 model[] \"The third.\"\n";
    let lines = [&meta, messages[0], messages[1]].join("\n");
    check_file("a.jsonl", &lines, "openai-chat", &format!("{said}skipped: session_meta: 1\n"));
    let messages = messages.join(",");
    let object = format!(
        r#"{{"model":"m","system_prompt":"You keep a weir.",{tools},"messages":[{messages},{{"role":"session_meta"}}]}}"#
    );
    check_file("a.json", &object, "openai-chat", &format!("{said}skipped: session_meta: 1\n"));
    for text in [lines, object] {
        let session = &read("openai-chat", text.as_bytes()).unwrap()[0];
        assert_eq!((session.model(), session.tools().len()), (Some("m"), 1));
        let is_told = text.contains("system_prompt");
        assert_eq!(session.system().is_some(), is_told);
        let time = session.messages()[1].details.timestamp.unwrap();
        assert_eq!(time.0, 1_778_531_469_000);
    }
}

#[test]
fn the_oldest_histories_of_specstory_go_on_under_headings_without_a_name() {
    check_file(
        "history.md",
        "## SpecStory\n\n## Sluices (2/19/2025, 9:30:45 AM)\n\n_**User**_\n\nOpen it.\n\n---\n\n_**Assistant**_\n\nI open it.\n\n---\n\n_****_\n\nIt is open.\n\n---\n",
        "specstory",
        r#"0 user[typed_user] "Open it."
1 model[] "I open it.", "It is open."
skipped: line before the first message: 2
"#,
    );
}

#[test]
fn logs_may_have_keys_of_their_own_and_be_batches() {
    let said = r#"0 user[typed_user] "Hi."
1 model[] "Yo."
"#;
    check_file(
        "log.json",
        r#"{"sessionId":"s","info":{"a":1},"model":"m","messages":[{"role":"user","content":"Hi.","uuid":"1","ts":1},{"role":"assistant","content":"Yo.","uuid":"2"}]}"#,
        "openai-chat",
        &format!(
            "{said}skipped: key `info`: 1\nskipped: key `sessionId`: 1\nskipped: message key `ts`: 1\nskipped: message key `uuid`: 2\n"
        ),
    );
    check_file(
        "batch.jsonl",
        r#"{"custom_id":"a","params":{"model":"m","max_tokens":9,"system":"s","messages":[{"role":"user","content":"Hi."},{"role":"assistant","content":"Yo."}]}}"#,
        "anthropic",
        &format!("{said}skipped: key `custom_id`: 1\nskipped: key `max_tokens`: 1\n"),
    );
    check_file(
        "answer.json",
        r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"Yo."}],"usage":{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":2}}"#,
        "anthropic",
        "0 model[] \"Yo.\" = 10/0/0/90/2\n",
    );
}

#[test]
fn swe_agent_is_told_whatever_the_order_of_its_keys() {
    let history = r#""history":[{"role":"system","content":"s","agent":"main"},{"role":"user","content":"Mend.","agent":"main"},{"role":"assistant","content":"Done.","agent":"main"}]"#;
    let steps = r#""trajectory":[{"action":"ls","observation":"x","response":"r","thought":"t","state":{}}]"#;
    for text in [
        format!(r#"{{"info":{{"exit_status":"submitted"}},{history},{steps},"environment":"e"}}"#),
        format!(r#"{{"attempts":[{{{steps},{history}}}],{steps},{history}}}"#),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("run.traj");
        std::fs::write(&path, text).expect("the folder can be written to");
        let sessions = proctor_formats::load(&path).expect("a good file");
        assert_eq!(sessions[0].source().format, "swe-agent");
        assert_eq!(sessions[0].messages().len(), 2);
    }
}

#[test]
fn inspect_tells_by_the_total_what_was_counted_apart() {
    let log = |usage: &str| {
        format!(
            r#"{{"version":2,"status":"success","eval":{{"model":"m","task":"t"}},"samples":[{{"id":1,"epoch":1,"input":"Hi.","target":"","messages":[{{"id":"u","role":"user","content":"Hi.","source":"input"}},{{"id":"a","role":"assistant","content":"Yo.","source":"generate","model":"m"}}],"events":[{{"event":"model","timestamp":"2026-01-01T00:00:00Z","model":"m","input":[],"tools":[],"output":{{"model":"m","choices":[{{"message":{{"id":"a","role":"assistant","content":"Yo."}}}}],"usage":{{{usage}}}}}}}],"attachments":{{}}}}]}}"#
        )
    };
    for (usage, expected) in [
        // All within, thoughts beside the output, and all beside.
        (
            r#""input_tokens":1000,"output_tokens":50,"total_tokens":1050,"input_tokens_cache_read":600,"reasoning_tokens":30"#,
            "400/0/0/600/50",
        ),
        (
            r#""input_tokens":1000,"output_tokens":50,"total_tokens":1080,"input_tokens_cache_read":600,"reasoning_tokens":30"#,
            "400/0/0/600/80",
        ),
        (
            r#""input_tokens":1000,"output_tokens":50,"total_tokens":1650,"input_tokens_cache_read":600,"reasoning_tokens":30"#,
            "1000/0/0/600/50",
        ),
    ] {
        let sessions = read("inspect", log(usage).as_bytes()).expect("a good log");
        let shown = outline(&sessions[0]);
        assert!(shown.contains(expected), "{usage}: {shown}");
    }
}

#[test]
fn a_sub_agent_that_a_command_of_opencode_starts_is_no_call_of_the_model() {
    let tokens = r#""tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}"#;
    let text = format!(
        r#"{{"info":{{"id":"ses_a"}},"messages":[
{{"info":{{"id":"m1","role":"user"}},"parts":[{{"type":"text","text":"/review"}}]}},
{{"info":{{"id":"m2","role":"assistant","modelID":"m",{tokens}}},"parts":[{{"type":"tool","callID":"t","tool":"task","state":{{"status":"completed","input":{{}},"output":"dry"}}}}]}},
{{"info":{{"id":"m3","role":"assistant","modelID":"m","tokens":{{"input":9,"output":2}}}},"parts":[{{"type":"step-start"}},{{"type":"text","text":"All is dry."}}]}}]}}"#
    );
    let sessions = read("opencode", text.as_bytes()).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "/review"
1 model[synthetic] agent t {}
2 user[] ->t "dry"
3 model[] "All is dry." = 9/0/0/0/2
skipped: part step-start: 1
"#
    );
}

#[test]
fn an_export_of_opencode_may_begin_with_what_the_product_said() {
    let export = r#"Exporting session: ses_1
{"info":{"id":"ses_1","directory":"/d","title":"t"},"messages":[
{"info":{"role":"user"},"parts":[{"type":"text","text":"Fill it."}]},
{"info":{"role":"assistant"},"parts":[{"type":"text","text":"Full."}]}]}"#;
    check_file(
        "export.json",
        export,
        "opencode",
        r#"0 user[typed_user] "Fill it."
1 model[] "Full."
skipped: line in front of the recording: 1
"#,
    );
}

#[test]
fn opencode_before_1_0_says_only_when_a_summary_was_done() {
    let message = |id: &str, info: &str, part: &str| {
        format!(
            r#"{{"info":{{"id":"{id}","sessionID":"s","time":{{"created":1,"completed":2}},{info}}},"parts":[{{"type":"text","text":"{part}"}}]}}"#
        )
    };
    let messages = [
        message("1", r#""role":"user""#, "Hi."),
        message("2", r#""role":"assistant""#, "Yo."),
        message("3", r#""role":"assistant","summary":true"#, "We greeted."),
        message("4", r#""role":"user""#, "On."),
    ];
    check(
        "opencode",
        &format!(
            r#"{{"info":{{"id":"s","directory":"/x","title":"t"}},"messages":[{}]}}"#,
            messages.join(",")
        ),
        r#"0 user[typed_user] "Hi."
1 model[] "Yo."
2 user[typed_user] "On."
compaction before 2: - 0: (model[compact_summary] "We greeted.")
skipped: call that wrote a summary: 1
"#,
    );
}

#[test]
fn gemini_saves_chats_as_the_contents_of_the_api() {
    let contents = r#"[{"role":"user","parts":[{"text":"This is the Gemini CLI. We are setting up."}]},
{"role":"model","parts":[{"text":"Look.","thought":true},{"functionCall":{"name":"read_file","args":{"p":1}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"read_file","response":{"output":"words"}}}]},
{"role":"model","parts":[{"text":"Read."}]},
{"role":"user","parts":[{"text":"Thanks."}]}]"#;
    let expected = r#"0 user[meta] "This is the Gemini CLI. We are setting up."
1 model[] thinking "Look.", read unnamed-call-52da00dc {"p":1}
2 user[] ->unnamed-call-52da00dc "words"
3 model[] "Read."
4 user[typed_user] "Thanks."
"#;
    check_file("checkpoint.json", contents, "gemini-cli", expected);
    let object = format!(r#"{{"history":{contents},"authType":"oauth"}}"#);
    let expected = format!("{expected}skipped: key `authType`: 1\n");
    check_file("checkpoint.json", &object, "gemini-cli", &expected);
    let odd = r#"[{"role":"user"},{"role":"user","parts":[{"text":"Hi."}]},{"role":"model","parts":[{"text":"Yo."}]}]"#;
    let of_odd =
        "0 user[typed_user] \"Hi.\"\n1 model[] \"Yo.\"\nskipped: user record without content: 1\n";
    check("gemini-cli", odd, of_odd);
    check("gemini-cli", &format!(r#"{{"history":{odd}}}"#), of_odd);
}

#[test]
fn gemini_masks_results_and_answers_its_own_snapshots() {
    let header = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z"}"#;
    let said = |id: &str, kind: &str, rest: &str| {
        format!(r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:01.000Z","type":"{kind}",{rest}}}"#)
    };
    let call = |output: &str| {
        let result = format!(r#"[{{"functionResponse":{{"response":{{"output":"{output}"}}}}}}]"#);
        let call = format!(r#"{{"id":"c","name":"read_file","args":{{}},"result":{result}}}"#);
        said("b", "gemini", &format!(r#""content":"","toolCalls":[{call}]"#))
    };
    let masked = call("<tool_output_masked>cut</tool_output_masked>");
    let lines = [
        header.to_owned(),
        said("a", "user", r#""content":"One.""#),
        call("long and whole"),
        said("c", "gemini", r#""content":"Read.""#),
        masked.clone(),
        said("d", "user", r#""content":"Two.""#),
        masked,
        said("s", "user", r#""content":"The summary:\n<state_snapshot>One.</state_snapshot>""#),
        said("k", "gemini", r#""content":"Got it. Thanks for the additional context!""#),
        said("e", "gemini", r#""content":"Done.""#),
    ];
    check(
        "gemini-cli",
        &(lines.join("\n") + "\n"),
        r#"0 user[typed_user] "One."
1 model[] read c {}
2 user[] ->c "long and whole"
3 model[] "Read."
4 user[typed_user] "Two."
5 model[] "Done."
compaction before 4: tool output masked 0: kept 0..2, edited 2, kept 3..4
compaction before 5: - 0: (user[compact_summary] "The summary:\n<state_snapshot>One.</state_snapshot>"), (model[synthetic] "Got it. Thanks for the additional context!")
skipped: header: 1
"#,
    );
}

#[test]
fn cline_leaves_out_what_it_showed_to_be_left_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let history = folder.path().join("api_conversation_history.json");
    let said = |role: &str, text: &str| {
        format!(r#"{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}"#)
    };
    let messages = [
        said("user", "<task>Wind.</task>"),
        said("assistant", "I look.\\n<read_file>\\n<path>a</path>\\n</read_file>"),
        r#"{"role":"user","content":[{"type":"text","text":"[read_file for 'a'] Result:"},{"type":"text","text":"gears"},{"type":"text","text":"<environment_details>x</environment_details>"}]}"#.to_owned(),
        said("assistant", "Wound."),
        said("user", "<feedback>More.</feedback>"),
        said("assistant", "More."),
    ];
    let shown = [
        r#"{"ts":1,"type":"say","say":"api_req_started","text":"{\"tokensIn\":9,\"tokensOut\":1}","conversationHistoryIndex":-1}"#,
        r#"{"ts":2,"type":"say","say":"api_req_started","text":"{\"tokensIn\":19,\"tokensOut\":2}","conversationHistoryIndex":1}"#,
        r#"{"ts":3,"type":"say","say":"api_req_started","text":"{\"tokensIn\":29,\"tokensOut\":3}","conversationHistoryIndex":3}"#,
        r#"{"ts":4,"type":"say","say":"text","conversationHistoryIndex":4,"conversationHistoryDeletedRange":[2,3]}"#,
        r#"{"ts":5,"type":"say","say":"text","conversationHistoryIndex":5,"conversationHistoryDeletedRange":[2,3]}"#,
    ];
    let write = |path: &std::path::Path, text: String| {
        std::fs::write(path, text).expect("the folder can be written to");
    };
    write(&history, format!("[{}]", messages.join(",")));
    write(&folder.path().join("ui_messages.json"), format!("[{}]", shown.join(",")));
    let expected = r#"0 user[typed_user] "<task>Wind.</task>"
1 model[] "I look.", read call-1 {"path":"a"} = 9/0/0/0/1
2 user[] ->call-1 "[read_file for 'a'] Result:"+"gears", "<environment_details>x</environment_details>"
3 model[] "Wound." = 19/0/0/0/2
4 user[typed_user] "<feedback>More.</feedback>"
5 model[] "More." = 29/0/0/0/3
compaction before 5: truncation 0: kept 0..2, kept 4..5
"#;
    // The file alone says as much as the folder.
    for path in [folder.path(), &*history] {
        let sessions = proctor_formats::load(path).expect("a good task");
        assert_eq!(outline(&sessions[0]), expected);
        round_trip(&sessions[0]);
    }
}

#[test]
fn cline_answers_tool_uses_in_texts() {
    let text = r#"[
{"role":"user","content":[{"type":"text","text":"<task>\nOil the hinge.\n</task>"},{"type":"text","text":"<environment_details>x</environment_details>"}]},
{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"read_file","input":{"path":"a"}},{"type":"tool_use","id":"t2","name":"list_files","input":{"path":"b"}},{"type":"tool_use","id":"t3","name":"read_file","input":{"path":"c"}}]},
{"role":"user","content":[{"type":"text","text":"[read_file for 'a'] Result:\nrust"},{"type":"text","text":"Tool [list_files] was not executed because a tool has already been used in this message."},{"type":"text","text":"Tool [read_file] was not executed because a tool has already been used in this message."},{"type":"text","text":"<environment_details>x</environment_details>"}]},
{"role":"assistant","content":[{"type":"tool_use","id":"t4","name":"execute_command","input":{"command":"oil"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t4","content":"oiled"},{"type":"text","text":"[execute_command for 'oil'] Result: see above"}]}]"#;
    let sessions = read("cline", text.as_bytes()).expect("a good task");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "<task>\nOil the hinge.\n</task>", "<environment_details>x</environment_details>"
1 model[] "I look.", read t1 {"path":"a"}, glob t2 {"path":"b"}, read t3 {"path":"c"}
2 user[] ->t1 "[read_file for 'a'] Result:\nrust", ->!t2 "Tool [list_files] was not executed because a tool has already been used in this message.", ->!t3 "Tool [read_file] was not executed because a tool has already been used in this message.", "<environment_details>x</environment_details>"
3 model[] shell t4 {"command":"oil"}
4 user[] ->t4 "oiled", "[execute_command for 'oil'] Result: see above"
"#
    );
    round_trip(&sessions[0]);
}
