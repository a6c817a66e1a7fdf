//! Carry: how the length of summaries changes the prompts after them.

use std::collections::BTreeMap;

use derive_more::{Add, AddAssign, Sum};

use super::Span;
use crate::metric::calls::is_on_the_bill;
use crate::record::ForecastCell;
use crate::record::words::Purpose;
use crate::units::{Tokens, Usage};

/// By how much prompts change where a live model writes nothing, or all that it may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Add, AddAssign, Sum)]
pub struct Change {
    /// Less, where it writes nothing.
    pub less: Tokens,
    /// More, where it writes all that it may.
    pub more: Tokens,
}

impl Change {
    /// The span around what is expected.
    pub(super) fn around(self, expected: Tokens) -> Span<Tokens> {
        Span {
            low: expected - self.less,
            expected,
            high: expected + self.more,
        }
    }
}

/// One of a strategy's own requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StrategyRequest {
    /// Its number among the calls of its cell.
    pub(super) number: usize,
    /// The expected cost.
    pub(super) usage: Usage,
    /// By how much its prompt changes.
    pub(super) change: Change,
    /// The length of its answer, with what a live model thinks before: that is billed as output,
    /// and is in no later prompt.
    pub(super) output: Span<Tokens>,
}

/// How summaries of another length change the prompts of a cell.
///
/// A summary is in the prompts from the call it was written for up to the next one that a summary
/// is written for, which reads it and takes it up. No prompt grows beyond the window: there a
/// strategy would have compacted again, sooner; how often is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carry {
    /// The agent's prompts, by call.
    pub(super) prompts: Vec<Change>,
    /// The strategy's own requests, in order.
    pub(super) requests: Vec<StrategyRequest>,
}

impl Carry {
    /// The carry of this cell. `writes` says how much a live summariser may think before it writes; a
    /// deterministic one writes what it writes, and nothing changes.
    pub fn of(cell: &ForecastCell, writes: Option<Tokens>) -> Self {
        let record = &cell.record;
        let asks = cell.asks.iter().filter(|_| writes.is_some());
        let mut written: BTreeMap<usize, Change> = BTreeMap::new();
        for (number, most) in asks {
            let Some(asked) = record.model_calls.get(*number) else {
                continue;
            };
            let is_summary = matches!(asked.purpose, Purpose::Compaction | Purpose::Recovery);
            if is_summary && asked.failure.is_none() {
                let own = Change {
                    less: asked.usage.output,
                    more: *most - asked.usage.output,
                };
                *written.entry(asked.call).or_default() += own;
            }
        }
        let limit = record
            .window
            .map_or(Tokens(u64::MAX), |window| window.tokens);
        let within = |change: Option<(&usize, &Change)>, most_less: Tokens, prompt: Tokens| {
            let change = change.map_or_else(Change::default, |(_, change)| *change);
            Change {
                less: change.less.min(most_less),
                more: change.more.min(limit - prompt),
            }
        };
        let prompts = record.prompt_tokens.iter().enumerate();
        let prompts = prompts.map(|(call, prompt)| {
            let messages = *prompt - record.fixed_tokens;
            within(written.range(..=call).next_back(), messages, *prompt)
        });
        let requests = record.model_calls.iter().enumerate();
        let requests = requests.filter(|(_, asked)| is_on_the_bill(asked.purpose));
        let requests = requests.map(|(number, asked)| {
            let (usage, prompt) = (asked.usage, asked.usage.prompt());
            StrategyRequest {
                number,
                usage,
                change: within(written.range(..asked.call).next_back(), prompt, prompt),
                output: match writes.zip(cell.asks.get(&number)) {
                    Some((thinking, most)) => Span {
                        low: Tokens::ZERO,
                        expected: usage.output,
                        high: (*most).max(usage.output) + thinking,
                    },
                    None => Span::exact(usage.output),
                },
            }
        });
        Self {
            prompts: prompts.collect(),
            requests: requests.collect(),
        }
    }

    /// All prompts together.
    pub fn total(&self) -> Change {
        let requests = self.requests.iter().map(|request| request.change);
        self.prompts.iter().copied().chain(requests).sum()
    }
}
