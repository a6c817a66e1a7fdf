//! Turns that an earlier summary replaced and the next one reads again.

use crate::strategy::stage::prelude::*;

/// The turns in front of those that a summary replaces. The summariser reads them too, so that two summaries
/// overlap; they are replaced only once.
#[derive(Debug, Deserialize)]
pub(super) struct Overlap {
    /// How many; 0 for none.
    #[serde(rename = "overlap_turns")]
    turns: usize,
    /// The messages of the session so far, if any are wanted.
    #[serde(skip)]
    said: Vec<Entry>,
}

impl Overlap {
    pub(super) fn is_wanted(&self) -> bool {
        self.turns > 0
    }

    /// Keeps a message that was appended: when it is wanted again, the context has it no more.
    pub(super) fn take_note_of(&mut self, entry: &Entry) {
        if self.is_wanted() && entry.origin.message().is_some() {
            self.said.push(entry.clone());
        }
    }

    /// The entries with those turns in front of the first that stands as it was said; of `standing` none, which are
    /// in front of them anyway.
    pub(super) fn in_front_of(&self, covered: &[Entry], standing: &[Entry]) -> Vec<Entry> {
        let mut shown = covered.to_vec();
        let Some(at) = shown.iter().position(|entry| entry.origin.message().is_some()) else {
            return shown;
        };
        let first = shown[at].origin.message();
        let end = self.said.partition_point(|entry| entry.origin.message() < first);
        let last = standing.iter().filter_map(|entry| entry.origin.message()).max();
        let begin = self.said.partition_point(|entry| entry.origin.message() <= last);
        let earlier = &self.said[begin.min(end)..end];
        let starts = (0..earlier.len()).rev().filter(|at| earlier[*at].is_typed());
        let start = starts.take(self.turns).last().unwrap_or(earlier.len());
        shown.splice(at..at, earlier[start..].iter().cloned());
        shown
    }
}
