//! Recordings of real agents that compacted by themselves: requests as their server got them, and
//! the agents' own files.

use std::fmt::Write as _;
use std::sync::Arc;

use proctor::bill::{Bill, Sizes};
use proctor::model::offline::Offline;
use proctor::replay::{Models, PreparedSession, Repetitions};
use proctor::session::{CompactedTo, ContentBlock, Message, Recorded, Role, Session, Tag, import};
use proctor::tokens::{CountedTexts, counter};
use proctor::units::Tokens;
use serde_json::{Value, json};

use super::outline::{calls_before_compactions, unpacked};
use super::{fixture, outline, read, round_trip};
use crate::support::run;

/// A request and its answer, as one line of a log of the responses API.
fn exchange(
    id: u64,
    request: &Value,
    tokens: &Value,
    answer: &str,
    call: Option<(&str, &Value)>,
) -> String {
    let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]});
    let call = call.map(|(name, arguments)| {
        json!({"type": "function_call", "call_id": format!("call_{id:04}"), "name": name, "arguments": arguments.to_string()})
    });
    let output: Vec<Value> = std::iter::once(said).chain(call).collect();
    let usage = json!({"input_tokens": tokens, "output_tokens": 10});
    let response = json!({"id": format!("resp_{id:04}"), "object": "response", "model": "gpt-scripted", "output": output, "usage": usage});
    json!({"request": request, "response": response}).to_string() + "\n"
}

/// The log of a run of Codex: what the server got, with the answers of its script.
fn log_of_codex(text: &str) -> String {
    let (mut calls, mut summaries) = (0, 0);
    let mut log = String::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let call = line["call"].as_array();
        let call = call.map(|call| (call[0].as_str().expect("a name"), &call[1]));
        let answer = if line["kind"] == "summary" {
            summaries += 1;
            format!(
                "SUMMARY-FIXED: The task is to read the files data/file_00.txt and on, one after the other, and report the port numbers. Read so far: see the list of commands. Next step: read the next file. The build number is 48213 and the owner is team-orchid. This is summary number {summaries}."
            )
        } else {
            calls += 1;
            match call {
                Some(_) => format!("I read file number {} next.", calls - 1),
                None => "done".to_owned(),
            }
        };
        let id = line["n"].as_u64().expect("a number");
        log.push_str(&exchange(id, &line["body"], &line["tokens"], &answer, call));
    }
    log
}

/// Short runs of `scripts/real-agents`: an agent's own file says what its requests say. Qwen Code
/// says an answer twice in its context when it goes on, which its requests show.
#[test]
fn files_of_real_agents_and_their_requests_say_the_same() {
    let told = |name: String| {
        let sessions = import::load(&fixture(&name)).expect("a good file");
        let session = sessions.into_iter().max_by_key(|it| it.calls().len());
        let session = session.expect("a session");
        assert!(session.source().unknown.is_empty(), "{name}: {:?}", session.source());
        round_trip(&session);
        (session.calls().len(), calls_before_compactions(&session))
    };
    for (product, end) in [
        ("codex", "jsonl"),
        ("pi", "jsonl"),
        ("opencode", "json"),
        ("qwen-code", "jsonl"),
        ("mini-swe-agent", "json"),
    ] {
        let own = told(format!("agents/{product}.own.{end}"));
        let mut sent = told(format!("agents/{product}.requests.jsonl"));
        println!("{product}: {own:?} {sent:?}");
        if product == "qwen-code" {
            sent.1.retain(|at| own.1.contains(at));
        }
        assert_eq!(own, sent, "{product}");
        assert_eq!(own.1.is_empty(), product == "mini-swe-agent", "{product}");
    }
}

#[test]
fn a_prompt_for_a_summary_in_the_middle_of_a_turn_is_left_out() {
    let user = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]});
    let call = json!({"type": "function_call", "call_id": "call_0001", "name": "shell", "arguments": "{}"});
    let result =
        json!({"type": "function_call_output", "call_id": "call_0001", "output": "a worn gear"});
    let summary = "The clock is late, because one of its gears is worn.";
    let tools = json!([{"type": "function", "name": "shell", "parameters": {}}]);
    let request = |tools: &Value, input: &[&Value]| json!({"model": "gpt-scripted", "instructions": "You mend clocks.", "tools": tools, "input": input});
    let first = user("Why is it late?");
    let after = user(&format!("So far: {summary}"));
    let log = [
        exchange(
            1,
            &request(&tools, &[&first]),
            &json!(100),
            "I look.",
            Some(("shell", &json!({}))),
        ),
        exchange(
            2,
            &request(&json!([]), &[&first, &said, &call, &result, &user("Sum up.")]),
            &json!(90),
            summary,
            None,
        ),
        exchange(3, &request(&tools, &[&first, &after]), &json!(60), "Mended.", None),
    ];
    let sessions = read("openai-responses", log.concat().as_bytes()).expect("a good log");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "Why is it late?"
1 model[] "I look.", shell call_0001 {} = 100/0/0/0/10
2 user[] ->call_0001 "a worn gear"
3 model[] "Mended." = 60/0/0/0/10
compaction before 3: - 100 = 90/0/0/0/10: (user[compact_summary] "Why is it late?", "So far: The clock is late, because one of its gears is worn.")
skipped: request for a summary: 1
"#
    );
    round_trip(&sessions[0]);
}

/// An item of a request: what somebody of that role said.
fn said(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

/// A log of requests: the key of the prompt cache, instructions, items and the answer of each.
fn log_of(requests: &[(Option<&str>, &str, Vec<Value>, &str)]) -> Vec<Session> {
    let lines = requests.iter().enumerate().map(|(at, (key, system, input, answer))| {
        let tools = if *system == "Sum up." { json!([]) } else { json!([{"type": "function", "name": "look", "parameters": {}}]) };
        let request = json!({"model": "gpt-scripted", "instructions": system, "tools": tools, "input": input, "prompt_cache_key": key});
        exchange(at as u64 + 1, &request, &json!(10), answer, None)
    });
    read("openai-responses", lines.collect::<String>().as_bytes()).expect("a good log")
}

#[track_caller]
fn check_one(sessions: &[Session], expected: &str) {
    let outlines: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(outlines, [expected]);
    round_trip(&sessions[0]);
}

#[test]
fn an_answer_that_the_agent_leaves_out_begins_no_session() {
    let (ask, again) = (said("user", "Mend it."), said("user", "Use a tool."));
    let (told, next) = (said("assistant", "A gear is worn."), said("user", "Go on."));
    let sessions = log_of(&[
        (None, "You mend clocks.", vec![ask.clone()], "Hm."),
        (None, "You mend clocks.", vec![ask.clone(), again.clone()], "A gear is worn."),
        (None, "You mend clocks.", vec![ask.clone(), again.clone(), told.clone(), next], "Mended."),
    ]);
    check_one(
        &sessions,
        r#"0 user[typed_user] "Mend it.", "Use a tool."
1 model[] "A gear is worn." = 10/0/0/0/10
2 user[typed_user] "Go on."
3 model[] "Mended." = 10/0/0/0/10
skipped: answer that the agent left out: 1
"#,
    );
    // One that asked for a tool is not left out: a request beside it is another's.
    let request = |input: Vec<Value>| json!({"model": "m", "instructions": "You mend clocks.", "input": input});
    let look =
        json!({"type": "function_call", "call_id": "call_0001", "name": "look", "arguments": "{}"});
    let found =
        json!({"type": "function_call_output", "call_id": "call_0001", "output": "a worn gear"});
    let log = [
        exchange(1, &request(vec![ask.clone()]), &json!(9), "I look.", Some(("look", &json!({})))),
        exchange(2, &request(vec![ask.clone(), again.clone()]), &json!(9), "Late clock.", None),
        exchange(
            3,
            &request(vec![ask.clone(), said("assistant", "I look."), look, found]),
            &json!(9),
            "A gear is worn.",
            None,
        ),
    ];
    let sessions = read("openai-responses", log.concat().as_bytes()).expect("a good log");
    let calls: Vec<usize> = sessions.iter().map(|it| it.calls().len()).collect();
    assert_eq!(calls, [2, 1]);
    // Another agent may be asked the same.
    let sessions = log_of(&[
        (None, "You mend clocks.", vec![ask.clone()], "A gear is worn."),
        (None, "You mend bells.", vec![ask, again], "It rings."),
    ]);
    assert_eq!(sessions.len(), 2);
}

#[test]
fn requests_for_summaries_belong_to_the_conversation_that_goes_on_from_them() {
    const ONE: &str = "The clock is late, because one of its gears is worn down.";
    const TWO: &str = "The clock has a new gear, and its spring is to be wound daily.";
    let main = "You mend clocks.";
    let asked = |prompt: &str| vec![said("user", prompt)];
    let after =
        |summary: &str| vec![said("user", &format!("So far: {summary}")), said("user", "Go on.")];
    let sessions = log_of(&[
        (None, main, asked("Mend it."), "A gear is worn."),
        (None, "Sum up.", asked("Mend it. A gear is worn."), ONE),
        (None, main, after(ONE), "I put a new gear in."),
        // The second request holds the first summary.
        (None, "Sum up.", asked(&format!("{ONE} I put a new gear in.")), TWO),
        (None, main, after(TWO), "It runs."),
    ]);
    check_one(
        &sessions,
        r#"0 user[typed_user] "Mend it."
1 model[] "A gear is worn." = 10/0/0/0/10
2 model[] "I put a new gear in." = 10/0/0/0/10
3 model[] "It runs." = 10/0/0/0/10
compaction before 2: - 10 = 10/0/0/0/10: (user[compact_summary] "So far: The clock is late, because one of its gears is worn down.", "Go on.")
compaction before 3: - 10 = 10/0/0/0/10: (user[compact_summary] "So far: The clock has a new gear, and its spring is to be wound daily.", "Go on.")
skipped: request for a summary: 2
"#,
    );
}

#[test]
fn a_key_of_the_prompt_cache_names_a_conversation_that_begins_otherwise() {
    let summary = "The clock is late, because one of its gears is worn down.";
    let (one, skills) = (said("user", "Why is it late?"), said("developer", "You can solder."));
    let context = |key| {
        log_of(&[
            (key, "You mend clocks.", vec![skills.clone(), one.clone()], "A gear is worn."),
            (
                key,
                "You mend clocks.",
                vec![one.clone(), skills.clone(), said("user", "Mend it."), said("user", summary)],
                summary,
            ),
        ])
    };
    assert_eq!(context(None).len(), 2);
    assert_eq!(context(Some("c")).len(), 1);
}

/// Codex's preset compacts where Codex did: with the two requests for summaries, these are the
/// requests 18 and 36.
#[test]
fn shared_requests_of_codex_are_its_calls_and_the_preset_compacts_where_it_did() {
    let Some(text) = unpacked("agents/codex-one-turn", "requests.jsonl.gz") else {
        return;
    };
    let sessions = read("openai-responses", log_of_codex(&text).as_bytes()).expect("a good log");
    let [session] = <[Session; 1]>::try_from(sessions).expect("one session");
    assert_eq!(session.calls().len(), 41);
    assert_eq!(calls_before_compactions(&session), [18, 35]);
    let texts = session.messages().iter().flat_map(|message| message.model_text());
    for text in texts {
        assert!(!text.contains("CONTEXT CHECKPOINT COMPACTION"), "{text}");
    }
    assert_eq!(fired(session), [18, 35]);
}

/// The calls before which preset `codex` compacts in Codex's window, sized as the session was billed.
fn fired(session: Session) -> Vec<usize> {
    let chars = counter("chars/4").expect("a counter");
    let counts = Arc::new(CountedTexts::new(chars));
    let bill = Bill::of(&session, &counts, Sizes::Billed, None);
    assert_eq!(bill.sizes().sizes, Sizes::Billed, "{:?}", bill.sizes());
    let prepared = PreparedSession::new(Arc::new(session), counts.clone(), Vec::new());
    let prepared = prepared.expect("searchable patterns").billed(Arc::new(bill));
    let models = Models {
        summariser: Arc::new(Offline::new(counts)),
        reader: None,
        judge: None,
        times: Repetitions::default(),
    };
    let record = run(&prepared, "codex", 40_000, &models).record;
    record.compactions.iter().map(|event| event.call).collect()
}

/// A message as the items of a rollout.
fn items(message: &Message) -> Vec<Value> {
    let role = match message.role() {
        Role::User => ("user", "input_text"),
        Role::Assistant => ("assistant", "output_text"),
    };
    let blocks = message.content().iter().zip(message.model_text());
    let items = blocks.map(|(block, text)| match block {
        ContentBlock::ToolUse(call) => json!({"type": "function_call", "call_id": &*call.id, "name": &*call.name, "arguments": call.input.as_str()}),
        ContentBlock::ToolResult(result) => json!({"type": "function_call_output", "call_id": &*result.tool_use_id, "output": &**text}),
        _ => json!({"type": "message", "role": role.0, "content": [{"type": role.1, "text": &**text}]}),
    });
    items.collect()
}

/// The rollout of a session that was stored in the native format by an importer that took answers
/// that are summaries for calls.
fn rollout_of(session: &Session) -> String {
    let mut text = String::new();
    // Equal lines of one time are copies.
    let mut at = 0;
    let mut add = |kind: &str, payload: Value| {
        at += 1;
        let time = format!("2026-11-22T16:38:{:02}.{:03}Z", at / 1_000, at % 1_000);
        let line = json!({"timestamp": time, "type": kind, "payload": payload});
        writeln!(text, "{line}").expect("strings take everything");
    };
    add("session_meta", json!({"base_instructions": {"text": session.system().map(|it| &**it)}}));
    let window = session.context_window().unwrap_or_default().0;
    add("event_msg", json!({"type": "task_started", "model_context_window": window}));
    let mut response = String::new();
    for (at, message) in session.messages().iter().enumerate() {
        for compaction in session.compactions().iter().filter(|one| one.at == at) {
            let CompactedTo::Replaced(pieces) = &compaction.after else {
                continue;
            };
            let history: Vec<Value> = pieces
                .iter()
                .flat_map(|piece| match piece {
                    Recorded::Written(message) => items(message),
                    Recorded::Kept(_) | Recorded::Edited { .. } => Vec::new(),
                })
                .collect();
            add(
                "compacted",
                json!({"message": "", "replacement_history": history, "compaction_response_id": response}),
            );
        }
        for item in items(message) {
            add("response_item", item);
        }
        if let Some(usage) = message.details.usage {
            response = format!("resp_{at:04}");
            let usage = json!({"input_tokens": usage.prompt().0, "cached_input_tokens": usage.cache_read.0, "output_tokens": usage.output.0});
            add("token_usage_record", json!({"response_id": response, "usage": usage}));
        }
    }
    text
}

#[test]
fn shared_rollouts_of_codex_hold_its_calls_and_its_window_and_the_preset_compacts_where_it_did() {
    for (folder, calls, places) in
        [("agents/codex-one-turn", 41, [18, 35]), ("agents/codex-two-turns", 45, [17, 34])]
    {
        let Some(stored) = unpacked(folder, "rollout.jsonl.gz") else {
            return;
        };
        let stored = read("native", stored.as_bytes()).expect("a good file");
        assert_eq!(stored[0].calls().len(), calls + 2, "{folder}: as it was stored");
        let sessions = read("codex", rollout_of(&stored[0]).as_bytes()).expect("a good rollout");
        let [session] = &sessions[..] else {
            panic!("{folder}: {} sessions", sessions.len());
        };
        assert_eq!(session.context_window(), Some(Tokens(40_000)), "{folder}");
        assert_eq!(session.calls().len(), calls, "{folder}");
        assert_eq!(calls_before_compactions(session), places, "{folder}");
        // Its tools are in no rollout: the head is known by the bill.
        let fired = fired(session.clone());
        assert_eq!(fired, places, "{folder}");
        assert!(!session.messages().iter().any(|it| it.has_tag(Tag::Orphan)), "{folder}");
    }
}
