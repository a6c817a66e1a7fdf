//! Importers of further products, each against files of our own and against real recordings.

use proctor_formats as import;
use proctor_sessions::redact::{Class, Redactor};
use proctor_sessions::{Session, Tag};

use super::{catalogue, fixture, outline, round_trip};
use crate::shared;

/// What the importer of that format makes of a fixture: the outlines of all sessions.
#[track_caller]
fn check(format: &str, file: &str, expected: &str) -> Vec<Session> {
    let sessions = match import::load(&fixture(&format!("{format}/{file}"))) {
        Ok(sessions) => sessions,
        Err(error) => panic!("{error}"),
    };
    for session in &sessions {
        assert_eq!(session.source().format, format);
        round_trip(session);
    }
    let got: Vec<String> = sessions.iter().map(outline).collect();
    assert_eq!(got.join("--\n"), expected);
    sessions
}

/// What the sessions of a recording hold, in the words of the catalogue.
struct Held {
    uses: usize,
    results: usize,
    orphans: usize,
    compactions: usize,
}

fn held(sessions: &[Session]) -> Held {
    let messages = || sessions.iter().flat_map(Session::messages);
    Held {
        uses: messages().map(|one| one.tool_uses().count()).sum(),
        results: messages().map(|one| one.tool_results().count()).sum(),
        orphans: messages().filter(|one| one.has_tag(Tag::Orphan)).count(),
        compactions: sessions.iter().map(|one| one.compactions().len()).sum(),
    }
}

/// Every recording of a product, read whole, with its row of the catalogue.
fn shared_recordings(product: &str, look: impl Fn(&str, &[Session], usize, usize)) {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("CATALOG.md")).expect("the catalogue");
    let rows = catalogue(product, &text);
    assert!(!rows.is_empty(), "{product}");
    for (file, calls, compactions) in rows {
        let sessions = import::load(&folder.join(product).join(&file)).expect("a good file");
        for session in &sessions {
            assert_eq!(session.source().format, product, "{file}");
            assert!(session.source().unknown.is_empty(), "{file}: {:?}", session.source());
            let Held { uses, results, orphans, compactions } = held(std::slice::from_ref(session));
            println!(
                "{file}: {} messages, {} calls, {uses} uses, {results} results, {orphans} orphans, \
                 {compactions} compactions, {:?}",
                session.messages().len(),
                session.calls().len(),
                session.source(),
            );
            assert_eq!(orphans, 0, "{file}");
            round_trip(session);
        }
        look(&file, &sessions, calls, compactions);
    }
}

#[test]
fn opencode_keeps_prunes_and_summaries_beside_the_history() {
    let sessions = check(
        "opencode",
        "pruned-and-compacted.json",
        r#"0 user[typed_user] "Why is the pump dry?", "pump.md: open the valve first", image {"type":"base64","media_type":"image/png","data":"AAAA"}
1 model[] thinking "Look at both.", read call_1 {"filePath":"valve.txt"}, shell call_1-2 {"command":"pump --status"}, grep call_3 {"pattern":"dry"} = 100/200/0/800/10
2 user[] ->call_1 "closed since Monday", ->!call_1-2 "no such command", ->call_3 "pump.log:7: dry"
3 model[] "The valve is closed." = 100/0/0/1100/7
4 user[typed_user] "Open it."
5 model[] shell call_4 {"command":"valve open"}
6 user[meta] "Continue if you have next steps."
7 model[] "First the lever.", shell call_5 {"command":"lever up"} = 60/0/0/0/12
8 user[] ->call_5 "up"
9 model[] "It is open." = 70/0/0/0/3
10 model[] <hologram>
compaction before 4: prune 1207: kept 0..2, edited 2, edited 2, kept 3..4
compaction before 6: auto 1207 = 500/0/0/0/50: (user[meta] "What did we do so far?"), (model[compact_summary] "The valve was closed since Monday; opening it."), kept 4..6
skipped: call that wrote a summary: 1
skipped: name of a file whose text stands beside it: 1
skipped: part patch: 1
skipped: part step-start: 6
unknown: part hologram: 1
warning: a usage counter is no count and was taken as zero: 1
warning: an id stands for several tool uses; they are told apart by place: 1
"#,
    );
    let [session] = &sessions[..] else {
        panic!("one session");
    };
    assert_eq!(session.model(), Some("some-model"));
    let time = |at: usize| session.message(at).details.timestamp.map(|time| time.0);
    assert_eq!(time(1), Some(1_767_258_002_000));
    assert_eq!(time(2), Some(1_767_258_003_600));
}

#[test]
fn opencodes_files_before_its_database_are_read_session_by_session() {
    let pond = r#"0 user[typed_user] "Why is the pond green?"
1 model[] read c1 {"filePath":"pond.md"}, agent c2 {"prompt":"count frogs"} = 20/40/0/500/8
2 user[] ->c1 "algae since May", ->c2 "three"
3 model[] "It is algae."
compaction before 3: prune 568: kept 0..2, edited 2
compaction before 3: auto 568: (user[meta] "What did we do so far?"), (model[compact_summary] "Algae since May; three frogs.")
skipped: call that wrote a summary: 1
skipped: part step-start: 1
"#;
    let frogs = r#"0 user[typed_user sidechain] "count frogs"
1 model[sidechain] "three"
"#;
    let sessions = check("opencode", "storage", &format!("{pond}--\n{frogs}"));
    assert!(sessions[0].id().starts_with("ses_7a-"), "{}", sessions[0].id());
    // A session alone: the folder of its messages, or the file that names it.
    let alone = check("opencode", "storage/message/ses_6b", frogs);
    for child in [&sessions[1], &alone[0]] {
        assert_eq!(child.source().main.as_deref(), Some("ses_7a"));
    }
    for (parent, main) in [(r#""ses_Gone""#, Some("ses_gone")), ("7", None), ("null", None)] {
        let export = format!(
            r#"{{"info":{{"id":"ses_1","title":"a","directory":"/a","parentID":{parent}}},"messages":[{{"info":{{"role":"assistant"}},"parts":[{{"type":"text","text":"b"}}]}}]}}"#
        );
        let sessions = super::read("opencode", export.as_bytes()).expect("a good file");
        assert_eq!(sessions[0].source().main.as_deref(), main, "{parent}");
        assert_eq!(sessions[0].is_side_chain(), main.is_some(), "{parent}");
    }
    check("opencode", "storage/session/pond/ses_7a.json", pond);
    let hill = r#"0 user[typed_user] "How high is the hill?", image {"type":"base64","media_type":"image/png","data":"AAAA"}
1 model[] thinking "Measure.", shell c1 {"command":"measure hill"}, read c2 {"filePath":"map"}
2 user[] ->c1 "90 m", ->!c2 "no such file"
3 model[] "90 metres.", shell c3 {"command":"rest"} = 30/70/0/0/9
4 user[typed_user] "And the next?"
skipped: part step-start: 2
"#;
    for place in ["first", "first/project/-hill", "first/project/-hill/storage"] {
        check("opencode", place, hill);
    }
}

#[test]
fn copilots_files_before_its_events_are_read() {
    let sessions = check(
        "copilot-cli",
        "chat.json",
        r#"0 user[typed_user] "Is the oven hot?"
1 model[] thinking "Look.", shell call_1 {"command":"thermometer"}, read call_2 {"path":"oven.md"}
2 user[] ->call_1 "210", ->call_2 "aim at 220"
3 model[] "Almost."
4 user[typed_user] "Wait then."
skipped: key `sessionId`: 1
skipped: key `startTime`: 1
skipped: key `timeline`: 1
"#,
    );
    assert_eq!(sessions[0].model(), Some("some-model"));
}

#[test]
fn shared_opencode_recordings_are_read_whole() {
    shared_recordings("opencode", |file, sessions, calls, _| {
        let held = held(sessions);
        assert_eq!((held.uses, held.results), (calls, calls), "{file}");
        // All that is cleared between two messages is one compaction.
        assert_eq!(held.compactions, usize::from(file.contains("5c-64e8")));
        let [session] = sessions else {
            panic!("{file}: {} sessions", sessions.len());
        };
        let is_child = !file.contains("5c-64e8");
        assert_eq!(session.message(0).has_tag(Tag::Sidechain), is_child);
        let is_billed = |at: &&usize| session.message(**at).details.usage.is_some();
        let billed = session.calls().iter().filter(is_billed).count();
        assert!(billed + 1 >= session.calls().len(), "{file}: {billed}");
    });
}

#[test]
fn copilot_compacts_beside_the_work_and_keeps_what_sub_agents_did_apart() {
    let sessions = check(
        "copilot-cli",
        "events.jsonl",
        r#"0 user[typed_user] "<now/>\nIs it proved?", image {"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}
1 model[] thinking "Look and poke.", read t1 {"path":"dough.md"}, agent t2 {"prompt":"poke it"} = 100/300/0/600/9
2 user[] ->t2 "It springs back.", ->!t1 "no such file"
3 model[] "It is proved."
4 user[typed_user meta] "Bake it hot.", "The oven is warm."
5 model[] "Baking."
compaction before 3: threshold 900 = 43/7/0/900/30: (user[compact_summary] "The dough springs back."), kept 1..3
compaction before 6: truncation 950: missing
skipped: assistant.turn_start: 1
skipped: assistant.usage: 1
skipped: attachment, told in the text: 1
skipped: compaction that failed: 1
skipped: output tokens without those of the prompt: 2
skipped: rewind: 1
skipped: session.model_change: 1
skipped: session.start: 1
skipped: subagent.started: 1
skipped: system prompt told again: 1
skipped: tool.execution_start: 2
unknown: event telepathy.start: 1
warning: a timestamp cannot be read: 1
--
0 user[sidechain meta] "poke it"
1 model[sidechain] shell t3 {"command":"poke"}
2 user[sidechain] ->t3 "springs back"
warning: a tool was carried out that no message asked for: 1
"#,
    );
    assert_eq!(sessions[0].system(), Some(&"You bake.".into()));
    assert_eq!(sessions[0].model(), Some("some-model"));
}

#[test]
fn shared_copilot_recordings_are_read_whole() {
    shared_recordings("copilot-cli", |file, sessions, calls, compactions| {
        let held = held(sessions);
        assert_eq!((held.uses, held.results), (calls, calls), "{file}");
        assert_eq!(held.compactions, compactions, "{file}");
    });
}

#[test]
fn cline_counts_cached_tokens_within_the_input() {
    let sessions = check(
        "cline",
        "session.messages.json",
        r#"0 user[typed_user] "Which tube fits?", "wheel.txt\n28 inch"
1 model[] thinking "Look it up.", read t1 {"files":[{"path":"tubes.txt"}]}, shell t2 {"commands":["ls"]} = 100/300/0/600/20
2 user[] ->t1 "[{\"query\":\"tubes.txt\",\"result\":\"28: the red one\",\"success\":true}]", ->!t2 "no such folder"
3 model[] "The red one." = 10/0/0/40/3
warning: a usage counts cached tokens apart from the prompt: 1
"#,
    );
    assert_eq!(sessions[0].system(), Some(&"You repair bicycles.".into()));
}

#[test]
fn cline_and_roo_hide_what_was_summarised_and_cut_off() {
    check(
        "cline",
        "condensed.json",
        r#"0 user[typed_user] "<task>\nFind the leak.\n</task>", "<environment_details>\n# Mode\n</environment_details>"
1 model[] thinking "Listen.", "I listen at the pipe.", shell call-1 {"text":"hear"}
2 user[] ->call-1 "[execute_command for 'hear'] Result:"+"it hisses"
3 model[] read t1 {"path":"pipe.txt"}
4 user[] ->t1 "a hole at 3 m"
5 model[] "There is a hole."
6 user[typed_user] "<feedback>Close it.</feedback>"
7 model[] "Closed."
8 user[typed_user] "And the tap?"
9 model[] "It drips."
10 user[typed_user] "Change the washer."
11 model[] "Changed."
12 user[meta] <of unknown role>
compaction before 6: condense 0: kept 0..1, (model[compact_summary] "The summary: it hisses."), kept 3..6
compaction before 7: condense 0: (user[compact_summary] "A hole at 3 m, to be closed.")
compaction before 12: truncation 0: (user[compact_summary] "A hole at 3 m, to be closed."), kept 7..8, (user[compact_boundary] "[2 messages hidden]"), kept 10..12
skipped: encrypted reasoning: 1
skipped: usage that does not tell what was read from the cache: 1
unknown: message of unknown role: 1
warning: when a truncation happened is told by how much it hid: 1
"#,
    );
}

#[test]
fn shared_cline_recordings_are_read_whole() {
    shared_recordings("cline", |file, sessions, calls, _| {
        let held = held(sessions);
        assert_eq!((held.uses, held.results), (calls, calls), "{file}");
        let messages = sessions[0].messages();
        let billed = messages.iter().filter(|one| one.details.usage.is_some()).count();
        assert_eq!(billed, sessions[0].calls().len());
    });
}

#[test]
fn goose_hides_from_the_agent_what_it_summarised() {
    check(
        "goose",
        "session.jsonl",
        r#"0 user[typed_user] "Why does the wheel stand?"
1 model[] thinking "Look.", "I look.", shell t1 {"command":"ls"}, other t2 {"status":"error","error":"no such tool"}, mcp t3 {}
2 user[] ->t1 "ice"+"cold", ->!t2 "try another", ->!t3 image {"type":"base64","media_type":"image/png","data":"AAAA"}
3 model[] "It is frozen."
4 user[typed_user] "Thaw it."
5 model[] other t4 {"a":1}, <hologram>
6 user[] ->t4 
7 model[] "It turns."
compaction before 4: - 0: (user[compact_summary] "The wheel is frozen."), (model[meta] "I go on from the summary.")
compaction before 7: - 0: (user[compact_summary] "The wheel is frozen."), (model[meta] "I go on from the summary."), kept 4..5, (user[compact_summary] "A tool was called and said nothing.")
skipped: header: 1
skipped: message for the user alone: 1
skipped: part systemNotification: 1
skipped: text that the model was not shown: 1
unknown: part hologram: 1
warning: a tool request could not be read by the product: 1
"#,
    );
}

#[test]
fn goose_exports_a_session_as_one_object() {
    let sessions = check(
        "goose",
        "exported.json",
        r#"0 user[typed_user] "Does it turn?"
1 model[] "It ", "does."
"#,
    );
    assert_eq!(sessions[0].model(), Some("some-model"));
}

#[test]
fn a_task_is_billed_by_what_its_user_was_shown() {
    let sessions = check(
        "cline",
        "task",
        r#"0 user[typed_user] "<task>\nWind the clock.\n</task>"
1 model[] "Which?" = 9/700/0/0/2
2 user[typed_user] "<answer>The tall one.</answer>"
3 model[] "Wound." = 5/20/0/700/1
4 user[typed_user] "<feedback>Thanks.</feedback>"
compaction before 4: condense 730: kept 0..1, (model[compact_summary] "The tall clock is to be wound."), kept 3..4
warning: a call that the user was shown has no message: 1
warning: a record of what the user was shown cannot be read: 1
"#,
    );
    assert!(sessions[0].id().starts_with("task-"), "{}", sessions[0].id());
}

#[test]
fn a_database_takes_the_feature_and_is_told_from_a_file_of_that_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let refused = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("the folder can be written to");
        let error = import::load(&path).expect_err("no session");
        assert!(error.hint().is_some());
        error.to_string()
    };
    let named = refused("notes.db", b"milk and eggs");
    assert!(named.ends_with("has the name of an SQLite database but is not one"));
    let cut = refused("cut.db", b"SQLite format 3\0");
    let expected = if cfg!(feature = "sqlite") {
        "cannot be read as an SQLite database"
    } else {
        "is an SQLite database, which this build of Proctor cannot read"
    };
    assert!(cut.contains(expected), "{cut}");
}

#[test]
fn shared_recordings_are_redacted_once_and_stay_what_they_were() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    let mut redactor = Redactor::new();
    let mut files = 0;
    for path in shared::files(&folder) {
        let small = std::fs::metadata(&path).is_ok_and(|it| it.len() < 700_000);
        let Ok(sessions) = import::load(&path).map_err(|_| ()) else {
            continue;
        };
        for session in sessions.iter().filter(|_| small) {
            let redacted = redactor.session(session).expect("still a session");
            let counts = redactor.take_counts();
            println!("{}: {counts:?}", path.display());
            assert_eq!(redacted.calls(), session.calls());
            assert_eq!(redacted.compactions().len(), session.compactions().len());
            round_trip(&redacted);
            let again = redactor.session(&redacted).expect("still a session");
            assert_eq!(again.messages(), redacted.messages(), "{}", path.display());
            assert!(redactor.take_counts().is_empty(), "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 20, "{files} sessions");
}

/// Millions of characters of code, hashes, ids and pictures, whose secrets their publishers took
/// out: what is still taken for one is counted on one hand.
#[test]
fn shared_recordings_hold_hardly_anything_that_is_taken_for_a_secret() {
    let Some(folder) = shared::folder("sessions") else {
        return;
    };
    let mut redactor = Redactor::new();
    let mut chars = 0;
    for path in shared::files(&folder) {
        for session in import::load(&path).unwrap_or_default() {
            redactor.session(&session).expect("still a session");
            chars += session.texts().map(|text| text.len()).sum::<usize>();
        }
    }
    let mut counts = redactor.take_counts();
    println!("{chars} bytes: {counts:?}");
    counts.retain(|class, _| !matches!(class, Class::Email | Class::Home));
    assert!(chars > 10_000_000, "{chars} bytes");
    assert!(counts.values().sum::<u64>() <= 5, "{counts:?}");
}

/// What is known about a fixture's sessions: one line per fact.
fn known(file: &str) -> Vec<String> {
    let recordings = import::load_with_truth(&fixture(file), None).expect("a good file");
    let truths = recordings.iter().map(|it| it.truth.as_ref());
    let facts = truths.flatten().flat_map(|truth| &truth.facts);
    let shown = facts.map(|it| format!("{} {:?} {:?}", it.id, it.fact, it.evidence));
    shown.collect()
}

#[test]
fn locomo_asks_what_one_message_says_in_the_answers_words() {
    check(
        "locomo",
        "talk.json",
        r#"0 user[typed_user meta] "Date: 1:56 pm on 8 May, 2023", "Ada: At the weekend I play the bass clarinet in a band."
1 model[] "Grace: How lovely! (shares a picture: a pier at noon)"
2 user[typed_user meta] "Date: some day", "Ada: Any news?"
3 model[] "Grace: I bought a boat, its colour is sea green."
skipped: key `event_summary`: 1
skipped: key `sample_id`: 1
warning: a timestamp cannot be read: 1
"#,
    );
    let expected = [
        r#"q1 Recall { key: "play weekend", value: "bass clarinet" } [0]"#,
        r#"q2 Recall { key: "colour boat Grace bought", value: "sea green" } [3]"#,
        r#"q3 Open { answer: "Twice, as it seems" } [0, 2]"#,
        "q4 Unanswerable []",
    ];
    assert_eq!(known("locomo/talk.json"), expected);
}

#[test]
fn longmemeval_is_one_session_for_each_question() {
    check(
        "longmemeval",
        "instances.json",
        r#"0 user[typed_user meta] "Date: 2023/05/20 (Sat) 02:21", "I did finish my degree in marine biology last week."
1 model[] "Congratulations!"
2 user[typed_user meta] "Date: 2023/05/21 (Sun) 10:00", "And now?"
3 model[] "Rest."
--
0 user[typed_user] "Hello."
1 model[] "Hello."
"#,
    );
    let expected = [
        r#"q_1 Recall { key: "degree finish", value: "marine biology" } [0]"#,
        "q_2_abs Unanswerable []",
    ];
    assert_eq!(known("longmemeval/instances.json"), expected);
}

#[test]
fn beam_asks_about_turns_by_their_ids() {
    check(
        "beam",
        "rows.jsonl",
        r#"0 user[typed_user meta] "Date: March-15-2024", "My boat is called Sea Otter, and it leaks at the bow. ->-> 1,1"
1 model[] "Seal the bow with pitch."
2 user[typed_user] "I did it twice."
3 model[] "Then look at the keel."
4 user[typed_user meta] "Date: April-02-2024", "The keel was cracked; I paid 310 crowns for it."
5 model[] "A fair price."
6 user[typed_user] "Now I paid 340, with the paint."
7 model[] "Still fair."
8 user[typed_user] "An id that is there twice."
skipped: key `conversation_id`: 1
skipped: key `conversation_seed`: 1
--
0 user[typed_user meta] "Date: May-01-2024", "The oar is oak."
1 model[] "Good wood."
"#,
    );
    let expected = [
        "abstention-1 Unanswerable []",
        r#"information_extraction-2 Recall { key: "boat called", value: "Sea Otter" } [0]"#,
        r#"knowledge_update-3 Open { answer: "340 crowns, with the paint" } [6]"#,
        r#"summarization-4 Open { answer: "It leaked at the bow,\nand the keel was cracked." } [0, 4]"#,
        r#"information_extraction-1 Open { answer: "oak" } [0]"#,
    ];
    assert_eq!(known("beam/rows.jsonl"), expected);
    let read = import::load_with_truth(&fixture("beam/rows.jsonl"), None).expect("a good file");
    let truth = read[0].truth.as_ref().expect("questions");
    assert_eq!(truth.facts[3].question, "What's \"wrong\" with it?");
    assert_eq!((read[0].left_out, read[1].left_out), (2, 1));
}

#[test]
fn beams_own_two_files_are_one_recording() {
    check(
        "beam",
        "chats/chat.json",
        r#"0 user[typed_user meta] "Date: March-15-2024", "My kite is called Swift."
1 model[] "A good name."
"#,
    );
    let expected = r#"information_extraction-1 Recall { key: "kite called", value: "Swift" } [0]"#;
    assert_eq!(known("beam/chats/chat.json"), [expected]);
}

#[test]
fn convomem_asks_about_messages_by_their_words() {
    let outline = r#"0 user[typed_user] "The harbour fee rose to 42 crowns a night."
1 model[] "I note it."
2 user[typed_user] "Which knot holds best?"
3 model[] "A bowline."
"#;
    let other = r#"0 user[typed_user] "Which knot holds best?"
1 model[] "A bowline."
2 user[typed_user] "The harbour fee rose to 42 crowns a night."
3 model[] "I note it."
"#;
    check("convomem", "evidence.json", &format!("{outline}--\n{other}"));
    let recall = r#"q1 Recall { key: "harbour night", value: "42 crowns" }"#;
    let expected = [format!("{recall} [0]"), "q1 Unanswerable []".to_owned()];
    assert_eq!(known("convomem/evidence.json"), expected);
    check("convomem", "cases.json", other);
    assert_eq!(known("convomem/cases.json"), [format!("{recall} [2]")]);
    let read = import::load_with_truth(&fixture("convomem/cases.json"), None).expect("good");
    assert_eq!(read[0].left_out, 1);
}

#[test]
fn what_is_known_stands_beside_a_native_session_and_must_be_about_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("clock.session.jsonl");
    std::fs::copy(fixture("native/every-block.session.jsonl"), &path).expect("a copy");
    let id = import::load(&path).expect("a good file")[0].id().to_owned();
    let read = |truth: &str| {
        let truth = truth.replace("ID", &id);
        std::fs::write(folder.path().join("clock.truth.json"), truth).expect("written");
        let read = import::load_with_truth(&path, None);
        read.map(|it| it[0].truth.as_ref().map_or(0, |truth| truth.facts.len()))
            .map_err(|error| error.to_string())
    };
    let truth = |session: &str, message: usize| {
        format!(
            r#"{{"format":"proctor-ground-truth","version":1,"session":"{session}","facts":[{{"id":"a","fact":{{"kind":"recall","key":"k","value":"v"}},"question":"?","evidence":[{message}],"importance":"normal"}}]}}"#
        )
    };
    assert_eq!(read(&truth("ID", 0)), Ok(1));
    for (truth, expected) in [
        (truth("other", 0), "it is about session `other`"),
        (truth("ID", 9_999), "fact `a` names messages"),
        ("{}".to_owned(), "missing field"),
        ("{".to_owned(), "line 1"),
    ] {
        let error = read(&truth).expect_err("refused");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_recording_is_recognised_without_its_first_line_and_behind_a_large_picture() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.jsonl");
    for name in ["gemini-cli/chat", "kimi-code/wire", "grok-build/chat_history"] {
        let text = std::fs::read_to_string(fixture(&format!("{name}.jsonl"))).expect("a fixture");
        let (first, rest) = text.split_once('\n').expect("lines");
        let text = if first.contains("\"system\"") {
            let picture = format!("data:image/png;base64,{}", "AAAA".repeat(1 << 19));
            let content = serde_json::json!([{"type": "image", "image_url": picture}]);
            format!("{first}\n{}\n{rest}", serde_json::json!({"type": "user", "content": content}))
        } else {
            rest.to_owned()
        };
        std::fs::write(&path, text).expect("writable");
        let sessions = import::load(&path).expect("a good file");
        assert!(name.starts_with(&sessions[0].source().format), "{name}");
    }
}
