//! A context as lines of the protocol, and an answer as entries of a context.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::context::{Edit, Entry, Origin};
use crate::script::shortened;
use crate::session::{ContentBlock, JsonText, Message, Role, Tag, wire};
use crate::tokens::CountedTexts;

/// Characters of a text that an error shows.
const SHOWN: usize = 40;

/// The list of messages that a program was sent last.
#[derive(Debug, Default)]
pub(crate) struct SentMessages {
    sent: Vec<Arc<Message>>,
}

impl SentMessages {
    /// These entries as a list of messages; `by_changes` writes ranges of the last list for those that are in it.
    pub(crate) fn list(&mut self, entries: &[Entry], by_changes: bool) -> Vec<Box<RawValue>> {
        let pieces = if by_changes {
            self.changes(entries)
        } else {
            entries.iter().map(message_line).collect()
        };
        let messages = entries.iter().map(|entry| entry.message.clone());
        self.sent = messages.collect();
        pieces
    }

    fn changes(&self, entries: &[Entry]) -> Vec<Box<RawValue>> {
        let pairs = self.sent.iter().zip(entries);
        let same = pairs.take_while(|(old, new)| Arc::ptr_eq(old, &new.message)).count();
        let sent = places((same..).zip(&self.sent[same..]));
        let mut pieces = Vec::new();
        let mut open: Option<Range<usize>> = (same > 0).then_some(0..same);
        for entry in &entries[same..] {
            let at = sent.get(&Arc::as_ptr(&entry.message)).copied();
            match (&mut open, at) {
                (Some(range), Some(at)) if range.end == at => range.end += 1,
                _ => {
                    pieces.extend(open.take().map(range_line));
                    match at {
                        Some(at) => open = Some(at..at + 1),
                        None => pieces.push(message_line(entry)),
                    }
                }
            }
        }
        pieces.extend(open.map(range_line));
        pieces
    }
}

/// The place of each message by its address.
fn places<'m>(
    messages: impl Iterator<Item = (usize, &'m Arc<Message>)>,
) -> HashMap<*const Message, usize> {
    messages.map(|(at, message)| (Arc::as_ptr(message), at)).collect()
}

fn range_line(range: Range<usize>) -> Box<RawValue> {
    raw(format!("[{},{}]", range.start, range.end))
}

/// A message with its size.
pub(crate) fn message_line(entry: &Entry) -> Box<RawValue> {
    let mut json = wire::anthropic_json(&entry.message);
    json.truncate(json.len().saturating_sub(1));
    raw(format!("{json},\"tokens\":{}}}", entry.size().tokens.0))
}

/// JSON on one line: recorded arguments may be laid out over several, and a line feed in JSON is always layout.
pub(crate) fn raw(json: String) -> Box<RawValue> {
    let json = if json.contains(['\n', '\r']) { json.replace(['\n', '\r'], " ") } else { json };
    RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Reads the pieces of an answer as entries, made of those in `base`.
///
/// Ranges are taken from `base`. A message that says the same as one in `base` is that one; one that has `of`, or
/// the same tool calls and results, is a changed version of it. Each of `base` stands in one range, so that a short
/// answer is no large context: [`Self::claim`] comes before anything is copied. Of the others the largest stands for the entries
/// of `gone` that nothing else came of, and the rest for nothing.
pub(crate) struct AnswerReader<'a> {
    base: &'a [Entry],
    counts: &'a CountedTexts,
    /// Entries of `base` by what they begin with.
    known: Option<BTreeMap<Beginning, Vec<usize>>>,
    is_used: Vec<bool>,
}

/// Enough of a message to look others up by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Beginning {
    role: Role,
    /// Ids of tool calls and results.
    ids: Vec<Arc<str>>,
    /// The text, where there are none.
    text: Option<Arc<str>>,
}

impl Beginning {
    fn of(message: &Message) -> Self {
        let ids: Vec<Arc<str>> =
            message.content().iter().filter_map(ContentBlock::call_id).cloned().collect();
        let text = ids.is_empty().then(|| message.model_text().first().cloned());
        Self { role: message.role(), text: text.flatten(), ids }
    }
}

/// An entry of an answer, or a message that is made of none.
enum ReadPiece {
    Entry(Entry),
    New(Message),
}

impl<'a> AnswerReader<'a> {
    pub(crate) fn of(base: &'a [Entry], counts: &'a CountedTexts) -> Self {
        Self { base, counts, known: None, is_used: vec![false; base.len()] }
    }

    /// A range that must lie in `base`.
    pub(crate) fn range(&self, from: usize, to: usize) -> Result<Range<usize>, String> {
        if from <= to && to <= self.base.len() {
            return Ok(from..to);
        }
        Err(format!("there is no range [{from},{to}]: the list has {} messages", self.base.len()))
    }

    /// Marks what the ranges among these pieces stand for; fails where one stands for a message a second time.
    pub(crate) fn claim(&mut self, pieces: &[Value]) -> Result<(), String> {
        for piece in pieces {
            if let Some(range) = self.range_of(piece)? {
                self.claim_range(range)?;
            }
        }
        Ok(())
    }

    /// The same for one range.
    pub(crate) fn claim_range(&mut self, range: Range<usize>) -> Result<(), String> {
        if let Some(again) = range.clone().find(|at| self.is_used[*at]) {
            return Err(format!("message {again} stands in two ranges"));
        }
        self.is_used[range].fill(true);
        Ok(())
    }

    /// The entries of an answer, which are claimed, in place of `gone`, a range of `base`.
    pub(crate) fn entries(
        &mut self,
        pieces: &[Value],
        gone: Range<usize>,
    ) -> Result<Vec<Entry>, String> {
        let mut read = Vec::new();
        for piece in pieces {
            if let Some(range) = self.range_of(piece)? {
                read.extend(self.base[range].iter().cloned().map(ReadPiece::Entry));
            } else {
                read.push(self.message(piece)?);
            }
        }
        let left = gone.filter(|at| !self.is_used[*at]).map(|at| &self.base[at]);
        let origin = Origin::derived_from(left);
        let sizes = read.iter().map(|piece| match piece {
            ReadPiece::New(message) => message.model_text().iter().map(|text| text.len()).sum(),
            ReadPiece::Entry(_) => 0_usize,
        });
        let largest = sizes.enumerate().max_by_key(|(at, size)| (*size, std::cmp::Reverse(*at)));
        let entries = read.into_iter().enumerate().map(|(at, piece)| match piece {
            ReadPiece::Entry(entry) => entry,
            ReadPiece::New(message)
                if largest.is_some_and(|(most, _)| most == at) && origin != Origin::Authored =>
            {
                self.entry(origin.clone(), message.with_tags([Tag::CompactSummary]))
            }
            ReadPiece::New(message) => self.entry(Origin::Authored, message.with_tags([Tag::Meta])),
        });
        Ok(entries.collect())
    }

    /// The messages of a request.
    pub(crate) fn messages(&mut self, pieces: &[Value]) -> Result<Vec<Arc<Message>>, String> {
        self.claim(pieces)?;
        let mut messages = Vec::new();
        for piece in pieces {
            if let Some(range) = self.range_of(piece)? {
                messages.extend(self.base[range].iter().map(|entry| entry.message.clone()));
            } else {
                messages.push(Arc::new(parse(piece, self.base)?.0));
            }
        }
        match messages.last() {
            Some(last) if last.role() == Role::User => Ok(messages),
            _ => Err("the last message of a request is the user's".to_owned()),
        }
    }

    fn range_of(&self, piece: &Value) -> Result<Option<Range<usize>>, String> {
        let Value::Array(ends) = piece else {
            return Ok(None);
        };
        let ends: Vec<Option<usize>> =
            ends.iter().map(|end| usize::try_from(end.as_u64()?).ok()).collect();
        match ends[..] {
            [Some(from), Some(to)] => self.range(from, to).map(Some),
            _ => Err(format!("`{piece}` is no range `[from,to]`")),
        }
    }

    fn message(&mut self, piece: &Value) -> Result<ReadPiece, String> {
        let (message, of) = parse(piece, self.base)?;
        let at = match of {
            Some(at) => Some(self.range(at, at + 1)?.start),
            None => self.find(&message),
        };
        let Some(at) = at else {
            return Ok(ReadPiece::New(message));
        };
        self.is_used[at] = true;
        Ok(ReadPiece::Entry(self.changed(&self.base[at], &message)))
    }

    /// The entry that says the same, or has the same tool calls and results.
    fn find(&mut self, message: &Message) -> Option<usize> {
        let base = self.base;
        let known = self.known.get_or_insert_with(|| {
            let mut known: BTreeMap<Beginning, Vec<usize>> = BTreeMap::new();
            for (at, entry) in base.iter().enumerate() {
                let beginning = Beginning::of(&entry.message);
                known.entry(beginning).or_default().push(at);
            }
            known
        });
        let beginning = Beginning::of(message);
        let mut alike = known.get(&beginning)?.iter().copied().filter(|at| !self.is_used[*at]);
        let same = alike.clone().find(|at| is_same(&base[*at].message, message));
        same.or_else(|| alike.next().filter(|_| !beginning.ids.is_empty()))
    }

    /// The entry with the blocks of another version of its message; itself where they say the same.
    fn changed(&self, entry: &Entry, new: &Message) -> Entry {
        if is_same(&entry.message, new) {
            return entry.clone();
        }
        let old = entry.message.content();
        let blocks = new.content().iter().map(|block| {
            let same = old.iter().find(|old| is_same_block(old, block));
            same.unwrap_or(block).clone()
        });
        let message = entry.message.with_content(blocks.collect());
        let origin = match entry.origin.message() {
            Some(at) if old.len() == message.content().len() => {
                let pairs = old.iter().zip(message.content()).enumerate();
                let edited = pairs.filter(|(_, (old, new))| old != new).map(|(block, _)| block);
                match &entry.origin {
                    earlier @ Origin::Edited { .. } => earlier.edited(edited),
                    _ => Origin::Verbatim(at).edited(edited),
                }
            }
            _ => Origin::derived_from([entry]),
        };
        self.entry(origin, message)
    }

    fn entry(&self, origin: Origin, message: Message) -> Entry {
        Entry::new(origin, Arc::new(message), self.counts)
    }
}

/// A message as a program writes it, and the entry that it says it is made of.
fn parse(piece: &Value, base: &[Entry]) -> Result<(Message, Option<usize>), String> {
    let Value::Object(keys) = piece else {
        return Err(format!("`{piece}` is neither a message nor a range `[from,to]`"));
    };
    let known = ["role", "content", "of", "tokens"];
    if let Some(key) = keys.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("a message has no key `{key}`"));
    }
    let role = match keys.get("role").and_then(Value::as_str) {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err("the `role` of a message is `user` or `assistant`".to_owned()),
    };
    let of = match keys.get("of") {
        None => None,
        Some(of) => {
            let at = of.as_u64().and_then(|at| usize::try_from(at).ok());
            Some(at.ok_or_else(|| format!("`of` is no place: `{of}`"))?)
        }
    };
    let content = keys.get("content").unwrap_or(&Value::Null);
    if let Some(text) = text_among_blocks(content) {
        let shown = shortened(text, SHOWN);
        return Err(format!("a block is an object with a `type`, and not the text `{shown}`"));
    }
    let (blocks, unknown) =
        wire::content::blocks_of(role, content).map_err(|error| error.to_string())?;
    if blocks.is_empty() {
        return Err("a message has no content".to_owned());
    }
    // A recording may hold blocks that Proctor does not know; a program may send those back, and none of its own.
    let own = unknown.iter().find(|kind| {
        let blocks = base.iter().flat_map(|entry| entry.message.content());
        let mut recorded = blocks.filter_map(|block| match block {
            ContentBlock::Opaque(opaque) => Some(&opaque.kind),
            _ => None,
        });
        !recorded.any(|known| **kind == format!("block {known}"))
    });
    match own {
        Some(kind) => Err(format!("a message holds an unknown {kind}")),
        None => Ok((Message::new(role, blocks), of)),
    }
}

/// A text where a block has to be, in a message or in a result: providers refuse it, and recordings may hold it.
fn text_among_blocks(content: &Value) -> Option<&str> {
    content
        .as_array()?
        .iter()
        .find_map(|block| block.as_str().or_else(|| text_among_blocks(block.get("content")?)))
}

/// Whether the model would read the same.
fn is_same(old: &Message, new: &Message) -> bool {
    old.role() == new.role() && are_same(old.content(), new.content())
}

fn are_same(old: &[ContentBlock], new: &[ContentBlock]) -> bool {
    let mut pairs = old.iter().zip(new);
    old.len() == new.len() && pairs.all(|(old, new)| is_same_block(old, new))
}

/// Whether two blocks are the same: JSON may be written in other words.
fn is_same_block(old: &ContentBlock, new: &ContentBlock) -> bool {
    match (old, new) {
        (ContentBlock::ToolUse(old), ContentBlock::ToolUse(new)) => {
            old.id == new.id && old.name == new.name && same_json(&old.input, &new.input)
        }
        (ContentBlock::ToolResult(old), ContentBlock::ToolResult(new)) => {
            old.tool_use_id == new.tool_use_id
                && old.is_error == new.is_error
                && are_same(&old.content, &new.content)
        }
        (ContentBlock::Image(old), ContentBlock::Image(new)) => same_json(&old.source, &new.source),
        (ContentBlock::Opaque(old), ContentBlock::Opaque(new)) => same_json(&old.json, &new.json),
        (old, new) => old == new,
    }
}

fn same_json(old: &JsonText, new: &JsonText) -> bool {
    old == new || old.value() == new.value()
}

/// The edits that make `target` of `entries`. What is in both stays, as far as the order is the same.
pub(crate) fn edits_to(entries: &[Entry], target: Vec<Entry>) -> Vec<Edit> {
    let messages = entries.iter().map(|entry| &entry.message);
    let before = places(messages.enumerate());
    let mut edits = Vec::new();
    let (mut next, mut with) = (0, Vec::new());
    for entry in target {
        match before.get(&Arc::as_ptr(&entry.message)) {
            Some(at) if *at >= next => {
                push_edit(&mut edits, next..*at, std::mem::take(&mut with));
                next = at + 1;
            }
            _ => with.push(entry),
        }
    }
    push_edit(&mut edits, next..entries.len(), with);
    edits
}

fn push_edit(edits: &mut Vec<Edit>, entries: Range<usize>, with: Vec<Entry>) {
    if !entries.is_empty() || !with.is_empty() {
        edits.push(Edit::replacing(entries, with));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Image, Opaque, Thinking};
    use crate::tokens::CharsPer4;

    /// What Proctor sends and gets back word for word is what it was, whatever it holds.
    #[test]
    fn messages_that_come_back_are_those_that_were_sent() {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let json = |text: &str| JsonText::parse(text).unwrap();
        let search = r#"{"type": "web_search_call",
            "query": "a"}"#;
        let said = vec![
            ContentBlock::Thinking(Box::new(Thinking {
                text: "thoughts".into(),
                signature: Some("signed".into()),
            })),
            ContentBlock::Text("I look. \u{1f9ea}".into()),
            ContentBlock::tool_use("a".into(), "Read".into(), json(r#"{ "path": "x", "n": 1.0 }"#)),
            ContentBlock::Opaque(Box::new(Opaque {
                kind: "web_search_call".into(),
                json: json(search),
            })),
        ];
        let source = json(r#"{"type":"base64","media_type":"image/png","data":"QQ=="}"#);
        let parts = vec![ContentBlock::Text("a\nb".into()), ContentBlock::Image(Image { source })];
        let messages = [
            Message::text(Role::User, "Look."),
            Message::new(Role::Assistant, said),
            Message::new(Role::User, vec![ContentBlock::tool_result("a".into(), parts, true)]),
            Message::new(
                Role::User,
                vec![ContentBlock::tool_result("b".into(), Vec::new(), false)],
            ),
        ];
        let entries = messages.into_iter().enumerate();
        let entry = |(at, message)| Entry::new(Origin::Verbatim(at), Arc::new(message), &counts);
        let base: Vec<Entry> = entries.map(entry).collect();
        let lines = base.iter().map(message_line);
        let pieces: Vec<Value> = lines
            .map(|line| {
                assert!(!line.get().contains('\n'));
                serde_json::from_str(line.get()).unwrap()
            })
            .collect();
        let mut reading = AnswerReader::of(&base, &counts);
        reading.claim(&pieces).unwrap();
        let read = reading.entries(&pieces, 0..base.len()).unwrap();
        let same = |(one, other): (&Entry, &Entry)| Arc::ptr_eq(&one.message, &other.message);
        assert!(read.len() == base.len() && read.iter().zip(&base).all(same), "{read:#?}");
        assert!(edits_to(&base, read).is_empty());
    }
}
