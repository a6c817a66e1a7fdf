//! The messages the model is sent now: a projection of the session that strategies edit.
//!
//! A [`Context`] is a list of [`Entry`]s. Each knows where it came from ([`Origin`]), so that after
//! any number of compactions one can still say which of the session's messages a piece of the
//! prompt represents. A strategy never edits a context: it returns a [`Patch`], which is checked
//! and applied in one place, and every application is logged as an [`Applied`].

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::session::{Message, Role, Tag, ToolUse};
use crate::tokens::{CountedTexts, PackedSize, Size};
use crate::units::Tokens;

mod attachments;
mod edit_list;
mod patch;
pub mod validity;

pub use attachments::Attachments;
#[cfg(test)]
pub(crate) use edit_list::visited;
pub(crate) use edit_list::{EditList, Moved, visit};
pub use patch::{Applied, CacheEffect, Change, Edit, Patch, PatchError};

/// One message of a context, with its origin and size.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Where it came from.
    pub origin: Origin,
    /// The message that is sent.
    pub message: Arc<Message>,
    size: PackedSize,
}

impl Entry {
    /// Measures `message`: each text that `counts` has seen before costs a look-up.
    pub fn new(origin: Origin, message: Arc<Message>, counts: &CountedTexts) -> Self {
        let size = measure(&message, counts);
        Self::sized(origin, message, size)
    }

    /// A message whose size is known.
    pub(crate) fn sized(origin: Origin, message: Arc<Message>, size: Size) -> Self {
        Self { origin, message, size: size.into() }
    }

    /// How large it is.
    pub fn size(&self) -> Size {
        self.size.get()
    }

    /// A message that a stage writes in the user's name.
    pub(crate) fn written(
        origin: Origin,
        text: impl Into<Arc<str>>,
        tag: Tag,
        counts: &CountedTexts,
    ) -> Self {
        let message = Message::text(Role::User, text).with_tags([tag]);
        Self::new(origin, Arc::new(message), counts)
    }

    /// The entry with the text of one block replaced; a message of the session that was verbatim
    /// becomes [`Origin::Edited`].
    #[must_use]
    pub fn with_block_text(&self, block: usize, text: &Arc<str>, counts: &CountedTexts) -> Self {
        let old = measure_block(&self.message, block, counts);
        let message = Arc::new(self.message.with_block_text(block, text));
        let new = measure_block(&message, block, counts);
        let origin = self.origin.edited([block]);
        Self::sized(origin, message, self.size() - old + new)
    }

    /// Whether a user typed the message.
    pub fn is_typed(&self) -> bool {
        self.message.has_tag(Tag::TypedUser)
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.message.role()
    }

    /// Whether the block still says what the session said.
    pub fn is_verbatim(&self, block: usize) -> bool {
        self.origin.is_verbatim(block)
    }
}

pub(crate) fn measure(message: &Message, counts: &CountedTexts) -> Size {
    let details = &message.details;
    let texts: Size = message.blocks().map(|block| counts.block(&block)).sum();
    texts.billed_by(details.factor) + Size::hidden(details.hidden)
}

/// A block of a message, as billed where its bill shows that: a part of it has its share.
pub(crate) fn measure_block(message: &Message, block: usize, counts: &CountedTexts) -> Size {
    let block = message.blocks().nth(block);
    block.map_or_else(Size::default, |block| counts.block(&block).billed_by(message.details.factor))
}

/// Where a piece of the prompt came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The session's message of this index, as it was.
    Verbatim(usize),
    /// The session's message of this index, with some blocks changed (indices ascending).
    Edited {
        /// Index of the message.
        message: usize,
        /// The changed blocks.
        blocks: Arc<Vec<u32>>,
    },
    /// Written in place of these ranges of the session's messages (ascending, disjoint).
    Derived(Arc<[Range<usize>]>),
    /// The session's message of this index, or part of it, put back after it was gone.
    Restored(usize),
    /// Written by the strategy, and represents no message: an acknowledgement, a placeholder.
    Authored,
}

impl Origin {
    /// Whether this block of the entry still says what the session said.
    pub(crate) fn is_verbatim(&self, block: usize) -> bool {
        match self {
            Self::Verbatim(_) => true,
            Self::Edited { blocks, .. } => {
                u32::try_from(block).is_ok_and(|block| blocks.binary_search(&block).is_err())
            }
            Self::Derived(_) | Self::Restored(_) | Self::Authored => false,
        }
    }

    /// The origin once these blocks are changed: a message of the session that was verbatim becomes [`Origin::Edited`].
    pub(crate) fn edited(&self, changed: impl IntoIterator<Item = usize>) -> Self {
        let (message, earlier) = match self {
            Self::Verbatim(message) => (*message, &[][..]),
            Self::Edited { message, blocks } => (*message, &blocks[..]),
            Self::Derived(_) | Self::Restored(_) | Self::Authored => return self.clone(),
        };
        let later = changed.into_iter().map(|block| u32::try_from(block).unwrap_or(u32::MAX));
        let blocks: BTreeSet<u32> = earlier.iter().copied().chain(later).collect();
        let blocks = Arc::new(blocks.into_iter().collect());
        Self::Edited { message, blocks }
    }

    /// The session's message that the entry is, changed or not.
    pub(crate) fn message(&self) -> Option<usize> {
        match self {
            Self::Verbatim(at) | Self::Edited { message: at, .. } | Self::Restored(at) => Some(*at),
            Self::Derived(_) | Self::Authored => None,
        }
    }

    /// The ranges of the session's messages that it was written in place of; none for others.
    pub(crate) fn replaced(&self) -> &[Range<usize>] {
        match self {
            Self::Derived(ranges) => ranges,
            _ => &[],
        }
    }

    /// The newest of the session's messages that it represents.
    pub(crate) fn newest(&self) -> Option<usize> {
        self.replaced().last().map(|range| range.end - 1).or_else(|| self.message())
    }

    /// The ranges of session messages that the entries represent, merged: the origin of a text that
    /// replaces them.
    pub fn derived_from<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for Entry { origin, .. } in entries {
            ranges.extend_from_slice(origin.replaced());
            ranges.extend(origin.message().map(|at| at..at + 1));
        }
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        if merged.is_empty() { Self::Authored } else { Self::Derived(merged.into()) }
    }
}

/// The messages sent to the model now.
///
/// The running size and the number of tool results are kept up to date, so that appending and
/// asking for them cost the same whatever the length.
#[derive(Debug, Clone, Default)]
pub struct Context {
    entries: EditList<Entry>,
    size: Size,
    /// How many tool results they hold.
    results: usize,
    attachments: Attachments,
    replacements: u64,
}

/// A block of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockAt {
    /// Index of the entry.
    pub entry: usize,
    /// Index of the block in its message.
    pub block: usize,
}

impl Context {
    /// An empty context with room for so many entries: growing would take up to twice the memory.
    pub(crate) fn with_capacity(entries: usize) -> Self {
        Self { entries: Vec::with_capacity(entries).into(), ..Self::default() }
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Size of all messages together; system prompt and tool definitions are not part of it.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The number of tool results, cleared ones included.
    pub fn result_count(&self) -> usize {
        self.results
    }

    /// All tool results, oldest first, cleared ones included.
    pub fn results(&self) -> impl Iterator<Item = BlockAt> + use<'_> {
        self.results_in(0..self.entries.len())
    }

    /// The tool results in these entries.
    pub fn results_in(&self, entries: Range<usize>) -> impl Iterator<Item = BlockAt> + use<'_> {
        entries.flat_map(move |entry| {
            let results = self.entries[entry].message.tool_results();
            results.map(move |(block, _)| BlockAt { entry, block })
        })
    }

    /// Images and documents in all messages together.
    pub fn attachments(&self) -> &Attachments {
        &self.attachments
    }

    /// The tool use that the result at `at` answers: the nearest one before it with its id.
    pub fn tool_use_of(&self, at: BlockAt) -> Option<&ToolUse> {
        let message = &self.entries.get(at.entry)?.message;
        let result = message.content().get(at.block)?.as_result()?;
        self.entries[..at.entry].iter().rev().find_map(|entry| {
            let mut tools = entry.message.tool_uses().map(|(_, tool)| tool);
            tools.find(|tool| tool.id == result.tool_use_id)
        })
    }

    /// How often entries were replaced: while this stays the same, entries and
    /// [results](Self::results) only come at the end, so that a stage may remember how far it came.
    ///
    /// A replacement one for one that leaves every tool use and result with its message does not
    /// count, and neither does taking back one that did not.
    pub fn replacements(&self) -> u64 {
        self.replacements
    }

    /// Entries before this one were there when the model spoke last.
    pub(crate) fn answered(&self) -> usize {
        let last = self.entries.iter().rposition(|entry| entry.role() == Role::Assistant);
        last.map_or(0, |at| at + 1)
    }

    /// A context of these entries in which positions mean something only where [`replacements`](Self::replacements) is
    /// this number.
    pub(crate) fn begun_anew(entries: Vec<Entry>, replacements: u64) -> Self {
        let mut context = Self::with_capacity(entries.len());
        for entry in entries {
            context.append(entry);
        }
        context.replacements = replacements;
        context
    }

    /// Positions in `other`, which has the same entries, mean the same here.
    pub(crate) fn follow_positions_of(&mut self, other: &Self) {
        self.replacements = other.replacements;
    }

    /// Adds an entry at the end.
    pub fn append(&mut self, entry: Entry) {
        self.size += entry.size();
        self.results += entry.message.tool_results().count();
        self.attachments.add(&entry);
        self.entries.push(entry);
    }

    /// The provider leaves hidden parts of these messages out of the prompt from now on. Returns the entries
    /// that shrank, in the same order.
    ///
    /// Costs a search for each. Entries stand in the order of the newest message that they represent, but for those
    /// that were put back in front of what was kept.
    pub fn leave_out(&mut self, parts: &[(usize, Tokens)]) -> Vec<usize> {
        let mut shrunk = Vec::new();
        for (message, tokens) in parts {
            let at = self.entries.partition_point(|entry| entry.origin.newest() < Some(*message));
            let Some(entry) = self.entries.get_mut(at) else {
                continue;
            };
            let tokens = entry.message.details.hidden.min(*tokens);
            if entry.origin.message() != Some(*message) || tokens == Tokens::ZERO {
                continue;
            }
            let details = &mut Arc::make_mut(&mut entry.message).details;
            details.hidden = details.hidden - tokens;
            entry.size = (entry.size() - Size::hidden(tokens)).into();
            self.size = self.size - Size::hidden(tokens);
            shrunk.push(at);
        }
        shrunk
    }

    /// Applies `edits`, and says what each changed.
    ///
    /// On an error nothing is changed. Editing blocks costs what is edited; replacing entries
    /// costs the length of the context in front of them or behind them, whichever is shorter.
    pub fn apply(&mut self, edits: Vec<Edit>) -> Result<Change, PatchError> {
        check(&edits, self.entries.len())?;
        let before = self.size;
        let mut removed = Vec::new();
        let mut is_in_place = true;
        let mut shift = 0_isize;
        for Edit { entries, with, .. } in &edits {
            let start = entries.start.saturating_add_signed(shift);
            let (old, same_shape) = self.replace(start..start + entries.len(), with);
            shift += signed(with.len()) - signed(old.len());
            is_in_place &= same_shape;
            removed.extend(old);
        }
        self.replacements += u64::from(!is_in_place);
        Ok(Change { edits, removed, before, after: self.size })
    }

    /// Takes back the change that was made last. Where it moved nothing, this costs what it
    /// changed.
    pub fn revert(&mut self, change: &Change) {
        let mut removed = &change.removed[..];
        let mut is_in_place = true;
        // Once all earlier edits are taken back, an edit starts where it was planned to.
        for edit in &change.edits {
            let (old, later) = removed.split_at(edit.entries.len());
            removed = later;
            let start = edit.entries.start;
            is_in_place &= self.replace(start..start + edit.with.len(), old).1;
        }
        self.replacements += u64::from(!is_in_place);
    }

    /// These entries make way for others. Returns them, and whether [positions](Self::replacements) keep their meaning.
    fn replace(&mut self, entries: Range<usize>, with: &[Entry]) -> (Vec<Entry>, bool) {
        let (old, _) = self.entries.splice(entries, with);
        for entry in with {
            self.size += entry.size();
            self.results += entry.message.tool_results().count();
            self.attachments.add(entry);
        }
        for entry in &old {
            self.size = self.size - entry.size();
            self.results -= entry.message.tool_results().count();
            self.attachments.remove(entry);
        }
        let same_shape = is_in_place(&old, with);
        (old, same_shape)
    }

    /// The entries, oldest first, for good.
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries.into_vec()
    }
}

/// Whether edits fit a context of so many entries.
fn check(edits: &[Edit], length: usize) -> Result<(), PatchError> {
    let mut next = 0;
    for Edit { entries, .. } in edits {
        if entries.start < next || entries.end < entries.start {
            return Err(PatchError::Overlap { entry: entries.start });
        }
        if entries.end > length {
            return Err(PatchError::NoSuchEntry { entry: entries.end - 1 });
        }
        next = entries.end;
    }
    Ok(())
}

fn signed(length: usize) -> isize {
    isize::try_from(length).unwrap_or(isize::MAX)
}

/// Whether entries may replace others with nothing else to note: as many, and each asks for the
/// same tools and holds the same results at the same places.
fn is_in_place(old: &[Entry], new: &[Entry]) -> bool {
    fn shape(entry: &Entry) -> impl PartialEq + '_ {
        let message = &entry.message;
        let asks: Vec<&Arc<str>> = message.tool_uses().map(|(_, tool)| &tool.id).collect();
        let answers: Vec<(usize, &Arc<str>)> =
            message.tool_results().map(|(at, result)| (at, &result.tool_use_id)).collect();
        (message.role(), asks, answers)
    }
    old.iter().map(shape).eq(new.iter().map(shape))
}
