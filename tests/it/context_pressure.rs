//! What the model never saw, and how near the window prompts came.

use proctor::model::scripted::Scripted;
use proctor::record::UnseenResults;
use proctor::replay::{NoClock, Replayed, replay};
use proctor::session::{Message, ResumePoint, Role, Session};
use proctor::settings::SettingTable;
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::units::Tokens;
use proctor::window::Window;

use crate::support::{
    answers, asks, cell, models, prepared, reading_session, said, session, tool_result, tool_use,
    typed,
};

/// Results, altered, reachable, put aside.
fn unseen(session: Session, stages: &str) -> (u64, u64, u64, u64) {
    let prepared = prepared(session);
    let table = SettingTable::parse("own", stages).unwrap();
    let spec = StrategySpec::of("own", table, &Trigger::always()).unwrap();
    let pipeline = Box::new(spec.build().unwrap());
    let replayed = Replayed::Strategy(pipeline, Window::new(Tokens(200_000)));
    let name = cell("own");
    let record = replay(&prepared, name, replayed, &models(Scripted::new()), &NoClock).record;
    let UnseenResults { results, altered, reachable, saved } = record.unseen;
    (results, altered, reachable, saved)
}

/// Five files read in one go, then two by themselves.
fn at_once() -> Session {
    let ids = ["a", "b", "c", "d", "e"];
    let uses = ids.map(|id| tool_use(id, "Read", id)).to_vec();
    let results = ids.map(|id| tool_result(id, &format!("text of {id} ").repeat(200)));
    session(vec![
        typed("read"),
        Message::new(Role::Assistant, uses),
        Message::new(Role::User, results.to_vec()),
        asks("f", "Read", "f"),
        answers("f", &"text of f ".repeat(200)),
        asks("g", "Read", "g"),
        answers("g", &"text of g ".repeat(200)),
        said("done"),
    ])
}

#[test]
fn a_result_altered_before_its_first_call_is_unseen() {
    let clear = "[[stage]]\nkind = 'clear_results'\nkeep_last = 3\n";
    let offload = "[[stage]]\nkind = 'offload_results'\nscope = 'last_message'\n\
         max_total_chars = 1_000\npreview_chars = 100\n";
    let truncate = "[[stage]]\nkind = 'truncate_output'\nmax_chars = 400\n";
    // Seven results. Clearing takes old ones, but two of the five that came at once.
    assert_eq!(unseen(at_once(), ""), (7, 0, 0, 0));
    assert_eq!(unseen(at_once(), clear), (7, 2, 0, 0));
    // What is put aside can be read again, until the path itself is cleared.
    assert_eq!(unseen(at_once(), offload), (7, 7, 7, 7));
    assert_eq!(unseen(at_once(), &format!("{offload}{clear}")), (7, 7, 5, 7));
    // In the other order what is cleared is nowhere.
    assert_eq!(unseen(at_once(), &format!("{clear}{offload}")), (7, 7, 5, 5));
    // Cut as it comes in, before anybody has seen it.
    assert_eq!(unseen(at_once(), truncate), (7, 7, 0, 0));
    // One at a time: each was seen before it is cleared.
    assert_eq!(unseen(reading_session(9, 4_000), clear), (9, 0, 0, 0));
}

#[test]
fn what_a_session_was_loaded_with_had_been_seen() {
    let clear = "[[stage]]\nkind = 'clear_results'\nkeep_last = 1\n";
    let (at, notes) = (3, None);
    let resumed = at_once().resume(ResumePoint { at, notes }).unwrap();
    // The five that came at once were loaded; two more came in.
    assert_eq!(unseen(resumed, clear), (2, 0, 0, 0));
}

#[test]
fn a_sub_agent_started_in_a_full_window_would_have_been_blocked() {
    let prepared = prepared(session(vec![
        typed("read"),
        asks("a", "Task", "a"),
        answers("a", &"word ".repeat(800)),
        asks("b", "Task", "b"),
        answers("b", "done"),
        said("done"),
    ]));
    // About 1,000 tokens stand before the second request.
    let blocked = |name: &str, window: u64| {
        let spec = crate::support::strategy(name);
        let pipeline = Box::new(spec.build().unwrap());
        let replayed = Replayed::Strategy(pipeline, Window::new(Tokens(window)));
        let models = models(Scripted::new());
        replay(&prepared, cell(name), replayed, &models, &NoClock).record.blocked_agents
    };
    assert_eq!(blocked("none", 1_050), [1]);
    assert_eq!(blocked("none", 2_000), Vec::<usize>::new());
    // A strategy that collapses has a line of its own.
    let collapse = "claude-code-collapse[collapse_groups.block_at=0.4]";
    assert_eq!(blocked("claude-code-collapse", 2_000), Vec::<usize>::new());
    assert_eq!(blocked(collapse, 2_000), [1]);
}

#[test]
fn what_is_typed_at_the_blocking_line_is_a_blocked_turn() {
    let prepared = prepared(session(vec![
        typed("read"),
        asks("a", "Read", "a"),
        answers("a", &"word ".repeat(800)),
        said("done"),
        typed("more"),
        said("yes"),
    ]));
    // 1,000 tokens and a little stand before the second request; the line is 3,000 below.
    let blocked = |window: u64| {
        let spec = crate::support::strategy("none");
        let pipeline = Box::new(spec.build().unwrap());
        let replayed = Replayed::Strategy(pipeline, Window::new(Tokens(window)));
        let models = models(Scripted::new());
        replay(&prepared, cell("none"), replayed, &models, &NoClock).record.blocked_turns
    };
    assert_eq!(blocked(4_000), [2]);
    assert_eq!(blocked(4_100), Vec::<usize>::new());
}
