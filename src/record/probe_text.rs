//! What a probe asks, and what the right answer is where it is asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question with its answer, as an item of a session is asked it.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeText {
    /// The probe's id.
    pub probe: String,
    /// How far the session was, in percent of its calls.
    pub percent: u8,
    /// The question.
    pub question: String,
    /// The answer at that point, in words.
    pub gold: String,
}
