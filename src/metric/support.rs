//! Action support: the past text that the agent's recorded tool calls needed, and the part of it in
//! the prompt.

use super::pool::share;
use super::prelude::*;

/// Atoms of tool calls, wanted and present. Higher is better. Source: string matching.
///
/// The atoms wanted are those of the reference, the same for every strategy: what a session that
/// died would have wanted later is wanted and not present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Support {
    /// Atoms wanted.
    pub wanted: u64,
    /// Of these, present.
    pub present: u64,
    /// Atoms wanted of which some occurrence has been compacted, over the calls reached.
    pub compacted_wanted: u64,
    /// Of these, present.
    pub compacted_present: u64,
    /// Of the atoms wanted, those that are gone and could be read again; `None` where this was not
    /// recorded.
    pub reachable: Option<u64>,
}

impl Support {
    /// The support of this cell.
    pub fn of(cell: &CellRecord, reference: Option<&CellRecord>) -> Self {
        let own = &cell.action_support;
        let wanted = reference.map(|full| &full.action_support.wanted);
        let later = wanted.and_then(|wanted| wanted.get(own.wanted.len()..)).map_or(0, sum);
        Self {
            wanted: sum(&own.wanted) + later,
            present: sum(&own.present),
            compacted_wanted: sum(&own.compacted_wanted),
            compacted_present: sum(&own.compacted_present),
            reachable: own.reachable.as_deref().map(sum),
        }
    }

    /// Formula: present / wanted; `None` where nothing was wanted.
    pub fn share(&self) -> Option<f64> {
        share(self.present, self.wanted)
    }

    /// 1 if anything wanted is gone, else 0; `None` where nothing was wanted.
    pub fn any_missing(&self) -> Option<f64> {
        (self.wanted > 0).then(|| f64::from(u8::from(self.present < self.wanted)))
    }
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().copied().map(u64::from).sum()
}
