//! Pointers: which tool results a prompt still says how to read again.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::super::sources::{Places, Source, named_in};
use crate::context::Entry;
use crate::session::ContentBlock;

/// The tool results of a session that hold what calls want, and what points to them.
#[derive(Debug, Default)]
pub(super) struct Targets {
    sources: Vec<Source>,
    by_tool_use: HashMap<Arc<str>, Vec<usize>, FixedState>,
    by_hash: HashMap<String, Vec<usize>, FixedState>,
}

impl Targets {
    /// Adds a tool result; its number, or nothing where it is none.
    pub(super) fn add(
        &mut self,
        places: &Places<'_>,
        message: usize,
        block: usize,
    ) -> Option<usize> {
        let source = places.of(message, block)?;
        let number = self.sources.len();
        let uses = self.by_tool_use.entry(source.tool_use.clone()).or_default();
        uses.push(number);
        self.by_hash
            .entry(source.hash.clone())
            .or_default()
            .push(number);
        self.sources.push(source);
        Some(number)
    }
}

/// How many pointers to each tool result stand in a context.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pointers {
    /// Tool uses that the result answers.
    tool_uses: Vec<u32>,
    /// Texts that name the file in which it was put aside.
    names: Vec<u32>,
}

impl Pointers {
    pub(super) fn new(targets: &Targets) -> Self {
        Self {
            tool_uses: vec![0; targets.sources.len()],
            names: vec![0; targets.sources.len()],
        }
    }

    /// Counts what an entry points to.
    pub(super) fn count(&mut self, targets: &Targets, entry: &Entry, change: impl Fn(&mut u32)) {
        let texts = entry.message.model_text().iter();
        let blocks = entry.message.content().iter().zip(texts).enumerate();
        for (block, (content, text)) in blocks {
            if let ContentBlock::ToolUse(tool) = content {
                for number in targets.by_tool_use.get(&tool.id).into_iter().flatten() {
                    change(&mut self.tool_uses[*number]);
                }
            }
            if !entry.is_verbatim(block) {
                let found = named_in(text).filter_map(|hash| targets.by_hash.get(hash));
                for number in found.flatten() {
                    change(&mut self.names[*number]);
                }
            }
        }
    }

    /// Whether a tool result can be read again before the message of index `before`.
    pub(super) fn reach(&self, targets: &Targets, number: usize, before: usize) -> bool {
        self.names[number] > 0
            || (self.tool_uses[number] > 0 && targets.sources[number].is_unchanged(before))
    }
}
