//! Where in the session's work a compaction fell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was going on when a patch was applied. Only what is known then: nothing of what comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactionMoment {
    /// Its place among the cell's `compactions`, from 0.
    pub event: usize,
    /// The user had typed something since the last response: a turn of theirs begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub user_turn: bool,
    /// A phase of the work had ended since the last response: the session marks it, or the agent
    /// ticked off an item of its task list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub phase_end: bool,
    /// The last [`CompactionMoment::LOOP`] responses made the same tool calls with the same
    /// arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_loop: bool,
    /// Tool calls of the last response that had no result yet.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub in_flight: u32,
}

impl CompactionMoment {
    /// So many responses that do the same are a loop: two are a retry.
    pub const LOOP: usize = 3;
}
