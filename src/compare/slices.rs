//! Slices: survival by kind of probe. They are exploratory and never gated.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::difference::{Pair, cluster, in_clusters, paired_probes};
use crate::stats::Estimate;
use crate::stats::multiple::{EXPLORED, benjamini_hochberg};
use crate::stats::paired::{Counts, PairedDifference, PairedSession};

/// The difference among probes of one kind: exploratory.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Slice {
    /// The kind.
    pub kind: String,
    /// Difference in survival, each cluster weighing the same.
    pub difference: Estimate,
    /// Wins, ties and losses.
    pub counts: Counts,
    /// p value of the sign-flip test, adjusted over all slices (Benjamini and Hochberg); nothing below
    /// two sessions.
    pub adjusted_p: Option<f64>,
    /// Whether it is a finding at a false discovery rate of 0.10.
    pub is_finding: bool,
}

/// Survival by kind, the kinds in alphabetical order.
pub(super) fn by_kind(pairs: &[Pair<'_>], seed: u64) -> Vec<Slice> {
    let probes = pairs.iter().flat_map(|(_, old, _)| old.probes.values());
    let kinds: BTreeSet<&str> = probes.map(|probe| probe.kind.as_str()).collect();
    let found = kinds.into_iter().filter_map(|kind| {
        let of_pair = |pair| paired_probes(pair, "survival", |probe| probe.kind == kind);
        let sessions = in_clusters(pairs.iter().map(|pair| (cluster(pair), of_pair(pair))));
        let sessions: Vec<Vec<PairedSession>> = sessions.into_values().collect();
        Some((kind, PairedDifference::of(&sessions, seed)?))
    });
    let found: Vec<(&str, PairedDifference)> = found.collect();
    let tested = found.iter().filter_map(|(_, it)| Some(it.sign_flip?.p));
    let mut adjusted = benjamini_hochberg(&tested.collect::<Vec<_>>()).into_iter();
    let slices = found.into_iter().map(|(kind, difference)| {
        let adjusted_p = difference.sign_flip.and_then(|_| adjusted.next());
        Slice {
            kind: kind.to_owned(),
            difference: difference.by_session,
            counts: difference.counts,
            adjusted_p,
            is_finding: adjusted_p.is_some_and(|p| p <= EXPLORED),
        }
    });
    slices.collect()
}
