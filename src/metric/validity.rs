//! Validity: prompts the provider would have refused.

use super::prelude::*;
use crate::record::Level;

/// Findings of the validity check. Counts; lower is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ValidityFindings {
    /// Calls whose prompt breaks a rule of level `rejected`; a call counts once.
    pub rejected: usize,
    /// Findings of level `warning`.
    pub warnings: usize,
    /// Prompts refused as too long, recovered or not.
    pub overflows: usize,
}

impl ValidityFindings {
    /// The findings of this cell.
    pub fn of(cell: &CellRecord) -> Self {
        let mut rejected = BTreeSet::new();
        let mut warnings = 0;
        for violation in &cell.violations {
            match violation.level {
                // A finding has stood for one call at least, and never after the last one.
                Level::Rejected => {
                    let end = violation.call.saturating_add(violation.calls.max(1));
                    let last = cell.reached_calls.max(violation.call + 1);
                    rejected.extend(violation.call..end.min(last));
                }
                Level::Warning => warnings += 1,
            }
        }
        Self { rejected: rejected.len(), warnings, overflows: cell.overflows.len() }
    }
}
