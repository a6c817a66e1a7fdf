//! Before and after of each compaction, for people who want to see what a stage does.
//!
//! Sizes are kept of every compaction. Texts are kept of the first few of each stage and of its last
//! one: what a stage does a hundred times looks alike. They are cut and their secrets replaced when
//! the cell is over.

use std::cmp::Reverse;

use super::messages::{beginning, kind, prompt_entry};
use super::prelude::*;
use crate::context::Edit;
use crate::record::{CompactionChange, EntryEdit, Excerpt, MessageKind, Portion, PutEntry};

/// Compactions of a stage whose texts are kept, beside the last one's.
const FIRST: usize = 4;

/// Characters of what was taken out.
const BEFORE_CHARS: usize = 400;

/// Characters of what came in its place: a summary is what people want to read.
const AFTER_CHARS: usize = 1_200;

/// Watches what patches take out and put in.
#[derive(Debug, Default)]
pub struct Changes {
    done: Vec<CompactionChange>,
    /// Messages that were appended.
    appended: usize,
    /// By stage, the compactions whose texts are kept.
    texts: BTreeMap<Arc<str>, Vec<ChangeTexts>>,
}

/// The texts of one compaction.
#[derive(Debug)]
struct ChangeTexts {
    event: usize,
    before: Option<ShownBlock>,
    after: Option<ShownBlock>,
}

/// A message, and the block of it that is meant.
#[derive(Debug)]
struct ShownBlock {
    entry: Entry,
    block: Option<usize>,
}

impl ShownBlock {
    fn excerpt(&self, chars: usize) -> Excerpt {
        let (text, chars) = beginning(&self.entry, self.block, chars);
        Excerpt { kind: kind(&self.entry), message: self.entry.origin.message(), text, chars }
    }
}

fn portions<'a>(entries: impl Iterator<Item = &'a Entry>) -> BTreeMap<MessageKind, Portion> {
    let mut portions: BTreeMap<MessageKind, Portion> = BTreeMap::new();
    for entry in entries {
        let portion = portions.entry(kind(entry)).or_default();
        portion.messages += 1;
        portion.tokens += entry.size().tokens;
    }
    portions
}

fn same_message((old, new): &(&Entry, &Entry)) -> bool {
    Arc::ptr_eq(&old.message, &new.message)
}

/// The edits, without the entries that stand before and after each as they did.
fn edits(applied: &Applied) -> Vec<EntryEdit> {
    let mut edits = Vec::new();
    for (own, edit) in applied.edits() {
        let before = own.iter().zip(&edit.with).take_while(same_message).count();
        let (own, with) = (&own[before..], &edit.with[before..]);
        let after = own.iter().rev().zip(with.iter().rev()).take_while(same_message).count();
        let put = with[..with.len() - after].iter().map(|entry| match entry.origin {
            Origin::Verbatim(message) => PutEntry::Message(message),
            _ => PutEntry::Entry(prompt_entry(entry, entry.origin.message())),
        });
        let edit = EntryEdit {
            at: edit.entries.start + before,
            taken: own.len() - after,
            put: put.collect(),
        };
        if edit.taken > 0 || !edit.put.is_empty() {
            edits.push(edit);
        }
    }
    edits
}

fn size(entries: &[Entry]) -> Tokens {
    entries.iter().map(|entry| entry.size().tokens).sum()
}

/// The place of a patch that freed most: the entries before, and the entries after.
fn place(applied: &Applied) -> Option<(&[Entry], &Edit)> {
    // Of equals the first.
    let edits = applied.edits().enumerate();
    let best = edits.max_by_key(|(at, (own, edit))| (size(own) - size(&edit.with), Reverse(*at)));
    best.map(|(_, place)| place)
}

fn address(entry: &Entry) -> *const Message {
    Arc::as_ptr(&entry.message)
}

fn texts(event: usize, applied: &Applied) -> Option<ChangeTexts> {
    let (own, edit) = place(applied)?;
    let new: BTreeSet<_> = edit.with.iter().map(address).collect();
    let old: BTreeSet<_> = own.iter().map(address).collect();
    let gone = own.iter().enumerate().filter(|(_, entry)| !new.contains(&address(entry)));
    let largest = gone.max_by_key(|(at, entry)| (entry.size().tokens, Reverse(*at)));
    let mut written = edit.with.iter().filter(|entry| !old.contains(&address(entry)));
    let after =
        match edit.with.iter().find(|entry: &&Entry| matches!(entry.origin, Origin::Derived(_))) {
            Some(summary) => Some(summary),
            // One for one: the entry in the place of the largest.
            None if own.len() == edit.with.len() => largest.and_then(|(at, _)| edit.with.get(at)),
            None => written.next(),
        };
    // Of a message of several blocks the one that changed is meant.
    let block = largest.zip(after).and_then(|((_, before), after)| {
        let (before, after) = (before.message.model_text(), after.message.model_text());
        let mut pairs = before.iter().zip(after);
        (before.len() == after.len() && before.len() > 1)
            .then(|| pairs.position(|(before, after)| before != after))?
    });
    let piece = |entry: &Entry| ShownBlock { entry: entry.clone(), block };
    let before = largest.map(|(_, entry)| piece(entry));
    Some(ChangeTexts { event, before, after: after.map(piece) })
}

impl Changes {
    fn note(&mut self, applied: &Applied, on_append: bool) {
        let event = self.done.len();
        let new: BTreeSet<_> = applied.written().map(address).collect();
        let old: BTreeSet<_> = applied.change.removed.iter().map(address).collect();
        let removed = applied.change.removed.iter();
        self.done.push(CompactionChange {
            event,
            out: portions(removed.filter(|entry| !new.contains(&address(entry)))),
            put_in: portions(applied.written().filter(|entry| !old.contains(&address(entry)))),
            before: None,
            after: None,
            appended: self.appended,
            on_append,
            edits: edits(applied),
        });
        let Some(texts) = texts(event, applied) else {
            return;
        };
        let kept = self.texts.entry(applied.stage.clone()).or_default();
        kept.truncate(FIRST);
        kept.push(texts);
    }
}

impl Observer for Changes {
    fn appended(&mut self, _: &Entry) {
        self.appended += 1;
    }

    fn shortened(&mut self, applied: &Applied) {
        self.note(applied, true);
    }

    fn patched(&mut self, applied: &Applied) {
        self.note(applied, false);
    }

    fn finish(mut self: Box<Self>, record: &mut CellRecord) {
        for texts in self.texts.values().flatten() {
            if let Some(change) = self.done.get_mut(texts.event) {
                change.before = texts.before.as_ref().map(|block| block.excerpt(BEFORE_CHARS));
                change.after = texts.after.as_ref().map(|block| block.excerpt(AFTER_CHARS));
            }
        }
        record.changes = self.done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{BlockAt, CacheEffect, Context};
    use crate::session::{ContentBlock, Message, ToolResult};
    use crate::tokens::{CharsPer4, CountedTexts};

    fn counts() -> CountedTexts {
        CountedTexts::new(Arc::new(CharsPer4))
    }

    /// A question, an answer, a result of 4,000 characters with a token in it, an answer.
    fn context(counts: &CountedTexts) -> Context {
        let result = format!("sk-ant-api03-{} {}", "Ab9".repeat(30), "line ".repeat(800));
        let result = ContentBlock::ToolResult(Box::new(ToolResult {
            tool_use_id: "a".into(),
            content: vec![ContentBlock::Text(result.into())],
            is_error: false,
        }));
        let messages = [
            Message::text(Role::User, "read"),
            Message::text(Role::Assistant, "I read it"),
            Message::new(Role::User, vec![result]),
            Message::text(Role::Assistant, "done"),
        ];
        let mut context = Context::default();
        for (at, message) in messages.into_iter().enumerate() {
            let message = Arc::new(message);
            context.append(Entry::new(Origin::Verbatim(at), message, counts));
        }
        context
    }

    fn watch(times: usize, edits: impl Fn(&Context, &CountedTexts) -> Vec<Edit>) -> CellRecord {
        let counts = counts();
        let mut observer = Box::new(Changes::default());
        for call in 0..times {
            let mut context = context(&counts);
            let edits = edits(&context, &counts);
            observer.patched(&Applied {
                call,
                stage: "own".into(),
                reason: String::new(),
                change: context.apply(edits).unwrap(),
                is_still_over: false,
                prepared_at: None,
            });
        }
        let none: [u32; 0] = [];
        let record = serde_json::json!({
            "session": "s", "strategy": "own", "repeat": 0, "arm": "strategy",
            "end": { "end": "completed" }, "planned_calls": 1, "reached_calls": 1, "window": null,
            "fixed_tokens": 0, "prompt_tokens": [1], "saved_texts": 0,
            "action_support": {
                "wanted": none, "present": none,
                "compacted_wanted": none, "compacted_present": none,
            },
        });
        let mut record: CellRecord = serde_json::from_value(record).unwrap();
        observer.finish(&mut record);
        record
    }

    fn clear(context: &Context, counts: &CountedTexts) -> Vec<Edit> {
        let cleared = (BlockAt { entry: 2, block: 0 }, "[cleared]".into());
        Edit::blocks(context.entries(), [cleared], CacheEffect::Breaks, counts)
    }

    fn summarise(context: &Context, counts: &CountedTexts) -> Vec<Edit> {
        let all = context.entries();
        let summary = Message::text(Role::User, "It was read.");
        let origin = Origin::derived_from(&all[..3]);
        let summary = Entry::new(origin, Arc::new(summary), counts);
        vec![Edit::replacing(0..4, [summary, all[3].clone()])]
    }

    fn parts(of: &BTreeMap<MessageKind, Portion>) -> Vec<(MessageKind, u64)> {
        of.iter().map(|(kind, it)| (*kind, it.messages)).collect()
    }

    #[test]
    fn a_cleared_result_is_shown_before_and_after_without_its_secrets() {
        let changes = watch(1, clear).changes;
        let [change] = &changes[..] else {
            panic!("one compaction");
        };
        assert_eq!(parts(&change.out), [(MessageKind::Results, 1)]);
        assert_eq!(parts(&change.put_in), [(MessageKind::Results, 1)]);
        let before = change.before.as_ref().unwrap();
        assert!(before.text.starts_with("redacted-token-1"), "{before:?}");
        assert!(before.text.chars().count() == BEFORE_CHARS && before.chars > 4_000);
        assert_eq!(before.message, Some(2));
        assert_eq!(change.after.as_ref().unwrap().text, "[cleared]");
    }

    #[test]
    fn a_summary_stands_for_what_it_took_out_and_what_only_moved_is_left_out() {
        use MessageKind::{Agent, Results, Summary, User};
        let changes = watch(1, summarise).changes;
        assert_eq!(parts(&changes[0].out), [(User, 1), (Agent, 1), (Results, 1)]);
        assert_eq!(parts(&changes[0].put_in), [(Summary, 1)]);
        assert_eq!(changes[0].before.as_ref().unwrap().kind, Results);
        assert_eq!(changes[0].after.as_ref().unwrap().text, "It was read.");
    }

    #[test]
    fn texts_are_kept_of_the_first_ones_and_the_last() {
        let changes = watch(9, clear).changes;
        let shown = |change: &&CompactionChange| change.before.is_some();
        let shown = changes.iter().filter(shown).map(|change| change.event);
        assert_eq!(shown.collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
        assert!(changes.iter().all(|change| !change.out.is_empty()));
    }
}
