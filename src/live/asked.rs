//! The strategy's own requests: answered by its model, or with the answers of an earlier time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::model::{CallFailure, Model, ModelKind, Reply, Request, Response};
use crate::replay::answered;
use crate::step::{Answer, Caller};
use crate::tokens::CountedTexts;

/// A request of the strategy's with its reply.
pub(super) type Asked = (Request, Reply);

/// Answers a strategy at one call of the agent.
pub(super) struct Asking<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) counts: &'a CountedTexts,
    pub(super) repeat: u32,
    /// Replies of an earlier time, to be given first.
    pub(super) given: VecDeque<Reply>,
    /// All requests so far.
    pub(super) asked: Vec<Asked>,
}

impl Caller for Asking<'_> {
    fn call(&mut self, requests: Vec<Request>) -> Vec<Answer> {
        let answer = |request: Request| {
            let given = self.given.pop_front();
            let new = || answered(&request, Some(self.model), self.repeat, self.counts);
            let reply = given.unwrap_or_else(new);
            let answer = reply.answer.clone();
            self.asked.push((request, reply));
            answer
        };
        requests.into_iter().map(answer).collect()
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
        Self {
            name: model.name().to_owned(),
            kind: model.kind(),
            replies: Mutex::new(replies),
        }
    }

    fn next(&self) -> Reply {
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        let next = replies.pop_front();
        next.unwrap_or_else(|| Reply::once(Err(CallFailure::NoAnswer)))
    }
}

impl Model for Given {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> ModelKind {
        self.kind
    }

    fn respond(&self, _: &Request) -> Result<Response, CallFailure> {
        self.next().answer
    }

    fn answer(&self, _: &Request, _: u32, _: &CountedTexts) -> Reply {
        self.next()
    }
}
