//! Summaries: how large they are, generation by generation.

use super::prelude::*;

/// The summaries that a model wrote for compactions, in order: the first is the first generation, and
/// each later one may hold what is left of those before.
///
/// Formula: output of each answered call of purpose compaction or recovery. Tokens; neither way is
/// better. Source: the meter.
pub type Summaries = Vec<WrittenSummary>;

/// A summary that a model wrote. Files hold its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Tokens")]
pub struct WrittenSummary {
    /// The call of the agent before which it was written.
    pub call: usize,
    /// Its length.
    pub tokens: Tokens,
    /// Who wrote it, where it is another model than the agent's.
    pub model: Option<String>,
}

impl From<WrittenSummary> for Tokens {
    fn from(summary: WrittenSummary) -> Self {
        summary.tokens
    }
}

/// The summaries of this cell.
pub fn of(cell: &CellRecord) -> Summaries {
    let written = cell.model_calls.iter().filter(|call| {
        matches!(call.purpose, Purpose::Compaction | Purpose::Recovery) && call.failure.is_none()
    });
    let summaries = written.map(|call| WrittenSummary {
        call: call.call,
        tokens: call.usage.output,
        model: call.model.clone(),
    });
    summaries.collect()
}

/// The mean summary of all cells; not measured where none was written.
pub(super) fn pooled(cells: &[&CellSummary], _: Anchors) -> Option<PooledValue> {
    let all = cells.iter().flat_map(|cell| &cell.summaries);
    let sum: Tokens = all.clone().map(|summary| summary.tokens).sum();
    let mean = sum.0.checked_div(all.count() as u64)?;
    Some(PooledValue::Tokens(Tokens(mean)))
}
