//! Artifact trail and unsupported atoms: whether the next prompt still says, truly, what was done.

use serde::Serialize;

use crate::metric::CellSummary;
use crate::metric::pool::{Sample, counted};
use crate::record::{CellRecord, SummaryAtoms, TrailCounts};

/// Files by what was done to them, over the calls of one cell.
///
/// Each call weighs what it has to tell. Calls after a death tell nothing, and are counted in what
/// there was to tell. Source: tool uses, and rules that read the lines of summaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Trail {
    /// Only looked at.
    pub read: TrailCounts,
    /// Written as a whole.
    pub created: TrailCounts,
    /// Changed.
    pub modified: TrailCounts,
    /// Removed.
    pub deleted: TrailCounts,
}

impl Trail {
    /// The trail of this cell; nothing where nobody looked. `reference` is `full` on the same
    /// session.
    pub fn of(cell: &CellRecord, reference: Option<&CellRecord>) -> Option<Self> {
        use crate::record::ArtifactVerb::{Created, Deleted, Modified, Read};
        let own = cell.trail.as_ref()?;
        let full = reference.and_then(|full| full.trail.as_ref());
        let of = |verb| {
            let own = own.get(&verb).copied().unwrap_or_default();
            let whole = full.and_then(|full| full.get(&verb));
            TrailCounts {
                touched: whole.map_or(own.touched, |whole| whole.touched.max(own.touched)),
                ..own
            }
        };
        Some(Self {
            read: of(Read),
            created: of(Created),
            modified: of(Modified),
            deleted: of(Deleted),
        })
    }

    /// Verbs with their counts, in the order of tables.
    pub fn by_verb(&self) -> [(&'static str, TrailCounts); 4] {
        [
            ("read", self.read),
            ("created", self.created),
            ("modified", self.modified),
            ("deleted", self.deleted),
        ]
    }

    /// All verbs together: the same file under two verbs counts twice.
    pub fn total(&self) -> TrailCounts {
        let counts = self.by_verb();
        counts
            .iter()
            .fold(TrailCounts::default(), |sum, (_, of)| plus(sum, *of))
    }

    /// Both together, verb by verb.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            read: plus(self.read, other.read),
            created: plus(self.created, other.created),
            modified: plus(self.modified, other.modified),
            deleted: plus(self.deleted, other.deleted),
        }
    }
}

fn plus(one: TrailCounts, other: TrailCounts) -> TrailCounts {
    TrailCounts {
        touched: one.touched + other.touched,
        told: one.told + other.told,
        right: one.right + other.right,
    }
}

/// A share of the files of a cell, all verbs together.
pub(super) fn share_of(
    cell: &CellSummary,
    share: fn(&TrailCounts) -> Option<f64>,
    items: fn(&TrailCounts) -> u64,
) -> Option<Sample> {
    let counts = cell.trail?.total();
    counted(share(&counts), items(&counts))
}

/// Formula: right / told; nothing where nothing is told. Higher is better.
pub fn precision(counts: &TrailCounts) -> Option<f64> {
    share(counts.right, counts.told)
}

/// Formula: right / touched; nothing where nothing was touched. Higher is better.
pub fn recall(counts: &TrailCounts) -> Option<f64> {
    share(counts.right, counts.touched)
}

/// Formula: 2·right/(told + touched), the harmonic mean of precision and recall. Higher is better.
pub fn f1(counts: &TrailCounts) -> Option<f64> {
    share(2 * counts.right, counts.told + counts.touched)
}

/// Formula: unsupported / atoms; nothing where summaries hold none. Lower is better.
pub fn unsupported_share(atoms: &SummaryAtoms) -> Option<f64> {
    share(atoms.unsupported, atoms.atoms)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
