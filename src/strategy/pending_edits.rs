//! Blocks that a stage wants rewritten, until they are.
//!
//! A guard may refuse a patch and take it back; the stage does not learn of it. What is due is
//! planned again as soon as more is due, so that small gains add up, and never for nothing in
//! between: a refused patch of the same blocks would be refused again.

use std::sync::Arc;

use crate::context::{BlockAt, Context};
use crate::units::Tokens;

/// Blocks with the texts they are to have.
#[derive(Debug, Default)]
pub(crate) struct PendingEdits {
    blocks: Vec<PendingBlock>,
    /// The tokens that they free together.
    gain: Tokens,
    has_new: bool,
}

#[derive(Debug)]
struct PendingBlock {
    at: BlockAt,
    text: Arc<str>,
    gain: Tokens,
}

impl PendingBlock {
    fn is_in_place(&self, context: &Context) -> bool {
        let entry = context.entries().get(self.at.entry);
        entry
            .and_then(|entry| entry.message.model_text().get(self.at.block))
            .is_none_or(|now| *now == self.text)
    }
}

impl PendingEdits {
    /// Wants the block to say `text`, which frees `gain`.
    pub(crate) fn push(&mut self, at: BlockAt, text: Arc<str>, gain: Tokens) {
        self.blocks.push(PendingBlock { at, text, gain });
        self.gain += gain;
        self.has_new = true;
    }

    /// The lowest entry with a block that is not in place.
    pub(crate) fn first(&self, context: &Context) -> Option<usize> {
        let block = self.blocks.iter().find(|block| !block.is_in_place(context))?;
        Some(block.at.entry)
    }

    /// The blocks to rewrite now, ascending: those that are not in place, if any was added since the
    /// last time, and all together free `min_gain` at least.
    ///
    /// Costs O(1) where there are none.
    pub(crate) fn due(&mut self, context: &Context, min_gain: Tokens) -> Vec<(BlockAt, Arc<str>)> {
        // A patch is applied whole or not at all: where the first is in place, the others are,
        // but for those that came since.
        if self.blocks.first().is_some_and(|block| block.is_in_place(context)) {
            self.blocks.retain(|block| !block.is_in_place(context));
            self.gain = self.blocks.iter().map(|block| block.gain).sum();
        }
        if !self.has_new || self.gain < min_gain {
            return Vec::new();
        }
        self.has_new = false;
        self.blocks.sort_by_key(|block| block.at);
        self.blocks.iter().map(|block| (block.at, block.text.clone())).collect()
    }
}
