//! Repairs what a provider would refuse: tool uses without results, results without tool uses.

use super::prelude::*;
use crate::strategy::cut::answered;

/// In place of a text for missing results: the call is dropped.
const DROP_CALL: &str = "drop_call";

#[derive(Debug, Deserialize)]
pub(super) struct Normalize {
    missing_result: Arc<str>,
    orphan_result: Orphans,
    /// Entries up to here need no second look.
    #[serde(skip)]
    sound: PositionNotes<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Orphans {
    Drop,
    ToText,
}

impl Stage for Normalize {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let entries = context.entries();
        let sound = self.sound.up_to_date(context);
        let ranges = turns(entries, *sound);
        // The last turn of the model is looked at again, once it is known what answers it.
        let of_model = ranges.iter().rfind(|turn| entries[turn.start].role() == Role::Assistant);
        if let Some(last) = of_model {
            *sound = last.start;
        }
        let mut repair = Repair::default();
        let mut asked: Vec<&str> = Vec::new();
        for (at, turn) in ranges.iter().enumerate() {
            let before = &entries[turn.clone()];
            let next = ranges.get(at + 1);
            let written = match before[0].role() {
                Role::Assistant => {
                    let answers = next.cloned().unwrap_or(turn.end..turn.end);
                    let ids = answered(&entries[answers]);
                    let uses = before.iter().flat_map(|entry| entry.message.tool_uses());
                    asked = uses.map(|(_, tool)| &*tool.id).collect();
                    asked.retain(|id| !self.drops_calls() || ids.contains(id));
                    self.model_turn(before, &ids, &mut repair, cx)
                }
                Role::User => {
                    let asked = std::mem::take(&mut asked);
                    self.user_turn(before, &asked, &mut repair, cx)
                }
            };
            if is_changed(before, &written) {
                repair.edits.push(Edit::replacing(turn.clone(), written));
            }
            // There is no answer yet: the answers make a turn of their own.
            let open = next.is_none_or(|next| entries[next.start].role() == Role::Assistant);
            if open && !repair.answers.is_empty() {
                let answers = self.aborted(&std::mem::take(&mut repair.answers), cx);
                let end = turn.end..turn.end;
                repair.edits.push(Edit::replacing(end, [answers]));
            }
        }
        let (missing, orphans) = (repair.missing, repair.orphans);
        let reason = format!("{missing} missing results, {orphans} orphans repaired");
        Step::Done(Ok(Patch::new(reason, repair.edits)))
    }
}

/// The repairs that were found.
#[derive(Default)]
struct Repair {
    edits: Vec<Edit>,
    /// Tool uses of the turn before that the next turn of the user has yet to answer.
    answers: Vec<Arc<str>>,
    missing: usize,
    orphans: usize,
}

impl Normalize {
    fn drops_calls(&self) -> bool {
        *self.missing_result == *DROP_CALL
    }

    fn model_turn(
        &self,
        turn: &[Entry],
        answered: &BTreeSet<&str>,
        repair: &mut Repair,
        cx: &Situation,
    ) -> Vec<Entry> {
        let mut pieces = Vec::new();
        for entry in turn {
            let uses = entry.message.tool_uses().map(|(_, tool)| &tool.id);
            let missing: Vec<&Arc<str>> = uses.filter(|id| !answered.contains(&***id)).collect();
            repair.missing += missing.len();
            if missing.is_empty() || !self.drops_calls() {
                repair.answers.extend(missing.into_iter().cloned());
                pieces.push(entry.clone());
                continue;
            }
            let mut left = entry.message.content().to_vec();
            left.retain(|block| block.as_use().is_none_or(|tool| answered.contains(&*tool.id)));
            // Thinking that led to nothing else goes with the call.
            while matches!(left.last(), Some(ContentBlock::Thinking(_))) {
                left.pop();
            }
            pieces.extend(rewritten(entry, left, cx));
        }
        pieces
    }

    fn user_turn(
        &self,
        turn: &[Entry],
        asked: &[&str],
        repair: &mut Repair,
        cx: &Situation,
    ) -> Vec<Entry> {
        let mut pieces = Vec::new();
        // Results come first in their turn.
        if !repair.answers.is_empty() {
            let answers = std::mem::take(&mut repair.answers);
            pieces.push(self.aborted(&answers, cx));
        }
        let mut texts = Vec::new();
        for entry in turn {
            let content = entry.message.content();
            if !content.iter().any(|block| is_orphan(block, asked)) {
                pieces.push(entry.clone());
                continue;
            }
            let left = content.iter().filter(|block| !is_orphan(block, asked)).cloned();
            pieces.extend(rewritten(entry, left.collect(), cx));
            let blocks = content.iter().zip(entry.message.model_text());
            let orphans: Vec<_> = blocks.filter(|(block, _)| is_orphan(block, asked)).collect();
            repair.orphans += orphans.len();
            if self.orphan_result == Orphans::ToText {
                let said = orphans.iter().map(|(_, text)| *text);
                let said =
                    said.filter(|text| !text.trim().is_empty()).cloned().map(ContentBlock::Text);
                texts.extend(rewritten(entry, said.collect(), cx));
            }
        }
        pieces.extend(texts);
        // A placeholder may come before results whose neighbours it replaced.
        pieces.sort_by_key(|piece| piece.message.tool_results().next().is_none());
        pieces
    }

    /// One message that answers these tool uses.
    fn aborted(&self, ids: &[Arc<str>], cx: &Situation) -> Entry {
        let results = ids.iter().map(|id| {
            let content = vec![ContentBlock::Text(self.missing_result.clone())];
            ContentBlock::tool_result(id.clone(), content, false)
        });
        let message = Message::new(Role::User, results.collect()).with_tags([Tag::Meta]);
        Entry::new(Origin::Authored, Arc::new(message), &cx.counts)
    }
}

/// Whether a block is a result of a tool use that was not asked for.
fn is_orphan(block: &ContentBlock, asked: &[&str]) -> bool {
    block.as_result().is_some_and(|result| !asked.contains(&&*result.tool_use_id))
}

/// The turns from `start` on: messages of one role in a row.
fn turns(entries: &[Entry], start: usize) -> Vec<Range<usize>> {
    let mut from = start;
    entries[start.min(entries.len())..]
        .chunk_by(|left, right| left.role() == right.role())
        .map(|turn| {
            let range = from..from + turn.len();
            from = range.end;
            range
        })
        .collect()
}

/// The entry with other blocks; nothing if none is left.
fn rewritten(entry: &Entry, content: Vec<ContentBlock>, cx: &Situation) -> Option<Entry> {
    if content.is_empty() {
        return None;
    }
    let tags = entry.message.tags.iter().chain([Tag::Meta]);
    let message = entry.message.with_content(content).with_tags(tags);
    let origin = Origin::derived_from([entry]);
    Some(Entry::new(origin, Arc::new(message), &cx.counts))
}

fn is_changed(before: &[Entry], after: &[Entry]) -> bool {
    let mut pairs = before.iter().zip(after);
    after.len() != before.len() || pairs.any(|(old, new)| !Arc::ptr_eq(&old.message, &new.message))
}
