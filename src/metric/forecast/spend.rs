//! Spend: the requests to live models in the run itself, which cost real money.

use serde::Serialize;

use super::carry::Change;
use super::{Carry, Span, Writes, add_money, on_the_bill, written};
use crate::model::ModelKind;
use crate::model::price::PerToken;
use crate::record::{Arm, ForecastCell, Manifest, ModelEntry, ProbesDue, PromptDue};
use crate::units::{Tokens, Usage, Usd};

/// A verdict takes this part of the room that it is given, as a rule.
const VERDICT_PART: u64 = 5;

/// The prices of the models of a run, and how much they may write.
pub(crate) struct Asking<'a> {
    /// The prices of a model, where a price file knows them.
    pub price_of: &'a dyn Fn(&str) -> Option<PerToken>,
    /// The judges one by one.
    pub judges: &'a [ModelEntry],
    /// The longest answer of a reader.
    pub longest_answer: Tokens,
    /// The longest verdict of a judge.
    pub longest_verdict: Tokens,
    /// How much they may think before.
    pub thinking: Thinking,
    /// The reader's window, where it is known: of full history no more is sent.
    pub window: Option<Tokens>,
    /// The shortest prompt that the summariser's provider bills as written to its cache; nothing where
    /// writing costs what input costs.
    pub summaries_written_from: Option<Tokens>,
    /// The price of a request of this model in a batch, in thousandths of the same request's price.
    pub batch_of: &'a dyn Fn(&str) -> Option<u32>,
}

/// How many tokens models may think before each answer: billed as output, beside the answer's own
/// limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thinking {
    /// The writer of summaries.
    pub summariser: Tokens,
    /// The reader.
    pub reader: Tokens,
    /// The judges, in the order of `Asking::judges`.
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
    pub output_tokens: Span<Tokens>,
    /// In money, with the prompt cache that the requests set up, and what judges are asked at most;
    /// nothing where a price is unknown.
    pub dollars: Option<Span<Usd>>,
    /// In money where readers and judges are asked in batches, in which nothing is read from a cache;
    /// nothing where a price is unknown.
    pub batch_dollars: Option<Span<Usd>>,
    /// Verdicts that live judges may be asked for: rules grade what they can.
    pub judged_at_most: u64,
}

/// Requests that are like one another.
struct Requests {
    count: u64,
    /// Their prompts, by class.
    input: Span<Usage>,
    output: Span<Tokens>,
}

/// The terms of requests to a model.
#[derive(Clone, Copy)]
struct Terms {
    /// Its prices, where they are known.
    price: Option<PerToken>,
    way: Way,
}

impl Asking<'_> {
    /// The terms of requests that may be sent in a batch as well.
    fn terms(&self, model: &str) -> Terms {
        Terms {
            price: (self.price_of)(model),
            way: Way::Batch((self.batch_of)(model)),
        }
    }
}

/// How requests may be sent.
#[derive(Clone, Copy)]
enum Way {
    /// Each by itself: the answer is needed to go on.
    Live,
    /// In a batch as well, at so many thousandths of the price, where that is known.
    Batch(Option<u32>),
}

impl Spend {
    /// Adds up the requests to models in these cells.
    pub(crate) fn of(manifest: &Manifest, cells: &[ForecastCell], asking: &Asking<'_>) -> Self {
        let mut spend = Self {
            dollars: Some(Span::default()),
            batch_dollars: Some(Span::default()),
            ..Self::default()
        };
        let writes = super::writes(manifest, &asking.thinking);
        for cell in cells {
            let carry = Carry::under(writes, cell);
            if writes.is_some() {
                spend.summaries(cell, &carry, writes, &manifest.summariser.name, asking);
            }
            if manifest.reader.kind == ModelKind::Live {
                spend.answers(cell, &carry, asking.terms(&manifest.reader.name), asking);
            }
            for (at, judge) in asking.judges.iter().enumerate() {
                if judge.kind == ModelKind::Live {
                    let thinking = asking.thinking.judges.get(at).copied();
                    let verdict = Span {
                        low: Tokens::ZERO,
                        expected: Tokens(asking.longest_verdict.0 / VERDICT_PART),
                        high: asking.longest_verdict + thinking.unwrap_or_default(),
                    };
                    spend.verdicts(cell, asking.terms(&judge.name), asking, verdict);
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
        summariser: &str,
        asking: &Asking<'_>,
    ) {
        let terms = Terms {
            price: (asking.price_of)(summariser),
            way: Way::Live,
        };
        for (number, usage) in on_the_bill(&cell.record) {
            if !cell.asks.contains_key(&number) {
                continue;
            }
            let sent = cell.sent.get(&number).copied();
            let sent = sent.unwrap_or_else(|| usage.prompt());
            // Each is a prompt of its own, with breakpoints up to its end.
            let prompt = |tokens: Tokens| match asking.summaries_written_from {
                Some(minimum) if tokens >= minimum => Usage {
                    cache_write_5m: tokens,
                    ..Usage::default()
                },
                Some(_) | None => Usage::uncached(tokens, Tokens::ZERO),
            };
            let requests = Requests {
                count: 1,
                input: carry.of_request(number).around(sent).map(prompt),
                output: written(writes, cell, number, &usage),
            };
            self.add(&requests, terms);
        }
    }

    fn answers(&mut self, cell: &ForecastCell, carry: &Carry, terms: Terms, asking: &Asking<'_>) {
        let mut ask = |prompt: &PromptDue, due: &ProbesDue, change: Change| {
            if due.questions == 0 {
                return;
            }
            let output = Span {
                low: Tokens::ZERO,
                expected: due.gold_tokens,
                high: times(asking.longest_answer, due.questions).max(due.gold_tokens)
                    + times(asking.thinking.reader, due.questions),
            };
            let questions = Usage::uncached(due.question_tokens, Tokens::ZERO);
            let input = change.around(prompt.tokens);
            let requests = Requests {
                count: due.questions,
                input: input.map(|tokens| of_prompt(prompt, tokens, due.questions) + questions),
                output,
            };
            self.add(&requests, terms);
        };
        for (call, due) in &cell.paid {
            let Some(prompt) = cell.prompts.get(call) else {
                continue;
            };
            // Where full history does not fit the reader's window, the evidence is asked of: each item
            // has a prompt of its own.
            let window = asking.window.filter(|_| cell.record.arm == Arm::Reference);
            let prompt = match window {
                Some(window) if window < prompt.tokens => PromptDue {
                    id: prompt.id,
                    tokens: window,
                    ..PromptDue::default()
                },
                Some(_) | None => *prompt,
            };
            ask(&prompt, due, carry.of_prompt(*call));
        }
        if let Some((prompt, due)) = &cell.floor {
            ask(prompt, due, Change::default());
        }
    }

    fn verdicts(
        &mut self,
        cell: &ForecastCell,
        terms: Terms,
        asking: &Asking<'_>,
        verdict: Span<Tokens>,
    ) {
        let reached = cell.paid.range(..cell.record.prompt_tokens.len());
        for due in reached.map(|(_, due)| due).filter(|due| due.judged > 0) {
            self.judged_at_most += due.judged;
            self.pay(&judged(due, asking, verdict), terms);
        }
        // Without the conversation a reader says that it does not know, and rules read that.
        if let Some((_, due)) = cell.floor.as_ref().filter(|(_, due)| due.judged > 0) {
            self.judged_at_most += due.judged;
            let mut requests = judged(due, asking, verdict);
            requests.input.expected = Usage::default();
            requests.output.expected = Tokens::ZERO;
            self.pay(&requests, terms);
        }
        let sentinels = cell.sentinels;
        if sentinels.calls > 0 {
            let requests = Requests {
                count: sentinels.calls,
                input: Span::exact(Usage::uncached(sentinels.tokens, Tokens::ZERO)),
                output: verdict.map(|tokens| times(tokens, sentinels.calls)),
            };
            self.add(&requests, terms);
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
        let requests = Requests {
            count,
            input: Span::exact(Usage::uncached(input, Tokens::ZERO)),
            output,
        };
        let way = Way::Live;
        self.add(&requests, Terms { price, way });
    }

    fn add(&mut self, requests: &Requests, terms: Terms) {
        let input = requests.input.expected;
        self.calls += requests.count;
        self.input_tokens += input.prompt();
        self.cache_read += input.cache_read;
        self.cache_written += input.cache_write_5m;
        self.output_tokens += requests.output;
        self.pay(requests, terms);
    }

    fn pay(&mut self, requests: &Requests, Terms { price, way }: Terms) {
        let live = |input: Usage, output| price?.cost(&Usage { output, ..input });
        let batched = |input: Usage, output| match way {
            Way::Live => live(input, output),
            Way::Batch(share) => {
                let cost = live(Usage::uncached(input.prompt(), Tokens::ZERO), output)?;
                Some(Usd(cost.0.saturating_mul(u64::from(share?)) / 1_000))
            }
        };
        let Requests { input, output, .. } = requests;
        add_money(&mut self.dollars, input.zip(*output, live).known());
        add_money(&mut self.batch_dollars, input.zip(*output, batched).known());
    }
}

/// The usage of so many questions to a prompt of `tokens`, which is near the one that is due:
/// the first question alone, the others once it is cached.
fn of_prompt(prompt: &PromptDue, tokens: Tokens, questions: u64) -> Usage {
    let part = |of: Tokens| {
        let part = u128::from(of.0) * u128::from(tokens.0) / u128::from(prompt.tokens.0.max(1));
        Tokens(u64::try_from(part).unwrap_or(u64::MAX))
    };
    let read = part(prompt.read) + times(part(prompt.read_again), questions.saturating_sub(1));
    let written = part(prompt.written);
    Usage {
        input_uncached: times(tokens, questions) - read - written,
        cache_read: read,
        cache_write_5m: written,
        ..Usage::default()
    }
}

/// The requests to one judge at one call: none at the least, where rules grade all answers. Expected is
/// one answer as long as the right one for each item that rules may not grade.
fn judged(due: &ProbesDue, asking: &Asking<'_>, verdict: Span<Tokens>) -> Requests {
    let longest = times(asking.longest_answer, due.judged);
    let shown = due.judge_tokens + due.judged_gold;
    let input = Span {
        low: Tokens::ZERO,
        expected: Tokens(times(shown, due.different).0 / due.judged.max(1)),
        high: due.judge_tokens + longest.max(due.judged_gold),
    };
    Requests {
        count: due.judged,
        input: input.map(|tokens| Usage::uncached(tokens, Tokens::ZERO)),
        output: Span {
            expected: times(verdict.expected, due.different),
            ..verdict.map(|tokens| times(tokens, due.judged))
        },
    }
}

fn times(tokens: Tokens, count: u64) -> Tokens {
    Tokens(tokens.0.saturating_mul(count))
}
