//! The prompt as a line of blocks, with the hash of every prefix.

use std::ops::Range;

use super::piece::{BlockList, CountedSize, PromptPiece, ToolRun};
use super::sent::{BlockId, ChainHash, SentBlocks};
use super::{CacheEvent, SentAt, is_live};
use crate::bill::Scale;
use crate::context::{CacheEffect, EditList, Moved, visit};
use crate::model::price::{CacheScheme, Senders};
use crate::tokens::Size;
use crate::units::Tokens;

/// A block in its place. A session may have a million, so it is kept small.
#[derive(Debug, Clone, Copy)]
struct LineBlock {
    /// Its current content.
    content: u64,
    /// The number under which [`SentBlocks`] knows the content that the provider read: the same, unless
    /// the provider removed something on its side.
    id: BlockId,
    size: CountedSize,
    /// The sums up to and including this one: see [`PromptLine::sums`].
    sums: Sums,
    run: Option<ToolRun>,
    /// How many prompts were sent before it came.
    born: u32,
}

/// The sums over a prefix of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    /// Hash of the identities of its blocks.
    chain: ChainHash,
    /// As counted.
    counted: CountedSize,
    /// Positions of the look-back.
    positions: u32,
}

impl Sums {
    /// The sums with one more block; `last` is the block in front of it.
    fn and(self, block: &LineBlock, identity: u64, last: Option<ToolRun>) -> Self {
        let continues = block.run.is_some() && last == block.run;
        Self {
            chain: self.chain.and(identity),
            counted: self.counted + block.size,
            positions: self.positions.wrapping_add(u32::from(!continues)),
        }
    }
}

/// Where an entry's blocks begin, how many they are, and who sent them.
#[derive(Debug, Clone, Copy)]
struct EntryPlace {
    /// The mark of its first block.
    first: u32,
    blocks: u32,
    is_user: bool,
}

/// A number of blocks.
fn count(blocks: usize) -> u32 {
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

impl EntryPlace {
    /// The place of a message; where it begins is not known yet.
    fn of(message: &BlockList) -> Self {
        Self { first: 0, blocks: count(message.blocks.len()), is_user: message.is_user }
    }
}

/// One edit of a patch: these entries make way for others.
#[derive(Debug)]
pub struct EditedEntries {
    /// Indices before the whole patch, ascending and disjoint.
    pub entries: Range<usize>,
    /// The blocks that replace them.
    pub with: Vec<BlockList>,
    /// Whether the provider's cache survives it.
    pub cache: CacheEffect,
}

/// A prompt that grows at its end and is edited in its middle.
///
/// The sums of blocks are written anew on the shorter side of an edit. Those in front of `shifted`
/// count from the beginning of the line, those from there on from where they once began: `shift`
/// says how far that is off.
#[derive(Debug, Clone)]
pub struct PromptLine {
    blocks: EditList<LineBlock>,
    entries: EditList<EntryPlace>,
    /// Blocks that belong to no entry: tools and system prompt.
    head: usize,
    /// The sums of the first so many blocks count from the beginning. At least one block follows
    /// them, unless there are none.
    shifted: usize,
    /// The right sums of the block behind those, less the ones that it has.
    shift: Sums,
    /// The number of blocks that are as they were last sent.
    pub(super) unbroken: usize,
    /// Of blocks that no prompt held yet.
    unsent: CountedSize,
    pub(super) last_sent: Option<SentAt>,
    /// What happened to the provider's cache before the next prompt.
    pub(super) event: Option<CacheEvent>,
    /// How counted sizes become billed ones.
    pub(super) scale: Scale,
    sent: SentBlocks,
}

/// The effect of a patch on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineChange {
    /// The first block after which nothing is as it was sent; nothing where the cache survives.
    pub broken_at: Option<usize>,
    /// Tokens that the provider removed on its side.
    pub removed: Tokens,
}

/// A prefix of a line that an earlier prompt had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPrefix {
    /// Its blocks.
    pub blocks: usize,
    /// The number of that prompt.
    pub prompt: u32,
}

impl PromptLine {
    /// A prompt without messages.
    pub fn new(head: &[PromptPiece]) -> Self {
        let mut line = Self {
            blocks: EditList::default(),
            entries: EditList::default(),
            head: head.len(),
            shifted: 0,
            shift: Sums::default(),
            unbroken: 0,
            unsent: CountedSize::default(),
            last_sent: None,
            event: None,
            scale: Scale::COUNTED,
            sent: SentBlocks::default(),
        };
        for piece in head {
            line.push(*piece);
        }
        line
    }

    /// Makes room for so many messages: growing would take up to three times the memory.
    pub fn reserve(&mut self, messages: usize) {
        self.blocks.reserve_exact(messages);
        self.entries.reserve_exact(messages);
        self.sent.reserve(messages);
    }

    /// Blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether it has no block.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Sizes its prompts so from now on. Where there is a head, it belongs to the first block.
    pub fn size_by(&mut self, scale: Scale) {
        self.scale = scale;
    }

    /// This happened to the provider's cache before the next prompt is sent.
    pub fn meet(&mut self, event: Option<CacheEvent>) {
        self.event = event;
    }

    /// Whether what was last used then can be read at the next prompt.
    pub(super) fn is_live(&self, scheme: &CacheScheme, used: SentAt, now: SentAt) -> bool {
        self.event == Some(CacheEvent::Alive) || is_live(scheme, used, now)
    }

    /// Tokens of the next prompt that can be read, where a prefix of `live` tokens is found.
    pub(super) fn readable(&self, live: Tokens, is_alive: bool) -> Tokens {
        match self.event {
            Some(CacheEvent::Warm(tokens)) if !is_alive => tokens.min(self.until(self.len())),
            Some(CacheEvent::Missed(most)) => live.min(most),
            Some(CacheEvent::Warm(_) | CacheEvent::Alive) | None => live,
        }
    }

    /// The blocks that are wholly within so many tokens, and how many tokens of the next one are.
    pub(super) fn within(&self, tokens: Tokens) -> (usize, Tokens) {
        let (mut blocks, mut end) = (0, self.len() + 1);
        while end - blocks > 1 {
            let middle = usize::midpoint(blocks, end);
            if self.until(middle) <= tokens {
                blocks = middle;
            } else {
                end = middle;
            }
        }
        (blocks, tokens - self.until(blocks))
    }

    /// The sums over so many blocks.
    fn sums(&self, blocks: usize) -> Sums {
        let Some(at) = blocks.checked_sub(1).filter(|at| *at < self.len()) else {
            return Sums::default();
        };
        let Sums { chain, counted, positions } = self.blocks[at].sums;
        if at < self.shifted || self.shifted == 0 {
            return self.blocks[at].sums;
        }
        Sums {
            chain: chain.shifted(self.shift.chain, at - self.shifted),
            counted: counted.wrapping_add(self.shift.counted),
            positions: positions.wrapping_add(self.shift.positions),
        }
    }

    /// The first `blocks` blocks, as counted.
    pub(super) fn counted(&self, blocks: usize) -> CountedSize {
        self.sums(blocks).counted
    }

    /// Tokens of the first `blocks` blocks, as billed.
    pub fn until(&self, blocks: usize) -> Tokens {
        let counted = (1..=self.len()).contains(&blocks).then(|| self.counted(blocks));
        counted.map_or(Tokens::ZERO, |counted| self.scale.prompt(counted.into()))
    }

    /// Hash of so many blocks.
    pub fn chain(&self, blocks: usize) -> u64 {
        self.sums(blocks).chain.0
    }

    /// Positions that so many blocks take in the look-back.
    pub fn position(&self, blocks: usize) -> usize {
        self.sums(blocks).positions as usize
    }

    /// Adds a message at the end.
    pub fn append(&mut self, message: &BlockList) {
        let first = count(self.blocks.first_mark() + self.blocks.len());
        message.blocks.iter().for_each(|piece| self.push(*piece));
        self.entries.push(EntryPlace { first, ..EntryPlace::of(message) });
    }

    /// Adds a block at the end.
    fn push(&mut self, piece: PromptPiece) {
        let mut block = self.block(piece);
        let last = self.blocks.last();
        let (sums, run) = last.map_or_else(Default::default, |last| (last.sums, last.run));
        block.sums = sums.and(&block, self.sent.identity(block.id), run);
        if let Some(last) = last {
            self.sent.follows(last.id, block.id);
        }
        self.unsent = self.unsent + block.size;
        self.blocks.push(block);
    }

    /// A block that was never sent; its sums are not known yet.
    fn block(&mut self, piece: PromptPiece) -> LineBlock {
        LineBlock {
            content: piece.content,
            id: self.sent.add(piece.content),
            size: piece.size,
            sums: Sums::default(),
            run: piece.run,
            born: self.sent.prompts,
        }
    }

    /// Blocks in front of an entry; all of them if there is no such entry.
    pub fn first_block(&self, entry: usize) -> usize {
        let place = self.entries.get(entry);
        place.map_or(self.blocks.len(), |place| place.first as usize - self.blocks.first_mark())
    }

    /// Applies a patch whose entries are all there: costs what is between its first edit and its
    /// last, and what is in front of these or behind them, whichever is less.
    pub fn patch(&mut self, edits: &[EditedEntries]) -> LineChange {
        let mut change = LineChange { broken_at: None, removed: Tokens::ZERO };
        let taken = edits
            .iter()
            .map(|edit| self.first_block(edit.entries.start)..self.first_block(edit.entries.end));
        let ranges: Vec<Range<usize>> = taken.collect();
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
            return change;
        };
        let (start, behind) = (first.start, self.len() - last.end);
        let pairs = edits.iter().zip(&ranges);
        let written: Vec<Vec<LineBlock>> =
            pairs.map(|(edit, range)| self.written(edit, range, &mut change)).collect();
        let sent = self.unbroken;
        // What was sent behind the break may come back.
        if let (Some(at), Some(last)) = (change.broken_at.filter(|at| *at < sent), self.last_sent) {
            let next = self.blocks[at].id;
            let chain = self.sums(at).chain.and(self.sent.identity(next));
            self.sent.leave(chain, next, sent - at, last);
        }
        self.sent.edits += 1;
        // From the back: indices count before the whole patch. Edits in front of the lowest break put in
        // as many blocks as they take out.
        let mut shifted = self.shifted;
        for ((edit, range), blocks) in edits.iter().zip(ranges).zip(&written).rev() {
            if range.start < self.shifted {
                shifted = (shifted + blocks.len()).saturating_sub(range.len());
            }
            self.replace(edit, range, blocks);
        }
        let end = self.len() - behind;
        self.settle(start..end, shifted);
        self.link(start..end);
        // A removal on the provider's side leaves the prefix as it was.
        let unbroken = change.broken_at.unwrap_or(sent);
        self.unbroken = unbroken.min(sent).min(self.blocks.len());
        change.broken_at = change.broken_at.filter(|at| *at < sent);
        change
    }

    /// The blocks that an edit puts in the place of those of `range`.
    ///
    /// Blocks that go and blocks that come are compared one by one: all of them where they are as
    /// many, else up to the first that differs.
    fn written(
        &mut self,
        edit: &EditedEntries,
        range: &Range<usize>,
        change: &mut LineChange,
    ) -> Vec<LineBlock> {
        let new: usize = edit.with.iter().map(|pieces| pieces.blocks.len()).sum();
        let paired = range.len() == new;
        let keeps = paired && edit.cache == CacheEffect::Keeps;
        let mut broken = None;
        let mut blocks: Vec<LineBlock> = Vec::with_capacity(new);
        for piece in edit.with.iter().flat_map(|pieces| &pieces.blocks) {
            let at = range.start + blocks.len();
            let compared = at < range.end && (paired || broken.is_none());
            let old = compared.then(|| self.blocks[at]);
            let kept = old.filter(|old| keeps || old.content == piece.content);
            let block = if let Some(old) = kept {
                if self.is_sent(&old) {
                    change.removed += self.scale.text(Size::from(old.size) - piece.size.into());
                }
                LineBlock { content: piece.content, size: piece.size, run: piece.run, ..old }
            } else {
                broken.get_or_insert(at);
                self.block(*piece)
            };
            blocks.push(block);
        }
        if !paired {
            broken.get_or_insert(range.start + new);
        }
        change.broken_at = change.broken_at.or(broken);
        blocks
    }

    fn is_sent(&self, block: &LineBlock) -> bool {
        block.born < self.sent.prompts
    }

    /// Puts blocks and entries in the place of others. Their sums are not known yet.
    fn replace(&mut self, edit: &EditedEntries, range: Range<usize>, blocks: &[LineBlock]) {
        let start = range.start;
        let (removed, moved) = self.blocks.splice(range, blocks);
        let [came, went] = [blocks, &removed].map(|blocks| -> CountedSize {
            blocks.iter().filter(|block| !self.is_sent(block)).map(|block| block.size).sum()
        });
        self.unsent = (self.unsent + came).wrapping_sub(went);
        let places: Vec<EntryPlace> = edit.with.iter().map(EntryPlace::of).collect();
        self.entries.splice(edit.entries.clone(), &places);
        // The entries that were written, and those whose blocks were moved, begin somewhere else.
        let from = edit.entries.start;
        let (entries, first) = match moved {
            Moved::Front => (0..from + places.len(), self.head),
            Moved::Back => (from..self.entries.len(), start),
        };
        let mut first = count(self.blocks.first_mark() + first);
        for place in &mut self.entries[entries] {
            place.first = first;
            first += place.blocks;
        }
    }

    /// Adds up again where blocks were edited. The sums of the first `shifted` blocks that were not
    /// edited count from the beginning.
    fn settle(&mut self, edited: Range<usize>, shifted: usize) {
        let start = match self.shifted {
            // All sums count from the beginning.
            0 => edited.start,
            first => edited.start.min(first),
        };
        let front = start..edited.end.max(shifted).max(1);
        if front.len() >= self.len() - edited.start {
            if edited.start <= self.shifted {
                // All that is in front of the edit counts from the beginning, and so does the rest now.
                self.shifted = 0;
            }
            let before = edited.start.checked_sub(1).map(|at| self.blocks[at].sums);
            return self.add_up(before.unwrap_or_default(), edited.start..self.len());
        }
        let before = self.blocks[front.end].sums;
        let from = self.sums(front.start);
        self.shifted = front.end;
        self.add_up(from, front.clone());
        let next = &self.blocks[front.end];
        let last = self.blocks[..front.end].last();
        let (sums, run) = last.map_or_else(Default::default, |last| (last.sums, last.run));
        let now = sums.and(next, self.sent.identity(next.id), run);
        self.shift = Sums {
            chain: now.chain.less(before.chain),
            counted: now.counted.wrapping_sub(before.counted),
            positions: now.positions.wrapping_sub(before.positions),
        };
    }

    /// Writes the sums of these blocks; `sums` are those of the block in front of them.
    fn add_up(&mut self, mut sums: Sums, blocks: Range<usize>) {
        visit(blocks.len());
        let mut run = blocks.start.checked_sub(1).and_then(|at| self.blocks[at].run);
        for at in blocks {
            let identity = self.sent.identity(self.blocks[at].id);
            let block = &mut self.blocks[at];
            sums = sums.and(block, identity, run);
            (block.sums, run) = (sums, block.run);
        }
    }

    /// Notes what follows what, where blocks were edited.
    fn link(&mut self, edited: Range<usize>) {
        let end = (edited.end + 1).min(self.len());
        let blocks = &self.blocks[edited.start.saturating_sub(1)..end];
        for pair in blocks.windows(2) {
            self.sent.follows(pair[0].id, pair[1].id);
        }
    }

    /// The prompt was sent as it is.
    pub fn sent(&mut self, now: SentAt) {
        if let Some(CacheEvent::Missed(_)) = self.event.take() {
            self.sent.forget();
        }
        // Of a branch that the prompt went along, only what it did not reach is left.
        let mut blocks = self.unbroken + 1;
        while blocks <= self.len() && self.sent.enter(self.sums(blocks).chain) {
            blocks += 1;
        }
        self.sent.prompts += 1;
        self.unsent = CountedSize::default();
        self.unbroken = self.blocks.len();
        self.last_sent = Some(now);
    }

    /// The longest prefix, of at most `limit` blocks, that was sent at a time that `is_live` accepts:
    /// nothing that was sent later than what it accepts.
    pub(super) fn longest_known(
        &self,
        limit: usize,
        is_live: &dyn Fn(SentAt) -> bool,
    ) -> Option<KnownPrefix> {
        // Everything else was sent earlier.
        self.last_sent.filter(|last| is_live(*last))?;
        let end = limit.min(self.len());
        let prompt = self.sent.prompts.checked_sub(1)?;
        let mut known = KnownPrefix { blocks: self.unbroken.min(end), prompt };
        while known.blocks < end {
            let ids = self.blocks[known.blocks..end].iter().map(|block| block.id);
            let chain = self.sums(known.blocks + 1).chain;
            let Some((more, prompt)) = self.sent.follow(chain, &ids, is_live) else {
                break;
            };
            known.blocks += more;
            known.prompt = prompt;
        }
        Some(known)
    }

    /// Tokens after the given number of blocks that were in an earlier prompt unchanged.
    pub fn seen_from(&self, blocks: usize) -> Tokens {
        let unbroken = self.until(self.unbroken) - self.until(blocks);
        let from = self.unbroken.max(blocks).min(self.len());
        // What was never sent is behind what is as it was sent, and between the two a prompt came back.
        let between = self.blocks[self.unbroken.min(from)..from].iter();
        let unsent = between.filter(|block| !self.is_sent(block));
        let in_front: CountedSize = unsent.map(|block| block.size).sum();
        let behind = self.sums(self.len()).counted.wrapping_sub(self.sums(from).counted);
        let unsent = self.unsent.wrapping_sub(in_front);
        unbroken + self.scale.text(behind.wrapping_sub(unsent).into())
    }

    /// Ends of tools and system prompt, in blocks, the longest prefix first.
    pub fn heads(&self) -> impl Iterator<Item = usize> + use<> {
        (1..=self.head).rev()
    }

    /// Ends of the newest messages, in blocks, the newest first.
    pub fn ends(&self, count: usize, senders: Senders) -> impl Iterator<Item = usize> + '_ {
        let newest = (0..self.entries.len()).rev();
        let ends = newest.filter(move |at| senders == Senders::All || self.entries[*at].is_user);
        ends.take(count).map(|at| self.first_block(at + 1))
    }

    /// How many blocks another prompt has in common with this one, from the beginning on.
    pub fn shared_with(&self, other: &Self) -> usize {
        let pairs = self.blocks.iter().zip(other.blocks.iter());
        pairs.take_while(|(own, other)| own.content == other.content).count()
    }
}
