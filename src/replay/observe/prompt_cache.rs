//! Simulates the provider's prompt cache on the prompts of a cell, scheme by scheme.

use std::sync::OnceLock;

use super::prelude::*;
use super::{BilledRequest, CallView, Observer};
use crate::bill::Bill;
use crate::context::{CacheEffect, measure};
use crate::model::Request;
use crate::model::price::{
    CacheScheme, CallPrices, Client, Placement, Prices, RelativePrice, Reuse,
};
use crate::record::{CacheRecord, ModelCall, ObservedCache, PriceEntry};
use crate::replay::prompt_cache::{
    BlockList, CacheEvent, CacheLoss, CacheOutcome, EditedEntries, IdealCache, PromptCache,
    PromptLine, PromptPiece, RecordedCache, SentAt,
};
use crate::units::Usage;

/// Stands for the part of every prompt that the session does not hold.
const HEAD: &str = "the unrecorded head";

/// The cause of a break for which no stage is to blame: too much time went by.
const EXPIRED: &str = "expired";

/// The same: the recording missed it too.
const MISSED: &str = "missed";

/// The provider left out the thinking of earlier turns.
const THINKING: &str = "thinking left out";

/// The same: what was cached ends too many blocks before the next breakpoint.
const LOOK_BACK: &str = "look-back";

/// The part that all cells of one session share.
#[derive(Debug, Clone)]
pub struct CachePlan {
    schemes: Vec<Arc<CacheScheme>>,
    head: Vec<PromptPiece>,
    counts: Arc<CountedTexts>,
    messages: usize,
    pub(crate) pacing: SentAt,
    bill: Arc<Bill>,
    recorded: OnceLock<RecordedCache>,
    /// Who sends the prompts, and sets the breakpoints.
    pub client: Client,
    /// The placement whose record comes first, and that costs are shown for.
    pub shown: Placement,
    /// The prices in force, and those of the session: what models cost that a strategy names beside its own.
    pub prices: Option<(Arc<Prices>, PriceEntry)>,
    /// The prices of the session's calls.
    pub call_prices: CallPrices,
}

impl CachePlan {
    /// Prepares to follow the prompts of a session.
    pub fn new(
        session: &Session,
        counts: &Arc<CountedTexts>,
        schemes: Vec<CacheScheme>,
        bill: Arc<Bill>,
    ) -> Self {
        let mut head = BlockList::head(session.tools(), session.system(), counts);
        if bill.scale(0).head > Tokens::ZERO {
            head.insert(0, PromptPiece::new(HEAD, Tokens::ZERO));
        }
        Self {
            schemes: schemes.into_iter().map(Arc::new).collect(),
            head,
            counts: counts.clone(),
            messages: session.messages().len(),
            pacing: 0,
            bill,
            recorded: OnceLock::new(),
            client: Client::RECOMMENDED,
            shown: Placement::Usual,
            prices: None,
            call_prices: CallPrices::new(),
        }
    }

    /// Learns once for all cells what happened to the provider's cache while the session was recorded. `replay`
    /// is given the observer of the recorded context.
    pub(crate) fn learn(
        &self,
        session: &Session,
        replay: impl FnOnce(Box<PromptCaches>) -> CellRecord,
    ) {
        self.recorded.get_or_init(|| {
            let own = self.schemes.first();
            let Some(own) = own.filter(|_| RecordedCache::is_shown(session)) else {
                return RecordedCache::default();
            };
            let undisturbed = Self {
                schemes: vec![own.clone()],
                recorded: OnceLock::from(RecordedCache::default()),
                shown: Placement::Usual,
                ..self.clone()
            };
            let record = replay(Box::new(PromptCaches::new(Arc::new(undisturbed), None)));
            RecordedCache::of(session, self.bill.sizes(), own, &record)
        });
    }

    fn relative(&self, named: &str) -> Option<RelativePrice> {
        let (prices, own) = self.prices.as_ref()?;
        prices.relative(&own.model, own.per_token.input?, named)
    }

    fn pieces(&self, entry: &Entry) -> BlockList {
        BlockList::of(entry, &self.counts)
    }
}

/// Follows one prompt under all schemes. The first scheme is that of the session: it is also followed
/// under the other placements, if it has breakpoints.
#[derive(Debug)]
pub struct PromptCaches {
    plan: Arc<CachePlan>,
    line: PromptLine,
    /// The last is that of the edge, from the first call on at which the strategy names one. Until then
    /// it is as usual.
    caches: Vec<(PromptCache, CacheRecord)>,
    ideal: Option<IdealCache>,
    clock: Clock,
    /// The lowest block that a patch changed since the last call, and the stage that did.
    broken_by: Option<(usize, Arc<str>)>,
    compared: Option<(Compared, ObservedCache)>,
    /// The most that the first prompt can find warm: what is in front of the first edit before it.
    warm: Option<Tokens>,
    outputs: Vec<Tokens>,
    calls: usize,
}

/// The calls that are compared with their bills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Of the reference: those up to the first compaction of the recorded product. After it the recorded
    /// prompts are different ones.
    Unedited,
    /// Of the strategy that replays these compactions: those behind the first.
    Compacted,
}

/// The time at which prompts are sent: it never goes back.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    now: SentAt,
    /// The newest time of what was appended since the last call.
    newest: Option<SentAt>,
    /// Whether the declared pacing has yet to pass before the next request.
    is_due: bool,
}

impl Clock {
    fn request(&mut self, pacing: SentAt) -> SentAt {
        self.now = match self.newest {
            Some(time) => self.now.max(time),
            None if self.is_due => self.now.saturating_add(pacing),
            None => self.now,
        };
        self.is_due = false;
        self.now
    }
}

impl PromptCaches {
    /// Watches a cell, and compares these of its calls with their bills.
    pub fn new(plan: Arc<CachePlan>, compared: Option<Compared>) -> Self {
        let pairs = plan.schemes.iter().map(|scheme| {
            let record = CacheRecord {
                scheme: scheme.name.clone(),
                rates: scheme.rates,
                call_prices: plan.call_prices.clone(),
                ttl_seconds: scheme.ttl_seconds,
                ..CacheRecord::default()
            };
            (PromptCache::new(scheme.clone(), plan.client), record)
        });
        let caches = pairs.collect();
        let mut line = PromptLine::new(&plan.head);
        line.reserve(plan.messages);
        line.size_by(plan.bill.scale(0));
        let own = plan.schemes.first().filter(|scheme| scheme.reuse == Reuse::Breakpoints);
        let ideal = own.map(|scheme| IdealCache::new(scheme.clone()));
        Self {
            line,
            caches,
            ideal,
            clock: Clock::default(),
            broken_by: None,
            compared: compared.map(|calls| (calls, ObservedCache::default())),
            warm: None,
            outputs: Vec::new(),
            calls: 0,
            plan,
        }
    }

    /// Edits the prompt. The lowest block of a call that is not as it was sent names the cause.
    fn edit(&mut self, edits: &[EditedEntries], cause: &Arc<str>) {
        if let Some(ideal) = &mut self.ideal {
            ideal.edits(&self.line, edits);
        }
        let change = self.line.patch(edits);
        for (cache, _) in &mut self.caches {
            cache.removed(change.removed);
        }
        if let Some(at) = change.broken_at
            && self.broken_by.as_ref().is_none_or(|(lowest, _)| at < *lowest)
        {
            self.broken_by = Some((at, cause.clone()));
        }
    }

    /// The next entry is not the one that was sent: nothing is warm from here on.
    fn cool(&mut self, entry: usize) {
        if self.calls == 0 {
            let front = self.line.until(self.line.first_block(entry));
            self.warm = self.warm.into_iter().chain([front]).min();
        }
    }

    /// What happened to the provider's cache before this call.
    fn event(&self) -> Option<CacheEvent> {
        match (self.plan.recorded.get()?.event(self.calls)?, self.warm) {
            (CacheEvent::Warm(tokens), Some(most)) => Some(CacheEvent::Warm(tokens.min(most))),
            (event, _) => Some(event),
        }
    }

    fn observe(&mut self, view: &CallView<'_>, prompt: Tokens) {
        let Some((calls, observed)) = &mut self.compared else {
            return;
        };
        let first = view.session.compactions().first();
        let compared = first.is_some_and(|compaction| compaction.at <= view.before)
            == (*calls == Compared::Compacted);
        let Some(usage) = view.response.details.usage.filter(|_| compared) else {
            return;
        };
        let billed = usage.prompt();
        if billed == Tokens::ZERO {
            return;
        }
        if observed.calls == 0 {
            observed.unrecorded = billed - prompt;
        }
        observed.calls += 1;
        observed.billed += Usage { output: Tokens::ZERO, ..usage };
        observed.counted += prompt;
        for (_, record) in &self.caches {
            let split = record.of_call(view.call, prompt);
            *observed.simulated.entry(record.scheme.clone()).or_default() += split;
        }
    }
}

/// Adds to a series the tokens at a place. It begins with its first number above 0: some have none.
fn put(series: &mut Vec<Tokens>, at: usize, tokens: Tokens) {
    if tokens > Tokens::ZERO {
        series.resize(at, Tokens::ZERO);
        series.push(tokens);
    }
}

/// Notes what a cache did at a call.
fn note(
    record: &mut CacheRecord,
    call: usize,
    served: &CacheOutcome,
    step: Tokens,
    stage: Option<&str>,
) {
    put(&mut record.read, call, served.split.read);
    put(&mut record.written, call, served.split.written);
    record.resent += served.resent;
    // Less than a step is rounding.
    if served.broken >= step.max(Tokens(1)) {
        let cause = match served.loss {
            Some(CacheLoss::Expired) => EXPIRED,
            Some(CacheLoss::Missed) => MISSED,
            None => stage.unwrap_or(LOOK_BACK),
        };
        let total = record.breaks.entry(cause.to_owned()).or_default();
        total.calls += 1;
        total.tokens += served.broken;
    }
}

/// The record of the lower bound, under the scheme of `own`.
fn ideal_record(own: &CacheRecord, ideal: IdealCache, calls: &[ModelCall]) -> CacheRecord {
    let (splits, asked) = ideal.finish();
    let mut record = CacheRecord {
        placement: Placement::Ideal,
        read: splits.iter().map(|split| split.read).collect(),
        written: splits.iter().map(|split| split.written).collect(),
        strategy_read: Vec::new(),
        breaks: BTreeMap::new(),
        resent: Tokens::ZERO,
        ..own.clone()
    };
    for (number, read) in asked {
        let prompt = calls.get(number).map(|call| call.usage.prompt());
        put(&mut record.strategy_read, number, read.min(prompt.unwrap_or_default()));
    }
    record
}

/// The blocks of a request that goes on with the agent's prompt.
fn line_of(request: &Request, plan: &CachePlan) -> PromptLine {
    let mut line = PromptLine::new(&plan.head);
    for message in &request.messages {
        let entry = Entry::new(Origin::Authored, message.clone(), &plan.counts);
        line.append(&plan.pieces(&entry));
    }
    line
}

impl Observer for PromptCaches {
    fn appended(&mut self, entry: &Entry) {
        let time = entry.message.details.timestamp.map(|time| time.0);
        self.clock.newest = self.clock.newest.max(time);
        self.line.append(&self.plan.pieces(entry));
    }

    fn asked(&mut self, asked: &BilledRequest) {
        if let Some(named) = &asked.request.model {
            let price = self.plan.relative(named);
            for (_, record) in &mut self.caches {
                record.other_models.insert(asked.number, price);
            }
            return;
        }
        let now = self.clock.request(self.plan.pacing);
        // Tools come first in a prompt. Without them nothing behind them is found again.
        let recorded = matches!(asked.request.task, Task::Recorded { .. });
        if asked.request.tools.is_none() || (recorded && !self.plan.client.forks) {
            return;
        }
        let request = line_of(&asked.request, &self.plan);
        let shared = self.line.shared_with(&request);
        for (cache, record) in &mut self.caches {
            let read = cache.side_request(&self.line, &request, shared, now);
            put(&mut record.strategy_read, asked.number, read.min(asked.usage.prompt()));
        }
        if let Some(ideal) = &mut self.ideal {
            ideal.side_request(&self.line, shared, asked.number, now);
        }
    }

    fn shortened(&mut self, _applied: &Applied) {
        self.cool(usize::MAX);
    }

    fn patched(&mut self, applied: &Applied) {
        if let Some(first) = applied.change.edits.first() {
            self.cool(first.entries.start);
        }
        let edits = applied.change.edits.iter().map(|edit| EditedEntries {
            entries: edit.entries.clone(),
            with: edit.with.iter().map(|entry| self.plan.pieces(entry)).collect(),
            cache: edit.cache,
        });
        self.edit(&edits.collect::<Vec<_>>(), &applied.stage);
    }

    fn thinking_left_out(&mut self, context: &Context, entries: &[usize], cache: CacheEffect) {
        let edits = entries.iter().map(|at| EditedEntries {
            entries: *at..at + 1,
            with: vec![self.plan.pieces(&context.entries()[*at])],
            cache,
        });
        self.edit(&edits.collect::<Vec<_>>(), &Arc::from(THINKING));
    }

    fn called(&mut self, view: &CallView<'_>) {
        let now = self.clock.request(self.plan.pacing);
        self.line.size_by(view.scale);
        let broken_by = self.broken_by.take();
        let stage = broken_by.as_ref().map(|(_, stage)| &**stage);
        let edge = view.edge.map(|entry| self.line.first_block(entry));
        if edge.is_some()
            && self.ideal.is_some()
            && self.caches.iter().all(|(_, record)| record.placement != Placement::Edge)
        {
            let mut usual = self.caches.first().cloned();
            if let Some((_, record)) = &mut usual {
                record.placement = Placement::Edge;
            }
            self.caches.extend(usual);
        }
        let event = self.event();
        self.line.meet(event);
        for (cache, record) in &mut self.caches {
            let own = edge.filter(|_| record.placement == Placement::Edge);
            let served = cache.send(&self.line, own, now);
            note(record, self.calls, &served, cache.scheme.step, stage);
        }
        if let Some(ideal) = &mut self.ideal {
            ideal.send(&self.line, now);
        }
        self.line.sent(now);
        self.calls += 1;
        (self.clock.newest, self.clock.is_due) = (None, true);
        self.observe(view, view.prompt());
        if let Some((Compared::Unedited, _)) = self.compared {
            // A recorded counter may have been written before the answer was whole, and counts what
            // was thought and not shown: either may be the larger.
            let counted = view.scale.text(measure(view.response, &self.plan.counts));
            let billed = view.response.details.usage.map(|usage| usage.output);
            self.outputs.push(counted.max(billed.unwrap_or_default()));
        }
    }

    fn finish(self: Box<Self>, record: &mut CellRecord) {
        drop(self.line);
        let own = self.caches.first().map(|(_, own)| own);
        let both = own.zip(self.ideal);
        let ideal = both.map(|(own, ideal)| ideal_record(own, ideal, &record.model_calls));
        let caches = self.caches.into_iter().map(|(_, record)| record);
        let mut records: Vec<CacheRecord> = caches.chain(ideal).collect();
        for record in &mut records {
            for series in [&mut record.read, &mut record.written] {
                if series.iter().all(|tokens| *tokens == Tokens::ZERO) {
                    series.clear();
                } else {
                    series.resize(self.calls, Tokens::ZERO);
                }
            }
        }
        // Only the first scheme has more than one placement.
        let shown =
            records.iter().position(|record: &CacheRecord| record.placement == self.plan.shown);
        if let Some(shown) = shown {
            records[..=shown].rotate_right(1);
        }
        record.prompt_cache = records;
        let observed = self.compared.map(|(_, observed)| observed);
        record.observed_cache = observed.filter(|observed| observed.calls > 0);
        record.output_tokens = self.outputs;
    }
}
