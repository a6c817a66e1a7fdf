//! Follows the requests for summaries: they decide whether a summary lost something, or an earlier
//! stage did.

use std::collections::BTreeSet;

use super::BilledRequest;
use crate::context::{Applied, Origin};
use crate::model::Purpose;
use crate::probe::survival::SurvivalSlots;

/// The values that stood in requests for summaries.
#[derive(Debug, Default)]
pub(super) struct SummaryRequests {
    /// The call at which a compaction was asked for.
    call: Option<usize>,
    /// The values in its requests.
    now: BTreeSet<usize>,
    /// The values in all requests for notes so far: notes replace messages later.
    noted: BTreeSet<usize>,
}

impl SummaryRequests {
    /// Notes a request and all values in it.
    pub(super) fn note(&mut self, survival: &SurvivalSlots, asked: &BilledRequest) {
        let background = asked.request.purpose == Purpose::Background;
        if !background && self.call != Some(asked.call) {
            self.call = Some(asked.call);
            self.now.clear();
        }
        let texts = asked.request.messages.iter().flat_map(|message| message.model_text());
        let held = texts.flat_map(|text| survival.held(text));
        if background {
            self.noted.extend(held);
        } else {
            self.now.extend(held);
        }
    }

    /// Whether a summariser had been sent this value when the patch that lost it put its summary in.
    pub(super) fn has(&self, slot: usize, applied: &Applied) -> bool {
        let mut written = applied.written();
        let sent = self.call == Some(applied.call) && self.now.contains(&slot);
        written.any(|entry| matches!(entry.origin, Origin::Derived(_)))
            && (sent || self.noted.contains(&slot))
    }
}
