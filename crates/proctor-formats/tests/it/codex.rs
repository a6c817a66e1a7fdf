//! The importer of Codex's rollouts.

use proctor_formats as import;
use proctor_sessions::units::Tokens;
use proctor_sessions::{CompactedTo, Recorded, Tag};
use proptest::prelude::*;

use super::{catalogue, fixture, outline, read, round_trip};
use crate::shared;

const OUTLINE: &str = r#"0 user[typed_user meta] "Stay in the folder.", "<environment_context>\n  <cwd>/work/clock</cwd>\n</environment_context>", "Why is it late?", image "data:image/png;base64,AAAA"
1 model[] thinking "Look at the gears.", "I will look.", shell c1 {"cmd":"ls"}, edit c2 "*** Begin Patch\n*** End Patch", <web_search_call> = 600/0/0/400/50
2 user[] ->c1 "gear.txt", ->!c2 "no patch"
3 model[] thinking "", "One gear is worn." = 100/0/0/1000/30
4 user[typed_user] "Mend it."
5 model[] shell c3 "mend"
6 user[meta] "<turn_aborted>\nThe user stopped it.\n</turn_aborted>"
7 model[] "It stands."
compaction before 4: auto 1100: (user[typed_user] "Why is it late?"), (model[] "A worn gear.")
compaction before 6: auto 1150: encrypted
skipped: bill of no call: 1
skipped: event_msg/context_compacted: 1
skipped: event_msg/task_started: 1
skipped: event_msg/token_count: 5
skipped: event_msg/turn_aborted: 1
skipped: event_msg/user_message: 1
skipped: session_meta: 2
skipped: turn_context: 1
warning: tool arguments are no JSON; they are kept as a string: 1
"#;

#[test]
fn a_rollout_is_read_call_by_call() {
    let sessions = import::load(&fixture("codex/rollout.jsonl")).expect("a good file");
    let [session] = &sessions[..] else {
        panic!("{} sessions", sessions.len());
    };
    assert_eq!(outline(session), OUTLINE);
    assert_eq!(session.source().format, "codex");
    assert_eq!(session.source().version.as_deref(), Some("0.141.0"));
    let reasoning = session.messages().iter().map(|it| it.details.reasoning.0);
    assert_eq!(reasoning.collect::<Vec<_>>(), [0, 20, 0, 0, 0, 0, 0, 0]);
    assert_eq!(session.system(), Some(&"You mend clocks.".into()));
    assert_eq!(session.model(), Some("some-codex"));
    assert_eq!(session.context_window(), Some(Tokens(128_000)));
    assert_eq!(session.calls().len(), 4);
    round_trip(session);
}

#[test]
fn the_first_versions_wrote_items_without_a_wrapper() {
    let lines = [
        r#"{"id":"a","timestamp":"2025-09-01T10:00:00.000Z","instructions":"You mend clocks.","git":{}}"#,
        r#"{"record_type":"state"}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Why is it late?"}]}"#,
        r#"{"type":"reasoning","summary":[],"encrypted_content":null}"#,
        r#"{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"gear\",\"metadata\":{}}"}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Worn."}]}"#,
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("rollout.jsonl");
    std::fs::write(&path, lines.join("\n")).expect("the folder can be written to");
    let sessions = import::load(&path).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "Why is it late?"
1 model[] shell c1 {"command":["ls"]}
2 user[] ->c1 "{\"output\":\"gear\",\"metadata\":{}}"
3 model[] "Worn."
skipped: reasoning that is not shown: 1
skipped: session_meta: 1
skipped: state: 1
"#
    );
    assert_eq!(sessions[0].system(), Some(&"You mend clocks.".into()));
}

#[test]
fn what_another_agent_wrote_is_text_of_the_product() {
    check(
        &[
            SAID,
            r#"response_item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I ask."}]}"#,
            r#"response_item {"type":"agent_message","author":"gears","content":[{"type":"input_text","text":"One gear is worn."},{"type":"encrypted_content","encrypted_content":"c2Vj"}]}"#,
            r#"response_item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is worn."}]}"#,
        ],
        r#"0 user[typed_user] "Why is it late?"
1 model[] "I ask."
2 user[meta] "One gear is worn.", <encrypted_content>
3 model[] "It is worn."
"#,
    );
}

fn lines(payloads: &[&str]) -> String {
    let mut lines = String::new();
    for (at, payload) in payloads.iter().enumerate() {
        let (kind, payload) = payload.split_once(' ').expect("a type and a payload");
        let time = format!("2026-03-01T09:00:00.{at:03}Z");
        let line = format!(r#"{{"timestamp":"{time}","type":"{kind}","payload":{payload}}}"#);
        lines += &(line + "\n");
    }
    lines
}

#[track_caller]
fn check(payloads: &[&str], expected: &str) {
    let sessions = read("codex", lines(payloads).as_bytes()).expect("a good file");
    assert_eq!(outline(&sessions[0]), expected);
    round_trip(&sessions[0]);
}

const SAID: &str = r#"response_item {"type":"message","role":"user","content":[{"type":"input_text","text":"Why is it late?"}]}"#;

fn bill(input: u64) -> String {
    format!(
        r#"event_msg {{"type":"token_count","info":{{"last_token_usage":{{"input_tokens":{input},"output_tokens":5}}}}}}"#
    )
}

fn call(id: &str) -> String {
    format!(
        r#"response_item {{"type":"function_call","name":"shell","arguments":"{{}}","call_id":"{id}"}}"#
    )
}

fn output(id: &str) -> String {
    format!(r#"response_item {{"type":"function_call_output","call_id":"{id}","output":"{id}!"}}"#)
}

#[test]
fn calls_whose_results_stand_between_them_are_one_response_if_they_are_billed_as_one() {
    let (c1, c2, c3) = (call("c1"), call("c2"), call("c3"));
    let (o1, o2, o3) = (output("c1"), output("c2"), output("c3"));
    let (b1, b2) = (bill(100), bill(200));
    check(
        &[SAID, &c1, &o1, &c2, &o2, &b1, &c3, &o3, &b2],
        r#"0 user[typed_user] "Why is it late?"
1 model[] shell c1 {}, shell c2 {} = 100/0/0/0/5
2 user[] ->c1 "c1!", ->c2 "c2!"
3 model[] shell c3 {} = 200/0/0/0/5
4 user[] ->c3 "c3!"
skipped: event_msg/token_count: 2
"#,
    );
    // Words after a result are another response's, and so is what stands before its own bill.
    let words = r#"response_item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Well."}]}"#;
    check(
        &[SAID, &c1, &o1, words, &c2, &o2, &b1, &c3, &b2, &o3],
        r#"0 user[typed_user] "Why is it late?"
1 model[] shell c1 {}
2 user[] ->c1 "c1!"
3 model[] "Well.", shell c2 {} = 100/0/0/0/5
4 user[] ->c2 "c2!"
5 model[] shell c3 {} = 200/0/0/0/5
6 user[] ->c3 "c3!"
skipped: event_msg/token_count: 2
"#,
    );
}

#[test]
fn a_summary_alone_follows_what_the_user_typed_of_late() {
    let long = format!(
        r#"response_item {{"type":"message","role":"user","content":[{{"type":"input_text","text":"{}"}}]}}"#,
        "ab".repeat(50_000)
    );
    let compacted = r#"compacted {"message":"A worn gear."}"#;
    let c1 = call("c1");
    check(
        &[SAID, &c1, compacted],
        r#"0 user[typed_user] "Why is it late?"
1 model[] shell c1 {}
compaction before 2: - 0: (user[typed_user] "Why is it late?"), (user[compact_summary] "A worn gear.")
"#,
    );
    let text = lines(&[&long, &c1, SAID, compacted]);
    let sessions = read("codex", text.as_bytes()).expect("a good file");
    let CompactedTo::Replaced(pieces) = &sessions[0].compactions()[0].after else {
        panic!("a readable compaction");
    };
    let texts: Vec<&str> = pieces
        .iter()
        .filter_map(|piece| match piece {
            Recorded::Written(message) => Some(&*message.model_text()[0]),
            Recorded::Kept(_) | Recorded::Edited { .. } => None,
        })
        .collect();
    let [cut, whole, summary] = texts[..] else {
        panic!("{} pieces", texts.len());
    };
    // The newest stands whole, the older one is cut to what is left of 80,000 bytes.
    assert_eq!((whole, summary), ("Why is it late?", "A worn gear."));
    assert_eq!(cut.len(), 80_000 - whole.len() - 1 + "…".len());
}

/// A message of the user's or the model's.
fn message(role: &str, text: &str) -> String {
    format!(
        r#"response_item {{"type":"message","role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}"#
    )
}

#[test]
fn turns_that_were_rolled_back_are_left_out() {
    let said: Vec<String> = [
        ("user", "One."),
        ("assistant", "Done."),
        ("user", "Two, wrong."),
        ("assistant", "Wrong."),
        ("user", "Three, wrong."),
    ]
    .iter()
    .map(|(role, text)| message(role, text))
    .collect();
    let mut payloads: Vec<&str> = said.iter().map(String::as_str).collect();
    let first = bill(100);
    payloads.insert(2, &first);
    payloads.push(r#"event_msg {"type":"thread_rolled_back","num_turns":2}"#);
    let [user, model, second] =
        [message("user", "Two."), message("assistant", "Right."), bill(120)];
    payloads.extend([&*user, &*model, &*second]);
    check(
        &payloads,
        r#"0 user[typed_user] "One."
1 model[] "Done." = 100/0/0/0/5
2 user[typed_user] "Two."
3 model[] "Right." = 120/0/0/0/5
skipped: event_msg/thread_rolled_back: 1
skipped: event_msg/token_count: 2
warning: abandoned branch: a turn the user went back from is left out: 2
"#,
    );
}

#[test]
fn a_call_is_billed_once_in_either_shape() {
    let usage = r#"{"input_tokens":100,"cached_input_tokens":20,"output_tokens":5}"#;
    let record = format!(r#"token_usage_record {{"thread_id":"a","usage":{usage}}}"#);
    let count = format!(
        r#"event_msg {{"type":"token_count","info":{{"last_token_usage":{usage},"total_token_usage":{usage}}}}}"#
    );
    let [user, model] = [message("user", "One."), message("assistant", "Done.")];
    check(
        &[&user, &model, &record, &count],
        r#"0 user[typed_user] "One."
1 model[] "Done." = 80/0/0/20/5
skipped: bill that was written twice: 1
skipped: event_msg/token_count: 1
skipped: token_usage_record: 1
"#,
    );
}

#[test]
fn an_answer_that_is_a_summary_is_no_call() {
    let record = |id: &str, input: u64| {
        format!(
            r#"token_usage_record {{"response_id":"{id}","usage":{{"input_tokens":{input},"output_tokens":5}}}}"#
        )
    };
    let [user, model, after] = [
        message("user", "One."),
        message("assistant", "A worn gear."),
        message("assistant", "Mended."),
    ];
    let compacted = r#"compacted {"message":"A worn gear.","compaction_response_id":"resp_2","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Summary: A worn gear."}]}]}"#;
    let (c1, o1) = (call("c1"), output("c1"));
    let bills = [record("resp_1", 100), record("resp_2", 90), record("resp_3", 40)];
    // Either shape of a bill comes first.
    for counts in [[bill(90), bills[1].clone()], [bills[1].clone(), bill(90)]] {
        check(
            &[
                &user, &c1, &bills[0], &o1, &model, &counts[0], &counts[1], compacted, &after,
                &bills[2],
            ],
            r#"0 user[typed_user] "One."
1 model[] shell c1 {} = 100/0/0/0/5
2 user[] ->c1 "c1!"
3 model[] "Mended." = 40/0/0/0/5
compaction before 3: auto 100 = 90/0/0/0/5: (user[compact_summary] "Summary: A worn gear.")
skipped: answer that is a summary: 1
skipped: bill that was written twice: 1
skipped: event_msg/token_count: 1
skipped: token_usage_record: 3
"#,
        );
    }
}

#[test]
fn a_bill_directly_before_a_compaction_that_is_no_calls_is_that_of_its_summary() {
    let (c1, o1, after) = (call("c1"), output("c1"), message("assistant", "Mended."));
    let compacted = r#"compacted {"message":"A worn gear.","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"A worn gear."}]}]}"#;
    let (b1, b2, b3) = (bill(100), bill(140), bill(40));
    check(
        &[SAID, &c1, &b1, &o1, &b2, compacted, &after, &b3],
        r#"0 user[typed_user] "Why is it late?"
1 model[] shell c1 {} = 100/0/0/0/5
2 user[] ->c1 "c1!"
3 model[] "Mended." = 40/0/0/0/5
compaction before 3: auto 140 = 140/0/0/0/5: (user[compact_summary] "A worn gear.")
skipped: event_msg/token_count: 3
"#,
    );
}

#[test]
fn a_compaction_is_a_persons_in_a_task_of_its_own_and_automatic_where_the_model_works() {
    let event = |kind: &str| format!(r#"event_msg {{"type":"{kind}"}}"#);
    let [started, complete] = ["task_started", "task_complete"].map(event);
    let [user, model] = [message("user", "One."), message("assistant", "A worn gear.")];
    let (c1, o1, turn) = (call("c1"), output("c1"), r#"turn_context {"model":"m"}"#);
    let alone = r#"compacted {"message":"A worn gear."}"#;
    let named = r#"compacted {"message":"A worn gear.","compaction_response_id":"resp_2"}"#;
    let bill = r#"token_usage_record {"response_id":"resp_2","usage":{"input_tokens":9,"output_tokens":5}}"#;
    for (task, trigger) in [
        (&[&started, &user, &c1, &o1, alone, turn, &model, &complete][..], Some("auto")),
        // Before a turn: the user has typed, and it is not sent yet.
        (&[&started, alone, turn, &user, &model, &complete], Some("auto")),
        (&[&started, &user, &c1, &o1, alone], Some("auto")),
        (&[&started, alone, &complete], Some("manual")),
        (&[&started, &model, bill, named, &complete], Some("manual")),
        // Without tasks what stands around it tells.
        (&[&user, &c1, &o1, alone, &model], Some("auto")),
        (&[&user, &model, alone, &user, &model], Some("manual")),
        // It cannot be known: what follows is missing, or the answer may be the summary.
        (&[&started, alone, &started, &user, &c1, &complete], None),
        (&[&started, &model, alone, &complete], None),
        (&[&user, &model, alone, &model], None),
    ] {
        let payloads = [&[SAID, &*c1, &*o1], task].concat();
        let sessions = read("codex", lines(&payloads).as_bytes()).expect("a good file");
        let triggers = sessions[0].compactions().iter().map(|one| one.trigger.as_deref());
        assert_eq!(triggers.collect::<Vec<_>>(), [trigger], "{task:?}");
    }
}

#[test]
fn a_window_is_what_95_percent_of_it_was_written_of() {
    for (written, whole) in [
        (38_000, 40_000),
        (258_400, 272_000),
        (249_036, 262_144),
        // The first versions wrote the window itself.
        (272_000, 272_000),
        (u64::MAX, u64::MAX),
        (0, 0),
    ] {
        let started =
            format!(r#"event_msg {{"type":"task_started","model_context_window":{written}}}"#);
        let text = lines(&[&started, SAID]);
        let sessions = read("codex", text.as_bytes()).expect("a good file");
        assert_eq!(sessions[0].context_window(), Some(Tokens(whole)));
    }
}

#[test]
fn what_an_unknown_record_says_is_kept() {
    check(
        &[&message("user", "One."), r#"dream {"text":"of gears"}"#, r#"pulse {"rate":60}"#],
        r#"0 user[typed_user meta] "One.", <dream>
unknown: record dream: 1
unknown: record pulse: 1
"#,
    );
}

#[test]
fn the_versions_before_lines_wrote_one_object() {
    let text = r#"{"session": {"timestamp":"2025-05-01T00:00:00Z","id":"x","instructions":"You mend clocks."},
 "items": [
  {"role":"user","content":[{"type":"input_text","text":"Why is it late?"}],"type":"message"},
  {"type":"function_call","name":"shell","arguments":"{}","call_id":"c"},
  {"type":"function_call_output","call_id":"c","output":"gear"}
 ]}"#;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("rollout-2025.json");
    std::fs::write(&path, text).expect("the folder can be written to");
    let sessions = import::load(&path).expect("a good file");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "Why is it late?"
1 model[] shell c {}
2 user[] ->c "gear"
skipped: session_meta: 1
"#
    );
    assert_eq!(sessions[0].source().format, "codex");
    assert_eq!(sessions[0].system(), Some(&"You mend clocks.".into()));
}

#[test]
fn a_key_of_an_odd_type_is_left_out_and_counted() {
    let odd =
        r#"response_item {"type":"message","role":"user","content":"Hello.","id":7,"name":[]}"#;
    let output = r#"response_item {"type":"function_call_output","call_id":"c1","output":"x","summary":true,"encrypted_content":5}"#;
    let c1 = call("c1");
    let text = lines(&[odd, &c1, output]).replacen("\"2026-03-01T09:00:00.000Z\"", "12", 1);
    let sessions = read("codex", text.as_bytes()).expect("odd, but read");
    assert_eq!(
        outline(&sessions[0]),
        r#"0 user[typed_user] "Hello."
1 model[] shell c1 {}
2 user[] ->c1 "x"
warning: the key `encrypted_content` is of an odd type and is left out: 1
warning: the key `id` is of an odd type and is left out: 1
warning: the key `name` is of an odd type and is left out: 1
warning: the key `timestamp` is of an odd type and is left out: 1
"#
    );
}

#[test]
fn shared_rollouts_are_read_whole() {
    let Some(folder) = shared::folder("sessions/codex") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("../CATALOG.md")).expect("the catalogue");
    let rows = catalogue("codex", &text);
    assert_eq!(rows.len(), 8);
    for (file, calls, compactions) in rows {
        let sessions = import::load(&folder.join(&file)).expect("a good file");
        let [session] = &sessions[..] else {
            panic!("{file}: {} sessions", sessions.len());
        };
        let messages = session.messages();
        let uses: usize = messages.iter().map(|one| one.tool_uses().count()).sum();
        let results: usize = messages.iter().map(|one| one.tool_results().count()).sum();
        let billed = messages.iter().map(|one| &one.details.usage);
        let billed = billed.flatten().count();
        println!(
            "{file}: {} messages, {} API calls ({billed} billed), {uses} tool calls, {results} results, {:?} {:?}",
            messages.len(),
            session.calls().len(),
            session.source().warnings,
            session.source().unknown,
        );
        assert_eq!(uses, calls, "{file}: tool calls");
        assert!(uses - results <= 1, "{file}: results");
        assert_eq!(session.compactions().len(), compactions, "{file}");
        assert!(messages.iter().all(|one| !one.has_tag(Tag::Orphan)), "{file}");
        assert!(session.source().unknown.is_empty(), "{file}");
        assert!(session.system().is_some(), "{file}");
        // Only the last call may be without its bill, or one that was stopped.
        assert!(session.calls().len() - billed <= 2, "{file}: bills");
        for one in session.compactions() {
            assert!(!matches!(one.after, CompactedTo::Missing), "{file}");
            assert_eq!(one.trigger.as_deref(), Some("auto"), "{file}");
        }
        round_trip(session);
    }
}

#[test]
fn sub_agents_and_forks_name_their_main_session() {
    let said = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Two."}]}}"#;
    for (meta, main) in [
        (r#""parent_thread_id":"P","forked_from_id":"Q""#, Some("p")),
        (r#""forked_from_id":"P""#, Some("p")),
        (r#""source":{"subagent":{"thread_spawn":{"parent_thread_id":"P"}}}"#, Some("p")),
        (r#""source":"cli""#, None),
    ] {
        // A fork holds its parent's after its own.
        let other = r#"{"type":"session_meta","payload":{"id":"P","forked_from_id":"O"}}"#;
        let own = format!(r#"{{"type":"session_meta","payload":{{"id":"C",{meta}}}}}"#);
        let bytes = format!("{own}\n{other}\n{said}\n");
        let sessions = read("codex", bytes.as_bytes()).expect("a good file");
        assert_eq!(sessions[0].source().main.as_deref(), main, "{meta}");
    }
}

#[test]
fn a_rollout_goes_on_from_the_one_that_it_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |role: &str, text: &str| {
        let kind = if role == "user" { "input" } else { "output" };
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}_text","text":"{text}"}}]}}}}"#
        )
    };
    let rollout = |day: &str, id: &str, base: Option<(&str, usize)>, texts: [&str; 2]| {
        let base = base.map(|(id, end)| {
            format!(r#","history_base":{{"thread_id":"{id}","end_byte_offset":{end}}}"#)
        });
        let meta = format!(
            r#"{{"type":"session_meta","payload":{{"id":"{id}"{}}}}}"#,
            base.unwrap_or_default()
        );
        let text = format!("{meta}\n{}\n{}\n", said("user", texts[0]), said("assistant", texts[1]));
        let path = folder.path().join(format!("2026/10/{day}/rollout-{id}.jsonl"));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(&path, &text).expect("writable");
        (path, text.len())
    };
    let check = |path: &std::path::Path, expected: &[&str], is_cut: bool| {
        let sessions = import::load(path).expect("a good file");
        let messages = sessions[0].messages().iter();
        let texts: Vec<&str> = messages
            .flat_map(|it| it.content())
            .filter_map(|it| it.as_text())
            .map(|it| &**it)
            .collect();
        assert_eq!(texts, expected);
        assert_eq!(sessions[0].message(0).has_tag(Tag::Orphan), is_cut);
        assert_eq!(outline(&sessions[0]).contains("begins in the middle"), is_cut);
        round_trip(&sessions[0]);
    };
    let (_, end) = rollout("01", "a", None, ["one", "two"]);
    let (_, next) = rollout("02", "b", Some(("a", end)), ["three", "four"]);
    let (path, _) = rollout("03", "c", Some(("b", next)), ["five", "six"]);
    check(&path, &["one", "two", "three", "four", "five", "six"], false);
    let (path, _) = rollout("03", "d", Some(("b", next + 1)), ["five", "six"]);
    check(&path, &["five", "six"], true);
    for absent in ["x", "../01/rollout-a", "e", ""] {
        let (path, _) = rollout("03", "e", Some((absent, 10)), ["five", "six"]);
        check(&path, &["five", "six"], true);
    }
    // In a circle each is read once, and one that claims more than there is not at all.
    let (_, end) = rollout("04", "g", Some(("h", 100)), ["one", "two"]);
    let (path, length) = rollout("04", "h", Some(("g", end)), ["three", "four"]);
    assert!((100..1000).contains(&length));
    rollout("04", "g", Some(("h", length)), ["one", "two"]);
    check(&path, &["one", "two", "three", "four"], true);
    rollout("04", "g", Some(("h", 999)), ["one", "two"]);
    check(&path, &["one", "two", "three", "four"], true);
    let (path, _) = rollout("04", "h", Some(("g", end + 1)), ["three", "four"]);
    check(&path, &["three", "four"], true);
    let (path, _) = rollout("04", "i", Some(("i", 100)), ["five", "six"]);
    check(&path, &["five", "six"], true);
    // What is behind the place that it goes on from is another branch's.
    let line = said("assistant", "two").len() + 1;
    let (path, _) = rollout("03", "f", Some(("a", end - line)), ["five", "six"]);
    check(&path, &["one", "five", "six"], false);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_importer_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        at in 0_usize..7000,
        length in 0_usize..60,
    ) {
        let good = std::fs::read(fixture("codex/rollout.jsonl")).unwrap_or_default();
        let at = at.min(good.len());
        let mut broken = good[..at].to_vec();
        broken.extend(&bytes);
        broken.extend(&good[(at + length).min(good.len())..]);
        for importer in import::IMPORTERS {
            importer.detect(&broken);
        }
        for session in read("codex", &broken).unwrap_or_default() {
            round_trip(&session);
        }
    }
}
