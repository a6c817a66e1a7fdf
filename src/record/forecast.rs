//! A cell as it would be recorded: what a plan knows of a run before anything is spent.

use std::collections::BTreeMap;

use super::CellRecord;
use crate::units::Tokens;

/// The longest answer that each of a cell's `model_calls` may get, by their number; those that no
/// model is asked for are missing.
pub type Asks = BTreeMap<usize, Tokens>;

/// A cell as it would be recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct ForecastCell {
    /// What would be recorded, without probes.
    pub record: CellRecord,
    /// Which of its calls a model answers.
    pub asks: Asks,
    /// How many questions are put to the reader, by call; the floor is asked as many as the reference.
    pub probes: BTreeMap<usize, u64>,
}
