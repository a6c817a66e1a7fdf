//! Deferred requests: collected by a pass that asks no model, and answered by a batch.
//!
//! While a cassette defers, requests without a recorded answer are kept here. Once
//! the batch is answered, the same pass finds its answers in the cassette, as if they had been asked
//! one by one.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cassette, CassetteEntry, CassetteModel, KeepFilter, RequestShape};
use crate::model::api::Dialect;
use crate::model::cut;
use crate::model::spending::Spending;
use crate::model::{CallFailure, ModelKind, Purpose, Request, Response};
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
    pub(super) keeps: KeepFilter,
}

/// Deferred requests, and those that a batch was tried for already.
#[derive(Debug, Default)]
pub(super) struct Deferral {
    waiting: BTreeMap<String, Deferred>,
    /// Keys to which a batch brought no answer that is kept: the model is asked.
    tried: BTreeSet<String>,
}

/// Whether requests of this purpose can wait for a batch. A session cannot go on without its summary.
fn can_wait(purpose: Purpose) -> bool {
    match purpose {
        Purpose::Probe | Purpose::Qualification | Purpose::Judge => true,
        Purpose::Agent | Purpose::Compaction | Purpose::Background | Purpose::Recovery => false,
    }
}

impl Cassette {
    /// Puts off what readers and judges are asked and the cassette does not hold, from now on.
    pub fn defer(&self) {
        self.state().deferral.get_or_insert_default();
    }

    /// Deferred requests without an answer yet, by key.
    pub fn deferred(&self) -> BTreeMap<String, Deferred> {
        let state = self.state();
        state.deferral.as_ref().map(|deferral| deferral.waiting.clone()).unwrap_or_default()
    }

    /// Takes the answer of a batch to a request, and returns it as it is kept. A request whose answer is
    /// not kept is asked of the model the next time.
    pub fn answer_deferred(
        &self,
        key: &str,
        answer: Result<Response, CallFailure>,
        counts: &CountedTexts,
        spending: &Spending,
    ) -> Option<Response> {
        let deferred = {
            let mut state = self.state();
            let deferral = state.deferral.as_mut()?;
            deferral.tried.insert(key.to_owned());
            deferral.waiting.remove(key)?
        };
        let mut response = answer.ok()?;
        let request = &deferred.request;
        let read = spending.correct(request, &mut response, counts);
        let sent = cut::sent(request, counts);
        let model = &deferred.dialect.model;
        // The next pass asks the model itself, and stops.
        self.check_read(model, sent, read, None).ok()?;
        if (deferred.keeps)(request, &response) {
            let (dialect, repeat) = (&deferred.dialect, deferred.repeat);
            let entry =
                CassetteEntry::of(key, ModelKind::Live, dialect, request, repeat, &response);
            self.settle(key, Some(entry));
        }
        Some(response)
    }
}

impl CassetteModel {
    /// Puts a request off, if it can wait and was not in a batch before.
    pub(super) fn puts_off(&self, key: &str, request: &Request, repeat: u32) -> bool {
        let mut state = self.cassette.state();
        let deferral = state.deferral.as_mut().filter(|_| can_wait(request.purpose));
        let Some(deferral) = deferral.filter(|deferral| !deferral.tried.contains(key)) else {
            return false;
        };
        let waiting = deferral.waiting.entry(key.to_owned());
        waiting.or_insert_with(|| Deferred {
            dialect: self.dialect.clone(),
            request: request.clone(),
            repeat,
            keeps: self.keeps,
        });
        true
    }
}

impl CassetteEntry {
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
            request: RequestShape::of(request),
            answer: response.clone(),
        }
    }
}
