//! Answers that are kept in a cassette: what was asked, and what of it had to be paid.
//!
//! The same request is paid once, however many cells make it: the distinct ones are the entries of
//! the cassette, and their tokens are what was paid.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::Purpose;
use crate::record::{CellRecord, ProbeRecord};
use crate::units::{Tokens, Usage};

/// Kept answers of one purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Requests that cells made.
    pub requests: usize,
    /// Their tokens, prompts and answers.
    pub tokens: Tokens,
    /// Different requests among them.
    pub distinct: usize,
    /// The tokens of these: what was paid, now or when they were recorded.
    pub paid: Tokens,
}

/// Kept answers by purpose, over all cells; nothing of a purpose that nobody was asked for.
pub fn kept<'a>(cells: impl IntoIterator<Item = &'a CellRecord>) -> BTreeMap<Purpose, Kept> {
    let mut all: BTreeMap<Purpose, Kept> = BTreeMap::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut note = |key: &'a str, purpose: Purpose, usage: &Usage| {
        let kept = all.entry(purpose).or_default();
        kept.requests += 1;
        kept.tokens += usage.total();
        if seen.insert(key) {
            kept.distinct += 1;
            kept.paid += usage.total();
        }
    };
    for cell in cells {
        for call in &cell.model_calls {
            if let Some(key) = &call.key {
                note(key, call.purpose, &call.usage);
            }
        }
        let answers = cell.probes.iter().flat_map(ProbeRecord::answers);
        let answers = answers.flat_map(|answer| &answer.calls);
        let sentinels = cell.sentinels.iter().flat_map(|sentinel| &sentinel.calls);
        for call in answers.chain(sentinels) {
            note(&call.key, call.purpose, &call.usage);
        }
    }
    all
}
