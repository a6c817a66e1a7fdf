//! A lower bound on what prompts cost: the cache of a client that knows every later prompt.
//!
//! The prompts of a cell form a tree of blocks, and a live prefix is a path from its root. Reading a
//! block is possible only behind an earlier use, so each block is written at its first use or never.
//! Which of the two is cheaper depends on how often it is read: [`IdealCache::finish`] knows.
//!
//! Blocks that all the same prompts use are one node, which is split where a prompt leaves it: a
//! prompt costs what it changes, in nodes and in time.

use std::cmp::Reverse;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::piece::CountedSize;
use super::{EditedEntries, PromptLine, SentAt, Split};
use crate::bill::Scale;
use crate::context::CacheEffect;
use crate::model::price::CacheScheme;
use crate::units::Tokens;

/// The number of a node, from 1: a session may have millions, so it is kept small.
type NodeId = NonZeroU32;

/// A place in a prompt: so many blocks, and so many tokens of the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct LinePoint {
    blocks: u32,
    part: Tokens,
}

impl LinePoint {
    fn of((blocks, part): (usize, Tokens)) -> Self {
        Self { blocks: number(blocks), part }
    }

    fn blocks(self) -> usize {
        self.blocks as usize
    }
}

/// Stands for the uses of what others cached: its writing is paid for.
const WARM: u32 = u32::MAX / 2;

/// Uses of blocks that follow each other, none of them too late for the one before.
#[derive(Debug, Clone, Copy)]
struct CacheNode {
    /// The blocks in front of them.
    parent: Option<NodeId>,
    /// Prompts that use them. Until the end, only those that end with them.
    uses: u32,
    /// The prompt that used them first.
    prompt: u32,
    /// Where the last of them ends.
    end: LinePoint,
    /// As counted at their first use, what was in front of the block that they begin in.
    before: CountedSize,
    /// Tokens up to and including the last of them, at their first use.
    until: Tokens,
}

/// The live prefix of a prompt or request.
#[derive(Debug, Clone, Copy)]
struct Prefix {
    last: Option<NodeId>,
    tokens: Tokens,
}

/// One prompt of the agent.
#[derive(Debug, Clone, Copy)]
struct AgentPrompt {
    prefix: Prefix,
    /// The node that it ends with.
    last: Option<NodeId>,
    scale: Scale,
}

/// Follows the prompts of one cell, and says at the end how each should have been cached.
#[derive(Debug)]
pub struct IdealCache {
    scheme: Arc<CacheScheme>,
    nodes: Vec<CacheNode>,
    /// The nodes of the last prompt, in order.
    path: Vec<NodeId>,
    sent: Vec<AgentPrompt>,
    asked: Vec<(usize, Prefix)>,
}

/// Where a node is.
fn place(id: NodeId) -> usize {
    id.get() as usize - 1
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl IdealCache {
    /// An empty cache.
    pub fn new(scheme: Arc<CacheScheme>) -> Self {
        Self { scheme, nodes: Vec::new(), path: Vec::new(), sent: Vec::new(), asked: Vec::new() }
    }

    fn node(&self, id: NodeId) -> CacheNode {
        self.nodes[place(id)]
    }

    fn add(&mut self, node: CacheNode) -> NodeId {
        self.nodes.push(node);
        NodeId::new(number(self.nodes.len())).unwrap_or(NodeId::MAX)
    }

    /// A node and those in front of it, the last first.
    fn ancestors(&self, last: Option<NodeId>) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(last, |id| self.node(*id).parent)
    }

    /// Where the live prefix ends, and what it is.
    fn live_prefix(&mut self, line: &PromptLine, limit: usize, now: SentAt) -> (LinePoint, Prefix) {
        let known = line.longest_known(limit, &|used| line.is_live(&self.scheme, used, now));
        let live = line.until(known.map_or(0, |known| known.blocks));
        let tokens = line.readable(live, known.is_some());
        let end = match known {
            Some(known) if tokens == live => LinePoint::of((known.blocks, Tokens::ZERO)),
            _ => LinePoint::of(line.within(tokens)),
        };
        let last = match known {
            Some(known) => self.ending(line, end, known.prompt),
            None => self.warm(end, tokens),
        };
        (end, Prefix { last, tokens })
    }

    /// The node of what others cached before a prompt.
    fn warm(&mut self, end: LinePoint, until: Tokens) -> Option<NodeId> {
        if until == Tokens::ZERO {
            return None;
        }
        let warm = self.add(CacheNode {
            parent: None,
            uses: WARM,
            prompt: number(self.sent.len()),
            end,
            before: CountedSize::default(),
            until,
        });
        self.path = vec![warm];
        Some(warm)
    }

    /// The node that ends at a place in this prompt: a longer one is split.
    fn ending(&mut self, line: &PromptLine, end: LinePoint, prompt: u32) -> Option<NodeId> {
        if end == LinePoint::default() {
            return None;
        }
        let at = self.path.partition_point(|id| self.node(*id).end < end);
        let id = if prompt as usize + 1 == self.sent.len() {
            *self.path.get(at)?
        } else {
            let last = self.sent.get(prompt as usize)?.last;
            let longer = self.ancestors(last);
            longer.take_while(|id| self.node(*id).end >= end).last()?
        };
        let node = self.node(id);
        if node.end == end {
            return Some(id);
        }
        let front = node.parent.map(|parent| self.node(parent).end);
        let start = front.map_or(0, LinePoint::blocks);
        let own = line.counted(end.blocks()).wrapping_sub(line.counted(start));
        let counted = node.before.wrapping_add(own);
        let scale = self.sent[node.prompt as usize].scale;
        let whole = match end.blocks {
            0 => Tokens::ZERO,
            _ => scale.prompt(counted.into()),
        };
        // A part is that of a later prompt, which may be billed in larger tokens.
        let until = (whole + end.part).min(node.until);
        let front = self.add(CacheNode { uses: 0, end, until, ..node });
        let behind = &mut self.nodes[place(id)];
        (behind.parent, behind.before) = (Some(front), counted);
        if self.path.get(at) == Some(&id) {
            self.path.insert(at, front);
        }
        Some(front)
    }

    /// The line is about to be edited. What the provider removes on its side changes sizes and not
    /// prefixes: it gets nodes of its own.
    pub fn edits(&mut self, line: &PromptLine, edits: &[EditedEntries]) {
        let Some(prompt) = self.sent.len().checked_sub(1).map(number) else {
            return;
        };
        let keeps = edits.iter().filter(|edit| edit.cache == CacheEffect::Keeps);
        for edit in keeps {
            for entry in [edit.entries.start, edit.entries.end] {
                let blocks = line.first_block(entry);
                if blocks <= line.unbroken {
                    self.ending(line, LinePoint::of((blocks, Tokens::ZERO)), prompt);
                }
            }
        }
    }

    /// The prompt is sent. The caller calls [`PromptLine::sent`] afterwards.
    pub fn send(&mut self, line: &PromptLine, now: SentAt) {
        let (known, prefix) = self.live_prefix(line, line.len(), now);
        let length = LinePoint::of((line.len(), Tokens::ZERO));
        let mut last = prefix.last;
        let kept = last.map(|last| {
            let end = self.node(last).end;
            self.path.partition_point(|id| self.node(*id).end <= end)
        });
        match kept {
            Some(kept) if kept.checked_sub(1).map(|at| self.path[at]) == last => {
                self.path.truncate(kept);
            }
            Some(_) | None => {
                self.path = self.ancestors(last).collect();
                self.path.reverse();
            }
        }
        if known < length {
            let new = self.add(CacheNode {
                parent: last,
                uses: 0,
                prompt: number(self.sent.len()),
                end: length,
                before: line.counted(known.blocks()),
                until: line.until(line.len()),
            });
            self.path.push(new);
            last = Some(new);
        }
        self.count_use(last);
        self.sent.push(AgentPrompt { prefix, last, scale: line.scale });
    }

    /// The model call of this number has `shared` blocks in common with the line. It reads, and leaves
    /// nothing in the cache.
    pub fn side_request(&mut self, line: &PromptLine, shared: usize, number: usize, now: SentAt) {
        let (_, prefix) = self.live_prefix(line, shared, now);
        self.count_use(prefix.last);
        self.asked.push((number, prefix));
    }

    fn count_use(&mut self, last: Option<NodeId>) {
        if let Some(node) = last.and_then(|last| self.nodes.get_mut(place(last))) {
            node.uses += 1;
        }
    }

    /// Whether a block is written at its first use, and read at the others.
    fn is_written(&self, node: &CacheNode) -> bool {
        let rates = self.scheme.rates;
        let write = u64::from(rates.write.unwrap_or(1_000));
        let uses = u64::from(node.uses);
        let reads = uses.saturating_sub(1);
        let cached = write.saturating_add(reads.saturating_mul(u64::from(rates.read)));
        cached < uses.saturating_mul(1_000)
    }

    /// Tokens of a live prefix that are read: those of the blocks that were written.
    fn read(&self, prefix: Prefix) -> Tokens {
        let Some(end) = prefix.last.map(|id| self.node(id)) else {
            return Tokens::ZERO;
        };
        let mut last = Some(end);
        while let Some(unwritten) = last.filter(|node| !self.is_written(node)) {
            last = unwritten.parent.map(|id| self.node(id));
        }
        let unwritten = last.map(|last| end.until - last.until);
        let read = unwritten.map_or(Tokens::ZERO, |unwritten| prefix.tokens - unwritten);
        self.scheme.rounded(read)
    }

    /// How each prompt splits, in order; and the tokens that each model call reads, by its number.
    pub fn finish(mut self) -> (Vec<Split>, Vec<(usize, Tokens)>) {
        // A prompt uses all blocks in front of its last one.
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_unstable_by_key(|at| Reverse(self.nodes[*at].end));
        for at in order {
            let CacheNode { parent, uses, .. } = self.nodes[at];
            if let Some(parent) = parent {
                let parent = &mut self.nodes[place(parent)];
                parent.uses = parent.uses.saturating_add(uses);
            }
        }
        // The longest prefix that each prompt writes.
        let mut written = vec![(LinePoint::default(), Tokens::ZERO); self.sent.len()];
        for node in self.nodes.iter().filter(|node| self.is_written(node)) {
            let longest = &mut written[node.prompt as usize];
            if node.end > longest.0 {
                *longest = (node.end, self.scheme.rounded(node.until));
            }
        }
        let splits = self.sent.iter().zip(written).map(|(sent, (_, until))| {
            let read = self.read(sent.prefix);
            let written = match self.scheme.rates.write {
                Some(_) => until - read,
                None => Tokens::ZERO,
            };
            Split { read, written }
        });
        let asked = self.asked.iter().map(|(number, prefix)| (*number, self.read(*prefix)));
        (splits.collect(), asked.collect())
    }
}
