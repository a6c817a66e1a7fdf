//! The change that a compaction made, and the defects of its summary.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Tokens;

/// The context before and after one compaction. Messages that a patch only moved count on neither
/// side.
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
    /// The text in its place: the summary, where one was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Excerpt>,
    /// Messages of the session that had been appended before it.
    pub appended: usize,
    /// It shortened the message that was appended next, before that was part of any prompt: the one edit
    /// counts from this message.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_append: bool,
    /// The edits in ascending order, without what only stayed in its place; with
    /// [`CellRecord::messages`](super::CellRecord::messages) they give every prompt, entry by entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<EntryEdit>,
}

/// Entries of a context that made way for others.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryEdit {
    /// The first of them, counted in the context before the whole compaction.
    pub at: usize,
    /// How many they are; 0 where others were only put in.
    pub taken: usize,
    /// The entries that came, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put: Vec<PutEntry>,
}

/// An entry that a compaction put in.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PutEntry {
    /// The session's message of this index, as it was.
    Message(usize),
    /// Another text.
    Entry(PromptEntry),
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptEntry {
    /// The kind of message.
    pub kind: MessageKind,
    /// The session's message that it was made of, where it was made of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<usize>,
    /// Its size, as counted.
    pub tokens: Tokens,
    /// The beginning of its text, secrets replaced.
    pub text: String,
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
    /// The kind of message.
    pub kind: MessageKind,
    /// The session's message that it was or is made of, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<usize>,
    /// The beginning.
    pub text: String,
    /// Characters of the whole.
    pub chars: u64,
}

/// The kind of a message of a context.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Text that a person typed, or that the product added to it.
    User,
    /// Text of the agent's model, its tool calls included.
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

/// The summaries that models wrote for compactions, with their defects.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryHealth {
    /// Answers to requests for a summary, applied or not.
    pub summaries: usize,
    /// Answers whose text is in no later prompt.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub unread: usize,
    /// Those that something is wrong with, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unhealthy: Vec<UnhealthySummary>,
}

/// A summary that something is wrong with.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnhealthySummary {
    /// Before or after this call of the agent.
    pub call: usize,
    /// Its defects, each once.
    pub ailments: Vec<Ailment>,
    /// The beginning of the text, as it was written.
    pub text: String,
}

/// A defect of a summary.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Ailment {
    /// Nothing was written.
    Empty,
    /// It is a tool call.
    ToolCall,
    /// It is a question.
    Question,
    /// It continues the conversation.
    Chat,
    /// It breaks off: the model reached its limit.
    CutOff,
    /// It is longer than the text it replaces, or than all the text it was made from.
    LargerThanSource,
    /// It is written in another script than the session.
    OtherScript,
    /// The model declined, or its provider held the text back.
    Refused,
}

impl Ailment {
    /// All of them, in the order of tables: with the name in files and that for people.
    pub const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Empty, "empty", "empty"),
        (Self::ToolCall, "tool_call", "tool call"),
        (Self::Question, "question", "question"),
        (Self::Chat, "chat", "chat"),
        (Self::CutOff, "cut_off", "cut off"),
        (Self::LargerThanSource, "larger_than_source", "larger"),
        (Self::OtherScript, "other_script", "other script"),
        (Self::Refused, "refused", "refused"),
    ];

    /// The name for people.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].2
    }
}
