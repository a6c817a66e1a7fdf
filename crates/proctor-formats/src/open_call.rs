//! The call that goes on, where a recording does not say which parts were of one call: one that
//! begins when all tool uses before it are answered begins a call.

use super::prelude::*;

#[derive(Default)]
pub(super) struct OpenCall {
    said: Blocks,
    results: Blocks,
    /// Tool uses that have no result yet.
    open: BTreeSet<Arc<str>>,
    model: Text,
    time: When,
}

impl OpenCall {
    /// The model and time of what begins a call from now on.
    pub(super) fn by(&mut self, model: Text, time: When) {
        (self.model, self.time) = (model, time);
    }

    /// Whether a tool use waits for its result.
    pub(super) fn waits_for(&self, id: &str) -> bool {
        self.open.contains(id)
    }

    /// Adds what the model said, or a tool use.
    pub(super) fn says(&mut self, block: ContentBlock, assembler: &mut Assembler) {
        // A message or thought behind a result begins a new call, though a command may still run.
        if !self.results.is_empty() && (self.open.is_empty() || block.as_use().is_none()) {
            let open = std::mem::take(&mut self.open);
            self.ends(assembler);
            self.open = open;
        }
        self.open.extend(block.as_use().map(|item| item.id.clone()));
        self.said.push(block);
    }

    /// Adds the result of a tool use.
    pub(super) fn answers(&mut self, id: Arc<str>, content: Blocks, is_error: bool) {
        self.open.remove(&id);
        self.results.push(ContentBlock::tool_result(id, content, is_error));
    }

    /// Adds the call to the conversation.
    pub(super) fn ends(&mut self, assembler: &mut Assembler) {
        let call = std::mem::take(self);
        if !call.said.is_empty() {
            let part = ModelRecord::of(call.said, call.time);
            assembler.assistant(None, part.by(None, call.model.clone(), None));
        }
        assembler.hear_results(call.results, None);
        self.by(call.model, call.time);
    }
}
