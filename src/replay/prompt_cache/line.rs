//! The prompt as a line of blocks, with the hash of every prefix.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::mem::discriminant;
use std::ops::Range;
use std::sync::Arc;

use derive_more::{Add, Sum};
use foldhash::fast::FixedState;

use super::{LastUse, SentAt};
use crate::bill::Scale;
use crate::context::{CacheEffect, Entry};
use crate::model::price::Senders;
use crate::session::{ContentBlock, Role, ToolSchema};
use crate::tokens::{CountedTexts, Size};
use crate::units::Tokens;

/// One block of a prompt: what it says, as a hash, and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    content: u64,
    size: Counted,
    run: Option<Run>,
}

/// The parts of a size that a [`Scale`] reads, kept small: a long session has millions of blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Add, Sum)]
struct Counted {
    tokens: Tokens,
    exact: Tokens,
}

impl From<Size> for Counted {
    fn from(Size { tokens, exact, .. }: Size) -> Self {
        Self { tokens, exact }
    }
}

impl From<Counted> for Size {
    fn from(Counted { tokens, exact }: Counted) -> Self {
        Self {
            tokens,
            exact,
            ..Self::default()
        }
    }
}

/// How a block counts towards the look-back: a run of tool uses takes one position, and so does a run
/// of tool results. Every other block takes a position of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    ToolUses,
    ToolResults,
}

impl Run {
    fn of(block: &ContentBlock) -> Option<Self> {
        match block {
            ContentBlock::ToolUse(_) => Some(Self::ToolUses),
            ContentBlock::ToolResult(_) => Some(Self::ToolResults),
            ContentBlock::Text(_)
            | ContentBlock::Thinking(_)
            | ContentBlock::Image(_)
            | ContentBlock::Opaque(_) => None,
        }
    }
}

impl Piece {
    /// A piece that says `text`.
    pub fn new(text: impl AsRef<[u8]>, tokens: Tokens) -> Self {
        // Hashes are compared with each other and never written down.
        let content = FixedState::default().hash_one(text.as_ref());
        let size = Counted {
            tokens,
            exact: Tokens::ZERO,
        };
        Self {
            content,
            size,
            run: None,
        }
    }
}

/// The blocks of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    blocks: Vec<Piece>,
    is_user: bool,
}

impl Pieces {
    /// The blocks of a message whose sender is the user, or is not.
    pub fn new(blocks: Vec<Piece>, role: Role) -> Self {
        Self {
            blocks,
            is_user: role == Role::User,
        }
    }

    /// The blocks of an entry.
    pub fn of(entry: &Entry, counts: &CountedTexts) -> Self {
        let message = &entry.message;
        let texts = message.model_text();
        let content = message.content().iter();
        // One block has the size of its entry: most do not have to be looked up.
        let blocks = if let [_] = texts {
            vec![entry.size()]
        } else {
            let mut sizes: Vec<Size> = message.blocks().map(|b| counts.block(&b)).collect();
            // Hidden thinking comes first in its message.
            if let Some(first) = sizes.first_mut() {
                first.tokens += message.details.hidden_thinking;
                first.exact += message.details.hidden_thinking;
            }
            sizes
        };
        let is_user = message.role() == Role::User;
        let hides = message.details.hidden_thinking > Tokens::ZERO;
        let blocks = content.zip(texts).zip(blocks);
        let blocks = blocks.map(|((block, text), size)| Piece {
            content: FixedState::default().hash_one((discriminant(block), &**text, is_user, hides)),
            size: size.into(),
            run: Run::of(block),
        });
        Self::new(blocks.collect(), message.role())
    }

    /// The tools and the system prompt, a piece each, as far as they are there.
    pub fn head(
        tools: &[ToolSchema],
        system: Option<&Arc<str>>,
        counts: &CountedTexts,
    ) -> Vec<Piece> {
        let texts: Vec<&str> = tools.iter().map(|tool| &**tool.text()).collect();
        let sizes = tools.iter().map(|tool| counts.schema(tool.text()));
        let tools = (!tools.is_empty()).then(|| Piece {
            content: FixedState::default().hash_one(texts),
            size: sizes.sum::<Size>().into(),
            run: None,
        });
        let system = system.map(|text| Piece::new(&**text, counts.size(text).tokens));
        tools.into_iter().chain(system).collect()
    }

    /// Tokens of all blocks, as counted.
    pub fn tokens(&self) -> Tokens {
        self.blocks.iter().map(|piece| piece.size.tokens).sum()
    }
}

/// A block in its place. A session may have a million, so it is kept small.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Its current content.
    content: u64,
    /// The content that the provider read: the same, unless the provider removed something on its
    /// side.
    identity: u64,
    /// Hash of the identities up to and including this one.
    chain: u64,
    size: Counted,
    /// As counted, up to and including this one.
    until: Counted,
    /// Positions of the look-back up to and including this one.
    position: u32,
    run: Option<Run>,
    /// Whether it was part of an earlier prompt, as it is.
    is_seen: bool,
}

impl Block {
    /// A block that was never sent; its sums are not known yet.
    fn new(piece: Piece) -> Self {
        Self {
            content: piece.content,
            identity: piece.content,
            chain: 0,
            size: piece.size,
            until: Counted::default(),
            position: 0,
            run: piece.run,
            is_seen: false,
        }
    }
}

/// Where an entry's blocks begin, how many they are, and who sent them.
#[derive(Debug, Clone, Copy)]
struct Place {
    first: u32,
    blocks: u32,
    is_user: bool,
}

/// A number of blocks.
fn count(blocks: usize) -> u32 {
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

impl Place {
    /// The place of a message; where it begins is not known yet.
    fn of(message: &Pieces) -> Self {
        Self {
            first: 0,
            blocks: count(message.blocks.len()),
            is_user: message.is_user,
        }
    }
}

/// One edit of a patch: these entries make way for others.
#[derive(Debug)]
pub struct EditedEntries {
    /// Indices before the whole patch, ascending and disjoint.
    pub entries: Range<usize>,
    /// The blocks that replace them.
    pub with: Vec<Pieces>,
    /// Whether the provider's cache survives it.
    pub cache: CacheEffect,
}

/// A prompt that grows at its end and is edited in its middle.
#[derive(Debug, Clone)]
pub struct Line {
    blocks: Vec<Block>,
    entries: Vec<Place>,
    /// Blocks that belong to no entry: tools and system prompt.
    head: usize,
    /// The number of blocks that are as they were last sent.
    unbroken: usize,
    pub(super) last_sent: Option<SentAt>,
    /// How counted sizes become billed ones.
    scale: Scale,
    /// Prefixes that were sent and then edited away.
    left: LastUse,
}

/// The effect of a patch on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The first block after which nothing is as it was sent; nothing where the cache survives.
    pub broken_at: Option<usize>,
    /// Tokens that the provider removed on its side.
    pub removed: Tokens,
}

impl Line {
    /// A prompt without messages.
    pub fn new(head: &[Piece]) -> Self {
        let mut line = Self {
            blocks: head.iter().copied().map(Block::new).collect(),
            entries: Vec::new(),
            head: head.len(),
            unbroken: 0,
            last_sent: None,
            scale: Scale::COUNTED,
            left: HashMap::with_hasher(FixedState::default()),
        };
        line.settle(0, 0);
        line
    }

    /// Makes room for so many messages of one block.
    pub(crate) fn reserve(&mut self, messages: usize) {
        self.blocks.reserve_exact(messages);
        self.entries.reserve_exact(messages);
    }

    /// Blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Sizes its prompts so from now on. Where there is a head, it belongs to the first block.
    pub fn size_by(&mut self, scale: Scale) {
        self.scale = scale;
    }

    /// Tokens of the first `blocks` blocks, as billed.
    pub fn until(&self, blocks: usize) -> Tokens {
        let last = self.last(blocks);
        last.map_or(Tokens::ZERO, |block| self.scale.prompt(block.until.into()))
    }

    /// The last of so many blocks.
    fn last(&self, blocks: usize) -> Option<&Block> {
        self.blocks.get(blocks.checked_sub(1)?)
    }

    /// Hash of so many blocks.
    pub fn chain(&self, blocks: usize) -> u64 {
        self.last(blocks).map_or(0, |block| block.chain)
    }

    /// Positions that so many blocks take in the look-back.
    pub fn position(&self, blocks: usize) -> usize {
        self.last(blocks).map_or(0, |block| block.position as usize)
    }

    /// Adds a message at the end.
    pub fn append(&mut self, message: &Pieces) {
        let (entry, start) = (self.entries.len(), self.blocks.len());
        let blocks = message.blocks.iter().copied();
        self.blocks.extend(blocks.map(Block::new));
        self.entries.push(Place::of(message));
        self.settle(entry, start);
    }

    /// Adds up again from this entry on, which begins with block `start`.
    fn settle(&mut self, entry: usize, start: usize) {
        let mut first = count(start);
        for place in &mut self.entries[entry..] {
            place.first = first;
            first += place.blocks;
        }
        let mut last = self.last(start).copied();
        for block in &mut self.blocks[start..] {
            let continues = last.is_some_and(|last| last.run == block.run);
            let continues = continues && block.run.is_some();
            let (chain, until, position) =
                last.map_or_else(Default::default, |it| (it.chain, it.until, it.position));
            block.chain = FixedState::default().hash_one((chain, block.identity));
            block.until = until + block.size;
            block.position = position + u32::from(!continues);
            last = Some(*block);
        }
    }

    /// Blocks in front of an entry; all of them if there is no such entry.
    pub fn first_block(&self, entry: usize) -> usize {
        let place = self.entries.get(entry);
        place.map_or(self.blocks.len(), |place| place.first as usize)
    }

    /// Applies a patch whose entries are all there: costs everything after its first edit.
    pub fn patch(&mut self, edits: &[EditedEntries]) -> Change {
        let mut change = Change {
            broken_at: None,
            removed: Tokens::ZERO,
        };
        let Some(from) = edits.first().map(|edit| edit.entries.start) else {
            return change;
        };
        let start = self.first_block(from);
        self.leave(start);
        let blocks_of = |edit: &EditedEntries| {
            self.first_block(edit.entries.start)..self.first_block(edit.entries.end)
        };
        let ranges: Vec<Range<usize>> = edits.iter().map(blocks_of).collect();
        // From the back: indices count before the whole patch. Edits in front of the lowest break put in
        // as many blocks as they take out.
        for (edit, range) in edits.iter().zip(ranges).rev() {
            let old = &self.blocks[range.clone()];
            // Blocks that go and blocks that come are compared one by one: all of them where they are
            // as many, else up to the first that differs.
            let new: usize = edit.with.iter().map(|pieces| pieces.blocks.len()).sum();
            let is_paired = old.len() == new;
            let keeps = is_paired && edit.cache == CacheEffect::Keeps;
            let mut broken = None;
            let mut blocks = Vec::with_capacity(new);
            for piece in edit.with.iter().flat_map(|pieces| &pieces.blocks) {
                let mut block = Block::new(*piece);
                let was = old.get(blocks.len()).filter(|was| {
                    let is_compared = is_paired || broken.is_none();
                    is_compared && (keeps || was.content == piece.content)
                });
                if let Some(was) = was {
                    (block.identity, block.is_seen) = (was.identity, was.is_seen);
                    if was.is_seen {
                        change.removed += self.scale.text(Size::from(was.size) - piece.size.into());
                    }
                } else {
                    broken.get_or_insert(range.start + blocks.len());
                }
                blocks.push(block);
            }
            if !is_paired {
                broken.get_or_insert(range.start + new);
            }
            change.broken_at = broken.or(change.broken_at);
            self.blocks.splice(range, blocks);
            let places = edit.with.iter().map(Place::of);
            self.entries.splice(edit.entries.clone(), places);
        }
        self.settle(from, start);
        // A removal on the provider's side leaves the prefix as it was.
        let sent = self.unbroken;
        let unbroken = change.broken_at.unwrap_or(sent);
        self.unbroken = unbroken.min(sent).min(self.blocks.len());
        change.broken_at = change.broken_at.filter(|at| *at < sent);
        change
    }

    /// Remembers the sent prefixes that end at or behind `start`: they may come back.
    fn leave(&mut self, start: usize) {
        if let Some(last) = self.last_sent {
            for block in self.blocks[..self.unbroken].iter().skip(start) {
                self.left.insert(block.chain, last);
            }
        }
    }

    /// The prompt was sent as it is.
    pub fn sent(&mut self, now: SentAt) {
        let from = self.unbroken.min(self.blocks.len());
        for block in &mut self.blocks[from..] {
            block.is_seen = true;
        }
        self.unbroken = self.blocks.len();
        self.last_sent = Some(now);
    }

    /// Blocks in the longest prefix, of at most `limit` blocks, that was sent at a time that
    /// `is_live` accepts.
    pub fn longest_known(&self, limit: usize, is_live: &dyn Fn(SentAt) -> bool) -> usize {
        let limit = limit.min(self.blocks.len());
        let unbroken = match self.last_sent {
            Some(last) if is_live(last) => self.unbroken.min(limit),
            Some(_) | None => 0,
        };
        let known = (unbroken..limit).rev().find(|at| {
            let used = self.left.get(&self.blocks[*at].chain);
            used.is_some_and(|used| is_live(*used))
        });
        known.map_or(unbroken, |at| at + 1)
    }

    /// Tokens after the given number of blocks that were in an earlier prompt unchanged.
    pub fn seen_from(&self, blocks: usize) -> Tokens {
        let unbroken = self.until(self.unbroken) - self.until(blocks);
        let behind = self.blocks.iter().skip(self.unbroken.max(blocks));
        let seen = behind.filter(|block| block.is_seen);
        unbroken
            + self
                .scale
                .text(seen.map(|block| block.size).sum::<Counted>().into())
    }

    /// Ends of tools and system prompt, in blocks, the longest prefix first.
    pub fn heads(&self) -> impl Iterator<Item = usize> + use<> {
        (1..=self.head).rev()
    }

    /// Ends of the newest messages, in blocks, the newest first.
    pub fn ends(&self, count: usize, senders: Senders) -> impl Iterator<Item = usize> + '_ {
        let ends = (0..self.entries.len()).rev();
        let ends = ends.filter(move |at| senders == Senders::All || self.entries[*at].is_user);
        ends.take(count).map(|at| self.first_block(at + 1))
    }

    /// How many blocks another prompt has in common with this one, from the beginning on.
    pub fn shared_with(&self, other: &Self) -> usize {
        let pairs = self.blocks.iter().zip(&other.blocks);
        pairs
            .take_while(|(own, other)| own.content == other.content)
            .count()
    }
}
