//! Stages, triggers, presets and controls, call by call on small sessions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proctor::model::scripted::Scripted;
use proctor::record::{CellRecord, End, Level};
use proctor::replay::{NoClock, Replay, Replayed, replay};
use proctor::runner::Plan;
use proctor::session::{Message, Role, Tag};
use proctor::settings::SettingTable;
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::units::{Timestamp, Tokens};
use proctor::window::Window;

use crate::support::{
    answers, asks, cell, models, prepared, reading_session, run, run_in, said, scenario, session,
    strategy, tool_result, tool_use, typed,
};

/// Replays `messages` through stages written in TOML.
fn staged(messages: Vec<Message>, stages: &str, window: u64) -> Replay {
    let table = SettingTable::parse("own.toml", stages).unwrap();
    let spec = StrategySpec::of("own", table, &Trigger::always()).unwrap();
    let prepared = prepared(session(messages));
    let strategy = Box::new(spec.build().unwrap());
    let replayed = Replayed::Strategy(strategy, Window::new(Tokens(window)));
    let model = Scripted::new().texts(["S"; 50]);
    replay(&prepared, cell("own"), replayed, &models(model), &NoClock)
}

/// What fired: `call stage`, in order.
fn fired(record: &CellRecord) -> Vec<String> {
    let events = record.compactions.iter();
    events.map(|event| format!("{} {}", event.call, event.stage)).collect()
}

fn rejected(record: &CellRecord) -> Vec<(usize, &str)> {
    let violations = record.violations.iter();
    violations
        .filter(|violation| violation.level == Level::Rejected)
        .map(|violation| (violation.call, violation.rule.as_str()))
        .collect()
}

/// The shortened text of one output of `text`.
fn truncated(knobs: &str, text: &str) -> String {
    let messages = vec![typed("go"), asks("t1", "Bash", "a"), answers("t1", text), said("ok")];
    let stage = format!("[[stage]]\nkind = 'truncate_output'\n{knobs}");
    // The transcript of a summary shows what was appended.
    let stages = format!(
        "{stage}\n[[stage]]\nkind = 'summarize'\nwhen = {{ rounds_every = 1 }}\ntranscript = true"
    );
    let replay = staged(messages, &stages, 200_000);
    let transcript = replay.offloaded.values().next().unwrap();
    let line: serde_json::Value = serde_json::from_str(transcript.lines().nth(2).unwrap()).unwrap();
    line["content"][0]["content"].as_str().unwrap().to_owned()
}

#[test]
fn an_output_keeps_its_head_and_tail() {
    for (knobs, text, says) in [
        ("max_chars = 5", "abcdefgh", "abcdefgh"),
        (
            "max_chars = 10\nserialization_factor = 1",
            &"abcdefghij".repeat(10),
            "abcde…90 chars truncated…fghij",
        ),
        // Ten characters times 1.2; the marker of eight would be longer than they are.
        ("max_chars = 10", "abcdefghijklmnopqrst", "abcdefghijklmnopqrst"),
        (
            "max_chars = 10\nhead_fraction = 1\ncut_over = 'max'",
            &"abcdefghij".repeat(10),
            "abcdefghij…90 chars truncated…",
        ),
        ("max_bytes = 5\nserialization_factor = 1", &"ä".repeat(50), "ä…48 chars truncated…ä"),
        (
            "max_tokens = 10\nserialization_factor = 1",
            &"x".repeat(400),
            &format!("{0}…90 tokens truncated…{0}", "x".repeat(20)),
        ),
        (
            "max_lines = 2\nserialization_factor = 1",
            &"one line of many\n".repeat(9),
            "one line of many\n…7 lines truncated…one line of many\n",
        ),
        (
            "max_chars = 10\ntools = ['class:read']",
            &"abcdefghij".repeat(10),
            &"abcdefghij".repeat(10),
        ),
    ] {
        assert_eq!(truncated(knobs, text), says, "{knobs}");
    }
}

#[test]
fn a_strategy_that_only_edits_what_comes_in_is_seen_to_fire() {
    let messages =
        vec![typed("go"), asks("t1", "Bash", "a"), answers("t1", &"x".repeat(4_000)), said("ok")];
    let stage = "[[stage]]\nkind = 'truncate_output'\nmax_tokens = 100";
    let record = staged(messages, stage, 200_000).record;
    assert_eq!(fired(&record), ["1 truncate_output"]);
    // The sizes are those of all messages, as for any other stage.
    let event = &record.compactions[0];
    assert_eq!(event.after, record.prompt_tokens[1] - record.fixed_tokens);
    assert_eq!(event.before.0 - event.after.0, 1_000 - 126);
}

#[test]
fn the_largest_results_are_put_aside_until_the_others_fit() {
    let results = vec![
        tool_result("a", &"a".repeat(500)),
        tool_result("b", &"b".repeat(900)),
        tool_result("c", &"c".repeat(800)),
    ];
    let uses = ["a", "b", "c"].map(|id| tool_use(id, "Read", id));
    let messages = vec![
        typed("go"),
        Message::new(Role::Assistant, uses.to_vec()),
        Message::new(Role::User, results),
        said("ok"),
        typed("more"),
        said("ok"),
    ];
    let stage = "[[stage]]\nkind = 'offload_results'\nmax_total_chars = 1600\npreview_chars = 10\npreview_tail_chars = 5\nfolder = 'kept'";
    let replay = staged(messages, stage, 200_000);
    assert_eq!(fired(&replay.record), ["1 offload_results"]);
    assert_eq!(replay.record.saved_texts, 1);
    let (path, text) = replay.offloaded.first_key_value().unwrap();
    assert_eq!(**text, *"b".repeat(900));
    assert!(path.starts_with("kept/") && path.len() == "kept/".len() + 12 + 4, "{path}");
}

#[test]
fn results_are_measured_together_or_each_on_its_own() {
    let messages = || {
        vec![
            typed("go"),
            Message::new(Role::Assistant, ["a", "b"].map(|id| tool_use(id, "Read", id)).to_vec()),
            // Parallel results may come as messages of their own.
            answers("a", &"a".repeat(600)),
            answers("b", &"b".repeat(600)),
            said("ok"),
        ]
    };
    let saved = |knobs: &str| {
        let stage = format!("[[stage]]\nkind = 'offload_results'\npreview_chars = 10\n{knobs}");
        staged(messages(), &stage, 200_000).record.saved_texts
    };
    assert_eq!(saved("max_total_chars = 1000"), 1);
    assert_eq!(saved("max_total_chars = 1000\nscope = 'each'"), 0);
    assert_eq!(saved("max_total_chars = 500\nscope = 'each'"), 2);
    assert_eq!(saved("max_total_chars = 1200"), 0);
}

#[test]
fn triggers_fire_when_they_say() {
    let at = |minutes: i64, mut message: Message| {
        message.details.timestamp = Some(Timestamp(minutes * 60_000));
        message
    };
    // Calls 0 to 4, after 0, 10, 80, 141 and 142 minutes; the fourth follows the end of a phase.
    let messages = || {
        vec![
            at(0, typed("go")),
            at(1, asks("t1", "Read", "a")),
            at(10, answers("t1", &"x".repeat(4_000))),
            at(20, said("ok")),
            at(80, typed("more")),
            at(81, asks("t2", "Read", "b")),
            at(141, answers("t2", &"y".repeat(4_000)).with_tags([Tag::PhaseEnd])),
            at(141, said("ok")),
            at(142, typed("more")),
            at(143, said("ok")),
        ]
    };
    for (when, calls) in [
        ("{ idle_over_minutes = 59 }", &[2, 3][..]),
        ("{ idle_over_minutes = 60 }", &[]),
        ("'marker'", &[3]),
        ("{ marker = true }", &[3]),
        ("{ messages_over = 4 }", &[2, 3, 4]),
        ("{ results_over = 1 }", &[3, 4]),
        ("{ rounds_every = 2 }", &[2, 4]),
        ("{ tokens_over = 1700, counter = 'chars/4' }", &[3, 4]),
        ("{ tokens_over = 1700, counter = 'bytes/4' }", &[3, 4]),
        ("{ tokens_over = 1300, counter = 'chars/3' }", &[1, 2, 3, 4]),
        ("{ tokens_over = 1300, counter = 'padded' }", &[1, 2, 3, 4]),
        ("{ tokens_over = 1700, counter = 'usage' }", &[3, 4]),
    ] {
        // Whatever the trigger lets it see, it drops.
        let stages = format!(
            "[[stage]]\nkind = 'drop_middle'\nwhen = {when}\nmax_messages = 1\nkeep_first = 0\ncut = 'none'\nguards.on_inflation = 'apply'"
        );
        let first = staged(messages(), &stages, 200_000);
        let first = first.record.compactions.first().map(|event| event.call);
        assert_eq!(first, calls.first().copied(), "{when}");
    }
}

#[test]
fn an_image_weighs_in_the_padded_counter() {
    let image = proctor::session::ContentBlock::Image(proctor::session::Image {
        source: proctor::session::JsonText::string("data"),
    });
    let messages = vec![Message::new(Role::User, vec![image]), said("ok"), typed("go"), said("ok")];
    let fires = |limit: u64| {
        let stage = format!(
            "[[stage]]\nkind = 'summarize'\nwhen = {{ tokens_over = {limit}, counter = 'padded', scope = 'messages' }}"
        );
        !staged(messages.clone(), &stage, 200_000).record.model_calls.is_empty()
    };
    // 4/3 × (4 characters / 4 + 2,000), rounded up.
    assert!(fires(2_667));
    assert!(!fires(2_668));
}

/// A session of reads through one of the lesson's presets.
fn s08(rounds: usize, chars: usize, name: &str, window: u64) -> CellRecord {
    let prepared = prepared(reading_session(rounds, chars));
    let model = Scripted::new().texts(["THE SUMMARY"; 50]);
    run(&prepared, name, window, &models(model)).record
}

/// The lesson's own constants, layer by layer.
#[test]
fn learn_claude_code_s08_does_what_its_lesson_says() {
    let name = "learn-claude-code-s08";
    // Results of 10,000 characters: from the fifth prompt on the fourth-newest is cleared.
    let record = s08(6, 10_000, name, 200_000);
    assert_eq!(fired(&record), ["4 clear_results", "5 clear_results", "6 clear_results"]);
    // Results of 120 characters are not cleared, only dropped: with more than 50 messages. Of 51,
    // none stands between the pairs at either end.
    let record = s08(30, 120, name, 200_000);
    let middle: Vec<String> = (26..=30).map(|call| format!("{call} drop_middle")).collect();
    assert_eq!(fired(&record), middle);
    assert_eq!(record.compactions[0].reason, "2 messages from the middle dropped");
    assert_eq!(record.compactions[1].reason, "3 messages from the middle dropped");
    // A result of more than 200,000 characters goes to disk, and only then would be summarised.
    let record = s08(1, 200_001, name, 200_000);
    assert_eq!(fired(&record), ["1 offload_results"]);
    assert_eq!(record.saved_texts, 1);
    // Three results of 20,000 characters are more than 12,500 tokens of four characters.
    let record = s08(5, 20_000, name, 200_000);
    assert_eq!(fired(&record), ["3 summarize"]);
    assert_eq!(record.saved_texts, 1);
    assert_eq!(rejected(&record), []);
}

#[test]
fn a_refused_prompt_is_summarised_once_and_its_end_repeated() {
    // Each prompt stays below the threshold, and the sixth above the window.
    let name = "learn-claude-code-s08[clear_results.keep_last=99]";
    let record = s08(6, 4_000, name, 4_500);
    assert_eq!(record.end, End::Completed);
    assert_eq!(record.overflows, [5]);
    assert_eq!(fired(&record), ["5 overflow"]);
    assert_eq!(rejected(&record), []);
    // The lesson counts over one run of its loop: a second refusal before anybody typed is the end.
    let record = s08(8, 4_000, name, 4_500);
    let died = matches!(record.end, End::Died { call: 7, .. });
    assert!(died, "{:?}", record.end);
    assert_eq!(fired(&record), ["5 overflow"]);
    let mut messages: Vec<Message> =
        reading_session(8, 4_000).messages().iter().map(|message| (**message).clone()).collect();
    messages.splice(13..13, [said("Half of them."), typed("Go on.")]);
    let model = Scripted::new().texts(["THE SUMMARY"; 50]);
    let record = run(&prepared(session(messages)), name, 4_500, &models(model)).record;
    assert_eq!(record.end, End::Completed);
    assert_eq!(fired(&record), ["5 overflow", "8 overflow"]);
    // Counted call by call it goes on.
    let name = "learn-claude-code-s08[clear_results.keep_last=99,overflow.max_retries_per=call]";
    let record = s08(8, 4_000, name, 4_500);
    assert_eq!(record.end, End::Completed);
    assert_eq!(fired(&record), ["5 overflow", "7 overflow"]);
    assert_eq!(rejected(&record), []);
    // One attempt: what is still too long kills the session.
    let record = s08(8, 4_000, name, 2_000);
    assert!(matches!(record.end, End::Died { call: 2, .. }), "{:?}", record.end);
}

/// A session of parallel calls that answers to `compact`.
fn working_session() -> Vec<Message> {
    let mut messages = vec![typed("Please do all of it.")];
    for round in 0..30 {
        let ids = [format!("a{round}"), format!("b{round}")];
        let uses = ids.each_ref().map(|id| tool_use(id, "Read", id));
        messages.push(Message::new(Role::Assistant, uses.to_vec()));
        for id in &ids {
            messages.push(answers(id, &format!("result {id} ").repeat(5)));
        }
    }
    messages.push(asks("c", "compact", "keep the paths"));
    messages.push(answers("c", "[Compacted. History summarized.]"));
    messages.push(said("Done."));
    messages
}

#[test]
fn without_its_guard_the_lesson_breaks_what_the_provider_demands() {
    let prepared = prepared(session(working_session()));
    let record = |name: &str| {
        let model = Scripted::new().texts(["THE SUMMARY"; 50]);
        run(&prepared, name, 200_000, &models(model)).record
    };
    let guarded = record("learn-claude-code-s08");
    assert_eq!(rejected(&guarded), []);
    assert_eq!(fired(&guarded).last().unwrap(), "31 summarize");
    let unguarded = record("learn-claude-code-s08-unguarded");
    assert_eq!(fired(&unguarded).last().unwrap(), "31 compact_tool");
    let broken = rejected(&unguarded);
    // Cut between a call and its results, and then the orphan that `compact` leaves.
    assert!(broken.contains(&(17, "orphan_result")), "{broken:?}");
    assert!(broken.contains(&(31, "orphan_result")), "{broken:?}");
}

#[test]
fn a_repaired_prompt_keeps_every_pair() {
    let stages = "[[stage]]\nkind = 'drop_middle'\nmax_messages = 9\nkeep_first = 2\ncut = 'none'\n\
         [[stage]]\nkind = 'normalize'\n";
    for knobs in ["", "missing_result = 'drop_call'", "orphan_result = 'to_text'"] {
        let record = staged(working_session(), &format!("{stages}{knobs}"), 200_000).record;
        assert!(fired(&record).iter().any(|event| event.ends_with("normalize")), "{knobs}");
        assert_eq!(rejected(&record), [], "{knobs}");
    }
}

#[test]
fn a_control_cuts_to_the_sizes_of_what_it_follows() {
    let prepared = prepared(reading_session(20, 4_000));
    let sizes = BTreeMap::from([(5, Tokens(3_500)), (10, Tokens(2_100)), (11, Tokens(90_000))]);
    for name in ["tail@none", "random@none"] {
        let spec = strategy(name).with_sizes(sizes.clone());
        let replayed =
            Replayed::Strategy(Box::new(spec.build().unwrap()), Window::new(Tokens(200_000)));
        let models = models(Scripted::new());
        let record = replay(&prepared, cell(name), replayed, &models, &NoClock).record;
        assert_eq!(fired(&record), ["5 select", "10 select"]);
        for event in &record.compactions {
            assert!(event.after <= sizes[&event.call], "{event:?}");
            assert!(event.after.0 + 1_100 > sizes[&event.call].0, "{event:?}");
        }
        assert_eq!(rejected(&record), []);
    }
}

#[test]
fn a_run_waits_for_what_is_followed_and_finds_it_again() {
    let of = |strategies: &[&str]| {
        let mut text = "[window]\ntokens = 20_000\n[[sessions]]\ncount = 2\n\
             synthetic = { family = 'code-review', seed = 1, rounds = 12 }\n"
            .to_owned();
        for name in strategies {
            writeln!(text, "[[strategies]]\npreset = '{name}'").unwrap();
        }
        scenario(&text, std::path::Path::new(""))
    };
    let strategies = [
        "tail@observation-masking[clear_results.keep_last=2]",
        "random@observation-masking[clear_results.keep_last=2]",
        "observation-masking[clear_results.keep_last=2]",
    ];
    let plan = Plan::new(of(&strategies)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (outcome, run) = run_in(folder.path(), &plan, 4);
    assert_eq!((outcome.outstanding, outcome.broken.len()), (0, 0));
    let whole = run.cells;
    let of = |session: &str, strategy: &str| {
        let found = whole.iter().find(|cell| cell.session == session && cell.strategy == strategy);
        found.unwrap().clone()
    };
    for cell in &whole {
        if cell.strategy != strategies[0] && cell.strategy != strategies[1] {
            continue;
        }
        let followed = of(&cell.session, strategies[2]);
        assert!(!cell.compactions.is_empty(), "{}", cell.strategy);
        for event in &cell.compactions {
            let size = followed.prompt_tokens[event.call] - followed.fixed_tokens;
            let newest = cell.prompt_tokens[event.call] - cell.fixed_tokens;
            assert!(newest <= size.max(event.after), "{event:?}");
        }
    }
    // The lines of those that follow are lost: they are run again, beside what is in the journal.
    let path = folder.path().join("cells.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let kept: String = text
        .split_inclusive('\n')
        .filter(|line| {
            !line.contains("\"strategy\":\"tail@") && !line.contains("\"strategy\":\"random@")
        })
        .collect();
    assert!(kept.len() < text.len());
    std::fs::write(&path, kept).unwrap();
    let (outcome, run) = run_in(folder.path(), &plan, 1);
    assert_eq!((outcome.done_now, outcome.outstanding), (4, 0));
    assert_eq!(run.cells, whole);
}
