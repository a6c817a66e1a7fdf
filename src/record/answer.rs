//! What readers answered, and how that was graded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KeptCall, ProbeRecord};
use crate::probe::Verdict;
use crate::units::Usage;

/// What a reader answered, and how that was graded.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRecord {
    /// The answer; nothing where the reader failed.
    pub text: Option<String>,
    /// What rules made of it.
    pub typed: Verdict,
    /// What the judge made of it, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Verdict>,
    /// What each judge of a panel made of it, in the order of the scenario; nothing where there is
    /// but one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel: Vec<Verdict>,
    /// What the reader cost; on no strategy's bill.
    pub usage: Usage,
    /// What the judges cost; on no strategy's bill, and not the reader's.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub judge_usage: Usage,
    /// The answers and verdicts that are kept in a cassette.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<KeptCall>,
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

impl ProbeRecord {
    /// All answers to it.
    pub fn answers(&self) -> impl Iterator<Item = &AnswerRecord> {
        [&self.answer, &self.qualifying, &self.from_summary]
            .into_iter()
            .flatten()
    }
}

impl AnswerRecord {
    /// The verdict that counts: the judge's where there is one, else the rules'.
    pub fn verdict(&self) -> Verdict {
        self.judged.unwrap_or(self.typed)
    }
}
