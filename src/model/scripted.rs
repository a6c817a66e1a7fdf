//! Answers written beforehand: the model of tests.
//!
//! Rules are tried in the order in which they were written. Each has its own answers, given out
//! one after the other; where they run out, the next rule that fits is tried.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{CallFailure, Model, ModelKind, Purpose, Reply, Request, Response, Stop};

use crate::tokens::CountedTexts;
use crate::units::{Tokens, Usage};

pub mod script;

type Answer = Result<Response, CallFailure>;
/// Answers a request in the repeat of this number, if it has an answer.
type Respond = Box<dyn Fn(&Request, u32) -> Option<Answer> + Send + Sync>;

/// Which requests a rule answers: all, if nothing is said.
#[derive(Debug, Clone, Default)]
pub struct RequestMatcher {
    purpose: Option<Purpose>,
    containing: Option<String>,
}

impl RequestMatcher {
    /// Every request.
    pub fn always() -> Self {
        Self::default()
    }

    /// Requests of this purpose.
    pub fn purpose(purpose: Purpose) -> Self {
        Self {
            purpose: Some(purpose),
            containing: None,
        }
    }

    /// Of these, requests of which some text holds `part`.
    #[must_use]
    pub fn containing(mut self, part: impl Into<String>) -> Self {
        self.containing = Some(part.into());
        self
    }

    fn fits(&self, request: &Request) -> bool {
        self.purpose
            .is_none_or(|purpose| purpose == request.purpose.as_asked())
            && self.containing.as_ref().is_none_or(|part| {
                let texts = request.messages.iter().flat_map(|m| m.model_text());
                request
                    .system
                    .iter()
                    .chain(texts)
                    .any(|text| text.contains(part))
            })
    }
}

/// A model whose answers were written beforehand.
#[derive(Default)]
pub struct Scripted {
    name: Option<String>,
    rules: Vec<(RequestMatcher, Respond)>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted")
            .field("rules", &self.rules.len())
            .finish_non_exhaustive()
    }
}

impl Scripted {
    /// A model without answers: every request fails with [`CallFailure::NoAnswer`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule that gives out these texts, one after the other.
    #[must_use]
    pub fn texts<T: Into<Arc<str>>>(
        self,
        when: RequestMatcher,
        texts: impl IntoIterator<Item = T>,
    ) -> Self {
        self.answers(when, texts.into_iter().map(|text| Ok(response(text))))
    }

    /// Adds a rule that gives out these answers, one after the other; failures are answers too.
    #[must_use]
    pub fn answers(self, when: RequestMatcher, answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: Mutex<VecDeque<Answer>> = Mutex::new(answers.into_iter().collect());
        self.answer_in(when, move |_, _| {
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.pop_front()
        })
    }

    /// Gives it another name than `scripted`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Adds a rule that answers every request that fits.
    #[must_use]
    pub fn reply(
        self,
        when: RequestMatcher,
        reply: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        self.answer_in(when, move |request, _| Some(reply(request)))
    }

    /// Adds a rule that answers the requests that fit and for which it has an answer. It receives the
    /// number of the repeat, which counts further answers from [`AGAIN`](super::AGAIN).
    #[must_use]
    pub fn answer_in(
        mut self,
        when: RequestMatcher,
        reply: impl Fn(&Request, u32) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        self.rules.push((when, Box::new(reply)));
        self
    }

    fn find(&self, request: &Request, repeat: u32) -> Answer {
        let mut fitting = self.rules.iter().filter(|(when, _)| when.fits(request));
        let answer = fitting.find_map(|(_, reply)| reply(request, repeat));
        answer.unwrap_or(Err(CallFailure::NoAnswer))
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

    fn respond(&self, request: &Request) -> Answer {
        self.find(request, 0)
    }

    fn answer(&self, request: &Request, repeat: u32, _: &CountedTexts) -> Reply {
        Reply::once(self.find(request, repeat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Task;
    use crate::session::{Message, Role};

    fn request(purpose: Purpose, text: &str) -> Request {
        Request {
            purpose,
            task: Task::Judge,
            system: None,
            tools: None,
            messages: vec![Arc::new(Message::text(Role::User, text))],
            max_output: Tokens(100),
            model: None,
        }
    }

    #[test]
    fn rules_are_tried_in_order_until_their_answers_run_out() {
        let model = Scripted::new()
            .answers(
                RequestMatcher::purpose(Purpose::Judge),
                [Err(CallFailure::SERVER), Ok(response("yes"))],
            )
            .texts(RequestMatcher::always().containing("port"), ["8443"])
            .reply(RequestMatcher::purpose(Purpose::Agent), |request| {
                Ok(response(format!("{} messages", request.messages.len())))
            });
        let ask = |purpose, text: &str| {
            let answer = model.respond(&request(purpose, text));
            answer.map(|response| response.text.to_string())
        };
        assert_eq!(ask(Purpose::Judge, "port?"), Err(CallFailure::SERVER));
        assert_eq!(ask(Purpose::Judge, "port?"), Ok("yes".into()));
        assert_eq!(ask(Purpose::Judge, "port?"), Ok("8443".into()));
        assert_eq!(ask(Purpose::Judge, "port?"), Err(CallFailure::NoAnswer));
        assert_eq!(ask(Purpose::Agent, "go"), Ok("1 messages".into()));
        assert_eq!(ask(Purpose::Agent, "go"), Ok("1 messages".into()));
        assert_eq!(ask(Purpose::Probe, "x"), Err(CallFailure::NoAnswer));
    }
}
