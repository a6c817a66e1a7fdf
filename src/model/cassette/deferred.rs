//! Requests that are put off: collected by a pass that asks nobody, and answered by a batch.
//!
//! While a cassette defers, what it holds no answer to is not asked of a live model but kept here. Once
//! the batch is answered, the same pass finds its answers in the cassette, as if they had been asked
//! one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Cassette, Entry, Keeps, Shape};
use crate::model::api::Dialect;
use crate::model::{CallFailure, ModelKind, Purpose, Request, Response, bill};
use crate::tokens::CountedTexts;

/// A request that was put off.
#[derive(Debug, Clone)]
pub struct Deferred {
    /// How its model is spoken to.
    pub dialect: Dialect,
    /// The request itself.
    pub request: Request,
    /// Which repeat, from 0.
    pub repeat: u32,
    pub(super) keeps: Keeps,
}

/// Deferred requests, and those that were tried in a batch already.
#[derive(Debug, Default)]
pub(super) struct Deferral(Mutex<Option<State>>);

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<String, Deferred>,
    /// Keys that a batch brought no answer to that is kept: the model is asked.
    tried: BTreeSet<String>,
}

impl Deferral {
    fn state(&self) -> MutexGuard<'_, Option<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_on(&self) -> bool {
        self.state().is_some()
    }

    /// Puts a request off. A summary is never put off, for the session cannot go on without it.
    pub(super) fn takes(&self, key: &str, deferred: impl FnOnce() -> Deferred) -> bool {
        let mut state = self.state();
        let Some(state) = &mut *state else {
            return false;
        };
        if state.tried.contains(key) {
            return false;
        }
        state.waiting.entry(key.to_owned()).or_insert_with(deferred);
        true
    }
}

/// Whether requests of this purpose can wait for a batch.
pub(super) fn can_wait(purpose: Purpose) -> bool {
    match purpose {
        Purpose::Probe | Purpose::Qualification | Purpose::Judge => true,
        Purpose::Agent | Purpose::Compaction | Purpose::Background | Purpose::Recovery => false,
    }
}

impl Cassette {
    /// Puts off what readers and judges are asked and the cassette does not hold, from now on.
    pub fn defer(&self) {
        self.deferral.state().get_or_insert_default();
    }

    /// Deferred requests without an answer yet, by key.
    pub fn deferred(&self) -> BTreeMap<String, Deferred> {
        let state = self.deferral.state();
        let waiting = state.as_ref().map(|state| state.waiting.clone());
        waiting.unwrap_or_default()
    }

    /// Takes what a batch brought to a request. Returns the answer as it is kept; what is not kept is
    /// asked of the model the next time.
    pub fn answer_deferred(
        &self,
        key: &str,
        answer: Result<Response, CallFailure>,
        counts: &CountedTexts,
    ) -> Option<Response> {
        let deferred = {
            let mut state = self.deferral.state();
            let state = state.as_mut()?;
            let deferred = state.waiting.remove(key)?;
            state.tried.insert(key.to_owned());
            deferred
        };
        let mut response = answer.ok()?;
        let Deferred {
            dialect,
            request,
            repeat,
            keeps,
        } = deferred;
        response.usage = bill::answered(&request, &response, counts);
        if keeps(&request, &response) {
            let entry = Entry::of(key, ModelKind::Live, &dialect, &request, repeat, &response);
            self.settle(key, Some(entry));
        }
        Some(response)
    }
}

impl Entry {
    /// An answer as it is kept.
    pub(super) fn of(
        key: &str,
        kind: ModelKind,
        dialect: &Dialect,
        request: &Request,
        repeat: u32,
        response: &Response,
    ) -> Self {
        Self {
            key: key.to_owned(),
            kind,
            model: dialect.model.clone(),
            provider: dialect.provider.name().to_owned(),
            purpose: request.purpose,
            repeat,
            request: Shape::of(request),
            answer: response.clone(),
        }
    }
}
