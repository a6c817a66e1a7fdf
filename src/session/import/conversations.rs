//! Finds the conversations in logs of API calls, whatever stands around them.
//!
//! A file holds one or more of: an object with `messages` and what the request or the log says
//! beside them, a bare list of messages, a list of either, or one message per line. What the two
//! APIs share is read here; an importer reads the messages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::ImportError;
use super::assemble::{Assembler, UserRecord, add_counts, count};
use super::documents::Documents;
use super::lines::Line;
use crate::session::{ContentBlock, JsonText, Opaque, Session, Source, Tag, ToolSchema};
use crate::units::{Timestamp, Tokens};

/// The keys of a JSON object with their values as written; of duplicate keys, the last one.
#[derive(Debug, Clone, Default)]
pub(super) struct Object<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Object<'a> {
    /// Reads an object; none if the value is something else.
    pub(super) fn read(raw: &'a RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok().map(Self)
    }

    /// Whether there is such a key; `null` counts as absent.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|raw| raw.get() != "null")
    }

    /// What is left, in the order of the keys.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.0.into_iter()
    }

    /// Takes the value of a key out; `null` counts as absent.
    pub(super) fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        self.0.remove(key).filter(|raw| raw.get() != "null")
    }

    /// Takes a text out. A value that is no text stays, to be counted.
    pub(super) fn take_text(&mut self, key: &str) -> Option<Arc<str>> {
        let text = serde_json::from_str(self.0.get(key)?.get()).ok()?;
        self.0.remove(key);
        text
    }

    /// Takes a list out. A value that is no list stays, to be counted.
    pub(super) fn take_list(&mut self, key: &str) -> Option<Vec<&'a RawValue>> {
        let list = serde_json::from_str(self.0.get(key)?.get()).ok()?;
        self.0.remove(key);
        list
    }

    /// Takes an object out. A value that is no object stays, to be counted.
    pub(super) fn take_object(&mut self, key: &str) -> Option<Self> {
        let object = Self::read(self.0.get(key)?)?;
        self.0.remove(key);
        Some(object)
    }

    /// Counts what is left as no part of the conversation.
    pub(super) fn count_left(self, what: &str, assembler: &mut Assembler) {
        for (key, raw) in self.0 {
            if raw.get() != "null" {
                assembler.skip(&format!("{what} `{key}`"));
            }
        }
    }
}

/// One conversation as a file holds it.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    /// What stands beside the messages.
    pub(super) around: Object<'a>,
    /// The messages, not yet read.
    pub(super) messages: Vec<&'a RawValue>,
}

/// Reads all conversations of a file, whose messages stand under `key`; `read` reads one.
pub(super) fn sessions(
    format: &str,
    key: &str,
    path: &Path,
    input: &mut dyn BufRead,
    read: impl Fn(Conversation<'_>, &mut Assembler),
) -> Result<Vec<Session>, ImportError> {
    let documents = Documents::read(path, input)?;
    let (values, cut) = documents.values()?;
    let mut found = Vec::new();
    let mut loose: Vec<&RawValue> = Vec::new();
    for value in &values {
        if let Some(message) = find(key, value, &mut found)? {
            loose.push(message);
        } else {
            close(&mut loose, &mut found);
        }
    }
    close(&mut loose, &mut found);
    let mut first = Source {
        warnings: documents.warnings.clone(),
        ..Source::default()
    };
    if cut {
        count(&mut first.warnings, "the last line was cut and is left out");
    }
    let several = found.len() > 1;
    let mut sessions = Vec::new();
    let mut first = Some(first);
    for (at, conversation) in found.into_iter().enumerate() {
        let mut assembler = Assembler::new([]);
        format.clone_into(&mut assembler.source.format);
        read(conversation, &mut assembler);
        if assembler.is_empty() {
            let source = first.get_or_insert_default();
            count(&mut source.skipped, "conversation without messages");
            continue;
        }
        // What the file says as a whole is told once, with a session.
        add_counts(&mut assembler.source, first.take().unwrap_or_default());
        let id = if several {
            format!("{}-{}", documents.id, at + 1)
        } else {
            documents.id.clone()
        };
        sessions.extend(assembler.finish(id, documents.path())?);
    }
    if sessions.is_empty() {
        return Err(ImportError::NoConversation {
            path: documents.path().to_owned(),
        });
    }
    Ok(sessions)
}

/// Ends a conversation of which each message was a value of its own.
fn close<'a>(loose: &mut Vec<&'a RawValue>, found: &mut Vec<Conversation<'a>>) {
    let messages = std::mem::take(loose);
    if !messages.is_empty() {
        let around = Object::default();
        found.push(Conversation { around, messages });
    }
}

/// Finds the conversations in one value, or returns it if it is a message.
fn find<'a>(
    key: &str,
    line: &Line<'a>,
    found: &mut Vec<Conversation<'a>>,
) -> Result<Option<&'a RawValue>, ImportError> {
    let value: &RawValue = line.parse()?;
    if value.get().starts_with('[') {
        let items: Vec<&RawValue> = line.parse()?;
        let is_conversation = |item: &&RawValue| {
            item.get().starts_with('[')
                || Object::read(item).is_some_and(|object| object.0.contains_key(key))
        };
        if items.first().is_some_and(is_conversation) {
            for item in items {
                found.push(conversation(key, line, item)?);
            }
        } else {
            let around = Object::default();
            let messages = items;
            found.push(Conversation { around, messages });
        }
        return Ok(None);
    }
    let object: BTreeMap<Cow<'_, str>, &RawValue> = line.parse()?;
    if !object.contains_key(key) && object.contains_key("role") {
        return Ok(Some(value));
    }
    found.push(conversation(key, line, value)?);
    Ok(None)
}

fn conversation<'a>(
    key: &str,
    line: &Line<'a>,
    value: &'a RawValue,
) -> Result<Conversation<'a>, ImportError> {
    if value.get().starts_with('[') {
        return Ok(Conversation {
            around: Object::default(),
            messages: line.parse_part(value.get())?,
        });
    }
    let mut around = Object(line.parse_part(value.get())?);
    let Some(messages) = around.0.remove(key) else {
        return Err(line.error(format!(
            "neither a message with `role` nor a conversation with `{key}`"
        )));
    };
    Ok(Conversation {
        around,
        messages: line.parse_part(messages.get())?,
    })
}

impl Object<'_> {
    /// Puts the model, its window and the tools in the session's header.
    pub(super) fn header(&mut self, assembler: &mut Assembler) {
        let model = self.take_text("model").map(|model| model.to_string());
        assembler.header.model = model;
        let window = self.take("context_window");
        let window = window.and_then(|raw| serde_json::from_str(raw.get()).ok());
        assembler.header.context_window = window.map(Tokens);
        for definition in self.take_list("tools").into_iter().flatten() {
            let value: Value = serde_json::from_str(definition.get()).unwrap_or_default();
            let name = ["/function/name", "/custom/name", "/name", "/type"]
                .iter()
                .find_map(|at| value.pointer(at)?.as_str());
            if name.is_none() {
                assembler.warn("a tool has no name");
            }
            assembler.header.tools.push(ToolSchema {
                name: name.unwrap_or("unnamed").into(),
                definition: JsonText::from(definition),
            });
        }
    }

    /// Takes a time out; a value that is none is counted.
    pub(super) fn take_time(&mut self, key: &str, assembler: &mut Assembler) -> Option<Timestamp> {
        let raw = self.take(key)?;
        let time = time(raw);
        if time.is_none() {
            assembler.warn("a timestamp cannot be read");
        }
        time
    }
}

/// An RFC 3339 time, or seconds or milliseconds since 1970.
fn time(raw: &RawValue) -> Option<Timestamp> {
    // Seconds reach this in the year 5138, milliseconds did in 1973.
    const SECONDS_BELOW: f64 = 1e11;
    match serde_json::from_str(raw.get()).ok()? {
        Value::String(text) => {
            let time = text.parse::<jiff::Timestamp>().ok()?;
            Some(Timestamp(time.as_millisecond()))
        }
        Value::Number(number) => {
            let number = number.as_f64()?;
            let scale = if number.abs() < SECONDS_BELOW {
                1e3
            } else {
                1.0
            };
            let milliseconds = (number * scale).round();
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            (milliseconds.abs() < 1e18).then_some(Timestamp(milliseconds as i64))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A message that cannot be read is the user's: it stood in the prompt.
pub(super) fn keep_unread(kind: &str, raw: &RawValue, assembler: &mut Assembler) {
    count(&mut assembler.source.unknown, &format!("message {kind}"));
    let block = ContentBlock::Opaque(Opaque {
        kind: kind.into(),
        json: JsonText::from(raw),
    });
    let tags = vec![Tag::Meta];
    assembler.user(
        None,
        UserRecord {
            blocks: vec![block],
            timestamp: None,
            tags,
        },
    );
}

/// Who wrote a message of the user's that the product does not mark: nobody, where a tool speaks.
pub(super) fn speaker_of(blocks: &[ContentBlock]) -> Vec<Tag> {
    let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(_));
    if blocks.iter().any(is_result) {
        Vec::new()
    } else {
        vec![Tag::TypedUser]
    }
}

/// The text of a system prompt: a string, or a list of texts, which are joined by line feeds.
pub(super) fn system_text(blocks: &[ContentBlock], assembler: &mut Assembler) -> Option<Arc<str>> {
    let mut texts: Vec<&str> = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => texts.push(text),
            ContentBlock::Thinking(_)
            | ContentBlock::ToolUse(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::Image(_)
            | ContentBlock::Opaque(_) => {
                assembler.warn("a part of the system prompt is no text and is left out");
            }
        }
    }
    (!texts.is_empty()).then(|| texts.join("\n").into())
}
