//! Calls whose answers are kept in a cassette: how many were made, and which of them were paid.
//!
//! The same request is paid once, however many cells make it: the distinct ones are the entries of
//! the cassette, and their tokens are what was paid for them. What is not worth keeping, and attempts
//! that failed, are paid as well, and counted apart.

use super::prelude::*;

/// Cached calls of one purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CachedCalls {
    /// Requests that cells made.
    pub requests: usize,
    /// Their tokens, prompts and answers.
    pub tokens: Tokens,
    /// Different requests among them.
    pub distinct: usize,
    /// The tokens of these: what was paid, now or when they were recorded.
    pub paid: Tokens,
    /// Requests that were paid and are kept nowhere: refused, not to be read, or failed and made again.
    pub lost: usize,
    /// Their tokens.
    pub lost_tokens: Tokens,
}

/// Cached calls by purpose, over all cells.
pub fn by_purpose<'a>(
    cells: impl IntoIterator<Item = &'a CellRecord>,
) -> BTreeMap<Purpose, CachedCalls> {
    let mut all: BTreeMap<Purpose, CachedCalls> = BTreeMap::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for cell in cells {
        for (key, purpose, usage) in cell.kept_calls() {
            let kept = all.entry(purpose).or_default();
            kept.requests += 1;
            kept.tokens += usage.total();
            if seen.insert(key) {
                kept.distinct += 1;
                kept.paid += usage.total();
            }
        }
        for call in &cell.lost_calls {
            let kept = all.entry(call.purpose).or_default();
            kept.lost += 1;
            kept.lost_tokens += call.usage.total();
        }
    }
    all
}

/// The names under which the answers are kept, with their purpose: of an answer that serves two
/// purposes, the first.
pub fn keys(cells: &[CellRecord]) -> BTreeMap<&str, Purpose> {
    let mut keys = BTreeMap::new();
    for (key, purpose, _) in cells.iter().flat_map(CellRecord::kept_calls) {
        keys.entry(key).or_insert(purpose);
    }
    keys
}
