//! What goes wrong on purpose: the history stays, the breaker opens, retries are billed, and a
//! session recovers or is reported dead at the call where it died.

use std::path::Path;
use std::sync::{Arc, Mutex};

use proctor::context::{Entry, Origin};
use proctor::model::fault::{Fault, FaultSchedule, Faults};
use proctor::model::offline::Offline;
use proctor::model::scripted::response;
use proctor::model::{Model, ModelKind, Purpose, Reply, Request};
use proctor::record::{CellRecord, DeathCause, End, ModelCall};
use proctor::replay::observe::validity::Validity;
use proctor::replay::observe::{CallView, Observer};
use proctor::replay::{Models, NoClock, PreparedSession, Replayed, replay_observed};
use proctor::scenario::Scenario;
use proctor::session::Session;
use proctor::session::synthetic::{self, Length, Recipe};
use proctor::session::wire::RuleSet;
use proctor::settings::SettingTable;
use proctor::strategy::StrategySpec;
use proctor::strategy::trigger::Trigger;
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::{Tokens, Usage};
use proctor::window::Window;

use crate::support::{cell, prepared, reading_session};

mod certain;

/// Summarises everything above 4,000 tokens; after a refusal, drops the oldest rounds.
const SUMMARISE: &str = "[[stage]]\nkind = 'summarize'\nwhen = { tokens_over = 4_000 }\n\
     [overflow]\nstage = 'drop_oldest'\nfit_fraction = 0.01\nmax_retries = 1\n";

fn strike(fault: Fault, strike: FaultSchedule) -> Faults {
    Faults { schedules: [(fault, strike)].into(), ..Faults::default() }
}

fn at(calls: &[usize], attempts: u32) -> FaultSchedule {
    let calls = calls.iter().copied().collect();
    FaultSchedule::Calls { calls, attempts }
}

/// The origins of each prompt that was sent.
#[derive(Debug)]
struct Origins(Arc<Mutex<Vec<Vec<Origin>>>>);

impl Observer for Origins {
    fn called(&mut self, view: &CallView<'_>) {
        let origins = view.context.entries().iter();
        let origins = origins.map(|entry| entry.origin.clone()).collect();
        self.0.lock().unwrap().push(origins);
    }
}

/// Sixteen reads of 4,000 characters (a little over 1,000 tokens each), summarised offline.
fn suffer(toml: &str, faults: Faults, window: u64) -> (CellRecord, Vec<Vec<Origin>>) {
    let mut prepared = prepared(reading_session(16, 4_000));
    prepared.faults = Arc::new(faults);
    suffer_in(&prepared, toml, window)
}

fn suffer_in(
    prepared: &PreparedSession,
    toml: &str,
    window: u64,
) -> (CellRecord, Vec<Vec<Origin>>) {
    let table = SettingTable::parse("own", toml).unwrap();
    let spec = StrategySpec::of("own", table, &Trigger::always()).unwrap();
    let models = Models {
        summariser: Arc::new(Offline::new(prepared.counts().clone())),
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let replayed = Replayed::Strategy(Box::new(spec.build().unwrap()), Window::new(Tokens(window)));
    let observers: Vec<Box<dyn Observer>> =
        vec![Box::new(Origins(seen.clone())), Box::new(Validity::new(RuleSet::Anthropic))];
    let name = cell("own");
    let replay = replay_observed(prepared, name, replayed, &models, &NoClock, observers);
    let seen = seen.lock().unwrap().clone();
    (replay.record, seen)
}

fn names(record: &CellRecord) -> Vec<(usize, &str)> {
    let faults = record.faults.iter();
    faults.map(|event| (event.call, event.fault.as_str())).collect()
}

fn is_whole(origins: &[Origin]) -> bool {
    let mut all = origins.iter().enumerate();
    all.all(|(at, origin)| *origin == Origin::Verbatim(at))
}

/// A model that is paid a fixed price for a summary that nobody keeps.
#[derive(Debug)]
struct Paying;

const PRICE: Usage = Usage {
    input_uncached: Tokens(111),
    cache_write_5m: Tokens(0),
    cache_write_1h: Tokens(0),
    cache_read: Tokens(0),
    output: Tokens(22),
};

impl Model for Paying {
    fn name(&self) -> &'static str {
        "paying"
    }

    fn kind(&self) -> ModelKind {
        ModelKind::Live
    }

    fn answer(&self, _: &Request, _: u32, _: &CountedTexts) -> Reply {
        let answer = response("content 1, and much more of what was read before");
        Reply { paid: Some(PRICE), ..Reply::once(Ok(answer)) }
    }
}

#[test]
fn what_was_paid_is_billed_whatever_a_fault_makes_of_the_answer() {
    let mut prepared = prepared(reading_session(6, 4_000));
    let strikes = strike(Fault::SummaryTruncated, FaultSchedule::Probability(1.0));
    prepared.faults = Arc::new(strikes);
    let table = SettingTable::parse("own", SUMMARISE).unwrap();
    let spec = StrategySpec::of("own", table, &Trigger::always()).unwrap();
    let models = Models {
        summariser: Arc::new(Paying),
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    };
    let window = Window::new(Tokens(200_000));
    let replayed = Replayed::Strategy(Box::new(spec.build().unwrap()), window);
    let name = cell("own");
    let record = replay_observed(&prepared, name, replayed, &models, &NoClock, Vec::new()).record;
    assert!(!record.faults.is_empty() && !record.model_calls.is_empty());
    assert!(record.model_calls.iter().all(|call| call.usage == PRICE));
    let lost = record.lost_calls.iter();
    assert_eq!(lost.filter(|call| call.usage == PRICE).count(), record.model_calls.len());
}

/// Every request of the strategy fails: three attempts, then the breaker is open, and every
/// prompt is the whole history.
#[test]
fn a_summary_that_always_fails_is_tried_three_times_and_the_history_stays() {
    let asked = Tokens(1);
    for (fault, error, is_billed, output) in [
        (Fault::SummaryError, "the model call failed: server error", true, Tokens::ZERO),
        (Fault::SummaryTimeout, "the model call failed: timed out", true, Tokens::ZERO),
        (
            Fault::SummaryOverflow,
            "the model call failed: the prompt is too long for the model",
            false,
            Tokens::ZERO,
        ),
        (Fault::SummaryEmpty, "the summary is empty", true, Tokens::ZERO),
        (Fault::SummaryIsToolCall, "the summary is a tool call", true, Tokens(11)),
        (Fault::SummaryInflates, "the context would grow from", true, asked),
    ] {
        let (record, seen) =
            suffer(SUMMARISE, strike(fault, FaultSchedule::Probability(1.0)), 200_000);
        let name = fault.name();
        assert_eq!(record.end, End::Completed, "{name}");
        assert_eq!(record.compactions, [], "{name}");
        assert!(seen.iter().all(|origins| is_whole(origins)), "{name}");
        // 4,000 tokens are passed before call 4; three calls in a row make an attempt each.
        assert_eq!(names(&record), [(4, name), (5, name), (6, name)]);
        assert_eq!(record.failures.len(), 3, "{name}");
        for failure in &record.failures {
            assert!(failure.error.starts_with(error), "{}", failure.error);
        }
        assert_eq!(record.model_calls.len(), 3, "{name}");
        for ModelCall { usage, .. } in &record.model_calls {
            assert_eq!(usage.prompt() > Tokens::ZERO, is_billed, "{name}");
            if output == asked {
                // Larger than the messages it stands for: at least 4,000 tokens.
                assert!(usage.output > Tokens(4_000), "{name}");
            } else {
                assert_eq!(usage.output, output, "{name}");
            }
        }
    }
}

#[test]
fn without_a_breaker_every_turn_wastes_an_attempt() {
    let open = format!("[guards]\nmax_consecutive_failures = 0\n{SUMMARISE}");
    let five = format!("[guards]\nmax_consecutive_failures = 5\n{SUMMARISE}");
    let always = || strike(Fault::SummaryError, FaultSchedule::Probability(1.0));
    let attempts = |toml: &str| suffer(toml, always(), 200_000).0.model_calls.len();
    // Seventeen calls; the first attempt is made before call 4.
    assert_eq!(attempts(&open), 13);
    assert_eq!(attempts(&five), 5);
    assert_eq!(attempts(SUMMARISE), 3);
}

#[test]
fn a_summary_that_fails_twice_and_then_succeeds_closes_the_breaker() {
    let faults = strike(Fault::SummaryError, at(&[4, 5], 1));
    let (record, seen) = suffer(SUMMARISE, faults, 200_000);
    assert_eq!(record.end, End::Completed);
    let failed: Vec<bool> = record.model_calls.iter().map(|call| call.failure.is_some()).collect();
    assert_eq!(failed[..3], [true, true, false]);
    assert_eq!(record.compactions[0].call, 6);
    assert!(is_whole(&seen[5]) && !is_whole(&seen[6]));
    // The failures of the next round start from zero: were the two still counted, one more would
    // open the breaker.
    let next = record.compactions[1].call;
    let faults = strike(Fault::SummaryError, at(&[4, 5, next, next + 1], 1));
    let (record, _) = suffer(SUMMARISE, faults, 200_000);
    assert_eq!(record.failures.len(), 4);
    assert_eq!(record.compactions[1].call, next + 2);
}

/// Reviews of code: what is said in them has names, so that a summary can be told from a chat.
fn review(faults: Faults) -> CellRecord {
    review_by(SUMMARISE, faults)
}

fn review_session() -> Session {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let recipe = Recipe { length: Length::Rounds(20), ..Recipe::default() };
    synthetic::generate(&recipe, &counts).unwrap().session
}

fn review_by(strategy: &str, faults: Faults) -> CellRecord {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let session = Arc::new(review_session());
    let mut prepared = PreparedSession::new(session.clone(), counts, Vec::new()).unwrap();
    prepared.faults = Arc::new(faults);
    let before = session.messages().to_vec();
    let (record, _) = suffer_in(&prepared, strategy, 200_000);
    assert_eq!(session.messages(), before);
    assert_eq!(record.end, End::Completed);
    record
}

#[test]
fn a_truncated_summary_is_half_of_the_whole_one_and_is_taken() {
    let whole = review(Faults::default());
    let call = whole.compactions[0].call;
    let cut = review(strike(Fault::SummaryTruncated, at(&[call], 1)));
    let output = |record: &CellRecord| record.model_calls[0].usage.output.0;
    assert!(output(&whole) > 100, "{}", output(&whole));
    // Characters divided by four, rounded up: half of them is half of the tokens, give or take
    // the rounding.
    assert!(output(&cut).abs_diff(output(&whole).div_ceil(2)) <= 1);
    assert_eq!(cut.model_calls[0].failure, None);
    assert_eq!(cut.compactions[0].call, call);
    let lost = whole.compactions[0].after - cut.compactions[0].after;
    assert_eq!(lost.0, output(&whole) - output(&cut));
}

#[test]
fn a_chat_in_place_of_a_summary_fails_and_the_history_stays() {
    let honest = review(Faults::default());
    let call = honest.compactions[0].call;
    let chat = review(strike(Fault::SummaryIsChat, at(&[call], 1)));
    let failure = &chat.failures[0];
    assert_eq!(failure.call, call);
    assert!(failure.error.starts_with("the summary is none"), "{failure:?}");
    // It is tried again at the next call, and every attempt is on the bill.
    assert_eq!(chat.compactions[0].call, call + 1);
    assert_eq!(chat.model_calls[0].call, call);
}

/// Where a product does not look, the chat takes the place of the history, and the check of the
/// prompt says what it is. The session itself is as it was.
#[test]
fn a_chat_in_place_of_a_summary_is_reported_as_none() {
    let careless = SUMMARISE.replace("[overflow]", "guards.on_chat = 'apply'\n[overflow]");
    let honest = review_by(&careless, Faults::default());
    let call = honest.compactions[0].call;
    let chat = review_by(&careless, strike(Fault::SummaryIsChat, at(&[call], 1)));
    let found = |record: &CellRecord| {
        let mut rules = record.violations.iter();
        rules.any(|violation| violation.call == call && violation.rule == "not_a_summary")
    };
    assert!(found(&chat), "{:?}", chat.violations);
    assert!(!found(&honest), "{:?}", honest.violations);
}

#[test]
fn a_refused_prompt_below_the_window_is_recovered_or_kills() {
    let refused = || strike(Fault::OverflowAt, at(&[3], 1));
    let (record, seen) = suffer(SUMMARISE, refused(), 200_000);
    assert_eq!(record.end, End::Completed);
    assert_eq!(record.overflows, [3]);
    assert_eq!(names(&record), [(3, "overflow_at")]);
    assert_eq!(record.compactions[0].call, 3);
    assert_eq!(record.compactions[0].stage, "overflow");
    assert!(seen[3].len() < 7, "nothing was dropped");

    let (record, seen) = suffer("", refused(), 200_000);
    assert_eq!(record.overflows, [3]);
    assert_eq!(record.reached_calls, 3);
    let cause = DeathCause::Overflow;
    assert!(
        matches!(record.end, End::Died { call: 3, cause: found, .. } if found == cause),
        "{:?}",
        record.end
    );
    assert_eq!(seen.len(), 3);
}

#[test]
fn the_agents_own_call_is_sent_again_and_each_attempt_is_billed() {
    for (fault, failure) in [
        (Fault::RateLimited, "rate limited"),
        (Fault::ServerError, "server error"),
        (Fault::StreamCut, "the answer broke off"),
    ] {
        let clean = suffer("", Faults::default(), 200_000).0;
        let (record, _) = suffer("", strike(fault, at(&[2], 2)), 200_000);
        assert_eq!(record.end, End::Completed);
        assert_eq!(record.prompt_tokens, clean.prompt_tokens);
        let prompt = clean.prompt_tokens[2];
        let usage = match fault {
            Fault::RateLimited => Usage::default(),
            Fault::StreamCut => Usage::uncached(prompt, answered(2)),
            _ => Usage::uncached(prompt, Tokens::ZERO),
        };
        let attempt = ModelCall {
            call: 2,
            purpose: Purpose::Agent,
            usage,
            model: None,
            failure: Some(failure.to_owned()),
            key: None,
        };
        assert_eq!(record.model_calls, [attempt.clone(), attempt]);

        let (record, seen) = suffer("", strike(fault, at(&[2], 3)), 200_000);
        let cause = DeathCause::Unanswered;
        let call = 2;
        assert_eq!(record.end, End::Died { call, prompt, cause });
        assert_eq!((record.reached_calls, seen.len()), (2, 2));
        assert_eq!(record.model_calls.len(), 3);
    }
}

/// Half of the recorded answer to a call.
fn answered(call: usize) -> Tokens {
    let prepared = prepared(reading_session(16, 4_000));
    let answer = prepared.session().calls()[call];
    let message = prepared.session().message(answer).clone();
    let entry = Entry::new(Origin::Verbatim(answer), message, prepared.counts());
    Tokens(entry.size().tokens.0 / 2)
}

#[test]
fn the_reference_is_spared() {
    let faults = Faults {
        schedules: Fault::ALL
            .into_iter()
            .map(|fault| (fault, FaultSchedule::Probability(1.0)))
            .collect(),
        ..Faults::default()
    };
    let mut prepared = prepared(reading_session(4, 400));
    prepared.faults = Arc::new(faults);
    let models = Models {
        summariser: Arc::new(Offline::new(prepared.counts().clone())),
        reader: None,
        judge: None,
        times: proctor::replay::Repetitions::default(),
    };
    let replay =
        replay_observed(&prepared, cell("full"), Replayed::Full, &models, &NoClock, Vec::new());
    assert_eq!(replay.record.end, End::Completed);
    assert_eq!(replay.record.faults, []);
    assert_eq!(replay.record.model_calls, []);
}

/// Another weather is another run: it must not be found in the folder of the first.
#[test]
fn faults_are_part_of_a_runs_fingerprint() {
    let fingerprint = |faults: &str| {
        let text = format!(
            "{faults}\n[[sessions]]\nsynthetic = {{ family = 'code-review', rounds = 3 }}\n\
             [[strategies]]\npreset = 'none'\n"
        );
        let table = SettingTable::parse("s.toml", &text).unwrap();
        let scenario = Scenario::read(&table, Path::new("")).unwrap();
        let plan = proctor::runner::Plan::new(scenario).unwrap();
        (plan.manifest().fingerprint.clone(), plan.manifest().faults.clone())
    };
    let clean = fingerprint("");
    assert_eq!(clean.1, None);
    assert_eq!(clean.0, fingerprint("[faults]\n").0);
    let mut all = vec![clean.0];
    for faults in [
        "[faults]\nsummary_error = 0.3",
        "[faults]\nsummary_error = 0.3\nseed = 2",
        "[faults]\nsummary_error = 0.3\nagent_retries = 1",
        "[faults]\nsummary_error = [3]",
        "[faults]\nsummary_error = { calls = [3], attempts = 2 }",
    ] {
        let (print, words) = fingerprint(faults);
        assert!(words.unwrap().starts_with("summary_error "), "{faults}");
        assert!(!all.contains(&print), "{faults}");
        all.push(print);
    }
}
