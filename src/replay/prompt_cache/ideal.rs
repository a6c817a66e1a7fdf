//! A lower bound on what prompts cost: the cache of a client that knows every later prompt.
//!
//! The prompts of a cell form a tree of blocks, and a live prefix is a path from its root. Reading a
//! block is possible only behind an earlier use, so each block is written at its first use or never.
//! Which of the two is cheaper depends on how often it is read: [`IdealCache::finish`] knows.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::{Line, SentAt, Split, is_live};
use crate::model::price::CacheScheme;
use crate::units::Tokens;

/// The number of a node, from 1: a session may have millions, so it is kept small.
type NodeId = NonZeroU32;

/// A run of uses of one block behind one prefix, none of them too late for the one before.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// The block in front of it.
    parent: Option<NodeId>,
    /// Prompts that use it. Until the end, only those that end with it.
    uses: u32,
    /// Tokens up to and including this block, at its first use.
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
    /// Nodes that begin with this prompt: from here on, up to the first of the next prompt.
    first: u32,
}

/// Follows the prompts of one cell, and says at the end how each should have been cached.
#[derive(Debug)]
pub struct IdealCache {
    scheme: Arc<CacheScheme>,
    nodes: Vec<Node>,
    /// By the two halves of the chain's hash: so an entry has twelve bytes and not sixteen.
    by_chain: HashMap<[u32; 2], NodeId, FixedState>,
    sent: Vec<AgentPrompt>,
    asked: Vec<(usize, Prefix)>,
}

/// Where a node is.
fn place(id: NodeId) -> usize {
    id.get() as usize - 1
}

fn halves(hash: u64) -> [u32; 2] {
    let halves = [hash & u64::from(u32::MAX), hash >> 32];
    halves.map(|half| u32::try_from(half).unwrap_or_default())
}

impl IdealCache {
    /// An empty cache.
    pub fn new(scheme: Arc<CacheScheme>) -> Self {
        Self {
            scheme,
            nodes: Vec::new(),
            by_chain: HashMap::with_hasher(FixedState::default()),
            sent: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Makes room for so many blocks.
    pub(crate) fn reserve(&mut self, blocks: usize) {
        self.nodes.reserve_exact(blocks);
    }

    fn live_prefix(&self, line: &Line, limit: usize, now: SentAt) -> (usize, Prefix) {
        let is_live = |used: SentAt| is_live(&self.scheme, used, now);
        let blocks = line.longest_known(limit, &is_live);
        let last = self.by_chain.get(&halves(line.chain(blocks))).copied();
        let prefix = Prefix {
            last: last.filter(|_| blocks > 0),
            tokens: line.until(blocks),
        };
        (blocks, prefix)
    }

    /// The prompt is sent. The caller calls [`Line::sent`] afterwards.
    pub fn send(&mut self, line: &Line, now: SentAt) {
        let (known, prefix) = self.live_prefix(line, line.len(), now);
        let first = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let mut parent = prefix.last;
        for blocks in known + 1..=line.len() {
            self.nodes.push(Node {
                parent,
                uses: 0,
                until: line.until(blocks),
            });
            let node = u32::try_from(self.nodes.len()).ok().and_then(NodeId::new);
            let node = node.unwrap_or(NodeId::MAX);
            self.by_chain.insert(halves(line.chain(blocks)), node);
            parent = Some(node);
        }
        self.is_used(parent);
        self.sent.push(AgentPrompt { prefix, first });
    }

    /// The model call of this number has `shared` blocks in common with the line. It reads, and leaves
    /// nothing in the cache.
    pub fn side_request(&mut self, line: &Line, shared: usize, number: usize, now: SentAt) {
        let (_, prefix) = self.live_prefix(line, shared, now);
        self.is_used(prefix.last);
        self.asked.push((number, prefix));
    }

    fn is_used(&mut self, last: Option<NodeId>) {
        if let Some(node) = last.and_then(|last| self.nodes.get_mut(place(last))) {
            node.uses += 1;
        }
    }

    /// Whether a block is written at its first use, and read at the others.
    fn is_written(&self, node: &Node) -> bool {
        let rates = self.scheme.rates;
        let write = u64::from(rates.write.unwrap_or(1_000));
        let uses = u64::from(node.uses);
        let reads = uses.saturating_sub(1);
        let cached = write.saturating_add(reads.saturating_mul(u64::from(rates.read)));
        cached < uses.saturating_mul(1_000)
    }

    /// Tokens of a live prefix that are read: those of the blocks that were written.
    fn read(&self, prefix: Prefix) -> Tokens {
        let node = |id: NodeId| self.nodes.get(place(id));
        let Some(end) = prefix.last.and_then(node) else {
            return Tokens::ZERO;
        };
        let mut last = Some(end);
        while let Some(node_here) = last.filter(|here| !self.is_written(here)) {
            last = node_here.parent.and_then(node);
        }
        let unwritten = last.map(|last| end.until - last.until);
        let read = unwritten.map_or(Tokens::ZERO, |unwritten| prefix.tokens - unwritten);
        self.scheme.rounded(read)
    }

    /// How each prompt splits, in order; and the tokens that each model call reads, by its number.
    pub fn finish(mut self) -> (Vec<Split>, Vec<(usize, Tokens)>) {
        // No prompt follows: the table makes room for what is returned.
        drop(std::mem::take(&mut self.by_chain));
        // A prompt uses all blocks in front of its last one. Parents come first.
        for at in (0..self.nodes.len()).rev() {
            let Node { parent, uses, .. } = self.nodes[at];
            if let Some(parent) = parent {
                let parent = &mut self.nodes[place(parent)];
                parent.uses = parent.uses.saturating_add(uses);
            }
        }
        let ends = self.sent.iter().skip(1).map(|next| next.first as usize);
        let ends = ends.chain([self.nodes.len()]);
        let splits = self.sent.iter().zip(ends).map(|(sent, end)| {
            let read = self.read(sent.prefix);
            let begun = &self.nodes[sent.first as usize..end];
            let written = begun.iter().rfind(|node| self.is_written(node));
            let until = written.map_or(Tokens::ZERO, |node| self.scheme.rounded(node.until));
            let written = match self.scheme.rates.write {
                Some(_) => until - read,
                None => Tokens::ZERO,
            };
            Split { read, written }
        });
        let asked = self.asked.iter();
        let asked = asked.map(|(number, prefix)| (*number, self.read(*prefix)));
        (splits.collect(), asked.collect())
    }
}
