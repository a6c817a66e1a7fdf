//! The strategy's own requests: answered by its model, or with the answers of an earlier time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::played::StrategyWork;
use super::state::{Skip, StrategySetting};
use crate::model::{CallFailure, Model, ModelKind, Reply, Request};
use crate::replay::answered;
use crate::step::{CallResult, Caller};
use crate::strategy::Compaction;
use crate::tokens::{CountedTexts, Size};
use crate::walk::{WalkHost, WalkMoment, Walker};

/// A request of the strategy's with its reply.
pub(super) type AnsweredRequest = (Request, Reply);

/// Answers a strategy, and keeps what it did.
#[derive(Debug)]
pub(super) struct StrategyCaller {
    setting: Arc<StrategySetting>,
    repeat: u32,
    /// The call of the agent that the work is for.
    pub(super) call: usize,
    /// Replies of an earlier time, to be given first.
    pub(super) given: VecDeque<Reply>,
    /// All requests so far, by call.
    pub(super) asked: Vec<(usize, AnsweredRequest)>,
    /// Those since the last work was noted.
    new: Vec<Request>,
    /// The work so far, for the record.
    pub(super) work: BTreeMap<WalkMoment, StrategyWork>,
}

impl StrategyCaller {
    pub(super) fn new(setting: Arc<StrategySetting>, repeat: u32) -> Self {
        Self {
            setting,
            repeat,
            call: 0,
            given: VecDeque::new(),
            asked: Vec::new(),
            new: Vec::new(),
            work: BTreeMap::new(),
        }
    }
}

impl Caller for StrategyCaller {
    fn call(&mut self, requests: Vec<Request>) -> Vec<CallResult> {
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            let StrategySetting { summariser, counts, .. } = &*self.setting;
            let given = self.given.pop_front();
            let reply = given
                .unwrap_or_else(|| answered(&request, Some(&**summariser), self.repeat, counts));
            answers.push(reply.answer.clone());
            self.new.push(request.clone());
            self.asked.push((self.call, (request, reply)));
        }
        answers
    }
}

impl WalkHost for StrategyCaller {
    type Stop = Skip;

    fn run(&mut self, _: Size, code: impl FnOnce(&mut dyn Caller) -> Compaction) -> Compaction {
        code(self)
    }

    fn done(&mut self, moment: WalkMoment, done: Compaction, _: &Walker) -> Result<(), Skip> {
        let requests = std::mem::take(&mut self.new);
        let unchanged = done.applied.is_empty() && done.failures.is_empty();
        if !(unchanged && done.saved.is_empty() && requests.is_empty()) {
            // A refusal is answered before the call is.
            let moment = match moment {
                WalkMoment::Refused(call) => WalkMoment::Before(call),
                WalkMoment::Append(_) | WalkMoment::Before(_) | WalkMoment::After(_) => moment,
            };
            let work = self.work.entry(moment).or_default();
            work.applied.extend(done.applied);
            work.failures.extend(done.failures);
            work.saved.extend(done.saved);
            work.requests.extend(requests);
        }
        done.outcome.map_err(|_| Skip::Failed)
    }
}

/// A model that gives the replies of an earlier time, in their order.
#[derive(Debug)]
pub(super) struct Given {
    name: String,
    kind: ModelKind,
    replies: Mutex<VecDeque<Reply>>,
}

impl Given {
    pub(super) fn new(model: &dyn Model, replies: VecDeque<Reply>) -> Self {
        Self { name: model.name().to_owned(), kind: model.kind(), replies: Mutex::new(replies) }
    }
}

impl Model for Given {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> ModelKind {
        self.kind
    }

    fn answer(&self, _: &Request, _: u32, _: &CountedTexts) -> Reply {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let next = replies.pop_front();
        next.unwrap_or_else(|| Reply::once(Err(CallFailure::NoAnswer)))
    }
}
