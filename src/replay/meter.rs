//! The meter: the only way to a model, and it keeps the bill.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::faults::{self, Weather};
use super::observe::Asked;
use super::{CpuClock, Models, Unanswered};
use crate::bill::Scale;
use crate::model::{
    AGAIN, CallFailure, Model, ModelKind, Paid, Purpose, Request, Response, Stop, Task, bill,
};
use crate::record::{FaultEvent, KeptCall, LostCall, ModelCall};
use crate::step::{Answer, Caller};
use crate::tokens::{CountedTexts, Size};
use crate::units::{ContentHash, Tokens, Usage};

mod aside;

pub(super) use aside::{Aside, Put};

/// Answers that qualify a probe are never those that are scored: they are asked as a repeat that no
/// run has.
const QUALIFYING_REPEAT: u32 = u32::MAX;

/// Sends each request to the model that is meant for it, and logs what it cost.
pub(super) struct Meter<'a> {
    models: &'a Models,
    counts: &'a Arc<CountedTexts>,
    clock: &'a dyn CpuClock,
    weather: Weather,
    call: usize,
    /// How the agent's prompts are sized.
    scale: Scale,
    /// Size of the messages the strategy has before it.
    history: Size,
    log: Vec<ModelCall>,
    /// What was paid and is kept nowhere.
    lost: Vec<LostCall>,
    /// Requests of the strategy that the observers have not seen yet.
    asked: Vec<Asked>,
    /// The first answer that was wanted and not got.
    unanswered: Option<Unanswered>,
    time: Duration,
}

impl<'a> Meter<'a> {
    pub(super) fn new(
        models: &'a Models,
        counts: &'a Arc<CountedTexts>,
        clock: &'a dyn CpuClock,
        weather: Weather,
    ) -> Self {
        Self {
            models,
            counts,
            clock,
            weather,
            call: 0,
            scale: Scale::COUNTED,
            history: Size::default(),
            log: Vec::new(),
            lost: Vec::new(),
            asked: Vec::new(),
            unanswered: None,
            time: Duration::ZERO,
        }
    }

    /// What follows belongs to this call of the agent.
    pub(super) fn start_call(&mut self, call: usize, scale: Scale) {
        self.call = call;
        self.scale = scale;
        self.weather.start_call(call);
    }

    /// The strategy has messages of this size before it.
    pub(super) fn stand_before(&mut self, history: Size) {
        self.history = history;
    }

    /// Whether the provider refuses this call's prompt though it fits.
    pub(super) fn refuses_prompt(&mut self) -> bool {
        self.weather.refuses_prompt()
    }

    /// Sends the agent's own prompt until it is answered, and bills the attempts that are not.
    ///
    /// The answered one is not logged: it is the call itself. Returns whether there was one.
    pub(super) fn send_agent(&mut self, prompt: Tokens, response: Tokens) -> bool {
        for attempt in 0..=self.weather.agent_retries() {
            let Some(fault) = self.weather.agent(attempt) else {
                return true;
            };
            let (usage, failure) = faults::failed_attempt(fault, prompt, response);
            self.log.push(ModelCall {
                call: self.call,
                purpose: Purpose::Agent,
                usage,
                failure: Some(failure),
                key: None,
            });
        }
        false
    }

    /// Whether an answer was wanted and not got: no more is asked then.
    pub(super) fn is_unanswered(&self) -> bool {
        self.unanswered.is_some()
    }

    /// Counts texts of the session.
    pub(super) fn counts(&self) -> &Arc<CountedTexts> {
        self.counts
    }

    /// Adds what was paid beside the requests sent here and is kept nowhere.
    pub(super) fn lose(&mut self, lost: Vec<LostCall>) {
        self.lost.extend(lost);
    }

    /// What the strategy asked since this was last asked, in order.
    pub(super) fn take_asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    /// Processor time spent in models since this was last asked.
    pub(super) fn take_time(&mut self) -> Duration {
        std::mem::take(&mut self.time)
    }

    /// The first answer that was wanted and not got.
    pub(super) fn take_unanswered(&mut self) -> Option<Unanswered> {
        self.unanswered.take()
    }

    /// Whether probes are answered by a model, live or scripted, and not by rules.
    pub(super) fn has_model_reader(&self) -> bool {
        let reader = self.models.reader.as_deref();
        reader.is_some_and(|reader| reader.kind() != ModelKind::Deterministic)
    }

    /// The strategy's requests and the agent's failed attempts, in order; what was paid and is kept
    /// nowhere; and what went wrong on purpose.
    pub(super) fn into_log(self) -> (Vec<ModelCall>, Vec<LostCall>, Vec<FaultEvent>) {
        (self.log, self.lost, self.weather.into_struck())
    }

    /// The model that is meant by a purpose; of judges the one of this number.
    fn model_for(&self, purpose: Purpose, judge: usize) -> Option<&'a dyn Model> {
        let models = self.models;
        match purpose {
            Purpose::Agent | Purpose::Compaction | Purpose::Background | Purpose::Recovery => {
                Some(&*models.summariser)
            }
            Purpose::Probe | Purpose::Qualification => models.reader.as_deref(),
            Purpose::Judge => {
                let panel = models.judge.as_ref();
                panel.and_then(|panel| panel.judges.get(judge).map(|judge| &**judge))
            }
        }
    }

    /// The repeat that a request is asked as; `turn` is the number of a further answer or verdict.
    fn repeat_of(&self, purpose: Purpose, turn: u32) -> u32 {
        match purpose {
            // The same answer gets the same verdict in every repeat, unless a fresh one is asked for.
            Purpose::Judge => AGAIN * turn,
            Purpose::Probe => self.weather.repeat() + AGAIN * turn,
            Purpose::Qualification => QUALIFYING_REPEAT,
            Purpose::Agent | Purpose::Compaction | Purpose::Background | Purpose::Recovery => {
                self.weather.repeat()
            }
        }
    }

    /// Sends a strategy's own request.
    fn send(&mut self, request: &Request) -> Answer {
        let model = self.model_for(request.purpose, 0);
        let repeat = self.repeat_of(request.purpose, 0);
        let came = RefCell::new(Came::default());
        let counts = self.counts;
        let unanswered = RefCell::new(self.unanswered.take());
        let ask = |request: &Request| {
            let is_over = unanswered
                .borrow()
                .as_ref()
                .is_some_and(Unanswered::ends_asking);
            let (answer, this) = answered(request, model.filter(|_| !is_over), repeat, counts);
            came.replace(this);
            if let (Some(model), false) = (model, is_over) {
                let mut first = unanswered.borrow_mut();
                *first = first.take().or_else(|| Unanswered::of(model, &answer));
            }
            answer
        };
        let fault = match request.purpose {
            Purpose::Compaction | Purpose::Background | Purpose::Recovery => self.weather.request(),
            Purpose::Agent | Purpose::Probe | Purpose::Qualification | Purpose::Judge => None,
        };
        let answer = match fault {
            Some(fault) => faults::answer(fault, request, self.history, self.counts, ask),
            None => ask(request),
        };
        self.unanswered = unanswered.into_inner();
        let came = came.into_inner();
        for failure in &came.failed {
            let usage = bill::failed(request, failure, self.counts);
            if self.lost_attempt(request.purpose, usage, failure) {
                self.asked.push(Asked {
                    number: self.log.len(),
                    usage,
                    request: request.clone(),
                    call: self.call,
                    answer: None,
                });
                self.log.push(ModelCall {
                    call: self.call,
                    purpose: request.purpose,
                    usage,
                    failure: Some(failure.to_string()),
                    key: None,
                });
            }
        }
        let (usage, key) = self.paid(request, &came, &answer);
        self.log.push(ModelCall {
            call: self.call,
            purpose: request.purpose,
            usage,
            failure: answer.as_ref().err().map(ToString::to_string),
            key: key.map(|key| key.hex(KeptCall::DIGITS)),
        });
        answer
    }

    /// What a request cost, and the name under which its answer is kept.
    fn paid(
        &mut self,
        request: &Request,
        came: &Came,
        answer: &Answer,
    ) -> (Usage, Option<ContentHash>) {
        // Bills the provider's usage, even when a fault replaces the answer.
        let usage = match came.paid {
            Some(paid) => paid.usage,
            None => self.usage(request, answer),
        };
        if came.paid.is_some_and(|paid| !paid.is_kept) {
            self.lost.push(LostCall {
                purpose: request.purpose,
                usage,
                failure: None,
            });
        }
        (usage, came.key)
    }

    /// Notes an attempt that failed before another was made, and says whether it is on the bill. One
    /// that costs nothing says how busy the provider was, and nothing about the strategy: times of
    /// calls tell of it.
    fn lost_attempt(&mut self, purpose: Purpose, usage: Usage, failure: &CallFailure) -> bool {
        if usage.total() == Tokens::ZERO {
            return false;
        }
        self.lost.push(LostCall {
            purpose,
            usage,
            failure: Some(failure.to_string()),
        });
        true
    }

    /// The usage of a request: the provider's own, else counted and sized as the agent's
    /// prompts are.
    fn usage(&self, request: &Request, answer: &Answer) -> Usage {
        let (usage, is_told) = match answer {
            Ok(response) => (
                bill::answered(request, response, self.counts),
                response.usage.prompt() > Tokens::ZERO,
            ),
            Err(failure) => (bill::failed(request, failure, self.counts), false),
        };
        if is_told {
            return usage;
        }
        let Scale { head, factor } = self.scale;
        // A request that goes on with the agent's prompt begins as that does.
        let head = if request.tools.is_some() {
            head
        } else {
            Tokens::ZERO
        };
        Usage::uncached(
            head + factor.bill(usage.prompt()),
            factor.bill(usage.output),
        )
    }
}

/// Puts a request to its model. One that is in the recording is asked of nobody.
fn answered(
    request: &Request,
    model: Option<&dyn Model>,
    repeat: u32,
    counts: &CountedTexts,
) -> (Answer, Came) {
    match (&request.task, model) {
        (Task::Recorded { answer }, _) => {
            let response = Response {
                text: answer.clone(),
                stop: Stop::End,
                usage: Usage::default(),
                model: Arc::from("recorded"),
            };
            (Ok(response), Came::default())
        }
        (_, Some(model)) => {
            let answered = model.answer(request, repeat, counts);
            let came = Came {
                key: answered.key,
                failed: answered.failed,
                paid: answered.paid,
            };
            (answered.answer, came)
        }
        (_, None) => (Err(CallFailure::NoAnswer), Came::default()),
    }
}

/// What came of a request beside its answer.
#[derive(Default)]
struct Came {
    key: Option<ContentHash>,
    failed: Vec<CallFailure>,
    paid: Option<Paid>,
}

impl Caller for Meter<'_> {
    fn call(&mut self, requests: Vec<Request>) -> Vec<Answer> {
        let started = self.clock.now();
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            let before = self.log.len();
            let answer = self.send(&request);
            // Attempts that failed before it stand in front of it.
            let number = self.log.len().saturating_sub(1);
            if let Some(logged) = self.log.get(number).filter(|_| number >= before) {
                self.asked.push(Asked {
                    number,
                    usage: logged.usage,
                    request,
                    call: self.call,
                    answer: answer.as_ref().ok().cloned(),
                });
            }
            answers.push(answer);
        }
        self.time += self.clock.now().saturating_sub(started);
        answers
    }
}
