//! Verdicts given after a run: answers are kept, so that another judge may grade them later.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellRecord, Manifest, ModelEntry};
use crate::model::ModelKind;
use crate::probe::Verdict;
use crate::units::Usage;

/// One line of `verdicts.jsonl`: a verdict given after the run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenVerdict {
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
    #[serde(default, skip_serializing_if = "is_first")]
    pub answer: u32,
    /// The judge.
    pub judge: String,
    /// What its verdicts may be taken for.
    pub kind: ModelKind,
    /// What stands for the rubric it was given.
    pub rubric: String,
    /// What it said.
    pub verdict: Verdict,
    /// What that cost.
    pub usage: Usage,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_first(answer: &u32) -> bool {
    *answer == 0
}

/// Lays verdicts over the records of a run. The judge of the last line is the run's judge from then
/// on: verdicts of others do not count beside its own, for two judges make no one figure.
pub fn apply(manifest: &mut Manifest, cells: &mut [CellRecord], given: &[GivenVerdict]) {
    let Some(last) = given.last() else {
        return;
    };
    // Later verdicts are given once.
    manifest.judgements = 1;
    manifest.judge = Some(ModelEntry {
        name: last.judge.clone(),
        kind: last.kind,
    });
    let verdicts: BTreeMap<_, (Verdict, Usage)> = given
        .iter()
        .filter(|one| one.judge == last.judge && one.rubric == last.rubric)
        .map(|one| {
            let cell = (one.session.as_str(), one.strategy.as_str(), one.repeat);
            (
                (cell, one.probe.as_str(), one.percent, one.answer),
                (one.verdict, one.usage),
            )
        })
        .collect();
    for cell in cells {
        let key = (cell.session.as_str(), cell.strategy.as_str(), cell.repeat);
        for item in &mut cell.probes {
            for (turn, answer) in (0..).zip(item.answer.iter_mut().chain(&mut item.more)) {
                let found = verdicts.get(&(key, item.probe.as_str(), item.percent, turn));
                answer.judged = found.map(|(verdict, _)| *verdict);
                answer.judge_usage = found.map(|(_, usage)| *usage).unwrap_or_default();
                answer.panel.clear();
                answer.rejudged.clear();
            }
        }
        cell.sentinels.clear();
    }
}
