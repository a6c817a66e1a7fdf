//! Guards: what happens when a stage fails or gains nothing.

use serde::{Deserialize, Serialize};

use super::knob::KEYS;
use crate::settings::{Reader, SettingError};
use crate::units::Tokens;

/// The guards of one stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Guards {
    /// A stage that fails so often in a row is not tried again; 0 for never giving up.
    pub max_consecutive_failures: u32,
    /// A patch that frees less is not applied.
    pub min_gain_tokens: Tokens,
    /// A patch that frees a smaller share of the messages is not applied.
    pub min_gain_fraction: f64,
    /// How often the stage may change something between two messages of the user; 0 for no limit.
    pub max_per_turn: u32,
    /// The fate of a patch that makes the context larger.
    pub on_inflation: OnInflation,
    /// The reaction if the model refuses the request for a summary as too long.
    pub on_summary_overflow: OnSummaryOverflow,
    /// How often it does that within one attempt.
    pub summary_overflow_tries: u32,
    /// The reaction if the model wrote nothing.
    pub on_empty: OnNoSummary,
    /// The reaction if the model called a tool instead of writing.
    pub on_tool_call: OnNoSummary,
    /// The reaction if the model wrote something else: went on with the conversation, or asked a
    /// question.
    pub on_chat: OnNoSummary,
}

/// The reaction if the model refuses the request for a summary as too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnSummaryOverflow {
    /// The attempt fails.
    Fail,
    /// It asks again without the oldest API round.
    DropOldestRound,
    /// It asks again with tool results left out, those in the middle first: a tenth, a fifth,
    /// half, all.
    ShrinkResults,
    /// It asks again with every text cut to 80 % of the longest one.
    ShrinkEach,
    /// It asks again with the newer half of the rounds.
    Halve,
}

/// The reaction to an answer that is not a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnNoSummary {
    /// The attempt fails, and the history stays.
    Keep,
    /// It asks once more.
    Retry,
    /// It is used all the same, where there is a text: that product does not look.
    Apply,
}

/// The fate of a patch that makes the context larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInflation {
    /// It is dropped and counts as a failure of the stage.
    Discard,
    /// It is applied all the same: that product has no such guard.
    Apply,
}

impl Default for Guards {
    /// Three failures and three shorter requests, as in Claude Code; any gain will do; inflation is
    /// discarded.
    fn default() -> Self {
        Self {
            max_consecutive_failures: 3,
            min_gain_tokens: Tokens::ZERO,
            min_gain_fraction: 0.0,
            max_per_turn: 0,
            on_inflation: OnInflation::Discard,
            on_summary_overflow: OnSummaryOverflow::Fail,
            summary_overflow_tries: 3,
            on_empty: OnNoSummary::Keep,
            on_tool_call: OnNoSummary::Keep,
            on_chat: OnNoSummary::Keep,
        }
    }
}

impl Guards {
    /// Reads a `[guards]` table; what is not set stays as it is in `self`.
    pub fn read(self, reader: Option<Reader<'_>>) -> Result<Self, SettingError> {
        match reader {
            Some(reader) => reader.keyed(&KEYS, "guards")?.read_over(&self),
            None => Ok(self),
        }
    }
}
