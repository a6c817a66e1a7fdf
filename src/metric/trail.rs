//! Artifact trail and unsupported atoms: whether the next prompt still says, truly, what was done.

use super::prelude::*;
use crate::metric::pool::{counted, share};
use crate::record::ArtifactVerb::{Created, Deleted, Modified, Read};
use crate::record::{ArtifactTrail, TrailCounts};

/// Files by what was done to them, over the calls of one cell; `None` where this was not recorded.
/// `reference` is `full` on the same session.
///
/// Each call counts with the files it mentions. Calls after a death mention none, and count with
/// the files touched. Source: tool uses, and rules that read the lines of summaries.
pub(super) fn of(cell: &CellRecord, reference: Option<&CellRecord>) -> Option<ArtifactTrail> {
    let own = cell.trail.as_ref()?;
    let full = reference.and_then(|full| full.trail.as_ref());
    let of = |verb| {
        let mut counts = own.get(&verb).copied().unwrap_or_default();
        let whole = full.and_then(|full| full.get(&verb));
        counts.touched = whole.map_or(0, |it| it.touched).max(counts.touched);
        (verb, counts)
    };
    Some([Read, Created, Modified, Deleted].map(of).into())
}

/// A share of the files of a cell, all verbs together.
pub(super) fn share_of(
    cell: &CellSummary,
    share: fn(&TrailCounts) -> Option<f64>,
    items: fn(&TrailCounts) -> u64,
) -> Option<Sample> {
    // The same file under two verbs counts twice.
    let mut counts = TrailCounts::default();
    for more in cell.trail.as_ref()?.values() {
        counts += *more;
    }
    counted(share(&counts), items(&counts))
}

/// Formula: correct / mentioned; `None` where nothing is mentioned. Higher is better.
pub fn precision(counts: &TrailCounts) -> Option<f64> {
    share(counts.correct, counts.mentioned)
}

/// Formula: correct / touched; `None` where nothing was touched. Higher is better.
pub fn recall(counts: &TrailCounts) -> Option<f64> {
    share(counts.correct, counts.touched)
}

/// Formula: 2·correct/(mentioned + touched), the harmonic mean of precision and recall. Higher is
/// better.
pub fn f1(counts: &TrailCounts) -> Option<f64> {
    share(2 * counts.correct, counts.mentioned + counts.touched)
}

/// The atoms of summaries that are supported by nothing. Formula: unsupported / atoms; `None` where
/// summaries hold none.
pub(super) fn unsupported_atoms(cell: &CellSummary) -> Option<Sample> {
    let found = cell.summary_atoms.as_ref()?;
    counted(share(found.unsupported, found.atoms), found.atoms)
}
