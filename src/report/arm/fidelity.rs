//! Fidelity of one strategy: two ratios of means over sessions, with intervals, or why there is none.

use serde::Serialize;

use super::{Anchors, CellSummary, by_session_pair, model};
use crate::metric::answers::{Accuracy, Scope};
use crate::metric::fidelity::Refusal;
use crate::metric::survival::Score;
use crate::stats::Estimate;

/// Accuracy relative to full history.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "fidelity", rename_all = "snake_case")]
pub enum Fidelity {
    /// `F = acc/acc_full` over the items scored under both, each session weighing the same.
    Measured {
        /// F: a ratio of two means over sessions, with the interval that belongs to it.
        estimate: Estimate,
    },
    /// No item was scored under both.
    Unpaired,
    /// Full history is answered right too rarely: [`LOWEST_CEILING`](super::LOWEST_CEILING).
    CeilingTooLow,
    /// Empty context is answered right nearly as often: [`LOWEST_SPAN`](super::LOWEST_SPAN).
    SpanTooSmall,
    /// No item qualified.
    NoneQualified,
}

impl Fidelity {
    /// Why there is none, in words; nothing where it was measured.
    pub fn refusal(self) -> Option<&'static str> {
        let refusal = match self {
            Self::Measured { .. } => return None,
            Self::Unpaired => Refusal::Unpaired,
            Self::CeilingTooLow => Refusal::CeilingTooLow,
            Self::SpanTooSmall => Refusal::SpanTooSmall,
            Self::NoneQualified => Refusal::NoneQualified,
        };
        Some(refusal.in_words())
    }

    /// The estimate; nothing where fidelity is refused.
    pub fn measured(self) -> Option<Estimate> {
        match self {
            Self::Measured { estimate } => Some(estimate),
            Self::Unpaired | Self::CeilingTooLow | Self::SpanTooSmall | Self::NoneQualified => None,
        }
    }
}

/// `F = Σ acc / Σ acc_full`, over the sessions and the qualified items scored under both.
pub(super) fn relative(
    cells: &[&CellSummary],
    scope: Scope,
    anchors: Anchors,
    has_unqualified: bool,
) -> Fidelity {
    match anchors.bare().check() {
        Err(Refusal::CeilingTooLow) => return Fidelity::CeilingTooLow,
        Err(Refusal::SpanTooSmall) => return Fidelity::SpanTooSmall,
        Err(Refusal::Unpaired | Refusal::NoneQualified) | Ok(_) => {}
    }
    let paired = |accuracy: &Accuracy| {
        let both = (accuracy.paired.mean()?, accuracy.paired_full.mean()?);
        Some((both, accuracy.paired.items))
    };
    let (pairs, items) = by_session_pair(cells, |cell| paired(model(cell, scope)?));
    match (anchors.full, Estimate::of_ratio(&pairs, items)) {
        (Some(_), Some(estimate)) => Fidelity::Measured { estimate },
        // Items were scored under both, and full history is right on none of them.
        (Some(_), None) if !pairs.is_empty() => Fidelity::CeilingTooLow,
        (_, None) if has_unqualified => Fidelity::NoneQualified,
        (_, _) => Fidelity::Unpaired,
    }
}

/// The least and the most that F may be: items without a score are wrong here and right under full history,
/// or the other way round. Nothing where all have one, or where fidelity is refused.
pub(super) fn bounds(cells: &[&CellSummary], scope: Scope, anchors: Anchors) -> Option<(f64, f64)> {
    anchors.bare().check().ok()?;
    let is_exact = |accuracy: &Accuracy| {
        accuracy.paired_bounds.is_exact() && accuracy.paired_full_bounds.is_exact()
    };
    let mut models = cells.iter().filter_map(|cell| model(cell, scope));
    if models.all(is_exact) {
        return None;
    }
    let ratio = |part: fn(&Accuracy) -> (Score, Score)| {
        let (pairs, items) = by_session_pair(cells, |cell| {
            let (here, full) = part(model(cell, scope)?);
            Some(((here.mean()?, full.mean()?), here.items))
        });
        Estimate::of_ratio(&pairs, items).map(|ratio| ratio.point_estimate)
    };
    let least = ratio(|it| (it.paired_bounds.worst, it.paired_full_bounds.best))?;
    let most = ratio(|it| (it.paired_bounds.best, it.paired_full_bounds.worst))?;
    Some((least, most))
}

/// `F* = Σ(acc − acc_empty) / Σ(acc_full − acc_empty)`, over the sessions and all items, qualified or
/// not, that were scored here and under both anchors: 0 is no context at all, 1 is all of it. It may
/// lie below 0 and above 1. Nothing where fidelity is refused.
pub(super) fn normalised(
    cells: &[&CellSummary],
    scope: Scope,
    anchors: Anchors,
) -> Option<Estimate> {
    anchors.bare().check().ok()?;
    anchors.empty?;
    let (pairs, items) = by_session_pair(cells, |cell| {
        let spanned = &model(cell, scope)?.spanned;
        Some((spanned.above_empty()?, spanned.score.items))
    });
    Estimate::of_ratio(&pairs, items)
}
