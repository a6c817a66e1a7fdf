//! Answers written beforehand: the model of tests.
//!
//! Rules are tried in the order in which they were written. Each has its own answers, given out
//! one after the other; where they run out, the next rule is tried.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{CallFailure, CallResult, Model, ModelKind, Reply, Request, Response, Stop};
use crate::tokens::CountedTexts;
use crate::units::{Tokens, Usage};

pub mod script;

/// Answers a request in the repeat of this number, if it has an answer.
type Respond = Box<dyn Fn(&Request, u32) -> Option<CallResult> + Send + Sync>;

/// A model whose answers were written beforehand.
#[derive(Default)]
pub struct Scripted {
    name: Option<String>,
    rules: Vec<Respond>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("rules", &self.rules.len()).finish_non_exhaustive()
    }
}

impl Scripted {
    /// A model without answers: every request fails with [`CallFailure::NoAnswer`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule that gives out these texts, one after the other.
    #[must_use]
    pub fn texts<T: Into<Arc<str>>>(self, texts: impl IntoIterator<Item = T>) -> Self {
        self.answers(texts.into_iter().map(|text| Ok(response(text))))
    }

    /// Adds a rule that gives out these answers, one after the other; failures are answers too.
    #[must_use]
    pub fn answers(self, answers: impl IntoIterator<Item = CallResult>) -> Self {
        let answers: Mutex<VecDeque<CallResult>> = Mutex::new(answers.into_iter().collect());
        self.answer_in(move |_, _| {
            answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
        })
    }

    /// Gives it another name than `scripted`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Adds a rule that answers every request.
    #[must_use]
    pub fn reply(self, reply: impl Fn(&Request) -> CallResult + Send + Sync + 'static) -> Self {
        self.answer_in(move |request, _| Some(reply(request)))
    }

    /// Adds a rule that answers the requests for which it has an answer. It receives the number of the
    /// repeat, which counts further answers from [`AGAIN`](super::AGAIN).
    #[must_use]
    pub fn answer_in(
        mut self,
        reply: impl Fn(&Request, u32) -> Option<CallResult> + Send + Sync + 'static,
    ) -> Self {
        self.rules.push(Box::new(reply));
        self
    }
}

/// A whole answer of this text, which cost nothing.
pub fn response(text: impl Into<Arc<str>>) -> Response {
    Response {
        text: text.into(),
        stop: Stop::End,
        usage: Usage::uncached(Tokens::ZERO, Tokens::ZERO),
        model: Arc::from("scripted"),
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("scripted")
    }

    fn kind(&self) -> ModelKind {
        ModelKind::Scripted
    }

    fn answer(&self, request: &Request, repeat: u32, _: &CountedTexts) -> Reply {
        let answer = self.rules.iter().find_map(|reply| reply(request, repeat));
        Reply::once(answer.unwrap_or(Err(CallFailure::NoAnswer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Purpose, Task};

    #[test]
    fn rules_are_tried_in_order_until_their_answers_run_out() {
        let only = |purpose| {
            move |request: &Request, _| {
                let text = format!("{} messages", request.messages.len());
                (request.purpose == purpose).then(|| Ok(response(text)))
            }
        };
        let model = Scripted::new()
            .answer_in(only(Purpose::Agent))
            .answers([Err(CallFailure::SERVER), Ok(response("yes"))])
            .texts(["8443"]);
        let ask = |purpose| {
            let request = Request::of_text(purpose, Task::Judge, "port?", Tokens(100));
            let answer = model.respond(&request);
            answer.map(|response| response.text.to_string())
        };
        assert_eq!(ask(Purpose::Judge), Err(CallFailure::SERVER));
        assert_eq!(ask(Purpose::Judge), Ok("yes".into()));
        assert_eq!(ask(Purpose::Agent), Ok("1 messages".into()));
        assert_eq!(ask(Purpose::Judge), Ok("8443".into()));
        assert_eq!(ask(Purpose::Judge), Err(CallFailure::NoAnswer));
        assert_eq!(ask(Purpose::Agent), Ok("1 messages".into()));
    }
}
