//! Survival: planted values that are still in the prompt, by string matching.
//!
//! Survival says that a value can be read off what the next call receives. It says nothing about
//! answers, and no function turns it into accuracy.

use derive_more::{Add, Sum};

use super::pool::PooledValue;
use super::prelude::*;
use crate::metric::estimate;
use crate::record::{Fate, Plumbing};
use crate::stats::Estimate;

/// Scores added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Add, Sum, Serialize)]
pub struct Score {
    /// Sum of scores from 0 to 1, each times its weight.
    pub sum: f64,
    /// Sum of the weights.
    pub weight: f64,
    /// How many.
    pub items: usize,
}

impl Score {
    /// Adds one score; what is not a number counts as 0.
    pub fn add(&mut self, score: f64) {
        self.add_weighted(score, 1);
    }

    /// Adds one score that counts as so many.
    pub fn add_weighted(&mut self, score: f64, weight: u8) {
        let weight = f64::from(weight);
        if !score.is_nan() {
            self.sum += score.clamp(0.0, 1.0) * weight;
        }
        self.weight += weight;
        self.items += 1;
    }

    /// Counts one item: as 1 where something is so, else as 0.
    pub(crate) fn count(&mut self, is_so: bool) {
        self.add(f64::from(u8::from(is_so)));
    }

    /// The mean by weight; `None` without items, or where none has a weight.
    pub fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    /// The mean with its items.
    pub(crate) fn counted(self) -> Option<Observed> {
        Some((self.mean()?, self.items))
    }
}

impl From<Plumbing> for Score {
    fn from(of: Plumbing) -> Self {
        Self { sum: of.kept, weight: of.weight, items: of.items }
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
    /// Planted items in whose place something else is said: 1 each, 0 for all others.
    pub changed: Score,
    /// The planted items, if all of which string matching cannot tell were kept.
    pub most: Score,
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
            let unsent = !is_planted(kind) && probe.call >= cell.reached_calls;
            // Nothing of a person's question was planted, and nothing is found by chance.
            if unsent || kind == ProbeKind::Unanswerable {
                continue;
            }
            let of_kind = survival.kinds.entry(kind.name()).or_default();
            if !kind.is_searched() {
                of_kind.add(found.score);
                if let Some(score) = found.compacted_score {
                    survival.compacted_decoys.add(score);
                }
                continue;
            }
            of_kind.add_weighted(found.score, probe.weight);
            let [reachable, changed] = [Fate::Reachable, Fate::Changed]
                .map(|fate| f64::from(u8::from(found.fate == fate)));
            survival.reachable.add_weighted(reachable, probe.weight);
            survival.changed.add_weighted(changed, probe.weight);
            let most = found.most.unwrap_or(found.score);
            survival.most.add_weighted(most, probe.weight);
            if let Some(score) = found.compacted_score {
                survival.compacted.add_weighted(score, probe.weight);
            }
        }
        survival
    }

    /// The score of one kind.
    pub fn of_kind(&self, kind: ProbeKind) -> Score {
        self.kinds.get(kind.name()).copied().unwrap_or_default()
    }

    /// The headline: all items of kinds that are searched. Formula: mean score by weight. Higher is better.
    pub fn planted(&self) -> Score {
        let searched = ProbeKind::ALL.into_iter().filter(|kind| kind.is_searched());
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

/// Where string matching cannot tell of so large a share, facts are a range.
const UNSURE: f64 = 0.02;

/// The share that is shown to be kept; a range where much is not known.
pub(crate) fn kept(cells: &[&CellSummary]) -> Option<PooledValue> {
    let least = corrected(cells)?;
    let found = estimate(cells, |cell| cell.survival.most.counted())?;
    let most = found.corrected_for_chance(chance(cells))?.point_estimate;
    Some(PooledValue::between(least, most, UNSURE))
}

/// The same in the compacted region, where chance is that of its own decoys if it has any.
pub(super) fn compacted(cells: &[&CellSummary]) -> Option<Estimate> {
    let decoys = estimate(cells, |cell| cell.survival.compacted_decoys.counted());
    let chance = decoys.map_or_else(|| chance(cells), |decoys| decoys.point_estimate);
    estimate(cells, |cell| cell.survival.compacted.counted())?.corrected_for_chance(chance)
}

/// The share that is found by chance.
pub(crate) fn chance(cells: &[&CellSummary]) -> f64 {
    let decoys = estimate(cells, |cell| cell.survival.decoys().counted());
    decoys.map_or(0.0, |decoys| decoys.point_estimate)
}
