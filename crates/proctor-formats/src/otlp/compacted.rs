//! Compactions that a trace names beside the messages of its calls.
//!
//! - `gen_ai.conversation.compacted` (`open-telemetry/semantic-conventions-genai`, pull request 162): the context of a
//!   call, or of those within or after a span, is a compacted one. It may be said again at each later call.
//! - `gen_ai.compaction.*` (`google/adk-python`, `telemetry/tracing.py` of 2.13): a span around each compaction. Only
//!   one that was done names its result.

use super::super::traces::ToldCompaction;
use super::{Attributes, text};
use crate::prelude::*;

/// The attribute of a call whose context was compacted, and the event of that name.
pub(super) const FLAG: &str = "gen_ai.conversation.compacted";

const TRIGGER: &str = "gen_ai.compaction.trigger";
const RESULT: &str = "gen_ai.compaction.result_event_id";

/// The compaction that attributes tell of.
pub(super) fn told(attributes: &mut Attributes) -> Option<ToldCompaction> {
    let result = attributes.remove(RESULT);
    (attributes.remove(FLAG) == Some(Value::Bool(true)) || result.is_some())
        .then(|| ToldCompaction { trigger: text(attributes, TRIGGER), is_dated: result.is_some() })
}
