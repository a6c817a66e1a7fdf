//! Pooling: from the cells of a strategy to one value with the n it rests on.
//!
//! Repeats of a session are averaged first, so that each session weighs the same.

use super::fidelity::Anchors;
use super::prelude::*;
use super::{CellSummary, Metric};
use crate::stats::Estimate;

/// A value with the number of its observations.
pub(crate) type Sample = (f64, usize);

/// The function of a metric, and how its values of several cells become one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Formula {
    /// It has tables of its own.
    #[default]
    Nothing,
    /// A mean over sessions.
    Mean(fn(&CellSummary) -> Option<Sample>),
    /// A sum.
    Count(fn(&CellSummary) -> Option<usize>),
    /// A sum.
    Tokens(fn(&CellSummary) -> Option<Tokens>),
    /// The largest.
    Largest(fn(&CellSummary) -> Option<Tokens>),
    /// It is computed from all cells together.
    Pool(fn(&[&CellSummary], Anchors) -> PooledValue),
}

/// The value of a metric over the cells of a strategy; `None` where it was not measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PooledValue {
    /// A mean over sessions.
    Estimate(Option<Estimate>),
    /// A share that is exact on these cells.
    Share(Option<f64>),
    Count(Option<usize>),
    Tokens(Option<Tokens>),
    /// A count out of a total.
    Part(Option<(usize, usize)>),
}

impl Metric {
    /// Its value over the cells of one strategy.
    pub(crate) fn over(&self, cells: &[&CellSummary], anchors: Anchors) -> PooledValue {
        let all = cells.iter();
        match self.function {
            Formula::Nothing => PooledValue::Share(None),
            Formula::Mean(of) => PooledValue::Estimate(estimate(cells, of)),
            Formula::Count(of) => {
                PooledValue::Count(all.filter_map(|cell| of(cell)).reduce(|a, b| a + b))
            }
            Formula::Tokens(of) => {
                PooledValue::Tokens(all.filter_map(|cell| of(cell)).reduce(|a, b| a + b))
            }
            Formula::Largest(of) => PooledValue::Tokens(all.filter_map(|cell| of(cell)).max()),
            Formula::Pool(of) => of(cells, anchors),
        }
    }
}

/// A part of a whole; `None` if the whole is 0.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A share with the number of its observations.
pub(super) fn counted(share: Option<f64>, items: u64) -> Option<Sample> {
    Some((share?, usize::try_from(items).unwrap_or(usize::MAX)))
}

/// How many sessions have a cell with this property.
pub(crate) fn sessions(cells: &[&CellSummary], is_meant: fn(&CellSummary) -> bool) -> usize {
    let meant = cells.iter().filter(|cell| is_meant(cell));
    let sessions: BTreeSet<&str> = meant.map(|cell| cell.session.as_str()).collect();
    sessions.len()
}

/// The mean over sessions, each weighing the same.
pub(crate) fn estimate(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<Sample>,
) -> Option<Estimate> {
    let (values, items) = by_session(cells, |cell| of(cell).map(|(value, n)| ([value], n)));
    let values: Vec<f64> = values.into_iter().map(|[value]| value).collect();
    Estimate::of_sessions(&values, items)
}

/// The ratio of two means over sessions, and whether any session has both.
pub(super) fn ratio(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<((f64, f64), usize)>,
) -> (Option<Estimate>, bool) {
    let (pairs, items) = by_session(cells, |cell| of(cell).map(|((a, b), n)| ([a, b], n)));
    let pairs: Vec<(f64, f64)> = pairs.into_iter().map(|[a, b]| (a, b)).collect();
    (Estimate::of_ratio(&pairs, items), !pairs.is_empty())
}

/// Values by session, each the mean over its repeats, and the number of all observations.
fn by_session<const N: usize>(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<([f64; N], usize)>,
) -> (Vec<[f64; N]>, usize) {
    let mut sessions: BTreeMap<&str, ([f64; N], usize)> = BTreeMap::new();
    let mut items = 0;
    for cell in cells {
        if let Some((values, observations)) = of(cell) {
            let (sums, repeats) = sessions.entry(&cell.session).or_insert(([0.0; N], 0));
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value;
            }
            *repeats += 1;
            items += observations;
        }
    }
    let mean = |(sums, repeats): ([f64; N], usize)| sums.map(|sum| sum / repeats as f64);
    (sessions.into_values().map(mean).collect(), items)
}
