//! What a probe asks, and what the right answer is where it is asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::probe::judge::Brief;

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
    /// The question as it is put, where that is another text: a task, or both orders with a line between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// How the answer is asked for; nothing in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// What was right earlier, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older: Vec<String>,
    /// Some values that answer other items of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

impl ProbeText {
    /// An item of a session that a judge is told this much of.
    pub fn of(probe: &str, percent: u8, question: &str, brief: Brief) -> Self {
        let is_other = brief.question != question.trim();
        Self {
            probe: probe.to_owned(),
            percent,
            question: question.to_owned(),
            gold: brief.reference,
            asked: is_other.then_some(brief.question),
            form: brief.form,
            older: brief.older,
            others: brief.others,
        }
    }

    /// What a judge is told of the item.
    pub fn brief(&self) -> Brief {
        let question = self.asked.as_deref().unwrap_or(self.question.trim());
        Brief {
            question: question.to_owned(),
            form: self.form.clone(),
            reference: self.gold.clone(),
            older: self.older.clone(),
            others: self.others.clone(),
        }
    }
}
