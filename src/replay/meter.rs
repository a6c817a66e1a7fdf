//! The meter: the only way to a model, and it keeps the bill.

use std::sync::Arc;
use std::time::Duration;

use super::faults::{self, FaultInjector};
use super::observe::BilledRequest;
use super::{CpuClock, MissedAnswer, Models};
use crate::bill::Scale;
use crate::model::fault::FaultTarget;
use crate::model::{
    AGAIN, CallFailure, Model, Purpose, Reply, Request, Response, Stop, Task, bill,
};
use crate::record::{KeptCall, LostCall, ModelCall};
use crate::step::{CallResult, Caller};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Tokens, Usage};

mod evaluators;

pub(super) use evaluators::EvaluatorRequest;

/// Answers that qualify a probe are never those that are scored: they are asked as a repeat that no
/// run has.
const QUALIFYING_REPEAT: u32 = u32::MAX;

/// Sends each request to the model that is meant for it, and logs what it cost.
pub(super) struct Meter<'a> {
    pub(super) models: &'a Models,
    pub(super) counts: &'a Arc<CountedTexts>,
    pub(super) clock: &'a dyn CpuClock,
    pub(super) injector: FaultInjector,
    /// How the agent's prompts are sized.
    scale: Scale,
    /// Size of the messages the strategy has before it.
    pub(super) history: Size,
    /// Requests of the strategy and failed attempts of the agent, in order.
    pub(super) log: Vec<ModelCall>,
    /// Answers that were paid and are kept nowhere.
    pub(super) lost: Vec<LostCall>,
    /// Requests of the strategy that the observers have not seen yet.
    pub(super) asked: Vec<BilledRequest>,
    /// The first answer that was wanted and not got: no more is asked then.
    pub(super) unanswered: Option<MissedAnswer>,
    /// Processor time spent in models.
    pub(super) time: Duration,
}

impl<'a> Meter<'a> {
    pub(super) fn new(
        models: &'a Models,
        counts: &'a Arc<CountedTexts>,
        clock: &'a dyn CpuClock,
        injector: FaultInjector,
    ) -> Self {
        Self {
            models,
            counts,
            clock,
            injector,
            scale: Scale::COUNTED,
            history: Size::default(),
            log: Vec::new(),
            lost: Vec::new(),
            asked: Vec::new(),
            unanswered: None,
            time: Duration::ZERO,
        }
    }

    /// Counts everything from here on to this call of the agent.
    pub(super) fn start_call(&mut self, call: usize, scale: Scale) {
        self.scale = scale;
        self.injector.call = call;
        self.injector.requests = 0;
    }

    /// Whether the provider refuses this call's prompt though it fits. To be asked once per call.
    pub(super) fn refuses_prompt(&mut self) -> bool {
        self.injector.inject(FaultTarget::Prompt, 0).is_some()
    }

    /// Sends the agent's own prompt until it is answered, and bills the attempts that are not.
    ///
    /// The answered one is not logged: it is the call itself. Returns whether there was one.
    pub(super) fn send_agent(&mut self, prompt: Tokens, response: Tokens) -> bool {
        for attempt in 0..=self.injector.faults.agent_retries {
            let Some(fault) = self.injector.inject(FaultTarget::Agent, attempt) else {
                return true;
            };
            let (usage, failure) = faults::failed_attempt(fault, prompt, response);
            self.log.push(ModelCall {
                call: self.injector.call,
                purpose: Purpose::Agent,
                usage,
                model: None,
                failure: Some(failure),
                key: None,
            });
        }
        false
    }

    /// The model that is meant by a purpose, of judges the one of this number, and the repeat that it
    /// is asked as; `turn` is the number of a further answer or verdict.
    fn route(&self, purpose: Purpose, judge: usize, turn: u32) -> (Option<&'a dyn Model>, u32) {
        let models = self.models;
        let reader = models.reader.as_deref();
        let repeat = self.injector.repeat;
        match purpose {
            Purpose::Agent | Purpose::Compaction | Purpose::Background | Purpose::Recovery => {
                (Some(&*models.summariser), repeat)
            }
            Purpose::Probe => (reader, repeat + AGAIN * turn),
            Purpose::Qualification => (reader, QUALIFYING_REPEAT),
            // The same answer gets the same verdict in every repeat, unless a fresh one is asked for.
            Purpose::Judge => {
                let judges = models.judge.iter().flat_map(|judges| &judges.models);
                (judges.map(|judge| &**judge).nth(judge), AGAIN * turn)
            }
        }
    }

    /// Sends a strategy's own request.
    fn send(&mut self, request: Request) -> CallResult {
        let (routed, repeat) = self.route(request.purpose, 0, 0);
        let fault = match request.purpose {
            Purpose::Compaction | Purpose::Background | Purpose::Recovery => {
                self.injector.inject_in_request()
            }
            Purpose::Agent | Purpose::Probe | Purpose::Qualification | Purpose::Judge => None,
        };
        let model = routed.filter(|_| !self.is_over());
        let mut answered = if let Some(answer) = fault.and_then(faults::without_model) {
            Reply::once(answer)
        } else {
            let mut reply = None;
            let mut ask = || reply = Some(self::answered(&request, model, repeat, self.counts));
            match model {
                Some(model) => model.in_slot(&mut ask),
                None => ask(),
            }
            let answered = reply.unwrap_or_else(|| Reply::once(Err(CallFailure::NoAnswer)));
            if self.unanswered.is_none() {
                self.unanswered = model.and_then(|model| MissedAnswer::of(model, &answered.answer));
            }
            answered
        };
        if let (Some(fault), Ok(whole)) = (fault, &mut answered.answer) {
            faults::alter(fault, whole, self.history, self.counts);
        }
        let booked = self.book(&request, &answered);
        for (failure, usage) in booked.failed {
            self.note(request.clone(), usage, &Err(failure), None);
        }
        self.note(request, booked.usage, &answered.answer, booked.kept);
        answered.answer
    }

    /// Logs a request of the strategy, for the record and for the observers.
    fn note(
        &mut self,
        request: Request,
        usage: Usage,
        answer: &CallResult,
        kept: Option<KeptCall>,
    ) {
        self.log.push(ModelCall {
            call: self.injector.call,
            purpose: request.purpose,
            usage,
            model: request.model.as_deref().map(str::to_owned),
            failure: answer.as_ref().err().map(ToString::to_string),
            key: kept.map(|kept| kept.key),
        });
        self.asked.push(BilledRequest {
            number: self.log.len() - 1,
            usage,
            request,
            call: self.injector.call,
            answer: answer.as_ref().ok().cloned(),
        });
    }

    /// The bill of a request. What is not kept is lost.
    fn book(&mut self, request: &Request, answered: &Reply) -> RequestBill {
        let mut booked = RequestBill::new(request, answered, self.scale, self.counts);
        self.lost.append(&mut booked.lost);
        booked
    }

    /// Whether nothing more is asked.
    fn is_over(&self) -> bool {
        self.unanswered.as_ref().is_some_and(MissedAnswer::ends_asking)
    }
}

/// The bill of a request.
#[derive(Debug)]
pub struct RequestBill {
    /// Attempts that failed before the last one. One that costs nothing says how busy the provider
    /// was, and nothing about the strategy; the times of calls include it.
    pub failed: Vec<(CallFailure, Usage)>,
    /// The usage of the last one.
    pub usage: Usage,
    /// The answer, if it is kept.
    pub kept: Option<KeptCall>,
    /// Answers that were paid for and are not kept.
    pub lost: Vec<LostCall>,
}

impl RequestBill {
    /// Bills the provider's usage, even when a fault replaces the answer.
    pub fn new(request: &Request, answered: &Reply, scale: Scale, counts: &CountedTexts) -> Self {
        let purpose = request.purpose;
        let usage = match answered.paid {
            Some(paid) => paid,
            None => usage_of(request, &answered.answer, scale, counts),
        };
        let attempts = answered.failed.iter().map(|failure| {
            let usage = bill::failed(request, failure, counts);
            (failure.clone(), usage)
        });
        let billed = attempts.filter(|(_, usage)| usage.total() > Tokens::ZERO);
        let failed: Vec<(CallFailure, Usage)> = billed.collect();
        let unkept = answered.paid.filter(|_| answered.key.is_none());
        let failures = failed.iter().map(|(why, usage)| (Some(why.to_string()), *usage));
        let unanswered = failures.chain(unkept.map(|_| (None, usage)));
        let lost = unanswered.map(|(failure, usage)| LostCall { purpose, usage, failure });
        Self {
            lost: lost.collect(),
            kept: answered.key.map(|key| KeptCall {
                key: key.hex(KeptCall::DIGITS),
                purpose,
                usage,
            }),
            failed,
            usage,
        }
    }

    /// The cost of all attempts.
    pub fn total(&self) -> Usage {
        self.failed.iter().map(|(_, usage)| *usage).sum::<Usage>() + self.usage
    }
}

/// The usage of a request: the provider's own, else counted and sized as the agent's prompts are.
fn usage_of(request: &Request, answer: &CallResult, scale: Scale, counts: &CountedTexts) -> Usage {
    let usage = match answer {
        Ok(response) if response.usage.prompt() > Tokens::ZERO => return response.usage,
        Ok(response) => bill::answered(request, response, counts),
        Err(failure) => bill::failed(request, failure, counts),
    };
    // A request that goes on with the agent's prompt begins as that does.
    let head = if request.tools.is_some() { scale.head } else { Tokens::ZERO };
    Usage::uncached(head + scale.factor.bill(usage.prompt()), scale.factor.bill(usage.output))
}

/// Puts a request to its model. A request that is in the recording is sent to no model.
pub(crate) fn answered(
    request: &Request,
    model: Option<&dyn Model>,
    repeat: u32,
    counts: &CountedTexts,
) -> Reply {
    match (&request.task, model) {
        (Task::Recorded { answer }, _) => {
            let response = Response {
                text: answer.clone(),
                stop: Stop::End,
                usage: Usage::default(),
                model: Arc::from("recorded"),
            };
            Reply::once(Ok(response))
        }
        (_, Some(model)) => model.answer(request, repeat, counts),
        (_, None) => Reply::once(Err(CallFailure::NoAnswer)),
    }
}

impl Caller for Meter<'_> {
    fn call(&mut self, requests: Vec<Request>) -> Vec<CallResult> {
        let started = self.clock.now();
        let answers = requests.into_iter().map(|request| self.send(request)).collect();
        self.time += self.clock.now().saturating_sub(started);
        answers
    }
}
