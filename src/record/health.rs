//! Summaries that are none: counted, and kept with their beginnings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What models wrote for compactions, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryHealth {
    /// Answers to requests for a summary, applied or not.
    pub summaries: usize,
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
    /// What is wrong, each once.
    pub ailments: Vec<Ailment>,
    /// The beginning of the text, as it was written.
    pub text: String,
}

/// What may be wrong with a summary.
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
    /// It goes on with the conversation.
    Chat,
    /// It breaks off: the model reached its limit.
    CutOff,
    /// It is longer than what it stands for, or than all that it was made from.
    LargerThanSource,
    /// It is written in another script than the session.
    OtherScript,
    /// The model declined, or its provider held the text back.
    Refused,
}

/// All of them, in the order of [`Ailment`] and of tables: the names in files and for people.
const AILMENTS: [(Ailment, &str, &str); 8] = [
    (Ailment::Empty, "empty", "empty"),
    (Ailment::ToolCall, "tool_call", "tool call"),
    (Ailment::Question, "question", "question"),
    (Ailment::Chat, "chat", "chat"),
    (Ailment::CutOff, "cut_off", "cut off"),
    (Ailment::LargerThanSource, "larger_than_source", "larger"),
    (Ailment::OtherScript, "other_script", "other script"),
    (Ailment::Refused, "refused", "refused"),
];

impl Ailment {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 8] = {
        let mut all = [Self::Empty; 8];
        let mut at = 0;
        while at < all.len() {
            all[at] = AILMENTS[at].0;
            at += 1;
        }
        all
    };

    /// The name in files.
    pub fn id(self) -> &'static str {
        AILMENTS[self as usize].1
    }

    /// The name for people.
    pub fn name(self) -> &'static str {
        AILMENTS[self as usize].2
    }
}
