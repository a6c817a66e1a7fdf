//! Logs and archives of inspect.

use std::io::{Cursor, Write as _};

use proctor_formats::{self as import, ImportError};
use proctor_sessions::Session;
use serde_json::Value;
use zip::write::SimpleFileOptions;

use super::{check_fixture as check, fixture, outline, read, round_trip};

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
    assert!(session.message(1).details.timestamp.is_some());
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
        outline(session).lines().filter(|line| !line.contains("sample key")).collect::<Vec<&str>>(),
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
    assert!(session.message(3).details.timestamp.is_some());
    round_trip(session);
}

#[test]
fn an_archive_of_inspect_says_what_its_log_says() {
    let expected = import::load(&fixture("inspect/log.json")).expect("a good file");
    for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
        let bytes = archive(method);
        let claimed = import::IMPORTERS.iter().filter(|it| it.detect(&bytes));
        let claimed: Vec<&str> = claimed.map(proctor_formats::Importer::format).collect();
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
    zip.start_file("samples/1_epoch_1.json", options).expect("a new file");
    zip.write_all(&packed).expect("room");
    let mut bytes = zip.finish().expect("whole").into_inner();
    let directory = bytes.windows(4).rposition(|it| it == b"PK\x01\x02").expect("a directory");
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
fn a_sample_that_cannot_be_read_costs_itself_alone() {
    let text = std::fs::read(fixture("inspect/log.json")).expect("readable");
    let log: Value = serde_json::from_slice(&text).expect("JSON");
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let deep = "[".repeat(128) + &"]".repeat(128);
    let samples = ["{\"epoch\":".to_owned(), String::new(), deep, log["samples"][0].to_string()];
    for (id, sample) in samples.iter().enumerate() {
        let name = format!("samples/{id}_epoch_1.json");
        zip.start_file(name, SimpleFileOptions::default()).expect("a new file");
        zip.write_all(sample.as_bytes()).expect("room");
    }
    let bytes = zip.finish().expect("whole").into_inner();
    assert_eq!(read("inspect", &bytes).expect("a good sample").len(), 1);
}

#[test]
fn damaged_archives_and_bombs_are_refused() {
    let whole = archive(zip::CompressionMethod::Deflated);
    for cut in [30, 200, whole.len() / 2, whole.len() - 10] {
        let error = read("inspect", &whole[..cut]).expect_err("cut");
        assert!(matches!(error, ImportError::Archive { .. }), "{cut}: {error}");
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
    zip.start_file("samples/1_epoch_1.json", SimpleFileOptions::default()).expect("a new file");
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
    assert!(error.to_string().contains("larger than any sample"), "{error}");
}
