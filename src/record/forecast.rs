//! A cell as it would be recorded: what a plan knows of a run before anything is spent.

use std::collections::BTreeMap;

use super::CellRecord;
use crate::units::Tokens;

/// The longest answer that each of a cell's `model_calls` may get, by their number; those that no
/// model is asked for are missing.
pub type Asks = BTreeMap<usize, Tokens>;

/// What the probes of one call ask of readers and judges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProbesDue {
    /// Items.
    pub items: u64,
    /// Requests of a reader: some items are asked in both orders.
    pub questions: u64,
    /// Tokens of all questions, without the prompts they are put to.
    pub question_tokens: Tokens,
    /// Tokens of the known answers, one for each question.
    pub gold_tokens: Tokens,
    /// Items whose answer a judge may be shown.
    pub judged: u64,
    /// What one judge is sent of these, without the answers that it judges.
    pub judge_tokens: Tokens,
    /// Tokens of the known answers of these.
    pub judged_gold: Tokens,
}

impl ProbesDue {
    /// The same where each item is answered so often, and judged so often in all.
    #[must_use]
    pub fn times(self, answers: u64, verdicts: u64) -> Self {
        let more = |tokens: Tokens, times: u64| Tokens(tokens.0.saturating_mul(times));
        Self {
            items: self.items,
            questions: self.questions * answers,
            question_tokens: more(self.question_tokens, answers),
            gold_tokens: more(self.gold_tokens, answers),
            judged: self.judged * verdicts,
            judge_tokens: more(self.judge_tokens, verdicts),
            judged_gold: more(self.judged_gold, verdicts),
        }
    }
}

/// The answers of known verdict that every judge is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentinelsDue {
    /// How many.
    pub calls: u64,
    /// What a judge is sent of them.
    pub tokens: Tokens,
}

/// A cell as it would be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct ForecastCell {
    /// What would be recorded, without probes.
    pub record: CellRecord,
    /// Which of its calls a model answers.
    pub asks: Asks,
    /// The probes that are due, by call.
    pub probes: BTreeMap<usize, ProbesDue>,
    /// What judges are shown beside; only on the reference.
    pub sentinels: SentinelsDue,
}
