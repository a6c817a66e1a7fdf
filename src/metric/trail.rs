//! Artifact trail and unsupported atoms: whether the next prompt still says, truly, what was done.

use super::prelude::*;
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
    let counted = [Read, Created, Modified, Deleted].map(|verb| {
        let mut counts = own.get(&verb).copied().unwrap_or_default();
        let whole = full.and_then(|full| full.get(&verb));
        counts.touched = whole.map_or(0, |whole| whole.touched).max(counts.touched);
        (verb, counts)
    });
    Some(counted.into())
}

/// The files of a cell, all verbs together: the same file under two verbs counts twice.
pub(super) fn all(cell: &CellSummary) -> Option<TrailCounts> {
    let mut counts = TrailCounts::default();
    for more in cell.trail.as_ref()?.values() {
        counts += *more;
    }
    Some(counts)
}
