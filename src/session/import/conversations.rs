//! Finds the conversations in logs of API calls, whatever stands around them.
//!
//! A file holds one or more of: an object with `messages` and what the request or the log says
//! beside them, a `request` with its `response`, a bare list of messages, a list of either, or one
//! message per line. What the APIs share is read here; an importer reads the messages. Where
//! several requests were logged with their responses, they are joined to sessions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::ImportError;
use super::assemble::{Assembler, UserRecord, count};
use super::bodies;
use super::common::all;
use super::file::{Line, SourceFile};
use super::requests::{Join, Logged};
use crate::session::wire::stream::Api;
use crate::session::{ContentBlock, JsonText, Opaque, Session, Source, Tag, ToolSchema};
use crate::units::{Timestamp, Tokens};

/// What a value is counted as that holds no conversation.
pub(super) const NO_CONVERSATION: &str = "value that is no conversation";

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

/// Where a format keeps its messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// The format.
    pub(super) format: &'static str,
    /// The key under which the messages stand.
    pub(super) key: &'static str,
    /// The key that every message has.
    pub(super) of_message: &'static str,
    /// The key of what the model said, where an answer may stand without its request.
    pub(super) answer: Option<&'static str>,
    /// The API whose calls are logged in this shape.
    pub(super) api: Option<Api>,
}

impl Shape {
    /// Conversations under `key`, whose messages have roles.
    pub(super) const fn of_messages(format: &'static str, key: &'static str) -> Self {
        Self {
            format,
            key,
            of_message: "role",
            answer: None,
            api: None,
        }
    }

    /// The same, of logs of that API.
    pub(super) const fn of_api(self, api: Api) -> Self {
        Self {
            api: Some(api),
            ..self
        }
    }
}

/// Reads all conversations of a file; `read` reads one.
pub(super) fn sessions(
    shape: Shape,
    file: SourceFile,
    read: impl Fn(Conversation<'_>, &mut Assembler),
) -> Result<Vec<Session>, ImportError> {
    let file = file.text();
    let (values, mut source) = file.values()?;
    let mut log = Log {
        shape,
        path: &file.path,
        read: &read,
        join: Join::default(),
        skipped: 0,
    };
    let mut loose: Vec<Box<RawValue>> = Vec::new();
    let mut problem = None;
    for value in values {
        let mut warn = |what: &str| source.warn(what);
        let laid_out = shape
            .api
            .and_then(|api| bodies::laid_out(value.text, api, &mut warn));
        let text = laid_out.as_deref().unwrap_or(value.text);
        let value = Line { text, ..value };
        let mut found = Vec::new();
        match find(shape, &value, &mut found) {
            Ok(Some(message)) => loose.push(message.to_owned()),
            Ok(None) => {
                log.add(found)?;
                log.add_loose(&mut loose)?;
            }
            // One odd line is no reason to refuse the others.
            Err(error) => {
                log.add(found)?;
                source.not_understood(NO_CONVERSATION);
                problem = problem.or(Some(error));
            }
        }
    }
    log.add_loose(&mut loose)?;
    if log.skipped > 0 {
        let what = "conversation without messages".to_owned();
        source.skipped.insert(what, log.skipped);
    }
    let sessions = log.join.finish(&file.path)?;
    all(sessions, source, &file.id, &file.path).map_err(|error| problem.unwrap_or(error))
}

/// The conversations of a file so far.
struct Log<'f> {
    shape: Shape,
    path: &'f Path,
    read: &'f dyn Fn(Conversation<'_>, &mut Assembler),
    join: Join,
    /// Conversations without messages.
    skipped: u64,
}

impl Log<'_> {
    fn add(&mut self, found: Vec<Conversation<'_>>) -> Result<(), ImportError> {
        for conversation in found {
            let mut assembler = Assembler::new([]);
            self.shape.format.clone_into(&mut assembler.source.format);
            let is_answered = conversation.is_answered(self.shape);
            let follows = conversation.around.text("previous_response_id");
            (self.read)(conversation, &mut assembler);
            if assembler.is_empty() {
                self.skipped += 1;
                continue;
            }
            if let Some(session) = assembler.finish("unnamed".to_owned(), self.path)? {
                self.join.add(Logged {
                    session,
                    is_answered,
                    follows,
                });
            }
        }
        Ok(())
    }

    /// Ends a conversation of which each message was a value of its own.
    fn add_loose(&mut self, loose: &mut Vec<Box<RawValue>>) -> Result<(), ImportError> {
        let loose = std::mem::take(loose);
        let messages: Vec<&RawValue> = loose.iter().map(|it| &**it).collect();
        let around = Object::default();
        let found = (!messages.is_empty()).then_some(Conversation { around, messages });
        self.add(found.into_iter().collect())
    }
}

/// Names the sessions of a file: by its id, and numbered where there are several.
pub(super) fn name(sessions: &mut [Session], id: &str) {
    let several = sessions.len() > 1;
    for (at, session) in sessions.iter_mut().enumerate() {
        session.parts.id = if several {
            format!("{id}-{}", at + 1)
        } else {
            id.to_owned()
        };
    }
}

/// Finds the conversations in one value, or returns it if it is a message.
fn find<'a>(
    shape: Shape,
    line: &Line<'a>,
    found: &mut Vec<Conversation<'a>>,
) -> Result<Option<&'a RawValue>, ImportError> {
    let value: &RawValue = line.parse()?;
    if value.get().starts_with('[') {
        let items: Vec<&RawValue> = line.parse()?;
        let is_conversation = |item: &&RawValue| {
            item.get().starts_with('[')
                || Object::read(item).is_some_and(|object| object.is_conversation(shape))
        };
        if items.first().is_some_and(is_conversation) {
            for item in items {
                found.push(conversation(shape, line, item)?);
            }
        } else {
            let around = Object::default();
            let messages = items;
            found.push(Conversation { around, messages });
        }
        return Ok(None);
    }
    let object = Object(line.parse()?);
    if !object.is_conversation(shape) && (object.has(shape.of_message) || object.has("role")) {
        return Ok(Some(value));
    }
    found.push(conversation(shape, line, value)?);
    Ok(None)
}

fn conversation<'a>(
    shape: Shape,
    line: &Line<'a>,
    value: &'a RawValue,
) -> Result<Conversation<'a>, ImportError> {
    if value.get().starts_with('[') {
        return Ok(Conversation {
            around: Object::default(),
            messages: line.parse_part(value.get())?,
        });
    }
    let mut around = Object(line.parse_part(value.get())?).with_its_request(shape);
    let key = shape.key;
    let messages = match around.0.remove(key) {
        // A request of one text.
        Some(raw) if shape.answer.is_some() && raw.get().starts_with('"') => vec![raw],
        Some(raw) if shape.answer.is_some() && raw.get() == "null" => Vec::new(),
        Some(raw) => line.parse_part(raw.get())?,
        None if shape.answer.is_some_and(|key| around.has(key)) => Vec::new(),
        None => {
            let of_message = shape.of_message;
            return Err(line.error(format!(
                "neither a message with `{of_message}` nor a conversation with `{key}`"
            )));
        }
    };
    Ok(Conversation { around, messages })
}

impl Conversation<'_> {
    /// Whether the model's answer stands beside the messages.
    fn is_answered(&self, shape: Shape) -> bool {
        let is_object = |raw: &&RawValue| raw.get().starts_with('{');
        self.around.0.get("response").is_some_and(is_object)
            || shape.answer.is_some_and(|key| self.around.has(key))
    }
}

impl Object<'_> {
    /// Whether it holds messages, rather than being one.
    fn is_conversation(&self, shape: Shape) -> bool {
        let has_answer = shape.answer.is_some_and(|key| self.has(key));
        self.0.contains_key(shape.key)
            || has_answer && self.text("object").as_deref() == Some("response")
            || self.0.contains_key("request") && !self.has(shape.of_message)
            || self.has("custom_id") && (self.has("body") || self.has("params"))
    }

    /// The text under a key, which stays.
    pub(super) fn text(&self, key: &str) -> Option<Arc<str>> {
        serde_json::from_str(self.0.get(key)?.get()).ok()
    }

    /// Lays what a logged request says over the log's own keys. What proxies log of the transport
    /// stays out: the request and the response may each be the `body` of something.
    fn with_its_request(mut self, shape: Shape) -> Self {
        if self.has(shape.key) {
            return self;
        }
        // One request of a batch.
        if self.has("custom_id")
            && let Some(request) = self
                .take_object("body")
                .or_else(|| self.take_object("params"))
        {
            self.0.extend(request.0);
        }
        if let Some(mut request) = self.take_object("request") {
            let body = request.take_object("body");
            self.0.extend(body.unwrap_or(request).0);
        }
        let response = self.0.get("response").copied().and_then(Object::read);
        if let Some(body) = response.and_then(|mut response| response.take("body"))
            && body.get().starts_with('{')
        {
            self.0.insert("response".into(), body);
        }
        self
    }
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
pub(super) fn time(raw: &RawValue) -> Option<Timestamp> {
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

/// Keys under which records hold what somebody said or a tool told.
const SAYS: &[&str] = &[
    "attachment",
    "content",
    "message",
    "messages",
    "output",
    "parts",
    "text",
];

/// A record that is not known, counted as `what`: `record mystery`. It is kept as the user's if it
/// says something, in whatever key: bookkeeping that says nothing (ids, times, settings) would
/// only make the prompt longer than it was.
pub(super) fn unknown_record(
    what: &str,
    raw: &RawValue,
    source: &mut Source,
) -> Option<UserRecord> {
    count(&mut source.unknown, what);
    let object = Object::read(raw).unwrap_or_default();
    let is_told = SAYS.iter().any(|key| object.has(key)) || {
        let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        says_words(&value)
    };
    let kind = what.split_once(' ').map_or(what, |(_, kind)| kind);
    is_told.then(|| UserRecord {
        blocks: vec![ContentBlock::Opaque(Opaque {
            kind: kind.chars().take(80).collect::<String>().into(),
            json: JsonText::from(raw),
        })],
        timestamp: None,
        tags: vec![Tag::Meta],
    })
}

/// Whether a text of more than one word stands in it: names, ids and times are one.
fn says_words(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().contains(char::is_whitespace),
        Value::Array(items) => items.iter().any(says_words),
        Value::Object(entries) => entries.iter().any(|(key, value)| {
            SAYS.contains(&key.as_str()) && !value.is_null() || says_words(value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
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
