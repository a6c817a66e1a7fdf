//! Carry: how the length of summaries changes the prompts after them.

use std::collections::BTreeMap;

use super::{Span, Writes, on_the_bill};
use crate::model::Purpose;
use crate::record::ForecastCell;
use crate::units::Tokens;

/// By how much prompts change where a live model writes nothing, or all that it may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

    fn plus(self, other: Self) -> Self {
        Self {
            less: self.less + other.less,
            more: self.more + other.more,
        }
    }
}

/// How summaries of another length change the prompts of a cell.
///
/// A summary stands in the prompts from the call it was written for up to the next one that a
/// summary is written for, which reads it and takes it up. No prompt grows beyond the window: there
/// a strategy would have compacted again, sooner; how often is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Carry {
    /// The agent's prompts, by call.
    prompts: Vec<Change>,
    /// The strategy's own prompts, by the number of the call.
    requests: BTreeMap<usize, Change>,
}

impl Carry {
    /// The carry of this cell: nothing where a deterministic model writes.
    pub(super) fn under(writes: Writes, cell: &ForecastCell) -> Self {
        writes.map(|_| Self::of(cell)).unwrap_or_default()
    }

    /// The carry of this cell where a live model writes the summaries.
    pub fn of(cell: &ForecastCell) -> Self {
        let record = &cell.record;
        let mut written: BTreeMap<usize, Change> = BTreeMap::new();
        for (number, most) in &cell.asks {
            let Some(asked) = record.model_calls.get(*number) else {
                continue;
            };
            let is_summary = matches!(asked.purpose, Purpose::Compaction | Purpose::Recovery);
            if is_summary && asked.failure.is_none() {
                let own = Change {
                    less: asked.usage.output,
                    more: *most - asked.usage.output,
                };
                let parts = written.entry(asked.call).or_default();
                *parts = parts.plus(own);
            }
        }
        let limit = record
            .window
            .map_or(Tokens(u64::MAX), |window| window.tokens);
        let within = |change: &Change, prompt: Tokens| Change {
            less: change.less.min(prompt),
            more: change.more.min(limit - prompt),
        };
        let prompts = record.prompt_tokens.iter().enumerate();
        let prompts = prompts.map(|(call, prompt)| {
            let standing = written.range(..=call).next_back();
            let messages = *prompt - record.fixed_tokens;
            standing.map_or(Change::default(), |(_, change)| Change {
                less: change.less.min(messages),
                ..within(change, *prompt)
            })
        });
        let requests = on_the_bill(record).filter_map(|(number, usage)| {
            let asked = record.model_calls.get(number)?;
            let (_, change) = written.range(..asked.call).next_back()?;
            Some((number, within(change, usage.prompt())))
        });
        Self {
            prompts: prompts.collect(),
            requests: requests.collect(),
        }
    }

    /// All prompts together.
    pub fn total(&self) -> Change {
        let all = self.prompts.iter().chain(self.requests.values());
        all.copied().fold(Change::default(), Change::plus)
    }

    /// The agent's prompt at a call.
    pub fn of_prompt(&self, call: usize) -> Change {
        self.prompts.get(call).copied().unwrap_or_default()
    }

    /// The strategy's request of this number.
    pub fn of_request(&self, number: usize) -> Change {
        self.requests.get(&number).copied().unwrap_or_default()
    }
}
