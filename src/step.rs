//! A computation that may need a model, without being able to call one.
//!
//! Strategies and graders return a [`Step`]: either they are done, or they ask, and say how they go
//! on once they are answered. The driver of the step owns the meter, so nothing can be asked that
//! is not billed, and a recorded answer is fed back on the same path as a live one.

pub use crate::model::CallResult;
use crate::model::{CallFailure, Request};

/// Done, or waiting for a model.
#[derive(Debug)]
pub enum Step<'a, T> {
    /// The result.
    Done(T),
    /// Requests, and how to go on with their answers.
    Ask(Ask<'a, T>),
}

type Resume<'a, T> = Box<dyn FnOnce(Vec<CallResult>) -> Step<'a, T> + Send + 'a>;

/// Requests, and how to go on with their answers.
pub struct Ask<'a, T> {
    /// The requests, in order. May be answered concurrently.
    pub requests: Vec<Request>,
    resume: Resume<'a, T>,
}

impl<T> std::fmt::Debug for Ask<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ask").field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl<'a, T: 'a> Ask<'a, T> {
    /// Goes on with the answers: as many as there were requests, in their order.
    pub fn resume(self, answers: Vec<CallResult>) -> Step<'a, T> {
        (self.resume)(answers)
    }
}

impl<'a, T: 'a> Step<'a, T> {
    /// Asks one request.
    pub fn ask(request: Request, then: impl FnOnce(CallResult) -> Step<'a, T> + Send + 'a) -> Self {
        Self::ask_all(vec![request], move |mut answers| {
            then(answers.pop().unwrap_or(Err(CallFailure::NoAnswer)))
        })
    }

    /// Asks several requests at once.
    pub fn ask_all(
        requests: Vec<Request>,
        then: impl FnOnce(Vec<CallResult>) -> Step<'a, T> + Send + 'a,
    ) -> Self {
        Self::Ask(Ask { requests, resume: Box::new(then) })
    }

    /// Goes on with the result, which may ask again.
    pub fn then<U: 'a>(self, next: impl FnOnce(T) -> Step<'a, U> + Send + 'a) -> Step<'a, U> {
        match self {
            Self::Done(value) => next(value),
            Self::Ask(Ask { requests, resume }) => Step::Ask(Ask {
                requests,
                resume: Box::new(move |answers| resume(answers).then(next)),
            }),
        }
    }

    /// Changes every request.
    #[must_use]
    pub fn asking(self, change: impl Fn(&mut Request) + Send + 'a) -> Self {
        match self {
            Self::Done(value) => Self::Done(value),
            Self::Ask(Ask { mut requests, resume }) => {
                requests.iter_mut().for_each(&change);
                Self::Ask(Ask {
                    requests,
                    resume: Box::new(move |answers| resume(answers).asking(change)),
                })
            }
        }
    }

    /// Changes the result.
    pub fn map<U: 'a>(self, change: impl FnOnce(T) -> U + Send + 'a) -> Step<'a, U> {
        self.then(move |value| Step::Done(change(value)))
    }
}

/// Answers requests and keeps the bill.
pub trait Caller {
    /// Answers each request, in order. Every request is logged, and billed as its provider would.
    fn call(&mut self, requests: Vec<Request>) -> Vec<CallResult>;
}

/// Runs a step to its end.
pub fn drive<T>(mut step: Step<'_, T>, caller: &mut dyn Caller) -> T {
    loop {
        match step {
            Step::Done(value) => return value,
            Step::Ask(Ask { requests, resume }) => step = resume(caller.call(requests)),
        }
    }
}

/// Runs many steps to their ends together: what all of them ask next is asked at once. Each request
/// comes with the index of its step; the answers are wanted in the same order.
pub fn drive_all<'a, T: 'a>(
    steps: Vec<Step<'a, T>>,
    mut call: impl FnMut(Vec<(usize, Request)>) -> Vec<CallResult>,
) -> Vec<T> {
    let mut open: Vec<(usize, Step<'a, T>)> = steps.into_iter().enumerate().collect();
    let mut done: Vec<(usize, T)> = Vec::with_capacity(open.len());
    while !open.is_empty() {
        let mut requests = Vec::new();
        let mut waiting = Vec::new();
        for (at, step) in open {
            match step {
                Step::Done(value) => done.push((at, value)),
                Step::Ask(mut ask) => {
                    let own = std::mem::take(&mut ask.requests);
                    waiting.push((at, own.len(), ask));
                    requests.extend(own.into_iter().map(|request| (at, request)));
                }
            }
        }
        let mut answers = call(requests).into_iter();
        open = waiting
            .into_iter()
            .map(|(at, count, ask)| (at, ask.resume(answers.by_ref().take(count).collect())))
            .collect();
    }
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, value)| value).collect()
}
