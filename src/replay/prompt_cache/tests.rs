//! Published figures, and a cache looked at by hand.
//!
//! The figures are those of the project's table of numbers to check against; the models behind them
//! are closed forms or small loops that anybody can run again.

use super::*;
use crate::context::{CacheEffect, Entry, Origin};
use crate::model::price::{Prices, Rates, Senders};
use crate::session::{ContentBlock, JsonText, Message, Role, ToolClass, ToolResult, ToolUse};
use crate::tokens::{CharsPer4, CountedTexts};
use crate::units::Usage;

/// The rules of the published models: no minimum, no look-back limit, no time, the longest common
/// prefix is read and the rest of the prompt written.
fn plain(write: Option<u32>) -> CacheScheme {
    CacheScheme {
        name: "plain".to_owned(),
        reuse: Reuse::LongestPrefix,
        rates: Rates { write, read: 100, output: 5_000, long_prompts: None },
        ..CacheScheme::none()
    }
}

fn built_in(name: &str) -> CacheScheme {
    let schemes = Prices::built_in().unwrap().schemes("anthropic", None);
    schemes.into_iter().find(|of| of.name == name).unwrap()
}

fn user(text: &str, tokens: u64) -> BlockList {
    BlockList::new(vec![PromptPiece::new(text, Tokens(tokens))], Role::User)
}

fn said(text: &str, tokens: u64) -> BlockList {
    BlockList::new(vec![PromptPiece::new(text, Tokens(tokens))], Role::Assistant)
}

/// A line under one scheme, and what its calls cost.
struct Bench {
    line: PromptLine,
    cache: PromptCache,
    now: SentAt,
    tokens: u64,
    read: u64,
    /// In thousandths of an input token.
    cost: u64,
}

impl Bench {
    fn new(scheme: CacheScheme, head: &[u64]) -> Self {
        let head: Vec<PromptPiece> = head
            .iter()
            .map(|tokens| PromptPiece::new(format!("head {tokens}"), Tokens(*tokens)))
            .collect();
        Self {
            line: PromptLine::new(&head),
            cache: PromptCache::new(Arc::new(scheme), Client::RECOMMENDED),
            now: 0,
            tokens: 0,
            read: 0,
            cost: 0,
        }
    }

    fn replace(&mut self, entries: std::ops::Range<usize>, with: Vec<BlockList>) -> LineChange {
        self.edit(entries, with, CacheEffect::Breaks)
    }

    fn edit(
        &mut self,
        entries: std::ops::Range<usize>,
        with: Vec<BlockList>,
        cache: CacheEffect,
    ) -> LineChange {
        let change = self.line.patch(&[EditedEntries { entries, with, cache }]);
        self.cache.removed(change.removed);
        change
    }

    fn send(&mut self) -> CacheOutcome {
        let prompt = self.line.until(self.line.len());
        let served = self.cache.send(&self.line, None, self.now);
        self.line.sent(self.now);
        let Split { read, written } = served.split;
        let plain = prompt - read - written;
        let usage = Usage {
            cache_write_5m: written,
            cache_read: read,
            ..Usage::uncached(plain, Tokens::ZERO)
        };
        self.tokens += prompt.0;
        self.read += read.0;
        self.cost += self.cache.scheme.rates.cost(&usage);
        served
    }
}

const BASE: u64 = 2_500;
const TURN: u64 = 130 + 680;
const MASKED: u64 = 130 + 12;

fn turn(at: usize) -> BlockList {
    user(&format!("turn {at}"), TURN)
}

/// Token and cost savings in percent, to one decimal, of sliding observation masking.
fn masking(turns: usize, step: usize, write: u32) -> (String, String) {
    let mut full = Bench::new(plain(Some(write)), &[BASE]);
    let mut masked = Bench::new(plain(Some(write)), &[BASE]);
    let mut boundary = 0;
    for call in 1..=turns {
        let next = ((call - 1) / step * step).saturating_sub(10);
        for at in boundary..next {
            let placeholder = user(&format!("masked {at}"), MASKED);
            masked.replace(at..at + 1, vec![placeholder]);
        }
        boundary = boundary.max(next);
        full.send();
        masked.send();
        full.line.append(&turn(call));
        masked.line.append(&turn(call));
    }
    savings(&full, &masked, 0, 0)
}

/// The same where the oldest 21 turns go into one summary; also how often that happens.
fn summarising(turns: usize, scheme: &CacheScheme) -> (usize, (String, String)) {
    let mut full = Bench::new(scheme.clone(), &[BASE]);
    let mut short = Bench::new(scheme.clone(), &[BASE]);
    let (mut standing, mut compactions) = (0, 0);
    let (mut tokens, mut cost) = (0, 0);
    for call in 1..=turns {
        if standing >= 31 {
            let earlier = usize::from(compactions > 0);
            let source = BASE + 1_000 * earlier as u64 + 21 * TURN;
            let summary = user(&format!("summary {compactions}"), 1_000);
            short.replace(0..earlier + 21, vec![summary]);
            tokens += source;
            // The call is billed without a cache, five times as much for what it writes.
            cost += Rates { write: None, read: 0, output: 5_000, long_prompts: None }
                .cost(&Usage::uncached(Tokens(source), Tokens(1_000)));
            standing -= 21;
            compactions += 1;
        }
        full.send();
        short.send();
        full.line.append(&turn(call));
        short.line.append(&turn(call));
        standing += 1;
    }
    (compactions, savings(&full, &short, tokens, cost))
}

fn savings(full: &Bench, other: &Bench, tokens: u64, cost: u64) -> (String, String) {
    let share =
        |part: u64, whole: u64| format!("{:.1}", 100.0 * (1.0 - part as f64 / whole as f64));
    (share(other.tokens + tokens, full.tokens), share(other.cost + cost, full.cost))
}

#[test]
fn a_session_that_only_grows_reads_all_but_its_last_prompt() {
    // 33 calls from 12,400 to 84,500 tokens, growing linearly: 1 − C_last/ΣC = 94.7 %.
    let mut bench = Bench::new(plain(None), &[12_400]);
    for call in 1..=33_u64 {
        bench.send();
        let grown = |call: u64| 12_400 + (84_500 - 12_400) * (call - 1) / 32;
        let more = grown(call + 1) - grown(call);
        bench.line.append(&user(&format!("turn {call}"), more));
    }
    let share = bench.read as f64 / bench.tokens as f64;
    assert_eq!(format!("{:.1}", 100.0 * share), "94.7");
}

#[test]
fn a_written_prefix_pays_for_itself_at_the_second_or_third_request() {
    // Anthropic: 1.25 + 0.1 = 1.35 against 2 at the second request; 2 + 0.2 = 2.2 against 3 at the
    // third.
    let cost = |name: &str, requests: usize| {
        let mut bench = Bench::new(built_in(name), &[100_000]);
        bench.line.append(&user("go", 0));
        for _ in 0..requests {
            bench.send();
        }
        bench.cost / 100_000
    };
    assert_eq!(cost("anthropic-5m", 2), 1_350);
    assert_eq!([2, 3].map(|n| cost("anthropic-1h", n)), [2_100, 2_200]);
}

#[test]
fn masking_on_every_call_saves_tokens_and_costs_more() {
    let check = |turns, step, write, tokens: &str, cost: &str| {
        let found = masking(turns, step, write);
        assert_eq!(found, (tokens.to_owned(), cost.to_owned()), "{turns} {step}");
    };
    check(50, 1, 1_250, "46.6", "-175.5");
    check(100, 1, 1_250, "62.8", "-94.6");
    check(100, 5, 1_250, "60.0", "19.0");
    check(100, 10, 1_250, "56.5", "30.8");
    check(100, 25, 1_250, "47.0", "31.6");
    check(250, 1, 1_250, "74.2", "-4.5");
    check(250, 10, 1_250, "71.4", "57.2");
    // The same where writing costs what reading anew costs.
    check(100, 1, 1_000, "62.8", "-65.5");
    check(100, 5, 1_000, "60.0", "26.6");
    check(100, 10, 1_000, "56.5", "35.5");
    check(100, 25, 1_000, "47.0", "34.5");
}

#[test]
fn a_summary_of_every_21_turns_saves_less_where_there_is_a_cache() {
    let check = |turns, compactions, tokens: &str, uncached: &str, cached: &str| {
        let found = [CacheScheme::none(), plain(Some(1_250))].map(|of| summarising(turns, &of));
        let says = |cost: &str| (compactions, (tokens.to_owned(), cost.to_owned()));
        assert_eq!(found, [says(uncached), says(cached)]);
    };
    check(100, 4, "56.4", "55.9", "20.9");
    check(250, 11, "80.8", "80.6", "61.3");
}

#[test]
fn breakpoints_find_what_an_earlier_breakpoint_ended() {
    let mut bench = Bench::new(built_in("anthropic-5m"), &[900, 600]);
    bench.line.append(&user("go", 100));
    // The tools alone are too short to be cached; what ends at the system prompt is not.
    assert_eq!(bench.send().split, split(0, 1_600));
    bench.line.append(&said("a", 10));
    bench.line.append(&user("b", 20));
    assert_eq!(bench.send().split, split(1_600, 30));
    // A message in the middle changes: only tools and system prompt are found.
    bench.line.append(&said("c", 10));
    let change = bench.replace(0..1, vec![user("gone", 40)]);
    assert_eq!(change.broken_at, Some(2));
    let served = bench.send();
    assert_eq!(served.split, split(1_500, 70));
    // The last prompt ends with an answer that no breakpoint covers.
    assert_eq!((served.broken, served.resent), (Tokens(130), Tokens(30)));
}

#[test]
fn a_prefix_dies_when_nobody_uses_it() {
    let served = |name: &str, idle: SentAt| {
        let mut bench = Bench::new(built_in(name), &[2_000]);
        bench.line.append(&user("go", 100));
        bench.send();
        bench.now += idle;
        bench.send()
    };
    assert_eq!(served("anthropic-5m", 300_000).split, split(2_100, 0));
    let late = served("anthropic-5m", 300_001);
    assert_eq!(late.split, split(0, 2_100));
    assert!(late.loss == Some(CacheLoss::Expired) && late.broken == Tokens(2_100));
    assert_eq!(served("anthropic-1h", 300_001).split, split(2_100, 0));
    assert_eq!(served("none", 0), CacheOutcome::default());
}

/// A prefix that is read stays cached, though no breakpoint of the prompt that reads it ends there
/// any more.
#[test]
fn what_is_read_outlives_the_prompt_that_wrote_it() {
    let mut bench = Bench::new(built_in("anthropic-5m"), &[2_000]);
    bench.line.append(&user("first", 100));
    bench.send();
    for at in 0..3 {
        bench.line.append(&said(&format!("answer {at}"), 10));
        bench.line.append(&user(&format!("question {at}"), 10));
    }
    // The breakpoints are the last two questions now, and what is found ended at the first one.
    bench.now += 200_000;
    assert_eq!(bench.send().split, split(2_100, 60));
    bench.replace(1..7, vec![said("changed", 5), user("new", 5)]);
    bench.line.append(&said("more", 5));
    bench.line.append(&user("newest", 5));
    bench.now += 200_000;
    assert_eq!(bench.send().split, split(2_100, 20));
}

#[test]
fn what_is_too_short_to_be_cached_is_processed_again() {
    let mut bench = Bench::new(built_in("anthropic-5m"), &[]);
    bench.line.append(&user("short", 500));
    bench.send();
    bench.line.append(&said("a", 1_000));
    bench.line.append(&user("b", 1_000));
    let served = bench.send();
    assert_eq!(served.split, split(0, 2_500));
    assert_eq!((served.broken, served.resent), (Tokens(0), Tokens(500)));
}

#[test]
fn an_automatic_cache_reads_whole_steps_and_bills_no_write() {
    let mut bench = Bench::new(built_in("auto-prefix"), &[1_000]);
    bench.send();
    assert_eq!(bench.send().split, split(0, 0), "shorter than 1,024");
    bench.line.append(&user("go", 300));
    bench.send();
    bench.line.append(&said("a", 5));
    assert_eq!(bench.send().split, split(1_280, 0), "ten steps of 128");
}

#[test]
fn what_the_provider_removes_itself_leaves_the_prefix_valid() {
    for scheme in ["anthropic-5m", "auto-prefix"].map(built_in) {
        let step = scheme.step.0;
        let mut bench = Bench::new(scheme, &[2_000]);
        bench.line.append(&user("result", 3_000));
        bench.line.append(&said("more", 48));
        bench.line.append(&user("go", 328));
        bench.send();
        let change = bench.edit(0..1, vec![user("cleared", 200)], CacheEffect::Keeps);
        assert_eq!((change.broken_at, change.removed), (None, Tokens(2_800)));
        let served = bench.send();
        assert_eq!(served.split.read.0, 2_576 / step * step);
        assert_eq!((served.split.written, served.resent), (Tokens(0), Tokens(0)));
        assert!(served.broken.0 < step, "rounding apart, nothing is missed");
    }
}

#[test]
fn a_prompt_that_comes_back_is_still_known() {
    let mut bench = Bench::new(plain(Some(1_250)), &[100]);
    bench.line.append(&user("a", 10));
    bench.line.append(&user("b", 10));
    bench.send();
    bench.replace(0..2, vec![user("summary", 5)]);
    assert_eq!(bench.send().split, split(100, 5));
    bench.replace(0..1, vec![user("a", 10), user("b", 10)]);
    assert_eq!(bench.send().split, split(120, 0));
}

/// The prompt in between begins as the first one does, and goes on in another way.
#[test]
fn what_a_prompt_left_halfway_is_still_known_from_there() {
    let mut bench = Bench::new(plain(Some(1_250)), &[100]);
    for text in ["a", "b", "c"] {
        bench.line.append(&user(text, 10));
    }
    bench.send();
    bench.replace(0..0, vec![user("a", 10)]);
    assert_eq!(bench.send().split, split(110, 30));
    bench.replace(1..2, vec![]);
    assert_eq!(bench.send().split, split(130, 0));
}

#[test]
fn a_request_beside_the_agents_reads_as_far_as_it_begins_alike() {
    let mut bench = Bench::new(built_in("anthropic-5m"), &[2_000]);
    bench.line.append(&user("go", 100));
    bench.line.append(&said("a", 10));
    bench.line.append(&user("b", 20));
    bench.send();
    let read = |head: &[&str], words: &[&str], idle: SentAt| {
        let head: Vec<PromptPiece> =
            head.iter().map(|text| PromptPiece::new(text, Tokens(1))).collect();
        let mut request = PromptLine::new(&head);
        for (at, word) in words.iter().enumerate() {
            let message = [user, said][at % 2](word, 1);
            request.append(&message);
        }
        let shared = bench.line.shared_with(&request);
        let now = bench.now + idle;
        let read = bench.cache.side_request(&bench.line, &request, shared, now);
        (shared, read.0)
    };
    // All of it goes on with the agent's prompt; a part of it ends before a breakpoint.
    let head = ["head 2000"];
    assert_eq!(read(&head, &["go", "a", "b", "c", "sum up"], 0), (4, 2_130));
    assert_eq!(read(&head, &["go", "a", "sum up"], 0), (3, 2_100));
    assert_eq!(read(&[], &["go", "a", "sum up"], 0), (0, 0));
    let late = read(&head, &["go", "a", "b", "c", "sum up"], 300_001);
    assert_eq!(late, (4, 0));
}

/// The example of Anthropic's page on prompt caching: an entry at block 15, and a breakpoint at
/// block 35, which looks at blocks 35 to 16.
#[test]
fn a_breakpoint_looks_at_twenty_positions_itself_the_first() {
    let read = |behind: usize| {
        let mut bench = Bench::new(built_in("anthropic-5m"), &[]);
        for at in 1..15 {
            bench.line.append(&said(&format!("block {at}"), 100));
        }
        bench.line.append(&user("block 15", 100));
        bench.send();
        for at in 1..behind {
            bench.line.append(&said(&format!("more {at}"), 100));
        }
        bench.line.append(&user("end", 100));
        // The entry's own message would have a breakpoint too.
        bench.line.append(&user("", 0));
        bench.replace(15 + behind..16 + behind, vec![]);
        let ends: Vec<usize> = bench.line.ends(1, Senders::User).collect();
        assert_eq!(ends, [15 + behind]);
        bench.cache.client.messages = 1;
        bench.send().split.read.0
    };
    assert_eq!(read(19), 1_500);
    assert_eq!(read(20), 0);
}

#[test]
fn a_run_of_tool_uses_is_one_position_and_so_is_a_run_of_results() {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let round = |at: usize, role: Role, of: &dyn Fn(String) -> ContentBlock| {
        let blocks = (0..10).map(|n| of(format!("{at}-{n}"))).collect();
        let message = Arc::new(Message::new(role, blocks));
        BlockList::of(&Entry::new(Origin::Authored, message, &counts), &counts)
    };
    let uses = |at: usize| {
        round(at, Role::Assistant, &|id| {
            ContentBlock::ToolUse(Box::new(ToolUse {
                id: id.into(),
                name: "Read".into(),
                class: ToolClass::Read,
                input: JsonText::string("a"),
            }))
        })
    };
    let results = |at: usize| {
        round(at, Role::User, &|id| {
            ContentBlock::ToolResult(Box::new(ToolResult {
                tool_use_id: id.into(),
                content: vec![ContentBlock::Text("found".into())],
                is_error: false,
            }))
        })
    };
    let reads = |rounds: usize| {
        let mut bench = Bench::new(built_in("anthropic-5m"), &[2_000]);
        bench.line.append(&user("go", 100));
        bench.send();
        for at in 0..rounds {
            bench.line.append(&uses(at));
            bench.line.append(&results(at));
        }
        bench.cache.client.messages = 1;
        assert_eq!(bench.line.position(bench.line.len()), 2 + 2 * rounds);
        bench.send().split.read.0
    };
    // Nine rounds of twenty blocks are 18 positions behind the breakpoint before. With ten, the
    // breakpoint of the head is all that is left.
    assert_eq!(reads(9), 2_100);
    assert_eq!(reads(10), 2_000);
}

#[test]
fn thoughts_of_different_sizes_are_different_thoughts() {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let pieces = |hidden: u64| {
        let mut message = Message::text(Role::Assistant, "");
        message.details.hidden = Tokens(hidden);
        BlockList::of(&Entry::new(Origin::Authored, Arc::new(message), &counts), &counts)
    };
    let mut bench = Bench::new(plain(None), &[100]);
    bench.line.append(&pieces(184));
    bench.send();
    bench.replace(0..1, vec![pieces(529)]);
    assert_eq!(bench.send().split.read, Tokens(100));
    bench.replace(0..1, vec![pieces(184)]);
    assert_eq!(bench.send().split.read, Tokens(284));
}

fn split(read: u64, written: u64) -> Split {
    Split { read: Tokens(read), written: Tokens(written) }
}
