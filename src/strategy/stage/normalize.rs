//! Repairs what a provider would refuse: tool uses without results, results without tool uses.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::context::{Context, Edit, Entry, Origin, Patch};
use crate::session::{ContentBlock, Message, Role, Tag, ToolResult};
use crate::step::Step;
use crate::strategy::knob::KnobKind::{Choice, Flag, Text};
use crate::strategy::stage::answered;
use crate::strategy::{Built, Knob, KnobReader, Law, Planned, Situation, Stage, StageKind};

/// `kind = "normalize"`.
pub const KIND: StageKind = StageKind {
    name: "normalize",
    description: "tool uses without results and results without tool uses are repaired, and \
                  results come first in their turn",
    page: include_str!("../../../docs/stages/normalize.md"),
    knobs: KNOBS,
    // A result that was missing takes room.
    breaks: &[Law::NeverLarger],
    build,
};

const KNOBS: &[Knob] = &[
    Knob::new("missing_result", Text("aborted")),
    Knob::new("orphan_result", Choice(&["drop", "to_text"], "drop")),
    Knob::new("merge_same_role", Flag(false)),
];

const DROP_CALL: &str = "drop_call";

fn build(knobs: &mut KnobReader<'_>) -> Built {
    let missing = knobs.text("missing_result")?;
    Ok(Box::new(Normalize {
        missing: (missing != DROP_CALL).then(|| missing.into()),
        orphans_to_text: knobs.choice("orphan_result")? == "to_text",
        merge: knobs.flag("merge_same_role")?,
        sound: 0,
        replacements: 0,
    }))
}

#[derive(Debug)]
struct Normalize {
    /// What stands for a missing result; nothing where the call is dropped.
    missing: Option<Arc<str>>,
    orphans_to_text: bool,
    merge: bool,
    /// Entries up to here need no second look.
    sound: usize,
    /// [`Context::replacements`] at that time.
    replacements: u64,
}

impl Stage for Normalize {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> Planned<'a> {
        let entries = context.entries();
        let unchanged = self.replacements == context.replacements();
        let start = if unchanged { self.sound } else { 0 };
        self.replacements = context.replacements();
        let turns = turns(entries, start);
        // The last turn of the model is looked at again, once it is known what answers it.
        self.sound = turns
            .iter()
            .rfind(|turn| role(&entries[turn.start]) == Role::Assistant)
            .map_or(start, |turn| turn.start);
        let mut repair = Repair::default();
        let mut asked: Vec<&str> = Vec::new();
        for (at, turn) in turns.iter().enumerate() {
            let mut written = match role(&entries[turn.start]) {
                Role::Assistant => {
                    let answers = turns.get(at + 1).cloned().unwrap_or(turn.end..turn.end);
                    let answered = answered(&entries[answers]);
                    asked = uses(&entries[turn.clone()]).collect();
                    asked.retain(|id| self.missing.is_some() || answered.contains(id));
                    self.model_turn(entries, turn, &answered, &mut repair, cx)
                }
                Role::User => {
                    let asked = std::mem::take(&mut asked);
                    self.user_turn(entries, turn, &asked, &mut repair, cx)
                }
            };
            if self.merge {
                merge(&mut written, cx);
            }
            if let Some(patch) = changed(&entries[turn.clone()], written) {
                repair.edits.push(Edit::Replace {
                    entries: turn.clone(),
                    with: patch,
                });
            }
            // Nobody has answered yet: the answers make a turn of their own.
            if !repair.answers.is_empty()
                && turns
                    .get(at + 1)
                    .is_none_or(|next| role(&entries[next.start]) == Role::Assistant)
            {
                repair.edits.push(Edit::Replace {
                    entries: turn.end..turn.end,
                    with: vec![self.aborted(&std::mem::take(&mut repair.answers), cx)],
                });
            }
        }
        Step::Done(Ok(Patch::new(
            format!(
                "{} missing results, {} orphans repaired",
                repair.missing, repair.orphans
            ),
            repair.edits,
        )))
    }
}

/// What is found to repair.
#[derive(Default)]
struct Repair {
    edits: Vec<Edit>,
    /// Tool uses of the turn before that the next turn of the user has yet to answer.
    answers: Vec<Arc<str>>,
    missing: usize,
    orphans: usize,
}

impl Normalize {
    fn model_turn(
        &self,
        entries: &[Entry],
        turn: &Range<usize>,
        answered: &BTreeSet<&str>,
        repair: &mut Repair,
        cx: &Situation,
    ) -> Vec<Entry> {
        let is_missing = |block: &ContentBlock| match block {
            ContentBlock::ToolUse(tool) => !answered.contains(&*tool.id),
            _ => false,
        };
        let mut pieces = Vec::new();
        for entry in &entries[turn.clone()] {
            let content = entry.message.content();
            let missing: Vec<&ContentBlock> =
                content.iter().filter(|block| is_missing(block)).collect();
            repair.missing += missing.len();
            if missing.is_empty() || self.missing.is_some() {
                repair
                    .answers
                    .extend(missing.into_iter().filter_map(|block| match block {
                        ContentBlock::ToolUse(tool) => Some(tool.id.clone()),
                        _ => None,
                    }));
                pieces.push(entry.clone());
                continue;
            }
            let left = content.iter().filter(|block| !is_missing(block)).cloned();
            pieces.extend(rewritten(entry, left.collect(), cx));
        }
        pieces
    }

    fn user_turn(
        &self,
        entries: &[Entry],
        turn: &Range<usize>,
        asked: &[&str],
        repair: &mut Repair,
        cx: &Situation,
    ) -> Vec<Entry> {
        let is_orphan = |block: &ContentBlock| match block {
            ContentBlock::ToolResult(result) => !asked.contains(&&*result.tool_use_id),
            _ => false,
        };
        let mut pieces = Vec::new();
        // Results come first in their turn.
        if !repair.answers.is_empty() {
            let answers = std::mem::take(&mut repair.answers);
            pieces.push(self.aborted(&answers, cx));
        }
        let mut texts = Vec::new();
        for entry in &entries[turn.clone()] {
            let content = entry.message.content();
            if !content.iter().any(is_orphan) {
                pieces.push(entry.clone());
                continue;
            }
            let left = content.iter().filter(|block| !is_orphan(block)).cloned();
            pieces.extend(rewritten(entry, left.collect(), cx));
            let orphans = content.iter().zip(entry.message.model_text());
            let orphans: Vec<_> = orphans.filter(|(block, _)| is_orphan(block)).collect();
            repair.orphans += orphans.len();
            if self.orphans_to_text {
                let said = orphans
                    .iter()
                    .filter(|(_, text)| !text.trim().is_empty())
                    .map(|(_, text)| ContentBlock::Text((*text).clone()));
                texts.extend(rewritten(entry, said.collect(), cx));
            }
        }
        pieces.extend(texts);
        // A placeholder may stand in front of results whose neighbours it replaced.
        pieces.sort_by_key(|piece| piece.message.tool_results().next().is_none());
        pieces
    }

    /// One message that answers these tool uses.
    fn aborted(&self, ids: &[Arc<str>], cx: &Situation) -> Entry {
        let text = self.missing.clone().unwrap_or_default();
        let results = ids.iter().map(|id| {
            ContentBlock::ToolResult(ToolResult {
                tool_use_id: id.clone(),
                content: vec![ContentBlock::Text(text.clone())],
                is_error: false,
            })
        });
        let message = Message::new(Role::User, results.collect()).with_tags([Tag::Meta]);
        Entry::new(Origin::Authored, Arc::new(message), &cx.counts)
    }
}

fn role(entry: &Entry) -> Role {
    entry.message.role()
}

/// The turns from `start` on: messages of one role in a row.
fn turns(entries: &[Entry], start: usize) -> Vec<Range<usize>> {
    let mut from = start;
    entries[start.min(entries.len())..]
        .chunk_by(|left, right| role(left) == role(right))
        .map(|turn| {
            let range = from..from + turn.len();
            from = range.end;
            range
        })
        .collect()
}

fn uses(entries: &[Entry]) -> impl Iterator<Item = &str> {
    let uses = entries.iter().flat_map(|entry| entry.message.tool_uses());
    uses.map(|(_, tool)| &*tool.id)
}

/// The entry with other blocks; nothing if none is left.
fn rewritten(entry: &Entry, content: Vec<ContentBlock>, cx: &Situation) -> Option<Entry> {
    if content.is_empty() {
        return None;
    }
    let tags = entry.message.tags.iter().copied().chain([Tag::Meta]);
    let mut message = Message::new(role(entry), content).with_tags(tags);
    message.timestamp = entry.message.timestamp;
    message.api_call.clone_from(&entry.message.api_call);
    let origin = Origin::derived_from([entry]);
    Some(Entry::new(origin, Arc::new(message), &cx.counts))
}

/// Makes one message of all pieces of a turn: results first, then the rest in order.
fn merge(pieces: &mut Vec<Entry>, cx: &Situation) {
    if pieces.len() < 2 {
        return;
    }
    let entries: Vec<Entry> = std::mem::take(pieces);
    let is_result = |block: &&ContentBlock| matches!(block, ContentBlock::ToolResult(_));
    let blocks = || entries.iter().flat_map(|entry| entry.message.content());
    let content = blocks()
        .filter(is_result)
        .chain(blocks().filter(|block| !is_result(block)))
        .cloned()
        .collect();
    let tags = entries
        .iter()
        .flat_map(|entry| entry.message.tags.iter().copied());
    let role = entries.first().map_or(Role::User, role);
    let mut message = Message::new(role, content).with_tags(tags.chain([Tag::Meta]));
    message.timestamp = entries.last().and_then(|entry| entry.message.timestamp);
    let origin = Origin::derived_from(&entries);
    pieces.push(Entry::new(origin, Arc::new(message), &cx.counts));
}

/// What stands there afterwards, if that differs.
fn changed(before: &[Entry], after: Vec<Entry>) -> Option<Vec<Entry>> {
    let same = |(old, new): (&Entry, &Entry)| Arc::ptr_eq(&old.message, &new.message);
    if after.len() == before.len() && before.iter().zip(&after).all(same) {
        return None;
    }
    Some(after)
}
