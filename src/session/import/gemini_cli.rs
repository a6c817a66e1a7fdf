//! Gemini CLI keeps one chat per file: a header and one record per line, or, in older versions,
//! one object with all `messages`.
//!
//! Rules of this format, beside those every importer shares:
//! - A record that is written again replaces the earlier one of its id: first come the words, then
//!   the tool calls. It keeps the place of the first.
//! - Calls and results stand in the record of the model; the results are the user's next message.
//! - The input of a call includes what was read from the cache; thoughts are billed beside output.
//! - A chat that was compacted goes on with a snapshot of its state, which the product wrote.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::assemble::{Assembler, AssistantRecord, UserRecord, add_counts, count};
use super::conversations::Object;
use super::documents::Documents;
use super::lines::strip_bom;
use super::tool_names::class_of;
use super::{ImportError, Importer};
use crate::session::{
    CompactedTo, ContentBlock, Image, JsonText, Message, Opaque, Recorded, RecordedCompaction,
    Role, Session, Source, Tag, Thinking, ToolResult, ToolUse,
};
use crate::units::{ApiCallId, Timestamp, Tokens, Usage};

/// Reads chats of Gemini CLI.
#[derive(Debug, Clone, Copy)]
pub(super) struct GeminiCli;

const FORMAT: &str = "gemini-cli";

/// What the product says where the model stopped too early.
const NUDGE: &str = "System: Please continue.";

/// What the message holds that a compaction leaves.
const SNAPSHOT: &str = "<state_snapshot>";

impl Importer for GeminiCli {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        let head = String::from_utf8_lossy(strip_bom(head));
        let head = head.trim_start();
        let start: String = head.chars().take(1_000).collect();
        start.starts_with('{')
            && ["\"sessionId\"", "\"projectHash\"", "\"startTime\""]
                .iter()
                .all(|key| start.contains(key))
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        let documents = Documents::read(path, input)?;
        let (values, cut) = documents.values()?;
        let mut chat = Chat::default();
        FORMAT.clone_into(&mut chat.assembler.source.format);
        let source = Source {
            warnings: documents.warnings.clone(),
            ..Source::default()
        };
        add_counts(&mut chat.assembler.source, source);
        if cut {
            chat.assembler.warn("the last line was cut and is left out");
        }
        for value in &values {
            chat.collect(value.parse()?);
        }
        for record in std::mem::take(&mut chat.records) {
            chat.read(record);
        }
        let session = chat
            .assembler
            .finish(documents.id.clone(), documents.path())?;
        let session = session.ok_or_else(|| ImportError::NoConversation {
            path: documents.path().to_owned(),
        })?;
        Ok(vec![session])
    }
}

/// A header, a record, or a change of the header.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    id: Option<Arc<str>>,
    r#type: Option<Arc<str>>,
    timestamp: Option<Arc<str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    thoughts: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    tokens: Option<&'a RawValue>,
    model: Option<Arc<str>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(rename = "$set", borrow)]
    set: Option<&'a RawValue>,
    #[serde(rename = "$rewindTo")]
    rewind_to: Option<Arc<str>>,
}

#[derive(Default)]
struct Chat<'a> {
    assembler: Assembler,
    records: Vec<Record<'a>>,
    places: BTreeMap<Arc<str>, usize>,
    results: usize,
}

impl<'a> Chat<'a> {
    /// Takes the records in; one that was written again takes the place of the first.
    fn collect(&mut self, mut record: Record<'a>) {
        if let Some(id) = &record.rewind_to {
            self.rewind(id);
            return;
        }
        let set = record.set.and_then(Object::read);
        if let Some(list) = set.and_then(|mut set| set.take_list("messages")) {
            // The list takes the place of all that was said.
            self.records.clear();
            self.places.clear();
            self.assembler.skip("list of messages set anew");
            record.messages = Some(list);
        }
        for raw in record.messages.take().into_iter().flatten() {
            match serde_json::from_str(raw.get()) {
                Ok(message) => self.collect(message),
                Err(_) => self.unknown("malformed record"),
            }
        }
        if record.r#type.is_none() {
            self.assembler.skip("header");
            return;
        }
        let place = record.id.as_ref().and_then(|id| self.places.get(id));
        if let Some(place) = place {
            self.records[*place] = record;
            self.assembler.skip("earlier form of a record");
            return;
        }
        if let Some(id) = &record.id {
            self.places.insert(id.clone(), self.records.len());
        }
        self.records.push(record);
    }

    /// The person went back: the message of that id and all after it are gone.
    fn rewind(&mut self, id: &str) {
        match self.places.get(id).copied() {
            Some(at) => {
                self.records.truncate(at);
                self.places.retain(|_, place| *place < at);
                self.assembler.skip("rewind");
            }
            None => self
                .assembler
                .warn("a rewind names a message that is not in the file"),
        }
    }

    fn unknown(&mut self, what: &str) {
        count(&mut self.assembler.source.unknown, what);
    }

    fn read(&mut self, record: Record<'_>) {
        let time = record.timestamp.as_deref().and_then(|text| {
            let time = text.parse::<jiff::Timestamp>().ok();
            if time.is_none() {
                self.assembler.warn("a timestamp cannot be read");
            }
            Some(Timestamp(time?.as_millisecond()))
        });
        match record.r#type.as_deref() {
            Some("user") => self.user(&record, time),
            Some("gemini" | "model") => self.model(record, time),
            Some(known @ ("info" | "warning" | "error")) => self.assembler.skip(known),
            other => self.unknown(&format!("record {}", other.unwrap_or_default())),
        }
    }

    fn user(&mut self, record: &Record<'_>, timestamp: Option<Timestamp>) {
        let blocks = parts(record.content, &mut self.assembler);
        let is_snapshot = |block: &ContentBlock| match block {
            ContentBlock::Text(text) => {
                text.trim_start().starts_with('<') && text.contains(SNAPSHOT)
            }
            _ => false,
        };
        let has_snapshot = blocks.iter().any(is_snapshot);
        if has_snapshot && !self.assembler.is_empty() {
            let summary = Message::new(Role::User, blocks).with_tags([Tag::CompactSummary]);
            let at = self.assembler.flush();
            let after = CompactedTo::Replaced(vec![Recorded::Written(Arc::new(summary))]);
            self.assembler.compaction(RecordedCompaction {
                at,
                trigger: None,
                pre_tokens: None,
                after,
            });
            return;
        }
        let is_nudge =
            |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if &**text == NUDGE);
        let tags = if has_snapshot {
            vec![Tag::CompactSummary]
        } else if blocks.iter().any(is_nudge) {
            vec![Tag::Meta]
        } else {
            vec![Tag::TypedUser]
        };
        let record = UserRecord {
            blocks,
            timestamp,
            tags,
        };
        self.assembler.user(None, record);
    }

    /// What the model said, and what came of its calls.
    fn model(&mut self, record: Record<'_>, timestamp: Option<Timestamp>) {
        let mut said = Vec::new();
        for raw in record.thoughts.into_iter().flatten() {
            said.extend(thought(raw));
        }
        said.extend(parts(record.content, &mut self.assembler));
        let mut results = Vec::new();
        for raw in record.tool_calls.into_iter().flatten() {
            let Ok(call) = serde_json::from_str::<Call<'_>>(raw.get()) else {
                said.push(opaque("malformed tool call", raw, &mut self.assembler));
                continue;
            };
            self.results += 1;
            let id = call.id.clone();
            let id = id.unwrap_or_else(|| format!("unnamed-call-{}", self.results).into());
            let name = call.name.clone().unwrap_or_else(|| "unnamed".into());
            said.push(ContentBlock::ToolUse(ToolUse {
                id: id.clone(),
                class: class_of(&name),
                name,
                input: call
                    .args
                    .map_or_else(|| JsonText::string(""), JsonText::from),
            }));
            if let Some(content) = call.content(&mut self.assembler) {
                results.push(ContentBlock::ToolResult(ToolResult {
                    tool_use_id: id,
                    content,
                    is_error: matches!(call.status.as_deref(), Some("error" | "cancelled")),
                }));
            }
        }
        let usage = record
            .tokens
            .and_then(|raw| usage(raw, &mut self.assembler));
        self.assembler.assistant(
            None,
            AssistantRecord {
                call: record.id.map(ApiCallId),
                model: record.model,
                blocks: said,
                usage,
                timestamp,
                tags: Vec::new(),
            },
        );
        if !results.is_empty() {
            let record = UserRecord {
                blocks: results,
                timestamp: None,
                tags: Vec::new(),
            };
            self.assembler.user(None, record);
        }
    }
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<Arc<str>>,
    name: Option<Arc<str>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    status: Option<Arc<str>>,
}

impl Call<'_> {
    /// What the model was told: the text of the response, or the response as JSON; and what came
    /// with it, such as an image.
    fn content(&self, assembler: &mut Assembler) -> Option<Vec<ContentBlock>> {
        let raw = self.result.filter(|raw| raw.get() != "null")?;
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
            return Some(vec![response(raw)]);
        };
        let mut told = Vec::new();
        for raw in items {
            match Object::read(raw).and_then(|mut part| part.take_object("functionResponse")) {
                Some(mut function) => {
                    told.extend(function.take("response").map(response));
                    told.extend(parts(function.take("parts"), assembler));
                }
                None => told.push(part(raw, assembler)),
            }
        }
        Some(told)
    }
}

/// The text of a response, or the response as JSON.
pub(super) fn response(raw: &RawValue) -> ContentBlock {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let said = ["/output", "/error"]
        .iter()
        .find_map(|at| value.pointer(at)?.as_str());
    ContentBlock::Text(match said.or(value.as_str()) {
        Some(text) => text.into(),
        None => raw.get().into(),
    })
}

fn opaque(kind: &str, raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    count(&mut assembler.source.unknown, kind);
    ContentBlock::Opaque(Opaque {
        kind: kind.into(),
        json: JsonText::from(raw),
    })
}

fn thought(raw: &RawValue) -> Option<ContentBlock> {
    #[derive(Deserialize)]
    struct Thought {
        subject: Option<Arc<str>>,
        description: Option<Arc<str>>,
    }
    let thought: Thought = serde_json::from_str(raw.get()).ok()?;
    let parts: Vec<&str> = [&thought.subject, &thought.description]
        .into_iter()
        .filter_map(|part| part.as_deref())
        .collect();
    (!parts.is_empty()).then(|| {
        ContentBlock::Thinking(Thinking {
            text: parts.join("\n").into(),
            signature: None,
        })
    })
}

/// A text, a part, or a list of parts.
fn parts(content: Option<&RawValue>, assembler: &mut Assembler) -> Vec<ContentBlock> {
    let Some(raw) = content.filter(|raw| raw.get() != "null") else {
        return Vec::new();
    };
    if let Ok(text) = serde_json::from_str::<Arc<str>>(raw.get()) {
        let text = Some(text).filter(|text| !text.is_empty());
        return text.map(ContentBlock::Text).into_iter().collect();
    }
    let items = serde_json::from_str::<Vec<&RawValue>>(raw.get()).unwrap_or_else(|_| vec![raw]);
    items.into_iter().map(|raw| part(raw, assembler)).collect()
}

fn part(raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Part<'a> {
        text: Option<Arc<str>>,
        #[serde(borrow)]
        inline_data: Option<&'a RawValue>,
        #[serde(borrow)]
        file_data: Option<&'a RawValue>,
    }
    if let Ok(text) = serde_json::from_str::<Arc<str>>(raw.get()) {
        return ContentBlock::Text(text);
    }
    match serde_json::from_str::<Part<'_>>(raw.get()) {
        Ok(Part {
            text: Some(text), ..
        }) => ContentBlock::Text(text),
        Ok(Part {
            inline_data: Some(data),
            ..
        }) => ContentBlock::Image(Image {
            source: JsonText::from(data),
        }),
        Ok(Part {
            file_data: Some(_), ..
        }) => ContentBlock::Opaque(Opaque {
            kind: "document".into(),
            json: JsonText::from(raw),
        }),
        _ => opaque("part", raw, assembler),
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counters {
    input: u64,
    output: u64,
    cached: u64,
    thoughts: u64,
    tool: u64,
}

/// The input includes what was read from the cache; what tools added to the prompt and what was
/// thought are counted apart.
fn usage(raw: &RawValue, assembler: &mut Assembler) -> Option<Usage> {
    let Ok(counters) = serde_json::from_str::<Counters>(raw.get()) else {
        assembler.warn("a usage cannot be read");
        return None;
    };
    let read = counters.cached.min(counters.input);
    if read < counters.cached {
        assembler.warn("a usage counts more cached tokens than the prompt has");
    }
    Some(Usage {
        input_uncached: Tokens((counters.input - read).saturating_add(counters.tool)),
        cache_read: Tokens(read),
        output: Tokens(counters.output.saturating_add(counters.thoughts)),
        ..Usage::default()
    })
}
