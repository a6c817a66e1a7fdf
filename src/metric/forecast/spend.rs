//! Spend: what live models are asked in the run itself, the money that is really spent.

use std::fmt;

use serde::Serialize;

use super::carry::Change;
use super::{Carry, Span, Writes, on_the_bill, whole};
use crate::model::ModelKind;
use crate::model::price::PerToken;
use crate::record::{Arm, ForecastCell, Manifest, ModelEntry, ProbesDue};
use crate::units::{Tokens, Usage, Usd};

/// What the models of a run cost, and how much they may write.
pub struct Asking<'a> {
    /// The prices of a model, where a price file knows them.
    pub price_of: &'a dyn Fn(&str) -> Option<PerToken>,
    /// The judges one by one.
    pub judges: &'a [ModelEntry],
    /// The longest answer of a reader.
    pub longest_answer: Tokens,
    /// The longest verdict of a judge.
    pub longest_verdict: Tokens,
    /// What they may think before.
    pub thinking: Thinking,
    /// The reader's window, where it is known: of full history no more is sent.
    pub window: Option<Tokens>,
}

/// What models may think before each answer, in tokens: billed as output, beside the answer's own
/// limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thinking {
    /// Who writes summaries.
    pub summariser: Tokens,
    /// Who answers probes.
    pub reader: Tokens,
    /// Who judges, in the order of [`Asking::judges`].
    pub judges: Vec<Tokens>,
}

impl fmt::Debug for Asking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("judges", &self.judges)
            .finish_non_exhaustive()
    }
}

/// What live models will be asked in the run itself: the money that is really spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spend {
    /// Requests of summarisers and readers, and the judges' answers of known verdict.
    pub calls: u64,
    /// Tokens of their prompts.
    pub input_tokens: Tokens,
    /// Tokens of the answers.
    pub output_tokens: Span<Tokens>,
    /// In money, with nothing read from a cache, and what judges are asked at most; nothing where a
    /// price is unknown.
    pub dollars: Option<Span<Usd>>,
    /// Verdicts that live judges may be asked for: rules grade what they can.
    pub judged_at_most: u64,
}

/// Requests that are like one another.
struct Requests {
    count: u64,
    input: Span<Tokens>,
    output: Span<Tokens>,
}

impl Spend {
    pub(super) fn of(manifest: &Manifest, cells: &[ForecastCell], asking: &Asking<'_>) -> Self {
        let mut spend = Self {
            dollars: Some(Span::default()),
            ..Self::default()
        };
        let writes = Writes::of(manifest, &asking.thinking);
        for cell in cells {
            let carry = match writes {
                Writes::Live { .. } => Carry::of(cell),
                Writes::Known => Carry::default(),
            };
            if writes != Writes::Known {
                let price = (asking.price_of)(&manifest.summariser.name);
                spend.summaries(cell, &carry, writes, price);
            }
            if manifest.reader.kind == ModelKind::Live {
                let price = (asking.price_of)(&manifest.reader.name);
                spend.answers(cell, &carry, price, asking);
            }
            for (at, judge) in asking.judges.iter().enumerate() {
                if judge.kind == ModelKind::Live {
                    let price = (asking.price_of)(&judge.name);
                    let thinking = asking.thinking.judges.get(at).copied();
                    let verdict = Span {
                        low: Tokens::ZERO,
                        expected: asking.longest_verdict,
                        high: asking.longest_verdict + thinking.unwrap_or_default(),
                    };
                    spend.verdicts(cell, price, asking, verdict);
                }
            }
        }
        spend
    }

    fn summaries(
        &mut self,
        cell: &ForecastCell,
        carry: &Carry,
        writes: Writes,
        price: Option<PerToken>,
    ) {
        for (number, usage) in on_the_bill(&cell.record) {
            if !cell.asks.contains_key(&number) {
                continue;
            }
            let requests = Requests {
                count: 1,
                input: carry.of_request(number).around(usage.prompt()),
                output: writes.span(cell, number, &usage),
            };
            self.add(&requests, price);
        }
    }

    fn answers(
        &mut self,
        cell: &ForecastCell,
        carry: &Carry,
        price: Option<PerToken>,
        asking: &Asking<'_>,
    ) {
        for (call, due) in &cell.probes {
            let Some(prompt) = cell.record.prompt_tokens.get(*call) else {
                continue;
            };
            let output = Span {
                low: Tokens::ZERO,
                expected: due.gold_tokens,
                high: times(asking.longest_answer, due.questions).max(due.gold_tokens)
                    + times(asking.thinking.reader, due.questions),
            };
            let mut ask = |prompt: Tokens, change: Change| {
                let input = change.around(prompt);
                let input = input.map(|prompt| times(prompt, due.questions) + due.question_tokens);
                let count = due.questions;
                let requests = Requests {
                    count,
                    input,
                    output,
                };
                self.add(&requests, price);
            };
            // Where full history does not fit the reader's window, the evidence is asked of.
            let window = asking.window.filter(|_| cell.record.arm == Arm::Reference);
            let prompt = window.map_or(*prompt, |window| window.min(*prompt));
            ask(prompt, carry.of_prompt(*call));
            // The floor is asked the same of the system prompt alone.
            if cell.record.arm == Arm::Reference {
                ask(cell.record.fixed_tokens, Change::default());
            }
        }
    }

    fn verdicts(
        &mut self,
        cell: &ForecastCell,
        price: Option<PerToken>,
        asking: &Asking<'_>,
        verdict: Span<Tokens>,
    ) {
        let is_reference = cell.record.arm == Arm::Reference;
        // The floor's answers are judged as well.
        let arms = if is_reference { 2 } else { 1 };
        let reached = cell.probes.range(..cell.record.prompt_tokens.len());
        for due in reached.map(|(_, due)| due).filter(|due| due.judged > 0) {
            for _ in 0..arms {
                self.judged_at_most += due.judged;
                self.pay(&judged(due, asking, verdict), price);
            }
        }
        let sentinels = cell.sentinels;
        if sentinels.calls > 0 {
            let requests = Requests {
                count: sentinels.calls,
                input: Span::exact(sentinels.tokens),
                output: verdict.map(|tokens| times(tokens, sentinels.calls)),
            };
            self.add(&requests, price);
        }
    }

    /// Adds requests that read so much and write so much in all.
    pub fn asked(
        &mut self,
        count: u64,
        input: Tokens,
        output: Span<Tokens>,
        price: Option<PerToken>,
    ) {
        let input = Span::exact(input);
        let requests = Requests {
            count,
            input,
            output,
        };
        self.add(&requests, price);
    }

    fn add(&mut self, requests: &Requests, price: Option<PerToken>) {
        self.calls += requests.count;
        self.input_tokens += requests.input.expected;
        self.output_tokens += requests.output;
        self.pay(requests, price);
    }

    fn pay(&mut self, requests: &Requests, price: Option<PerToken>) {
        let Requests { input, output, .. } = requests;
        let cost = |input, output| price?.cost(&Usage::uncached(input, output));
        let cost = whole(Span {
            low: cost(input.low, output.low),
            expected: cost(input.expected, output.expected),
            high: cost(input.high, output.high),
        });
        self.dollars = self.dollars.zip(cost).map(|(sum, more)| sum + more);
    }
}

/// What one judge is shown at one call: nothing at the least, for rules grade what they can; as a
/// rule every answer that they may not, as long as the right one.
fn judged(due: &ProbesDue, asking: &Asking<'_>, verdict: Span<Tokens>) -> Requests {
    let longest = times(asking.longest_answer, due.judged);
    Requests {
        count: due.judged,
        input: Span {
            low: Tokens::ZERO,
            expected: due.judge_tokens + due.judged_gold,
            high: due.judge_tokens + longest.max(due.judged_gold),
        },
        output: verdict.map(|tokens| times(tokens, due.judged)),
    }
}

fn times(tokens: Tokens, count: u64) -> Tokens {
    Tokens(tokens.0.saturating_mul(count))
}
