//! The prompt as a line of blocks, with the hash of every prefix.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::{LastUse, Moment};
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
    /// As counted.
    size: Size,
    run: Run,
}

/// How a block counts towards the look-back: a run of tool uses takes one position, and so does a
/// run of tool results. Every other block takes a position of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    None,
    ToolUses,
    ToolResults,
}

impl Run {
    fn of(block: &ContentBlock) -> Self {
        match block {
            ContentBlock::ToolUse(_) => Self::ToolUses,
            ContentBlock::ToolResult(_) => Self::ToolResults,
            ContentBlock::Text(_)
            | ContentBlock::Thinking(_)
            | ContentBlock::Image(_)
            | ContentBlock::Opaque(_) => Self::None,
        }
    }

    fn continues(self, previous: Self) -> bool {
        self != Self::None && self == previous
    }
}

impl Piece {
    /// A piece that says `text`.
    pub fn new(text: impl AsRef<[u8]>, tokens: Tokens) -> Self {
        // Hashes are compared with each other and never written down.
        let content = FixedState::default().hash_one(text.as_ref());
        let size = Size {
            tokens,
            ..Size::default()
        };
        let run = Run::None;
        Self { content, size, run }
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
            vec![entry.size]
        } else {
            let mut sizes: Vec<Size> = message.blocks().map(|b| counts.block(&b)).collect();
            // Hidden thinking comes first in its message.
            if let Some(first) = sizes.first_mut() {
                first.tokens += message.hidden_thinking;
                first.exact += message.hidden_thinking;
            }
            sizes
        };
        let is_user = message.role() == Role::User;
        let hides = message.hidden_thinking > Tokens::ZERO;
        let blocks = content.zip(texts).zip(blocks);
        let blocks = blocks.map(|((block, text), size)| Piece {
            content: FixedState::default().hash_one((
                std::mem::discriminant(block),
                &**text,
                is_user,
                hides,
            )),
            size,
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
            size: sizes.sum(),
            run: Run::None,
        });
        let system = system.map(|text| Piece::new(&**text, counts.size(text).tokens));
        tools.into_iter().chain(system).collect()
    }

    /// Size of all blocks, as counted.
    pub fn size(&self) -> Size {
        self.blocks.iter().map(|piece| piece.size).sum()
    }
}

/// A block in its place.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// What it says now.
    piece: Piece,
    /// The content that the provider read: the same, unless the provider removed something on its
    /// side.
    identity: u64,
    /// Hash of the identities up to and including this one.
    chain: u64,
    /// As counted, up to and including this one.
    until: Size,
    /// Positions of the look-back up to and including this one.
    position: usize,
    /// Whether it was part of an earlier prompt, as it is.
    is_seen: bool,
}

/// Where an entry's blocks begin, and who sent it.
#[derive(Debug, Clone, Copy)]
struct Place {
    first: usize,
    is_user: bool,
}

/// One edit of a patch: these entries make way for others.
#[derive(Debug)]
pub struct Edited {
    /// Indices before the whole patch, ascending and disjoint.
    pub entries: Range<usize>,
    /// What comes.
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
    /// So many blocks stand as they were last sent.
    unbroken: usize,
    last_sent: Option<Moment>,
    /// How counted sizes become billed ones.
    scale: Scale,
    /// Prefixes that were sent and then edited away.
    left: LastUse,
}

/// What a patch did to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The first block behind which nothing that was sent stands any more; nothing where the cache
    /// survives.
    pub broken_at: Option<usize>,
    /// Tokens that the provider removed on its side.
    pub removed: Tokens,
}

impl Line {
    /// A prompt without messages.
    pub fn new(head: &[Piece]) -> Self {
        let mut line = Self {
            blocks: Vec::new(),
            entries: Vec::new(),
            head: 0,
            unbroken: 0,
            last_sent: None,
            scale: Scale::COUNTED,
            left: HashMap::with_hasher(FixedState::default()),
        };
        for piece in head {
            line.push(piece.content, *piece, false);
        }
        line.head = head.len();
        line
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

    /// Tokens of so many blocks, as billed.
    pub fn until(&self, blocks: usize) -> Tokens {
        let last = self.last(blocks);
        last.map_or(Tokens::ZERO, |block| self.scale.prompt(block.until))
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
        self.last(blocks).map_or(0, |block| block.position)
    }

    /// When the prompt was last sent.
    pub fn last_sent(&self) -> Option<Moment> {
        self.last_sent
    }

    /// Adds a message at the end.
    pub fn append(&mut self, message: &Pieces) {
        self.begin(message.is_user);
        for piece in &message.blocks {
            self.push(piece.content, *piece, false);
        }
    }

    /// Begins a message at the end.
    fn begin(&mut self, is_user: bool) {
        let first = self.blocks.len();
        self.entries.push(Place { first, is_user });
    }

    fn push(&mut self, identity: u64, piece: Piece, is_seen: bool) {
        let last = self.blocks.last();
        let chain = last.map_or(0, |last| last.chain);
        let continues = last.is_some_and(|last| piece.run.continues(last.piece.run));
        let position = last.map_or(0, |last| last.position) + usize::from(!continues);
        let until = last.map_or_else(Size::default, |last| last.until) + piece.size;
        self.blocks.push(Block {
            piece,
            identity,
            chain: FixedState::default().hash_one((chain, identity)),
            until,
            position,
            is_seen,
        });
    }

    /// Blocks in front of an entry; all of them where there is no such entry.
    pub fn first_block(&self, entry: usize) -> usize {
        let place = self.entries.get(entry);
        place.map_or(self.blocks.len(), |place| place.first)
    }

    /// Applies a patch whose entries are all there: costs what stands behind its first edit.
    pub fn patch(&mut self, edits: &[Edited]) -> Change {
        let mut change = Change {
            broken_at: None,
            removed: Tokens::ZERO,
        };
        let Some(from) = edits.first().map(|edit| edit.entries.start) else {
            return change;
        };
        let start = self.first_block(from);
        self.leave(start);
        let sent = self.unbroken;
        self.unbroken = self.unbroken.min(start);
        let old: Vec<Block> = self.blocks.split_off(start);
        let places: Vec<Place> = self.entries.split_off(from.min(self.entries.len()));
        let old_blocks = |entries: Range<usize>| {
            let begin = |at: usize| places.get(at - from).map_or(old.len(), |p| p.first - start);
            &old[begin(entries.start)..begin(entries.end)]
        };
        let mut next = from;
        let end = from + places.len();
        for edit in edits {
            for at in next..edit.entries.start {
                self.keep(places[at - from], old_blocks(at..at + 1));
            }
            let gone = old_blocks(edit.entries.clone());
            let new: usize = edit.with.iter().map(|pieces| pieces.blocks.len()).sum();
            // Blocks that go and blocks that come are compared one by one: all of them where they are
            // as many, else up to the first that differs.
            let is_paired = gone.len() == new;
            let mut before = gone.iter();
            for pieces in &edit.with {
                self.begin(pieces.is_user);
                for piece in &pieces.blocks {
                    let keeps = is_paired && edit.cache == CacheEffect::Keeps;
                    let same = before
                        .next()
                        .filter(|was| keeps || was.piece.content == piece.content);
                    if let Some(was) = same {
                        if was.is_seen {
                            change.removed += self.scale.text(was.piece.size - piece.size);
                        }
                        self.push(was.identity, *piece, was.is_seen);
                    } else {
                        change.broken_at.get_or_insert(self.blocks.len());
                        self.push(piece.content, *piece, false);
                        if !is_paired {
                            before = [].iter();
                        }
                    }
                }
            }
            if !is_paired {
                change.broken_at.get_or_insert(self.blocks.len());
            }
            next = edit.entries.end;
        }
        for at in next..end {
            self.keep(places[at - from], old_blocks(at..at + 1));
        }
        // What was removed on the provider's side leaves the prefix as it was.
        let unbroken = change.broken_at.unwrap_or(sent);
        self.unbroken = unbroken.min(sent).min(self.blocks.len());
        change.broken_at = change.broken_at.filter(|at| *at < sent);
        change
    }

    fn keep(&mut self, place: Place, blocks: &[Block]) {
        self.begin(place.is_user);
        for block in blocks {
            self.push(block.identity, block.piece, block.is_seen);
        }
    }

    /// Remembers the sent prefixes that end at or behind `start`: they may come back.
    fn leave(&mut self, start: usize) {
        if let Some(last) = self.last_sent {
            for block in self.blocks[..self.unbroken].iter().skip(start) {
                self.left.insert(block.chain, last);
            }
        }
    }

    /// The prompt was sent as it stands.
    pub fn sent(&mut self, now: Moment) {
        let from = self.unbroken.min(self.blocks.len());
        for block in &mut self.blocks[from..] {
            block.is_seen = true;
        }
        self.unbroken = self.blocks.len();
        self.last_sent = Some(now);
    }

    /// Blocks in the longest prefix, of at most `limit` blocks, that was sent at a time that
    /// `is_live` accepts.
    pub fn longest_known(&self, limit: usize, is_live: &dyn Fn(Moment) -> bool) -> usize {
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

    /// Tokens behind so many blocks that stood in an earlier prompt just so.
    pub fn seen_from(&self, blocks: usize) -> Tokens {
        let unbroken = self.until(self.unbroken) - self.until(blocks);
        let behind = self.blocks.iter().skip(self.unbroken.max(blocks));
        let seen = behind.filter(|block| block.is_seen);
        unbroken + self.scale.text(seen.map(|block| block.piece.size).sum())
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
            .take_while(|(own, other)| own.piece.content == other.piece.content)
            .count()
    }
}
