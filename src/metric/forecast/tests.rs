//! Spans, spends and carries, each computed by hand.

use std::collections::BTreeMap;

use super::carry::Carry;
use super::*;
use crate::record::words::{LongPrompts, ModelKind, PerToken, Purpose};
use crate::record::{Asks, CellRecord, ForecastCell, Manifest};
use crate::record::{ModelCall, ModelEntry, ProbesDue, PromptDue, SentinelsDue};
use crate::units::Usage;
use crate::window::Window;

fn entry(kind: ModelKind) -> ModelEntry {
    ModelEntry { name: "m".to_owned(), kind }
}

fn manifest(summariser: ModelKind, reader: Option<ModelKind>) -> Manifest {
    let manifest = serde_json::json!({
        "format": "proctor-run", "version": 1, "proctor": "0", "fingerprint": "", "scenario": "s",
        "counter": "chars/4", "seed": 1, "window": "native", "summariser": entry(summariser),
        "reader": reader.map(entry), "judge": null, "sessions": [],
        "strategies": [{ "name": "s", "description": "", "toml": "" }], "repeats": 1,
    });
    serde_json::from_value(manifest).unwrap()
}

/// One cell with a summary of 200 tokens in and 10 out, of which 100 are allowed, and a recorded
/// one of 300 in and 30 out.
fn cell(arm: &str) -> ForecastCell {
    let none: [u32; 0] = [];
    let record = serde_json::json!({
        "session": "a", "strategy": if arm == "reference" { "full" } else { "s" }, "repeat": 0,
        "arm": arm, "end": { "end": "completed" }, "planned_calls": 2, "reached_calls": 2,
        "window": null, "fixed_tokens": 40, "prompt_tokens": [1_000, 2_000], "saved_texts": 0,
        "action_support": {
            "wanted": none, "present": none,
            "compacted_wanted": none, "compacted_present": none,
        },
    });
    let mut record: CellRecord = serde_json::from_value(record).unwrap();
    let mut asks = Asks::new();
    if arm == "strategy" {
        let call = |input, output| ModelCall {
            call: 1,
            purpose: Purpose::Compaction,
            usage: Usage::uncached(Tokens(input), Tokens(output)),
            model: None,
            failure: None,
            key: None,
        };
        record.model_calls = vec![call(200, 10), call(300, 30)];
        asks.insert(0, Tokens(100));
    }
    ForecastCell {
        record,
        asks,
        probes: [(1, due())].into_iter().collect(),
        sent: Asks::new(),
        paid: [(1, vec![(prompt(2_000), due())])].into_iter().collect(),
        prompts: BTreeMap::new(),
        evidence: BTreeMap::new(),
        floor: (arm == "reference").then(|| (prompt(40), due())),
        sentinels: SentinelsDue {
            calls: if arm == "reference" { 10 } else { 0 },
            tokens: Tokens(if arm == "reference" { 5_000 } else { 0 }),
            narrow_calls: 6,
            narrow_tokens: Tokens(1_000),
        },
    }
}

/// A prompt of which nothing is cached.
fn prompt(tokens: u64) -> PromptDue {
    PromptDue { tokens: Tokens(tokens), ..PromptDue::default() }
}

/// Two items, one of them asked in both orders; the answer to the other may have to be judged.
fn due() -> ProbesDue {
    ProbesDue {
        items: 2,
        questions: 3,
        question_tokens: Tokens(60),
        gold_tokens: Tokens(15),
        judged: 1,
        different: 1,
        judge_tokens: Tokens(400),
        judged_gold: Tokens(7),
    }
}

fn forecast(summariser: ModelKind, reader: Option<ModelKind>) -> Spend {
    judged(summariser, reader, &[])
}

fn judged(summariser: ModelKind, reader: Option<ModelKind>, judges: &[ModelEntry]) -> Spend {
    thought(summariser, reader, judges, ThinkingTokens::default())
}

fn thought(
    summariser: ModelKind,
    reader: Option<ModelKind>,
    judges: &[ModelEntry],
    thinking: ThinkingTokens,
) -> Spend {
    let price = PerToken { input: Some(Usd(1)), output: Some(Usd(10)), ..PerToken::default() };
    Spend::of(
        &manifest(summariser, reader),
        &[cell("reference"), cell("strategy")],
        &Tariff {
            price_of: &|model| (model == "m").then_some((price, None)),
            judges,
            longest_answer: Tokens(1_024),
            longest_verdict: Tokens(64),
            thinking,
            summaries_written_from: None,
            batch_of: &|_| Some(500),
        },
    )
}

#[track_caller]
fn check(spend: &Spend, calls: u64, input: u64, dollars: [u64; 3]) {
    let [low, expected, high] = dollars.map(Usd);
    let span = ForecastRange { low, expected, high };
    assert_eq!((spend.calls, spend.input_tokens.0), (calls, input));
    assert_eq!(spend.dollars, Some(span));
}

#[test]
fn only_what_a_live_model_writes_is_a_range() {
    use ModelKind::{Deterministic, Live};
    check(&forecast(Deterministic, None), 0, 0, [0, 0, 0]);
    // The recorded answer is what it is; the other one may be empty, or as long as allowed.
    check(&forecast(Live, None), 1, 200, [200, 300, 1_200]);
}

#[test]
fn a_live_reader_is_asked_every_probe_of_every_arm_the_floor_included() {
    use ModelKind::{Deterministic, Live};
    let spend = forecast(Deterministic, Some(Live));
    // Three of the reference, three of the floor, three of the strategy; and the questions.
    let input = 3 * 2_000 + 3 * 40 + 3 * 2_000 + 3 * 60;
    let expected = input + 3 * 10 * 15;
    let most = input + 9 * 10 * 1_024;
    check(&spend, 9, input, [input, expected, most]);
}

#[test]
fn what_a_first_question_writes_the_others_read_and_a_batch_reads_nothing() {
    let price = PerToken {
        input: Some(Usd(100)),
        cache_write_5m: Some(Usd(125)),
        cache_read: Some(Usd(10)),
        output: Some(Usd(500)),
        ..PerToken::default()
    };
    let mut cell = cell("strategy");
    cell.asks.clear();
    let prompt = PromptDue {
        id: 1,
        tokens: Tokens(2_000),
        read: Tokens(500),
        written: Tokens(1_400),
        read_again: Tokens(1_900),
    };
    cell.paid.insert(1, vec![(prompt, due())]);
    let inputs = Tariff {
        price_of: &|_| Some((price, None)),
        judges: &[],
        longest_answer: Tokens(1_024),
        longest_verdict: Tokens(64),
        thinking: ThinkingTokens::default(),
        summaries_written_from: None,
        batch_of: &|_| Some(500),
    };
    let manifest = manifest(ModelKind::Deterministic, Some(ModelKind::Live));
    let spend = Spend::of(&manifest, &[cell], &inputs);
    // Three questions of 20 tokens each: two read what the first one wrote.
    let read = 500 + 2 * 1_900;
    let plain = 3 * 2_000 + 60 - read - 1_400;
    assert_eq!(
        (spend.cache_read, spend.cache_written, spend.input_tokens),
        (Tokens(read), Tokens(1_400), Tokens(6_060))
    );
    let cost = 10 * read + 125 * 1_400 + 100 * plain + 500 * 15;
    assert_eq!(spend.dollars.unwrap().expected, Usd(cost));
    let batched = 50 * 6_060 + 250 * 15;
    assert_eq!(spend.batch_dollars.unwrap().expected, Usd(batched));
}

#[test]
fn every_live_judge_costs_what_it_may_be_shown_and_its_sentinels() {
    use ModelKind::{Deterministic, Live, Scripted};
    let judges = [entry(Live), entry(Scripted), entry(Live)];
    let spend = judged(Deterministic, None, &judges);
    // One answer of each of three arms, and each live judge ten answers of known verdict, and at most six
    // of the narrow task. The floor's
    // answers say that nothing is known, as a rule.
    assert_eq!(spend.judged_at_most, 2 * 3);
    let known = 2 * 5_000;
    let verdicts = 2 * 64 * 10;
    let expected = known + 2 * 2 * (400 + 7) + (2 + 10) * 2 * (64 / 5) * 10;
    let most = known + 2 * 1_000 + 2 * 3 * (400 + 1_024) + (3 + 10 + 6) * verdicts;
    check(&spend, 20, known, [known, expected, most]);
}

#[test]
fn a_price_nobody_knows_is_no_price_of_nothing() {
    use ModelKind::{Deterministic, Live};
    let cells = [cell("reference"), cell("strategy")];
    let spend = |summariser, judges: &[ModelEntry]| {
        let inputs = Tariff {
            price_of: &|_| None,
            judges,
            longest_answer: Tokens(1_024),
            longest_verdict: Tokens(64),
            thinking: ThinkingTokens::default(),
            summaries_written_from: None,
            batch_of: &|_| None,
        };
        Spend::of(&manifest(summariser, None), &cells, &inputs)
    };
    assert_eq!((spend(Live, &[]).calls, spend(Live, &[]).dollars), (1, None));
    let judged = spend(Deterministic, &[entry(Live)]);
    assert_eq!((judged.judged_at_most, judged.dollars), (3, None));
}

#[test]
fn a_longer_summary_is_carried_until_the_next_one_and_never_beyond_the_window() {
    // Six prompts; a summary of 10 of 100 tokens at the second, one of 20 of 100 at the fifth.
    let mut cell = cell("strategy");
    cell.record.prompt_tokens = [500, 300, 350, 980, 200, 250].map(Tokens).to_vec();
    cell.record.window = Some(Window::new(Tokens(1_000)));
    let asked = |call, purpose, output| ModelCall {
        call,
        purpose,
        usage: Usage::uncached(Tokens(400), Tokens(output)),
        model: None,
        failure: None,
        key: None,
    };
    cell.record.model_calls = vec![
        asked(1, Purpose::Compaction, 10),
        asked(2, Purpose::Background, 30),
        asked(4, Purpose::Recovery, 20),
    ];
    let longest = [0, 1, 2].map(|number| (number, Tokens(100)));
    cell.asks = longest.into_iter().collect();
    let check = |cell: &ForecastCell, less: u64, more: u64| {
        let carry = Carry::of(cell, Some(Tokens::ZERO));
        let mut total = ForecastRange::default();
        let requests = carry.requests.iter().map(|request| request.prompt);
        carry.prompts.iter().copied().chain(requests).for_each(|prompt| total += prompt);
        assert_eq!((total.less(), total.more()), (Tokens(less), Tokens(more)));
    };
    // Prompts 1 to 3 and two requests carry the first, the prompt of 980 only up to the window;
    // prompts 4 and 5 carry the second. Background notes are in no prompt.
    check(&cell, 5 * 10 + 2 * 20, 90 + 90 + 20 + 2 * 90 + 2 * 80);
    // A failed call wrote nothing.
    cell.record.model_calls[0].failure = Some("timed out".to_owned());
    check(&cell, 2 * 20, 2 * 80);
}

#[test]
fn what_models_may_think_is_part_of_the_most_and_of_nothing_else() {
    use ModelKind::{Deterministic, Live};
    let judges = [entry(Live), entry(Live)];
    let most = |summariser, reader, judges: &[ModelEntry], thinking: ThinkingTokens| {
        let with = thought(summariser, reader, judges, thinking);
        let without = judged(summariser, reader, judges);
        let [with, without] = [with, without].map(|spend| spend.dollars.unwrap());
        assert_eq!((with.low, with.expected), (without.low, without.expected));
        with.high.0 - without.high.0
    };
    let thinking = || ThinkingTokens {
        summariser: Tokens(1_000),
        reader: Tokens(100),
        judges: vec![Tokens(10), Tokens(7)],
    };
    // At 10 each: one summary; three questions in three arms; three answers of three arms, and ten and
    // six of known verdict.
    assert_eq!(most(Live, None, &[], thinking()), 10 * 1_000);
    assert_eq!(most(Deterministic, Some(Live), &[], thinking()), 10 * 9 * 100);
    let verdicts = 10 * (3 + 10 + 6) * (10 + 7);
    let found = most(Deterministic, None, &judges, thinking());
    assert_eq!(found, verdicts);
    assert_eq!(most(Deterministic, None, &[], thinking()), 0);
}

#[test]
fn many_short_requests_are_no_long_prompt_however_few_of_them_are_expected() {
    let price = PerToken {
        input: Some(Usd(1)),
        output: Some(Usd(10)),
        long_prompts: Some(LongPrompts { over: Tokens(2_000), input: 5_000, output: 5_000 }),
        ..PerToken::default()
    };
    let mut cell = cell("reference");
    let known = ProbesDue {
        judged: 10,
        different: 0,
        judge_tokens: Tokens(4_000),
        judged_gold: Tokens(70),
        ..due()
    };
    cell.paid.insert(1, vec![(prompt(2_000), known)]);
    cell.floor = None;
    cell.sentinels.narrow_tokens = Tokens(6_000);
    let inputs = Tariff {
        price_of: &|_| Some((price, None)),
        judges: &[entry(ModelKind::Live)],
        longest_answer: Tokens(1_024),
        longest_verdict: Tokens(64),
        thinking: ThinkingTokens::default(),
        summaries_written_from: None,
        batch_of: &|_| Some(500),
    };
    let spend = Spend::of(&manifest(ModelKind::Deterministic, None), &[cell], &inputs);
    // Ten answers, and ten and six of known verdict: none of the prompts has more than 1,424 tokens.
    let expected = 5_000 + 10 * 12 * 10;
    let most = 4_000 + 10 * 1_024 + 5_000 + 6_000 + (10 + 10 + 6) * 64 * 10;
    check(&spend, 10, 5_000, [5_000, expected, most]);
}
