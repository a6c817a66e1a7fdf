//! Costs of small cells, worked out by hand.

use super::*;
use crate::record::ModelCall;
use crate::record::words::{CallPrice, Latency, LongPrompts, Rates, RelativePrice};
use crate::units::Factor;

/// A cell with these prompts, of which this much was read and written under one scheme.
fn cell(prompts: &[u64], read: &[u64], written: &[u64]) -> CellRecord {
    let tokens = |of: &[u64]| of.iter().copied().map(Tokens).collect();
    let none: [u32; 0] = [];
    let record = serde_json::json!({
        "session": "", "strategy": "", "repeat": 0, "arm": "strategy",
        "end": { "end": "completed" }, "planned_calls": prompts.len(),
        "reached_calls": prompts.len(), "window": null, "fixed_tokens": 0,
        "prompt_tokens": prompts, "saved_texts": 0,
        "action_support": {
            "wanted": none, "present": none,
            "compacted_wanted": none, "compacted_present": none,
        },
    });
    let mut cell: CellRecord = serde_json::from_value(record).unwrap();
    cell.prompt_cache = vec![CacheRecord {
        scheme: "tried".to_owned(),
        rates: Rates { write: Some(1_250), read: 100, output: 5_000, long_prompts: None },
        ttl_seconds: Some(300),
        read: tokens(read),
        written: tokens(written),
        ..CacheRecord::default()
    }];
    cell
}

fn asked(call: usize, purpose: Purpose, input: u64, output: u64) -> ModelCall {
    ModelCall {
        call,
        purpose,
        usage: Usage::uncached(Tokens(input), Tokens(output)),
        model: None,
        failure: None,
        key: None,
    }
}

#[track_caller]
fn check(cell: &CellRecord, full: &CellRecord, cost: u64, of: u64, even: Option<usize>) {
    let [found] = &SchemeCost::of(cell, full)[..] else {
        panic!("one scheme");
    };
    assert_eq!((found.cost, found.reference_cost), (cost, of));
    assert_eq!(found.break_even, even);
}

#[test]
fn a_compaction_pays_once_what_it_spares_later_is_worth_it() {
    let full = cell(&[100, 200, 300, 400], &[0, 100, 200, 300], &[100; 4]);
    // 125,000 to write each time, and a tenth of what is read.
    let whole = 4 * 125_000 + 60_000;
    check(&full, &full, whole, whole, None);
    let mut short = cell(&[100, 50, 60, 70], &[0, 0, 50, 60], &[100, 50, 10, 10]);
    check(&short, &full, 223_500, whole, Some(1));
    // A summary at the second call: 200 in, half of it read, and 10 out at five times the price.
    short.model_calls =
        vec![asked(1, Purpose::Agent, 9_999, 9_999), asked(1, Purpose::Compaction, 200, 10)];
    short.prompt_cache[0].strategy_read = vec![Tokens(0), Tokens(100)];
    check(&short, &full, 223_500 + 100_000 + 10_000 + 50_000, whole, Some(2));
    // Probes are on no bill; tokens spent before the first call count with it.
    short.model_calls[1].purpose = Purpose::Probe;
    check(&short, &full, 223_500, whole, Some(1));
}

#[test]
fn single_calls_say_where_the_money_goes_and_quarters_when_it_comes_back() {
    let full = cell(&[100, 200, 300, 400], &[0, 100, 200, 300], &[100; 4]);
    let mut short = cell(&[100, 50, 60, 70], &[0, 0, 50, 60], &[100, 50, 10, 10]);
    let expected = CostByCall {
        first: 125_000,
        median: 40_500,
        last: 18_500,
        dearest: 125_000,
        quarters: [(125_000, 125_000), (187_500, 260_000), (205_000, 405_000)],
    };
    assert_eq!(SchemeCost::of(&short, &full)[0].by_call, Some(expected));
    // A strategy's request at a call counts with that call; after the last call, with the last.
    short.model_calls =
        vec![asked(1, Purpose::Compaction, 100, 0), asked(4, Purpose::Background, 10, 0)];
    let found = SchemeCost::of(&short, &full)[0].by_call.unwrap();
    assert_eq!((found.dearest, found.last), (162_500, 28_500));
}

#[test]
fn what_the_agent_wrote_is_on_both_bills_and_moves_no_break_even() {
    let mut full = cell(&[100, 200, 300, 400], &[0, 100, 200, 300], &[100; 4]);
    full.output_tokens = [1, 2, 3, 4].map(Tokens).to_vec();
    let short = cell(&[100, 50, 60, 70], &[0, 0, 50, 60], &[100, 50, 10, 10]);
    let whole = 4 * 125_000 + 60_000;
    check(&short, &full, 223_500 + 50_000, whole + 50_000, Some(1));
    let found = &SchemeCost::of(&short, &full)[0];
    assert_eq!(found.by_call.unwrap().last, 18_500 + 20_000);
    assert_eq!(found.agent.output, Tokens(10));
}

#[test]
fn a_dead_cell_is_compared_over_the_calls_it_reached() {
    let mut full = cell(&[100, 200, 300], &[0, 100, 200], &[100; 3]);
    let mut dead = cell(&[100, 200], &[0, 100], &[100, 100]);
    check(&dead, &full, 260_000, 260_000, None);
    // Tokens spent at the call of the death are on the bill.
    dead.model_calls = vec![asked(2, Purpose::Recovery, 100, 0)];
    check(&dead, &full, 360_000, 260_000, None);
    // The cost of full history behind it is known.
    full.output_tokens = [1, 2, 3].map(Tokens).to_vec();
    let found = &SchemeCost::of(&dead, &full)[0];
    let whole = &SchemeCost::of(&full, &full)[0];
    assert_eq!((found.reference.output, found.reference_calls), (Tokens(3), 3));
    assert_eq!(found.whole_reference, whole.reference);
}

#[test]
fn what_another_model_was_asked_costs_its_own_price_or_nobody_knows() {
    let full = cell(&[100, 200, 300], &[0, 100, 200], &[100; 3]);
    let mut own = cell(&[100, 50, 60], &[0, 0, 50], &[100, 50, 10]);
    own.model_calls =
        vec![asked(1, Purpose::Compaction, 200, 10), asked(1, Purpose::Compaction, 7, 0)];
    let price = RelativePrice { input: 250, output: 1_000, ..RelativePrice::default() };
    own.prompt_cache[0].other_models.insert(0, Some(price));
    // 125,000 + 62,500 + 12,500 + 5,000 for the prompts, 7,000 at home, 60,000 elsewhere.
    check(&own, &full, 272_000, 405_000, Some(1));
    let costs = &SchemeCost::of(&own, &full)[0];
    assert_eq!(costs.other_models, Usage::uncached(Tokens(200), Tokens(10)));
    assert_eq!(costs.compaction, Usage::uncached(Tokens(7), Tokens(0)));
    let prices = PerToken {
        input: Some(Usd(1_000)),
        cache_write_5m: Some(Usd(1_250)),
        cache_read: Some(Usd(100)),
        ..PerToken::default()
    };
    assert_eq!(costs.dollars(&prices), Some(Usd(272_000)));
    own.prompt_cache[0].other_models.insert(0, None);
    let costs = &SchemeCost::of(&own, &full)[0];
    assert_eq!((costs.share(), costs.break_even), (None, None));
    assert_eq!(costs.by_call, None);
    assert_eq!(costs.dollars(&prices), None);
}

#[test]
fn a_long_prompt_costs_more_with_all_that_belongs_to_its_request() {
    let mut full = cell(&[100, 200, 300], &[0, 100, 200], &[100; 3]);
    full.output_tokens = [10; 3].map(Tokens).into();
    let mut own = cell(&[100, 200, 60], &[0, 100, 50], &[100, 100, 10]);
    own.model_calls = vec![
        asked(2, Purpose::Compaction, 300, 10),
        asked(2, Purpose::Compaction, 210, 10),
        asked(2, Purpose::Compaction, 40, 10),
    ];
    let long_prompts = Some(LongPrompts { over: Tokens(200), input: 2_000, output: 1_500 });
    for cell in [&mut full, &mut own] {
        cell.prompt_cache[0].rates.long_prompts = long_prompts;
    }
    let other = RelativePrice { input: 100, output: 500, long_prompts };
    own.prompt_cache[0].other_models = BTreeMap::from([(1, Some(other)), (2, Some(other))]);
    // 125 + 50, 135 + 50, and 2 · 145 + 75 for the whole third call, in input tokens.
    let agent = 175_000 + 185_000 + 17_500 + 50_000;
    let asked = (600_000 + 75_000) + (42_000 + 7_500) + (4_000 + 5_000);
    check(&own, &full, agent + asked, 725_000, None);
    let costs = &SchemeCost::of(&own, &full)[0];
    let prices = PerToken {
        input: Some(Usd(1_000)),
        cache_write_5m: Some(Usd(1_250)),
        cache_read: Some(Usd(100)),
        output: Some(Usd(5_000)),
        long_prompts,
        ..PerToken::default()
    };
    assert_eq!(costs.dollars(&prices), Some(Usd(agent + asked)));
    assert_eq!(costs.reference_dollars(&prices), Some(Usd(725_000)));
    // The tokens are those that were sent.
    assert_eq!(costs.reference.prompt(), Tokens(600));
    assert_eq!(costs.billed.costs(&costs.prices), costs.costs());
}

/// C and C⁰ where each call costs so many times as much as one of the session's model; 0 is an unknown price.
fn at_prices(own: &CellRecord, full: &CellRecord, times: [u64; 4]) -> [u64; 2] {
    let prices = times.map(|times| {
        let [input, written, read, output] = [Factor(times * 1_000_000); 4];
        let price = CallPrice { input, written, read, output, long_prompts: None };
        (times > 0).then_some(price)
    });
    let [own, full] = [own, full].map(|cell| {
        let mut cell = cell.clone();
        cell.prompt_cache[0].call_prices = (0..).zip(prices).collect();
        cell
    });
    let costs = SchemeCost::of(&own, &full)[0].costs();
    [costs.own, costs.reference]
}

#[test]
fn a_bill_is_the_sum_of_its_calls_each_at_the_price_of_its_own_model() {
    let mut full = cell(&[100, 200, 300, 400], &[0, 100, 200, 300], &[100; 4]);
    full.output_tokens = [1, 2, 3, 4].map(Tokens).to_vec();
    let mut own = cell(&[100, 50, 60, 70], &[0, 0, 50, 60], &[100, 50, 10, 10]);
    own.model_calls = vec![asked(2, Purpose::Compaction, 200, 10)];
    let usual = SchemeCost::of(&own, &full)[0].costs();
    assert_eq!(at_prices(&own, &full, [1; 4]), [usual.own, usual.reference]);
    let alone = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]];
    let alone = alone.map(|times| at_prices(&own, &full, times));
    for times in [[1, 1, 5, 5], [3, 0, 0, 1], [0, 2, 1, 7]] {
        let sums = [0, 1].map(|side| {
            let calls = times.iter().zip(&alone);
            calls.map(|(times, costs)| times * costs[side]).sum::<u64>()
        });
        assert_eq!(at_prices(&own, &full, times), sums, "{times:?}");
    }
}

#[test]
fn what_no_number_holds_is_the_largest_there_is() {
    let large = [u64::MAX, u64::MAX];
    let full = cell(&large, &[0; 2], &[0; 2]);
    let mut own = full.clone();
    own.model_calls = vec![
        asked(1, Purpose::Compaction, u64::MAX, u64::MAX),
        asked(1, Purpose::Recovery, u64::MAX, u64::MAX),
        asked(1, Purpose::Recovery, u64::MAX, u64::MAX),
    ];
    let price = RelativePrice { input: 1_000, output: 1_000, ..RelativePrice::default() };
    own.prompt_cache[0].other_models = BTreeMap::from([(1, Some(price)), (2, Some(price))]);
    check(&own, &full, u64::MAX, u64::MAX, None);
}

#[test]
fn a_call_waits_for_what_the_background_has_not_written_yet() {
    let full = cell(&[100; 4], &[0; 4], &[0; 4]);
    let mut own = full.clone();
    let event = |call, prepared_at| {
        serde_json::from_value(serde_json::json!({
            "call": call, "stage": "s", "reason": "", "before": 9, "after": 1, "prepared_at": prepared_at,
        }))
        .unwrap()
    };
    own.model_calls = vec![
        asked(0, Purpose::Background, 600, 0),
        asked(2, Purpose::Background, 30, 0),
        asked(2, Purpose::Compaction, 900, 0),
    ];
    own.compactions = vec![event(2, Some(0)), event(2, None), event(3, Some(2))];
    let [cost] = &SchemeCost::of(&own, &full)[..] else {
        panic!("one scheme");
    };
    let latency = Latency {
        start_ms: 10.0,
        prefill_per_second: 1_000.0,
        cached_per_second: 1_000.0,
        decode_per_second: 1_000.0,
    };
    let prepared = cost.prepared.iter();
    let waits: Vec<f64> = prepared.map(|work| work.wait_milliseconds(&latency)).collect();
    // 610 ms less two calls of 110; 40 are less than one call.
    assert_eq!(waits, [390.0, 0.0]);
}

#[test]
fn without_a_common_scheme_there_is_no_cost() {
    let mut old = cell(&[100], &[], &[]);
    old.prompt_cache.clear();
    assert_eq!(SchemeCost::of(&old, &cell(&[100], &[], &[])), []);
}
