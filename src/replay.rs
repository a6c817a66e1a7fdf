//! The agent loop without the agent: one session through one strategy.
//!
//! A recorded session fixes what the agent said and what the tools answered. Replay walks it and,
//! before each API call, lets the strategy decide what the model would have been sent. It
//! measures exactly what was sent and lost; it cannot see that an agent would have acted
//! differently.
//!
//! For each call: what came in is appended, the strategy may compact, a prompt that does not fit is
//! recovered or the session dies, the prompt is counted, observers look, probes are asked of the
//! prompt as it was sent, and the recorded answer is appended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::context::{CacheEffect, Context, Entry};
use crate::model::Model;
use crate::model::offline::Offline;
use crate::record::{Arm, CellRecord, CompactionEvent, DeathCause, End, FailureEvent};
use crate::session::Session;
use crate::step::Caller;
use crate::strategy::situation::Situation;
use crate::strategy::{Compaction, Strategy, StrategySpec};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Tokens, Usage};
use crate::walk::{WalkHost, WalkMoment, Walker};
use crate::window::Window;

pub(crate) mod ceiling;
mod clock;
mod failure;
mod faults;
mod fitness;
mod meter;
mod plumbing;
pub mod observe;
mod prepared;
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
pub use reader::{Judges, Repetitions};
pub use unanswered::MissedAnswer;

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

impl Replayed {
    /// The context as the session's own product compacted it; the whole history where it never did.
    pub fn recorded(session: &Session) -> Self {
        let strategy = StrategySpec::recorded().and_then(|spec| spec.build());
        match strategy {
            Ok(strategy) if !session.compactions().is_empty() => {
                Self::Strategy(Box::new(strategy), UNLIMITED)
            }
            Ok(_) | Err(_) => Self::Full,
        }
    }
}

/// Names a cell, for its record.
#[derive(Debug, Clone)]
pub struct CellName {
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// Which repeat, from 0.
    pub repeat: u32,
}

impl CellName {
    /// The first cell of a strategy.
    pub fn first(strategy: impl Into<String>) -> Self {
        Self { strategy: strategy.into(), repeat: 0 }
    }
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
    pub unanswered: Option<MissedAnswer>,
}

/// The window of a context that nothing refuses.
const UNLIMITED: Window = Window::new(Tokens(u64::MAX));

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
    let faults = match replayed {
        Replayed::Strategy(..) => prepared.faults.clone(),
        Replayed::Full | Replayed::Empty => Arc::default(),
    };
    let injector = FaultInjector::new(faults, prepared.session.id(), name.repeat);
    CellReplay::new(prepared, models, clock, observers, injector).play(name, replayed)
}

/// Replays the context as it was recorded, up to a compaction of which the recording does not say what it left.
fn recorded(prepared: &PreparedSession, observer: Box<dyn Observer>) -> CellRecord {
    let models = Models::offline(&prepared.counts);
    let injector = FaultInjector::new(Arc::default(), prepared.session.id(), 0);
    let cell = CellReplay::new(prepared, &models, &NoClock, vec![observer], injector);
    let recorded = Replayed::recorded(&prepared.session);
    cell.play(CellName::first(""), recorded).record
}

/// The end of a session whose prompt of this call was never answered.
fn died(call: usize, prompt: Tokens, cause: DeathCause) -> End {
    End::Died { call, prompt, cause }
}

struct CellReplay<'a> {
    prepared: &'a PreparedSession,
    meter: Meter<'a>,
    observers: Vec<Box<dyn Observer + 'a>>,
    record: CellRecord,
    answers: AnsweredQuestions,
    offloaded: BTreeMap<String, Arc<str>>,
    strategy_cpu: Vec<Duration>,
    /// By the strategy's own code at this call.
    spent: Duration,
    /// Of the programs that the strategy runs, until the call before.
    program_cpu: Duration,
    started: Duration,
}

impl<'a> CellReplay<'a> {
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
            record: CellRecord::default(),
            answers: Vec::new(),
            offloaded: BTreeMap::new(),
            strategy_cpu: Vec::new(),
            spent: Duration::ZERO,
            program_cpu: Duration::ZERO,
            started: clock.now(),
        }
    }

    fn play(mut self, name: CellName, replayed: Replayed) -> Replay {
        let walked = match replayed {
            Replayed::Full => {
                self.record.arm = Arm::Reference;
                self.walk(None)
            }
            Replayed::Empty => {
                self.record.arm = Arm::Floor;
                self.walk_empty();
                Ok(())
            }
            Replayed::Strategy(strategy, window) => {
                self.record.window = Some(window);
                self.walk(Some((strategy, window)))
            }
        };
        self.finish(name, walked.err().unwrap_or(End::Completed))
    }

    /// Walks the session; without a strategy it is the reference.
    fn walk(&mut self, arranged: Option<(Box<dyn Strategy>, Window)>) -> Result<(), End> {
        let prepared = self.prepared;
        let session = &prepared.session;
        let (strategy, window) = arranged.unzip();
        let first = prepared.situation(window.unwrap_or(UNLIMITED));
        let mut walk = Walker::new(strategy, first, session.messages().len());
        let mut next = session.loaded();
        walk.load((0..next).map(|at| prepared.entry(at)), self);
        for (call, &before) in session.calls().iter().enumerate() {
            let cx = walk.begin(call, session.messages(), next..before);
            prepared.complete(cx, next..before);
            self.meter.start_call(call, cx.scale);
            let new = (next..before).map(|at| prepared.entry(at));
            walk.call(new, None, self)?;
            let response = prepared.answered(call, before);
            if walk.strategy.is_some() {
                self.send(&mut walk, response)?;
            }
            self.sent(before, &walk);
            let usage = Usage::uncached(walk.prompt(), response);
            walk.answered(prepared.entry(before), usage, self)?;
            if let Some(strategy) = &walk.strategy {
                let own = std::mem::take(&mut self.spent);
                let programs = std::mem::replace(&mut self.program_cpu, strategy.program_cpu());
                let of_call = self.program_cpu.saturating_sub(programs);
                self.strategy_cpu.push(own + of_call);
            }
            next = before + 1;
        }
        let ended = walk.strategy.map_or(Ok(()), |mut strategy| strategy.end());
        let last = session.calls().len().saturating_sub(1);
        ended.map_err(|error| self.stopped(last, &error))
    }

    /// Asks the probes of an empty context.
    fn walk_empty(&mut self) {
        let session = &self.prepared.session;
        let mut walk = Walker::new(None, self.prepared.situation(UNLIMITED), 0);
        for (call, &before) in session.calls().iter().enumerate() {
            let cx = walk.begin(call, &[], 0..0);
            self.meter.start_call(call, cx.scale);
            self.sent(before, &walk);
        }
    }

    /// Sends the prompt until it is answered, once it is short enough.
    fn send(&mut self, walk: &mut Walker, response: Tokens) -> Result<(), End> {
        self.fit(walk)?;
        let call = walk.present.call;
        if replays_recording(walk) {
            let size = self.prepared.fixed + walk.context().size();
            walk.present.scale = self.prepared.bill.as_sent(call, size);
        }
        let prompt = walk.prompt();
        if self.meter.send_agent(prompt, response) {
            Ok(())
        } else {
            Err(died(call, prompt, DeathCause::Unanswered))
        }
    }

    /// Has the strategy shorten a prompt that the provider refuses, until it fits or it gives up.
    fn fit(&mut self, walk: &mut Walker) -> Result<(), End> {
        let Situation { call, window, .. } = walk.present;
        let mut is_refused = self.meter.refuses_prompt();
        loop {
            let prompt = walk.prompt();
            // A fault refuses a prompt once: the shorter prompt only has to fit. A prompt that the
            // product sent was not too long for its model.
            let bytes = (self.prepared.fixed + walk.context().size()).bytes;
            let limit = self.prepared.refusal(call, bytes, walk.context());
            let refusal = limit.filter(|_| !window.overflows(prompt));
            let fits = !window.overflows(prompt) && refusal.is_none();
            if !std::mem::take(&mut is_refused) && (fits || replays_recording(walk)) {
                return Ok(());
            }
            if walk.present.overflow.is_none() {
                self.record.overflows.push(call);
                self.record.refusals.extend(refusal);
            }
            if !walk.refused(self)? {
                return Err(died(call, prompt, DeathCause::Overflow));
            }
        }
    }

    /// The prompt is sent as it is: count it, show it to the observers, ask the probes.
    fn sent(&mut self, before: usize, walk: &Walker) {
        let prepared = self.prepared;
        let strategy = walk.strategy.as_ref();
        let cx = &walk.present;
        self.record.prompt_tokens.push(walk.prompt());
        let view = CallView {
            call: cx.call,
            before,
            session: &prepared.session,
            context: walk.context(),
            fixed: prepared.fixed,
            scale: cx.scale,
            response: prepared.session.message(before),
            edge: strategy.and_then(|strategy| strategy.edge(walk.context())),
        };
        self.observers.iter_mut().for_each(|observer| observer.called(&view));
        if self.meter.models.reader.is_some() {
            let mut questioner = Questioner {
                view,
                prepared,
                judges: self.meter.models.judge.as_ref(),
                times: self.meter.models.times,
                arm: self.record.arm,
                meter: &mut self.meter,
            };
            let due = prepared.watched.plan.due_range(cx.call);
            self.answers.extend(questioner.ask(due));
        }
    }

    fn finish(mut self, name: CellName, end: End) -> Replay {
        let prepared = self.prepared;
        let mut record = self.record;
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

impl WalkHost for CellReplay<'_> {
    type Stop = End;

    /// The time of models is not counted.
    fn run(
        &mut self,
        context: Size,
        code: impl FnOnce(&mut dyn Caller) -> Compaction,
    ) -> Compaction {
        self.meter.history = context;
        self.meter.time = Duration::ZERO;
        let started = self.meter.clock.now();
        let done = code(&mut self.meter);
        let spent = self.meter.clock.now().saturating_sub(started);
        self.spent += spent.saturating_sub(self.meter.time);
        done
    }

    fn done(&mut self, moment: WalkMoment, mut done: Compaction, walk: &Walker) -> Result<(), End> {
        let cx = &walk.present;
        let write_time = matches!(moment, WalkMoment::Append(_));
        if write_time {
            // A write-time patch knows its own entry only; the record says what it did to all
            // messages.
            for applied in &mut done.applied {
                applied.change.before = walk.context().size() + applied.change.before;
                applied.change.after = walk.context().size() + applied.change.after;
            }
        }
        let compactions = done.applied.iter().map(|applied| CompactionEvent {
            call: cx.call,
            stage: applied.stage.to_string(),
            reason: applied.reason.clone(),
            before: cx.scale.text(applied.change.before),
            after: cx.scale.text(applied.change.after),
            still_over: applied.is_still_over,
            prepared_at: applied.prepared_at,
        });
        self.record.compactions.extend(compactions);
        let failures = done.failures.iter().map(|failure| FailureEvent {
            call: cx.call,
            stage: failure.stage.to_string(),
            error: chain(&failure.error),
        });
        self.record.failures.extend(failures);
        for asked in self.meter.asked.drain(..) {
            for observer in &mut self.observers {
                observer.asked(&asked);
            }
        }
        for applied in &done.applied {
            for observer in &mut self.observers {
                if write_time {
                    observer.shortened(applied);
                } else {
                    observer.patched(applied);
                }
            }
        }
        self.offloaded.extend(done.saved);
        done.outcome.map_err(|error| self.stopped(cx.call, &error))
    }

    fn appending(&mut self, context: &mut Context, entry: &Entry) {
        let message = entry.origin.message();
        let left_out = message.and_then(|message| self.prepared.bill.left_out(message));
        if let Some(left_out) = left_out {
            let shrunk = context.leave_out(&left_out.parts);
            let cache =
                if left_out.is_cache_kept { CacheEffect::Keeps } else { CacheEffect::Breaks };
            for observer in &mut self.observers {
                observer.thinking_left_out(context, &shrunk, cache);
            }
        }
        for observer in &mut self.observers {
            observer.appended(entry);
        }
    }
}

fn replays_recording(walk: &Walker) -> bool {
    let strategy = walk.strategy.as_ref();
    strategy.is_some_and(|strategy| strategy.replays_recording())
}
