//! Files of agent libraries, of harnesses, and of smaller agents.

use proctor_formats as import;
use proctor_sessions::units::Tokens;
use proptest::prelude::*;
use serde_json::Value;

use super::{check_fixture as check, fixture, outline, read, round_trip};
use crate::shared;

#[test]
fn dumps_of_langchain_count_each_call_once() {
    let sessions = check(
        "langchain/dumped.json",
        "langchain",
        &[r#"0 user[typed_user] "How heavy is this?"
1 model[] thinking "Two scales.", "I weigh it.", other w1 {"scale":1}, other w2 {"scale":2} = 250/100/50/600/30
2 user[] ->w1 "3 kg", ->!w2 "no such scale"
3 model[] "Three." = 100/0/0/1000/3
4 user[typed_user] "And this?", image {"url":"https://example.org/stone.png"}
compaction before 4: - 0: (user[compact_summary] "So far: the stone weighs three.")
skipped: call repeated in the content: 1
"#],
    );
    assert_eq!(sessions[0].system(), Some(&"You weigh stones.".into()));
    assert_eq!(sessions[0].model(), Some("some-model"));
}

#[test]
fn dicts_of_langchain_are_read_in_every_layout() {
    check(
        "langchain/messages_to_dict.json",
        "langchain",
        &[r#"0 user[typed_user] "How heavy is this?"
1 model[] other w1 {}
2 user[] ->w1 "3 kg"
3 model[] "Three."
"#],
    );
    let text = std::fs::read(fixture("langchain/messages_to_dict.json")).expect("readable");
    let state: Value = serde_json::from_slice(&text).expect("JSON");
    let messages = state["messages"].as_array().expect("a list");
    let flat = messages.iter().map(|message| {
        let mut data = message["data"].clone();
        data["type"] = message["type"].clone();
        data
    });
    let flat: Vec<Value> = flat.collect();
    let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
    for text in [
        state["messages"].to_string(),
        serde_json::json!({"values": state}).to_string(),
        serde_json::json!([messages]).to_string(),
        Value::from(flat).to_string(),
        lines.join("\n"),
    ] {
        let first = import::IMPORTERS.iter().find(|it| it.detect(text.as_bytes()));
        assert_eq!(first.map(proctor_formats::Importer::format), Some("langchain"), "{text}");
        let sessions = read("langchain", text.as_bytes()).expect("a good file");
        assert_eq!(sessions[0].messages().len(), 4, "{text}");
    }
}

#[test]
fn the_pieces_of_an_answer_of_iflow_are_one_call() {
    check(
        "iflow/session.jsonl",
        "iflow",
        &[r#"0 user[typed_user] "Which pot boils?"
1 model[] "I look.", read p1 {"absolute_path": "/a"}, read p2 {"absolute_path": "/b"}
2 user[] ->p1 "boils", ->!p2 "no such pot"
3 model[] "The first." = 90/0/0/0/4
skipped: tool use written again: 2
"#],
    );
}

#[test]
fn a_trajectory_of_harbor_is_read_with_its_metrics_and_sub_agents() {
    let sessions = check(
        "atif/trajectory.json",
        "atif",
        &[
            r#"0 user[typed_user] "Which lamp is out?"
1 model[] thinking "Two towers.", "I look at both.", shell l1 {"keystrokes":"cat one\n"}, shell l2 {"keystrokes":"cat two\n"} = 200/100/0/600/40
2 user[meta] ->l1 "lit\n", ->l2 "dark\n", "The wind is rising."
3 model[] shell l3 {"keystrokes":"light two\n"} = 990/0/0/0/12
4 user[meta] ->l3 , "Context was summed up."
5 model[] "Tower two was out." = 300/0/0/0/6
6 user[meta] <of critic>
unknown: step of critic: 1
"#,
            r#"0 user[typed_user] "Sum up."
1 model[] "Tower two was dark."
"#,
        ],
    );
    assert_eq!(sessions[0].system(), Some(&"You keep lamps.".into()));
    assert_eq!(sessions[0].tools().len(), 1);
}

#[test]
fn a_context_of_kimi_is_read_without_the_records_beside_its_messages() {
    let sessions = check(
        "kimi-cli/context.jsonl",
        "kimi-cli",
        &[r#"0 user[typed_user] "Which hive is empty?"
1 model[] thinking "Count them.", "I count.", shell h1 {"command":"ls hives"}
2 user[] ->h1 "one two"
3 model[] "Hive three."
skipped: _checkpoint: 2
skipped: _usage: 2
"#],
    );
    assert_eq!(sessions[0].system(), Some(&"You tend bees.".into()));
}

#[test]
fn a_log_of_kimi_is_read_with_its_bill_and_its_sub_agents() {
    let expected = [
        r#"0 user[typed_user] "Which hive is empty?"
1 model[] thinking "Count them.", "I count.", shell Shell:0 {"command":"ls hives"}, agent Task:1 {"prompt":"Look for a queen."} = 300/0/0/560/40
2 user[] ->Shell:0 "<system>Command done.</system>"+"one two\n", ->!Task:1 "<system>ERROR: No answer in time.</system>"
3 user[typed_user] "Go on."
4 model[] "Hive three." = 400/0/0/0/4
compaction before 3: - 900: missing
skipped: CompactionBegin: 1
skipped: TurnEnd: 2
skipped: command of the user's: 1
skipped: metadata: 1
skipped: part of an interrupted step: 1
"#,
        r#"0 user[typed_user sidechain] "Look for a queen."
1 model[sidechain] "No queen." = 100/0/0/0/3
"#,
    ];
    let sessions = check("kimi-cli/wire.jsonl", "kimi-cli", &expected);
    assert_eq!(sessions[0].system(), None);
    // The folder is the same session, with the system prompt of its context.
    let sessions = check("kimi-cli/session", "kimi-cli", &expected);
    assert_eq!(sessions[0].system(), Some(&"You tend bees.".into()));
}

#[test]
fn a_journal_of_kimi_code_is_read_with_its_compaction_and_its_sub_agents() {
    let main = r#"0 user[typed_user meta] "Which bed is dry?", "<system-reminder>Water is off.</system-reminder>"
1 model[] thinking "Feel both.", "I look.", shell b1 {"command": "feel beds"}, agent b2 {"prompt": "Look at the well."} = 300/60/0/500/40
2 user[] ->b1 "one wet\ntwo dry"+"2 lines", ->!b2 "No well."
3 model[] "Bed two." = 100/0/0/900/4
4 user[typed_user] "Water it."
5 model[] "Watered." = 90/0/0/0/3
compaction before 5: auto 1004 = 9/9/0/9/9: (user[typed_user] "Which bed is dry?"), (user[typed_user] "Water it."), (user[compact_summary] "Earlier work:\nBed two is dry.")
skipped: config.update: 1
skipped: full_compaction.begin: 1
skipped: full_compaction.complete: 1
skipped: llm.request: 4
skipped: llm.tools_snapshot: 1
skipped: metadata: 1
skipped: turn.ended: 1
skipped: turn.prompt: 1
skipped: usage.record: 3
warning: abandoned branch: a record the user went back from is left out: 4
"#;
    let sessions = check("kimi-code/wire.jsonl", "kimi-code", &[main]);
    assert_eq!(sessions[0].system(), Some(&"You keep a garden.".into()));
    assert_eq!((sessions[0].tools().len(), sessions[0].model()), (1, Some("k3")));
    let side = r#"0 user[typed_user sidechain] "Look at the well."
1 model[sidechain] "No well." = 20/0/0/0/2
skipped: metadata: 1
"#;
    check("kimi-code/session", "kimi-code", &[main, side]);
}

#[test]
fn a_session_of_claude_code_in_the_cloud_is_one_of_claude_code() {
    let sessions = check(
        "claude-code-web/session.json",
        "claude-code",
        &[r#"0 user[typed_user] "Which bell is cracked?"
1 model[] shell t1 {"command": "ring"} = 5/9/0/40/7
2 user[] ->t1 "clonk"
3 model[] "The small one."
skipped: key `id`: 1
skipped: key `title`: 1
"#],
    );
    assert!(sessions[0].id().starts_with("session-"));
}

#[test]
fn a_thread_of_amp_without_a_version_is_billed_by_its_ledger() {
    check(
        "amp/ledger.json",
        "amp",
        &[r#"0 user[typed_user] "Which kiln is warm?"
1 model[] shell toolu_k3 {"cmd": "cat one"} = 12/0/0/0/8
2 user[] ->toolu_k3 "1240"
3 model[] "One."
skipped: key `id`: 1
warning: a usage cannot be read: 1
"#],
    );
}

#[test]
fn a_product_that_is_not_read_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    for (text, product) in [
        (
            r#"{"step_index":0,"source":"USER","type":"user","created_at":"2026","content":"a"}
{"step_index":1,"source":"MODEL","type":"assistant","created_at":"2026","content":"b"}"#,
            "Antigravity",
        ),
        (
            r#"[{"ts":1,"type":"say","say":"text","text":"a"}]"#,
            "what Cline, Roo Code or Kilo Code shows",
        ),
        (
            r#"{"v":1,"agent":"claude-code","cli_version":"0.8","type":"user","ts":"2026","content":[{"text":"a"}]}
{"v":1,"agent":"claude-code","cli_version":"0.8","type":"assistant","ts":"2026","content":[{"type":"text","text":"b"}]}"#,
            "Entire, in short form",
        ),
        (r#"{"conversation_id":"a","history":[{"user":{},"assistant":{}}]}"#, "Kiro"),
        (
            r#"{"schemaVersion":"3","root":{"id":"a"},"messages":[{"id":"b","isActive":true,"lmMessageIds":[0]}]}"#,
            "Posit Assistant",
        ),
        (
            r#"{"agent":{"memory":{"content":[[{"role":"user","content":"a"},[]]],"_compressed_summary":""}}}"#,
            "QwenPaw",
        ),
        (
            r#"{"type":"init","session_id":"s","model":"m"}
{"type":"message","role":"user","content":"a"}"#,
            "Gemini CLI, as a stream",
        ),
        (
            r#"{"type":"note"}
{"type":"init","session_id":"s","model":"m"}"#,
            "Gemini CLI, as a stream",
        ),
        (
            r#"{"type":"message","role":"user","id":"a","text":"b","session_id":"s"}"#,
            "Droid, as a stream",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = import::load(&path).unwrap_err();
        assert!(error.hint().is_some() && error.is_no_recording());
        let error = error.to_string();
        assert!(
            error.ends_with(&format!("is a recording of {product}, which is not read")),
            "{error}"
        );
    }
}

#[test]
fn neighbours_of_formats_that_are_read_are_read_as_those() {
    let omp = check(
        "pi/omp.jsonl",
        "pi",
        &[r#"0 user[typed_user] "Which lamp is out?"
1 model[] "The third." = 4/0/0/90/3
2 user[typed_user meta] "Be brief.", "Light it."
3 model[] "Lit."
skipped: entry of an abandoned branch: 1
skipped: mode_change: 1
skipped: session: 1
skipped: session_init: 1
skipped: title: 1
skipped: title_change: 1
skipped: ttsr_injection: 1
"#],
    );
    assert_eq!(omp[0].system(), Some(&"You mend lamps.".into()));
    let requests = r#"{"requests":[{"requestId":"r","message":{"text":"Which lamp?"},"response":[{"value":"The third."}]}]}"#;
    let dialog = r#"{"id":"u","name":"user","role":"user","content":[{"type":"text","text":"Which lamp?"}]}
{"id":"a","name":"F","role":"assistant","content":[{"type":"tool_use","id":"c","name":"look","input":{}}]}
{"id":"s","name":"system","role":"system","content":[{"type":"tool_result","id":"c","name":"look","output":[{"type":"text","text":"third"}]}]}
{"id":"b","name":"F","role":"assistant","content":[{"type":"text","text":"The third."}]}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    for (text, format, expected) in [
        (
            requests,
            "copilot-chat",
            "0 user[typed_user] \"Which lamp?\"\n1 model[] \"The third.\"\n",
        ),
        (
            dialog,
            "anthropic",
            "0 user[typed_user] \"Which lamp?\"\n1 model[] other c {}\n2 user[meta] ->c \"third\"\n3 model[] \"The third.\"\n",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let sessions = import::load(&path).unwrap();
        assert_eq!(sessions[0].source().format, format);
        assert!(outline(&sessions[0]).starts_with(expected), "{}", outline(&sessions[0]));
        assert!(sessions[0].source().unknown.is_empty());
    }
}

#[test]
fn a_session_of_droid_is_read_with_the_summary_of_its_compaction() {
    check(
        "factory-droid/session.jsonl",
        "factory-droid",
        &[r#"0 user[typed_user] "Which oven is cold?"
1 model[] thinking "Look at all.", "I look.", shell o1 {"command":"cat ovens"}
2 user[] ->o1 "one 220\ntwo 18\n"
3 model[] "Oven two."
4 user[typed_user] "Light it."
5 model[] "Lit."
compaction before 4: - 0: (user[compact_summary] "Oven two is cold.")
skipped: session_start: 1
skipped: todo_state: 1
"#],
    );
}

#[test]
fn a_thread_of_amp_is_read_with_its_runs_and_its_summary() {
    let sessions = check(
        "amp/thread.json",
        "amp",
        &[
            r#"0 user[typed_user] "Which kiln is cold?"
1 model[] thinking "Look at both.", shell toolu_k1 {"cmd": "cat one"}, shell toolu_k2 {"cmd": "cat two"} = 12/900/0/3400/80
2 user[] ->toolu_k1 "{\"output\": \"1240\\n\", \"exitCode\": 0}", ->!toolu_k2 "no such kiln"
3 model[] edit toolu_k3 {"path": "one"} = 4/0/0/4300/9
4 user[] ->!toolu_k3 "leave it"
5 user[typed_user meta] <manual_bash_invocation>, "Go on."
6 model[] "Kiln two is gone." = 6/0/0/310/20
compaction before 5: - 0: (user[compact_summary] "Kiln one is at 1240.")
skipped: key `agentMode`: 1
skipped: key `created`: 1
skipped: key `env`: 1
skipped: key `id`: 1
skipped: key `nextMessageId`: 1
skipped: key `title`: 1
skipped: key `v`: 1
skipped: message key `userState`: 1
"#,
            r#"0 user[typed_user sidechain] "Look for a third."
1 model[sidechain] "None."
"#,
        ],
    );
    assert_eq!(sessions[0].model(), Some("some-model"));
    assert_eq!(sessions[0].context_window(), Some(Tokens(168_000)));
}

#[test]
fn the_events_of_codex_exec_are_read_and_their_usage_is_given_to_no_call() {
    check(
        "codex-exec/run.jsonl",
        "codex-exec",
        &[
            r#"0 model[] thinking "**Looking at both mills**", shell item_1 {"command":"cat north"}, shell item_2 {"command":"cat south"}
1 user[] ->item_1 "turning\n", ->!item_2 "cat: south: no such mill\n"
2 model[] todo todo_list-1 [{"text":"Oil the mill","completed":false}]
3 user[] ->todo_list-1 
4 model[] mcp item_4 {"at":"north"}
5 user[] ->item_4 "west 4"
6 model[] edit item_5 {"changes":[{"path":"north","kind":"update"}]}
7 user[] ->item_5 
8 model[] todo todo_list-2 [{"text":"Oil the mill","completed":true}]
9 user[] ->todo_list-2 
10 model[] <web_search>, "The north mill is oiled."
skipped: thread.started: 1
skipped: usage of a whole turn: 1
warning: what the user asked is not recorded: 1
"#,
        ],
    );
    // A server that runs on is no reason to take what follows for the same call.
    let text = r#"{"type":"item.started","item":{"id":"s","type":"command_execution","command":"serve"}}
{"type":"item.completed","item":{"id":"b","type":"command_execution","command":"ls","aggregated_output":"b","exit_code":0}}
{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"It serves."}}
{"type":"item.completed","item":{"id":"s","type":"command_execution","command":"serve","aggregated_output":"bye","exit_code":0}}"#;
    let sessions = read("codex-exec", text.as_bytes()).expect("a good file");
    assert_eq!(sessions[0].calls().len(), 2);
}

#[test]
fn traces_and_checkpoints_of_langchain_are_read_with_what_could_not_be_called() {
    let human = r#"{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"Weigh it."}}"#;
    let ai = r#"{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{
  "content":[{"type":"reasoning","reasoning":"Hm.","extras":{"signature":"s"}},{"type":"server_tool_call","id":"s1","name":"web_search","args":{}}],
  "tool_calls":[{"id":"w1","name":"scale","args":{
    "kg": true
  }}],
  "invalid_tool_calls":[{"type":"invalid_tool_call","id":"w2","name":"scale","args":"{oops","error":"e"}]}}"#;
    let expected = r#"0 user[typed_user] "Weigh it."
1 model[] thinking "Hm.", <server_tool_call>, other w1 {"kg":true}, other w2 "{oops"
warning: tool arguments are no JSON; they are kept as a string: 1
"#;
    for text in [
        format!(
            r#"{{"id":"r","run_type":"llm","inputs":{{"messages":[[{human}]]}},"outputs":{{"generations":[[{{"text":"","message":{ai}}}]]}}}}"#
        ),
        format!(r#"{{"messages":[[{human},{ai}]]}}"#),
        format!(r#"{{"checkpoint":{{"channel_values":{{"messages":[{human},{ai}]}}}}}}"#),
    ] {
        let importers = import::IMPORTERS.iter();
        let claimed = importers.filter(|importer| importer.detect(text.as_bytes()));
        let claimed: Vec<&str> = claimed.map(proctor_formats::Importer::format).collect();
        let is_run = text.contains("run_type");
        let format = if is_run { "langsmith" } else { "langchain" };
        assert_eq!(claimed, [format], "{text}");
        let sessions = read(format, text.as_bytes()).expect("a good file");
        assert_eq!(outline(&sessions[0]), expected, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_an_importer_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        at in 0_usize..6000,
        length in 0_usize..60,
    ) {
        for (format, file) in [
            ("openhands", "openhands/trajectory.json"),
            ("openhands", "openhands/output.jsonl"),
            ("mini-swe-agent", "mini-swe-agent/tools.traj.json"),
            ("mini-swe-agent", "mini-swe-agent/items.traj.json"),
            ("gemini", "gemini/log.jsonl"),
            ("openai-responses", "openai-responses/log.json"),
            ("openai-responses", "openai-responses/chain.jsonl"),
            ("tau-bench", "tau-bench/results.json"),
            ("tau2", "tau2/results.json"),
            ("langchain", "langchain/dumped.json"),
            ("iflow", "iflow/session.jsonl"),
            ("qwen-code", "qwen-code/chat.jsonl"),
            ("atif", "atif/trajectory.json"),
            ("otlp", "otlp/traces.jsonl"),
            ("otlp", "otlp/libraries.jsonl"),
            ("langfuse", "langfuse/trace.json"),
            ("langfuse", "langfuse/observations.jsonl"),
            ("langfuse", "langfuse/libraries.jsonl"),
            ("langsmith", "langsmith/runs.jsonl"),
            ("chatgpt", "chatgpt/conversations.json"),
            ("claude-ai", "claude-ai/conversations.json"),
            ("beam", "beam/rows.jsonl"),
            ("convomem", "convomem/evidence.json"),
            ("kimi-cli", "kimi-cli/context.jsonl"),
            ("grok-build", "grok-build/chat_history.jsonl"),
            ("kimi-cli", "kimi-cli/wire.jsonl"),
            ("kimi-code", "kimi-code/wire.jsonl"),
            ("factory-droid", "factory-droid/session.jsonl"),
            ("amp", "amp/thread.json"),
            ("codex-exec", "codex-exec/run.jsonl"),
            ("copilot-chat", "copilot-chat/chat.json"),
            ("copilot-chat", "copilot-chat/changes.jsonl"),
            ("cursor", "cursor/transcript.jsonl"),
            ("cursor", "cursor/transcript.txt"),
            ("specstory", "specstory/history.md"),
            ("aider", "aider/history.md"),
            ("inspect", "inspect/log.json"),
            ("openai-chat", "request-log/calls.jsonl"),
            ("anthropic", "request-log/anthropic.jsonl"),
        ] {
            let good = std::fs::read(fixture(file)).unwrap_or_default();
            // Each file is broken at its own place.
            let at = at % (good.len() + 1);
            let mut broken = good[..at].to_vec();
            broken.extend(&bytes);
            broken.extend(&good[(at + length).min(good.len())..]);
            for session in read(format, &broken).unwrap_or_default() {
                round_trip(&session);
            }
        }
    }
}

#[test]
fn shared_files_of_libraries_are_read_whole() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    for (format, product, calls, results) in [
        ("langchain", "langchain", 2, 2),
        // Each of six tool uses is written twice.
        ("iflow", "iflow", 6, 6),
        ("inspect", "inspect-ai", 4, 4),
    ] {
        for path in shared::files(&folder.join(product)) {
            let sessions = import::load(&path).expect("a good file");
            let [session] = &sessions[..] else {
                panic!("{}: {} sessions", path.display(), sessions.len());
            };
            println!("{}: {:?}", path.display(), session.source());
            let messages = session.messages();
            let uses: usize = messages.iter().map(|it| it.tool_uses().count()).sum();
            let answers: usize = messages.iter().map(|it| it.tool_results().count()).sum();
            assert_eq!(session.source().format, format);
            assert_eq!((uses, answers), (calls, results), "{}", path.display());
            assert!(session.source().unknown.is_empty());
            let billed = messages.iter().filter(|it| it.details.usage.is_some()).count();
            let expected = if format == "iflow" { 0 } else { session.calls().len() };
            assert_eq!(billed, expected, "{}", path.display());
            round_trip(session);
        }
    }
}
