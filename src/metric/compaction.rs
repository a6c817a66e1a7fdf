//! Compaction: what was applied, by which stage, and what it left.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::CellRecord;
use crate::units::Tokens;

/// Patches of one stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct StageTotal {
    /// Patches applied.
    pub patches: usize,
    /// Tokens of messages they freed, those that freed nothing counted as 0.
    pub freed: Tokens,
    /// Times the stage failed.
    pub failures: usize,
}

impl StageTotal {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            patches: self.patches + other.patches,
            freed: self.freed + other.freed,
            failures: self.failures + other.failures,
        }
    }
}

/// What each stage of a cell did, by its name.
pub fn by_stage(cell: &CellRecord) -> BTreeMap<String, StageTotal> {
    let mut stages: BTreeMap<String, StageTotal> = BTreeMap::new();
    for event in &cell.compactions {
        let stage = stages.entry(event.stage.clone()).or_default();
        stage.patches += 1;
        stage.freed += event.before - event.after;
    }
    for event in &cell.failures {
        stages.entry(event.stage.clone()).or_default().failures += 1;
    }
    stages
}

/// What compactions left of the messages.
///
/// Formula: mean of after/before over the patches that freed something; nothing where none did.
/// Neither way is better: a small share saves more and keeps less. Source: the counter.
pub fn retained(cell: &CellRecord) -> Option<f64> {
    let shares: Vec<f64> = cell
        .compactions
        .iter()
        .filter(|event| event.after < event.before)
        .filter_map(|event| event.after.share_of(event.before))
        .collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}
