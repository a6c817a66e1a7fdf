//! What became of planted values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a planted value, by string matching. Never a statement about answers.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurvivalRecord {
    /// What was found in the whole prompt.
    pub fate: Fate,
    /// From 0 to 1: 1 for `survived`, the share of paths for lists, 0 otherwise.
    pub score: f64,
    /// Where the best match stands.
    pub place: Option<PlaceInPrompt>,
    /// The score in the compacted region alone (edited, derived and restored entries), where the
    /// evidence is no longer wholly verbatim; nothing where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted_score: Option<f64>,
    /// Where the value was lost, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at: Option<LostAt>,
}

/// What became of a planted value.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It stands there, bound to its key.
    Survived,
    /// A list of which a part stands there.
    Partial,
    /// Gone, but the context names a place where it can be read again.
    Reachable,
    /// The value stands there, its key does not.
    Unbound,
    /// The words stand there, with the meaning turned round.
    Distorted,
    /// Only older values stand there.
    Stale,
    /// Old and new stand side by side without order.
    Ambiguous,
    /// It stands nowhere; or the session died before.
    Lost,
}

/// Where in a prompt something stands.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum PlaceInPrompt {
    /// In the system prompt or the tool definitions.
    Pinned,
    /// In a message as it was.
    Verbatim,
    /// In a message of which some blocks were changed.
    Edited,
    /// In a summary or extract.
    Derived,
    /// In something that was put back.
    Restored,
    /// In something the strategy wrote.
    Authored,
}

/// Where a value was lost.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostAt {
    /// Before or after this call.
    pub call: usize,
    /// The stage that removed its last occurrence; `overflow death` where the session died.
    pub stage: String,
    /// Why it did, in words.
    pub reason: String,
    /// Whether the summariser had been sent it: then the summary lost it, and else it was gone, or was
    /// left out, before. Nothing where no summariser was asked, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_by_summariser: Option<bool>,
}
