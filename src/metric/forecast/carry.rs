//! Carry: how the length of summaries changes the prompts after them.

use std::collections::BTreeMap;

use super::ForecastRange;
use crate::metric::calls::is_on_the_bill;
use crate::record::ForecastCell;
use crate::record::words::Purpose;
use crate::units::Tokens;

/// One of a strategy's own requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StrategyRequest {
    /// Its number among the calls of its cell.
    pub(super) number: usize,
    /// The length of its prompt.
    pub(super) prompt: ForecastRange<Tokens>,
    /// The length of its answer, with what a live model thinks before: that is billed as output,
    /// and is in no later prompt.
    pub(super) output: ForecastRange<Tokens>,
}

/// The prompts of a cell, with summaries of another length in them: the least where a live model writes nothing, and
/// the most where it writes all that it may.
///
/// A summary is in the prompts from the call it was written for up to the next one that a summary
/// is written for, which reads it and takes it up. No prompt grows beyond the window: there a
/// strategy would have compacted again, sooner; how often is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Carry {
    /// The agent's prompts, by call.
    pub(super) prompts: Vec<ForecastRange<Tokens>>,
    /// The strategy's own requests, in order.
    pub(super) requests: Vec<StrategyRequest>,
}

impl Carry {
    /// The carry of this cell. `writes` says how much a live summariser may think before it writes; a
    /// deterministic one writes what it writes, and nothing changes.
    pub(super) fn of(cell: &ForecastCell, writes: Option<Tokens>) -> Self {
        let record = &cell.record;
        let asks = cell.asks.iter().filter(|_| writes.is_some());
        let mut written: BTreeMap<usize, ForecastRange<Tokens>> = BTreeMap::new();
        for (number, most) in asks {
            let Some(asked) = record.model_calls.get(*number) else {
                continue;
            };
            let summary = matches!(asked.purpose, Purpose::Compaction | Purpose::Recovery);
            if summary && asked.failure.is_none() {
                let output = asked.usage.output;
                *written.entry(asked.call).or_default() +=
                    ForecastRange::new(Tokens::ZERO, output, output.max(*most));
            }
        }
        let limit = record.window.map_or(Tokens(u64::MAX), |window| window.tokens);
        let with =
            |last: Option<(&usize, &ForecastRange<Tokens>)>, messages: Tokens, prompt: Tokens| {
                let summary = last.map_or_else(ForecastRange::default, |(_, summary)| *summary);
                let (less, more) = (summary.expected.min(messages), summary.more());
                ForecastRange::new(prompt - less, prompt, prompt + more.min(limit - prompt))
            };
        let prompts = record.prompt_tokens.iter().enumerate().map(|(call, prompt)| {
            let messages = *prompt - record.fixed_tokens;
            with(written.range(..=call).next_back(), messages, *prompt)
        });
        let each = record.model_calls.iter().enumerate();
        let requests =
            each.filter(|(_, asked)| is_on_the_bill(asked.purpose)).map(|(number, asked)| {
                let (output, prompt) = (asked.usage.output, asked.usage.prompt());
                StrategyRequest {
                    number,
                    prompt: with(written.range(..asked.call).next_back(), prompt, prompt),
                    output: match writes.zip(cell.asks.get(&number)) {
                        Some((thinking, most)) => {
                            ForecastRange::new(Tokens::ZERO, output, output.max(*most) + thinking)
                        }
                        None => ForecastRange::exact(output),
                    },
                }
            });
        Self { prompts: prompts.collect(), requests: requests.collect() }
    }
}
