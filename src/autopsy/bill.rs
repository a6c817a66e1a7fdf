//! The bill of a session, call by call: as it was recorded, else as its prompts would be billed; and what broke the
//! prompt cache.

use std::collections::BTreeMap;

use super::Breaks;
use crate::record::CellRecord;
use crate::record::words::{LongPrompts, PerToken};
use crate::runner::PlannedSession;
use crate::session::Session;
use crate::units::{Tokens, Usage, Usd};

/// A call that reads less than so many percent of what the call before had sent found the cache broken.
const LEAST_READ: u64 = 90;

/// Fewer tokens than the shortest prefix that a provider keeps are no break.
const LEAST_BROKEN: Tokens = Tokens(1_024);

/// The calls of a session with their cost.
pub(super) struct Bill<'a> {
    planned: &'a PlannedSession<'a>,
    session: &'a Session,
    calls: Vec<Usage>,
    /// Calls with a recorded bill.
    pub(super) billed: usize,
    /// Calls whose bill has fewer tokens of output than their answer: it was written before the answer was whole.
    pub(super) partial: usize,
    /// Seconds that the cache keeps a prompt.
    ttl: Option<u64>,
}

impl<'a> Bill<'a> {
    pub(super) fn of(planned: &'a PlannedSession<'a>, record: &CellRecord) -> Self {
        let session = &**planned.prepared.session();
        let cache = record.prompt_cache.first().cloned().unwrap_or_default();
        let (mut billed, mut partial, mut calls) = (0, 0, Vec::new());
        for (call, answer) in session.calls().iter().enumerate() {
            let usage = session.message(*answer).details.usage;
            let usage = usage.filter(|usage| usage.prompt() > Tokens::ZERO);
            billed += usize::from(usage.is_some());
            let prompt = record.prompt_tokens.get(call).copied().unwrap_or_default();
            let mut usage = usage.unwrap_or_else(|| cache.of_call(call, prompt));
            let output = planned.prepared.answered(call, *answer);
            // Counted words and billed ones differ a little wherever the output is whole.
            partial += usize::from(usage.output > Tokens::ZERO && output > usage.output.times(2));
            usage.output = output;
            calls.push(usage);
        }
        let ttl = cache.ttl_seconds;
        Self {
            planned,
            session,
            calls,
            billed,
            partial,
            ttl,
        }
    }

    pub(super) fn call(&self, call: usize) -> Usage {
        self.calls.get(call).copied().unwrap_or_default()
    }

    pub(super) fn total(&self) -> Usage {
        self.calls.iter().copied().sum()
    }

    /// The cost of this part of the calls whose price is known, each at the prices of its model; and how many have none.
    pub(super) fn usd(&self, part: impl Fn(Usage) -> Usage) -> (Option<f64>, usize) {
        let calls = self.calls.iter().enumerate();
        let costs = calls.filter_map(|(call, usage)| {
            let prices = match self.model(call) {
                Some(other) => &self.planned.prices.of(other)?.1.per_token,
                None => self.own_prices()?,
            };
            // Whether a prompt is a long one, all of its tokens decide.
            let usage = LongPrompts::at_usual_price(prices.long_prompts, *usage, 1);
            prices.cost(&part(usage))
        });
        let costs: Vec<Usd> = costs.collect();
        let unpriced = self.calls.len() - costs.len();
        let sum: Usd = costs.into_iter().sum();
        ((sum > Usd::default()).then(|| sum.in_dollars()), unpriced)
    }

    /// The prices of the session's own model: those of its entry may be a mean over several.
    fn own_prices(&self) -> Option<&PerToken> {
        let entry = self.planned.entry.price.as_ref()?;
        Some(&self.planned.prices.of(&entry.model)?.1.per_token)
    }

    /// The cost of this usage at the prices of the session's model.
    pub(super) fn price(&self, usage: &Usage) -> Option<f64> {
        self.own_prices()?.cost_of_call(usage).map(Usd::in_dollars)
    }

    /// The cost of a part of this call, likewise: whether its prompt is a long one, all of its tokens decide.
    pub(super) fn price_in(&self, call: usize, part: &Usage) -> Option<f64> {
        let prices = self.own_prices()?;
        let prompt = self.call(call).prompt();
        let rule = prices.long_prompts.filter(|rule| prompt > rule.over);
        let rule = rule.map(|rule| LongPrompts {
            over: Tokens::ZERO,
            ..rule
        });
        let part = LongPrompts::at_usual_price(rule, *part, 1);
        prices.cost(&part).map(Usd::in_dollars)
    }

    /// The price of tokens of this call as new input, above that of reading them from the cache.
    pub(super) fn above_read(&self, call: usize, tokens: Tokens) -> Option<f64> {
        let new = self.as_new(tokens);
        let read = Usage {
            cache_read: tokens,
            ..Usage::default()
        };
        Some(self.price_in(call, &new)? - self.price_in(call, &read)?)
    }

    /// The model of a call, where it is another than the session's.
    fn model(&self, call: usize) -> Option<&str> {
        let answer = self.session.message(self.session.calls()[call]);
        answer.details.model.as_deref()
    }

    /// The first call with the largest prompt.
    pub(super) fn fullest(&self) -> (usize, Tokens) {
        let prompts = self.calls.iter().map(Usage::prompt).enumerate();
        let fullest = prompts.rev().max_by_key(|(_, prompt)| *prompt);
        fullest.unwrap_or_default()
    }

    /// Tokens as new input: written to the cache where calls of this session write to it.
    pub(super) fn as_new(&self, tokens: Tokens) -> Usage {
        let (all, mut usage) = (self.total(), Usage::default());
        if all.cache_write_1h > all.cache_write_5m {
            usage.cache_write_1h = tokens;
        } else if all.cache_write_5m > Tokens::ZERO {
            usage.cache_write_5m = tokens;
        } else {
            usage.input_uncached = tokens;
        }
        usage
    }

    /// The breaks by cause, of calls that bill what they read from the cache.
    pub(super) fn breaks(&self) -> BTreeMap<&'static str, Breaks> {
        let mut breaks: BTreeMap<&str, Breaks> = BTreeMap::new();
        let is_shown = self.billed > 0 && self.total().cache_read > Tokens::ZERO;
        for call in 1..self.calls.len() * usize::from(is_shown) {
            let (last, now) = (self.calls[call - 1], self.calls[call]);
            // Messages that a compaction took out are not sent again, and so not billed again.
            let readable = last.prompt().min(now.prompt());
            let broken = readable - now.cache_read;
            let least = readable.0.saturating_mul(LEAST_READ);
            if broken >= LEAST_BROKEN && now.cache_read.0.saturating_mul(100) < least {
                let known = breaks.entry(self.cause(call)).or_default();
                known.calls += 1;
                known.tokens += broken;
                known.usd += self.above_read(call, broken).unwrap_or_default();
                known.largest = known.largest.max((broken, call));
            }
        }
        breaks
    }

    fn cause(&self, call: usize) -> &'static str {
        let (last, now) = (self.session.calls()[call - 1], self.session.calls()[call]);
        let mut events = self.session.compactions().iter();
        let mut drops = self.planned.entry.sizes.drops.iter();
        if events.any(|event| last < event.at && event.at <= now) {
            "compaction"
        } else if self.model(call) != self.model(call - 1) {
            "another model"
        } else if self.is_idle(last, now) {
            "idle too long"
        } else if drops.any(|drop| drop.call == call) {
            "prompt edited"
        } else {
            "tools, system prompt or provider"
        }
    }

    /// Whether the next prompt was sent later than the cache keeps the last one.
    fn is_idle(&self, last: usize, now: usize) -> bool {
        let time = |message: usize| self.session.message(message).details.timestamp;
        // A prompt is sent when the newest message before its answer has come.
        let sent = (last + 1..now).rev().find_map(time).or(time(now));
        match (sent, time(last), self.ttl) {
            (Some(sent), Some(answered), Some(ttl)) => {
                let gap = sent.0.saturating_sub(answered.0) / 1_000;
                u64::try_from(gap).is_ok_and(|gap| gap > ttl)
            }
            _ => false,
        }
    }
}
