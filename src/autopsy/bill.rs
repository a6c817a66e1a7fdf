//! The bill of a session, call by call: as it was recorded, else as its prompts would be billed; and what broke the
//! prompt cache.

use std::collections::BTreeMap;

use super::{Autopsy, Breaks, CompactionLoss, own_compactions};
use crate::record::{CacheRecord, CellRecord, words::PerToken};
use crate::runner::PlannedSession;
use crate::session::Session;
use crate::units::{Tokens, Usage, Usd};

/// A call that reads less than so many percent of what the call before had sent found the cache broken.
const LEAST_READ: u64 = 90;

/// Fewer tokens than the shortest prefix that a provider keeps are no break.
const LEAST_BROKEN: Tokens = Tokens(1_024);

/// A request, with the prices of its model where they are known.
#[derive(Clone, Copy)]
struct Charge<'a> {
    usage: Usage,
    prices: Option<&'a PerToken>,
}

impl Charge<'_> {
    /// The cost of a part of it.
    fn cost(&self, part: Usage) -> Option<Usd> {
        self.prices?.cost_of_part(&self.usage, part)
    }
}

/// The calls of a session.
pub(super) struct SessionBill<'a> {
    planned: &'a PlannedSession<'a>,
    session: &'a Session,
    cache: CacheRecord,
    calls: Vec<Charge<'a>>,
    /// The tokens of all.
    sum: Usage,
}

impl<'a> SessionBill<'a> {
    /// Enters the bill of a session: where it is not recorded, as this cell was simulated.
    pub(super) fn enter(planned: &'a PlannedSession<'a>, record: &CellRecord, into: &mut Autopsy) {
        let session: &Session = planned.prepared.session();
        let cache = record.prompt_cache.first().cloned().unwrap_or_default();
        let mut bill = Self { planned, session, cache, calls: Vec::new(), sum: Usage::default() };
        let mut others = Vec::new();
        for (call, answer) in session.calls().iter().enumerate() {
            let details = &session.message(*answer).details;
            let billed = details.usage.filter(|usage| usage.prompt() > Tokens::ZERO);
            into.billed_calls += usize::from(billed.is_some());
            let prompt = record.prompt_tokens.get(call).copied().unwrap_or_default();
            let mut usage = billed.unwrap_or_else(|| bill.cache.of_call(call, prompt));
            // More than was billed only where its words are more than twice as many.
            let output = planned.prepared.answered(call, *answer);
            into.partial_outputs += usize::from((Tokens(1)..output).contains(&usage.output));
            usage.output = output;
            bill.sum += usage;
            let model = details.model.as_deref();
            bill.calls.push(bill.priced(model, usage));
            let inner = details.inner_requests.iter();
            others.extend(inner.map(|one| bill.priced(one.model.as_deref().or(model), one.usage)));
        }
        for event in own_compactions(session) {
            let asked = bill.of_call(session.call_after(event.at));
            others.extend(event.usage.map(|usage| Charge { usage, ..asked }));
        }
        let compactions = into.compactions.iter_mut();
        let estimated: Vec<_> = compactions.filter_map(|one| bill.complete(one, record)).collect();
        into.estimated_usd = usd(&estimated, Usage::clone).unwrap_or_default();
        others.extend(estimated.iter().chain(&bill.calls));
        into.usage = others.iter().map(|request| request.usage).sum();
        into.usd = usd(&others, Usage::clone);
        into.cache_usd = [usd(&others, Usage::read), usd(&others, Usage::written)];
        let prices = bill.calls.iter().map(|call| call.cost(call.usage));
        into.unpriced_calls = prices.filter(Option::is_none).count();
        let prompts = bill.calls.iter().map(|call| call.usage.prompt()).enumerate();
        into.fullest = prompts.rev().max_by_key(|(_, prompt)| *prompt).unwrap_or_default();
        if into.billed_calls > 0 && into.usage.cache_read > Tokens::ZERO {
            into.breaks = bill.breaks();
        }
    }

    /// A request of this model, else of the session's.
    fn priced(&self, model: Option<&str>, usage: Usage) -> Charge<'a> {
        let known = model.or(self.session.model()).and_then(|model| self.planned.prices.of(model));
        Charge { usage, prices: known.map(|(_, price)| &price.per_token) }
    }

    /// A call, or an empty one behind the last.
    fn of_call(&self, call: usize) -> Charge<'a> {
        self.calls.get(call).copied().unwrap_or_else(|| self.priced(None, Usage::default()))
    }

    /// Tokens as new input: they are written to the cache where calls of this session write to it.
    fn as_new(&self, tokens: Tokens) -> Usage {
        match [self.sum.cache_write_5m, self.sum.cache_write_1h] {
            [short, long] if long > short => Usage { cache_write_1h: tokens, ..Usage::default() },
            [Tokens::ZERO, _] => Usage::uncached(tokens, Tokens::ZERO),
            _ => Usage { cache_write_5m: tokens, ..Usage::default() },
        }
    }

    /// The price of tokens of this call as new input, above that of reading them from the cache.
    fn above_read(&self, call: usize, tokens: Tokens) -> Option<Usd> {
        let call = self.of_call(call);
        let read = call.cost(Usage { cache_read: tokens, ..Usage::default() })?;
        Some(Usd(call.cost(self.as_new(tokens))?.0.saturating_sub(read.0)))
    }

    /// Adds to a compaction what the recording and its bill say of it; returns the request for its summary if the recording
    /// does not bill it.
    fn complete(&self, compaction: &mut CompactionLoss, record: &CellRecord) -> Option<Charge<'a>> {
        let (call, session) = (compaction.call, self.session);
        let all = own_compactions(session).filter(|event| session.call_after(event.at) == call);
        let events: Vec<_> = all.collect();
        compaction.in_a_row = events.len();
        compaction.trigger = events.last().and_then(|event| event.trigger.clone());
        let billed: Option<Usage> = events.iter().map(|event| event.usage).sum();
        let last = call.checked_sub(1).map(|last| self.of_call(last).usage.total());
        let counted = events.first().and_then(|event| event.pre_tokens);
        compaction.before = counted.or(last).unwrap_or_default();
        let first = self.of_call(call);
        compaction.after = first.usage.prompt();
        // As `run` bills it: the recorded product asks a model for summaries alone.
        let asked = record.model_calls.iter().enumerate().filter(|(_, asked)| asked.call == call);
        let simulated = asked.map(|(number, asked)| self.cache.of_strategy(number, &asked.usage));
        compaction.is_billed = billed.is_some();
        compaction.request = billed.unwrap_or_else(|| simulated.sum());
        let request = Charge { usage: compaction.request, ..first };
        let anew = compaction.after - first.usage.cache_read;
        compaction.tokens = request.usage.total() + anew;
        let usd = request.cost(request.usage).zip(self.above_read(call, anew));
        compaction.usd = usd.map(|(one, more)| (one + more).in_dollars());
        for need in &mut compaction.needed {
            // The call behind the one that fetched it sends it.
            let usd = self.of_call(need.call + 1).cost(self.as_new(need.tokens));
            need.usd = usd.map(Usd::in_dollars);
        }
        (!compaction.is_billed).then_some(request)
    }

    /// The breaks by cause.
    fn breaks(&self) -> BTreeMap<&'static str, Breaks> {
        let mut breaks: BTreeMap<&str, Breaks> = BTreeMap::new();
        for (call, pair) in (1..).zip(self.calls.windows(2)) {
            let [last, now] = [0, 1].map(|at| pair[at].usage);
            // Messages that a compaction took out are not sent again, and so not billed again.
            let readable = last.prompt().min(now.prompt());
            let broken = readable - now.cache_read;
            if broken >= LEAST_BROKEN && now.cache_read.times(100) < readable.times(LEAST_READ) {
                let known = breaks.entry(self.cause(call)).or_default();
                known.calls += 1;
                known.tokens += broken;
                known.usd += self.above_read(call, broken).unwrap_or_default().in_dollars();
                known.largest = known.largest.max((broken, call));
            }
        }
        breaks
    }

    fn cause(&self, call: usize) -> &'static str {
        let messages = self.session.messages();
        let [last, now] = [call - 1, call].map(|call| self.session.calls()[call]);
        let mut events = self.session.compactions().iter();
        let mut drops = self.planned.entry.sizes.drops.iter();
        // A prompt is sent when the newest message before its answer has come.
        let mut later = messages[last + 1..now].iter().rev().chain([&messages[now]]);
        let sent = later.find_map(|message| message.details.timestamp);
        let times = sent.zip(messages[last].details.timestamp);
        let idle = times.map_or(0, |(sent, answered)| sent.0.saturating_sub(answered.0) / 1_000);
        let ttl = self.cache.ttl_seconds.map_or(i64::MAX, u64::cast_signed);
        match () {
            () if events.any(|event| last < event.at && event.at <= now) => "compaction",
            () if messages[last].details.model != messages[now].details.model => "another model",
            () if idle > ttl => "idle too long",
            () if drops.any(|drop| drop.call == call) => "prompt edited",
            () => "tools, system prompt or provider",
        }
    }
}

/// The cost of this part of all requests whose price is known.
fn usd(requests: &[Charge<'_>], part: impl Fn(&Usage) -> Usage) -> Option<f64> {
    let sum: Usd = requests.iter().filter_map(|request| request.cost(part(&request.usage))).sum();
    (sum > Usd::default()).then(|| sum.in_dollars())
}
