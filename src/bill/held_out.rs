//! Bills predicted from others: what is tested, where an anchor is defined.

use super::anchors::{Walk, walk};
use super::follow::{self, Anchor};
use super::points::{Points, tokens};
use super::{Factor, HeldOut, HiddenThinking, Prediction};
use crate::units::median;

/// So many bills in a row are predicted from those around them.
const IN_A_ROW: usize = 10;

/// A bill, predicted in two ways.
#[derive(Debug, Clone, Copy)]
pub(super) struct Predicted {
    pub(super) billed: i64,
    /// From the bills around it.
    pub(super) by_anchors: i64,
    /// From one factor for all texts, and the head.
    pub(super) by_factor: i64,
}

/// The medians of predicted over billed prompts.
fn medians(predicted: &[Predicted]) -> Option<Prediction> {
    Some(Prediction {
        by_anchors: median_ratio(predicted, |prompt| prompt.by_anchors)?,
        by_factor: median_ratio(predicted, |prompt| prompt.by_factor)?,
    })
}

fn median_ratio(predicted: &[Predicted], size: fn(&Predicted) -> i64) -> Option<Factor> {
    let mut ratios: Vec<Factor> = predicted
        .iter()
        .filter_map(|prompt| Factor::of(tokens(size(prompt)), tokens(prompt.billed)))
        .collect();
    ratios.sort_unstable();
    median(&ratios, |one, two| Factor(u64::midpoint(one.0, two.0)))
}

/// Three predictions of a session's bills: of the second half from the first, of ten in a row, and of those that
/// follow a compaction.
pub(super) fn of(walk: &Walk<'_>, anchors: &[Anchor]) -> HeldOut {
    let first: Vec<Anchor> =
        anchors.iter().take_while(|anchor| anchor.point.segment == 0).copied().collect();
    HeldOut {
        second_half: second_half(walk, &first).and_then(|predicted| medians(&predicted)),
        in_a_row: medians(&in_a_row(walk, &first)),
        removal: medians(&walk.removals),
    }
}

fn second_half(whole: &Walk<'_>, anchors: &[Anchor]) -> Option<Vec<Predicted>> {
    let points: &Points = whole.points;
    let (learnt, tried) = anchors.split_at(anchors.len() / 2);
    let bills: Vec<_> = learnt.iter().map(|anchor| anchor.point).collect();
    let (rates, learnt) = follow::anchors(points, &bills)?;
    rates.factors.iter().flatten().next()?;
    let mut head = 0;
    let first = learnt.first()?.point.call;
    let half = walk(whole.session, whole.counts, points, rates, &learnt, |walk, point| {
        if point.call == first {
            head = walk.head;
        }
    });
    let from = learnt.last()?.point;
    let predicted = tried.iter().map(|Anchor { point, .. }| {
        let factor = half.rates.factor(point.model);
        let [since, all] = [from.message, 0]
            .map(|start| points.expected(start..point.message, factor, half.rates.thinking));
        // What is hidden in the turn under way leaves the prompt when the user types.
        let turn = match half.rates.thinking {
            HiddenThinking::KeptForTurn => {
                let kept = points.thought(0..from.message, factor, HiddenThinking::KeptForTurn);
                let typed = points.typed(from.message..point.message);
                typed.map_or(0, |_| kept)
            }
            HiddenThinking::Dropped | HiddenThinking::Kept => 0,
        };
        Predicted {
            billed: point.billed,
            by_anchors: from.billed + since - turn,
            by_factor: head + whole.fixed(factor) + all,
        }
    });
    Some(predicted.collect())
}

fn in_a_row(walk: &Walk<'_>, anchors: &[Anchor]) -> Vec<Predicted> {
    let points: &Points = walk.points;
    let mut predicted = Vec::new();
    let head = walk.first_head;
    for around in anchors.chunks(IN_A_ROW + 2).filter(|around| around.len() == IN_A_ROW + 2) {
        let (one, two) = (around[0].point, around[IN_A_ROW + 1].point);
        let whole = i128::from(points.between(&(one, two)).text);
        let grown = i128::from(two.billed - one.billed);
        for Anchor { point, .. } in &around[1..=IN_A_ROW] {
            let factor = walk.rates.factor(point.model);
            let text = i128::from(points.between(&(one, *point)).text);
            let share = (grown * text).checked_div(whole);
            let expected = points.expected(0..point.message, factor, walk.rates.thinking);
            predicted.extend(share.map(|share| Predicted {
                billed: point.billed,
                by_anchors: one.billed + i64::try_from(share).unwrap_or_default(),
                by_factor: head + walk.fixed(factor) + expected,
            }));
        }
    }
    predicted
}
