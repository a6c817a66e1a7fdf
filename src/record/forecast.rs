//! A cell as it would be recorded: what a plan knows of a run before anything is spent.

use std::collections::BTreeMap;

use derive_more::AddAssign;

use super::CellRecord;
use crate::units::Tokens;

/// The longest answer that each of a cell's `model_calls` may get, by their number; calls without a
/// model request are missing.
pub type Asks = BTreeMap<usize, Tokens>;

/// The requests to readers and judges for the probes of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, AddAssign)]
pub struct ProbesDue {
    /// Items.
    pub items: u64,
    /// Requests of a reader: some items are asked in both orders.
    pub questions: u64,
    /// Tokens of all questions, without the prompts they are put to.
    pub question_tokens: Tokens,
    /// Tokens of the known answers, one for each question.
    pub gold_tokens: Tokens,
    /// Answers that a judge may be shown.
    pub judged: u64,
    /// Of these, those that differ where all answers to an item are the same: the same answer is
    /// judged once.
    pub different: u64,
    /// The tokens of these that one judge is sent, without the answers that it judges.
    pub judge_tokens: Tokens,
    /// Tokens of the known answers of these.
    pub judged_gold: Tokens,
}

impl ProbesDue {
    /// The same where each item is answered so often, and judged so often in all.
    #[must_use]
    pub fn times(self, answers: u64, verdicts: u64) -> Self {
        Self {
            items: self.items,
            questions: self.questions * answers,
            question_tokens: self.question_tokens.times(answers),
            gold_tokens: self.gold_tokens.times(answers),
            judged: self.judged * verdicts,
            different: self.different * verdicts / answers.max(1),
            judge_tokens: self.judge_tokens.times(verdicts),
            judged_gold: self.judged_gold.times(verdicts),
        }
    }
}

/// How a provider bills a prompt to which many questions are put: what is neither read nor written is
/// plain input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptDue {
    /// Stands for its content: the same number is the same prompt.
    pub id: u64,
    /// Tokens of it.
    pub tokens: Tokens,
    /// Tokens that the first question reads from the cache.
    pub read: Tokens,
    /// Tokens that the first question is billed for writing to it.
    pub written: Tokens,
    /// Tokens that every further question reads.
    pub read_again: Tokens,
}

/// The answers of known verdict that every judge is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentinelsDue {
    /// How many.
    pub calls: u64,
    /// The tokens of them that a judge is sent.
    pub tokens: Tokens,
    /// How many more there are for a judge that is unfit for these.
    pub narrow_calls: u64,
    /// The tokens of those.
    pub narrow_tokens: Tokens,
}

/// A cell as it would be recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForecastCell {
    /// The record as it would be without probes.
    pub record: CellRecord,
    /// Which of its calls a model answers.
    pub asks: Asks,
    /// Tokens that each of these sends, by its number: without what the agent's bill shows beside the
    /// recording.
    pub sent: BTreeMap<usize, Tokens>,
    /// The probes that are due, by call.
    pub probes: BTreeMap<usize, ProbesDue>,
    /// Those among them whose words were not sent before and are read: they are paid for. By call, for each prompt.
    pub paid: BTreeMap<usize, Vec<(PromptDue, ProbesDue)>>,
    /// The prompts that they are put to, by call.
    pub prompts: BTreeMap<usize, PromptDue>,
    /// By call and probe, the prompts of those for which full history is too long for the reader; `None` where not
    /// even the evidence fits.
    pub evidence: BTreeMap<(usize, usize), Option<PromptDue>>,
    /// The probes of the floor, which sees the system prompt alone; only on the reference.
    pub floor: Option<(PromptDue, ProbesDue)>,
    /// The sentinels that judges grade in addition; only on the reference.
    pub sentinels: SentinelsDue,
}
