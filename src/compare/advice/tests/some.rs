//! Sentences about few sessions, or about some of them.

use std::collections::BTreeMap;

use super::tests::{bill_of, check, row, world};
use super::*;
use crate::compare::judge::tests::billed;
use crate::compare::of_pair;

/// Sessions of a world.
const SESSIONS: usize = 12;

#[test]
fn one_recording_and_three_decide_nothing_and_say_what_was_seen() {
    let rows = |sessions| {
        vec![
            row("codex", sessions, (0.9, 0.99), (0.85, 0.8)),
            row("dear", sessions, (1.5, 1.0), (1.2, 1.0)),
        ]
    };
    let said = check(
        &world(1, true, rows(1)),
        Answer::FewSessions,
        &[
            "On this session: doing nothing costs $10.00; the cheapest that kept as much is codex, $9.",
            "One session decides nothing: give a folder.",
        ],
    );
    // An exact result is said at any number of sessions.
    assert_eq!(said.avoid.len(), 1);
    check(
        &world(3, true, rows(3)),
        Answer::FewSessions,
        &[
            "On these 3 sessions: doing nothing costs $32.40; ",
            " saved from session to session",
            "6 are the least that decide anything.",
        ],
    );
    check(
        &world(3, false, rows(3)),
        Answer::FewSessions,
        &["full history costs $32.40 and does not fit the window"],
    );
    let mut some = world(3, true, rows(3));
    some.fits.pop_first();
    check(
        &some,
        Answer::FewSessions,
        &["full history costs $32.40 and fits the window in 2 of them"],
    );
    check(&world(5, true, rows(5)), Answer::FewSessions, &[]);
    // A strategy that forgets is cheaper still, and kept less.
    for few in 1..6 {
        let mut rows = rows(few);
        rows.push(row("lossy", few, (0.5, 0.4), (0.5, 0.4)));
        let kept = world(few, true, rows);
        check(&kept, Answer::FewSessions, &["kept as much is codex, $"]);
    }
    // A recording without planted facts: what later actions needed is what is known.
    let mut plain = world(1, true, rows(1));
    let own = plain.strategies.iter_mut().map(|row| &mut row.sample);
    for sample in own.chain([&mut plain.nothing]) {
        sample.sessions.values_mut().for_each(|it| it.probes.clear());
    }
    check(
        &plain,
        Answer::FewSessions,
        &["the cheapest that kept as much of later actions is codex, $9."],
    );
}

#[test]
fn an_axis_without_items_on_either_side_limits_what_is_said_and_is_no_condition() {
    let without = |strategy: &RunRow, axis: Option<Axis>| {
        let mut judged = world(SESSIONS, true, vec![strategy.clone()]);
        let own = judged.strategies.iter_mut();
        let samples = own.flat_map(|row| [Some(&mut row.sample), row.control.as_mut()]);
        for sample in samples.flatten().chain([&mut judged.nothing]) {
            for session in sample.sessions.values_mut() {
                if axis != Some(Axis::Actions) {
                    session.metrics.remove("actions");
                }
                if axis != Some(Axis::Facts) {
                    session.probes.clear();
                }
            }
        }
        judged
    };
    let [facts, actions] = ["say nothing of facts (none", "say nothing of actions (no later one"];
    for (own, kept, answer) in
        [(0.9, 0.99, Answer::Use), (0.9, 0.92, Answer::Trade), (1.2, 0.99, Answer::Keep)]
    {
        let strategy = row("codex", SESSIONS, (own, kept), (0.85, 0.7));
        for (axis, limit) in [(Axis::Facts, actions), (Axis::Actions, facts)] {
            let limit = if answer == Answer::Keep { "" } else { limit };
            check(&without(&strategy, Some(axis)), answer, &[limit]);
        }
        let said = check(&without(&strategy, None), Answer::Keep, &[]);
        let why = said.contenders[0].obstacle.as_ref().unwrap();
        assert!(own > 1.0 || why.ends_with("so what it keeps is not known"), "{why}");
    }
}

#[test]
fn a_strategy_that_fired_in_few_sessions_is_never_shown_and_says_so() {
    let mut rare = row("codex", SESSIONS, (1.0, 1.0), (1.0, 1.0));
    rare.fired = 2;
    for (at, (id, session)) in rare.sample.sessions.iter_mut().enumerate() {
        let own = bill_of(at) * if id == "s03" || id == "s07" { 0.8 } else { 1.0 };
        session.metrics.insert("dollars".to_owned(), vec![own]);
    }
    check(
        &world(SESSIONS, true, vec![rare]),
        Answer::Keep,
        &["; it fired in 2 of 12)", "only 2 sessions differ"],
    );
}

#[test]
fn what_is_said_of_some_sessions_names_them() {
    // Where full history fits, `one` is dearer and `two` is cheaper by chance; over all, `one` has the lowest bill.
    let mut rows = world(
        SESSIONS,
        true,
        vec![
            row("one", SESSIONS, (1.2, 1.0), (1.2, 1.0)),
            row("two", SESSIONS, (0.99, 0.97), (1.0, 1.0)),
        ],
    );
    rows.fits.retain(|id| id.as_str() < "s06");
    for (row, factor) in rows.strategies.iter_mut().zip([0.2, 3.0]) {
        for (_, session) in row.sample.sessions.iter_mut().filter(|(id, _)| id.as_str() >= "s06") {
            session.metrics.get_mut("dollars").unwrap()[0] *= factor;
        }
    }
    let said = check(
        &rows,
        Answer::Keep,
        &["on the 6 of 12 sessions that fit their window: two has the lowest bill and saves $"],
    );
    let place = "1.2 times the bill of doing nothing on the 6 of 12 sessions that fit their window";
    assert!(said.avoid.iter().any(|it| it.why == place), "{:?}", said.avoid);
    // So does a bill in input tokens.
    let own = rows.strategies.iter_mut().map(|row| &mut row.sample);
    for session in own.chain([&mut rows.nothing]).flat_map(|sample| sample.sessions.values_mut()) {
        let dollars = session.metrics.remove("dollars").unwrap();
        session.metrics.insert("bill".to_owned(), dollars);
    }
    check(
        &rows,
        Answer::Keep,
        &["on the 6 of 12 sessions that fit their window: two has the lowest bill and saves "],
    );
}

#[test]
fn more_sessions_are_those_in_which_an_axis_is_known() {
    let mut rows = world(SESSIONS, true, vec![row("codex", SESSIONS, (0.9, 1.0), (0.85, 0.5))]);
    // Facts are known of three sessions alone, and actions are the same.
    let mut samples: Vec<&mut Sample> = vec![&mut rows.nothing];
    for row in &mut rows.strategies {
        samples.extend([&mut row.sample].into_iter().chain(&mut row.control));
    }
    for (id, session) in samples.into_iter().flat_map(|it| &mut it.sessions) {
        session.metrics.insert("actions".to_owned(), vec![1.0]);
        session.probes.retain(|_, _| id.as_str() < "s03");
    }
    check(&rows, Answer::Ahead, &["About 12 more sessions like these would show it."]);
}

#[test]
fn where_doing_nothing_is_no_choice_a_row_needs_a_yardstick_and_is_not_dearer_wherever_that_completes()
 {
    let dear = |bill| RunRow {
        cause: Some("as 9 edits break the prompt cache".to_owned()),
        ..row("dear", SESSIONS, (bill, 0.9), (1.2, 0.6))
    };
    let ratio = "3.0 times the bill of full history, as 9 edits break the prompt cache; ";
    let tail = RunRow { control: None, ..row("tail@20000", SESSIONS, (0.9, 0.7), (0.9, 0.7)) };
    for (alone, says) in [(dear(3.0), ratio), (tail.clone(), "")] {
        let why = "no other strategy runs to the end";
        check(&world(SESSIONS, false, vec![alone]), Answer::Undecided, &[why, says]);
    }
    // A control that costs more is a yardstick.
    check(&world(SESSIONS, false, vec![dear(1.1)]), Answer::Use, &["Use dear. "]);
    // Beside another it is the cheapest of what keeps as much, and its bill is set against full history.
    let both = vec![dear(3.0), row("dearer", SESSIONS, (3.5, 0.9), (1.2, 0.6))];
    check(&world(SESSIONS, false, both), Answer::Use, &["Use dear. ", ratio]);
    let mut judged = world(SESSIONS, false, vec![dear(3.0), tail]);
    let all: Vec<String> = judged.nothing.sessions.keys().cloned().collect();
    for fitting in 1..6 {
        judged.fits = all[..fitting].iter().cloned().collect();
        let said = check(&judged, Answer::Use, &["Use tail@20000"]);
        let why = format!(
            "3.0 times the bill of doing nothing on the {fitting} of 12 sessions that fit their window"
        );
        assert!(said.avoid.iter().any(|one| one.why.contains(&why)), "{:?}", said.avoid);
        let mut alone = judged.clone();
        alone.strategies.pop();
        let wherever = "it costs more than doing nothing wherever that runs to the end";
        check(&alone, Answer::Undecided, &[wherever]);
        // Cheaper in one of them, it is not.
        let first = alone.strategies[0].sample.sessions.get_mut("s00").unwrap();
        first.metrics.insert("dollars".to_owned(), vec![0.1]);
        check(&alone, Answer::Undecided, &["no other strategy runs to the end"]);
    }
}

#[test]
fn a_strategy_that_changes_nothing_and_asks_a_model_is_judged_by_its_bill() {
    let mut idle = RunRow { fired: 0, ..row("asks", SESSIONS, (5.8, 1.0), (1.0, 1.0)) };
    check(&world(SESSIONS, true, vec![idle.clone()]), Answer::NothingFires, &[]);
    for session in idle.sample.sessions.values_mut() {
        session.metrics.insert("calls".to_owned(), vec![49.0]);
    }
    let said = check(
        &world(SESSIONS, true, vec![idle]),
        Answer::Keep,
        &["Everything else costs more than its $128.80: the cheapest, asks, costs $6"],
    );
    assert!(said.avoid[0].why.starts_with("5.8 times the bill of doing nothing"));
}

#[test]
fn sessions_without_a_price_and_bills_of_nothing_make_no_number_up() {
    let mut rows = world(SESSIONS, true, vec![row("codex", SESSIONS, (0.9, 0.99), (0.85, 0.8))]);
    let all = |rows: &mut Rows, change: fn(&mut BTreeMap<String, Vec<f64>>)| {
        let own = rows
            .strategies
            .iter_mut()
            .flat_map(|row| [Some(&mut row.sample), row.control.as_mut()]);
        for sample in own.flatten().chain([&mut rows.nothing]) {
            sample.sessions.values_mut().for_each(|it| change(&mut it.metrics));
        }
    };
    all(&mut rows, |metrics| {
        metrics.remove("dollars");
    });
    check(&rows, Answer::Use, &["It saves 13 input tokens (bill −10 %"]);
    all(&mut rows, |metrics| {
        metrics.insert("bill".to_owned(), vec![0.0]);
    });
    check(&rows, Answer::Keep, &[": codex costs as much"]);
    all(&mut rows, |metrics| {
        metrics.remove("bill");
    });
    check(&rows, Answer::Keep, &["its bill is not known"]);
    rows.fits.clear();
    check(&rows, Answer::Undecided, &["Not decided: as to codex, its bill is not known."]);
}

#[test]
fn what_saves_where_prices_are_known_and_costs_elsewhere_is_not_used() {
    let mut rows = world(SESSIONS, true, vec![row("codex", SESSIONS, (0.9, 0.99), (0.85, 0.8))]);
    let [row] = &mut rows.strategies[..] else { unreachable!() };
    let samples = [&mut rows.nothing, &mut row.sample];
    for (sample, factor) in samples.into_iter().zip([1.0, 5.0]) {
        for (_, session) in sample.sessions.iter_mut().filter(|(id, _)| id.as_str() >= "s04") {
            session.metrics.remove("dollars");
            session.metrics.get_mut("bill").unwrap()[0] *= factor;
        }
    }
    let said = check(
        &rows,
        Answer::Keep,
        &["as to codex, it costs more than doing nothing (bill +230 % of input tokens ["],
    );
    let why = "3.3 times the bill of doing nothing in input tokens";
    assert_eq!(said.avoid[0].why, why);
}

#[test]
fn a_comparison_that_is_turned_around_has_the_same_reasons() {
    let whole = billed("whole", &[1.2; 7], &[1.0; 7]);
    let mut dies = billed("dies", &[1.0; 7], &[1.0; 7]);
    let first = dies.sessions.get_mut("s00").unwrap();
    first.dead = 1;
    first.died_at = Some("call 9".to_owned());
    first.metrics.insert("completion".to_owned(), vec![0.5]);
    let rule = JudgingRule { target: Target::Suite, ..JudgingRule::of_population(1) };
    let says = |old, new| of_pair(&judge::judge(old, new, &rule)).text;
    let ways = [says(&dies, &whole), says(&whole, &dies)];
    assert_eq!(
        ways.each_ref().map(|text| text.split_once(", and").unwrap().0),
        ["whole is a trade: better on completion +7", "dies is a trade: better on bill −17 %"]
    );
}

#[test]
fn full_history_is_a_choice_where_the_agent_compacted() {
    let mut none = row("none", SESSIONS, (0.9, 1.0), (1.0, 1.0));
    none.control = None;
    let mut rows =
        world(SESSIONS, true, vec![none, row("codex", SESSIONS, (1.1, 0.9), (1.2, 0.8))]);
    RECORDED.clone_into(&mut rows.nothing.strategy);
    check(&rows, Answer::Use, &["Use none (full history). It saves $"]);
}
