//! What agent libraries and harnesses write: LangChain, iFlow, inspect, Harbor.

use std::io::{Cursor, Write as _};

use proctor::session::Session;
use proctor::session::import::{self, ImportError};
use proptest::prelude::*;
use serde_json::Value;
use zip::write::SimpleFileOptions;

use super::{fixture, outline, read, round_trip};
use crate::shared;

#[track_caller]
fn check(name: &str, format: &str, expected: &[&str]) -> Vec<Session> {
    let sessions = import::load(&fixture(name)).expect("a good file");
    let got: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(got, expected);
    for session in &sessions {
        assert_eq!(session.source().format, format);
        round_trip(session);
    }
    sessions
}

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
        let first = import::IMPORTERS
            .iter()
            .find(|it| it.detect(text.as_bytes()));
        assert_eq!(
            first.map(proctor::session::import::Importer::format),
            Some("langchain"),
            "{text}"
        );
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
fn a_log_of_inspect_is_read_with_its_compaction() {
    let sessions = check(
        "inspect/log.json",
        "inspect",
        &[
            r#"0 user[typed_user] "Which lamp is out?"
1 model[] thinking "Read both.", "I look.", other l1 {"tower":1}, other l2 {"tower":2} = 200/0/0/300/40
2 user[] ->l1 "The lighthouse stands on the northern cliff. \"Lamp\"\n", ->!l2 "no such tower"
3 model[] "Tower one?" = 100/60/0/500/10
4 user[meta] "Please go on."
5 model[] "Tower one is out." = 90/0/0/0/8
compaction before 5: summary 670: kept 0..1, (user[compact_summary] "So far: tower one was read, see The lighthouse stands on the northern cliff. \"Lamp\"\n"), kept 4..5
skipped: call of another agent or a grader: 1
skipped: sample key `epoch`: 1
skipped: sample key `id`: 1
skipped: sample key `input`: 1
skipped: sample key `output`: 1
skipped: sample key `scores`: 1
skipped: sample key `target`: 1
"#,
            r#"0 user[typed_user] "Anybody?"
1 model[] "I."
skipped: sample key `epoch`: 1
skipped: sample key `id`: 1
skipped: sample key `input`: 1
skipped: sample key `target`: 1
"#,
        ],
    );
    let session = &sessions[0];
    assert_eq!(session.system(), Some(&"You keep lights.".into()));
    assert_eq!(session.model(), Some("maker/some-model"));
    let tool = session.tools()[0].definition.value();
    assert_eq!(tool["description"], "Reads a log.");
    assert!(session.message(1).timestamp.is_some());
}

/// The fixture's log as an archive, packed with `method`.
pub(super) fn archive(method: zip::CompressionMethod) -> Vec<u8> {
    let text = std::fs::read(fixture("inspect/log.json")).expect("readable");
    let log: Value = serde_json::from_slice(&text).expect("JSON");
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    let mut header = log.clone();
    header["samples"] = Value::Null;
    let mut files = vec![("_journal/start.json".to_owned(), log["eval"].clone())];
    for sample in log["samples"].as_array().expect("a list") {
        let id = sample["id"].to_string().replace('"', "");
        files.push((format!("samples/{id}_epoch_1.json"), sample.clone()));
    }
    files.push(("header.json".to_owned(), header));
    for (name, value) in files {
        zip.start_file(name, options).expect("a new file");
        zip.write_all(value.to_string().as_bytes()).expect("room");
    }
    zip.finish().expect("whole").into_inner()
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
        let claimed: Vec<&str> = claimed
            .map(proctor::session::import::Importer::format)
            .collect();
        let is_run = text.contains("run_type");
        let format = if is_run { "langsmith" } else { "langchain" };
        assert_eq!(claimed, [format], "{text}");
        let sessions = read(format, text.as_bytes()).expect("a good file");
        assert_eq!(outline(&sessions[0]), expected, "{text}");
    }
}

#[test]
fn a_summary_that_inspect_has_among_its_messages_is_none_of_them() {
    let asked = r#"{"id":"u1","role":"user","content":"Which lamp is out?","source":"input"}"#;
    let called = r#"{"id":"a1","role":"assistant","content":"I look.","tool_calls":[{"id":"l1","function":"bash","arguments":{}}]}"#;
    let told =
        r#"{"id":"t1","role":"tool","content":"dark","tool_call_id":"l1","function":"bash"}"#;
    let summary =
        r#"{"id":"s1","role":"user","content":"So far: dark.","metadata":{"summary":true}}"#;
    let answer = r#"{"id":"a2","role":"assistant","content":"One."}"#;
    let model = |input: &str, answer: &str| {
        format!(
            r#"{{"event":"model","input":[{input}],"output":{{"choices":[{{"message":{answer}}}]}}}}"#
        )
    };
    let log = format!(
        r#"{{"id":1,"epoch":1,"target":"","messages":[{asked},{called},{told},{summary},{answer}],"events":[{},{{"event":"compaction","type":"summary","tokens_before":90}},{}]}}"#,
        model(asked, called),
        model(&format!("{asked},{summary}"), answer),
    );
    let sessions = read("inspect", log.as_bytes()).expect("a good file");
    let outline = outline(&sessions[0]);
    let lines = outline.lines().filter(|line| !line.contains("sample key"));
    assert_eq!(
        lines.collect::<Vec<&str>>(),
        [
            r#"0 user[typed_user] "Which lamp is out?""#,
            r#"1 model[] "I look.", shell l1 {}"#,
            r#"2 user[] ->l1 "dark""#,
            r#"3 model[] "One.""#,
            r#"compaction before 3: summary 90: kept 0..1, (user[compact_summary] "So far: dark.")"#,
            "skipped: summary of a compaction: 1",
        ]
    );
    round_trip(&sessions[0]);
}

#[test]
fn the_oldest_logs_of_inspect_name_no_messages() {
    let name = "0123456789abcdef0123456789abcdef";
    let call = r#"[{"id":"l1","function":"bash","arguments":{
        "cmd": "read",
        "tower": 1
    },"type":"function"}]"#;
    let log = format!(
        r#"{{"version":2,"status":"success","eval":{{"model":"maker/some-model"}},"samples":[{{"id":1,"epoch":1,"input":"?","target":"","messages":[
{{"role":"system","content":"You keep lights."}},
{{"role":"user","content":"Which lamp is out?","source":"input"}},
{{"role":"assistant","content":"A long sentence about lamps.","source":"generate","tool_calls":{call}}},
{{"role":"tool","content":"half of it","tool_call_id":"l1","function":"bash","error":{{"type":"output_limit","message":"too long"}}}},
{{"role":"assistant","content":"One.","source":"generate"}}],
"transcript":{{"events":[
{{"event":"model","timestamp":"2024-10-15T12:00:01+00:00","output":{{"choices":[{{"message":{{"role":"assistant","content":"tc://{name}","tool_calls":{call}}}}}],"usage":{{"input_tokens":50,"output_tokens":9,"total_tokens":59}}}}}},
{{"event":"model","timestamp":"2024-10-15T12:00:02+00:00","output":{{"choices":[{{"message":{{"role":"assistant","content":"C"}}}}],"usage":{{"input_tokens":5,"output_tokens":1,"total_tokens":6}}}}}},
{{"event":"model","timestamp":"2024-10-15T12:00:03+00:00","output":{{"choices":[{{"message":{{"role":"assistant","content":"One."}}}}],"usage":{{"input_tokens":70,"output_tokens":2,"total_tokens":72}}}}}}],
"content":{{"{name}":"A long sentence about lamps."}}}}}}]}}"#
    );
    let sessions = read("inspect", log.as_bytes()).expect("a good file");
    let [session] = &sessions[..] else {
        panic!("one session");
    };
    assert_eq!(
        outline(session)
            .lines()
            .filter(|line| !line.contains("sample key"))
            .collect::<Vec<&str>>(),
        [
            r#"0 user[typed_user] "Which lamp is out?""#,
            // The layout of the file is no part of what the model wrote.
            r#"1 model[] "A long sentence about lamps.", shell l1 {"cmd":"read","tower":1} = 50/0/0/0/9"#,
            // The error is what the model was told.
            r#"2 user[] ->!l1 "too long""#,
            r#"3 model[] "One." = 70/0/0/0/2"#,
            "skipped: call of another agent or a grader: 1",
            "skipped: output of a call that failed: 1",
        ]
    );
    assert!(session.message(3).timestamp.is_some());
    round_trip(session);
}

#[test]
fn an_archive_of_inspect_says_what_its_log_says() {
    let expected = import::load(&fixture("inspect/log.json")).expect("a good file");
    for method in [
        zip::CompressionMethod::Stored,
        zip::CompressionMethod::Deflated,
    ] {
        let bytes = archive(method);
        let claimed = import::IMPORTERS.iter().filter(|it| it.detect(&bytes));
        let claimed: Vec<&str> = claimed
            .map(proctor::session::import::Importer::format)
            .collect();
        assert_eq!(claimed, ["inspect"]);
        let sessions = read("inspect", &bytes).expect("a good archive");
        let outlines =
            |sessions: &[Session]| -> Vec<String> { sessions.iter().map(outline).collect() };
        assert_eq!(outlines(&sessions), outlines(&expected));
        assert_eq!(sessions[0].model(), expected[0].model());
    }
}

#[test]
fn a_sample_that_is_packed_by_zstd_is_read() {
    let sample = br#"{"id":1,"epoch":1,"messages":[{"role":"user","content":"Hello."}]}"#;
    // A frame of one raw block: its size in four bytes, then the block's header and content.
    let size = u32::try_from(sample.len()).expect("small");
    let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    packed.extend(size.to_le_bytes());
    packed.extend(&(size << 3 | 1).to_le_bytes()[..3]);
    packed.extend(sample);
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("samples/1_epoch_1.json", options)
        .expect("a new file");
    zip.write_all(&packed).expect("room");
    let mut bytes = zip.finish().expect("whole").into_inner();
    let directory = bytes
        .windows(4)
        .rposition(|it| it == b"PK\x01\x02")
        .expect("a directory");
    for at in [8, directory + 10] {
        bytes[at] = 93;
    }
    let sessions = read("inspect", &bytes).expect("a good archive");
    assert_eq!(
        outline(&sessions[0]),
        "0 user[typed_user] \"Hello.\"\nskipped: sample key `epoch`: 1\nskipped: sample key `id`: 1\n\
         warning: the archive has no header: 1\n"
    );
}

#[test]
fn damaged_archives_and_bombs_are_refused() {
    let whole = archive(zip::CompressionMethod::Deflated);
    for cut in [30, 200, whole.len() / 2, whole.len() - 10] {
        let error = read("inspect", &whole[..cut]).expect_err("cut");
        assert!(
            matches!(error, ImportError::Archive { .. }),
            "{cut}: {error}"
        );
    }
    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        for session in read("inspect", &bytes).unwrap_or_default() {
            round_trip(&session);
        }
    }
    let deep = "[".repeat(1_000_000);
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("samples/1_epoch_1.json", SimpleFileOptions::default())
        .expect("a new file");
    zip.write_all(deep.as_bytes()).expect("room");
    let bytes = zip.finish().expect("whole").into_inner();
    let error = read("inspect", &bytes).expect_err("no JSON").to_string();
    assert!(error.contains("1_epoch_1.json"), "{error}");
    // A reference that is used over and over makes no more of a log than may be.
    let name = "0".repeat(32);
    let references = format!("attachment://{name} ").repeat(300);
    let sample = serde_json::json!({
        "epoch": 1,
        "messages": [{"role": "user", "content": references}],
        "attachments": {name: "x".repeat(1 << 20)},
    });
    let error = read("inspect", sample.to_string().as_bytes()).expect_err("too large");
    assert!(
        error.to_string().contains("larger than any sample"),
        "{error}"
    );
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
            ("openai-responses", "openai-responses/log.json"),
            ("openai-responses", "openai-responses/chain.jsonl"),
            ("tau-bench", "tau-bench/results.json"),
            ("tau2", "tau2/results.json"),
            ("langchain", "langchain/dumped.json"),
            ("iflow", "iflow/session.jsonl"),
            ("qwen-code", "qwen-code/chat.jsonl"),
            ("atif", "atif/trajectory.json"),
            ("otlp", "otlp/traces.jsonl"),
            ("langfuse", "langfuse/trace.json"),
            ("langfuse", "langfuse/observations.jsonl"),
            ("langsmith", "langsmith/runs.jsonl"),
            ("chatgpt", "chatgpt/conversations.json"),
            ("claude-ai", "claude-ai/conversations.json"),
            ("beam", "beam/rows.jsonl"),
            ("convomem", "convomem/evidence.json"),
            ("kimi-cli", "kimi-cli/context.jsonl"),
            ("factory-droid", "factory-droid/session.jsonl"),
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
            let billed = messages.iter().filter(|it| it.usage.is_some()).count();
            let expected = if format == "iflow" {
                0
            } else {
                session.calls().len()
            };
            assert_eq!(billed, expected, "{}", path.display());
            round_trip(session);
        }
    }
}
