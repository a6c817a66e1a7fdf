//! The prompts that were sent and edited away: they may come back.
//!
//! A prompt that an edit breaks leaves a *branch*: the blocks behind the break, in order. A branch is
//! not copied. Every block that ever came into the line has a number and knows which block followed
//! it, edit by edit; so a branch is its first block, its length and the edit before which it was
//! there. It is looked at again only where a later prompt goes on as it does.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::SentAt;
use crate::context::visit;

/// The number of a block: each has one of its own, even if it says what another says.
pub(super) type BlockId = u32;

/// A hash of blocks in order, modulo the prime 2^61 − 1, which can be continued, and corrected for
/// what is in front of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct ChainHash(pub(super) u64);

const PRIME: u64 = (1 << 61) - 1;

/// Any large number does.
const BASE: u64 = 0x0f3c_9a4d_27e6_b158;

fn times(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other) % u128::from(PRIME);
    u64::try_from(product).unwrap_or_default()
}

impl ChainHash {
    /// The chain with one more block.
    pub(super) fn and(self, identity: u64) -> Self {
        // An empty chain and one of a block without content differ.
        Self((times(self.0, BASE) + identity % PRIME + 1) % PRIME)
    }

    /// The number that, added to `other`, makes this.
    pub(super) fn less(self, other: Self) -> Self {
        Self((self.0 + PRIME - other.0) % PRIME)
    }

    /// The chain as it would be if its prefix without its last `behind` blocks were larger by this.
    pub(super) fn shifted(self, by: Self, mut behind: usize) -> Self {
        let (mut shift, mut power) = (by.0, BASE);
        while behind > 0 {
            if behind % 2 == 1 {
                shift = times(shift, power);
            }
            power = times(power, power);
            behind /= 2;
        }
        Self((self.0 + shift) % PRIME)
    }
}

/// The blocks behind a break.
#[derive(Debug, Clone, Copy)]
struct Branch {
    first: BlockId,
    blocks: usize,
    /// How many edits there were before it was left.
    edits: u32,
    /// When it was last sent, and as part of which prompt.
    last: SentAt,
    prompt: u32,
}

/// Everything that came into a line, and the branches that were left.
#[derive(Debug, Clone, Default)]
pub(super) struct SentBlocks {
    /// By block, its content as the provider read it.
    identities: Vec<u64>,
    /// By block, the first one that followed it.
    next: Vec<Option<BlockId>>,
    /// By block, those that followed it later, with the number of edits before they did.
    later: HashMap<BlockId, Vec<(u32, BlockId)>, FixedState>,
    /// By the hash of the prefix that ends with their first block. None begins with all of another.
    left: HashMap<ChainHash, Vec<Branch>, FixedState>,
    /// Edits so far: the number that [`Self::later`] notes.
    pub(super) edits: u32,
    /// How many prompts were sent.
    pub(super) prompts: u32,
}

impl SentBlocks {
    pub(super) fn reserve(&mut self, blocks: usize) {
        self.identities.reserve_exact(blocks);
        self.next.reserve_exact(blocks);
    }

    /// A new block with this content.
    pub(super) fn add(&mut self, identity: u64) -> BlockId {
        let id = u32::try_from(self.identities.len()).unwrap_or(u32::MAX);
        self.identities.push(identity);
        self.next.push(None);
        id
    }

    pub(super) fn identity(&self, id: BlockId) -> u64 {
        self.identities[id as usize]
    }

    /// In the line, one block follows another now.
    pub(super) fn follows(&mut self, id: BlockId, next: BlockId) {
        if self.next_of(id, self.edits) == Some(next) {
            return;
        }
        match &mut self.next[id as usize] {
            Some(_) => self.later.entry(id).or_default().push((self.edits, next)),
            first @ None => *first = Some(next),
        }
    }

    /// The block that followed this one after so many edits.
    fn next_of(&self, id: BlockId, edits: u32) -> Option<BlockId> {
        let later = self.later.get(&id).map_or(&[][..], Vec::as_slice);
        let known = later.partition_point(|(since, _)| *since <= edits);
        match known.checked_sub(1) {
            Some(at) => Some(later[at].1),
            None => self.next[id as usize],
        }
    }

    /// The blocks of a branch, in order.
    fn blocks(&self, branch: Branch) -> impl Iterator<Item = BlockId> + '_ {
        std::iter::successors(Some(branch.first), move |id| self.next_of(*id, branch.edits))
            .take(branch.blocks)
    }

    /// How many blocks two branches have in common.
    fn shared(&self, ids: impl Iterator<Item = BlockId>, branch: Branch) -> usize {
        let pairs = ids.zip(self.blocks(branch));
        let shared = pairs
            .take_while(|(one, other)| one == other || self.identity(*one) == self.identity(*other))
            .count();
        visit(shared);
        shared
    }

    /// Remembers blocks of the line that were sent last at that time and are about to be edited away.
    /// `chain` is the hash of the prefix that ends with the first of them.
    pub(super) fn leave(&mut self, chain: ChainHash, first: BlockId, blocks: usize, last: SentAt) {
        let branch = Branch {
            first,
            blocks,
            edits: self.edits,
            last,
            prompt: self.prompts.saturating_sub(1),
        };
        let mut known = self.left.remove(&chain).unwrap_or_default();
        known.retain(|old| self.shared(self.blocks(branch), *old) < old.blocks);
        known.push(branch);
        self.left.insert(chain, known);
    }

    /// No branch is cached any more.
    pub(super) fn forget(&mut self) {
        self.left = HashMap::default();
    }

    /// The line goes along the branches of which the first block makes this hash: what is left of them
    /// begins one block later. Returns whether there are any.
    pub(super) fn enter(&mut self, chain: ChainHash) -> bool {
        let Some(branches) = self.left.remove(&chain) else {
            return false;
        };
        for branch in branches.into_iter().filter(|branch| branch.blocks > 1) {
            if let Some(first) = self.next_of(branch.first, branch.edits) {
                let longer = chain.and(self.identity(first));
                self.left.entry(longer).or_default().push(Branch {
                    first,
                    blocks: branch.blocks - 1,
                    ..branch
                });
            }
        }
        true
    }

    /// How far blocks of which the first makes this hash go on as a live branch does, and a prompt
    /// that held them.
    pub(super) fn follow(
        &self,
        chain: ChainHash,
        ids: &(impl Iterator<Item = BlockId> + Clone),
        is_live: &dyn Fn(SentAt) -> bool,
    ) -> Option<(usize, u32)> {
        let live = self.left.get(&chain)?.iter().filter(|branch| is_live(branch.last));
        let shared = live.map(|branch| (self.shared(ids.clone(), *branch), branch.prompt));
        shared.max().filter(|(blocks, _)| *blocks > 0)
    }
}
