//! What a person asks for: a compaction where a phase of the work ends, with a hint what to keep.

use std::path::Path;

use proctor::model::scripted::response;
use proctor::session::{
    CompactedTo, Message, Recorded, RecordedCompaction, Role, Session, Tag, import, native,
};
use proctor::settings::SettingTable;
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::units::Tokens;
use proctor::window::Window;

use crate::support::{answers, asks, said, session, session_with, strategy, typed};
use crate::walk::Walk;

const HINT: &str = "Keep the table of ports.";

/// Four calls; before the third a person ends a phase, with a hint.
fn phased() -> Session {
    let mut end = typed("Now the second part.").with_tags([Tag::TypedUser, Tag::PhaseEnd]);
    end.details.compact_hint = Some(HINT.into());
    session(vec![
        typed("Read the first part."),
        asks("t0", "Read", "a.rs"),
        answers("t0", &"content of a ".repeat(200)),
        said("Read."),
        end,
        asks("t1", "Read", "b.rs"),
        answers("t1", &"content of b ".repeat(200)),
        said("Done."),
    ])
}

fn walk(session: Session, spec: &StrategySpec) -> Walk {
    let window = Window::new(Tokens(100_000));
    Walk::of(session, spec, window, |_, _| Ok(response("S")))
}

fn summarising(when: &str) -> StrategySpec {
    let text =
        format!("[[stage]]\nkind = 'summarize'\nwhen = {when}\ninstructions = 'Keep the rules.'");
    let table = SettingTable::parse("own.toml", &text).unwrap();
    StrategySpec::of("own", table, &Trigger::always()).unwrap()
}

/// The calls at which a summary was asked for, and which of the requests held the hint.
#[track_caller]
fn check(when: &str, calls: &[usize], hinted: &[bool]) {
    let walk = walk(phased(), &summarising(when));
    let asked = walk.record.model_calls.iter().map(|asked| asked.call);
    assert_eq!(asked.collect::<Vec<_>>(), calls, "{when}");
    let words = |message: &Message| message.model_text().join("\n");
    let told = walk.requests.iter().map(|request| {
        let words = words(&request.messages[0]);
        assert!(words.contains("Keep the rules."), "{when}: {words}");
        let told =
            format!("Keep the rules.\n\nThe user asked for this summary, and said: {HINT}\n");
        assert_eq!(words.contains(HINT), words.contains(&told), "{when}: {words}");
        words.contains(HINT)
    });
    assert_eq!(told.collect::<Vec<_>>(), hinted, "{when}");
    // The agent itself never reads it.
    assert!(!walk.contexts.concat().join("\n").contains(HINT), "{when}");
}

#[test]
fn the_hint_goes_to_the_summary_that_was_asked_for_and_nowhere_else() {
    check("'marker'", &[2], &[true]);
    check("{ any = ['marker', { tokens_over = 600 }] }", &[1, 2, 3], &[false, true, false]);
    // It fires at the same call, and not because it was asked to.
    check("{ rounds_every = 2 }", &[2], &[false]);
}

/// The same messages, without phases; the product compacted before one of them.
fn compacted(at: usize, trigger: Option<&str>) -> Session {
    let session = phased();
    let messages = session.messages().iter().map(|message| {
        Message::new(message.role(), message.content().to_vec()).with_tags([Tag::TypedUser])
    });
    let summary = Message::text(Role::User, "A was read.");
    let compaction = RecordedCompaction {
        at,
        trigger: trigger.map(Into::into),
        pre_tokens: None,
        usage: None,
        after: CompactedTo::Replaced(vec![Recorded::Written(summary.into())]),
    };
    session_with(messages.collect(), vec![compaction])
}

#[test]
fn what_the_recorded_product_did_when_told_to_was_asked_for_and_is_a_marker() {
    for when in ["'marker'", "'manual'"] {
        for (trigger, calls) in [(Some("manual"), &[3][..]), (Some("auto"), &[]), (None, &[])] {
            let walk = walk(compacted(6, trigger), &summarising(when));
            let asked = walk.record.model_calls.iter().map(|asked| asked.call);
            assert_eq!(asked.collect::<Vec<_>>(), calls, "{when} {trigger:?}");
        }
    }
    // Where a phase ends, nobody has asked for anything.
    let walk = walk(phased(), &summarising("'manual'"));
    assert_eq!(walk.requests.len(), 0);
}

/// By hand as by itself: notes first, a summary where there are none.
#[test]
fn asked_to_compact_claude_code_uses_its_notes_first() {
    let fired = |knobs: &str| {
        let name = format!("claude-code-session-memory[session_memory.reserve_tokens=1000{knobs}]");
        let walk = walk(compacted(5, Some("manual")), &strategy(&name));
        let events = walk.record.compactions.iter();
        let events = events.map(|event| format!("{} {}", event.call, event.stage));
        events.collect::<Vec<_>>()
    };
    let notes = ",session_memory.init_tokens=100,session_memory.min_tokens=1,\
                 session_memory.min_text_messages=1";
    assert_eq!(fired(notes), ["2 session_memory"]);
    assert_eq!(fired(""), ["2 summarize"]);
}

#[test]
fn a_hint_stands_in_the_session_file() {
    let session = phased();
    let mut bytes = Vec::new();
    native::write(&session, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.contains(&format!(
            "\"tags\":[\"typed_user\",\"phase_end\"],\"compact_hint\":\"{HINT}\""
        )),
        "{text}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("phased.session.jsonl");
    std::fs::write(&path, text).unwrap();
    let read = import::load(Path::new(&path)).unwrap();
    assert_eq!(read[0].messages(), session.messages());
}
