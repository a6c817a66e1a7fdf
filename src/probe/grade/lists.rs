//! Lists that can be read exactly.
//!
//! A list is scored only where each of its entries is exactly one of the entries that are known.
//! Anything else on a line (a lead-in, a remark behind an item) is for a judge.

use std::collections::BTreeSet;

use super::{GradeScore, normalise};
use crate::probe::Outcome;

/// The entries that a list is compared with.
#[derive(Debug)]
pub(crate) struct Gold<'a> {
    /// Entries that belong on it.
    pub(crate) wanted: BTreeSet<String>,
    /// Entries that may be listed or left out.
    pub(crate) optional: BTreeSet<String>,
    /// Entries that belong on it, or once did.
    pub(crate) ever: &'a BTreeSet<String>,
    /// Entries that can be read.
    pub(crate) known: &'a BTreeSet<String>,
}

impl Gold<'_> {
    /// Set F1, `2·|answered ∩ gold| / (|answered| + |gold|)`; optional entries count on neither side. A list of all that
    /// belongs on it and of something that once did is stale, and one with nothing of the gold is another's.
    pub(crate) fn grade(&self, answered: &BTreeSet<String>) -> Option<GradeScore> {
        if answered.is_empty() || !answered.is_subset(self.known) {
            return None;
        }
        let gold = self.wanted.len();
        let common = self.wanted.intersection(answered).count();
        let others = answered.difference(&self.wanted);
        let extra = others.filter(|entry| !self.optional.contains(*entry)).count();
        let old = answered.intersection(self.ever).count() > common;
        let score = 2.0 * common as f64 / (gold + common + extra).max(1) as f64;
        let outcome = match common {
            _ if old && (common == gold || common == 0) => Outcome::Stale,
            0 => Outcome::Misbound,
            _ if common == gold && extra == 0 => Outcome::Right,
            _ => Outcome::Partial,
        };
        Some((score, outcome))
    }
}

/// The normalised entries, without empty ones.
pub(crate) fn normalised<'a>(items: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    items.into_iter().map(normalise).filter(|item| !item.is_empty()).collect()
}

/// The entries of a list, without bullets, boxes and numbers.
pub(crate) fn listed<'a>(answer: &'a str, separators: &'a [char]) -> impl Iterator<Item = &'a str> {
    answer.split(separators).map(|line| {
        let bare = line.trim().trim_start_matches(['-', '*', '•']).trim();
        let entry = bare.strip_prefix("[ ]").unwrap_or(bare);
        let behind = entry.trim_start_matches(|c: char| c.is_ascii_digit());
        match behind.strip_prefix(['.', ')']) {
            Some(rest) if behind.len() < entry.len() && rest.starts_with(' ') => rest.trim(),
            _ => entry.trim(),
        }
    })
}
