//! Pooling: from the cells of a strategy to one value with the n it rests on.
//!
//! Repeats of a session are averaged first, then the sessions of a cluster: each cluster, a main
//! session with its side chains, weighs the same.

use std::ops::Add;

use super::fidelity::Anchors;
use super::prelude::*;
use super::{CellSummary, Metric};
use crate::stats::Estimate;

/// A value with the number of its observations.
pub(crate) type Sample = (f64, usize);

/// The function of a metric, and how its values of several cells become one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Formula {
    /// It has tables of its own.
    Nothing,
    /// A mean over clusters.
    Mean(fn(&CellSummary) -> Option<Sample>),
    /// A sum.
    Count(fn(&CellSummary) -> Option<usize>),
    /// A sum.
    Tokens(fn(&CellSummary) -> Option<Tokens>),
    /// The largest.
    Largest(fn(&CellSummary) -> Option<Tokens>),
    /// It is computed from all cells together.
    Pool(fn(&[&CellSummary], Anchors) -> Option<PooledValue>),
}

/// The value of a metric over the cells of a strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PooledValue {
    /// A mean over clusters.
    Estimate(Estimate),
    /// A share that is exact on these cells.
    Share(f64),
    Count(usize),
    Tokens(Tokens),
    /// A count out of a total.
    Part(usize, usize),
}

impl Metric {
    /// Its value over the cells of one strategy; `None` where it was not measured.
    pub(crate) fn over(&self, cells: &[&CellSummary], anchors: Anchors) -> Option<PooledValue> {
        let all = cells.iter();
        Some(match self.function {
            Formula::Nothing => return None,
            Formula::Mean(of) => PooledValue::Estimate(estimate(cells, of)?),
            Formula::Count(of) => PooledValue::Count(all.filter_map(|it| of(it)).reduce(Add::add)?),
            Formula::Tokens(of) => {
                PooledValue::Tokens(all.filter_map(|it| of(it)).reduce(Add::add)?)
            }
            Formula::Largest(of) => PooledValue::Tokens(all.filter_map(|it| of(it)).max()?),
            Formula::Pool(of) => return of(cells, anchors),
        })
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

/// The mean over clusters, each weighing the same.
pub(crate) fn estimate(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<Sample>,
) -> Option<Estimate> {
    let (values, items) = by_cluster(cells, |cell| of(cell).map(|(value, n)| ([value], n)));
    let values: Vec<f64> = values.into_iter().map(|[value]| value).collect();
    Estimate::of_sessions(&values, items)
}

/// The ratio of two means over clusters, and whether any cluster has both.
pub(super) fn ratio(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<((f64, f64), usize)>,
) -> (Option<Estimate>, bool) {
    let (pairs, items) = by_cluster(cells, |cell| of(cell).map(|((a, b), n)| ([a, b], n)));
    let pairs: Vec<(f64, f64)> = pairs.into_iter().map(|[a, b]| (a, b)).collect();
    (Estimate::of_ratio(&pairs, items), !pairs.is_empty())
}

/// Values by cluster, each the mean over its sessions of the mean over repeats, and the number of
/// all observations.
fn by_cluster<const N: usize>(
    cells: &[&CellSummary],
    of: impl Fn(&CellSummary) -> Option<([f64; N], usize)>,
) -> (Vec<[f64; N]>, usize) {
    let mut sessions: BTreeMap<(&str, &str), Mean<N>> = BTreeMap::new();
    let mut items = 0;
    for cell in cells {
        if let Some((values, observations)) = of(cell) {
            let session = sessions.entry((&cell.cluster, &cell.session));
            session.or_default().add(values);
            items += observations;
        }
    }
    let mut clusters: BTreeMap<&str, Mean<N>> = BTreeMap::new();
    for ((cluster, _), session) in sessions {
        clusters.entry(cluster).or_default().add(session.value());
    }
    let means = clusters.into_values().map(|cluster| cluster.value());
    (means.collect(), items)
}

/// The mean of what was added to it.
struct Mean<const N: usize> {
    sums: [f64; N],
    count: usize,
}

impl<const N: usize> Default for Mean<N> {
    fn default() -> Self {
        Self {
            sums: [0.0; N],
            count: 0,
        }
    }
}

impl<const N: usize> Mean<N> {
    fn add(&mut self, values: [f64; N]) {
        for (sum, value) in self.sums.iter_mut().zip(values) {
            *sum += value;
        }
        self.count += 1;
    }

    fn value(&self) -> [f64; N] {
        self.sums.map(|sum| sum / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::CellRecord;

    /// A cell of a session in a cluster.
    fn cell(session: &str, cluster: &str, repeat: u32) -> CellSummary {
        let cell = CellRecord {
            session: session.to_owned(),
            repeat,
            ..CellRecord::default()
        };
        CellSummary {
            cluster: cluster.to_owned(),
            ..CellSummary::of(&cell, None)
        }
    }

    #[test]
    fn a_session_copied_as_its_own_side_chain_changes_no_mean_and_no_interval() {
        let sessions = ["b", "a", "d", "c"];
        let alone: Vec<CellSummary> = sessions
            .iter()
            .flat_map(|id| [cell(id, id, 0), cell(id, id, 1)])
            .collect();
        let copies = ["a", "c", "a"].iter().enumerate().flat_map(|(at, id)| {
            let copy = format!("{id}-side-{at}");
            [cell(&copy, id, 0), cell(&copy, id, 1)]
        });
        let copied: Vec<CellSummary> = alone.iter().cloned().chain(copies).collect();
        // A value that depends on the main session and on the repeat.
        let of = |cell: &CellSummary| {
            let letter = f64::from(cell.cluster.as_bytes()[0] - b'a');
            Some((letter.powi(2) + 0.1 * f64::from(cell.repeat), 1))
        };
        let both = |cells: &[CellSummary]| {
            let cells: Vec<&CellSummary> = cells.iter().collect();
            let pair = |cell: &CellSummary| of(cell).map(|(value, n)| ((value, value + 1.0), n));
            [estimate(&cells, of), ratio(&cells, pair).0].map(|found| {
                let mut found = found.expect("all sessions have a value");
                found.n.items = 0;
                found
            })
        };
        assert_eq!(both(&alone), both(&copied));
        assert_eq!(both(&alone)[0].n.sessions, 4);
    }
}
