//! Compactions that a trace names beside the messages of its calls.
//!
//! - `gen_ai.conversation.compacted` (`open-telemetry/semantic-conventions-genai`, pull request 162): the context of a
//!   call, or of those within or after a span, is a compacted one. It may be said again at each later call.
//! - `gen_ai.compaction.*` (`google/adk-python`, `telemetry/tracing.py` of 2.13): a span around each compaction. Only
//!   one that was done names its result.

use super::super::prelude::*;
use super::super::traces::{Call, ToldCompaction};
use super::{Attributes, Span, text};

/// The attribute of a call whose context was compacted, and the event of that name.
pub(super) const FLAG: &str = "gen_ai.conversation.compacted";

const TRIGGER: &str = "gen_ai.compaction.trigger";
const RESULT: &str = "gen_ai.compaction.result_event_id";

/// The compaction that attributes tell of.
pub(super) fn told(attributes: &mut Attributes) -> Option<ToldCompaction> {
    let is_flagged = attributes.remove(FLAG) == Some(Value::Bool(true));
    let is_dated = attributes.remove(RESULT).is_some();
    (is_flagged || is_dated).then(|| ToldCompaction {
        trigger: text(attributes, TRIGGER),
        is_dated,
    })
}

/// Gives each compaction to the next call of its conversation.
pub(super) fn place(told: Vec<Call<Span>>, calls: &mut [Call<Span>], source: &mut Source) {
    for span in told {
        let Some(compaction) = span.record.compaction else {
            continue;
        };
        let since = span.record.end.filter(|_| compaction.is_dated);
        let since = since.or(span.start);
        let later = calls.iter_mut().filter(|call| {
            call.conversation == span.conversation && since.is_some() && call.start >= since
        });
        match later.min_by_key(|call| call.start) {
            Some(next) => next.record.compaction = Some(compaction),
            None => source.warn("a compaction is recorded that no later call follows"),
        }
    }
}
