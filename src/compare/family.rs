//! Families of comparisons: p values are adjusted for the number of comparisons.

use super::{COMPARED, Comparison};
use crate::stats::multiple::holm;
use crate::stats::signflip::{DRAWN_PATTERNS, max_t};

/// How comparisons belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Several candidates against one baseline: single-step max-T by joint sign flips.
    OneBaseline,
    /// Every pair of several runs: Holm's steps.
    AllPairs,
}

/// Adjusts the p values of each metric over all comparisons. With a single one nothing changes.
pub fn adjust(comparisons: &mut [&mut Comparison], family: Family, seed: u64) {
    if comparisons.len() < 2 {
        return;
    }
    for metric in COMPARED {
        let have = |at: &usize| comparisons[*at].metric(metric.name).is_some();
        let have: Vec<usize> = (0..comparisons.len()).filter(have).collect();
        let adjusted = match family {
            Family::OneBaseline => joint(comparisons, &have, metric.name, seed),
            Family::AllPairs => None,
        }
        // Where candidates do not share their sessions, signs cannot be flipped together.
        .unwrap_or_else(|| {
            let p = |at: &usize| comparisons[*at].metric(metric.name)?.p();
            let all: Vec<f64> = have.iter().map(|at| p(at).unwrap_or(1.0)).collect();
            holm(&all)
        });
        for (at, adjusted) in have.into_iter().zip(adjusted) {
            let metrics = &mut comparisons[at].metrics;
            if let Some(found) = metrics.iter_mut().find(|found| found.metric == metric.name) {
                found.adjusted_p = found.p().map(|_| adjusted);
            }
        }
    }
}

fn joint(
    comparisons: &[&mut Comparison],
    have: &[usize],
    metric: &str,
    seed: u64,
) -> Option<Vec<f64>> {
    // Signs of clusters say nothing about a suite, whose error is that of repeats.
    let differences = |at: &usize| {
        let found = comparisons[*at].metric(metric)?;
        let by_cluster = || found.by_cluster.iter().cloned().unzip();
        found.suite.is_none().then(by_cluster)
    };
    let all: Vec<(Vec<String>, Vec<f64>)> = have.iter().map(differences).collect::<Option<_>>()?;
    let (clusters, candidates): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    if clusters.windows(2).any(|pair| pair[0] != pair[1]) {
        return None;
    }
    max_t(&candidates, DRAWN_PATTERNS, seed)
}
