//! Results that are masked: their records are written again, and what stands in them is cut.

use std::sync::Arc;

use super::{Call, Chat, Record, Step};
use crate::session::import::assemble::Assembler;
use crate::session::import::pieces::{self, Edits};
use crate::session::{CompactedTo, ContentBlock, RecordedCompaction};

/// What stands in the place of a result that was masked.
pub(super) const MASK: &str = "<tool_output_masked";

impl Chat<'_> {
    /// What a record that is written again masks, if it does no more: the results that it cuts
    /// and the one before it has whole.
    pub(super) fn masked_in(
        &mut self,
        place: usize,
        new: &Record<'_>,
    ) -> Option<Vec<(Arc<str>, Arc<str>)>> {
        let Step::Said(old) = &self.steps[place] else {
            return None;
        };
        let [old, new] = [&old.tool_calls, &new.tool_calls].map(|it| it.as_deref());
        let (old, new) = (old?, new?);
        if old.len() != new.len() || !new.iter().any(|raw| raw.get().contains(MASK)) {
            return None;
        }
        let mut masked = Vec::new();
        for (old, new) in old.iter().zip(new) {
            if old.get().contains(MASK) || !new.get().contains(MASK) {
                continue;
            }
            let call: Call<'_> = serde_json::from_str(new.get()).ok()?;
            let content = call.content(&mut Assembler::new([])).unwrap_or_default();
            let texts = content.iter().filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.as_ref()),
                _ => None,
            });
            let text: Arc<str> = texts.collect::<Vec<&str>>().join("\n").into();
            let id = call.id.clone()?;
            // Each checkpoint masks the same results again.
            if self.masks.get(&id) != Some(&text) {
                self.masks.insert(id.clone(), text.clone());
                masked.push((id, text));
            }
        }
        Some(masked)
    }

    /// Results are masked from here on.
    pub(super) fn masked(&mut self, results: Vec<(Arc<str>, Arc<str>)>) {
        let at = self.assembler.flush();
        let mut edits = Edits::new();
        for (id, text) in results {
            if let Some((message, block)) = self.assembler.answer(&id) {
                edits.entry(message).or_default().insert(block, text);
            }
        }
        let context = pieces::context(self.assembler.compactions(), at);
        let after = context.map_or(CompactedTo::Missing, |context| {
            CompactedTo::Replaced(pieces::edited(context, &edits))
        });
        self.assembler.compaction(RecordedCompaction {
            at,
            trigger: Some("tool output masked".into()),
            pre_tokens: None,
            after,
        });
    }
}
