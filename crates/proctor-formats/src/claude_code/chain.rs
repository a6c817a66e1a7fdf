//! One conversation of a recording, and the compactions in it.

use super::records::{CompactMetadata, Parents, PreservedRecords, PromptSnapshot};
use crate::prelude::*;

/// A record's part of its conversation.
pub(super) enum RecordKind {
    Assistant(ModelRecord),
    /// The product's message about a failed call, which is not sent again.
    ApiError,
    /// Of the user or a tool, by its author where that is no tool.
    User(Blocks, Option<Tag>),
    Summary(Blocks),
    Attachment(Blocks, Tag),
    Boundary(CompactMetadata),
    ClearedContent(ClearedContent),
    /// The context was cleared, with the billed tokens of the last prompt.
    NewRoot(Option<Tokens>),
    /// A session begins in a file of several.
    NewRun,
}

/// The content that the model does not read from its next call on.
pub(super) struct ClearedContent {
    pub(super) trigger: &'static str,
    pub(super) pre_tokens: Option<Tokens>,
    /// The texts in the place of the results of these tool uses.
    pub(super) results: Vec<(Arc<str>, Arc<str>)>,
    /// Attachments that were cleared.
    pub(super) attachments: Vec<Arc<str>>,
}

/// A record that is part of a conversation.
pub(super) struct ChainEntry {
    pub(super) uuid: Text,
    pub(super) parent: Text,
    pub(super) chain: usize,
    pub(super) session: Text,
    pub(super) timestamp: When,
    pub(super) said: RecordKind,
}

/// One conversation with the compaction that is being read, if any.
#[derive(Default)]
pub(super) struct Chain {
    assembler: Assembler,
    open: Option<OpenCompaction>,
    /// The content that is cleared before the next call.
    cleared: Vec<ClearedContent>,
}

/// A compaction whose end was not seen yet.
struct OpenCompaction {
    index: usize,
    phase: Phase,
    kept: Vec<Recorded>,
    kept_first: bool,
}

/// How far a compaction was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The summary is still to come.
    Boundary,
    /// Attachments may follow, which belong to the new context.
    Summary,
    /// The same, at the start of the file: summary and attachments become the first message.
    Start,
}

impl Chain {
    /// Takes what was sent in front of the conversation.
    pub(super) fn give(&mut self, given: PromptSnapshot) {
        let prefix = given.cli_prefix;
        let texts: Vec<Arc<str>> = prefix.into_iter().chain(given.system_prompt).collect();
        self.assembler.header.system = (!texts.is_empty()).then(|| texts.join("\n\n").into());
        for tool in given.tools {
            self.assembler.tool(Some(tool.name), &tool.schema);
        }
    }

    /// Adds a record; `known` names all records of the file.
    pub(super) fn add(&mut self, entry: ChainEntry, known: &Parents) {
        let uuid = entry.uuid.as_ref();
        match entry.said {
            RecordKind::Assistant(part) => {
                self.close();
                if !self.assembler.knows(part.call.as_ref()) {
                    self.clear();
                }
                self.assembler.assistant(uuid, part);
            }
            RecordKind::ApiError => self.assembler.skip("api error"),
            RecordKind::User(blocks, tag) => {
                // A command's echo may come between boundary and summary.
                if self.open.as_ref().is_some_and(|open| open.phase != Phase::Boundary) {
                    self.close();
                }
                self.assembler.hear(uuid, blocks, entry.timestamp, tag);
            }
            RecordKind::Attachment(blocks, tag) => match &self.open {
                Some(open) if open.phase == Phase::Summary => {
                    self.assembler.compacted_to(open.index, written(blocks, tag, entry.timestamp));
                }
                _ => self.assembler.hear(uuid, blocks, entry.timestamp, [tag]),
            },
            RecordKind::ClearedContent(cleared) => self.cleared.push(cleared),
            RecordKind::NewRoot(pre_tokens) => {
                self.close();
                self.clear();
                let (trigger, after) = (Some("clear".into()), CompactedTo::Replaced(Vec::new()));
                self.assembler.compacts(trigger, pre_tokens, after);
            }
            RecordKind::Boundary(metadata) => {
                self.close();
                self.clear();
                self.boundary(entry.uuid.as_deref(), metadata, known);
            }
            RecordKind::Summary(blocks) => self.summary(uuid, blocks, entry.timestamp),
            RecordKind::NewRun => {}
        }
    }

    fn boundary(&mut self, uuid: Option<&str>, metadata: CompactMetadata, known: &Parents) {
        let before = metadata.pre_tokens.and_then(|one| one.as_u64()).map(Tokens);
        self.assembler.summary_usage = metadata.usage;
        let index = self.assembler.compacts(metadata.trigger, before, CompactedTo::Missing);
        let preserved =
            metadata.preserved_messages.or(metadata.preserved_segment).unwrap_or_default();
        self.open = Some(OpenCompaction {
            index,
            phase: Phase::Boundary,
            kept: self.kept(&preserved, known),
            // Kept records are below their anchor: the boundary itself, or (mostly) the summary.
            kept_first: uuid.is_some() && preserved.anchor_uuid.as_deref() == uuid,
        });
    }

    /// The messages that a compaction left as they were. A message is kept whole if a part is.
    fn kept(&mut self, preserved: &PreservedRecords, known: &Parents) -> Vec<Recorded> {
        let mut kept: Vec<Recorded> = Vec::new();
        let Some(uuids) = &preserved.uuids else {
            let ends = [&preserved.head_uuid, &preserved.tail_uuid];
            match ends.map(|uuid| self.assembler.message_of(uuid.as_deref()?)) {
                [Some(from), Some(to)] if from <= to => kept.push(Recorded::Kept(from..to + 1)),
                _ if preserved.head_uuid.is_some() => self.warn_not_kept(),
                _ => {}
            }
            return kept;
        };
        for uuid in uuids {
            match self.assembler.message_of(uuid) {
                Some(message) => {
                    let last = kept.last();
                    if !matches!(last, Some(Recorded::Kept(range)) if range.contains(&message)) {
                        Recorded::keep(message, &mut kept);
                    }
                }
                None if known.contains_key(uuid) => {}
                None => self.warn_not_kept(),
            }
        }
        kept
    }

    fn warn_not_kept(&mut self) {
        self.assembler.warn("a compaction kept a message that is not in the file");
    }

    fn summary(&mut self, uuid: Option<&Arc<str>>, blocks: Blocks, timestamp: When) {
        if self.open.is_none() {
            self.boundary(None, CompactMetadata::default(), &BTreeMap::new());
        }
        let Some(open) = &mut self.open else { return };
        match open.phase {
            Phase::Boundary if self.assembler.is_empty() => open.phase = Phase::Start,
            Phase::Boundary => open.phase = Phase::Summary,
            // More than one summary message: the kept messages stay where they are.
            Phase::Summary | Phase::Start => open.kept.clear(),
        }
        if open.phase == Phase::Start {
            return self.assembler.hear(uuid, blocks, timestamp, [Tag::CompactSummary]);
        }
        let mut pieces = std::mem::take(&mut open.kept);
        let at = if open.kept_first { pieces.len() } else { 0 };
        pieces.insert(at, written(blocks, Tag::CompactSummary, timestamp));
        for piece in pieces {
            self.assembler.compacted_to(open.index, piece);
        }
    }

    /// Clears what is due: old results, and results that were too large to be read whole.
    fn clear(&mut self) {
        for cleared in std::mem::take(&mut self.cleared) {
            let (before, count) = (cleared.pre_tokens, cleared.results.len());
            let assembler = &mut self.assembler;
            let missing = assembler.replaces_results(cleared.trigger, before, cleared.results);
            assembler.warn_all(0..missing, "a compaction clears a result that is not in the file");
            let whole = "a compaction clears an attachment, which is kept";
            assembler.warn_all(&cleared.attachments, whole);
            if missing == count {
                assembler.warn("a compaction says nothing of what it cleared");
            }
        }
    }

    /// Ends the compaction that is being read, clears what is due, and returns the conversation.
    pub(super) fn end(mut self) -> Assembler {
        self.close();
        self.clear();
        self.assembler
    }

    /// Ends the compaction that is being read.
    fn close(&mut self) {
        if let Some(OpenCompaction { index, phase: Phase::Start, .. }) = self.open.take() {
            let at = self.assembler.flush();
            let compaction = self.assembler.compaction_mut(index);
            compaction.at = at;
            compaction.after = CompactedTo::Replaced(vec![Recorded::Kept(0..at)]);
        }
    }
}

fn written(blocks: Blocks, tag: Tag, timestamp: When) -> Recorded {
    let mut message = Message::new(Role::User, blocks).with_tags([tag]);
    message.details.timestamp = timestamp;
    Recorded::Written(Arc::new(message))
}
