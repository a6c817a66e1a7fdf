//! The bill of a session, call by call: as it was recorded, else as its prompts would be billed; and what broke the
//! prompt cache.

use std::collections::BTreeMap;

use super::Breaks;
use crate::record::CellRecord;
use crate::runner::PlannedSession;
use crate::session::Session;
use crate::units::{Timestamp, Tokens, Usage, Usd};

/// A call that reads less than so many percent of what the call before had sent found the cache broken.
const LEAST_READ: u64 = 90;

/// Fewer tokens than the shortest prefix that a provider keeps are no break.
const LEAST_BROKEN: Tokens = Tokens(1_024);

/// The calls of a session with their cost.
pub(super) struct Bill<'a> {
    planned: &'a PlannedSession<'a>,
    session: &'a Session,
    calls: Vec<Usage>,
    /// The requests for summaries, by the first call behind the compaction, and whether they are billed.
    requests: BTreeMap<usize, (Usage, bool)>,
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
        let mut requests: BTreeMap<usize, (Usage, bool)> = BTreeMap::new();
        // As `run` bills them: the recorded product asks a model for summaries alone.
        for (number, asked) in record.model_calls.iter().enumerate() {
            requests.entry(asked.call).or_default().0 += cache.of_strategy(number, &asked.usage);
        }
        for event in session.compactions() {
            let billed = event.usage.map(|usage| (usage, true));
            requests.extend(billed.map(|billed| (session.call_after(event.at), billed)));
        }
        Self {
            planned,
            session,
            calls,
            requests,
            billed,
            partial,
            ttl: cache.ttl_seconds,
        }
    }

    pub(super) fn call(&self, call: usize) -> Usage {
        self.calls.get(call).copied().unwrap_or_default()
    }

    /// The request for the summary of the compaction before a call, and whether it is billed.
    pub(super) fn request(&self, call: usize) -> (Usage, bool) {
        self.requests.get(&call).copied().unwrap_or_default()
    }

    /// The cost of the requests that are not billed.
    pub(super) fn estimated(&self) -> Usd {
        let requests = self.requests.iter();
        let estimated = requests.filter(|(_, (_, is_billed))| !is_billed);
        let costs = estimated.filter_map(|(call, (usage, _))| self.price(*call, usage, *usage));
        costs.sum()
    }

    /// All calls, the requests within them and those for summaries; each with its model.
    fn all(&self) -> impl Iterator<Item = (Option<&str>, Usage)> {
        let answers = self.session.calls().iter().enumerate();
        let inner = answers.flat_map(move |(call, answer)| {
            let inner = self.session.message(*answer).details.inner_requests.iter();
            inner.map(move |asked| (asked.model.as_deref().or(self.named(call)), asked.usage))
        });
        let calls = self.calls.iter().enumerate();
        let requests = self.requests.iter();
        let requests = requests.map(|(call, (usage, _))| (self.named(*call), *usage));
        let calls = calls.map(|(call, usage)| (self.named(call), *usage));
        calls.chain(inner).chain(requests)
    }

    pub(super) fn total(&self) -> Usage {
        self.all().map(|(_, usage)| usage).sum()
    }

    /// The cost of this part of all whose price is known.
    pub(super) fn usd(&self, part: impl Fn(&Usage) -> Usage) -> Option<f64> {
        let costs = self.all();
        let costs = costs.filter_map(|(model, usage)| self.of_model(model, &usage, part(&usage)));
        let sum: Usd = costs.sum();
        (sum > Usd::default()).then(|| sum.in_dollars())
    }

    /// Calls whose price is not known.
    pub(super) fn unpriced(&self) -> usize {
        let calls = self.calls.iter().enumerate();
        let prices = calls.map(|(call, usage)| self.price(call, usage, *usage));
        prices.filter(Option::is_none).count()
    }

    /// The cost of a part of a call at the prices of its model; those of the session's entry may be a mean over several.
    pub(super) fn price(&self, call: usize, whole: &Usage, part: Usage) -> Option<Usd> {
        self.of_model(self.named(call), whole, part)
    }

    fn of_model(&self, model: Option<&str>, whole: &Usage, part: Usage) -> Option<Usd> {
        let (_, price) = self.planned.prices.of(model?)?;
        price.per_token.cost_of_part(whole, part)
    }

    /// The cost of tokens that a call sends as new input.
    pub(super) fn as_new(&self, call: usize, tokens: Tokens) -> Option<Usd> {
        let (all, mut part) = (self.total(), Usage::default());
        // They are written to the cache where calls of this session write to it.
        if all.cache_write_1h > all.cache_write_5m {
            part.cache_write_1h = tokens;
        } else if all.cache_write_5m > Tokens::ZERO {
            part.cache_write_5m = tokens;
        } else {
            part.input_uncached = tokens;
        }
        self.price(call, &self.call(call), part)
    }

    /// The price of tokens of this call as new input, above that of reading them from the cache.
    pub(super) fn above_read(&self, call: usize, tokens: Tokens) -> Option<Usd> {
        let read = Usage {
            cache_read: tokens,
            ..Usage::default()
        };
        let read = self.price(call, &self.call(call), read)?;
        Some(Usd(self.as_new(call, tokens)?.0.saturating_sub(read.0)))
    }

    /// The model of a call; the session's has a name only where prices know it.
    fn named(&self, call: usize) -> Option<&str> {
        let own = self.planned.entry.price.as_ref();
        self.model(call).or(own.map(|price| &*price.model))
    }

    /// The model of a call, where it is another than the session's.
    fn model(&self, call: usize) -> Option<&str> {
        let answer = self.session.message(*self.session.calls().get(call)?);
        answer.details.model.as_deref()
    }

    /// The first call with the largest prompt.
    pub(super) fn fullest(&self) -> (usize, Tokens) {
        let prompts = self.calls.iter().map(Usage::prompt).enumerate();
        let fullest = prompts.rev().max_by_key(|(_, prompt)| *prompt);
        fullest.unwrap_or_default()
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
                let usd = self.above_read(call, broken).unwrap_or_default();
                known.usd += usd.in_dollars();
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
        // A prompt is sent when the newest message before its answer has come.
        let newest = (last + 1..now).rev().find_map(|message| self.time(message));
        let times = newest.or_else(|| self.time(now)).zip(self.time(last));
        let gap = times.map(|(sent, answered)| sent.0.saturating_sub(answered.0) / 1_000);
        let ttl = self.ttl.and_then(|ttl| i64::try_from(ttl).ok());
        gap.zip(ttl).is_some_and(|(gap, ttl)| gap > ttl)
    }

    fn time(&self, message: usize) -> Option<Timestamp> {
        self.session.message(message).details.timestamp
    }
}
