//! Claude Code: results that are cleared, records that were copied, and forks.

use proctor_formats as import;
use std::sync::Arc;

use proctor_sessions::Session;
use proctor_sessions::units::Tokens;

use super::{
    check, check_fixture, fixture, model, outline, read, read_use, result, round_trip, text, user,
};
use crate::shared;

mod lines;

fn at(record: &str, time: &str) -> String {
    record.replacen('{', &format!(r#"{{"timestamp":"2026-03-01T09:00:0{time}Z","#), 1)
}

#[test]
fn a_microcompaction_clears_old_results_at_the_next_call() {
    check(
        &[
            &user("u", "", "Go."),
            &model("a", "u", "1", &format!("{},{}", read_use("t1"), read_use("t2"))),
            &result("r1", "a", "t1", "one"),
            &result("r2", "a", "t2", "two"),
            r#"{"type":"system","subtype":"microcompact_boundary","uuid":"b","microcompactMetadata":{"trigger":"auto","preTokens":90000,"tokensSaved":30000,"compactedToolIds":["t1","gone"],"clearedAttachmentUUIDs":["x"]}}"#,
            r#"{"type":"attachment","uuid":"n","attachment":{"type":"nested_memory","path":"a.md","content":{"content":"Be brief."}}}"#,
            &model("a2", "r2", "2", &read_use("t3")),
            &result("r3", "a2", "t3", "three"),
            r#"{"type":"content-replacement","sessionId":"s","replacements":[{"kind":"tool-result","toolUseId":"t3","replacement":"see file"},7]}"#,
            &model("a3", "r3", "3", &text("Done.")),
            r#"{"type":"system","subtype":"microcompact_boundary","uuid":"c","microcompactMetadata":{"compactedToolIds":["t2"]}}"#,
        ],
        &[
            r#"0 user[typed_user] "Go.""#,
            "1 model[] read t1 {}, read t2 {}",
            r#"2 user[meta] ->t1 "one", ->t2 "two", "a.md\nBe brief.""#,
            "3 model[] read t3 {}",
            r#"4 user[] ->t3 "three""#,
            r#"5 model[] "Done.""#,
            "compaction before 3: microcompact 90000: kept 0..2, edited 2",
            "compaction before 5: content-replacement 0: kept 0..2, edited 2, kept 3..4, edited 4",
            "compaction before 6: microcompact 0: kept 0..2, edited 2, edited 2, kept 3..4, edited 4, kept 5..6",
            "unknown: replacement of a result: 1",
            "warning: a compaction clears a result that is not in the file: 1",
            "warning: a compaction clears an attachment, which is kept: 1",
        ],
    );
}

#[test]
fn records_that_a_resumed_session_copied_are_read_once() {
    let records = |suffix: &str, parent: &str| {
        [
            at(&user(&format!("u{suffix}"), parent, "Go."), "1"),
            at(&model(&format!("a{suffix}"), &format!("u{suffix}"), "1", &text("Gone.")), "2"),
        ]
    };
    let [u, a] = records("", "");
    let [u2, a2] = records("-copy", "");
    check(
        &[
            &u,
            &a,
            &u2,
            &a2,
            &at(&user("n", "a-copy", "On."), "3"),
            &at(&model("b", "n", "2", &text("Ok.")), "4"),
        ],
        &[
            r#"0 user[typed_user] "Go.""#,
            r#"1 model[] "Gone.""#,
            r#"2 user[typed_user] "On.""#,
            r#"3 model[] "Ok.""#,
            "warning: a record stands in the file twice: 2",
        ],
    );
}

#[test]
fn parts_of_a_message_are_one_call_though_some_do_not_name_the_request() {
    let unnamed = model("a", "u", "1", &text("First.")).replace(r#""requestId":"r1","#, "");
    check(
        &[
            &user("u", "", "Go."),
            &unnamed,
            &model("a2", "a", "1", &read_use("t")),
            &result("r", "a2", "t", "one"),
            &unnamed.replace("First.", "Last.").replace(r#""uuid":"a""#, r#""uuid":"a3""#),
        ],
        &[
            r#"0 user[typed_user] "Go.""#,
            r#"1 model[] "First.", read t {}, "Last.""#,
            r#"2 user[] ->t "one""#,
        ],
    );
}

#[test]
fn a_record_of_a_sub_agent_whose_parent_was_lost_follows_the_one_before_it() {
    let (asked, said) = (user("u", "", "Dig."), model("v", "u", "1", &text("I ask.")));
    let task = r#"{"type":"user","isSidechain":true,"uuid":"s1","parentUuid":null,"message":{"content":"Dig there."}}"#;
    let done = r#"{"type":"assistant","isSidechain":true,"uuid":"s3","parentUuid":"lost","message":{"id":"m2","content":[{"type":"text","text":"Dug."}]}}"#;
    let lines = [&*asked, &*said, task, done].join("\n");
    let sessions = read("claude-code", lines.as_bytes()).expect("a good file");
    assert_eq!(sessions.len(), 2);
}

#[test]
fn of_several_bills_for_a_call_each_counter_counts_at_its_largest_until_one_tells_iterations_apart()
{
    let billed = |uuid: &str, parent: &str, said: &str, version: &str, usage: &str| {
        let record = model(uuid, parent, "1", &text(said));
        let usage = format!(r#""usage":{usage},"content""#);
        let version = format!(r#"{{"version":"{version}","#);
        record.replace(r#""content""#, &usage).replacen('{', &version, 1)
    };
    let iteration = r#""input_tokens":3,"cache_read_input_tokens":100,"output_tokens":4"#;
    let lines = [
        user("u", "", "Go."),
        billed("a", "u", "First.", "2.1.19", &format!("{{{iteration}}}")),
        billed("b", "a", "Second.", "2.1.20", r#"{"input_tokens":0,"output_tokens":9}"#),
    ];
    let read_lines = |lines: &[String]| {
        let sessions = read("claude-code", lines.join("\n").as_bytes());
        sessions.expect("good records").remove(0)
    };
    let said = r#"1 model[] "First.", "Second.""#;
    let session = read_lines(&lines);
    assert!(outline(&session).contains(&format!("{said} = 3/0/0/100/9")));
    assert_eq!(session.source().version.as_deref(), Some("2.1.20"));
    let last =
        r#"{"type":"message","input_tokens":1,"cache_read_input_tokens":103,"output_tokens":5}"#;
    let whole = format!(
        r#"{{"input_tokens":4,"cache_read_input_tokens":203,"output_tokens":9,"iterations":[{{"type":"message",{iteration}}},{last}]}}"#
    );
    // The records of a call repeat its bill.
    let iterations = ["c", "d"].map(|uuid| billed(uuid, "b", "", "2.1.20", &whole));
    let session = read_lines(&[&lines[..], &iterations].concat());
    let outline = outline(&session);
    assert!(outline.contains(" = 1/0/0/103/9"), "{outline}");
    let messages = session.messages().iter();
    let inner = messages.flat_map(|message| &message.details.inner_requests);
    let prompts: Vec<Tokens> = inner.map(|request| request.usage.prompt()).collect();
    assert_eq!(prompts, [Tokens(103)]);
    // A gateway estimates the prompt until the call has ended; the end may say nothing of the prompt.
    for (counters, expected) in [
        (r#""input_tokens":1,"cache_read_input_tokens":80"#, "1/0/0/80/9"),
        (r#""input_tokens":0"#, "3/0/0/100/9"),
    ] {
        let ended = format!(r#"{{{counters},"output_tokens":2}},"stop_reason":"end_turn""#);
        let ended = billed("e", "b", "", "2.1.20", &ended);
        let outline = super::outline(&read_lines(&[&lines[..], &[ended]].concat()));
        assert!(outline.contains(&format!(" = {expected}\n")), "{outline}");
    }
}

#[test]
fn errors_of_the_api_are_not_sent_again() {
    let product = |uuid: &str, parent: &str, text: &str| {
        let text = format!(r#"{{"type":"text","text":"{text}"}}"#);
        model(uuid, parent, uuid, &text).replacen(r#""id""#, r#""model":"<synthetic>","id""#, 1)
    };
    let failed = |uuid: &str, parent: &str, marks: &str| {
        let failed = product(uuid, parent, "API Error: 529");
        failed.replacen('{', &format!("{{{marks},"), 1)
    };
    check(
        &[
            &user("u", "", "Go."),
            &model("a", "u", "1", &text("Gone.")),
            &user("u2", "a", "On."),
            &failed("e", "u2", r#""isApiErrorMessage":true,"error":"unknown""#),
            &user("u3", "e", "Again."),
            &product("n", "u3", "No response requested."),
            // In a stream, the error is the mark.
            &failed("f", "n", r#""error":"rate_limit""#),
        ],
        &[
            r#"0 user[typed_user] "Go.""#,
            r#"1 model[] "Gone.""#,
            r#"2 user[typed_user] "On.", "Again.""#,
            r#"3 model[synthetic] "No response requested.""#,
            "skipped: api error: 2",
        ],
    );
}

#[test]
fn the_output_of_a_command_is_read_with_the_next_prompt() {
    let command = |uuid: &str, parent: &str, text: &str| {
        format!(
            r#"{{"type":"system","subtype":"local_command","uuid":"{uuid}","parentUuid":"{parent}","content":"{text}","isMeta":false}}"#
        )
    };
    check(
        &[
            &user("u", "", "Go."),
            &model("a", "u", "1", &text("Gone.")),
            &command("c", "a", "<command-name>/cost</command-name>"),
            &command("o", "c", "<local-command-stdout>10 cents</local-command-stdout>"),
            &user("u2", "o", "Too much."),
        ],
        &[
            r#"0 user[typed_user] "Go.""#,
            r#"1 model[] "Gone.""#,
            r#"2 user[typed_user meta] "<command-name>/cost</command-name>", "<local-command-stdout>10 cents</local-command-stdout>", "Too much.""#,
        ],
    );
}

#[test]
fn prompts_that_were_typed_in_a_row_stay() {
    check(
        &[
            &model("a", "", "1", &text("Ready.")),
            &user("u1", "a", "One."),
            &user("u2", "a", "And two."),
            &model("b", "u2", "2", &text("Done.")),
        ],
        &[
            r#"0 model[] "Ready.""#,
            r#"1 user[typed_user] "One.", "And two.""#,
            r#"2 model[] "Done.""#,
        ],
    );
}

#[test]
fn leaves_out_what_the_user_went_back_from_to_the_first_prompt() {
    let root = |record: String| record.replace(r#""parentUuid":"""#, r#""parentUuid":null"#);
    let first = root(user("u1", "", "Wrong way."));
    let second = root(user("u2", "", "Right way."));
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null}"#;
    let [a1, a2] = ["1", "2"].map(|n| model(&format!("a{n}"), &format!("u{n}"), n, &text("Ok.")));
    check(
        &[&first, &a1, &second, &a2],
        &[
            r#"0 user[typed_user] "Right way.""#,
            r#"1 model[] "Ok.""#,
            "warning: abandoned branch: a record the user went back from is left out: 2",
        ],
    );
    check(
        &[&first, &a1, boundary, &second, &a2],
        &[
            r#"0 user[typed_user] "Wrong way.""#,
            r#"1 model[] "Ok.""#,
            r#"2 user[typed_user] "Right way.""#,
            r#"3 model[] "Ok.""#,
            "compaction before 2: - 0: missing",
        ],
    );
}

#[test]
fn what_an_unknown_record_says_is_kept() {
    check(
        &[
            &user("u", "", "Go."),
            r#"{"type":"telepathy","uuid":"t","content":"a thought"}"#,
            r#"{"type":"attachment","uuid":"n","attachment":{"type":"brand_new","words":"read me"}}"#,
            r#"{"type":"attachment","uuid":"p","attachment":{"type":"plan_mode_reentry","planFilePath":"plan.md"}}"#,
        ],
        &[
            r#"0 user[typed_user meta] "Go.", <telepathy>, <brand_new>, "plan.md""#,
            "unknown: attachment/brand_new: 1",
            "unknown: record telepathy: 1",
        ],
    );
}

#[test]
fn what_every_prompt_held_and_the_file_does_not_is_told_with_its_size() {
    let missing = |lines: &[String]| {
        let text = lines.join("\n") + "\n";
        let sessions = read("claude-code", text.as_bytes()).unwrap();
        round_trip(&sessions[0]);
        sessions[0].source().missing.unwrap()
    };
    let billed = |blocks: &str| {
        let usage =
            r#""usage":{"input_tokens":10,"cache_creation_input_tokens":90,"output_tokens":1},"#;
        model("m", "u", "1", blocks).replacen(r#""content""#, &format!("{usage}\"content\""), 1)
    };
    let asked = user("u", "", &"mill ".repeat(8));
    // 100 tokens were billed, and the forty characters before them are ten.
    let found = missing(&[asked.clone(), billed(&read_use("t"))]);
    assert_eq!((found.system_prompt, found.tools), (true, true));
    assert_eq!(found.tokens, Some(Tokens(90)));
    // Who uses no tool may have had none, and without a bill there is no size.
    let found = missing(&[asked, model("m", "u", "1", &text("Yes."))]);
    assert_eq!((found.system_prompt, found.tools), (true, false));
    assert_eq!(found.tokens, None);
}

/// A context that was cleared in the middle of a file, and the prompt after it.
#[test]
fn a_new_root_whose_prompt_is_smaller_clears_the_context() {
    let path = fixture("claude-code/cleared.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let sessions = import::load(&path).unwrap();
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "Plan how to rename `Till` to `Register`."
1 model[] grep t1 {"pattern":"Till"} = 5/20000/0/0/30
2 user[] ->t1 "till.rs:1: struct Till\nbasket.rs:7: use Till"
3 model[] other t2 {"plan":"1. till.rs\n2. basket.rs"} = 5/3000/0/20000/40
4 user[] ->!t2 "The plan was accepted. The context is cleared."
5 user[typed_user] "Implement the following plan:\n\n1. till.rs\n2. basket.rs"
6 model[] edit t3 {"file_path":"till.rs"} = 5/1000/0/19500/25
7 user[] ->t3 "edited"
8 model[] "Renamed." = 5/200/0/20500/8
compaction before 5: clear 23005:{space}
skipped: progress: 1
"#
        .replace("{space}", " ")
    );
    round_trip(&sessions[0]);

    let clears = |text: &str| -> usize {
        let sessions = read("claude-code", text.as_bytes()).unwrap();
        sessions[0].compactions().len()
    };
    assert_eq!(clears(&text), 1);
    for (what, from, to) in [
        ("a resumed session", "SessionStart:clear", "SessionStart:resume"),
        (
            "a prompt that was billed no smaller",
            r#""cache_read_input_tokens":19500"#,
            r#""cache_read_input_tokens":23000"#,
        ),
        ("a root that nothing descends from", r#""parentUuid":"p2""#, r#""parentUuid":"r2""#),
        (
            "a side chain",
            r#""isSidechain":false,"userType":"external","cwd":"/home/dev/shop","sessionId":"s-7","version":"2.1.9","gitBranch":"main","type":"progress","uuid":"p2""#,
            r#""isSidechain":true,"type":"progress","uuid":"p2""#,
        ),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{what}");
        assert_eq!(clears(&text.replace(from, to)), 0, "{what}");
    }
    // Another session that was written into the same file.
    let (first, second) = text.split_at(text.find(r#"{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/home/dev/shop","sessionId":"s-7","version":"2.1.9","gitBranch":"main","type":"progress","uuid":"p2""#).unwrap());
    assert_eq!(clears(&format!("{first}{}", second.replace("s-7", "s-8"))), 0);
    // The prompt itself is the root, and no attempt to ask the first one anew.
    let root = text.replace(r#""parentUuid":"p2""#, r#""parentUuid":null"#);
    assert_eq!(clears(&root), 1);
}

#[test]
fn shared_recordings_clear_no_context_in_the_middle() {
    let Some(folder) = shared::folder("sessions/claude-code") else {
        return;
    };
    for path in shared::files(&folder) {
        let Ok(sessions) = import::load(&path) else {
            continue;
        };
        let mut compactions = sessions.iter().flat_map(Session::compactions);
        let is_clear = |trigger: &Option<Arc<str>>| trigger.as_deref() == Some("clear");
        assert!(!compactions.any(|one| is_clear(&one.trigger)), "{}", path.display());
    }
}

/// What `claude -p --output-format stream-json` prints, and the Agent SDK yields.
#[test]
fn a_stream_is_read_like_a_session_file() {
    let main = r#"0 model[] "I ask a helper.", agent t1 {"prompt":"Find the till."} = 5/900/0/0/30
1 user[] ->t1 "It is in till.rs."
2 model[] "The till is in till.rs." = 5/60/0/900/9
3 user[typed_user] "Rename it."
4 user[meta] "The list of tasks is empty."
5 model[] "Renamed." = 5/300/0/0/4
compaction before 4: auto 980: (user[compact_summary] "This session is being continued: the till is in till.rs."), kept 1..3
skipped: rate_limit_event: 1
skipped: result: 1
skipped: stream_event: 2
skipped: system/init: 1
skipped: system/status: 1
"#;
    let side = r#"0 user[sidechain] "Find the till."
1 model[sidechain] read st1 {"file_path":"till.rs"} = 5/100/0/0/9
2 user[sidechain] ->st1 "struct Till;"
"#;
    check_fixture("claude-code/stream.jsonl", "claude-code", &[main, side]);

    // The first versions named no records, and claude-code-action writes one list of all.
    let text = std::fs::read_to_string(fixture("claude-code/stream.jsonl")).unwrap();
    let records = text.lines().map(|line| {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        record.as_object_mut().unwrap().remove("uuid");
        if let Some(about) = record.get_mut("compact_metadata") {
            about.as_object_mut().unwrap().remove("preserved_segment");
        }
        record
    });
    let records: Vec<serde_json::Value> = records.collect();
    let lines = records.iter().map(|record| format!("{record}\n"));
    let list = serde_json::to_string_pretty(&records).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.jsonl", lines.collect()), ("a.json", list)] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let got: Vec<String> = import::load(&path).unwrap().iter().map(outline).collect();
        assert_eq!(got, [&main.replace(", kept 1..3", ""), side], "{name}");
    }
}

#[test]
fn a_sub_agent_in_a_file_of_its_own_names_the_main_session() {
    let lines = [
        r#"{"type":"user","uuid":"a","parentUuid":null,"isSidechain":true,"agentId":"x","sessionId":"S-06","message":{"role":"user","content":"go"}}"#,
        r#"{"type":"assistant","uuid":"b","parentUuid":"a","isSidechain":true,"agentId":"x","sessionId":"S-06","message":{"id":"m","role":"assistant","content":"done"}}"#,
    ];
    let sessions = read("claude-code", lines.join("\n").as_bytes()).expect("a good file");
    let mains = sessions.iter().map(|it| it.source().main.as_deref());
    assert_eq!(mains.collect::<Vec<_>>(), [Some("s-06")]);
    // The request for a compaction's summary is no conversation.
    let asked = lines.map(|line| line.replace(r#""x""#, r#""acompact-1b2c3d""#));
    let error = read("claude-code", asked.join("\n").as_bytes()).expect_err("nothing to replay");
    assert!(error.to_string().contains("holds no conversation"), "{error}");
}

/// An answer of the agent that writes a summary.
fn of_summariser(id: &str, second: u32, output: u64) -> String {
    let time = format!("2026-03-01T09:00:{second:02}.000Z");
    let of = r#""isSidechain":true,"agentId":"acompact-1b","sessionId":"s-1""#;
    let bill = format!(r#"{{"input_tokens":7,"output_tokens":{output}}}"#);
    let said = format!(r#"{{"id":"{id}","role":"assistant","content":"x","usage":{bill}}}"#);
    format!(r#"{{"type":"assistant",{of},"timestamp":"{time}","message":{said}}}"#) + "\n"
}

#[test]
fn a_summary_costs_what_its_agent_was_billed_in_the_file_or_beside_it() {
    let main = std::fs::read_to_string(super::fixture("claude-code/compaction.jsonl")).unwrap();
    // It begins with the calls that it sums up, and may be asked again.
    let [copied, again, last] = [("msg_2", 5, 1), ("sum-1", 5, 2), ("sum-2", 6, 3)]
        .map(|(id, second, output)| of_summariser(id, second, output));
    let agent = copied + &again + &last;
    for [inside, beside] in [["", &agent], [&agent, ""]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s-1.jsonl");
        let agents = folder.path().join("s-1/subagents");
        std::fs::create_dir_all(&agents).unwrap();
        std::fs::write(&path, main.clone() + inside).unwrap();
        std::fs::write(agents.join("agent-acompact-1b.jsonl"), beside).unwrap();
        let sessions = import::load(&path).unwrap();
        let bills = sessions[0].compactions().iter().map(|one| one.usage);
        let outputs = bills.map(|bill| bill.map(|bill| bill.output.0));
        assert_eq!(outputs.collect::<Vec<_>>(), [Some(3), None], "{inside}");
        assert_eq!(sessions.len(), 1);
    }
}

#[test]
fn a_run_of_a_stream_is_a_session_unless_it_goes_on_with_the_one_before() {
    let run = |session: &str, prompt: u64| {
        format!(
            r#"{{"type":"system","subtype":"init","session_id":"{session}"}}
{{"type":"assistant","session_id":"{session}","parent_tool_use_id":null,"message":{{"id":"m-{session}-{prompt}","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"t-{session}-{prompt}","name":"Task","input":{{}}}}],"usage":{{"input_tokens":{prompt},"output_tokens":5}}}}}}
{{"type":"user","session_id":"{session}","parent_tool_use_id":"t-{session}-{prompt}","message":{{"role":"user","content":"Look for {prompt}."}}}}
"#
        )
    };
    for (second, prompt, expected) in [
        ("b", 900, vec!["-1", "-1-side-1", "-2", "-2-side-1"]),
        ("b", 1_000, vec!["-1", "-1-side-1", "-2", "-2-side-1"]),
        ("b", 1_001, vec!["", "-side-1", "-side-2"]),
        ("a", 900, vec!["", "-side-1", "-side-2"]),
    ] {
        let text = run("a", 1_000) + &run(second, prompt);
        let sessions = read("claude-code", text.as_bytes()).unwrap();
        let mut ends = Vec::new();
        for session in &sessions {
            let (main, is_side) = match session.id().split_once("-side") {
                Some((main, _)) => (main, true),
                None => (session.id(), false),
            };
            assert_eq!(session.source().main.as_deref(), is_side.then_some(main));
            ends.push(&session.id()["file-one-123456".len()..]);
        }
        assert_eq!(ends, expected, "{second} {prompt}");
    }
}

#[test]
fn what_newer_versions_say_was_sent_is_read() {
    let attached = |uuid: &str, parent: &str, of: &str, more: &str| {
        format!(
            r#"{{"type":"attachment","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"s","attachment":{of}{more}}}"#
        )
    };
    let sent =
        r#","rendered":[{"content":"<system-reminder>\nIt is Friday.\n</system-reminder>"}]"#;
    let first = r#"{"type":"prompt_snapshot","systemPrompt":["You mend clocks.","Be brief."]}"#;
    let whole = r#"{"type":"prompt_snapshot","cliPrefix":"You are an agent.","systemPrompt":["You mend clocks.","Be brief."],"tools":[{"name":"Bash","schema":{"name":"Bash","input_schema":{}}}]}"#;
    let later = r#"{"type":"prompt_snapshot","systemPrompt":["Else."],"tools":[{"name":"Read","schema":{}}]}"#;
    let lines = [
        user("u", "", "Go."),
        attached("v", "u", r#"{"type":"date","date":"2026-11-27"}"#, sent),
        attached("w", "v", r#"{"type":"auto_mode","bypass":true}"#, sent),
        attached("x", "w", r#"{"type":"model","text":"Opus"}"#, ""),
        attached("y", "x", r#"{"type":"session_context","context":{}}"#, ""),
        attached("z", "y", first, ""),
        r#"{"type":"api-request-shape","sessionId":"s","shape":{"system":[]}}"#.to_owned(),
        r#"{"type":"api-request","sessionId":"s","params":{}}"#.to_owned(),
        model("a", "z", "1", r#"{"type":"text","text":"Done."}"#),
        attached("b", "a", whole, ""),
        attached("c", "b", later, r#","rendered":7"#),
        r#"{"type":"tools-used","sessionId":"s","tools":["Bash"]}"#.to_owned(),
    ];
    let sessions = read("claude-code", lines.join("\n").as_bytes()).expect("a good file");
    let parts = sessions[0].parts();
    let system = "You are an agent.\n\nYou mend clocks.\n\nBe brief.";
    assert_eq!(parts.system.as_deref(), Some(system));
    let tools = sessions[0].tools().iter().map(|tool| &*tool.name);
    assert_eq!(tools.collect::<Vec<_>>(), ["Bash"]);
    let reminder = "<system-reminder>\nIt is Friday.\n</system-reminder>";
    let texts = parts.messages[0].model_text();
    let texts: Vec<&str> = texts.iter().map(|it| &**it).collect();
    assert_eq!(texts, ["Go.", reminder, reminder, "Opus"]);
    assert!(parts.source.unknown.is_empty(), "{:?}", parts.source);
    round_trip(&sessions[0]);
}
