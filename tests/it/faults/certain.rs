//! Each way in which a summary can fail, at every request: what the breaker bounds, what is billed,
//! and where the session ends.

use proctor::metric::CellSummary;
use proctor::model::fault::{Fault, FaultSchedule, FaultTarget};
use proctor::record::{DeathCause, End};

use super::{is_whole, names, review_session, strike, suffer_in};
use crate::support::prepared;

/// Asks again whenever it may: a broken connection twice, a request that is too long without its oldest
/// rounds three times, an answer that is no summary once.
const STUBBORN: &str = "[guards]\non_summary_overflow = 'drop_oldest_round'\non_empty = 'retry'\n\
     on_tool_call = 'retry'\non_chat = 'retry'\n\
     [[stage]]\nkind = 'summarize'\nwhen = { tokens_over = 9_000 }\nstream_retries = 2\n";

/// After a refusal the oldest rounds go, without a model.
const DROPS: &str = "[overflow]\nstage = 'drop_oldest'\n";

/// After a refusal a model is asked again.
const ASKS: &str = "[overflow]\nstage = 'summarize'\nmax_retries = 2\n";

const WINDOW: u64 = 17_000;

/// How many requests one attempt makes when all of them meet this fault, and the first words of why
/// the attempt failed, if it did.
fn outcome(fault: Fault) -> (usize, Option<&'static str>) {
    match fault {
        Fault::SummaryError => (3, Some("the model call failed: server error")),
        Fault::SummaryTimeout => (3, Some("the model call failed: timed out")),
        Fault::SummaryOverflow => (4, Some("the model call failed: the prompt is too long")),
        Fault::SummaryEmpty => (2, Some("the summary is empty")),
        Fault::SummaryIsToolCall => (2, Some("the summary is a tool call")),
        Fault::SummaryIsChat => (2, Some("the summary is none")),
        Fault::SummaryInflates => (1, Some("the context would grow from")),
        Fault::SummaryTruncated => (1, None),
        other => panic!("{} strikes no summary", other.name()),
    }
}

/// A session ends so when every request meets `fault`, those of `recovery` included; whether anything
/// was done after a refusal.
#[track_caller]
fn check(fault: Fault, recovery: &str, ends: &End, is_mended: bool) {
    let (per_attempt, why) = outcome(fault);
    let session = review_session();
    let before = session.messages().to_vec();
    let mut prepared = prepared(session);
    let session = prepared.session().clone();
    prepared.faults = strike(fault, FaultSchedule::Probability(1.0)).into();
    let toml = format!("{STUBBORN}{recovery}");
    let (record, seen) = suffer_in(&prepared, &toml, WINDOW);
    let told = format!("{} with `{recovery}`: {record:#?}", fault.name());
    assert_eq!(record.end, *ends, "{told}");
    // The history is what it was, and what was sent before the first event is all of it.
    assert_eq!(session.messages(), before, "{told}");
    let first = record.compactions.first().map_or(seen.len(), |event| event.call);
    assert!(seen.iter().take(first).all(|origins| is_whole(origins)), "{told}");
    let events = record.compactions.iter();
    let after_refusals = events.filter(|event| event.stage == "overflow").count();
    assert_eq!(after_refusals > 0, is_mended, "{told}");
    assert_eq!(record.overflows.is_empty(), why.is_none(), "{told}");
    let (failures, attempts) = match why {
        // Three attempts in a row, then the breaker is open. What is asked after a refusal has its own.
        Some(why) => {
            for failure in &record.failures {
                assert!(failure.error.starts_with(why), "{told}");
            }
            let of_stage = |stage: &str| {
                let failures = record.failures.iter();
                failures.filter(|failure| failure.stage == stage).count()
            };
            assert_eq!(of_stage("summarize"), 3, "{told}");
            assert!(of_stage("overflow") <= 3, "{told}");
            (record.failures.len(), record.failures.len())
        }
        None => (0, record.compactions.len()),
    };
    assert_eq!(record.failures.len(), failures, "{told}");
    // Every request is struck, counted and billed; only one that is refused unread costs nothing.
    let requests = attempts * per_attempt;
    assert_eq!(record.model_calls.len(), requests, "{told}");
    assert_eq!(names(&record).len(), requests, "{told}");
    let refused = fault == Fault::SummaryOverflow;
    let mut calls = record.model_calls.iter();
    assert!(calls.all(|call| (call.usage.prompt().0 == 0) == refused), "{told}");
    let summary = CellSummary::of(&record, None);
    assert_eq!(summary.model_calls.total().calls, requests, "{told}");
}

/// Where the whole history is over the window for the first time, and how large it is there.
fn first_refusal() -> (usize, proctor::units::Tokens) {
    let prepared = prepared(review_session());
    let record = suffer_in(&prepared, "", 1_000_000).0;
    let mut prompts = record.prompt_tokens.iter().enumerate();
    let (call, prompt) = prompts.find(|(_, prompt)| prompt.0 > WINDOW).unwrap();
    (call, *prompt)
}

#[test]
fn whatever_becomes_of_summaries_a_session_recovers_or_dies_where_it_is_refused() {
    let (call, prompt) = first_refusal();
    let cause = DeathCause::Overflow;
    let died = End::Died { call, prompt, cause };
    let mut struck = 0;
    for fault in Fault::ALL {
        if fault.target() != FaultTarget::Summary {
            continue;
        }
        struck += 1;
        if outcome(fault).1.is_none() {
            // Half a summary is one: nothing is ever refused.
            for recovery in [DROPS, "", ASKS] {
                check(fault, recovery, &End::Completed, false);
            }
            continue;
        }
        check(fault, DROPS, &End::Completed, true);
        check(fault, "", &died, false);
        check(fault, ASKS, &died, false);
    }
    assert_eq!(struck, 8);
}
