//! What bills show of the provider's cache happens to every strategy alike.

use std::sync::Arc;

use proctor::bill::{Bill, Sizes};
use proctor::metric::cost::SchemeCost;
use proctor::model::price::{Placement, Prices};
use proctor::model::scripted::Scripted;
use proctor::record::CellRecord;
use proctor::replay::{NoClock, PreparedSession, Replayed, replay};
use proctor::session::{CompactedTo, Message, RecordedCompaction, Session};
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::{Tokens, Usage};
use proptest::prelude::*;

use crate::support::{cell, models, prepared, reading_session, run, session_with};

/// Billed in front of every prompt, and in no message.
const HEAD: u64 = 10_000;

const ROUNDS: usize = 12;

fn full(prepared: &PreparedSession) -> CellRecord {
    let models = models(Scripted::new());
    replay(prepared, cell("full"), Replayed::Full, &models, &NoClock).record
}

fn under(prepared: &PreparedSession, strategy: &str) -> CellRecord {
    // An odd bill may be a hundred times as large as its prompt.
    run(prepared, strategy, 100_000_000, &models(Scripted::new())).record
}

/// A recording of prompts whose size is the count behind a head, with these bills: by call, from the size.
fn recording(read: impl Fn(usize, u64) -> u64, compacted_at: Option<usize>) -> Session {
    let bill = |call, prompt| Some(reads(read(call, prompt), prompt));
    recording_of(bill, compacted_at)
}

/// The same with bills of any kind.
fn recording_of(
    bill: impl Fn(usize, u64) -> Option<Usage>,
    compacted_at: Option<usize>,
) -> Session {
    let plain = reading_session(ROUNDS, 4_000);
    let calls = plain.calls().to_vec();
    let messages = plain.messages().iter();
    let mut messages: Vec<Message> = messages.map(|message| (**message).clone()).collect();
    let prompts = full(&prepared(plain)).prompt_tokens;
    for (call, (at, prompt)) in calls.iter().zip(prompts).enumerate() {
        messages[*at].details.usage = bill(call, prompt.0 + HEAD);
    }
    let compactions = compacted_at.map(|call| RecordedCompaction {
        at: calls[call],
        trigger: None,
        pre_tokens: None,
        usage: None,
        after: CompactedTo::Missing,
    });
    session_with(messages, compactions.into_iter().collect())
}

/// The bill of a prompt of which this much is read, and the rest written.
fn reads(read: u64, prompt: u64) -> Usage {
    Usage { cache_read: Tokens(read), cache_write_5m: Tokens(prompt - read), ..Usage::default() }
}

/// The session as it was billed by Anthropic with the cache of five minutes, call after call in so many seconds.
fn as_billed(session: Session, pacing: u64) -> PreparedSession {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let bill = Bill::of(&session, &counts, Sizes::Billed, None);
    let mut schemes = Prices::built_in().unwrap().schemes("anthropic", None);
    schemes.sort_by_key(|scheme| scheme.name != "anthropic-5m");
    let prepared = PreparedSession::new(Arc::new(session), counts, Vec::new());
    let prepared = prepared.unwrap().billed(Arc::new(bill));
    prepared.with_cache(schemes, pacing)
}

/// The tokens that each prompt of a cell reads under a scheme.
fn read(cell: &CellRecord, scheme: &str) -> Vec<u64> {
    let cache = cell.cache_under(scheme, Placement::Usual).unwrap();
    cache.read.iter().map(|tokens| tokens.0).collect()
}

#[test]
fn the_head_that_others_cached_is_read_at_the_first_call() {
    for (billed, warm) in [(4_000, 4_000), (HEAD + 1, HEAD), (0, 0)] {
        let session = recording(|call, prompt| [billed, prompt / 2][call.min(1)], None);
        let prepared = as_billed(session, 30);
        for cell in [full(&prepared), under(&prepared, "observation-masking")] {
            assert_eq!(cell.fixed_tokens.0 / 100, HEAD / 100);
            assert_eq!(read(&cell, "anthropic-5m")[0], warm);
            assert_eq!(read(&cell, "anthropic-1h")[0], warm);
            assert_eq!(read(&cell, "auto-prefix")[0], warm / 128 * 128);
            let ideal = cell.cache_under("anthropic-5m", Placement::Ideal).unwrap();
            assert_eq!(ideal.read[0], Tokens(warm));
        }
    }
}

#[test]
fn a_miss_of_the_recording_is_one_of_every_strategy() {
    let bill = |call, prompt| if call == 5 { 2_000 } else { prompt / 2 };
    let prepared = as_billed(recording(bill, None), 30);
    let cells = [full(&prepared), under(&prepared, "observation-masking")];
    for cell in &cells {
        for scheme in ["anthropic-5m", "anthropic-1h", "auto-prefix"] {
            let read = read(cell, scheme);
            assert_eq!(read[5], if scheme == "auto-prefix" { 1_920 } else { 2_000 });
            assert!(read[4] > HEAD && read[6] > HEAD, "{scheme} {read:?}");
            let breaks = &cell.cache_under(scheme, Placement::Usual).unwrap().breaks;
            assert_eq!(breaks["missed"].calls, 1);
        }
    }
    let reads_all_again = Tokens(read(&cells[0], "anthropic-5m")[6]);
    assert_eq!(reads_all_again, cells[0].prompt_tokens[5]);
}

#[test]
fn a_call_at_which_the_recording_compacted_is_no_miss() {
    let bill = |call, prompt| if call == 5 { 0 } else { prompt / 2 };
    let cell = full(&as_billed(recording(bill, Some(5)), 30));
    assert_eq!(Tokens(read(&cell, "anthropic-5m")[5]), cell.prompt_tokens[4]);
}

#[test]
fn after_a_pause_the_head_is_warm_and_a_cache_that_outlives_it_reads_on() {
    let prepared = as_billed(recording(|_, _| 4_000, None), 400);
    let cell = full(&prepared);
    assert_eq!(read(&cell, "anthropic-5m"), [4_000; ROUNDS + 1]);
    let longer = read(&cell, "anthropic-1h");
    let last: Vec<u64> = cell.prompt_tokens.iter().map(|prompt| prompt.0).collect();
    assert_eq!(longer[0], 4_000);
    assert_eq!(longer[1..], last[..ROUNDS]);
}

/// A bill of a prompt, whatever a file may say.
fn bills() -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec((0..8_u8, 0..=100_u64), ROUNDS + 1)
}

fn odd_bill((kind, share): (u8, u64), prompt: u64) -> Option<Usage> {
    let read = prompt * share / 100;
    match kind {
        0 => None,
        1 => Some(Usage::default()),
        2 => Some(Usage::uncached(Tokens(prompt - read), Tokens(9))),
        3 => Some(reads(read, u64::MAX)),
        4 => Some(reads(prompt * share, prompt * share)),
        _ => Some(reads(read, prompt)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_strategy_that_edits_nothing_costs_what_full_history_costs(
        bills in bills(),
        pacing in prop::sample::select(&[30, 400][..]),
        compacted_at in prop::option::weighted(0.3, 1..ROUNDS),
    ) {
        let session = recording_of(|call, prompt| odd_bill(bills[call], prompt), compacted_at);
        let prepared = as_billed(session, pacing);
        let reference = full(&prepared);
        let masked = under(&prepared, "observation-masking");
        prop_assert_eq!(&under(&prepared, "none").prompt_cache, &reference.prompt_cache);
        for cell in [&reference, &masked] {
            for cache in &cell.prompt_cache {
                for (call, prompt) in cell.prompt_tokens.iter().enumerate() {
                    let usage = cache.of_call(call, *prompt);
                    prop_assert_eq!(usage.prompt(), *prompt, "{} {}", cache.scheme, call);
                }
            }
            let costs = SchemeCost::of(cell, &reference);
            let own = costs.iter().filter(|cost| cost.scheme == "anthropic-5m");
            let own: Vec<(Placement, u64)> = own.map(|cost| (cost.placement, cost.cost)).collect();
            let ideal = own.iter().find(|(placement, _)| *placement == Placement::Ideal);
            prop_assert!(own.iter().all(|(_, cost)| ideal.unwrap().1 <= *cost), "{own:?}");
        }
    }
}
