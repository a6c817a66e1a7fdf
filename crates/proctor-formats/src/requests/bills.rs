//! Bills requests that are in no session of their own: each was paid.
//!
//! A request for a summary is on the bill of its compaction. An answer that was left out, one that was sent again and one
//! beside the conversation are within the call before them.

use super::seen::is_models;
use super::thread::SessionThread;
use crate::prelude::*;
use proctor_sessions::InnerRequest;

/// The bill of a request of this kind to this model.
pub(super) fn bill(kind: &str, model: Option<&str>, usage: Usage) -> InnerRequest {
    InnerRequest { kind: kind.into(), model: model.map(Arc::from), usage }
}

/// The bills of a call of a session of this model, as those of requests of this kind within another call.
pub(super) fn bills_of(call: &Message, kind: &str, model: Option<&str>) -> Vec<InnerRequest> {
    let details = &call.details;
    let model = details.model.as_deref().or(model);
    let own = details.usage.map(|usage| bill(kind, model, usage));
    own.into_iter().chain(details.inner_requests.iter().cloned()).collect()
}

impl SessionThread {
    /// The bills of its calls and compactions, as those of requests of this kind within another call.
    pub(super) fn bills(&self, kind: &str) -> Vec<InnerRequest> {
        let own = self.session.parts();
        let model = own.model.as_deref();
        let calls = own.messages.iter().flat_map(|message| bills_of(message, kind, model));
        let compactions = own.compactions.iter().filter_map(|one| one.usage);
        calls.chain(compactions.map(|usage| bill(kind, model, usage))).collect()
    }
}

/// Bills requests within the last call of so many messages of a session.
pub(super) fn pay(session: &mut Session, messages: usize, mut bills: Vec<InnerRequest>) {
    let parts = session.parts_mut();
    let mut before = parts.messages.iter_mut().take(messages).rev();
    let Some(call) = before.find(|message| is_models(message)) else {
        return;
    };
    let own = call.details.model.as_deref().or(parts.model.as_deref());
    for bill in &mut bills {
        bill.model.take_if(|model| Some(&**model) == own);
    }
    Arc::make_mut(call).details.inner_requests.extend(bills);
}
