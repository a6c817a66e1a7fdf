//! Requests to models: those of strategies, and the kept and lost answers of readers and judges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellRecord, ProbeRecord};
use crate::probe::judge::JudgeTask;
use crate::record::words::GradeVerdict;
use crate::record::words::Purpose;
use crate::units::{Tokens, Usage};

/// A request that a strategy made, or an attempt at the agent's own call that failed.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCall {
    /// Before or after this call of the agent.
    pub call: usize,
    /// The purpose, which decides whose bill it is on.
    pub purpose: Purpose,
    /// Its usage, failed or not.
    pub usage: Usage,
    /// The model that it was sent to, as the strategy names it; `None` for the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why it brought no answer, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The first digits of the name under which its answer is kept, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// An answer of a reader or a judge that is kept in a cassette.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptCall {
    /// The first digits of the name under which it is kept.
    pub key: String,
    /// The purpose, which decides whose bill it is on.
    pub purpose: Purpose,
    /// Its usage when it was made.
    pub usage: Usage,
}

impl KeptCall {
    /// Digits of a name that records keep: 64 bits, enough to distinguish millions of answers.
    pub const DIGITS: usize = 16;
}

/// A request that was paid and whose answer is kept nowhere.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostCall {
    /// The purpose, which decides whose bill it is on.
    pub purpose: Purpose,
    /// Its usage.
    pub usage: Usage,
    /// Why it has no answer; `None` where its answer is not worth keeping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A verdict on an answer whose verdict is known.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentinelRecord {
    /// The judge.
    pub judge: String,
    /// The sentinel's name.
    pub name: String,
    /// Whether its answer is right.
    pub is_right: bool,
    /// The prompt of the narrow task, where it was put in that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrow: Option<String>,
    /// The judge's verdict.
    pub verdict: GradeVerdict,
    /// The usage of the judge.
    pub usage: Usage,
    /// The verdict as it is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<KeptCall>,
}

impl SentinelRecord {
    /// The task that it was put in.
    pub fn task(&self) -> JudgeTask {
        match self.narrow {
            Some(_) => JudgeTask::Narrow,
            None => JudgeTask::Wide,
        }
    }

    /// Whether the judge agrees with the known verdict; `None` where it gave none.
    pub fn is_met(&self) -> Option<bool> {
        let (score, _) = self.verdict.scored()?;
        Some((score > 0.5) == self.is_right)
    }
}

impl CellRecord {
    /// The prompts that models were sent for this cell, as their servers reported the sizes: of the strategy's
    /// requests and of the reader's. An answer may hold the usage of a question that was put twice, so half of it
    /// is among them too.
    pub fn read_sizes(&self) -> impl Iterator<Item = Tokens> {
        let calls = self.model_calls.iter().filter(|call| call.purpose != Purpose::Agent);
        let answers = self.probes.iter().flat_map(ProbeRecord::every_answer);
        let answers =
            answers.map(|answer| answer.usage.prompt()).flat_map(|read| [read, Tokens(read.0 / 2)]);
        calls.map(|call| call.usage.prompt()).chain(answers)
    }

    /// Every request whose answer is kept in a cassette: the first digits of its name, its purpose and its usage.
    pub fn kept_calls(&self) -> impl Iterator<Item = (&str, Purpose, &Usage)> {
        let calls = self.model_calls.iter();
        let own = calls.filter_map(|call| Some((call.key.as_deref()?, call.purpose, &call.usage)));
        let answers =
            self.probes.iter().flat_map(ProbeRecord::every_answer).flat_map(|answer| &answer.calls);
        let sentinels = self.sentinels.iter().flat_map(|sentinel| &sentinel.calls);
        let beside = answers.chain(sentinels).chain(&self.later_calls);
        own.chain(beside.map(|call| (call.key.as_str(), call.purpose, &call.usage)))
    }
}
