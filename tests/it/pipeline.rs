//! The pipeline: which stages are asked, in which order, and what happens when they fail.

use std::sync::{Arc, Mutex};

use proctor::context::Context;
use proctor::model::scripted::{Scripted, response};
use proctor::model::{CallFailure, Purpose};
use proctor::record::CellRecord;
use proctor::replay::{NoClock, Replayed, replay};
use proctor::session::Message;
use proctor::settings::{SettingError, SettingTable};
use proctor::step::Step;
use proctor::strategy::trigger::Trigger;
use proctor::strategy::{Compaction, Pipeline, Situation, Strategy, StrategySpec};
use proctor::units::Tokens;
use proctor::window::Window;

use crate::support::{answers, asks, cell, models, prepared, said, session, typed};

/// A strategy written in TOML.
fn own(stages: &str) -> Result<StrategySpec, SettingError> {
    let table = SettingTable::parse("own.toml", stages).unwrap();
    StrategySpec::of("own", table, &Trigger::always())
}

/// Replays `messages` through stages written in TOML, with these answers of the model.
fn through(messages: Vec<Message>, stages: &str, window: u64, model: Scripted) -> CellRecord {
    let strategy = Box::new(own(stages).unwrap().build().unwrap());
    let replayed = Replayed::Strategy(strategy, Window::new(Tokens(window)));
    let prepared = prepared(session(messages));
    replay(&prepared, cell("own"), replayed, &models(model), &NoClock).record
}

/// What fired: `call stage`, in order.
fn fired(record: &CellRecord) -> Vec<String> {
    let events = record.compactions.iter();
    events.map(|event| format!("{} {}", event.call, event.stage)).collect()
}

/// So many rounds, each reading 4,000 characters.
fn reads(rounds: usize) -> Vec<Message> {
    let mut messages = vec![typed("go")];
    for round in 0..rounds {
        let id = format!("t{round}");
        messages.push(asks(&id, "Read", "a"));
        messages.push(answers(&id, &format!("{round:04} ").repeat(800)));
    }
    messages.push(said("done"));
    messages
}

/// Two stages that each fire once there is something to do for them.
const CLEAR: &str = "[[stage]]\nkind = 'clear_results'\nname = 'clear'\nkeep_last = 1\n\
     when = { results_over = 2 }\n";

/// The calls at which a stage that always fails was tried.
fn tried(record: &CellRecord) -> Vec<usize> {
    record.failures.iter().map(|failure| failure.call).collect()
}

#[test]
fn a_stage_may_wait_for_what_an_earlier_one_did() {
    // From the third result on there is a newly old one at each call.
    for (when, calls) in [
        ("{ after = 'clear' }", &[3, 4, 5][..]),
        ("{ unless = 'clear' }", &[0, 1, 2]),
        ("{ all = [{ unless = 'clear' }, { results_over = 1 }] }", &[2]),
        ("{ any = [{ after = 'clear' }, { results_over = 1 }] }", &[2, 3, 4, 5]),
    ] {
        let stages = format!(
            "{CLEAR}[[stage]]\nkind = 'summarize'\nwhen = {when}\n\
             guards.max_consecutive_failures = 0"
        );
        let record = through(reads(5), &stages, 200_000, Scripted::new());
        assert_eq!(tried(&record), calls, "{when}");
    }
}

#[test]
fn what_follows_a_recovery_happens_at_the_refused_call() {
    let stages = "[[stage]]\nkind = 'summarize'\nwhen = { after = 'overflow' }\n\
         guards.max_consecutive_failures = 0\n\
         [overflow]\nstage = 'drop_oldest'\nfit_fraction = 0.5";
    let record = through(reads(8), stages, 3_500, Scripted::new());
    assert_eq!(record.overflows, [4, 7]);
    assert_eq!(fired(&record), ["4 overflow", "7 overflow"]);
    assert_eq!(tried(&record), [4, 7]);
}

#[test]
fn a_stage_that_answers_refusals_alone_knows_of_the_messages_before() {
    let stages = "[overflow]\nstage = 'digest'\nkeep_last_messages = 2";
    let record = through(reads(8), stages, 3_500, Scripted::new());
    let texts = record.changes.iter().filter_map(|change| change.after.as_ref());
    let texts: Vec<&str> = texts.map(|after| &*after.text).collect();
    assert!(!texts.is_empty());
    for text in texts {
        assert!(text.contains("The user said:\n- go"), "{text}");
    }
}

#[test]
fn a_stage_waits_for_no_stage_that_comes_later() {
    let other = "[[stage]]\nkind = 'normalize'\n";
    for (stages, says) in [
        (
            format!("{other}when = {{ after = 'normalise' }}"),
            "`own.toml`: line 3: `normalize.when` names `normalise`, and the strategy has no such stage",
        ),
        (
            format!("{other}when = {{ unless = 'clear' }}\n{CLEAR}"),
            "`own.toml`: line 3: `normalize.when` names `clear`, which does not stand before it",
        ),
        (
            format!("{other}when = {{ after = 'normalize' }}"),
            "`own.toml`: line 3: `normalize.when` names `normalize`, which does not stand before it",
        ),
        (
            format!("{CLEAR}{other}when = {{ any = ['marker', {{ after = 'cler' }}] }}"),
            "`own.toml`: line 8: `normalize.when` names `cler`, and the strategy has no such stage, \
             did you mean `clear`?",
        ),
        (
            format!("{CLEAR}{other}when = {{ after = 'overflow' }}"),
            "`own.toml`: line 8: `normalize.when` names `overflow`, and the strategy has no such stage",
        ),
    ] {
        let error = own(&stages).unwrap_err().to_string();
        assert_eq!(error, says);
    }
}

#[test]
fn stages_without_a_model_need_no_stack() {
    let stages: Vec<String> =
        (0..2_000).map(|at| format!("[[stage]]\nkind = 'normalize'\nname = 's{at}'\n")).collect();
    let record = through(reads(1), &stages.concat(), 200_000, Scripted::new());
    assert!(fired(&record).is_empty());
}

/// A pipeline, and what the breaker of its last stage said after each call.
#[derive(Debug)]
struct Noted(Pipeline, Arc<Mutex<Vec<(u32, bool)>>>);

impl Strategy for Noted {
    fn on_append(&mut self, context: Context, cx: &Situation) -> Compaction {
        self.0.on_append(context, cx)
    }

    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.0.before_call(context, cx)
    }

    fn on_overflow<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.0.on_overflow(context, cx)
    }

    fn after_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        let (_, failures, is_open) = self.0.breakers().last().unwrap();
        let noted = (failures, is_open);
        self.1.lock().unwrap().push(noted);
        self.0.after_call(context, cx)
    }
}

/// As `through`, with the breaker of the last stage after each call.
fn noted(messages: Vec<Message>, stages: &str, model: Scripted) -> (CellRecord, Vec<(u32, bool)>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let strategy = Box::new(Noted(own(stages).unwrap().build().unwrap(), seen.clone()));
    let replayed = Replayed::Strategy(strategy, Window::new(Tokens(200_000)));
    let prepared = prepared(session(messages));
    let record = replay(&prepared, cell("own"), replayed, &models(model), &NoClock).record;
    let seen = seen.lock().unwrap().clone();
    (record, seen)
}

/// The exercise of the document that the breaker was taken from: one success, three failures, and
/// no attempt at the turn after.
#[test]
fn three_failures_in_a_row_are_the_last_attempts() {
    let stages = "[[stage]]\nkind = 'summarize'\nwhen = { rounds_every = 1 }\nstream_retries = 2\n\
         guards.on_inflation = 'apply'";
    let failing = || (0..100).map(|_| Err(CallFailure::SERVER));
    let answers = [Ok(response("S"))].into_iter().chain(failing());
    let model = Scripted::new().answers(answers);
    let (record, breaker) = noted(reads(6), stages, model);
    // The first call is none of the summary's: a round has to pass.
    let expected =
        [(0, false), (0, false), (1, false), (2, false), (3, true), (3, true), (3, true)];
    assert_eq!(breaker, expected);
    assert_eq!(fired(&record), ["1 summarize"]);
    assert_eq!(tried(&record), [2, 3, 4]);
    // Attempts are counted, not calls: each failed three times on the way, and all is billed.
    let calls: Vec<usize> = record.model_calls.iter().map(|call| call.call).collect();
    assert_eq!(calls, [1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
}

#[test]
fn an_open_breaker_is_closed_by_a_compaction_that_was_asked_for() {
    let stages = "[[stage]]\nkind = 'summarize'\n\
         when = { any = [{ rounds_every = 1 }, { tool = 'compact' }] }\n\
         guards = { on_inflation = 'apply', max_consecutive_failures = 2 }";
    let mut messages = reads(4);
    messages.push(typed("compact"));
    for id in ["c0", "c1"] {
        messages.push(asks(id, "compact", "now"));
        messages.push(answers(id, "yes"));
    }
    messages.extend([said("a"), typed("b"), said("c")]);
    // Fails twice; then nothing, until the model asks; fails once more, and then succeeds.
    let failures = (0..3).map(|_| Err(CallFailure::SERVER));
    let model = Scripted::new().answers(failures).texts(["S"; 9]);
    let (record, breaker) = noted(messages, stages, model);
    let expected = [
        (0, false),
        (1, false),
        (2, true),
        (2, true),
        (2, true),
        (2, true),
        (3, true),
        (0, false),
        (0, false),
    ];
    assert_eq!(breaker, expected);
    assert_eq!(tried(&record), [1, 2, 6]);
    assert_eq!(fired(&record), ["7 summarize", "8 summarize"]);
}

/// Notes that were written change nothing in the context, and are a success all the same.
#[test]
fn notes_that_were_written_close_a_breaker() {
    let stages = "[[stage]]\nkind = 'session_memory'\nwhen = { tokens_over = 900_000 }\n\
         init_tokens = 1\nupdate_every_tokens = 1\nguards.max_consecutive_failures = 2";
    let failed = || Err(CallFailure::SERVER);
    let written = || Ok(response("NOTES"));
    let answers = [failed(), written(), failed(), written(), failed(), failed()];
    let model = Scripted::new().answers(answers);
    let (record, breaker) = noted(reads(8), stages, model);
    // Two failures in a row are the last attempts, and only two in a row.
    let failures: Vec<u32> = breaker.iter().map(|(failures, _)| *failures).collect();
    assert_eq!(failures, [0, 1, 0, 1, 0, 1, 2, 2, 2]);
    let asked: Vec<usize> = record.model_calls.iter().map(|call| call.call).collect();
    assert_eq!(asked, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn what_leaves_the_context_over_its_own_trigger_is_noted() {
    let over = |rounds: usize, stages: &str| -> Vec<(usize, bool)> {
        let model = Scripted::new().texts(["S"; 9]);
        let record = through(reads(rounds), stages, 200_000, model);
        let events = record.compactions.iter();
        events.map(|event| (event.call, event.still_over)).collect()
    };
    let summarise = |rest: &str| {
        format!("[[stage]]\nkind = 'summarize'\nwhen = {{ tokens_over = 2_500 }}\n{rest}")
    };
    assert_eq!(over(4, &summarise("")), [(3, false)]);
    let keeps = summarise("keep_last_rounds = 4\n");
    assert_eq!(over(4, &keeps), [(3, true), (4, true)]);
    // What a later stage does at the same call counts; one that waits for no size is never over it.
    let clears = "[[stage]]\nkind = 'clear_results'\nkeep_last = 1\n\
         when = { after = 'summarize' }\n";
    let helped = over(3, &format!("{keeps}{clears}"));
    assert_eq!(helped, [(3, false), (3, false)]);
}

#[test]
fn a_gain_that_is_too_small_and_a_turn_that_had_its_share_change_nothing() {
    let run = |guards: &str, messages: Vec<Message>| {
        let stages =
            format!("[[stage]]\nkind = 'clear_results'\nkeep_last = 1\nguards = {{ {guards} }}");
        fired(&through(messages, &stages, 200_000, Scripted::new()))
    };
    // Each clears 1,000 tokens, of 2,000 at first.
    assert_eq!(run("min_gain_fraction = 0.4", reads(4)).len(), 3);
    assert_eq!(run("min_gain_fraction = 0.9", reads(4)), Vec::<String>::new());
    let mut turns = reads(4);
    turns.extend(reads(3));
    let typed = "[[stage]]\nkind = 'clear_results'\nkeep_last = 1\nwhen = 'typed'";
    let record = through(turns.clone(), typed, 200_000, Scripted::new());
    assert_eq!(fired(&record), ["5 clear_results"]);
    assert_eq!(
        run("max_per_turn = 2", turns),
        ["2 clear_results", "3 clear_results", "5 clear_results", "6 clear_results"]
    );
}

#[test]
fn what_was_asked_for_ahead_is_there_when_it_is_wanted() {
    let stages = |rest: &str| {
        format!(
            "[[stage]]\nkind = 'summarize'\nwhen = {{ tokens_over = 4_500 }}\n\
             prepare_at = {{ tokens_over = 2_500 }}\n{rest}"
        )
    };
    let run = |rounds, window, stages: &str| {
        let model = Scripted::new().texts(["S"; 9]);
        through(reads(rounds), stages, window, model)
    };
    let asked = |record: &CellRecord| -> Vec<(usize, Purpose)> {
        let calls = record.model_calls.iter();
        calls.map(|call| (call.call, call.purpose)).collect()
    };
    let record = run(6, 200_000, &stages(""));
    // Over 2,500 tokens from the third result on, over 4,500 from the fifth. What came in between stays: two rounds,
    // so that the next request is due at the call after the next.
    assert_eq!(asked(&record), [(3, Purpose::Background), (6, Purpose::Background)]);
    assert_eq!(fired(&record), ["5 summarize"]);
    assert!(record.compactions[0].reason.ends_with("asked for before call 3"));
    assert!(record.compactions[0].after > Tokens(2_000));
    // A refused prompt takes what is there.
    let record = run(4, 4_000, &stages(""));
    assert_eq!(
        (record.overflows.clone(), fired(&record)),
        (vec![4], vec!["4 summarize".to_owned()])
    );
    // What was changed since is no longer what was asked about: it is asked again.
    let clears = "[[stage]]\nkind = 'clear_results'\nkeep_last = 1\nwhen = { results_over = 3 }\n";
    let record = run(4, 200_000, &format!("{clears}{}", stages("").replace("2_500", "1_500")));
    assert_eq!(asked(&record)[..1], [(2, Purpose::Background)]);
    assert!(fired(&record).iter().all(|event| event.ends_with("clear_results")));
    // One that fails is a failed attempt, and the history stays.
    let record = through(reads(4), &stages(""), 200_000, Scripted::new());
    assert_eq!(tried(&record), [3, 4]);
}

#[test]
fn a_compaction_never_causes_another() {
    // Each request for a summary is itself far over the threshold.
    let stages = "[[stage]]\nkind = 'summarize'\nwhen = { tokens_over = 1_500 }\nmode = 'append'";
    let model = Scripted::new().texts(["S"; 99]);
    let record = through(reads(8), stages, 200_000, model);
    let calls: Vec<usize> = record.model_calls.iter().map(|call| call.call).collect();
    assert_eq!(calls, [2, 4, 6, 8]);
    for call in &record.model_calls {
        assert_eq!(call.purpose, Purpose::Compaction);
        assert!(call.usage.input_uncached > Tokens(2_000));
    }
}
