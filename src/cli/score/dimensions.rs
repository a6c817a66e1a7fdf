//! `proctor score --rubric-6d`: answers scored in six dimensions, beside their verdicts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Open, lost_of};
use crate::cli::say;
use crate::model::{CallFailure, Model, Request};
use crate::probe::judge::dimensions;
use crate::record::{DimensionScores, KeptCall};
use crate::tokens::CountedTexts;

/// What the judge is sent of an answer.
pub(super) fn request(open: &Open<'_>) -> Request {
    dimensions::request_of(&open.text.question, &open.text.gold, open.answer)
}

/// Has all answers scored, several at once; scores come back in the order of the answers.
pub(super) fn score(
    open: &[Open<'_>],
    judge: &dyn Model,
    workers: usize,
    counts: &CountedTexts,
) -> Vec<DimensionScores> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(open.len()));
    std::thread::scope(|scope| {
        for _ in 0..workers.min(open.len()).max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = open.get(at) else { break };
                    if let Some(scores) = ask(one, judge, counts) {
                        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                        done.push((at, scores));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    let scores: Vec<DimensionScores> = done.into_iter().map(|(_, scores)| scores).collect();
    let unscored = scores.iter().filter(|one| one.unscored.is_some()).count();
    say(&format!(
        "{} answers were scored by {} in six dimensions, {unscored} brought no scores",
        scores.len(),
        judge.name()
    ));
    scores
}

/// The scores; nothing where only recorded ones would do and there are none.
fn ask(open: &Open<'_>, judge: &dyn Model, counts: &CountedTexts) -> Option<DimensionScores> {
    let request = request(open);
    let answered = judge.answer(&request, 0, counts);
    if matches!(
        answered.answer,
        Err(CallFailure::NotRecorded | CallFailure::NotKept(_))
    ) {
        return None;
    }
    let read = dimensions::read(&answered.answer);
    Some(DimensionScores {
        session: open.cell.session.clone(),
        strategy: open.cell.strategy.clone(),
        repeat: open.cell.repeat,
        probe: open.item.probe.clone(),
        percent: open.item.percent,
        answer: open.turn,
        judge: judge.name().to_owned(),
        kind: judge.kind(),
        rubric: dimensions::rubric_hash(),
        prompt: Some(dimensions::prompt_id()),
        unscored: read.as_ref().err().copied(),
        scores: read.unwrap_or_default(),
        usage: answered.paid.map(|paid| paid.usage).unwrap_or_default(),
        lost: lost_of(&request, &answered, counts),
        key: answered.key.map(|key| key.hex(KeptCall::DIGITS)),
    })
}
