//! The bill of a session, call by call: as it was recorded, else as its prompts would be billed; and what broke the
//! prompt cache.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::CellRecord;
use crate::record::words::PerToken;
use crate::runner::PlannedSession;
use crate::session::Session;
use crate::units::{Tokens, Usage, Usd};

/// A call that reads less than so many percent of what the call before had sent found the cache broken.
const LEAST_READ: u64 = 90;

/// Fewer tokens than the shortest prefix that a provider keeps are no break.
const LEAST_BROKEN: Tokens = Tokens(1_024);

/// Why cached tokens were not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakCause {
    /// A compaction changed the prompt.
    Compaction,
    /// More time went by than the cache keeps a prompt.
    Idle,
    /// Another model was asked.
    Model,
    /// The prompt shrank, and no compaction is recorded.
    Edit,
    /// The recording shows no cause: tools or system prompt changed, or the provider dropped it.
    Unseen,
}

impl BreakCause {
    /// Its words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::Idle => "idle too long",
            Self::Model => "another model",
            Self::Edit => "prompt edited",
            Self::Unseen => "tools, system prompt or provider",
        }
    }
}

/// Breaks of the cache for one cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Breaks {
    /// How many.
    pub calls: usize,
    /// Tokens that the call before had sent and that were billed again.
    pub tokens: Tokens,
    /// Their cost above that of a read; `None` where a price is not known.
    pub usd: Option<Usd>,
    /// The dearest of them, by its call, and its tokens.
    pub largest: (usize, Tokens),
}

/// The calls of a session with their cost.
pub(super) struct Bill<'a> {
    planned: &'a PlannedSession<'a>,
    session: &'a Session,
    calls: Vec<Usage>,
    billed: usize,
    /// Seconds that the cache keeps a prompt.
    ttl: Option<u64>,
}

impl<'a> Bill<'a> {
    pub(super) fn of(planned: &'a PlannedSession<'a>, record: &CellRecord) -> Self {
        let session = &**planned.prepared.session();
        let cache = record.prompt_cache.first();
        let mut billed = 0;
        let mut calls = Vec::with_capacity(session.calls().len());
        for (call, answer) in session.calls().iter().enumerate() {
            let usage = session.message(*answer).details.usage;
            let usage = usage.filter(|usage| usage.prompt() > Tokens::ZERO);
            billed += usize::from(usage.is_some());
            let prompt = record.prompt_tokens.get(call).copied().unwrap_or_default();
            let simulated = cache.map(|cache| cache.of_call(call, prompt));
            calls.push(usage.or(simulated).unwrap_or_default());
        }
        Self {
            planned,
            session,
            calls,
            billed,
            ttl: cache.and_then(|cache| cache.ttl_seconds),
        }
    }

    pub(super) fn billed_calls(&self) -> usize {
        self.billed
    }

    pub(super) fn call(&self, call: usize) -> Usage {
        self.calls.get(call).copied().unwrap_or_default()
    }

    pub(super) fn total(&self) -> Usage {
        self.calls.iter().copied().sum()
    }

    /// The cost of all calls, each at the prices of its model.
    pub(super) fn usd(&self) -> Option<Usd> {
        let costs = self.calls.iter().enumerate();
        costs
            .map(|(call, usage)| self.prices(call)?.cost(usage))
            .sum()
    }

    /// The cost of this usage at the prices of the session's model.
    pub(super) fn price(&self, usage: &Usage) -> Option<Usd> {
        self.planned.entry.price.as_ref()?.per_token.cost(usage)
    }

    fn prices(&self, call: usize) -> Option<&PerToken> {
        match self.model(call) {
            Some(other) => self
                .planned
                .prices
                .of(other)
                .map(|(_, price)| &price.per_token),
            None => self
                .planned
                .entry
                .price
                .as_ref()
                .map(|price| &price.per_token),
        }
    }

    /// The model of a call, where it is another than the session's.
    fn model(&self, call: usize) -> Option<&str> {
        self.session
            .message(self.session.calls()[call])
            .details
            .model
            .as_deref()
    }

    /// The call with the largest prompt.
    pub(super) fn fullest(&self) -> (usize, Tokens) {
        let prompts = self.calls.iter().map(Usage::prompt).enumerate();
        // Of equals the first.
        let largest = prompts.rev().max_by_key(|(_, prompt)| *prompt);
        largest.unwrap_or_default()
    }

    /// Tokens as new input: written to the cache where calls of this session write to it.
    pub(super) fn as_new(&self, tokens: Tokens) -> Usage {
        let all = self.total();
        let mut usage = Usage::default();
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
    pub(super) fn breaks(&self) -> BTreeMap<BreakCause, Breaks> {
        let mut breaks: BTreeMap<BreakCause, Breaks> = BTreeMap::new();
        let is_shown = self.billed > 0 && self.total().cache_read > Tokens::ZERO;
        for call in 1..self.calls.len() * usize::from(is_shown) {
            let (last, now) = (self.calls[call - 1], self.calls[call]);
            let cause = self.cause(call);
            // What a compaction took out is not sent again, and so not billed again.
            let readable = last.prompt().min(now.prompt());
            let broken = readable - now.cache_read;
            let is_whole =
                now.cache_read.0.saturating_mul(100) >= readable.0.saturating_mul(LEAST_READ);
            if broken < LEAST_BROKEN || is_whole {
                continue;
            }
            let read = Usage {
                cache_read: broken,
                ..Usage::default()
            };
            let cost = self.price(&self.as_new(broken)).zip(self.price(&read));
            let cost = cost.map(|(anew, read)| Usd(anew.0.saturating_sub(read.0)));
            let known = breaks.entry(cause).or_insert(Breaks {
                usd: Some(Usd(0)),
                ..Breaks::default()
            });
            known.calls += 1;
            known.tokens += broken;
            known.usd = known
                .usd
                .zip(cost)
                .map(|(sum, more)| Usd(sum.0.saturating_add(more.0)));
            if broken > known.largest.1 {
                known.largest = (call, broken);
            }
        }
        breaks
    }

    fn cause(&self, call: usize) -> BreakCause {
        let (last, now) = (self.session.calls()[call - 1], self.session.calls()[call]);
        let compactions = self.session.compactions();
        let mut between = compactions
            .iter()
            .filter(|event| last < event.at && event.at <= now);
        let drops = &self.planned.entry.sizes.drops;
        if between.next().is_some() {
            BreakCause::Compaction
        } else if self.model(call) != self.model(call - 1) {
            BreakCause::Model
        } else if self.is_idle(last, now) {
            BreakCause::Idle
        } else if drops.iter().any(|drop| drop.call == call) {
            BreakCause::Edit
        } else {
            BreakCause::Unseen
        }
    }

    /// Whether the next prompt was sent later than the cache keeps the last one.
    fn is_idle(&self, last: usize, now: usize) -> bool {
        let time = |message: usize| self.session.message(message).details.timestamp;
        // A prompt is sent when the newest message before its answer has come.
        let sent = (last + 1..now).rev().find_map(time).or(time(now));
        let Some(((sent, answered), ttl)) = sent.zip(time(last)).zip(self.ttl) else {
            return false;
        };
        sent.0.saturating_sub(answered.0)
            > i64::try_from(ttl.saturating_mul(1_000)).unwrap_or(i64::MAX)
    }
}
