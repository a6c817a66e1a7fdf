//! The importer of OpenHands: events of both versions, in lists, rows and folders.

use proctor_formats as import;
use proctor_sessions::units::{Timestamp, Tokens};
use proctor_sessions::{Session, Tag};

use super::{catalogue, fixture, outline, read, round_trip};
use crate::shared;

#[track_caller]
fn check(name: &str, expected: &[&str]) -> Vec<Session> {
    let sessions = import::load(&fixture(name)).expect("a good file");
    let got: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(got, expected);
    for session in &sessions {
        assert_eq!(session.source().format, "openhands");
        round_trip(session);
    }
    sessions
}

#[test]
fn a_trajectory_of_version_0_is_read_with_its_condensation() {
    let sessions = check(
        "openhands/trajectory.json",
        &[
            r#"0 user[typed_user meta] "Which kettle leaks?", image "https://example.org/kettle.png", "Kettles are numbered.", "Mind the steam."
1 model[] "I look at both kettles.", shell k1 {"command": "cat east.log"}, edit k2 {"command": "view", "path": "west.log"} = 900/0/0/0/40
2 user[] ->k1 "dry\n[exit 0]", ->!k2 "no such file"
3 user[meta] "$ ls", "west.txt"
4 model[] "Look again?" = 1100/100/0/900/70
5 user[typed_user] "Yes."
6 model[] "West leaks.", other k3 {"message": "West leaks."} = 400/0/0/1000/20
compaction before 3: - 900: (user[typed_user] "Which kettle leaks?", image "https://example.org/kettle.png"), (user[compact_summary] "East is dry."), (model[] edit k2 {"command": "view", "path": "west.log"}), (user[] ->!k2 "no such file")
skipped: event agent_state_changed: 1
skipped: event recall: 1
skipped: event system: 1
warning: times are without a zone and were taken for UTC: 1
"#,
        ],
    );
    let session = &sessions[0];
    assert_eq!(session.system(), Some(&"You mend kettles.".into()));
    assert_eq!(session.tools().len(), 1);
    assert_eq!(session.model(), Some("some-model"));
    let time: jiff::Timestamp = "2026-03-01T09:00:04.500Z".parse().expect("a time");
    assert_eq!(session.message(1).details.timestamp, Some(Timestamp(time.as_millisecond())));
}

#[test]
fn rows_of_an_evaluation_are_sessions_and_their_oldest_records_have_no_ids() {
    check(
        "openhands/output.jsonl",
        &[
            r#"0 user[typed_user] "Cool it."
1 model[] "I add ice.", shell call-2 {"command":"touch ice","keep_prompt":true}
2 user[] ->call-2 ""
3 model[] "Cool now.", other call-4 {"outputs":{}}
skipped: key `instance_id`: 1
skipped: key `instruction`: 1
skipped: key `test_result`: 1
warning: a call is told by its action, not by the model's response: 2
warning: a tool result does not say what it answers; it was paired by order: 1
"#,
            r#"0 user[typed_user] "Cool it."
1 model[] "I add ice.", shell call-3 {"command":"touch ice","keep_prompt":true}
2 user[] ->call-3 ""
skipped: event null: 1
skipped: key `instance_id`: 1
skipped: key `instruction`: 1
skipped: key `test_result`: 1
warning: a call is told by its action, not by the model's response: 1
warning: a tool result does not say what it answers; it was paired by order: 1
"#,
        ],
    );
}

#[test]
fn a_folder_of_version_1_is_one_session() {
    let sessions = check(
        "openhands/conversation",
        &[
            r#"0 user[typed_user] "Why is it late?", image "https://example.org/clock.png", "Clocks have gears."
1 model[] thinking "Read both.", "Two logs.", shell t1 {"command": "cat a"}, shell t2 {"command": "cat b"} = 200/800/0/0/50
2 user[] ->t1 "worn\n[exit 0]\n[Command finished with exit code 0]", ->!t2 "no such file"
3 model[] "A gear is worn." = 200/400/0/900/20
4 user[typed_user] "Mend it."
compaction before 3: - 1000 = 700/0/0/0/30: kept 0..1, (user[compact_summary] "One gear is worn.")
skipped: event ConversationStateUpdateEvent: 1
skipped: event SystemPromptEvent: 1
skipped: state: 1
warning: times are without a zone and were taken for UTC: 1
"#,
        ],
    );
    let session = &sessions[0];
    assert_eq!(session.system(), Some(&"You mend clocks.".into()));
    assert_eq!(&*session.tools()[0].name, "terminal");
    assert_eq!(session.model(), Some("some-model"));
    assert_eq!(session.context_window(), Some(Tokens(180_000)));
    assert!(session.id().starts_with("conversation-"), "{}", session.id());
}

#[test]
fn events_of_version_1_are_read_in_lists_and_rows_too() {
    let folder = fixture("openhands/conversation/events");
    let mut events: Vec<String> = Vec::new();
    for path in shared::files(&folder) {
        events.push(std::fs::read_to_string(path).expect("readable"));
    }
    let list = format!("[{}]", events.join(","));
    let rows = format!("{{\"instance_id\":\"a\",\"history\":{list}}}");
    for text in [list, rows, events.concat()] {
        let importers = import::IMPORTERS.iter();
        let claimed = importers.filter(|importer| importer.detect(text.as_bytes()));
        let claimed: Vec<&str> = claimed.map(proctor_formats::Importer::format).collect();
        assert_eq!(claimed, ["openhands"]);
        let sessions = read("openhands", text.as_bytes()).expect("a good file");
        assert_eq!(sessions[0].messages().len(), 5);
        assert_eq!(sessions[0].compactions().len(), 1);
    }
}

#[test]
fn what_the_user_went_back_from_is_left_out_and_the_model_is_shown_what_tools_said() {
    let text = r#"[
{"id":"a","parent_id":null,"kind":"MessageEvent","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"Sort the nails."}]}},
{"id":"b","parent_id":"a","kind":"ActionEvent","source":"agent","thought":[{"type":"text","text":""}],"action":{},"tool_name":"terminal","tool_call_id":"t1","tool_call":{"id":"t1","name":"terminal","arguments":"{}","origin":"completion"},"llm_response_id":"r1"},
{"id":"c","parent_id":"b","kind":"ObservationEvent","source":"environment","tool_name":"terminal","tool_call_id":"t1","action_id":"b","observation":{"kind":"TerminalObservation","content":[{"type":"text","text":"long"}],"is_error":true,"metadata":{"prefix":"","suffix":"\n[done]","working_dir":"/shed","py_interpreter_path":"","exit_code":1}}},
{"id":"d","parent_id":"c","kind":"MessageEvent","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"By length."}]}},
{"id":"s","parent_id":"d","kind":"SecurityAnalysisEvent","source":"environment"},
{"id":"e","parent_id":"c","kind":"MessageEvent","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"By colour."}]}},
{"id":"f","parent_id":"e","kind":"ActionEvent","source":"agent","thought":[],"action":{},"tool_name":"terminal","tool_call_id":"t2","tool_call":{"id":"t2","name":"terminal","arguments":"{}","origin":"completion"},"llm_response_id":"r2"},
{"id":"g","parent_id":"f","kind":"UserRejectObservation","source":"environment","tool_name":"terminal","tool_call_id":"t2","action_id":"f","rejection_reason":"too loud"},
{"id":"i","parent_id":"g","kind":"InterruptEvent","source":"user"}]"#;
    let sessions = read("openhands", text.as_bytes()).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "Sort the nails."
1 model[] shell t1 {}
2 user[typed_user] ->!t1 "[An error occurred during execution.]\n"+"long\n[done]\n[Current working directory: /shed]\n[Command finished with exit code 1]", "By colour."
3 model[] shell t2 {}
4 user[] ->!t2 "Action rejected: too loud"
skipped: event InterruptEvent: 1
skipped: event SecurityAnalysisEvent: 1
skipped: event of an abandoned branch: 1
"#
    );
    round_trip(&sessions[0]);
}

#[test]
fn half_a_pair_is_forgotten_with_the_other_half() {
    let text = r#"[
{"id":1,"source":"user","action":"message","args":{"content":"Wash it."}},
{"id":2,"source":"agent","action":"run","args":{"command":"tap"}},
{"id":3,"source":"agent","observation":"run","cause":2,"content":"wet"},
{"id":4,"source":"agent","action":"run","args":{"command":"soap"}},
{"id":5,"source":"agent","observation":"run","cause":4,"content":"foam"},
{"id":6,"source":"agent","action":"run","args":{"command":"rub"}},
{"id":7,"source":"agent","observation":"run","cause":6,"content":"clean"},
{"id":8,"source":"agent","action":"run","args":{"command":"dry"}},
{"id":9,"source":"agent","action":"condensation","args":{"forgotten_event_ids":[2,7],"summary":"Wet.","summary_offset":1}},
{"id":10,"source":"agent","observation":"run","cause":8,"content":"dry"}]"#;
    let sessions = read("openhands", text.as_bytes()).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "Wash it."
1 model[] shell call-2 {"command":"tap"}
2 user[] ->call-2 "wet"
3 model[] shell call-4 {"command":"soap"}
4 user[] ->call-4 "foam"
5 model[] shell call-6 {"command":"rub"}
6 user[] ->call-6 "clean"
7 model[] shell call-8 {"command":"dry"}
8 user[] ->call-8 "dry"
compaction before 8: - 0: kept 0..1, (user[compact_summary] "Wet."), kept 3..5, kept 7..8
warning: a call is told by its action, not by the model's response: 4
"#
    );
    round_trip(&sessions[0]);
}

#[test]
fn a_folder_that_is_not_whole_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let events = folder.path().join("events");
    std::fs::create_dir(&events).expect("the folder can be written to");
    let write = |name: &str, text: &str| {
        std::fs::write(events.join(name), text).expect("the folder can be written to");
    };
    write("1.json", r#"{"id":1,"source":"user","action":"message","args":{"content":"Go."}}"#);
    write("2.json", r#"{"id":2,"source":"agent","action":"mes"#);
    let openhands = import::importer("openhands").expect("a format");
    let sessions = import::load_as(folder.path(), openhands).expect("the first event is whole");
    assert_eq!(
        outline(&sessions[0]),
        "0 user[typed_user] \"Go.\"\nwarning: a file is empty or cut and is left out: 1\n"
    );
    write("3.json", r#"{"id":3,"source":"user","action":"message","args":{"content":"On."}}"#);
    write("4.json", "");
    let sessions = import::load_as(folder.path(), openhands).expect("two events are whole");
    assert_eq!(
        outline(&sessions[0]),
        "0 user[typed_user] \"Go.\", \"On.\"\nwarning: a file is empty or cut and is left out: 2\n"
    );
}

#[test]
fn odd_events_are_kept_and_counted() {
    let text = r#"[
{"id":5,"source":"agent","action":"run","args":{"command":"ls"},"timestamp":7},
{"id":5,"source":"agent","action":"run","args":"no","tool_call_metadata":{"tool_call_id":"c","model_response":{"id":"r","choices":[{"message":{"content":"x","tool_calls":[{"id":"c","function":{"name":"a","arguments":"{"}},{"id":"d"}]}}],"usage":{"prompt_tokens":-1}}}},
{"id":6,"source":"agent","observation":"run","cause":99,"content":["a",7]},
{"id":7,"kind":"Dream","source":"agent"},
{"kind":"Condensation","forgotten_event_ids":["5","nobody"],"summary":"s","summary_offset":-4},
{"what":1},
8]"#;
    let sessions = read("openhands", text.as_bytes()).expect("odd, but read");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 model[] shell call-5 {"command":"ls"}
1 model[] "x", shell c "{"
2 user[meta] "a", <malformed>, <Dream>
3 user[meta] <event>, <event>
compaction before 3: - 0: (user[compact_summary] "s"), kept 1..3
skipped: forgotten event that is not shown: 1
unknown: block event: 2
unknown: block malformed: 1
unknown: event Dream: 1
warning: a call is told by its action, not by the model's response: 1
warning: a call of a response was never made and is left out: 1
warning: a timestamp cannot be read: 1
warning: a usage counter is no count and was taken as zero: 1
warning: an observation answers no call; it is kept as the user's: 1
warning: tool arguments are no JSON; they are kept as a string: 1
"#
    );
    round_trip(&sessions[0]);
}

#[test]
fn shared_openhands_sessions_are_read_whole() {
    let Some(folder) = shared::folder("sessions/openhands") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("../CATALOG.md")).expect("the catalogue");
    let rows = catalogue("openhands", &text);
    assert_eq!(rows.len(), 5);
    for (file, calls, compactions) in rows {
        let sessions = import::load(&folder.join(&file)).expect("a good file");
        let [session] = &sessions[..] else {
            panic!("{file}: {} sessions", sessions.len());
        };
        let messages = session.messages();
        let uses: usize = messages.iter().map(|one| one.tool_uses().count()).sum();
        let results: usize = messages.iter().map(|one| one.tool_results().count()).sum();
        let billed = messages.iter().filter(|one| one.details.usage.is_some()).count();
        println!("{file}: {billed} billed, {:?}", session.source());
        assert_eq!(uses, calls, "{file}: tool calls");
        assert_eq!(results, calls - 1, "{file}: results");
        assert_eq!(session.calls().len(), calls, "{file}: API calls");
        assert_eq!(session.compactions().len(), compactions, "{file}");
        assert!(session.source().unknown.is_empty(), "{file}");
        assert!(messages.iter().all(|one| !one.has_tag(Tag::Orphan)), "{file}");
        // Records of evaluations say what each response cost; the oldest ones do not.
        let expected = if file.starts_with("resolver") { 0 } else { calls };
        assert_eq!(billed, expected, "{file}: bills");
        round_trip(session);
    }
}
