//! The loop: what reaches strategies and observers, and how sessions die.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use proctor::context::{Applied, Context, Edit, Entry, Origin, Patch};
use proctor::model::CallFailure;
use proctor::model::scripted::{Scripted, response};
use proctor::record::{CellRecord, End};
use proctor::replay::observe::{CallView, Observer};
use proctor::replay::{NoClock, PreparedSession, Replayed, replay_observed};
use proctor::session::{
    CompactedTo, Message, Recorded, RecordedCompaction, ResumePoint, Role, Session, SessionParts,
};
use proctor::settings::SettingTable;
use proctor::step::Step;
use proctor::strategy::guard::Guards;
use proctor::strategy::pipeline::{Pipeline, Retries, Slot};
use proctor::strategy::trigger::Trigger;
use proctor::strategy::{Compaction, Situation, Stage, StageError, Strategy, StrategySpec};
use proctor::tokens::{CharsPer4, CountedTexts, TokenCounter};
use proctor::units::Tokens;
use proctor::window::Window;

use crate::support::{
    answers, asks, cell, models, prepared, reading_session, run, said, session, session_with,
    strategy, typed,
};

/// Replays what the recorded product did: as much of a `recorded` stage as the test needs.
#[derive(Debug)]
struct Recordings;

impl Stage for Recordings {
    fn plan<'a>(
        &'a mut self,
        context: &Context,
        cx: &'a Situation,
    ) -> Step<'a, Result<Patch, StageError>> {
        let Some(recorded) = &cx.recorded else {
            return Step::Done(Ok(Patch::default()));
        };
        let CompactedTo::Replaced(pieces) = &recorded.after else {
            return Step::Done(Ok(Patch::default()));
        };
        let before = context
            .entries()
            .iter()
            .take_while(|entry| !matches!(entry.origin, Origin::Verbatim(at) if at >= recorded.at))
            .count();
        let origin = Origin::derived_from(&context.entries()[..before]);
        let written = pieces.iter().filter_map(|piece| match piece {
            Recorded::Written(message) => {
                Some(Entry::new(origin.clone(), message.clone(), &cx.counts))
            }
            Recorded::Kept(_) | Recorded::Edited { .. } => None,
        });
        let edits = vec![Edit::replacing(0..before, written)];
        Step::Done(Ok(Patch { edits, reason: "recorded".to_owned(), saved: Vec::new() }))
    }
}

#[test]
fn a_recorded_compaction_reaches_the_strategy_at_its_call() {
    let summary = Message::text(Role::User, "What was said so far, in short.");
    let session = session_with(
        vec![
            typed("one"),
            asks("t1", "Read", "a"),
            answers("t1", &"long ".repeat(200)),
            said("done"),
            typed("two"),
            said("yes"),
        ],
        vec![RecordedCompaction {
            at: 4,
            trigger: Some("auto".into()),
            pre_tokens: Some(Tokens(9)),
            usage: None,
            after: CompactedTo::Replaced(vec![Recorded::Written(Arc::new(summary))]),
        }],
    );
    let prepared = prepared(session);
    let slot =
        Slot::new("recorded".into(), Trigger::always(), Guards::default(), Box::new(Recordings));
    let pipeline = Pipeline::new(vec![slot], Retries::default());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let replay = replay_observed(
        &prepared,
        cell("recorded"),
        Replayed::Strategy(Box::new(pipeline), Window::new(Tokens(200_000))),
        &models(Scripted::new()),
        &NoClock,
        vec![Box::new(Texts(seen.clone()))],
    );
    assert_eq!(replay.record.compactions.len(), 1);
    assert_eq!(replay.record.compactions[0].call, 2);
    assert_eq!(seen.lock().unwrap()[2], ["What was said so far, in short.", "two"]);
}

#[test]
fn what_a_resumed_session_was_loaded_with_is_no_call_and_no_new_result() {
    let whole = session(vec![
        typed("one"),
        asks("t1", "Read", "a"),
        answers("t1", &"long ".repeat(200)),
        said("done"),
        typed("two"),
        said("yes"),
    ]);
    let resumed = ResumePoint { at: 4, notes: Some("earlier".into()) };
    let prepared = prepared(whole.resume(resumed).unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    // A write-time stage that would shorten every result.
    let toml = "[[stage]]\nkind = \"truncate_output\"\nmax_tokens = 10";
    let table = SettingTable::parse("short", toml).unwrap();
    let trigger = Trigger::always();
    let spec = StrategySpec::of("short", table, &trigger).unwrap();
    let replay = replay_observed(
        &prepared,
        cell("short"),
        Replayed::Strategy(Box::new(spec.build().unwrap()), Window::new(Tokens(200_000))),
        &models(Scripted::new()),
        &NoClock,
        vec![Box::new(Texts(seen.clone()))],
    );
    let record = replay.record;
    assert_eq!((record.planned_calls, record.reached_calls), (1, 1));
    assert_eq!(record.compactions, []);
    let sent = seen.lock().unwrap();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].len(), 5);
    assert_eq!(sent[0][2], "long ".repeat(200));
    let beyond = ResumePoint { at: 7, notes: None };
    let session = session(vec![typed("one"), said("yes")]);
    let error = session.resume(beyond).unwrap_err().to_string();
    assert!(error.contains("7 messages, and has 2"), "{error}");
}

/// Keeps what was sent, as texts.
#[derive(Debug)]
struct Texts(Arc<Mutex<Vec<Vec<String>>>>);

impl Observer for Texts {
    fn called(&mut self, view: &CallView<'_>) {
        let texts = view.context.entries().iter();
        let texts = texts.flat_map(|entry| entry.message.model_text()).map(ToString::to_string);
        self.0.lock().unwrap().push(texts.collect());
    }
}

/// Follows the context from what observers are told, as a cache simulator would, and compares it
/// with the context itself at every call.
#[derive(Debug, Default)]
struct Mirror {
    entries: Vec<Entry>,
    calls: usize,
    patches: usize,
}

impl Observer for Mirror {
    fn appended(&mut self, entry: &Entry) {
        self.entries.push(entry.clone());
    }

    fn patched(&mut self, applied: &Applied) {
        self.patches += 1;
        let mut removed = Vec::new();
        for edit in applied.change.edits.iter().rev() {
            let gone = self.entries.splice(edit.entries.clone(), edit.with.iter().cloned());
            removed.splice(0..0, gone);
        }
        assert_eq!(removed, applied.change.removed);
        let size: Tokens = self.entries.iter().map(|entry| entry.size().tokens).sum();
        assert_eq!(size, applied.change.after.tokens);
    }

    fn called(&mut self, view: &CallView<'_>) {
        self.calls += 1;
        assert_eq!(self.entries, view.context.entries());
    }

    fn finish(self: Box<Self>, record: &mut CellRecord) {
        assert_eq!(self.calls, record.reached_calls);
        // Carried out where the test can see it: a mirror that saw nothing proves nothing.
        record.saved_texts = self.patches as u64;
    }
}

#[test]
fn what_observers_are_told_is_enough_to_follow_the_context() {
    let prepared = prepared(reading_session(40, 2_000));
    for name in [
        "observation-masking",
        "observation-masking[clear_results.every=7]",
        "learn-claude-code-s06[summarize.when={ tokens_over = 4000 }]",
        "tail@3000",
    ] {
        let pipeline = strategy(name).build().unwrap();
        let replay = replay_observed(
            &prepared,
            cell(name),
            Replayed::Strategy(Box::new(pipeline), Window::new(Tokens(12_000))),
            &models(Scripted::new().reply(|_| Ok(response("a summary")))),
            &NoClock,
            vec![Box::new(Mirror::default())],
        );
        assert!(replay.record.saved_texts > 1, "{name} never fired");
    }
}

#[test]
fn a_session_that_outgrows_its_window_dies_there() {
    let prepared = prepared(reading_session(20, 4_000));
    // Each round is a little over 1,000 tokens: ten fit.
    let replay = run(&prepared, "none", 10_500, &models(Scripted::new()));
    let record = replay.record;
    assert_eq!(record.planned_calls, 21);
    assert_eq!(record.reached_calls, 11);
    assert!(matches!(record.end, End::Died { call: 11, prompt, .. } if prompt > Tokens(10_500)));
    assert_eq!(record.overflows, [11]);
    assert!(record.prompt_tokens.iter().all(|prompt| *prompt <= Tokens(10_500)));
}

#[test]
fn a_refused_prompt_is_recovered_as_often_as_allowed_and_no_oftener() {
    // Nine rounds of a little over 1,000 tokens, then one of 3,000: two must go.
    let mut messages = vec![typed("read")];
    for round in 0..10 {
        let id = format!("t{round}");
        let chars = if round == 9 { 12_000 } else { 4_000 };
        messages.push(asks(&id, "Read", "a"));
        messages.push(answers(&id, &"word ".repeat(chars / 5)));
    }
    messages.push(said("done"));
    let prepared = prepared(session(messages));
    let with = |retries: u32| {
        let text =
            format!("[overflow]\nstage = 'drop_oldest'\nmax_steps = 1\nmax_retries = {retries}\n");
        let spec =
            StrategySpec::of("own", SettingTable::parse("own", &text).unwrap(), &Trigger::always());
        let pipeline = Box::new(spec.unwrap().build().unwrap());
        let replayed = Replayed::Strategy(pipeline, Window::new(Tokens(10_500)));
        let models = models(Scripted::new());
        replay_observed(&prepared, cell("own"), replayed, &models, &NoClock, Vec::new()).record
    };
    let enough = with(2);
    assert_eq!(enough.end, End::Completed);
    assert_eq!(enough.overflows, [10]);
    let stages: Vec<&str> = enough.compactions.iter().map(|event| &*event.stage).collect();
    assert_eq!(stages, ["overflow", "overflow"]);
    assert!(matches!(with(1).end, End::Died { call: 10, .. }));
}

#[test]
fn a_summariser_that_fails_costs_nothing_but_its_attempts() {
    let prepared = prepared(reading_session(20, 4_000));
    let name = "learn-claude-code-s06[clear_results.keep_last=99,summarize.when={ tokens_over = 3000 },guards.max_consecutive_failures=3]";
    let failing = || Scripted::new().reply(|_| Err(CallFailure::SERVER));
    let record = run(&prepared, name, 200_000, &models(failing())).record;
    // The breaker opens after three attempts, and the history is never destroyed.
    assert_eq!(record.failures.len(), 3);
    assert_eq!(record.model_calls.len(), 3);
    assert!(record.model_calls.iter().all(|call| call.failure.is_some()));
    assert_eq!(record.compactions, []);
    assert_eq!(record.end, End::Completed);
    let none = run(&prepared, "none", 200_000, &models(failing())).record;
    assert_eq!(record.prompt_tokens, none.prompt_tokens);
    // The lesson itself has no breaker: it tries before every call.
    let bare =
        "learn-claude-code-s06[clear_results.keep_last=99,summarize.when={ tokens_over = 3000 }]";
    let record = run(&prepared, bare, 200_000, &models(failing())).record;
    assert_eq!(record.failures.len(), 18);
}

#[test]
fn an_empty_summary_a_tool_call_and_a_refusal_leave_the_history() {
    let prepared = prepared(reading_session(6, 4_000));
    let name = "learn-claude-code-s06[clear_results.keep_last=99,summarize.when={ tokens_over = 3000 },guards.max_consecutive_failures=3]";
    for stop in [proctor::model::Stop::ToolUse, proctor::model::Stop::Refusal] {
        let model = Scripted::new()
            .reply(move |_| Ok(proctor::model::Response { stop, ..response("text") }));
        let record = run(&prepared, name, 200_000, &models(model)).record;
        assert_eq!((record.compactions.len(), record.failures.len()), (0, 3), "{stop:?}");
    }
    let model = Scripted::new().reply(|_| Ok(response(" \n")));
    let record = run(&prepared, name, 200_000, &models(model)).record;
    assert_eq!((record.compactions.len(), record.failures.len()), (0, 3));
    assert_eq!(record.failures[0].error, "the summary is empty");
}

/// The lesson's own constants, call by call.
#[test]
fn learn_claude_code_s06_does_what_its_lesson_says() {
    // 24 reads of 10,000 characters: 200,000 characters are passed before call 21, were it not
    // for the first layer.
    let prepared = prepared(reading_session(24, 10_000));
    let summary = || {
        Scripted::new().reply(|request| {
            let text = request.messages[0].model_text()[0].clone();
            assert!(text.chars().count() < 80_000 + 500, "input is cut at 80,000 characters");
            assert_eq!(request.max_output, Tokens(2_000));
            Ok(response("THE SUMMARY"))
        })
    };
    let record = run(&prepared, "learn-claude-code-s06", 200_000, &models(summary())).record;
    // Layer 1: from the fourth result on, each call clears the one that became old.
    assert_eq!(record.compactions.len(), 21);
    assert!(record.compactions.iter().all(|event| event.stage == "clear_results"));
    assert_eq!(record.compactions[0].call, 4);
    // Layer 2, with the first one off.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let name = "learn-claude-code-s06[clear_results.keep_last=99]";
    let replay = replay_observed(
        &prepared,
        cell(name),
        Replayed::Strategy(Box::new(strategy(name).build().unwrap()), Window::new(Tokens(200_000))),
        &models(summary()),
        &NoClock,
        vec![Box::new(Texts(seen.clone()))],
    );
    assert_eq!(replay.record.compactions.len(), 1);
    assert_eq!(replay.record.compactions[0].call, 20);
    assert_eq!(
        seen.lock().unwrap()[20],
        ["[Compressed]\n\nTHE SUMMARY", "Understood. Continuing."]
    );
    // The transcript is put aside first: every message, one line each.
    assert_eq!(replay.offloaded.len(), 1);
    let (path, transcript) = replay.offloaded.first_key_value().unwrap();
    assert!(path.starts_with(".transcripts/transcript_"), "{path}");
    assert_eq!(transcript.lines().count(), 41);
}

/// Layer 3: the model calls `compact`, and the next prompt is the summary.
#[test]
fn the_compact_tool_triggers_a_summary_once() {
    let prepared = prepared(session(vec![
        typed("go"),
        asks("t1", "Read", "a"),
        answers("t1", &"text ".repeat(100)),
        asks("t2", "compact", "keep the paths"),
        answers("t2", "Compressing..."),
        said("going on"),
        typed("more"),
        said("done"),
    ]));
    let model = Scripted::new().texts(["short"]);
    let record = run(&prepared, "learn-claude-code-s06", 200_000, &models(model)).record;
    assert_eq!(record.model_calls.len(), 1);
    assert_eq!(record.compactions.len(), 1);
    assert_eq!(
        (record.compactions[0].call, record.compactions[0].stage.as_str()),
        (2, "summarize")
    );
}

/// Counts how often it is asked.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl TokenCounter for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn count(&self, text: &str) -> Tokens {
        self.0.fetch_add(1, Ordering::Relaxed);
        CharsPer4.count(text)
    }
}

#[test]
fn each_text_is_counted_once_however_many_strategies_see_it() {
    let counter = Arc::new(Counting::default());
    let counts = Arc::new(CountedTexts::new(counter.clone()));
    let session = Arc::new(reading_session(20, 1_000));
    let texts: BTreeSet<&Arc<str>> = session.texts().collect();
    let texts = texts.len();
    let prepared = PreparedSession::new(session.clone(), counts, Vec::new()).unwrap();
    assert_eq!(counter.0.load(Ordering::Relaxed), texts);
    for name in ["none", "observation-masking", "observation-masking[clear_results.keep_last=2]"] {
        run(&prepared, name, 100_000, &models(Scripted::new()));
    }
    // All that is new is the placeholder of one line.
    assert_eq!(counter.0.load(Ordering::Relaxed), texts + 1);
}

/// A guard that no summary can satisfy must not be tried at every call.
#[test]
fn a_summary_that_gains_too_little_is_a_failed_attempt() {
    let prepared = prepared(reading_session(20, 4_000));
    let text = "[[stage]]\nkind = 'summarize'\nguards = { min_gain_tokens = 1_000_000 }\n";
    let spec =
        StrategySpec::of("own", SettingTable::parse("own", text).unwrap(), &Trigger::always());
    let pipeline = Box::new(spec.unwrap().build().unwrap());
    let replayed = Replayed::Strategy(pipeline, Window::new(Tokens(200_000)));
    let models = models(Scripted::new().reply(|_| Ok(response("short"))));
    let replay = replay_observed(&prepared, cell("own"), replayed, &models, &NoClock, Vec::new());
    assert_eq!(replay.record.model_calls.len(), 3);
    assert_eq!(replay.record.failures.len(), 3);
    assert!(replay.record.failures[1].error.starts_with("the context would shrink from"));
}

/// The hysteresis of a trigger does not keep a stage from answering a refused prompt.
#[test]
fn a_refused_prompt_does_not_wait() {
    let prepared = prepared(reading_session(20, 4_000));
    let text = "[[stage]]\nkind = 'select'\nbudget_tokens = 3_000\n\
        when = { any = [{ window_fraction = 0.8 }, { overflow = true }], min_rounds_between = 1_000 }\n";
    let spec =
        StrategySpec::of("own", SettingTable::parse("own", text).unwrap(), &Trigger::always());
    let pipeline = Box::new(spec.unwrap().build().unwrap());
    let replayed = Replayed::Strategy(pipeline, Window::new(Tokens(9_000)));
    let models = models(Scripted::new());
    let replay = replay_observed(&prepared, cell("own"), replayed, &models, &NoClock, Vec::new());
    assert_eq!(replay.record.end, End::Completed);
}

/// Notes what it is told, and shortens nothing; a refused prompt it sends again as it is.
#[derive(Debug, Default)]
struct Listener(Arc<Mutex<Vec<String>>>);

impl Listener {
    fn note(&self, moment: &str, cx: &Situation) {
        let recorded = if cx.recorded.is_some() { " recorded" } else { "" };
        let prompt = cx.last_usage.map_or(0, |usage| usage.prompt().0);
        let (call, appended) = (cx.call, cx.appended.chars);
        let mut seen = self.0.lock().unwrap();
        seen.push(format!("{call} {moment} +{appended} after {prompt}{recorded}"));
    }
}

impl Strategy for Listener {
    fn on_append(&mut self, context: Context, _: &Situation) -> Compaction {
        Compaction::unchanged(context)
    }

    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.note("before", cx);
        Step::Done(Compaction::unchanged(context))
    }

    fn on_overflow<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.note("refused", cx);
        Step::Done(Compaction::unchanged(context))
    }

    fn after_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.note("after", cx);
        Step::Done(Compaction::unchanged(context))
    }
}

/// A session in which the product compacted between its two calls, and what is told of it.
fn listened(window: u64) -> (CellRecord, Vec<String>) {
    let compaction = |at: usize| RecordedCompaction {
        at,
        trigger: None,
        pre_tokens: None,
        usage: None,
        after: CompactedTo::Missing,
    };
    // Eight tokens in the system prompt, ten in each message.
    let text = |name: &str| format!("{name}{}", "x".repeat(39));
    let mut parts = SessionParts {
        id: "told".to_owned(),
        system: Some("s".repeat(32).into()),
        compactions: vec![compaction(2), compaction(2)],
        ..SessionParts::default()
    };
    for name in ["a", "b", "c"] {
        parts.messages.push(Arc::new(typed(&text(name))));
        parts.messages.push(Arc::new(said(&text(name))));
    }
    let prepared = prepared(Session::new(parts).unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let listener = Box::new(Listener(seen.clone()));
    let replayed = Replayed::Strategy(listener, Window::new(Tokens(window)));
    let models = models(Scripted::new());
    let replay = replay_observed(&prepared, cell("own"), replayed, &models, &NoClock, Vec::new());
    let seen = seen.lock().unwrap().clone();
    (replay.record, seen)
}

#[test]
fn a_strategy_is_told_the_present_and_nothing_else() {
    let (record, seen) = listened(1_000);
    assert_eq!(record.end, End::Completed);
    // What came in since the last answer; what that prompt took; a compaction at the call that
    // follows it, and at no other.
    assert_eq!(
        seen,
        [
            "0 before +40 after 0",
            "0 after +0 after 18",
            "1 before +40 after 18 recorded",
            "1 after +0 after 38 recorded",
            "2 before +40 after 38",
            "2 after +0 after 58",
        ]
    );
}

#[test]
fn a_recovery_that_frees_nothing_is_the_last_one() {
    let (record, seen) = listened(37);
    let died = matches!(record.end, End::Died { call: 1, .. });
    assert!(died, "{:?}", record.end);
    assert_eq!(record.overflows, [1]);
    let refused = seen.iter().filter(|line| line.contains("refused")).count();
    assert_eq!(refused, 1, "{seen:?}");
}

#[test]
fn what_a_product_did_send_is_no_prompt_too_long_for_its_model() {
    let prepared = prepared(reading_session(4, 4_000));
    let models = models(Scripted::new());
    let recorded = run(&prepared, "recorded", 1_500, &models).record;
    assert_eq!((recorded.end, recorded.overflows), (End::Completed, Vec::new()));
    let none = run(&prepared, "none", 1_500, &models).record;
    assert_eq!(none.overflows, [2]);
}
