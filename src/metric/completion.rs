//! Completion: how far a session got. It comes first, because a session that dies early is cheap.

use super::prelude::*;
use crate::record::End;

/// How far a cell got.
///
/// Formula: calls reached / calls planned. Higher is better. Source: the replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Completion {
    /// Calls that were sent.
    pub reached: usize,
    /// Calls the session has.
    pub planned: usize,
    /// The call at which a prompt no longer fitted.
    pub died_at: Option<usize>,
    /// The call at which the strategy failed.
    pub failed_at: Option<usize>,
}

impl Completion {
    /// How far this cell got.
    pub fn of(cell: &CellRecord) -> Self {
        let (died_at, failed_at) = match cell.end {
            End::Completed | End::NotMeasurable { .. } => (None, None),
            End::Died { call, .. } => (Some(call), None),
            End::Failed { call, .. } => (None, Some(call)),
        };
        Self {
            reached: cell.reached_calls.min(cell.planned_calls),
            planned: cell.planned_calls,
            died_at,
            failed_at,
        }
    }

    /// Calls reached / calls planned; `None` for a session without calls.
    pub fn share(&self) -> Option<f64> {
        (self.planned > 0).then(|| self.reached as f64 / self.planned as f64)
    }

    /// The calls of several cells together.
    pub(crate) fn over(cells: &[&CellSummary]) -> Self {
        let mut sum = Self::default();
        for cell in cells {
            sum.reached += cell.completion.reached;
            sum.planned += cell.completion.planned;
        }
        sum
    }
}
