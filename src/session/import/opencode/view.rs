//! What opencode's model still saw: the history without what was summarised and cleared.

use super::super::pieces::{self, Edits};
use super::super::prelude::*;
use super::parts::Asked;

/// What the model reads instead of a result that was cleared.
const CLEARED: &str = "[Old tool result content cleared]";

/// What the user is made to ask before a summary.
const QUESTION: &str = "What did we do so far?";

/// The context, followed through compactions.
#[derive(Default)]
pub(super) struct View {
    /// What the context begins with; then all messages from `since` on.
    pieces: Vec<Recorded>,
    since: usize,
    /// Results that are cleared at a time: the record they came with, and the place in it.
    marks: BTreeMap<Timestamp, Vec<(Arc<str>, usize)>>,
    /// The compaction that was asked for last, and by which message.
    asked: Option<(Option<Arc<str>>, Asked)>,
    /// The size of the context at the last call.
    pub(super) last_size: Option<Tokens>,
}

impl View {
    /// A compaction is asked for by the message of that name.
    pub(super) fn asked(&mut self, by: Option<Arc<str>>, asked: Asked) {
        self.asked = Some((by, asked));
    }

    /// A summary was written in answer to the message `parent`.
    pub(super) fn compacted(
        &mut self,
        parent: Option<&str>,
        summary: Vec<ContentBlock>,
        assembler: &mut Assembler,
    ) {
        let at = assembler.flush();
        let asked = self.asked.take().filter(|(by, _)| by.as_deref() == parent);
        let mut pieces = Vec::new();
        // Earlier versions wrote a summary without being asked.
        if asked.is_some() {
            let question = vec![ContentBlock::Text(QUESTION.into())];
            pieces.push(Recorded::written(Role::User, question, &[Tag::Meta]));
        }
        let tags = [Tag::CompactSummary];
        pieces.push(Recorded::written(Role::Assistant, summary, &tags));
        let asked = asked.map(|(_, asked)| asked).unwrap_or_default();
        if let Some(tail) = asked.tail {
            match assembler.message_of(&tail).filter(|first| *first < at) {
                Some(first) => pieces.push(Recorded::Kept(first..at)),
                None => assembler.warn("a compaction kept a message that is not in the file"),
            }
        }
        self.replace(at, asked.trigger, pieces, assembler);
    }

    /// A result is cleared at that time.
    pub(super) fn will_clear(&mut self, time: Timestamp, record: Arc<str>, block: usize) {
        self.marks.entry(time).or_default().push((record, block));
    }

    /// Clears what was cleared before that time.
    pub(super) fn cleared_before(&mut self, time: Timestamp, assembler: &mut Assembler) {
        let later = self.marks.split_off(&time);
        let now = std::mem::replace(&mut self.marks, later);
        self.clear(now, assembler);
    }

    /// Clears what was cleared after the last message.
    pub(super) fn cleared_at_last(&mut self, assembler: &mut Assembler) {
        let now = std::mem::take(&mut self.marks);
        self.clear(now, assembler);
    }

    fn clear(
        &mut self,
        marks: BTreeMap<Timestamp, Vec<(Arc<str>, usize)>>,
        assembler: &mut Assembler,
    ) {
        if marks.is_empty() {
            return;
        }
        let at = assembler.flush();
        let mut edits = Edits::new();
        for (record, block) in marks.into_values().flatten() {
            if let Some(message) = assembler.message_of(&record) {
                let blocks = edits.entry(message).or_default();
                blocks.insert(block, CLEARED.into());
            }
        }
        let mut context = std::mem::take(&mut self.pieces);
        pieces::keep(self.since..at, &mut context);
        let pieces = pieces::edited(context, &edits);
        self.replace(at, Some("prune".into()), pieces, assembler);
    }

    fn replace(
        &mut self,
        at: usize,
        trigger: Option<Arc<str>>,
        pieces: Vec<Recorded>,
        assembler: &mut Assembler,
    ) {
        self.pieces.clone_from(&pieces);
        self.since = at;
        let left = CompactedTo::Replaced(pieces);
        assembler.compacts(trigger, self.last_size, left);
    }
}
