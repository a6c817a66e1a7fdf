//! The meter: the only way to a model, and it keeps the bill.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::faults::{self, Weather};
use super::observe::Asked;
use super::{CpuClock, Models};
use crate::model::{CallFailure, Model, ModelKind, Purpose, Request, Response, Stop, Task};
use crate::record::{FaultEvent, KeptCall, ModelCall};
use crate::step::{Answer, Caller};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Tokens, Usage};

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
    /// Size of the messages the strategy has before it.
    history: Size,
    log: Vec<ModelCall>,
    /// Requests of the strategy that the observers have not seen yet.
    asked: Vec<Asked>,
    aside: Aside,
    /// Which judge of the panel is asked.
    judge: usize,
    /// Whether an answer was wanted that is not recorded.
    missed: bool,
    time: Duration,
}

/// What readers and judges cost: on no strategy's bill.
#[derive(Debug, Default)]
pub(super) struct Aside {
    pub(super) reader: Usage,
    pub(super) judge: Usage,
    /// The answers among them that are kept.
    pub(super) calls: Vec<KeptCall>,
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
            history: Size::default(),
            log: Vec::new(),
            asked: Vec::new(),
            aside: Aside::default(),
            judge: 0,
            missed: false,
            time: Duration::ZERO,
        }
    }

    /// What follows belongs to this call of the agent.
    pub(super) fn start_call(&mut self, call: usize) {
        self.call = call;
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

    /// What the strategy asked since this was last asked, in order.
    pub(super) fn take_asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    /// Processor time spent in models since this was last asked.
    pub(super) fn take_time(&mut self) -> Duration {
        std::mem::take(&mut self.time)
    }

    /// Whether an answer was wanted that is not recorded.
    pub(super) fn missed(&self) -> bool {
        self.missed
    }

    /// Whether probes are answered by a model, live or scripted, and not by rules.
    pub(super) fn has_model_reader(&self) -> bool {
        let reader = self.models.reader.as_deref();
        reader.is_some_and(|reader| reader.kind() != ModelKind::Deterministic)
    }

    /// Verdicts are asked of the judge of this number from now on.
    pub(super) fn turn_to(&mut self, judge: usize) {
        self.judge = judge;
    }

    /// What readers and judges cost since this was last asked: on no strategy's bill.
    pub(super) fn take_aside(&mut self) -> Aside {
        std::mem::take(&mut self.aside)
    }

    /// The strategy's requests and the agent's failed attempts, in order, and what went wrong on
    /// purpose.
    pub(super) fn into_log(self) -> (Vec<ModelCall>, Vec<FaultEvent>) {
        (self.log, self.weather.into_struck())
    }

    fn send(&mut self, request: &Request) -> Answer {
        let model: Option<&dyn Model> = match request.purpose {
            Purpose::Agent | Purpose::Compaction | Purpose::Background | Purpose::Recovery => {
                Some(&*self.models.summariser)
            }
            Purpose::Probe | Purpose::Qualification => self.models.reader.as_deref(),
            Purpose::Judge => {
                let panel = self.models.judge.as_ref();
                panel.and_then(|panel| panel.judges.get(self.judge).map(|judge| &**judge))
            }
        };
        // The same answer gets the same verdict in every repeat.
        let repeat = match request.purpose {
            Purpose::Judge => 0,
            Purpose::Qualification => QUALIFYING_REPEAT,
            _ => self.weather.repeat(),
        };
        let key = RefCell::new(None);
        let ask = |request: &Request| match (&request.task, model) {
            (Task::Recorded { answer }, _) => Ok(Response {
                text: answer.clone(),
                stop: Stop::End,
                usage: Usage::default(),
                model: Arc::from("recorded"),
            }),
            (_, Some(model)) => {
                let answered = model.answer(request, repeat);
                key.replace(answered.key);
                answered.answer
            }
            (_, None) => Err(CallFailure::Unsupported),
        };
        let fault = match request.purpose {
            Purpose::Compaction | Purpose::Background | Purpose::Recovery => self.weather.request(),
            Purpose::Agent | Purpose::Probe | Purpose::Qualification | Purpose::Judge => None,
        };
        let answer = match fault {
            Some(fault) => faults::answer(fault, request, self.history, self.counts, ask),
            None => ask(request),
        };
        self.missed |= matches!(answer, Err(CallFailure::NotRecorded));
        let usage = self.usage(request, &answer);
        let purpose = request.purpose;
        let key = key.take().filter(|_| answer.is_ok());
        let key = key.map(|key| key.hex(KeptCall::DIGITS));
        match request.purpose {
            Purpose::Probe | Purpose::Qualification | Purpose::Judge => {
                match request.purpose {
                    Purpose::Judge => self.aside.judge += usage,
                    _ => self.aside.reader += usage,
                }
                let kept = key.map(|key| KeptCall {
                    key,
                    purpose,
                    usage,
                });
                self.aside.calls.extend(kept);
            }
            Purpose::Agent | Purpose::Compaction | Purpose::Background | Purpose::Recovery => {
                self.log.push(ModelCall {
                    call: self.call,
                    purpose: request.purpose,
                    usage,
                    failure: answer.as_ref().err().map(ToString::to_string),
                    key,
                });
            }
        }
        answer
    }

    /// What the call cost: in the model's own words, or counted here where it says nothing. A
    /// prompt of no tokens is nothing said: llama.cpp tells its usage when it begins to write, and
    /// says 0 where that is half a character.
    ///
    /// A call that timed out or failed on the server has been read: its input is billed. One that
    /// was refused, or never sent, costs nothing.
    fn usage(&self, request: &Request, answer: &Answer) -> Usage {
        match answer {
            Ok(Response { usage, text, .. }) if usage.prompt() == Tokens::ZERO => {
                let output = match usage.output {
                    Tokens::ZERO => self.counts.size(text).tokens,
                    told => told,
                };
                Usage::uncached(self.input(request), output)
            }
            Ok(Response { usage, .. }) => *usage,
            Err(
                CallFailure::Timeout
                | CallFailure::Server
                | CallFailure::Cut
                | CallFailure::Unreadable,
            ) => Usage::uncached(self.input(request), Tokens::ZERO),
            Err(
                CallFailure::Overflow
                | CallFailure::RateLimited
                | CallFailure::Unsupported
                | CallFailure::Rejected(_)
                | CallFailure::Network
                | CallFailure::NotRecorded
                | CallFailure::NoAnswer,
            ) => Usage::default(),
        }
    }

    fn input(&self, request: &Request) -> Tokens {
        let blocks = request.messages.iter().flat_map(|message| message.blocks());
        let system = request.system.iter().map(|text| self.counts.size(text));
        let tools = request.tools.iter();
        let tools = tools.map(|tool| self.counts.schema(tool.text()));
        let sizes = blocks.map(|block| self.counts.block(&block));
        let sizes = sizes.chain(system).chain(tools);
        sizes.map(|size| size.tokens).sum()
    }
}

impl Caller for Meter<'_> {
    fn call(&mut self, requests: Vec<Request>) -> Vec<Answer> {
        let started = self.clock.now();
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            let number = self.log.len();
            let answer = self.send(&request);
            if let Some(logged) = self.log.get(number) {
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
