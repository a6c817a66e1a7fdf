//! Repeats at three levels, item by item: what variance components are computed from.

use super::prelude::*;
use crate::metric::survival::is_planted;
use crate::record::{AnswerRecord, Arm, Manifest};
use crate::stats::components::{ItemScores, Levels};

/// Scores of the same items, each as often as it was repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatedScores {
    /// Whose scores: `answers`, or `facts` where no model answers.
    pub scored: &'static str,
    /// The run's repeats. A verdict by rules counts for all repeats.
    pub(crate) levels: Levels,
    /// Scores of each item.
    pub(crate) items: Vec<ItemScores>,
    /// Items of which a repeat was not scored: a part of the repeats would understate the noise.
    pub left_out: usize,
}

impl RepeatedScores {
    /// The planted items of all strategies; `None` where nothing was repeated.
    pub fn of<'a>(
        manifest: &Manifest,
        cells: impl IntoIterator<Item = &'a CellRecord>,
    ) -> Option<Self> {
        let with_reader = manifest.reader.is_some();
        let graded = [manifest.answers, manifest.judgements];
        let [answers, judgements] =
            graded.map(|count| if with_reader { count as usize } else { 1 });
        let compactions = manifest.repeats as usize;
        if compactions * answers * judgements < 2 {
            return None;
        }
        let mut found: BTreeMap<_, BTreeMap<u32, Option<Vec<f64>>>> = BTreeMap::new();
        for cell in cells.into_iter().filter(|cell| cell.arm == Arm::Strategy) {
            for item in cell.probes.iter().filter(|item: &&ProbeRecord| {
                item.kind.is_searched() || with_reader && is_planted(item.kind)
            }) {
                let scores = if with_reader {
                    answered(item, answers, judgements)
                } else {
                    Some(vec![item.survival.score])
                };
                let name = (&cell.session, &cell.strategy, &item.probe, item.percent);
                found.entry(name).or_default().insert(cell.repeat, scores);
            }
        }
        let all = found.len();
        let repeats = found.into_values();
        let whole = repeats.filter(|repeats| repeats.len() == compactions);
        let scored = whole.filter_map(|repeats| repeats.into_values().collect::<Option<Vec<_>>>());
        let items: Vec<ItemScores> = scored.map(|scores| scores.concat()).collect();
        Some(Self {
            scored: if with_reader { "answers" } else { "facts" },
            levels: [compactions, answers, judgements],
            left_out: all - items.len(),
            items,
        })
    }
}

/// The scores of an item's answers; `None` where one of them has none.
fn answered(item: &ProbeRecord, answers: usize, judgements: usize) -> Option<Vec<f64>> {
    let each = item.answers().map(|answer| scores(answer, judgements));
    let found: Vec<Vec<f64>> = each.collect::<Option<_>>()?;
    (found.len() == answers).then(|| found.concat())
}

fn scores(answer: &AnswerRecord, judgements: usize) -> Option<Vec<f64>> {
    let verdicts = answer.verdicts().into_iter();
    let scored: Option<Vec<f64>> = verdicts.map(|verdict| Some(verdict.scored()?.0)).collect();
    match scored?.as_slice() {
        // Rules say the same each time.
        [one] => Some(vec![*one; judgements]),
        several => (several.len() == judgements).then(|| several.to_vec()),
    }
}
