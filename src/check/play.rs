//! One replay of a scene, with all that laws look at: the prompts, the requests to models, and the record.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::world::{Matter, Scene};
use crate::context::{Applied, Context, Entry};
use crate::model::fault::{Fault, FaultSchedule, Faults};
use crate::model::offline::Offline;
use crate::model::price::Prices;
use crate::model::scripted::{Scripted, response};
use crate::model::{CallFailure, Model, Request, Response, Stop, Task};
use crate::probe::faithful::{Faithful, said_in};
use crate::record::{CellRecord, CompactionEvent, End};
use crate::replay::observe::changes::Changes;
use crate::replay::observe::validity::Validity;
use crate::replay::observe::{BilledRequest, CallView, Observer};
use crate::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay_observed};
use crate::session::Message;
use crate::step::{CallResult, Caller, Step, drive};
use crate::stop::StopToken;
use crate::strategy::situation::Situation;
use crate::strategy::{Compaction, StageError, Strategy, StrategyError, StrategySpec};
use crate::tokens::{BytesPer4, CharsPer4, CountedTexts, TokenCounter};
use crate::units::Tokens;
use crate::window::Window;

/// How the model behaves that is asked for summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SummaryWriter {
    /// It quotes every fact that it is shown.
    Faithful,
    /// No answer comes in time.
    Fails,
    /// Its answers are empty.
    Empty,
    /// Its answers break off half way.
    Cut,
    /// It declines.
    Refuses,
    /// It calls a tool, and writes nothing.
    CallsTool,
}

/// A prompt as it was sent.
#[derive(Debug, Clone)]
pub(super) struct SentPrompt {
    /// Number of the call.
    pub(super) call: usize,
    /// Messages of the session so far.
    pub(super) before: usize,
    pub(super) tokens: Tokens,
    /// Tokens of the whole history at this call.
    pub(super) history: Tokens,
    pub(super) entries: Vec<Entry>,
}

/// A request to a model, and what came back.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) call: usize,
    pub(super) request: Request,
    pub(super) answer: Option<Response>,
}

/// A message that a patch wrote.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenMessage {
    pub(super) call: usize,
    pub(super) message: Arc<Message>,
}

/// The observations of a replay.
#[derive(Debug, Clone, Default)]
pub(super) struct Played {
    pub(super) record: CellRecord,
    pub(super) prompts: Vec<SentPrompt>,
    pub(super) asked: Vec<Asked>,
    pub(super) written: Vec<WrittenMessage>,
    /// Sizes of contexts that were given back as they were returned, and changed again, with the call.
    pub(super) again: Vec<(usize, Tokens)>,
    /// Whether there was no time to play it to its end.
    is_cut: bool,
}

impl Played {
    /// The compactions; of a strategy that asks a model those at calls with a request, and not what it cuts besides.
    pub(super) fn fired(&self, asks: bool) -> Vec<&CompactionEvent> {
        let asked: BTreeSet<usize> = self.asked.iter().map(|asked| asked.call).collect();
        let events =
            self.record.compactions.iter().filter(|event| !asks || asked.contains(&event.call));
        let mut events: Vec<&CompactionEvent> = events.collect();
        // The first event of a call has the context that made it fire.
        events.dedup_by_key(|event| event.call);
        events
    }

    /// The answers of models.
    pub(super) fn answers(&self) -> impl Iterator<Item = &Response> {
        self.asked.iter().filter_map(|asked| asked.answer.as_ref())
    }

    /// The reason why it failed.
    pub(super) fn failure(&self) -> Option<String> {
        match &self.record.end {
            End::Failed { call, error } => Some(format!("call {call}: {error}")),
            End::Completed | End::Died { .. } | End::NotMeasurable { .. } => None,
        }
    }
}

/// A strategy on a scene: each replay is made once, when it is first looked at.
#[derive(Debug)]
pub(super) struct Plays<'a> {
    pub(super) spec: &'a StrategySpec,
    pub(super) scene: Scene,
    /// Requested when the time for all plays is over.
    pub(super) stop: &'a StopToken,
    usual: OnceLock<Played>,
}

impl<'a> Plays<'a> {
    pub(super) fn of(spec: &'a StrategySpec, scene: Scene, stop: &'a StopToken) -> Self {
        Self { spec, scene, stop, usual: OnceLock::new() }
    }

    /// With the summariser that quotes every fact, as far as there was time.
    pub(super) fn usual(&self) -> &Played {
        self.usual.get_or_init(|| self.play(SummaryWriter::Faithful, self.scene.faults(), false))
    }

    /// Whether there was time for the usual play.
    pub(super) fn is_whole(&self) -> bool {
        !self.usual().is_cut
    }

    /// With another summariser; `None` without the time for it.
    pub(super) fn with(&self, writer: SummaryWriter) -> Option<Played> {
        self.whole(writer, Faults::default(), false)
    }

    /// With each context given back to the strategy that has just returned it.
    pub(super) fn twice(&self) -> Option<Played> {
        self.whole(SummaryWriter::Faithful, Faults::default(), true)
    }

    /// Under a fault, at every second chance.
    pub(super) fn under(&self, fault: Fault) -> Option<Played> {
        let mut faults = Faults::default();
        let schedule = FaultSchedule::Probability(0.5);
        faults.schedules.insert(fault, schedule);
        self.whole(SummaryWriter::Faithful, faults, false)
    }

    fn whole(&self, writer: SummaryWriter, faults: Faults, is_asked_twice: bool) -> Option<Played> {
        Some(self.play(writer, faults, is_asked_twice)).filter(|played| !played.is_cut)
    }

    fn play(&self, writer: SummaryWriter, faults: Faults, is_asked_twice: bool) -> Played {
        if self.stop.is_requested() {
            return Played { is_cut: true, ..Played::default() };
        }
        let mut played = self.played(writer, faults, is_asked_twice);
        // One that ended by itself counts, however late: a program that hangs is not short of time.
        played.is_cut =
            matches!(&played.record.end, End::NotMeasurable { why, .. } if why == OUT_OF_TIME);
        played
    }

    fn played(&self, writer: SummaryWriter, faults: Faults, is_asked_twice: bool) -> Played {
        let seen = Arc::new(Mutex::new(Played::default()));
        let counts = Arc::new(CountedTexts::new(counter_of(&self.scene)));
        let answers = Answers::of(&self.scene, writer, &counts);
        let scripted = answers.clone();
        let summariser = Scripted::new().reply(move |request| scripted.to(request));
        let models = Models { summariser: Arc::new(summariser), ..Models::offline(&counts) };
        let name = CellName::first(self.spec.name());
        let prepared = PreparedSession::new(self.scene.session.clone(), counts, Vec::new());
        let (Ok(mut prepared), Ok(inner)) = (prepared, self.spec.build()) else {
            return Played::default();
        };
        prepared.faults = Arc::new(faults);
        if let Ok(prices) = Prices::built_in() {
            prepared.limits = prices.limits("anthropic", None);
        }
        let strategy = Box::new(Timed {
            inner: Box::new(inner),
            stop: self.stop.clone(),
            again: is_asked_twice.then(|| (seen.clone(), answers)),
        });
        let watch = Watch { seen: seen.clone(), history: Tokens::ZERO };
        let observers: Vec<Box<dyn Observer>> =
            vec![Box::new(watch), Box::new(Validity::default()), Box::new(Changes::default())];
        let replayed = Replayed::Strategy(strategy, Window::new(self.scene.window));
        let record =
            replay_observed(&prepared, name, replayed, &models, &NoClock, observers).record;
        let mut played = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        played.record = record;
        played
    }
}

/// The words of a model that declines.
const REFUSAL: &str = "I'm sorry, but I can't help with that.";

/// Chinese has about a token a character, which is three bytes.
fn counter_of(scene: &Scene) -> Arc<dyn TokenCounter> {
    match scene.subject {
        Matter::Chinese => Arc::new(BytesPer4),
        _ => Arc::new(CharsPer4),
    }
}

/// The answers of a play's summariser.
#[derive(Debug, Clone)]
struct Answers {
    faithful: Arc<Faithful>,
    offline: Arc<Offline>,
    counter: Arc<dyn TokenCounter>,
    window: Tokens,
    writer: SummaryWriter,
}

impl Answers {
    fn of(scene: &Scene, writer: SummaryWriter, counts: &Arc<CountedTexts>) -> Self {
        let faithful = Faithful::new(scene.quotes(), scene.window.0);
        Self {
            faithful: Arc::new(faithful.numbered_after(scene.first_answer)),
            offline: Arc::new(Offline::new(counts.clone())),
            counter: counter_of(scene),
            window: scene.window,
            writer,
        }
    }

    fn to(&self, request: &Request) -> CallResult {
        if self.writer == SummaryWriter::Fails {
            return Err(CallFailure::Timeout);
        }
        if self.counter.count(&said_in(request)) > self.window {
            return Err(CallFailure::Overflow);
        }
        if !matches!(request.task, Task::Summarise { .. }) {
            return self.offline.respond(request);
        }
        let (text, stop) = match self.writer {
            SummaryWriter::Empty => (String::new(), Stop::End),
            SummaryWriter::Cut => {
                let (mut text, _) = self.faithful.answer(request);
                text.truncate(text.floor_char_boundary(text.len() / 2));
                (text, Stop::Length)
            }
            SummaryWriter::Refuses => (REFUSAL.to_owned(), Stop::Refusal),
            SummaryWriter::CallsTool => (String::new(), Stop::ToolUse),
            SummaryWriter::Faithful | SummaryWriter::Fails => self.faithful.answer(request),
        };
        Ok(Response { stop, ..response(text) })
    }
}

/// Keeps each prompt and each request.
#[derive(Debug)]
struct Watch {
    seen: Arc<Mutex<Played>>,
    history: Tokens,
}

impl Watch {
    fn with(&self, add: impl FnOnce(&mut Played)) {
        add(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Observer for Watch {
    fn appended(&mut self, entry: &Entry) {
        self.history += entry.size().tokens;
    }

    fn asked(&mut self, asked: &BilledRequest) {
        self.with(|played| {
            played.asked.push(Asked {
                call: asked.call,
                request: asked.request.clone(),
                answer: asked.answer.clone(),
            });
        });
    }

    fn patched(&mut self, applied: &Applied) {
        let written = applied
            .written()
            .map(|entry| WrittenMessage { call: applied.call, message: entry.message.clone() });
        self.with(|played| played.written.extend(written));
    }

    fn called(&mut self, view: &CallView<'_>) {
        let prompt = SentPrompt {
            call: view.call,
            before: view.before,
            tokens: view.prompt(),
            history: self.history,
            entries: view.context.entries().to_vec(),
        };
        self.with(|played| played.prompts.push(prompt));
    }
}

impl Caller for Answers {
    fn call(&mut self, requests: Vec<Request>) -> Vec<CallResult> {
        requests.iter().map(|request| self.to(request)).collect()
    }
}

/// A strategy that is asked nothing before a call once the time is over, which ends its play.
#[derive(Debug)]
struct Timed {
    inner: Box<dyn Strategy>,
    stop: StopToken,
    /// Set where it is asked twice before each call: where to note what it changes then, which is left out of what
    /// happens next.
    again: Option<(Arc<Mutex<Played>>, Answers)>,
}

/// The reason of a play that ended without the time for more.
const OUT_OF_TIME: &str = "the time is over";

impl Strategy for Timed {
    fn on_load(&mut self, loaded: &[Entry]) {
        self.inner.on_load(loaded);
    }

    fn on_append(&mut self, context: Context, cx: &Situation) -> Compaction {
        self.inner.on_append(context, cx)
    }

    fn on_rewrite(&mut self, messages: &[usize]) {
        self.inner.on_rewrite(messages);
    }

    fn before_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        if self.stop.is_requested() {
            let (stage, source) = ("check".into(), StageError::NotMeasurable { why: OUT_OF_TIME });
            let outcome = Err(StrategyError::Stage { stage, source });
            return Step::Done(Compaction { outcome, ..Compaction::unchanged(context) });
        }
        let Some((seen, answers)) = &mut self.again else {
            return self.inner.before_call(context, cx);
        };
        let first = drive(self.inner.before_call(context, cx), answers);
        if first.outcome.is_ok() && !first.applied.is_empty() {
            let size = first.context.size().tokens;
            let again = self.inner.before_call(first.context.clone(), cx);
            if !drive(again, answers).applied.is_empty() {
                seen.lock().unwrap_or_else(PoisonError::into_inner).again.push((cx.call, size));
            }
        }
        Step::Done(first)
    }

    fn on_overflow<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.inner.on_overflow(context, cx)
    }

    fn after_call<'a>(&'a mut self, context: Context, cx: &'a Situation) -> Step<'a, Compaction> {
        self.inner.after_call(context, cx)
    }

    fn replays_recording(&self) -> bool {
        self.inner.replays_recording()
    }

    fn edge(&self, context: &Context) -> Option<usize> {
        self.inner.edge(context)
    }

    fn blocks_agents_at(&self) -> Option<f64> {
        self.inner.blocks_agents_at()
    }

    fn end(&mut self) -> Result<(), StrategyError> {
        self.inner.end()
    }
}
