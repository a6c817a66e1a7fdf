//! Patches: the edits that a stage plans, and the changes made by applying them.

use std::ops::Range;
use std::sync::Arc;

use super::{BlockAt, Entry};
use crate::tokens::{CountedTexts, Size};

/// One change to a context, as it is planned and as it was applied: some entries make way for others.
///
/// Indices are those of the context before the whole patch. An empty range inserts.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// The entries to remove.
    pub entries: Range<usize>,
    /// The entries that take their place.
    pub with: Vec<Entry>,
    /// Whether the provider's cache survives it.
    pub cache: CacheEffect,
}

impl Edit {
    /// These entries make way for others.
    pub fn replacing(entries: Range<usize>, with: impl IntoIterator<Item = Entry>) -> Self {
        Self { entries, with: with.into_iter().collect(), cache: CacheEffect::Breaks }
    }

    /// Blocks of these entries, in ascending order, get other texts: one edit for each entry.
    pub fn blocks(
        entries: &[Entry],
        texts: impl IntoIterator<Item = (BlockAt, Arc<str>)>,
        cache: CacheEffect,
        counts: &CountedTexts,
    ) -> Vec<Self> {
        let mut edits: Vec<Self> = Vec::new();
        for (BlockAt { entry, block }, text) in texts {
            let earlier = edits.pop_if(|edit| edit.entries.start == entry);
            let old = earlier.as_ref().and_then(|edit| edit.with.first());
            let with = old.unwrap_or(&entries[entry]).with_block_text(block, &text, counts);
            edits.push(Self { cache, ..Self::replacing(entry..entry + 1, [with]) });
        }
        edits
    }
}

/// The effect of an edit on the provider's prompt cache behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheEffect {
    /// The provider removes the text on its side, and keeps the prefix valid.
    Keeps,
    /// The prefix changes: everything behind the edit is written again.
    Breaks,
}

/// The changes that a stage wants.
///
/// All indices refer to the context that `plan` was shown; edits are ascending and disjoint.
#[derive(Debug, Clone, Default)]
pub struct Patch {
    /// The changes; none means that the stage found nothing to do.
    pub edits: Vec<Edit>,
    /// Why, in words, for the log: `3 results older than the last 10`.
    pub reason: String,
    /// Texts the stage puts aside: the path the prompt names, and the content.
    pub saved: Vec<(String, Arc<str>)>,
}

impl Patch {
    /// Some changes that put no text aside.
    pub(crate) fn new(reason: String, edits: Vec<Edit>) -> Self {
        Self { edits, reason, saved: Vec::new() }
    }

    /// One range of entries makes way for others.
    pub(crate) fn replacing(reason: String, entries: Range<usize>, with: Vec<Entry>) -> Self {
        Self::new(reason, vec![Edit::replacing(entries, with)])
    }
}

/// The effect of the applied edits.
#[derive(Debug, Clone)]
pub struct Change {
    /// The replacements, in order.
    pub edits: Vec<Edit>,
    /// The entries that were there before, those of each edit in order.
    pub removed: Vec<Entry>,
    /// Size of the messages before.
    pub before: Size,
    /// Size of the messages after.
    pub after: Size,
}

/// A patch that was applied: enough to follow a context without looking at it.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The call before which it was applied, or after which, if it was done beside the agent.
    pub call: usize,
    /// The stage's name in its strategy.
    pub stage: Arc<str>,
    /// Why, in words.
    pub reason: String,
    /// The change.
    pub change: Change,
    /// Whether the context, once the strategy was done with it at this call, was still at or over
    /// the size that the stage waits for; false where it waits for none.
    pub is_still_over: bool,
    /// The call before which it was asked for, where that was done in the background.
    pub prepared_at: Option<usize>,
}

impl Applied {
    /// Each edit, with the entries that it removed.
    pub(crate) fn edits(&self) -> impl Iterator<Item = (&[Entry], &Edit)> {
        let mut removed = &self.change.removed[..];
        self.change.edits.iter().map_while(move |edit| {
            let (own, rest) = removed.split_at_checked(edit.entries.len())?;
            removed = rest;
            Some((own, edit))
        })
    }

    /// The entries that came in the place of those that were removed.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Entry> {
        self.change.edits.iter().flat_map(|edit| &edit.with)
    }
}

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// Edits are not in ascending order, or two touch the same place.
    #[error("the edit at entry {entry} is out of order or overlaps the one before it")]
    Overlap {
        /// Index of the entry.
        entry: usize,
    },
    /// The context has no such entry.
    #[error("there is no entry {entry}")]
    NoSuchEntry {
        /// Index of the entry.
        entry: usize,
    },
    /// A write-time patch turned the one entry into none or several.
    #[error("what is appended must stay one entry")]
    NotOneEntry,
}
