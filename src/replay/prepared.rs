//! A session made ready: counted once, shared by all its cells.

use std::ops::Range;
use std::sync::Arc;

use super::observe;
use super::observe::prompt_cache::CachePlan;
use super::observe::recovery::RecoveryPlan;
use crate::bill::Bill;
use crate::context::{Context, Entry, Origin, measure, measure_block};
use crate::model::fault::Faults;
use crate::model::price::{CacheScheme, RequestLimit, RequestSize};
use crate::patterns::PatternsError;
use crate::probe::recovery::Recovery;
use crate::probe::{Asking, Probe, Selection};
use crate::record::Refusal;
use crate::session::wire::RuleSet;
use crate::session::{ContentBlock, RecordedCompaction, Session, ToolSchema};
use crate::strategy::Situation;
use crate::tokens::{CountedTexts, PackedSize, Size};
use crate::units::{ContentHash, Tokens};
use crate::window::{PromptSizes, Window};

/// A session made ready for replay: counted once, shared by all its cells.
#[derive(Debug)]
pub struct PreparedSession {
    pub(super) session: Arc<Session>,
    pub(super) counts: Arc<CountedTexts>,
    /// Of each message.
    sizes: Vec<PackedSize>,
    pub(super) fixed: Size,
    /// Seed of random draws: the hash of the session's id.
    pub(super) lot: u64,
    pub(super) tools: Arc<[ToolSchema]>,
    pub(super) compactions: Vec<Arc<RecordedCompaction>>,
    pub(super) watched: observe::ObserverPlans,
    /// The faults in the cells of strategies; the reference and the floor have none.
    pub faults: Arc<Faults>,
    /// Limits of the provider's beside the window; the reference and the floor are spared.
    pub limits: Vec<RequestLimit>,
    /// The effective windows that the recorded product is known to work in, each with the first call that
    /// it holds for, ascending.
    pub product_windows: Vec<(usize, Tokens)>,
    /// The questions to a model beside the scored ones.
    pub asking: Asking,
    pub(super) bill: Arc<Bill>,
}

impl PreparedSession {
    /// Counts all texts of the session in parallel, and makes everything that its cells share.
    pub fn new(
        session: Arc<Session>,
        counts: Arc<CountedTexts>,
        probes: Vec<Probe>,
    ) -> Result<Self, PatternsError> {
        Self::selecting(session, counts, probes, &Selection::default())
    }

    /// The same, asked only what is selected of these probes.
    pub fn selecting(
        session: Arc<Session>,
        counts: Arc<CountedTexts>,
        probes: Vec<Probe>,
        selection: &Selection,
    ) -> Result<Self, PatternsError> {
        counts.preload(session.texts());
        let sizes =
            session.messages().iter().map(|message| measure(message, &counts).into()).collect();
        let tools = session.tools().iter().map(|tool| counts.schema(tool.text()));
        let system = session.system().map(|text| counts.size(text));
        let fixed = tools.chain(system).sum();
        let compactions = session.compactions().iter().cloned().map(Arc::new);
        let mut lot = [0; 8];
        lot.copy_from_slice(&ContentHash::of(session.id()).bytes()[..8]);
        Ok(Self {
            lot: u64::from_le_bytes(lot),
            tools: session.tools().into(),
            compactions: compactions.collect(),
            watched: observe::ObserverPlans::new(&session, &counts, probes, selection)?,
            faults: Arc::default(),
            limits: Vec::new(),
            product_windows: Vec::new(),
            asking: Asking::default(),
            bill: Arc::new(Bill::counted(None)),
            session,
            counts,
            sizes,
            fixed,
        })
    }

    /// The same, sized as this bill says. To be called before [`Self::with_cache`].
    #[must_use]
    pub fn billed(mut self, bill: Arc<Bill>) -> Self {
        if let Some(sized) = bill.sized(&self.session) {
            self.session = Arc::new(sized);
            for (message, size) in self.sizes.iter_mut().enumerate() {
                *size = bill.size(message, size.get()).into();
            }
            let compactions = self.session.compactions().iter();
            self.compactions = compactions.cloned().map(Arc::new).collect();
        }
        self.bill = bill;
        self
    }

    /// The same, with prompts held to these rules instead of Anthropic's.
    #[must_use]
    pub fn sent_to(mut self, rules: RuleSet) -> Self {
        self.watched.api = rules;
        self
    }

    /// The same, with the provider's prompt cache simulated under each of these schemes, the one
    /// that matters most first. If the session has no times, this many seconds pass from call to
    /// call.
    #[must_use]
    pub fn with_cache(mut self, schemes: Vec<CacheScheme>, pacing_seconds: u64) -> Self {
        let bill = self.bill.clone();
        let mut plan = CachePlan::new(&self.session, &self.counts, schemes, bill);
        plan.pacing = i64::try_from(pacing_seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
        self.watched.cache = Some(Arc::new(plan));
        self
    }

    /// The simulation of [`Self::with_cache`], to set what it takes for granted.
    pub fn cache(&mut self) -> Option<&mut CachePlan> {
        self.watched.cache.as_mut().and_then(Arc::get_mut)
    }

    /// The same, with what strategies remove searched for what is lost, where that is asked for.
    #[must_use]
    pub fn searching_removed(mut self, setting: Option<Recovery>) -> Self {
        let wanted = setting.filter(|_| !self.watched.items().is_empty());
        self.watched.recovery = wanted.map(|setting| {
            let (counts, plan) = (self.counts.clone(), self.watched.plan.clone());
            Arc::new(RecoveryPlan::new(&self.session, counts, plan, setting))
        });
        self
    }

    /// The situation before the first call, in a window.
    pub(super) fn situation(&self, window: Window) -> Situation {
        let resumed = self.session.resumed();
        Situation {
            lot: self.lot,
            system: self.session.system().cloned(),
            tools: self.tools.clone(),
            fixed: self.fixed,
            scale: self.bill.scale(0),
            loaded: self.session.loaded(),
            notes: resumed.and_then(|resumed| resumed.notes.clone()),
            ..Situation::first(window, self.counts.clone())
        }
    }

    /// Adds what the recording says about a call with these new messages.
    pub(super) fn complete(&self, cx: &mut Situation, new: Range<usize>) {
        cx.scale = self.bill.scale(cx.call);
        let product = self.product_windows.iter().rfind(|(from, _)| *from <= cx.call);
        cx.product_window = product.map(|(_, window)| *window);
        // A compaction before message `at` falls due at the first call that follows it.
        let reached = self.compactions.partition_point(|compaction| compaction.at <= new.end);
        let last = reached.checked_sub(1).map(|last| &self.compactions[last]);
        let due = last.filter(|compaction| compaction.at >= new.start);
        cx.was_asked = due.is_some_and(|compaction| compaction.is_manual());
        cx.recorded = due.cloned();
    }

    /// The limit beside the window that refuses a prompt with `text` bytes of text.
    pub(super) fn refusal(&self, call: usize, text: u64, context: &Context) -> Option<Refusal> {
        let images = context.attachments();
        let request = RequestSize {
            bytes: text.saturating_add(images.bytes()),
            images: images.images(),
            largest_image: images.largest(),
            longest_edge: images.longest_edge().into(),
        };
        let limit = self.limits.iter().find(|limit| limit.refuses(&request))?;
        Some(Refusal { call, limit: limit.to_string(), document: limit.document.clone() })
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The probes that are asked of it.
    pub fn probes(&self) -> &[Probe] {
        self.watched.probes()
    }

    /// The sizes of all texts.
    pub fn counts(&self) -> &Arc<CountedTexts> {
        &self.counts
    }

    /// The sizes of its prompts.
    pub fn bill(&self) -> &Bill {
        &self.bill
    }

    /// A message of the session as it is appended to a context.
    pub(super) fn entry(&self, at: usize) -> Entry {
        let message = self.session.message(at).clone();
        Entry::sized(Origin::Verbatim(at), message, self.sizes[at].get())
    }

    /// Tokens of a call's answer: as billed, or of its words where those are more than twice as many. Some recordings
    /// hold counters that were written before the answer was whole.
    pub fn answered(&self, call: usize, message: usize) -> Tokens {
        let details = &self.session.message(message).details;
        // What a bill adds to its words says nothing of them: it may be of what came before.
        let said = self.sizes[message].get().tokens - details.hidden - self.given(message);
        let words = self.bill.scale(call).factor.bill(said);
        match details.usage.map(|usage| usage.output) {
            Some(billed) if words <= billed.times(2) => billed,
            _ => words,
        }
    }

    /// Tokens of a message that no model wrote: results of a provider's own tools, images, and what cannot be read.
    fn given(&self, message: usize) -> Tokens {
        let message = self.session.message(message);
        let given = message.content().iter().enumerate().filter(|(_, content)| {
            use ContentBlock::{Image, Opaque, ToolResult};
            matches!(content, ToolResult(_) | Image(_) | Opaque(_))
        });
        given.map(|(block, _)| measure_block(message, block, &self.counts).tokens).sum()
    }

    /// Sizes of the prompts of the full history, as billed.
    pub fn prompt_sizes(&self) -> PromptSizes {
        let head = self.bill.scale(0).head;
        let largest = self.largest_prompt();
        let rounds = self.session.calls().len().max(1);
        PromptSizes { head, round: (largest - head).fraction(1.0 / rounds as f64), largest }
    }

    /// Tokens of the largest prompt of the full history, that of the last call, as billed.
    pub fn largest_prompt(&self) -> Tokens {
        let calls = self.session.calls();
        let end = calls.last().copied().unwrap_or(0);
        let scale = self.bill.scale(calls.len().saturating_sub(1));
        let all = self.fixed + self.sizes[..end].iter().map(PackedSize::get).sum();
        scale.prompt(all - Size::hidden(self.bill.left_out_before(end)))
    }
}
