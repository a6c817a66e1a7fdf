//! The importers of pi, SWE-agent, Gemini CLI, aider and Grok Build.

use proctor_formats as import;
use proctor_sessions::{Session, Tag};

use super::{catalogue, check_fixture, outline, read, round_trip};
use crate::shared;

#[track_caller]
fn check(format: &str, lines: &[&str], expected: &str) -> Session {
    let text = lines.join("\n");
    let claimed = import::IMPORTERS.iter().find(|importer| importer.detect(text.as_bytes()));
    assert_eq!(claimed.map(proctor_formats::Importer::format), Some(format));
    let sessions = match read(format, text.as_bytes()) {
        Ok(sessions) => sessions,
        Err(error) => panic!("{error}"),
    };
    let [session] = <[Session; 1]>::try_from(sessions).expect("one session");
    assert_eq!(outline(&session), expected);
    round_trip(&session);
    session
}

const USAGE: &str = r#""usage":{"input":10,"output":5,"cacheRead":20,"cacheWrite":30}"#;

#[test]
fn pi_keeps_the_summary_of_a_compaction_and_what_stayed() {
    let lines = [
        r#"{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","provider":"p","modelId":"m"}"#,
        r#"{"type":"message","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"Read it."}]}}"#,
        &format!(
            r#"{{"type":"message","timestamp":"2026-01-01T00:00:02.000Z","message":{{"role":"assistant","content":[{{"type":"thinking","thinking":"Hm."}},{{"type":"toolCall","id":"t1","name":"read","arguments":{{"path":"a"}}}}],{USAGE}}}}}"#
        ),
        r#"{"type":"message","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"t1","content":[{"type":"text","text":"gone"}],"isError":true}}"#,
        r#"{"type":"message","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"It is gone."}]}}"#,
        r#"{"type":"message","timestamp":"2026-01-01T00:00:05.000Z","message":{"role":"bashExecution","command":"ls","output":"b","exitCode":0}}"#,
        r#"{"type":"message","timestamp":"2026-01-01T00:00:06.000Z","message":{"role":"assistant","content":[{"type":"text","text":"There is b."}]}}"#,
        r#"{"type":"compaction","timestamp":"2026-01-01T00:00:07.000Z","summary":"a is gone","firstKeptEntryIndex":5,"tokensBefore":900}"#,
        r#"{"type":"message","timestamp":"2026-01-01T00:00:08.000Z","message":{"role":"user","content":"Then b."}}"#,
        r#"{"type":"thinking_level_change","timestamp":"2026-01-01T00:00:09.000Z","thinkingLevel":"high"}"#,
    ];
    let session = check(
        "pi",
        &lines,
        r#"0 user[typed_user] "Read it."
1 model[] thinking "Hm.", read t1 {"path":"a"} = 10/30/0/20/5
2 user[] ->!t1 "gone"
3 model[] "It is gone."
4 user[meta] "$ ls\nb"
5 model[] "There is b."
6 user[typed_user] "Then b."
compaction before 6: - 900: (user[compact_summary] "a is gone"), kept 4..6
skipped: session: 1
skipped: thinking_level_change: 1
"#,
    );
    assert_eq!(session.model(), Some("m"));
}

#[test]
fn pi_writes_what_stayed_once_more() {
    let message = |id: &str, parent: &str, message: &str| {
        format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{message}}}"#)
    };
    let asked = r#"{"role":"user","content":"Read it.","timestamp":1}"#;
    let called = r#"{"role":"assistant","content":[{"type":"toolCall","id":"t1","name":"read","arguments":{"path":"a"}}],"timestamp":2}"#;
    let came = r#"{"role":"toolResult","toolCallId":"t1","content":[{"type":"text","text":"gone"}],"timestamp":3}"#;
    let told =
        r#"{"role":"assistant","content":[{"type":"text","text":"It is gone."}],"timestamp":4}"#;
    let edited = r#"{"role":"assistant","content":[{"type":"text","text":"Gone."}],"timestamp":4}"#;
    for (tail, after) in [
        (format!("{called},{came},{told}"), "kept 1..4"),
        (format!("{came},{edited}"), "(user[orphan] ->t1 \"gone\"), (model[] \"Gone.\")"),
    ] {
        let lines = [
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#.to_owned(),
            message("a", "null", asked),
            message("b", "\"a\"", called),
            message("c", "\"b\"", came),
            message("d", "\"c\"", told),
            format!(
                r#"{{"type":"compaction","id":"e","parentId":"d","summary":"a is gone","tokensBefore":900,"retainedTail":[{tail}]}}"#
            ),
            message("f", "\"e\"", r#"{"role":"user","content":"Then b."}"#),
            message("g", "\"f\"", r#"{"role":"user","content":"No."}"#),
            r#"{"type":"leaf","id":"h","parentId":"g","targetId":"f"}"#.to_owned(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        check(
            "pi",
            &lines,
            &format!(
                r#"0 user[typed_user] "Read it."
1 model[] read t1 {{"path":"a"}}
2 user[] ->t1 "gone"
3 model[] "It is gone."
4 user[typed_user] "Then b."
compaction before 4: - 900: (user[compact_summary] "a is gone"), {after}
skipped: entry of an abandoned branch: 1
skipped: leaf: 1
skipped: session: 1
"#
            ),
        );
    }
}

#[test]
fn pi_follows_the_branch_that_the_file_ends_in() {
    let message = |id: &str, parent: &str, role: &str, text: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"{role}","content":"{text}"}}}}"#
        )
    };
    let lines = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#.to_owned(),
        message("a", "null", "user", "One."),
        message("b", "\"a\"", "assistant", "Left."),
        message("c", "\"a\"", "assistant", "Right."),
        r#"{"type":"compaction","id":"d","parentId":"c","summary":"One, right.","firstKeptEntryId":"c","tokensBefore":9}"#.to_owned(),
        message("e", "\"d\"", "user", "Two."),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        "pi",
        &lines,
        r#"0 user[typed_user] "One."
1 model[] "Right."
2 user[typed_user] "Two."
compaction before 2: - 9: (user[compact_summary] "One, right."), kept 1..2
skipped: entry of an abandoned branch: 1
skipped: session: 1
"#,
    );
}

#[test]
fn swe_agent_tells_the_task_once_and_answers_by_lists() {
    let lines = [
        r#"{"environment":"e","trajectory":[{"action":"ls","observation":"b","response":"r","state":"{}"}],
"history":[
{"role":"system","content":"You mend.","agent":"main","message_type":"system_prompt"},
{"role":"user","content":"A demonstration.","agent":"main","is_demo":true},
{"role":"user","content":[{"type":"text","text":"Mend b."}],"agent":"main","message_type":"observation"},
{"role":"assistant","content":"Look.","thought":"Look.","action":"ls","agent":"main","tool_calls":[{"function":{"arguments":"{\"p\":1}","name":"bash"},"id":"c1","type":"function"}],"message_type":"action"},
{"role":"tool","content":"b","agent":"main","tool_call_ids":["c1"],"message_type":"observation"},
{"role":"assistant","content":"So:\n```\nedit b\n```","action":"edit b\n","agent":"main"},
{"role":"user","content":"edited","agent":"main"},
{"role":"assistant","content":"<command>\nls\n</command>","action":"ls","agent":"main"},
{"role":"user","content":"OBSERVATION:\nb","agent":"main"},
{"role":"assistant","content":"Done.","agent":"main"}],
"info":{"exit_status":"submitted"}}"#,
    ];
    let session = check(
        "swe-agent",
        &lines,
        r#"0 user[typed_user meta] "A demonstration.", "Mend b."
1 model[] "Look.", shell c1 {"p":1}
2 user[] ->c1 "b"
3 model[] "So:", edit action-1 {"command":"edit b\n"}
4 user[] ->action-1 "edited"
5 model[] shell action-2 {"command":"ls"}
6 user[] ->action-2 "OBSERVATION:\nb"
7 model[] "Done."
skipped: key `environment`: 1
skipped: key `info`: 1
skipped: key `trajectory`: 1
skipped: message key `action`: 1
skipped: message key `agent`: 10
skipped: message key `message_type`: 4
skipped: message key `thought`: 1
"#,
    );
    assert_eq!(session.system(), Some(&"You mend.".into()));
}

#[test]
fn gemini_writes_records_again_when_tools_were_called() {
    let lines = [
        r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z","kind":"main"}"#,
        r#"{"id":"a","timestamp":"2026-01-01T00:00:01.000Z","type":"info","content":"hello"}"#,
        r#"{"$set":{"lastUpdated":"2026-01-01T00:00:02.000Z"}}"#,
        r#"{"id":"b","timestamp":"2026-01-01T00:00:03.000Z","type":"user","content":[{"text":"Look."}]}"#,
        r#"{"id":"c","timestamp":"2026-01-01T00:00:04.000Z","type":"gemini","content":"I look.","thoughts":[{"subject":"Plan","description":"look"}],"tokens":{"input":100,"output":7,"cached":40,"thoughts":3,"tool":0,"total":110},"model":"g"}"#,
        r#"{"id":"c","timestamp":"2026-01-01T00:00:04.000Z","type":"gemini","content":"I look.","thoughts":[{"subject":"Plan","description":"look"}],"tokens":{"input":100,"output":7,"cached":40,"thoughts":3,"tool":0,"total":110},"model":"g","toolCalls":[{"id":"t1","name":"read_file","args":{"p":"x"},"result":[{"functionResponse":{"id":"t1","name":"read_file","response":{"output":"words"}}}],"status":"success"},{"id":"t2","name":"run_shell_command","args":{},"result":[{"functionResponse":{"id":"t2","name":"x","response":{"error":"no"}}}],"status":"error"},{"id":"t3","name":"glob","args":{},"status":"executing"}]}"#,
        r#"{"id":"d","timestamp":"2026-01-01T00:00:05.000Z","type":"gemini","content":"Words.","tokens":{"input":150,"output":2,"cached":0,"thoughts":0,"tool":0,"total":152},"model":"g"}"#,
        r#"{"id":"e","timestamp":"2026-01-01T00:00:06.000Z","type":"user","content":"<state_snapshot>words</state_snapshot>"}"#,
        r#"{"id":"f","timestamp":"2026-01-01T00:00:07.000Z","type":"user","content":"And now?"}"#,
    ];
    let expected = r#"0 user[typed_user] "Look."
1 model[] thinking "Plan\nlook", "I look.", read t1 {"p":"x"}, shell t2 {}, glob t3 {} = 60/0/0/40/10
2 user[] ->t1 "words", ->!t2 "no"
3 model[] "Words." = 150/0/0/0/2
4 user[typed_user] "And now?"
compaction before 4: - 0: (user[compact_summary] "<state_snapshot>words</state_snapshot>")
skipped: earlier form of a record: 1
skipped: header: HEADERS
skipped: info: 1
"#;
    let session = check("gemini-cli", &lines, &expected.replace("HEADERS", "2"));
    assert_eq!(session.model(), Some("g"));
    // The older layout: one object.
    let older = format!(
        "{},\"messages\":[{}]}}",
        lines[0].trim_end_matches('}'),
        [lines[1], &lines[3..].join(",")].join(",")
    );
    check("gemini-cli", &[&older], &expected.replace("HEADERS", "1"));
}

#[test]
fn gemini_goes_back_and_sets_its_messages_anew() {
    let header = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z"}"#;
    let said = |id: &str, kind: &str, text: &str| {
        format!(
            r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:01.000Z","type":"{kind}","content":"{text}"}}"#
        )
    };
    let lines = [
        header.to_owned(),
        said("a", "user", "One."),
        said("b", "gemini", "Wrong."),
        r#"{"$rewindTo":"b"}"#.to_owned(),
        said("c", "gemini", "Right."),
        format!(
            r#"{{"$set":{{"messages":[{},{}]}}}}"#,
            said("a", "user", "One!"),
            said("c", "gemini", "Right.")
        ),
        said("d", "user", "System: Please continue."),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        "gemini-cli",
        &lines,
        r#"0 user[typed_user] "One!"
1 model[] "Right."
2 user[meta] "System: Please continue."
skipped: header: 2
skipped: list of messages set anew: 1
skipped: rewind: 1
"#,
    );
}

#[test]
fn a_chat_of_gemini_keeps_its_calls_where_it_is_resumed_as_contents() {
    let time = r#""timestamp":"2026-01-01T00:00:01.000Z""#;
    let response = r#"{"functionResponse":{"id":"k","name":"read","response":{"output":"text"}}}"#;
    let set = format!(
        r#"{{"$set":{{"messages":[{{"id":"a",{time},"type":"user","content":"Go."}},
        {{"id":"b",{time},"type":"gemini","content":[{{"functionCall":{{"id":"k","name":"read","args":{{}}}}}}]}},
        {{"id":"b",{time},"type":"user","content":[{response}]}}]}}}}"#
    )
    .replace('\n', "");
    let call = format!(
        r#"{{"id":"b",{time},"type":"gemini","content":"","tokens":{{"input":9,"output":2,"cached":0,"thoughts":0,"tool":0,"total":11}},"toolCalls":[{{"id":"k","name":"read","args":{{}},"result":[{response}],"status":"success"}}]}}"#
    );
    let lines = [
        r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z"}"#.to_owned(),
        format!(r#"{{"id":"a",{time},"type":"user","content":"Go."}}"#),
        call,
        format!(r#"{{"id":"r",{time},"type":"user","content":[{response}]}}"#),
        set,
        format!(r#"{{"id":"d",{time},"type":"user","content":"And now?"}}"#),
    ];
    let sessions = read("gemini-cli", lines.join("\n").as_bytes()).unwrap();
    let session = &sessions[0];
    let results = session.messages().iter().flat_map(|it| it.tool_results());
    assert_eq!((session.messages().len(), results.count()), (3, 1));
    assert!(session.messages()[1].details.usage.is_some());
}

#[test]
fn a_chat_of_a_sub_agent_of_gemini_belongs_to_the_session_that_its_folder_names() {
    let text = std::fs::read_to_string(super::fixture("gemini-cli/chat.jsonl")).expect("a fixture");
    for (kind, main) in [("main", None), ("subagent", Some("some"))] {
        let text = text.replacen(r#""kind":"main""#, &format!(r#""kind":"{kind}""#), 1);
        let sessions = super::read("gemini-cli", text.as_bytes()).expect("a good file");
        assert_eq!(sessions[0].source().main.as_deref(), main);
        let mut messages = sessions[0].messages().iter();
        assert!(messages.all(|said| said.has_tag(Tag::Sidechain) == main.is_some()));
    }
}

#[test]
fn a_chat_of_gemini_that_is_resumed_is_not_compacted_again() {
    let header = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z"}"#;
    let said = |id: &str, kind: &str, text: &str| {
        format!(
            r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:01.000Z","type":"{kind}","content":"{text}"}}"#
        )
    };
    let set = |list: &[&str]| format!(r#"{{"$set":{{"messages":[{}]}}}}"#, list.join(","));
    let setup = said("a", "user", "This is the Gemini CLI. We set up.");
    let state = said("s", "user", "<state_snapshot>Done.</state_snapshot>");
    let ack = said("t", "gemini", "Got it. Thanks for the additional context!");
    let [three, four] = [said("d", "user", "Two."), said("e", "gemini", "Second.")];
    let lines = [
        header.to_owned(),
        set(&[&setup]),
        said("b", "user", "One."),
        said("c", "gemini", "First."),
        set(&[&setup, &state, &ack]),
        three.clone(),
        four.clone(),
        // A new process sets up its context, and then takes up the chat.
        header.to_owned(),
        set(&[&setup]),
        set(&[&setup, &state, &ack, &three, &four]),
        said("f", "user", "Three."),
        said("g", "gemini", "Third."),
    ];
    let sessions = super::read("gemini-cli", lines.join("\n").as_bytes()).expect("a good file");
    let [session] = &sessions[..] else {
        panic!("{} sessions", sessions.len());
    };
    assert_eq!(session.calls().len(), 3);
    assert_eq!(session.compactions().len(), 1);
}

#[test]
fn messages_that_gemini_sets_anew_with_a_snapshot_are_what_a_compaction_left() {
    let said = |id: &str, kind: &str, rest: &str| {
        format!(r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:01.000Z","type":"{kind}",{rest}}}"#)
    };
    let first = said("a", "user", r#""content":"One.""#);
    let answer = said(
        "b",
        "gemini",
        r#""content":"I read.","toolCalls":[{"id":"t1","name":"read_file","args":{},"result":[{"functionResponse":{"response":{"output":"words"}}}]}]"#,
    );
    let last = said("c", "gemini", r#""content":"Read.""#);
    let set = [
        said(
            "s",
            "user",
            r#""content":[{"text":"<state_snapshot>One was read.</state_snapshot>"}]"#,
        ),
        said("k", "gemini", r#""content":"I know.""#),
        answer.clone(),
        last.clone(),
    ];
    let lines = [
        r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z"}"#.to_owned(),
        first,
        answer,
        last,
        format!(r#"{{"$set":{{"messages":[{}]}}}}"#, set.join(",")),
        said("d", "user", r#""content":"Two.","model":7"#),
        said("e", "gemini", r#""content":"Yes.","thoughts":"none""#),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        "gemini-cli",
        &lines,
        r#"0 user[typed_user] "One."
1 model[] "I read.", read t1 {}
2 user[] ->t1 "words"
3 model[] "Read."
4 user[typed_user] "Two."
5 model[] "Yes."
compaction before 4: - 0: (user[compact_summary] "<state_snapshot>One was read.</state_snapshot>"), (model[] "I know."), kept 1..4
skipped: header: 1
skipped: list of messages set anew: 1
warning: the key `model` is of an odd type and is left out: 1
warning: the key `thoughts` is of an odd type and is left out: 1
"#,
    );
}

#[test]
fn pi_reads_entries_with_keys_of_odd_types() {
    let lines = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#,
        r#"{"type":"message","timestamp":5,"summary":[],"message":{"role":"user","content":"One.","model":{}}}"#,
        r#"{"type":7,"timestamp":"2026-01-01T00:00:00.000Z"}"#,
    ];
    check(
        "pi",
        &lines,
        r#"0 user[typed_user] "One."
skipped: session: 1
unknown: entry without type: 1
warning: the key `model` is of an odd type and is left out: 1
warning: the key `summary` is of an odd type and is left out: 1
warning: the key `timestamp` is of an odd type and is left out: 1
warning: the key `type` is of an odd type and is left out: 1
"#,
    );
}

#[test]
fn pi_ends_in_a_branch_that_begins_anew() {
    let lines = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#,
        r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"One."}}"#,
        r#"{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":"Yes."}}"#,
        r#"{"type":"message","id":"c","parentId":null,"message":{"role":"user","content":"Anew."}}"#,
    ];
    check(
        "pi",
        &lines,
        r#"0 user[typed_user] "Anew."
skipped: entry of an abandoned branch: 2
skipped: session: 1
"#,
    );
}

#[test]
fn pi_is_known_without_its_first_line() {
    check(
        "pi",
        &[
            r#"{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"Which lamp?","timestamp":1}}"#,
            r#"{"type":"message","id":"c","parentId":"b","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant","content":[{"type":"text","text":"The third."}],"timestamp":2}}"#,
        ],
        "0 user[typed_user] \"Which lamp?\"\n1 model[] \"The third.\"\n",
    );
}

#[test]
fn pi_follows_the_line_before_where_a_parent_cannot_be_read() {
    let said = |id: &str, parent: &str, role: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"{role}","content":[{{"type":"text","text":"{id}"}}]}}}}"#
        )
    };
    let lines = [
        r#"{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#
            .to_owned(),
        said("a", "null", "user"),
        said("b", "\"a\"", "assistant"),
        said("c", "\"b\"", "user")[..30].to_owned(),
        said("d", "\"c\"", "assistant"),
        said("e", "\"d\"", "user"),
    ];
    check(
        "pi",
        &lines.each_ref().map(String::as_str),
        r#"0 user[typed_user] "a"
1 model[] "b"
2 model[] "d"
3 user[typed_user] "e"
skipped: session: 1
warning: line 4 is no JSON and is left out: 1
"#,
    );
}

#[test]
fn shared_sessions_of_other_agents_are_read_whole() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("CATALOG.md")).expect("the catalogue");
    for (product, files) in [("pi", 1), ("gemini-cli", 1), ("swe-agent", 14)] {
        let rows = catalogue(product, &text);
        assert_eq!(rows.len(), files, "{product}");
        for (file, calls, compactions) in rows {
            let sessions = import::load(&folder.join(product).join(&file)).expect("a good file");
            let [session] = &sessions[..] else {
                panic!("{file}: {} sessions", sessions.len());
            };
            assert_eq!(session.source().format, product, "{file}");
            let messages = session.messages();
            let uses: usize = messages.iter().map(|one| one.tool_uses().count()).sum();
            let results: usize = messages.iter().map(|one| one.tool_results().count()).sum();
            println!(
                "{file}: {} messages, {} calls, {uses} uses of {calls}, {results} results, {:?}",
                messages.len(),
                session.calls().len(),
                session.source(),
            );
            assert!(session.source().unknown.is_empty(), "{file}");
            assert!(messages.iter().all(|one| !one.has_tag(Tag::Orphan)), "{file}");
            assert_eq!(session.compactions().len(), compactions, "{file}");
            // The catalogue counts a last step that is not in the history.
            let calls = calls - usize::from(file.contains("BabyEncryption"));
            assert_eq!(uses, calls, "{file}");
            // The last action may end the run before anything came of it; of pi's calls some were
            // stopped.
            let stopped = if product == "pi" { 6 } else { 1 };
            assert!(results + stopped >= uses, "{file}: {results} of {uses}");
            round_trip(session);
        }
    }
}

#[test]
fn pis_newest_versions_say_what_the_system_prompt_and_the_tools_are() {
    let lines = [
        r#"{"type":"session","version":3,"id":"s","cwd":"/w"}"#,
        r#"{"type":"message","id":"a","parentId":null,"message":{"role":"system","content":"","sections":{"preamble":"You mend clocks.","rules":"Be brief.","odd":7},"toolsAdded":[{"name":"bash","parameters":{}}]}}"#,
        r#"{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"Go."}}"#,
        r#"{"type":"message","id":"c","parentId":"b","message":{"role":"assistant","content":[{"type":"text","text":"Done."}]}}"#,
        r#"{"type":"message","id":"d","parentId":"c","message":{"role":"system","sections":{"preamble":"Else."}}}"#,
    ];
    let sessions = read("pi", lines.join("\n").as_bytes()).expect("a good file");
    let parts = sessions[0].parts();
    assert_eq!(parts.system.as_deref(), Some("You mend clocks.\n\nBe brief."));
    let tools = sessions[0].tools().iter().map(|tool| &*tool.name);
    assert_eq!(tools.collect::<Vec<_>>(), ["bash"]);
    assert_eq!(parts.messages.len(), 2);
    assert!(parts.source.unknown.is_empty(), "{:?}", parts.source);
}

#[test]
fn each_chat_of_aider_is_a_session() {
    let sessions = check_fixture(
        "aider/history.md",
        "aider",
        &[
            r#"0 user[typed_user] "Which wheel is worn?\nSay it briefly."
1 model[] "Wheel two:\n\nmill.txt\n```\n<<<<<<< SEARCH\ntwo turns\n=======\ntwo worn\n>>>>>>> REPLACE\n```\n\nIt squeaks."
2 user[typed_user] "/ask Why?"
3 model[] "It was never oiled."
skipped: command of the user's: 2
skipped: line of the product's: 6
warning: the files and the system prompt of a chat are not recorded: 1
"#,
            r#"0 user[typed_user] "Oil it."
1 model[] "Oiled."
skipped: line of the product's: 1
warning: the files and the system prompt of a chat are not recorded: 1
"#,
        ],
    );
    assert_eq!(sessions[0].model(), Some("some-model"));
}

#[test]
fn a_session_of_grok_build_is_read_line_by_line() {
    check_fixture(
        "grok-build/chat_history.jsonl",
        "grok-build",
        &[
            r#"0 user[typed_user meta] "<user_info>Folder: /home/dev/hedges</user_info>", "Which hedge is too high?"
1 model[] thinking "Measure all of them.", "I measure.", shell h1 {"command":"cat hedges"}, read h2 {"target_file":"rules.md"}
2 user[] ->h1 "east 180\nwest 260\n", ->h2 "At most 200."
3 model[] thinking "West is over.", "The west hedge is 60 too high."
4 user[typed_user] "Cut it."
5 model[] edit h3 {"file_path":"hedges","old_string":"260","new_string":"200"}
6 user[] ->h3 "done"
7 model[] "It is 200 now."
"#,
        ],
    );
}
