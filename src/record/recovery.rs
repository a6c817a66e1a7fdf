//! What a search over removed text would bring back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Tokens;

/// A search over what was removed from a prompt, with each question as the query. It says what could
/// be read again, by string matching: nothing about answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryRecord {
    /// Snippets that each search brings back, at most.
    pub snippets: usize,
    /// Tokens of a snippet, at most.
    pub snippet_tokens: u64,
    /// The items that did not survive, each with what its search brought back.
    pub items: Vec<RecoveredItem>,
}

/// One item that did not survive.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveredItem {
    /// The probe's id.
    pub probe: String,
    /// How far the session was, in percent of its calls.
    pub percent: u8,
    /// Whether the snippets hold all of the answer, each value bound to its key.
    pub is_regained: bool,
    /// Tokens of the snippets: what a prompt would have to hold for it.
    pub tokens: Tokens,
}
