//! Survival: planted values that are still in the prompt, by string matching.
//!
//! Survival says that a value can be read off what the next call receives. It says nothing about
//! answers, and no function turns it into accuracy.

use derive_more::{Add, Sum};

use super::prelude::*;
use crate::metric::estimate;
use crate::record::Fate;
use crate::stats::Estimate;

/// Scores added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Add, Sum, Serialize)]
pub struct Score {
    /// Sum of scores from 0 to 1.
    pub sum: f64,
    /// How many.
    pub items: usize,
}

impl Score {
    /// Adds one score; what is not a number counts as 0.
    pub fn add(&mut self, score: f64) {
        self.sum += if score.is_nan() {
            0.0
        } else {
            score.clamp(0.0, 1.0)
        };
        self.items += 1;
    }

    /// Counts one item: as 1 where something is so, else as 0.
    pub(crate) fn count(&mut self, is_so: bool) {
        self.add(f64::from(u8::from(is_so)));
    }

    /// The mean; `None` without items.
    pub fn mean(&self) -> Option<f64> {
        (self.items > 0).then(|| self.sum / self.items as f64)
    }

    /// The mean with its items.
    pub(crate) fn counted(self) -> Option<Sample> {
        Some((self.mean()?, self.items))
    }
}

/// The survival of planted values in one cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Survival {
    /// In the whole prompt, by kind. Decoys are in it: their mean is the chance rate f. So are open
    /// questions: the share of their evidence that is still there verbatim.
    pub kinds: BTreeMap<&'static str, Score>,
    /// Planted items whose value is gone and can be read again: 1 each, 0 for all others.
    pub reachable: Score,
    /// In the compacted region, without decoys: items whose evidence is no longer entirely
    /// verbatim.
    pub compacted: Score,
    /// Decoys in the compacted region.
    pub compacted_decoys: Score,
}

/// Whether items of this kind ask about something that was planted. Decoys do not: they measure
/// what chance reaches.
pub fn is_planted(kind: ProbeKind) -> bool {
    !kind.is_never_said()
}

impl Survival {
    /// The survival in this cell. Items after a death are in the record, with score 0; decoys
    /// after a death are in no rate, because a prompt that was never sent holds nothing by chance.
    pub fn of(cell: &CellRecord) -> Self {
        let mut survival = Self::default();
        for probe in &cell.probes {
            let (kind, found) = (probe.kind, &probe.survival);
            let is_unsent = !is_planted(kind) && probe.call >= cell.reached_calls;
            // Nothing of a person's question was planted, and nothing is found by chance.
            if is_unsent || kind == ProbeKind::Unanswerable {
                continue;
            }
            let of_kind = survival.kinds.entry(kind.name()).or_default();
            of_kind.add(found.score);
            if kind.is_searched() {
                survival.reachable.count(found.fate == Fate::Reachable);
            }
            if let Some(score) = found.compacted_score {
                if kind.is_searched() {
                    survival.compacted.add(score);
                } else {
                    survival.compacted_decoys.add(score);
                }
            }
        }
        survival
    }

    /// The score of one kind.
    pub fn of_kind(&self, kind: ProbeKind) -> Score {
        self.kinds.get(kind.name()).copied().unwrap_or_default()
    }

    /// The headline: all items of kinds that are searched. Formula: mean score. Higher is better.
    pub fn planted(&self) -> Score {
        let kinds = ProbeKind::ALL.into_iter();
        let searched = kinds.filter(|kind| kind.is_searched());
        searched.map(|kind| self.of_kind(kind)).sum()
    }

    /// The chance rate f: the share of values never planted that are found all the same.
    pub fn decoys(&self) -> Score {
        self.of_kind(ProbeKind::Decoy)
    }
}

/// Survival of all planted items, before the correction for chance.
pub(crate) fn uncorrected(cells: &[&CellSummary]) -> Option<Estimate> {
    estimate(cells, |cell| cell.survival.planted().counted())
}

/// The same, corrected for chance by the decoys.
pub(crate) fn corrected(cells: &[&CellSummary]) -> Option<Estimate> {
    uncorrected(cells)?.corrected_for_chance(chance(cells))
}

/// The same in the compacted region, where chance is that of its own decoys if it has any.
pub(super) fn compacted(cells: &[&CellSummary]) -> Option<Estimate> {
    let decoys = estimate(cells, |cell| cell.survival.compacted_decoys.counted());
    let chance = decoys.map_or_else(|| chance(cells), |decoys| decoys.point_estimate);
    estimate(cells, |cell| cell.survival.compacted.counted())?.corrected_for_chance(chance)
}

fn chance(cells: &[&CellSummary]) -> f64 {
    let decoys = estimate(cells, |cell| cell.survival.decoys().counted());
    decoys.map_or(0.0, |decoys| decoys.point_estimate)
}
