//! Logs of requests, items of the responses API, and results of the tau benchmarks.

use proctor_formats::{self as import, ImportError};
use proctor_sessions::units::{Timestamp, Tokens};
use proctor_sessions::{CompactedTo, Session, Tag};
use serde_json::json;

use super::{catalogue, check_fixture as check, fixture, outline, read, round_trip};
use crate::shared;

#[test]
fn the_oldest_mini_swe_agent_wrote_its_messages_alone() {
    let sessions = check(
        "mini-swe-agent/older.traj.json",
        "mini-swe-agent",
        &[r#"0 user[typed_user] "The door squeaks."
1 model[] "Look.", shell action-1 {"command":"ls"}
2 user[] ->action-1 "<returncode>0</returncode>\n<output>\nhinge\n</output>"
3 model[] shell action-2 {"command":"echo DONE"}
"#],
    );
    assert_eq!(sessions[0].system(), Some(&"You oil doors.".into()));
}

#[test]
fn mini_swe_agent_keeps_what_the_api_answered() {
    let sessions = check(
        "mini-swe-agent/tools.traj.json",
        "mini-swe-agent",
        &[r#"0 user[typed_user] "The door squeaks."
1 model[] shell d1 {"command": "ls"}, shell d2 {"command": "cat hinge"} = 500/0/0/0/30
2 user[meta] ->d1 "hinge", ->d2 "rust", "One action at a time."
3 model[] "Oiled.", shell d3 {"command": "oil hinge"} = 140/0/0/500/12
skipped: exit message: 1
skipped: info: 1
"#],
    );
    assert_eq!(sessions[0].model(), Some("maker/some-model"));
    let times: Vec<Option<Timestamp>> =
        sessions[0].messages().iter().map(|message| message.details.timestamp).collect();
    let at = |milliseconds| Some(Timestamp(milliseconds));
    assert_eq!(times, [None, at(1_772_355_600_500), at(1_772_355_602_000), at(1_772_355_605_000)]);
}

#[test]
fn mini_swe_agent_keeps_whole_responses() {
    check(
        "mini-swe-agent/items.traj.json",
        "mini-swe-agent",
        &[r#"0 user[typed_user] "The door squeaks."
1 model[] thinking "Oil it.", shell d1 {"command": "oil"} = 200/0/0/100/9
2 user[] ->d1 "oiled"
3 model[] "Quiet now." = 330/0/0/0/4
skipped: info: 1
"#],
    );
}

#[test]
fn mini_swe_agent_says_itself_which_action_it_read_and_items_keep_the_prompt() {
    let text = r#"{"info":{"mini_version":"2.4.6"},"messages":[
{"role":"system","content":"You wind clocks."},
{"role":"user","content":"It stopped."},
{"role":"assistant","content":"I wind it.\n<mswea_bash_command>wind</mswea_bash_command>","extra":{"actions":[{"command":"wind"}],"response":{"id":"r1","usage":{"prompt_tokens":30,"completion_tokens":4}}}},
{"role":"user","content":"<returncode>0</returncode>","extra":{"returncode":0}},
{"role":"user","content":"Expected exactly 1 action, found 0.","extra":{"interrupt_type":"FormatError","response":{"id":"r2","usage":{"prompt_tokens":50,"completion_tokens":4}}}},
{"role":"assistant","content":"Look:\n```bash\na\n```\n```bash\nb\n```","extra":{"actions":[]}}],
"trajectory_format":"mini-swe-agent-1.1"}"#;
    let sessions = read("mini-swe-agent", text.as_bytes()).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "It stopped."
1 model[] "I wind it.", shell action-1 {"command":"wind"} = 30/0/0/0/4
2 user[meta] ->action-1 "<returncode>0</returncode>", "Expected exactly 1 action, found 0."
3 model[] "Look:\n```bash\na\n```\n```bash\nb\n```"
skipped: answer that the product could not read: 1
skipped: info: 1
"#
    );
    let items = r#"{"info":{},"messages":[
{"type":"message","role":"system","content":[{"type":"input_text","text":"You wind clocks."}]},
{"type":"message","role":"user","content":[{"type":"input_text","text":"It stopped."}]},
{"object":"response","output":[{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"}],"extra":{"timestamp":1772355601.5}},
{"type":"function_call_output","call_id":"c1","output":"wound","extra":{"timestamp":1772355602.5}},
{"object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It goes."}]}],"extra":{}},
{"type":"message","role":"user","content":[{"type":"input_text","text":"No tool calls found."}],"extra":{"interrupt_type":"FormatError"}}],
"trajectory_format":"mini-swe-agent-1.1"}"#;
    let sessions = read("mini-swe-agent", items.as_bytes()).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "It stopped."
1 model[] shell c1 {}
2 user[] ->c1 "wound"
3 model[] "It goes."
4 user[meta] "No tool calls found."
skipped: info: 1
"#
    );
    assert_eq!(sessions[0].system(), Some(&"You wind clocks.".into()));
    let time = sessions[0].message(2).details.timestamp;
    assert_eq!(time, Some(Timestamp(1_772_355_602_500)));
}

#[test]
fn newer_items_and_counters_of_the_responses_api_are_known() {
    let text = r#"{"request":{"model":"m","instructions":"x","input":[{"role":"user","content":"Count."},
{"type":"mcp_approval_request","id":"a1","name":"n","arguments":"{}","server_label":"s"},
{"type":"mcp_approval_response","approval_request_id":"a1","approve":true},
{"type":"compaction_trigger"}]},
"response":{"id":"r","object":"response","output":[{"type":"program","id":"p1","code":"1+1"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Two."}]}],
"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":30},"output_tokens":5}}}"#;
    let sessions = read("openai-responses", text.as_bytes()).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "Count."
1 model[] <mcp_approval_request>
2 user[typed_user] <mcp_approval_response>
3 model[] <program>, "Two." = 10/30/0/60/5
skipped: compaction_trigger: 1
"#
    );
    round_trip(&sessions[0]);
}

#[test]
fn a_log_of_the_responses_api_is_read_with_its_response() {
    let sessions = check(
        "openai-responses/log.json",
        "openai-responses",
        &[r#"0 user[typed_user] "Which star is that?", image "https://example.org/star.png"
1 model[] thinking "Read the chart.", read s1 {"path": "north.txt"}, shell s2 "ls charts"
2 user[] ->s1 "Vega", ->s2 "north.txt"
3 model[] "Vega."
4 user[typed_user] "And that?"
5 model[] <web_search_call>, "Deneb." = 300/0/0/600/14
compaction before 3: - 0: encrypted
skipped: compaction item: 1
skipped: key `store`: 1
"#],
    );
    let session = &sessions[0];
    let system = session.system().map(|text| &**text);
    assert_eq!(system, Some("You name stars.\nBe brief."));
    assert_eq!(session.model(), Some("some-model"));
    assert_eq!(&*session.tools()[0].name, "read_file");
    let last = session.messages().last().expect("a message");
    assert_eq!(last.details.timestamp, Some(Timestamp(1_772_355_600_500)));
    assert_eq!(last.details.api_call.as_ref().map(|call| &*call.0), Some("resp_1"));
}

#[test]
fn a_response_that_follows_another_goes_on_with_its_conversation() {
    check(
        "openai-responses/chain.jsonl",
        "openai-responses",
        &[r#"0 user[typed_user] "Which star is that?"
1 model[] other s1 {} = 20/0/0/0/5
2 user[] ->s1 "bright"
3 model[] "Vega." = 40/0/0/0/2
"#],
    );
    // So do those of one conversation that the provider keeps.
    let log = include_str!("../fixtures/openai-responses/chain.jsonl");
    let log =
        log.replace("\"previous_response_id\": \"resp_1\"", "\"conversation\": {\"id\": \"c\"}");
    let log = log.replacen("\"model\": \"some-model\",", "\"conversation\": \"c\",", 1);
    let sessions = read("openai-responses", log.as_bytes()).expect("a good file");
    let counts: Vec<usize> = sessions.iter().map(|it| it.messages().len()).collect();
    assert_eq!(counts, [4]);
    // Of other APIs each request holds its whole history, whatever the log calls its conversation.
    let call = |id: &str, asked: &str, answer: &str| {
        format!(
            r#"{{"conversation":"c","messages":[{asked}],"response":{{"id":"{id}","choices":[{{"message":{{"role":"assistant","content":"{answer}"}}}}]}}}}"#
        )
    };
    let first = r#"{"role":"user","content":"a"}"#;
    let second = r#"{"role":"assistant","content":"b"},{"role":"user","content":"c"}"#;
    let log = [call("r0", first, "b"), call("r1", &format!("{first},{second}"), "d")].join("\n");
    let sessions = read("openai-chat", log.as_bytes()).expect("a good file");
    let counts: Vec<usize> = sessions.iter().map(|it| it.messages().len()).collect();
    assert_eq!(counts, [4]);
}

#[test]
fn items_are_told_in_every_layout() {
    let user = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}"#;
    let model =
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}"#;
    let request = format!(r#"{{"model":"m","input":[{user},{model}]}}"#);
    for text in [
        format!("[{user},{model}]"),
        format!("{user}\n{model}\n"),
        format!("[{request}]"),
        format!(r#"{{"request":{request}}}"#),
        request.clone(),
    ] {
        let importers = import::IMPORTERS.iter();
        let claimed = importers.filter(|importer| importer.detect(text.as_bytes()));
        let claimed: Vec<&str> = claimed.map(proctor_formats::Importer::format).collect();
        assert_eq!(claimed, ["openai-responses"], "{text}");
        let sessions = read("openai-responses", text.as_bytes()).expect("a good file");
        let lines: Vec<String> = sessions[0].messages().iter().map(|it| super::line(it)).collect();
        assert_eq!(lines, [r#"user[typed_user] "a""#, r#"model[] "b""#], "{text}");
    }
}

#[test]
fn each_run_of_tau_bench_is_a_session() {
    let sessions = check(
        "tau-bench/results.json",
        "tau-bench",
        &[
            r#"0 user[typed_user] "I want a book on stars."
1 model[] other b1 {"title": "Stars"}
2 user[] ->b1 "on loan"
3 model[] "It is on loan."
4 user[typed_user] "Thanks."
skipped: key `info`: 1
skipped: key `reward`: 1
skipped: key `task_id`: 1
skipped: key `trial`: 1
"#,
            r#"0 user[typed_user] "Is Stars in?"
1 model[] other b1 {"title": "Stars"}
2 user[] ->b1 "on loan"
3 model[] "It is on loan."
4 user[typed_user] "Thanks."
skipped: key `info`: 1
skipped: key `reward`: 1
skipped: key `task_id`: 1
skipped: key `trial`: 1
"#,
        ],
    );
    assert!(sessions[1].id().ends_with("-2"), "{}", sessions[1].id());
}

#[test]
fn tau2_leaves_out_what_the_agent_does_not_see() {
    let sessions = check(
        "tau2/results.json",
        "tau2",
        &[r#"0 model[synthetic] "Hello, how can I help?"
1 user[typed_user] "My phone is silent."
2 model[] other p1 {"number": "555"} = 900/0/0/0/20
3 user[] ->p1 "{\"active\": false}"
4 model[] "Please toggle the ringer." = 950/0/0/0/8
5 user[typed_user] "It rings."
6 model[] other p2 {}, other p3 {} = 990/0/0/0/9
7 user[] ->p2 "closed", ->!p3 "no log"
skipped: call of the user's: 1
skipped: result of the user's: 1
skipped: simulation key `duration`: 1
skipped: simulation key `end_time`: 1
skipped: simulation key `id`: 1
skipped: simulation key `reward_info`: 1
skipped: simulation key `start_time`: 1
skipped: simulation key `task_id`: 1
skipped: simulation key `termination_reason`: 1
skipped: simulation key `timestamp`: 1
skipped: simulation key `trial`: 1
skipped: voice run: 1
"#],
    );
    assert_eq!(sessions[0].system(), Some(&"Be kind.".into()));
    assert_eq!(sessions[0].model(), Some("some-model"));
    assert_eq!(sessions[0].calls().len(), 3);
    let error = import::load(&fixture("tau2/voice.json")).expect_err("speech");
    assert!(matches!(error, ImportError::NoMessages { .. }), "{error}");
    assert!(error.to_string().ends_with("it holds ticks of speech, and no messages"));
    assert!(error.hint().is_some());
}

#[test]
fn logged_requests_are_joined_to_the_sessions_they_belong_to() {
    let sessions = check(
        "request-log/calls.jsonl",
        "openai-chat",
        &[
            r#"0 user[typed_user] "How many sheep?"
1 model[] "I count. ", other c1 {"field": 1} = 100/0/0/0/10
2 user[] ->c1 "seven sheep in the east field"
3 model[] other c2 {"field": 1} = 140/0/0/0/10
4 user[] ->c2 "two more"
5 model[] "Nine so far." = 120/0/0/0/5
6 model[] "All nine are asleep." = 60/0/0/0/6
compaction before 4: - 140: kept 0..2, edited 2, kept 3..4
compaction before 6: - 120 = 150/0/0/0/20: (user[compact_summary] "So far: Seven sheep in the east field and two more were counted: nine.", "Go on.")
skipped: request for a summary: 1
"#,
            r#"0 user[typed_user] "Name this talk."
1 model[] "Sheep" = 20/0/0/0/2
"#,
        ],
    );
    assert_eq!(sessions[0].calls().len(), 4);
    assert!(sessions[1].id().ends_with("-2"), "{}", sessions[1].id());
}

#[test]
fn a_request_that_was_logged_twice_was_sent_once() {
    let line = r#"{"timestamp":"2026-03-01T08:00:00Z","model":"m","messages":[{"role":"user","content":"Hi."}],"response":{"id":"r","choices":[{"message":{"role":"assistant","content":"Yo."}}]}}"#;
    let sessions = read("openai-chat", format!("{line}\n{line}\n").as_bytes()).expect("a log");
    assert_eq!(sessions[0].source().warnings["a record stands in the file twice"], 1);
}

#[test]
fn a_request_that_failed_is_no_session_of_its_own() {
    let request = r#""messages":[{"role":"user","content":"How many sheep?"}]"#;
    let answer = r#"{"choices":[{"message":{"role":"assistant","content":"Seven."}}]}"#;
    let failed = format!(r#"{{{request},"response":{{"error":{{"code":529}}}}}}"#);
    let good = format!(r#"{{{request},"response":{answer}}}"#);
    let empty = good.replace("sheep", "goats").replace("Seven.", "");
    // It is asked again in the same message.
    let parts = r#"[{"type":"text","text":"How many goats?"},{"type":"text","text":"Go on."}]"#;
    let other = good.replace(r#""How many sheep?""#, parts);
    let text = [failed, good, empty, other].join("\n");
    let sessions = read("openai-chat", text.as_bytes()).expect("a good file");
    let outlines: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(
        outlines,
        [
            "0 user[typed_user] \"How many sheep?\"\n1 model[] \"Seven.\"\n\
             skipped: request without an answer: 1\n",
            "0 user[typed_user] \"How many goats?\", \"Go on.\"\n1 model[] \"Seven.\"\n\
             skipped: request without an answer: 1\n",
        ]
    );
}

#[test]
fn a_folder_of_logged_requests_is_in_the_order_of_their_times() {
    let sessions = check(
        "request-log/folder",
        "openai-chat",
        &[r#"0 user[typed_user] "How many sheep?"
1 model[] "I count. ", other c1 {"field": 1} = 100/0/0/0/10
2 user[] ->c1 "seven sheep in the east field"
3 model[] other c2 {"field": 1} = 140/0/0/0/10
"#],
    );
    assert!(sessions[0].id().starts_with("folder-"), "{}", sessions[0].id());
}

#[test]
fn what_a_proxy_logs_around_a_request_is_left_out() {
    check(
        "request-log/anthropic.jsonl",
        "anthropic",
        &[r#"0 user[typed_user] "How many sheep?"
1 model[] thinking "Count.", other c1 {} = 10/0/0/5/3
2 user[] ->c1 "seven"
3 model[] "Seven." = 10/0/0/5/3
skipped: key `max_tokens`: 2
warning: a request was sent again; its first answer stands: 1
"#],
    );
}

fn counted(sessions: &[Session]) -> (usize, usize, usize) {
    let mut counts = (0, 0, 0);
    for message in sessions.iter().flat_map(Session::messages) {
        counts.0 += message.tool_uses().count();
        counts.1 += message.tool_results().count();
        counts.2 += usize::from(message.has_tag(Tag::Orphan));
    }
    counts
}

#[test]
fn shared_results_of_tau_bench_are_read_whole() {
    let Some(folder) = shared::folder("sessions/tau-bench") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("../CATALOG.md")).expect("the catalogue");
    for (file, calls, _) in catalogue("tau-bench", &text) {
        let sessions = match import::load(&folder.join(&file)) {
            Ok(sessions) => sessions,
            // Texts for prompts are no recordings.
            Err(ImportError::UnknownFormat { .. }) => {
                assert_eq!(calls, 0, "{file}");
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(sessions.len(), 40, "{file}");
        let (uses, results, orphans) = counted(&sessions);
        println!("{file}: {uses} calls, {results} results, {orphans} orphans");
        assert_eq!((uses, orphans), (calls, 0), "{file}");
        assert_eq!(results, uses, "{file}");
        for session in &sessions {
            assert!(session.source().unknown.is_empty());
            round_trip(session);
        }
    }
}

#[test]
fn shared_voice_runs_say_that_they_cannot_be_read() {
    let Some(folder) = shared::folder("sessions/tau2-bench") else {
        return;
    };
    for path in shared::files(&folder) {
        let error = import::load(&path).expect_err("speech");
        assert!(matches!(error, ImportError::NoMessages { .. }), "{error}");
    }
}

#[test]
fn shared_mini_swe_agent_runs_are_read_whole() {
    let Some(folder) = shared::folder("sessions/mini-swe-agent") else {
        return;
    };
    for path in shared::files(&folder) {
        let sessions = import::load(&path).expect("a good file");
        assert_eq!(sessions[0].source().format, "mini-swe-agent");
        assert_eq!(sessions[0].calls().len(), 10);
        let messages = sessions[0].messages();
        let uses: usize = messages.iter().map(|one| one.tool_uses().count()).sum();
        let results: usize = messages.iter().map(|one| one.tool_results().count()).sum();
        assert!(uses == 10 && results >= 9, "{uses} uses, {results} results");
        assert!(sessions[0].source().unknown.is_empty());
        round_trip(&sessions[0]);
    }
}

#[test]
fn shared_logs_of_requests_are_one_session() {
    let Some(folder) = shared::folder("sessions/openai-chat") else {
        return;
    };
    let copies = tempfile::tempdir().expect("a temporary folder");
    for path in shared::files(&folder) {
        let name = path.file_name().expect("a name");
        if path.extension().is_some_and(|extension| extension == "json") {
            std::fs::copy(&path, copies.path().join(name)).expect("copied");
        }
    }
    let sessions = import::load(copies.path()).expect("logs");
    let [session] = &sessions[..] else {
        panic!("{} sessions", sessions.len());
    };
    println!("{:?}", session.source());
    let messages = session.messages();
    let billed: Vec<Tokens> =
        messages.iter().filter_map(|message| Some(message.details.usage?.prompt())).collect();
    // One bill per logged request; the calls before the first log are without one.
    assert_eq!(billed.len(), 3);
    assert!(billed.is_sorted());
    assert!(session.compactions().is_empty());
    assert!(!session.compactions().iter().any(|it| it.after == CompactedTo::Missing));
    round_trip(session);
}

#[test]
fn a_log_of_gemini_is_one_session_however_its_client_keeps_answers() {
    let sessions = check(
        "gemini/log.jsonl",
        "gemini",
        &[r#"0 user[typed_user] "The clock is slow. Why?"
1 model[] thinking "Read first.", "I will look at both files of the clock.", read unnamed-call-6910fa92 {"path": "clock.rs"}, read unnamed-call-d7c7bbe9 {"path": "spring.rs"} = 120/0/0/0/49
2 user[] ->unnamed-call-6910fa92 "fn tick() {}", ->!unnamed-call-d7c7bbe9 "no such file"
3 model[] "`tick` does nothing. Shall I fill it in?" = 100/0/0/100/12
4 user[typed_user] "Yes, please."
5 model[] read unnamed-call-58c66fc6 {"path": "hand.rs"} = 30/0/0/190/8
6 user[] ->unnamed-call-58c66fc6 "fn tick() {}"
7 model[] "Done." = 50/0/0/200/2
8 user[typed_user] "Thanks."
9 model[] "Any time." = 130/0/0/0/3
compaction before 8: - 250: (user[typed_user] "<state_snapshot>The clock is slow: `tick` in clock.rs is empty, and is to be filled in.</state_snapshot>"), (model[] "Got it."), kept 4..8
skipped: key `generationConfig`: 5
"#],
    );
    let session = &sessions[0];
    assert_eq!(session.system(), Some(&"You mend clocks.".into()));
    assert_eq!(session.model(), Some("gemini-2.5-pro"));
    let tools = session.tools().iter().map(|tool| tool.name.to_string());
    assert_eq!(tools.collect::<Vec<_>>(), ["read_file", "googleSearch"]);
    // The fifth request begins with a summary and keeps the newest three messages.
    let [compaction] = session.compactions() else { panic!("{:?}", session.compactions()) };
    assert_eq!(compaction.at, 8);
}

/// A question in the conversation `c`, and its answer.
fn asked_under(system: &str, answer: &str) -> serde_json::Value {
    let system = json!({"role": "system", "content": system});
    let asked = json!({"role": "user", "content": "Which star is that?"});
    let asked = [system, asked].into_iter().filter(|one| one["content"] != "");
    json!({
        "session_id": "c",
        "messages": asked.collect::<Vec<_>>(),
        "response": {
            "choices": [{"message": {"role": "assistant", "content": answer}}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 5},
        },
    })
}

#[test]
fn the_same_words_under_another_system_prompt_are_another_request() {
    let title = asked_under("Name the conversation in three words.", "A bright star");
    for system in ["", "You know all the stars of the north."] {
        let own = asked_under(system, "Vega.");
        for log in [[&own, &title], [&title, &own]] {
            let log = log.map(|call| format!("{call}\n")).concat();
            let sessions = read("openai-chat", log.as_bytes()).expect("a good file");
            let bills = sessions.iter().flat_map(Session::messages);
            let bills = bills.filter_map(|message| message.details.usage);
            assert_eq!(bills.map(|usage| usage.output.0).sum::<u64>(), 10, "{log}");
            assert_eq!(sessions.len(), 2, "{log}");
        }
    }
}
