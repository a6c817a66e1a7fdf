//! What each compaction took out and what it put in its place: sizes always, texts of a few.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Tokens;

/// Before and after of one compaction. What a patch only moved counts on neither side.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactionChange {
    /// Its place among the cell's `compactions`, from 0.
    pub event: usize,
    /// Messages that were taken out, or stood otherwise before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub out: BTreeMap<MessageKind, Portion>,
    /// Messages that came in their place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub put_in: BTreeMap<MessageKind, Portion>,
    /// The largest of what was taken out, at the place that freed most; only of the first and the
    /// last compactions of each stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Excerpt>,
    /// What stands there now: the summary, where one was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Excerpt>,
}

/// Messages of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Portion {
    /// How many.
    pub messages: u64,
    /// Their size.
    pub tokens: Tokens,
}

/// The beginning of a message, its secrets replaced.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excerpt {
    /// What it is.
    pub kind: MessageKind,
    /// The session's message that it was or is made of, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<usize>,
    /// The beginning.
    pub text: String,
    /// Characters of the whole.
    pub chars: u64,
}

/// What a message of a context is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// What a person typed, or a product put beside it.
    User,
    /// What the agent's model wrote, its tool calls included.
    Agent,
    /// Tool results.
    Results,
    /// Written in place of others.
    Summary,
    /// Put back after it was gone.
    Restored,
    /// Written by the strategy, in place of nothing.
    Authored,
}

impl MessageKind {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::Results => "tool results",
            Self::Summary => "summary",
            Self::Restored => "put back",
            Self::Authored => "by the strategy",
        }
    }
}
