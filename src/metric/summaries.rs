//! Summaries: how large they are, generation by generation.

use serde::Serialize;

use crate::model::Purpose;
use crate::record::CellRecord;
use crate::units::Tokens;

/// What a model wrote for compactions, in order: the first is the first generation, and each later
/// one may hold what is left of those before.
///
/// Formula: output of each answered call of purpose compaction or recovery. Tokens; neither way is
/// better. Source: the meter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Summaries(pub Vec<Tokens>);

impl Summaries {
    /// The summaries of this cell.
    pub fn of(cell: &CellRecord) -> Self {
        let calls = cell.model_calls.iter();
        let answered = calls.filter(|call| {
            matches!(call.purpose, Purpose::Compaction | Purpose::Recovery)
                && call.failure.is_none()
        });
        Self(answered.map(|call| call.usage.output).collect())
    }

    /// Their mean; nothing where none was written.
    pub fn mean(&self) -> Option<Tokens> {
        let sum: Tokens = self.0.iter().copied().sum();
        let count = self.0.len() as u64;
        (count > 0).then(|| Tokens(sum.0 / count))
    }
}
