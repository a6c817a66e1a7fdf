//! The agent loop without the agent: one session through one strategy.
//!
//! A recorded session fixes what the agent said and what the tools answered. Replay walks it and,
//! before each API call, lets the strategy decide what the model would have been sent. It
//! measures exactly what was sent and lost; it cannot see that an agent would have acted
//! differently.
//!
//! A session that was resumed begins with what was loaded; no write-time stage sees that.
//! For each call: what came in is appended, the strategy may compact, the prompt is counted, a
//! prompt that does not fit is recovered or the session dies, probes are asked of the prompt as
//! it was sent, observers look, and the recorded answer is appended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::bill::Scale;
use crate::context::{Applied, CacheEffect, Context, Entry};
use crate::model::Model;
use crate::model::offline::Offline;
use crate::record::{Arm, CellRecord, CompactionEvent, DeathCause, End, FailureEvent};
use crate::session::Tag;
use crate::step::drive;
use crate::strategy::situation::{Overflow, Situation};
use crate::strategy::{Compaction, StageFailure, Strategy, StrategySpec};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Tokens, Usage};
use crate::window::Window;

mod ceiling;
mod clock;
mod failure;
mod faults;
mod fitness;
mod meter;
mod plumbing;
pub mod observe;
mod prepared;
mod present;
pub mod prompt_cache;
mod reader;
mod unanswered;
pub mod verify;

use failure::chain;
use faults::FaultInjector;
use meter::Meter;
use observe::{CallView, Observer};
use reader::{AnsweredQuestions, Questioner};

pub use clock::{CpuClock, NoClock};
pub use failure::failed;
pub use fitness::{Fitness, KnownAnswerResults};
pub use meter::RequestBill;
pub(crate) use meter::answered;
pub use plumbing::plumbing;
pub use prepared::PreparedSession;
pub(crate) use present::{tools_of, typed};
pub use reader::{Judges, Repetitions};
pub use unanswered::Unanswered;

/// The models a cell may ask.
#[derive(Debug, Clone)]
pub struct Models {
    /// Writes summaries.
    pub summariser: Arc<dyn Model>,
    /// Answers probes; without one no probe is asked.
    pub reader: Option<Arc<dyn Model>>,
    /// Judges answers; without it rules alone do.
    pub judge: Option<Judges>,
    /// How often each is asked the same.
    pub times: Repetitions,
}

impl Models {
    /// The offline writer of summaries alone: no probe is asked.
    pub fn offline(counts: &Arc<CountedTexts>) -> Self {
        Self {
            summariser: Arc::new(Offline::new(counts.clone())),
            reader: None,
            judge: None,
            times: Repetitions::default(),
        }
    }
}

/// The context that a cell replays.
#[derive(Debug)]
pub enum Replayed {
    /// The whole history at every call, no window: the reference.
    Full,
    /// System prompt and question only: the floor of the probes.
    Empty,
    /// A strategy in a window.
    Strategy(Box<dyn Strategy>, Window),
}

/// Names a cell, for its record.
#[derive(Debug, Clone)]
pub struct CellName {
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// Which repeat, from 0.
    pub repeat: u32,
}

/// A finished cell.
#[derive(Debug)]
pub struct Replay {
    /// The measurements.
    pub record: CellRecord,
    /// Processor time of the strategy's own code and its program at each call, its model calls left out.
    pub strategy_cpu: Vec<Duration>,
    /// Processor time of the whole cell: strategy, observers, probes.
    pub cell_cpu: Duration,
    /// The texts that stages offloaded: path in the prompt, and content.
    pub offloaded: BTreeMap<String, Arc<str>>,
    /// An answer that was wanted and not got: the record is none.
    pub unanswered: Option<Unanswered>,
}

/// Replays one cell.
pub fn replay(
    prepared: &PreparedSession,
    name: CellName,
    replayed: Replayed,
    models: &Models,
    clock: &dyn CpuClock,
) -> Replay {
    replay_watched(prepared, name, replayed, models, clock, Vec::new())
}

/// Replays one cell with observers beside the usual ones.
pub fn replay_watched<'a>(
    prepared: &'a PreparedSession,
    name: CellName,
    replayed: Replayed,
    models: &'a Models,
    clock: &'a dyn CpuClock,
    more: Vec<Box<dyn Observer + 'a>>,
) -> Replay {
    if let Some(cache) = &prepared.watched.cache {
        cache.learn(&prepared.session, |caches| recorded(prepared, caches));
    }
    let mut observers = observe::observers(&prepared.watched, &replayed);
    observers.extend(more);
    replay_observed(prepared, name, replayed, models, clock, observers)
}

/// Replays one cell with observers of the caller's choice.
pub fn replay_observed<'a>(
    prepared: &'a PreparedSession,
    name: CellName,
    replayed: Replayed,
    models: &'a Models,
    clock: &'a dyn CpuClock,
    observers: Vec<Box<dyn Observer + 'a>>,
) -> Replay {
    let arm = match replayed {
        Replayed::Full => Arm::Reference,
        Replayed::Empty => Arm::Floor,
        Replayed::Strategy(..) => Arm::Strategy,
    };
    let faults = match arm {
        Arm::Strategy => prepared.faults.clone(),
        Arm::Reference | Arm::Floor => Arc::default(),
    };
    let injector = FaultInjector::new(faults, prepared.session.id(), name.repeat);
    let mut cell = Cell::new(prepared, models, clock, observers, injector);
    cell.record.arm = arm;
    let (walked, window) = match replayed {
        Replayed::Full => (cell.run(None), None),
        Replayed::Empty => {
            cell.run_empty();
            (Ok(()), None)
        }
        Replayed::Strategy(mut strategy, window) => {
            (cell.run(Some((&mut *strategy, window))), Some(window))
        }
    };
    cell.finish(name, walked.err().unwrap_or(End::Completed), window)
}

/// Replays the context as it was recorded, up to a compaction of which the recording does not say what it left.
fn recorded(prepared: &PreparedSession, observer: Box<dyn Observer>) -> CellRecord {
    let models = Models::offline(&prepared.counts);
    let injector = FaultInjector::new(Arc::default(), prepared.session.id(), 0);
    let mut cell = Cell::new(prepared, &models, &NoClock, vec![observer], injector);
    let strategy = StrategySpec::recorded().and_then(|spec| spec.build());
    let walked = match strategy {
        Ok(mut strategy) if !prepared.compactions.is_empty() => {
            cell.run(Some((&mut strategy, Window::new(Tokens(u64::MAX)))))
        }
        Ok(_) | Err(_) => cell.run(None),
    };
    let name = CellName {
        strategy: String::new(),
        repeat: 0,
    };
    cell.finish(name, walked.err().unwrap_or(End::Completed), None)
        .record
}

/// The end of a session whose prompt of this call was never answered.
fn died(call: usize, prompt: Tokens, cause: DeathCause) -> End {
    End::Died {
        call,
        prompt,
        cause,
    }
}

struct Cell<'a> {
    prepared: &'a PreparedSession,
    meter: Meter<'a>,
    observers: Vec<Box<dyn Observer + 'a>>,
    context: Context,
    record: CellRecord,
    answers: AnsweredQuestions,
    offloaded: BTreeMap<String, Arc<str>>,
    strategy_cpu: Vec<Duration>,
    spent: Duration,
    /// Of the programs that the strategy runs, until the call before.
    program_cpu: Duration,
    /// How many messages the user has typed so far.
    turns: usize,
    started: Duration,
    /// Size of the messages appended since the last answer.
    appended: Size,
    /// The messages of the last prompt, and its answer.
    last_messages: Size,
    /// How the prompts of this call are sized.
    scale: Scale,
    /// Reasoning tokens of the answers in the context.
    reasoning: Reasoning,
}

/// Reasoning tokens of the answers in a context, as they were billed.
#[derive(Default, PartialEq)]
struct Reasoning {
    /// Of those before the last message that a person typed.
    past: Tokens,
    /// Of those after it.
    of_turn: Tokens,
}

impl Reasoning {
    fn add(&mut self, entry: &Entry) {
        if entry.message.has_tag(Tag::TypedUser) {
            self.past += std::mem::take(&mut self.of_turn);
        }
        self.of_turn += entry.message.details.reasoning;
    }
}

type StrategyInWindow<'s> = Option<(&'s mut dyn Strategy, Window)>;

impl<'a> Cell<'a> {
    fn new(
        prepared: &'a PreparedSession,
        models: &'a Models,
        clock: &'a dyn CpuClock,
        observers: Vec<Box<dyn Observer + 'a>>,
        injector: FaultInjector,
    ) -> Self {
        Self {
            prepared,
            meter: Meter::new(models, &prepared.counts, clock, injector),
            observers,
            context: Context::with_capacity(prepared.session.messages().len()),
            record: CellRecord::default(),
            answers: Vec::new(),
            offloaded: BTreeMap::new(),
            strategy_cpu: Vec::new(),
            spent: Duration::ZERO,
            program_cpu: Duration::ZERO,
            turns: 0,
            started: clock.now(),
            appended: Size::default(),
            last_messages: Size::default(),
            scale: prepared.bill.scale(0),
            reasoning: Reasoning::default(),
        }
    }

    /// Walks the session; without a strategy it is the reference.
    fn run(&mut self, mut arranged: StrategyInWindow<'_>) -> Result<(), End> {
        let prepared = self.prepared;
        let mut next = self.load();
        if let Some((strategy, _)) = &mut arranged {
            strategy.on_load(self.context.entries());
        }
        let mut last_usage = None;
        for (call, &before) in prepared.session.calls().iter().enumerate() {
            self.scale = prepared.bill.scale(call);
            let mut cx = self.situation(call, next, before, last_usage, &arranged);
            self.turns = cx.turn;
            self.meter.start_call(call, self.scale);
            for at in next..before {
                self.append(prepared.entry(at), &mut arranged, &cx)?;
            }
            cx.appended = self.appended;
            cx.past_reasoning = self.reasoning.past;
            if let Some((strategy, window)) = &mut arranged {
                let context = self.lend();
                let compacted =
                    self.timed(|meter| drive(strategy.before_call(context, &cx), meter));
                self.take_back(compacted, call)?;
                self.fit(&mut **strategy, *window, &mut cx)?;
                if strategy.replays_recording() {
                    let size = prepared.fixed + self.context.size();
                    self.scale = prepared.bill.as_sent(call, size);
                    cx.scale = self.scale;
                }
                let prompt = cx.prompt(&self.context);
                let response = prepared.answered(call, before);
                if !self.meter.send_agent(prompt, response) {
                    return Err(died(call, prompt, DeathCause::Unanswered));
                }
            }
            let strategy = arranged.as_ref();
            let edge = strategy.and_then(|(strategy, _)| strategy.edge(&self.context));
            self.sent(call, before, edge);
            let usage = Usage::uncached(cx.prompt(&self.context), prepared.answered(call, before));
            last_usage = Some(usage);
            cx.last_usage = last_usage;
            cx.tool_requests = tools_of(prepared.session.message(before));
            self.append(prepared.entry(before), &mut arranged, &cx)?;
            self.appended = Size::default();
            self.last_messages = self.context.size();
            cx.appended = self.appended;
            cx.last_messages = self.last_messages;
            if let Some((strategy, _)) = &mut arranged {
                let context = self.lend();
                let compacted = self.timed(|meter| drive(strategy.after_call(context, &cx), meter));
                self.take_back(compacted, call)?;
                let own = std::mem::take(&mut self.spent);
                let programs = std::mem::replace(&mut self.program_cpu, strategy.program_cpu());
                let of_call = self.program_cpu.saturating_sub(programs);
                self.strategy_cpu.push(own + of_call);
            }
            next = before + 1;
        }
        let ended = arranged.map_or(Ok(()), |(strategy, _)| strategy.end());
        let last = prepared.session.calls().len().saturating_sub(1);
        ended.map_err(|error| self.stopped(last, &error))
    }

    /// The messages that a resumed session was loaded with are in the context before the first
    /// call.
    fn load(&mut self) -> usize {
        let loaded = self.prepared.session.loaded();
        for at in 0..loaded {
            self.add(self.prepared.entry(at));
        }
        self.turns = present::typed(&self.prepared.session.messages()[..loaded]);
        loaded
    }

    /// Asks the probes of an empty context.
    fn run_empty(&mut self) {
        let session = self.prepared.session.clone();
        for (call, &before) in session.calls().iter().enumerate() {
            self.meter.start_call(call, self.scale);
            self.sent(call, before, None);
        }
    }

    fn append(
        &mut self,
        mut entry: Entry,
        arranged: &mut StrategyInWindow<'_>,
        cx: &Situation,
    ) -> Result<(), End> {
        if let Some((strategy, _)) = arranged {
            let mut single = Context::default();
            single.append(entry.clone());
            let mut appended = self.timed(|_| strategy.on_append(single, cx));
            // A write-time patch knows its own entry only; the record says what it did to all
            // messages.
            for applied in &mut appended.applied {
                applied.change.before = self.context.size() + applied.change.before;
                applied.change.after = self.context.size() + applied.change.after;
            }
            self.note(&appended.applied, &appended.failures, cx.call);
            for applied in &appended.applied {
                self.observers
                    .iter_mut()
                    .for_each(|it| it.shortened(applied));
            }
            self.offloaded.extend(appended.saved);
            appended
                .outcome
                .map_err(|error| self.stopped(cx.call, &error))?;
            entry = appended.context.into_entries().pop().unwrap_or(entry);
        }
        self.add(entry);
        Ok(())
    }

    fn add(&mut self, entry: Entry) {
        let message = entry.origin.message();
        if let Some(left_out) = message.and_then(|message| self.prepared.bill.left_out(message)) {
            let (shrunk, by) = self.context.leave_out(&left_out.parts);
            self.last_messages = self.last_messages - by;
            let cache = if left_out.is_cache_kept {
                CacheEffect::Keeps
            } else {
                CacheEffect::Breaks
            };
            let observers = self.observers.iter_mut();
            observers.for_each(|it| it.thinking_left_out(&self.context, &shrunk, cache));
        }
        self.appended += entry.size();
        self.reasoning.add(&entry);
        self.observers.iter_mut().for_each(|it| it.appended(&entry));
        self.context.append(entry);
    }

    /// Runs the strategy's own code on the clock; what its models take is not counted.
    fn timed<T>(&mut self, work: impl FnOnce(&mut Meter<'_>) -> T) -> T {
        self.meter.time = Duration::ZERO;
        let started = self.meter.clock.now();
        let done = work(&mut self.meter);
        let spent = self.meter.clock.now().saturating_sub(started);
        self.spent += spent.saturating_sub(self.meter.time);
        done
    }

    /// Hands the context to the strategy.
    fn lend(&mut self) -> Context {
        self.meter.history = self.context.size();
        std::mem::take(&mut self.context)
    }

    /// Takes a context back from the strategy, with what was done to it.
    fn take_back(&mut self, compacted: Compaction, call: usize) -> Result<(), End> {
        self.note(&compacted.applied, &compacted.failures, call);
        self.context = compacted.context;
        for asked in self.meter.asked.drain(..) {
            self.observers.iter_mut().for_each(|it| it.asked(&asked));
        }
        for applied in &compacted.applied {
            self.observers.iter_mut().for_each(|it| it.patched(applied));
        }
        if !compacted.applied.is_empty() && self.reasoning != Reasoning::default() {
            self.reasoning = Reasoning::default();
            let entries = self.context.entries().iter();
            entries.for_each(|entry| self.reasoning.add(entry));
        }
        self.offloaded.extend(compacted.saved);
        compacted
            .outcome
            .map_err(|error| self.stopped(call, &error))
    }

    fn note(&mut self, applied: &[Applied], failures: &[StageFailure], call: usize) {
        self.record
            .compactions
            .extend(applied.iter().map(|applied| CompactionEvent {
                call,
                stage: applied.stage.to_string(),
                reason: applied.reason.clone(),
                before: self.scale.text(applied.change.before),
                after: self.scale.text(applied.change.after),
                still_over: applied.is_still_over,
                prepared_at: applied.prepared_at,
            }));
        self.record
            .failures
            .extend(failures.iter().map(|failure| FailureEvent {
                call,
                stage: failure.stage.to_string(),
                error: chain(&failure.error),
            }));
    }

    /// Has the strategy shorten a prompt that the provider refuses, until it fits or it gives up.
    fn fit(
        &mut self,
        strategy: &mut dyn Strategy,
        window: Window,
        cx: &mut Situation,
    ) -> Result<(), End> {
        let mut attempt = 0;
        let mut is_refused = self.meter.refuses_prompt();
        loop {
            let prompt = cx.prompt(&self.context);
            // A fault refuses a prompt once: the shorter prompt only has to fit. A prompt that the
            // product sent was not too long for its model.
            let bytes = (cx.fixed + self.context.size()).bytes;
            let refusal = self.prepared.refusal(cx.call, bytes, &self.context);
            let refusal = refusal.filter(|_| !window.overflows(prompt));
            let is_too_long = window.overflows(prompt) || refusal.is_some();
            let is_too_long = is_too_long && !strategy.replays_recording();
            if !std::mem::take(&mut is_refused) && !is_too_long {
                cx.overflow = None;
                return Ok(());
            }
            if attempt == 0 {
                self.record.overflows.push(cx.call);
                self.record.refusals.extend(refusal);
            }
            cx.overflow = Some(Overflow { prompt, attempt });
            let context = self.lend();
            let compacted = self.timed(|meter| drive(strategy.on_overflow(context, cx), meter));
            self.take_back(compacted, cx.call)?;
            // A recovery that frees nothing would go on for ever.
            if cx.prompt(&self.context) >= prompt {
                return Err(died(cx.call, prompt, DeathCause::Overflow));
            }
            attempt += 1;
        }
    }

    /// The prompt is sent as it is: count it, show it to the observers, ask the probes.
    fn sent(&mut self, call: usize, before: usize, edge: Option<usize>) {
        let prepared = self.prepared;
        let prompt = self.scale.prompt(prepared.fixed + self.context.size());
        self.record.prompt_tokens.push(prompt);
        let view = CallView {
            call,
            before,
            session: &prepared.session,
            context: &self.context,
            fixed: prepared.fixed,
            scale: self.scale,
            response: prepared.session.message(before),
            edge,
        };
        self.observers.iter_mut().for_each(|it| it.called(&view));
        if self.meter.models.reader.is_some() {
            let mut questioner = Questioner {
                view,
                prepared,
                judges: self.meter.models.judge.as_ref(),
                times: self.meter.models.times,
                arm: self.record.arm,
                meter: &mut self.meter,
            };
            let due = prepared.watched.due_range(call);
            self.answers.extend(questioner.ask(due));
        }
    }

    fn finish(mut self, name: CellName, end: End, window: Option<Window>) -> Replay {
        let prepared = self.prepared;
        let mut record = self.record;
        drop(self.context);
        if let (Some(judges), Arm::Reference) = (&self.meter.models.judge, record.arm)
            && (!self.answers.is_empty() || self.meter.models.reader.is_none())
        {
            record.sentinels = reader::known_answers(judges, &mut self.meter);
        }
        prepared.session.id().clone_into(&mut record.session);
        record.strategy = name.strategy;
        record.repeat = name.repeat;
        record.end = end;
        record.planned_calls = prepared.session.calls().len();
        record.reached_calls = record.prompt_tokens.len();
        record.window = window;
        record.fixed_tokens = prepared.bill.scale(0).prompt(prepared.fixed);
        record.saved_texts = self.offloaded.len() as u64;
        for observer in self.observers {
            observer.finish(&mut record);
        }
        reader::attach(&mut record.probes, self.answers);
        // Where a reader answers, its answers decide, and no verdict is asked for that was not planned.
        if let (Some(judges), None) = (&self.meter.models.judge, &self.meter.models.reader) {
            let times = self.meter.models.times;
            reader::judge_unsure(&mut record.probes, prepared, judges, times, &mut self.meter);
        }
        record.model_calls = self.meter.log;
        record.lost_calls = self.meter.lost;
        record.faults = self.meter.injector.injected;
        if record.arm == Arm::Reference {
            record.probe_texts = prepared.watched.texts(&prepared.session);
        }
        Replay {
            record,
            strategy_cpu: self.strategy_cpu,
            cell_cpu: self.meter.clock.now().saturating_sub(self.started) + self.program_cpu,
            offloaded: self.offloaded,
            unanswered: self.meter.unanswered,
        }
    }
}
