//! Spend: the requests to live models in the run itself, which cost real money.

use std::ops::Sub;

use serde::Serialize;

use super::carry::Carry;
use super::{ForecastRange, add_money};
use crate::record::words::{ModelKind, PerToken, ServerTiming};
use crate::record::{ForecastCell, Manifest, ModelEntry, ProbesDue, PromptDue, SentinelsDue};
use crate::units::{Tokens, Usage, Usd, whole};

/// A verdict takes this part of the room that it is given, as a rule.
const VERDICT_PART: u64 = 5;

/// The prices of a model, and how long its calls take where that is known.
type PriceAndTiming = (PerToken, Option<ServerTiming>);

/// The tariff of a run: the prices of its models, and the limits of their output.
pub(crate) struct Tariff<'a> {
    /// The prices of a model, and how long its calls take, where a price file or its server knows.
    pub price_of: &'a dyn Fn(&str) -> Option<PriceAndTiming>,
    /// The judges one by one.
    pub judges: &'a [ModelEntry],
    /// The longest answer of a reader.
    pub longest_answer: Tokens,
    /// The longest verdict of a judge.
    pub longest_verdict: Tokens,
    /// How much they may think before.
    pub thinking: ThinkingTokens,
    /// The shortest prompt that the summariser's provider bills as written to its cache; `None`
    /// where writing costs what input costs.
    pub summaries_written_from: Option<Tokens>,
    /// The price of a request of this model in a batch, in thousandths of the same request's price.
    pub batch_of: &'a dyn Fn(&str) -> Option<u32>,
}

/// How many tokens models may think before each answer: billed as output, in addition to the
/// answer's own limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThinkingTokens {
    /// The writer of summaries.
    pub summariser: Tokens,
    /// The reader.
    pub reader: Tokens,
    /// The judges, in the order of `Tariff::judges`.
    pub judges: Vec<Tokens>,
}

/// The requests to live models in the run itself: the money that is really spent. What was asked
/// before in the same words is recorded, and costs nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spend {
    /// Requests of summarisers and readers, and the judges' answers of known verdict.
    pub calls: u64,
    /// Tokens of their prompts.
    pub input_tokens: Tokens,
    /// Of these, read from the provider's prompt cache.
    pub cache_read: Tokens,
    /// Of these, billed as written to it.
    pub cache_written: Tokens,
    /// Tokens of the answers.
    pub output_tokens: ForecastRange<Tokens>,
    /// In money, with the prompt cache that the requests set up, and what judges are asked at most;
    /// `None` where a price is unknown.
    #[serde(serialize_with = "super::in_dollars")]
    pub dollars: Option<ForecastRange<Usd>>,
    /// In money where readers and judges are asked in batches, in which nothing is read from a
    /// cache; `None` where a price is unknown.
    #[serde(serialize_with = "super::in_dollars")]
    pub batch_dollars: Option<ForecastRange<Usd>>,
    /// Milliseconds, one request after the other; `None` where a model's latency is unknown.
    pub milliseconds: Option<ForecastRange<u64>>,
    /// The longest prompt that is longer than all that its server was timed with.
    pub longest_untimed: Option<Tokens>,
    /// Verdicts that live judges may be asked for: rules grade what they can.
    pub judged_at_most: u64,
}

/// The terms of requests to a model.
#[derive(Clone, Copy, Default)]
struct Terms {
    /// Its prices, where they are known.
    price: Option<PerToken>,
    timing: Option<ServerTiming>,
    /// Whether requests may be sent in a batch as well.
    may_wait: bool,
    /// The price there, in thousandths, where it is known.
    batch: Option<u32>,
}

impl Tariff<'_> {
    /// The terms of requests to a model, each by itself: the answer is needed to go on.
    fn terms(&self, model: &str) -> Terms {
        let (price, timing) = (self.price_of)(model).unzip();
        Terms { price, timing: timing.flatten(), ..Terms::default() }
    }

    /// The terms of requests that may be sent in a batch as well.
    fn batched(&self, model: &str) -> Terms {
        Terms { may_wait: true, batch: (self.batch_of)(model), ..self.terms(model) }
    }
}

impl Spend {
    /// Adds up the requests to models in these cells.
    pub(crate) fn of(manifest: &Manifest, cells: &[ForecastCell], inputs: &Tariff<'_>) -> Self {
        let mut spend = Self {
            dollars: Some(ForecastRange::default()),
            batch_dollars: Some(ForecastRange::default()),
            milliseconds: Some(ForecastRange::default()),
            ..Self::default()
        };
        // A deterministic model writes what it writes.
        let writes = match manifest.summariser.kind {
            ModelKind::Live => Some(inputs.thinking.summariser),
            ModelKind::Deterministic | ModelKind::Scripted => None,
        };
        for cell in cells {
            let carry = Carry::of(cell, writes);
            if writes.is_some() {
                let terms = inputs.terms(&manifest.summariser.name);
                spend.summaries(cell, &carry, terms, inputs);
            }
            let reader = manifest.reader.as_ref();
            if let Some(reader) = reader.filter(|reader| reader.kind == ModelKind::Live) {
                spend.answers(cell, &carry, inputs.batched(&reader.name), inputs);
            }
            for (at, judge) in inputs.judges.iter().enumerate() {
                if judge.kind == ModelKind::Live {
                    let thinking = inputs.thinking.judges.get(at).copied().unwrap_or_default();
                    let longest = inputs.longest_verdict;
                    let usual = Tokens(longest.0 / VERDICT_PART);
                    let verdict = ForecastRange::new(Tokens::ZERO, usual, longest + thinking);
                    spend.verdicts(cell, inputs.batched(&judge.name), inputs, verdict);
                }
            }
        }
        spend
    }

    fn summaries(&mut self, cell: &ForecastCell, carry: &Carry, terms: Terms, inputs: &Tariff<'_>) {
        for request in carry.requests.iter().filter(|asked| cell.asks.contains_key(&asked.number)) {
            let sent = cell.sent.get(&request.number).copied().unwrap_or(request.prompt.expected);
            // Each is a prompt of its own, with breakpoints up to its end.
            let prompts = request.prompt.around(sent);
            let usage =
                prompts.zip(request.output, |tokens, output| match inputs.summaries_written_from {
                    Some(minimum) if tokens >= minimum => {
                        Usage { cache_write_5m: tokens, output, ..Usage::default() }
                    }
                    Some(_) | None => Usage::uncached(tokens, output),
                });
            self.add(1, usage, terms);
        }
    }

    fn answers(&mut self, cell: &ForecastCell, carry: &Carry, terms: Terms, inputs: &Tariff<'_>) {
        let paid = cell.paid.iter().flat_map(|(call, prompts)| {
            let tokens = carry.prompts.get(*call).copied().unwrap_or_default();
            prompts.iter().map(move |(prompt, due)| (*prompt, *due, tokens.around(prompt.tokens)))
        });
        let each = cell.floor.iter();
        let floor = each.map(|(prompt, due)| (*prompt, *due, ForecastRange::exact(prompt.tokens)));
        let asked = paid.chain(floor).filter(|(_, due, _)| due.questions > 0);
        for (prompt, due, tokens) in asked {
            let thinking = inputs.thinking.reader.times(due.questions);
            let longest = inputs.longest_answer.times(due.questions);
            let (gold, most) = (due.gold_tokens, longest.max(due.gold_tokens) + thinking);
            let output = ForecastRange::new(Tokens::ZERO, gold, most);
            let all = tokens.zip(output, |tokens, output| {
                let questions = Usage::uncached(due.question_tokens, output);
                of_prompt(&prompt, tokens, due.questions) + questions
            });
            // A prompt that is read for the first question is there for the others: these are calls of another kind.
            let first = tokens.zip(output, |tokens, output| {
                let [asked, output] =
                    [due.question_tokens, output].map(|all| part_of(all, 1, due.questions));
                of_prompt(&prompt, tokens, 1) + Usage::uncached(asked, output)
            });
            self.add(1, first, terms);
            self.add(due.questions - 1, all.zip(first, Sub::sub), terms);
        }
    }

    fn verdicts(
        &mut self,
        cell: &ForecastCell,
        terms: Terms,
        inputs: &Tariff<'_>,
        verdict: ForecastRange<Tokens>,
    ) {
        let paid =
            cell.paid.range(..cell.record.prompt_tokens.len()).flat_map(|(_, prompts)| prompts);
        let reached = paid.map(|(_, due)| (due, false));
        let floor = cell.floor.iter().map(|(_, due)| (due, true));
        for (due, is_floor) in reached.chain(floor).filter(|(due, _)| due.judged > 0) {
            self.judged_at_most += due.judged;
            let mut usage = judged(due, inputs, verdict);
            let mut calls = ForecastRange::new(0, due.different, due.judged);
            // Without the conversation a reader says that it does not know, and rules read that.
            if is_floor {
                (usage.expected, calls.expected) = (Usage::default(), 0);
            }
            self.pay(calls, usage, terms);
        }
        let due: SentinelsDue = cell.sentinels;
        if due.calls > 0 {
            let usage = verdict.map(|output| Usage::uncached(due.tokens, output.times(due.calls)));
            self.add(due.calls, usage, terms);
            // Only a judge that is unfit for the first ones is asked these.
            let narrow = Usage::uncached(due.narrow_tokens, verdict.high.times(due.narrow_calls));
            let nothing = Usage::default();
            let calls = ForecastRange::new(0, 0, due.narrow_calls);
            self.pay(calls, ForecastRange::new(nothing, nothing, narrow), terms);
        }
    }

    /// Adds requests that read `input` and write `output` tokens in all.
    pub fn add_requests(
        &mut self,
        count: u64,
        input: Tokens,
        output: ForecastRange<Tokens>,
        price: Option<PerToken>,
    ) {
        let usage = output.map(|output| Usage::uncached(input, output));
        let terms = Terms { price, ..Terms::default() };
        self.add(count, usage, terms);
    }

    /// Adds requests that use so much in all.
    fn add(&mut self, count: u64, usage: ForecastRange<Usage>, terms: Terms) {
        self.calls += count;
        self.input_tokens += usage.expected.prompt();
        self.cache_read += usage.expected.cache_read;
        self.cache_written += usage.expected.cache_write_5m;
        self.output_tokens += usage.map(|usage| usage.output);
        self.pay(ForecastRange::exact(count), usage, terms);
    }

    /// Adds what these requests cost and how long they take: of each bound so many, which use so much in all.
    fn pay(&mut self, calls: ForecastRange<u64>, usage: ForecastRange<Usage>, terms: Terms) {
        let took = calls.zip(usage, |calls, usage| terms.took(calls, &usage));
        let live = calls.zip(usage, |calls, usage| terms.cost(calls, &usage));
        let batched = calls.zip(usage, |calls, usage| terms.cost_in_batch(calls, &usage));
        let prompt = part_of(usage.expected.prompt(), 1, calls.expected);
        let timed = terms.timing.and_then(|timing| timing.longest);
        if timed.is_some_and(|timed| prompt > timed) {
            self.longest_untimed = self.longest_untimed.max(Some(prompt));
        }
        add_money(&mut self.milliseconds, took.known());
        add_money(&mut self.dollars, live.known());
        add_money(&mut self.batch_dollars, batched.known());
    }
}

impl Terms {
    /// Milliseconds that these calls take, one after the other.
    fn took(&self, calls: u64, usage: &Usage) -> Option<u64> {
        Some(whole(self.timing?.milliseconds(calls, usage).round()))
    }

    fn cost(&self, calls: u64, usage: &Usage) -> Option<Usd> {
        self.price?.cost_of_calls(usage, calls)
    }

    /// Nothing is read from a cache in a batch.
    fn cost_in_batch(&self, calls: u64, usage: &Usage) -> Option<Usd> {
        if !self.may_wait {
            return self.cost(calls, usage);
        }
        let cost = self.cost(calls, &Usage::uncached(usage.prompt(), usage.output))?;
        Some(Usd(cost.0.saturating_mul(u64::from(self.batch?)) / 1_000))
    }
}

/// The usage of `questions` questions to a prompt of `tokens`, which is near the one that is due: the first question
/// alone, the others once it is cached.
fn of_prompt(prompt: &PromptDue, tokens: Tokens, questions: u64) -> Usage {
    let [read, again, written] = [prompt.read, prompt.read_again, prompt.written]
        .map(|cached| part_of(cached, tokens.0, prompt.tokens.0));
    let read = read + again.times(questions.saturating_sub(1));
    Usage {
        input_uncached: tokens.times(questions) - read - written,
        cache_read: read,
        cache_write_5m: written,
        ..Usage::default()
    }
}

/// Tokens times `part / whole`.
fn part_of(tokens: Tokens, part: u64, whole: u64) -> Tokens {
    let part = u128::from(tokens.0) * u128::from(part) / u128::from(whole.max(1));
    Tokens(u64::try_from(part).unwrap_or(u64::MAX))
}

/// The usage of the requests to one judge at one call: none at the least, where rules grade all answers. Expected is
/// one answer as long as the right one for each item that rules may not grade.
fn judged(
    due: &ProbesDue,
    inputs: &Tariff<'_>,
    verdict: ForecastRange<Tokens>,
) -> ForecastRange<Usage> {
    let longest = inputs.longest_answer.times(due.judged);
    let shown = due.judge_tokens + due.judged_gold;
    let usual = Tokens(shown.times(due.different).0 / due.judged.max(1));
    let most = due.judge_tokens + longest.max(due.judged_gold);
    let input = ForecastRange::new(Tokens::ZERO, usual, most);
    let mut output = verdict.map(|tokens| tokens.times(due.judged));
    output.expected = verdict.expected.times(due.different);
    input.zip(output, Usage::uncached)
}
