//! The figures of a closed loop that are not in the replay of a cell.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Usage;

/// A cell in which an agent ran: what the provider billed, and how the task ended. On the reference the mean bill of
/// the cells that change nothing, where there are any.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveRecord {
    /// The usage of all answered calls of the agent, those of its other conversations included.
    pub billed: Usage,
    /// The same where some of it was at the price of another model: that part as the tokens of the session's own model
    /// that cost as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid: Option<Usage>,
    /// How many calls those are.
    pub calls: usize,
    /// How many of them came without usage.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub unbilled: usize,
    /// The usage of what the strategy asked its model, in all conversations, as billed or counted.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub strategy: Usage,
    /// Conversations in addition to the one that is replayed, the longest.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub others: usize,
    /// Calls that were passed on as they came, by the reason in words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, u64>,
    /// Milliseconds from the requests of the conversation that is replayed to their answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// How well the task was solved, from 0 to 1, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Why the window is too small for the strategy, if it is: what a replay measures is then not measurable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_room: Option<String>,
}

impl LiveRecord {
    /// Whether its replay measures anything.
    pub fn is_replayed(&self) -> bool {
        self.calls > 0 && self.no_room.is_none()
    }

    /// The usage that its cost is computed from.
    pub fn paid(&self) -> Usage {
        self.paid.unwrap_or(self.billed)
    }

    /// Whether every call was answered with its usage.
    pub fn is_billed(&self) -> bool {
        self.calls > 0 && self.unbilled == 0
    }
}
