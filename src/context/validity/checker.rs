//! Follows a context change by change, and looks again only at what a change can touch.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::{
    Finding, check_ends, check_turn, duplicate_use, overlap, same_role, summary_ranges, turns,
};
use crate::context::{Applied, Entry, signed};
use crate::session::wire::Provider;

/// Follows a context, and knows at any time what [`check`](super::check) would say about it.
///
/// A change costs what was changed and the turns around it, and a logarithm of the context's
/// length; how many turns there are does not matter. Changing a summary costs the number of
/// summaries, and replacing entries moves those behind them, as in the context itself. Appended
/// entries are looked at when somebody asks, so that many in a row cost one look.
#[derive(Debug, Clone, Default)]
pub struct Checker {
    provider: Provider,
    entries: Vec<Entry>,
    /// For each entry, what is wrong with it: a subset of `standing`.
    found: Vec<Vec<Finding>>,
    /// What is wrong, with the number of entries of which it is said.
    standing: BTreeMap<Finding, usize>,
    uses: BTreeMap<Arc<str>, usize>,
    /// Ranges of the session's messages that summaries stand for, with repetitions.
    summaries: BTreeMap<(usize, usize), usize>,
    overlap: Option<Finding>,
    overlap_is_known: bool,
    /// Entries up to here were looked at.
    checked: usize,
}

impl Checker {
    /// Follows an empty context whose prompts go to this provider.
    pub fn new(provider: Provider) -> Self {
        Self {
            provider,
            ..Self::default()
        }
    }

    /// An entry was appended at the end.
    pub fn append(&mut self, entry: &Entry) {
        self.enters(entry);
        self.entries.push(entry.clone());
        self.found.push(Vec::new());
    }

    /// A patch was applied.
    pub fn patch(&mut self, applied: &Applied) {
        self.settle();
        let mut changed: Vec<Range<usize>> = Vec::with_capacity(applied.change.edits.len());
        let mut shift = 0_isize;
        for edit in &applied.change.edits {
            let length = self.entries.len();
            let start = edit.entries.start.saturating_add_signed(shift).min(length);
            let end = edit.entries.end.saturating_add_signed(shift);
            let end = end.clamp(start, length);
            shift += signed(edit.with.len()) - signed(end - start);
            for entry in &edit.with {
                self.enters(entry);
            }
            let removed: Vec<Entry> = self
                .entries
                .splice(start..end, edit.with.iter().cloned())
                .collect();
            for entry in &removed {
                self.leaves(entry);
            }
            let comes = edit.with.iter().map(|_| Vec::new());
            let gone: Vec<Vec<Finding>> = self.found.splice(start..end, comes).collect();
            for finding in gone.into_iter().flatten() {
                drop_one(&mut self.standing, &finding);
            }
            changed.push(start..start + edit.with.len());
        }
        let mut regions: Vec<Range<usize>> = Vec::with_capacity(changed.len());
        for change in changed {
            let region = self.touched(&change);
            match regions.last_mut() {
                Some(last) if region.start <= last.end => last.end = last.end.max(region.end),
                _ => regions.push(region),
            }
        }
        for region in regions {
            self.recheck(region);
        }
        self.checked = self.entries.len();
    }

    /// All rules that the context, sent as it is now, breaks.
    pub fn findings(&mut self) -> BTreeSet<Finding> {
        self.settle();
        if !self.overlap_is_known {
            self.overlap = overlap(self.summaries.iter().flat_map(|(range, &count)| {
                // Twice says that it is repeated; how often does not matter.
                std::iter::repeat_n(*range, count.min(2))
            }));
            self.overlap_is_known = true;
        }
        let mut findings: BTreeSet<Finding> = self.standing.keys().cloned().collect();
        findings.extend(self.overlap.clone());
        findings.extend(check_ends(self.provider, &self.entries));
        findings
    }

    fn enters(&mut self, entry: &Entry) {
        for (_, tool_use) in entry.message.tool_uses() {
            let count = self.uses.entry(tool_use.id.clone()).or_default();
            *count += 1;
            if *count == 2 {
                self.standing.insert(duplicate_use(&tool_use.id), 1);
            }
        }
        for range in summary_ranges(entry) {
            *self.summaries.entry(range).or_default() += 1;
            self.overlap_is_known = false;
        }
    }

    fn leaves(&mut self, entry: &Entry) {
        for (_, tool_use) in entry.message.tool_uses() {
            if drop_one(&mut self.uses, &tool_use.id) == 1 {
                self.standing.remove(&duplicate_use(&tool_use.id));
            }
        }
        for range in summary_ranges(entry) {
            drop_one(&mut self.summaries, &range);
            self.overlap_is_known = false;
        }
    }

    /// Looks at what was appended since the last time.
    fn settle(&mut self) {
        if self.checked < self.entries.len() {
            let region = self.touched(&(self.checked..self.entries.len()));
            self.recheck(region);
            self.checked = self.entries.len();
        }
    }

    /// The whole turns whose findings can differ after these entries have changed: the turns that
    /// the change touches or joins, and one more on either side.
    fn touched(&self, changed: &Range<usize>) -> Range<usize> {
        let mut range = changed.clone();
        for _ in 0..2 {
            range.start = self.turn_before(range.start).start;
            range.end = self.turn_after(range.end).end;
        }
        range
    }

    /// The turn of the entry before `end`, up to `end`.
    fn turn_before(&self, end: usize) -> Range<usize> {
        let turn = turns_back(&self.entries[..end]).next().unwrap_or_default();
        end - turn.len()..end
    }

    /// The turn of the entry at `start`, from `start` on.
    fn turn_after(&self, start: usize) -> Range<usize> {
        let turn = turns(&self.entries[start..]).next().unwrap_or_default();
        start..start + turn.len()
    }

    /// Looks at some whole turns afresh.
    fn recheck(&mut self, region: Range<usize>) {
        let mut fresh: Vec<Vec<Finding>> = vec![Vec::new(); region.len()];
        let mut before = &self.entries[self.turn_before(region.start)];
        let last = &self.entries[self.turn_after(region.end)];
        let mut at = 0;
        let mut turns = turns(&self.entries[region.clone()]).peekable();
        while let Some(turn) = turns.next() {
            let after = turns.peek().copied().unwrap_or(last);
            check_turn(self.provider, before, turn, after, &mut |entry, finding| {
                fresh[at + entry].push(finding);
            });
            at += turn.len();
            before = turn;
        }
        for (slot, fresh) in self.found[region].iter_mut().zip(fresh) {
            for finding in &fresh {
                *self.standing.entry(finding.clone()).or_default() += 1;
            }
            for finding in std::mem::replace(slot, fresh) {
                drop_one(&mut self.standing, &finding);
            }
        }
    }
}

/// Counts one less, forgets at zero, and says how many are left.
fn drop_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) -> usize {
    let left = match counts.get_mut(key) {
        Some(count) => {
            *count -= 1;
            *count
        }
        None => return 0,
    };
    if left == 0 {
        counts.remove(key);
    }
    left
}

fn turns_back(entries: &[Entry]) -> impl Iterator<Item = &[Entry]> {
    entries.chunk_by(same_role).rev()
}
