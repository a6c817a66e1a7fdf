//! What a compaction left, told by records: those that stayed, and those that the product wrote.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::assemble::Assembler;
use crate::session::{ContentBlock, Message, Recorded, Role, Tag};

/// A record of a context after a compaction.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// The record's name, by which the history may know it.
    pub(super) name: Option<Arc<str>>,
    /// Who speaks.
    pub(super) role: Role,
    /// What it says.
    pub(super) blocks: Vec<ContentBlock>,
    /// What is known of it.
    pub(super) tags: Vec<Tag>,
}

/// The records of the history by their names; several may make one message.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<Arc<str>, Vec<ContentBlock>>);

impl Records {
    /// Takes note of a record of the history.
    pub(super) fn note(&mut self, name: Option<&Arc<str>>, blocks: &[ContentBlock]) {
        if let Some(name) = name {
            self.0.insert(name.clone(), blocks.to_vec());
        }
    }

    /// A context of records, as what stayed of the history before message `at` and what was
    /// written. A message of which only a part is shown counts as written.
    pub(super) fn pieces(
        &self,
        shown: &[Shown],
        at: usize,
        assembler: &Assembler,
    ) -> Vec<Recorded> {
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for message in self.0.keys().filter_map(|name| assembler.message_of(name)) {
            *sizes.entry(message).or_default() += 1;
        }
        let place = |one: &Shown| {
            let name = one.name.as_ref()?;
            let same = self.0.get(name) == Some(&one.blocks);
            let message = assembler.message_of(name)?;
            (same && message < at).then_some(message)
        };
        let mut pieces: Vec<Recorded> = Vec::new();
        let mut rest = shown;
        while let Some(first) = rest.first() {
            let message = place(first);
            let same = |one: &&Shown| place(one) == message && one.role == first.role;
            let (run, others) = rest.split_at(rest.iter().take_while(same).count());
            rest = others;
            match message {
                Some(message) if sizes.get(&message) == Some(&run.len()) => {
                    match pieces.last_mut() {
                        Some(Recorded::Kept(range)) if range.end == message => range.end += 1,
                        _ => pieces.push(Recorded::Kept(message..message + 1)),
                    }
                }
                _ => pieces.extend(written(run)),
            }
        }
        pieces
    }
}

/// One message of several records that stand together; tool results first.
fn written(run: &[Shown]) -> Option<Recorded> {
    let blocks = run.iter().flat_map(|one| one.blocks.clone());
    let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(_));
    let (mut results, said): (Vec<ContentBlock>, Vec<ContentBlock>) = blocks.partition(is_result);
    results.extend(said);
    if results.is_empty() {
        return None;
    }
    let tags: Vec<Tag> = run.iter().flat_map(|one| one.tags.clone()).collect();
    let message = Message::new(run.first()?.role, results).with_tags(tags);
    Some(Recorded::Written(Arc::new(message)))
}
