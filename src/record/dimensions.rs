//! Scores by dimension that a judge gave the answers of a run: an optional layer above verdicts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellRecord, KeptCall, LostCall};
use crate::model::{ModelKind, Purpose};
use crate::probe::Unscored;
use crate::probe::judge::same_prompt;
use crate::units::Usage;

/// One line of `dimensions.jsonl`: what a judge made of one answer, dimension by dimension.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DimensionScores {
    /// The session's id.
    pub session: String,
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The probe's id.
    pub probe: String,
    /// How far the session was, in percent of its calls.
    pub percent: u8,
    /// Which of several answers, from 0.
    pub answer: u32,
    /// The judge.
    pub judge: String,
    /// What its scores may be taken for.
    pub kind: ModelKind,
    /// What stands for the rubric it was given.
    pub rubric: String,
    /// What stands for all that it was sent, and for how its reply was read; nothing in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// From 0 to 5, by dimension; empty where it gave none.
    pub scores: BTreeMap<String, u8>,
    /// Why it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unscored: Option<Unscored>,
    /// What that cost.
    pub usage: Usage,
    /// The first digits of the name under which it is kept, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What was paid for it beside, and is kept nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostCall>,
}

/// Lays scores over the records of a run: those of the last line's judge and rubric count, each answer
/// once. What all of them cost is on the bill.
pub fn apply(cells: &mut [CellRecord], given: &[DimensionScores]) {
    let Some(last) = given.last() else {
        return;
    };
    let (judge, rubric) = (last.judge.clone(), last.rubric.clone());
    for cell in cells {
        let is_own = |one: &&DimensionScores| {
            one.session == cell.session
                && one.strategy == cell.strategy
                && one.repeat == cell.repeat
        };
        let mut counted: BTreeMap<(&str, u8, u32), &DimensionScores> = BTreeMap::new();
        for one in given.iter().filter(is_own) {
            cell.lost_calls.extend(one.lost.iter().cloned());
            cell.later_calls.extend(one.key.clone().map(|key| KeptCall {
                key,
                purpose: Purpose::Judge,
                usage: one.usage,
            }));
            let is_asked_alike = one.judge == judge
                && one.rubric == rubric
                && same_prompt(one.prompt.as_deref(), last.prompt.as_deref());
            if is_asked_alike {
                counted.insert((&one.probe, one.percent, one.answer), one);
            }
        }
        cell.dimensions = counted.into_values().cloned().collect();
    }
}
