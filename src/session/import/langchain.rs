//! LangChain's messages: dumps of its constructors (`{lc, id, kwargs}`), `messages_to_dict`
//! (`{type, data}`), or flat (`{type, content}`); in a list, in a state's `messages`, or one per
//! line.
//!
//! Rules of this format, beside those every importer shares:
//! - A call stands in `tool_calls`, and once more in the content or beside it, in its provider's
//!   shape: it is counted once.
//! - `usage_metadata` has one shape for all providers; its input includes the cached tokens.
//! - A message that the library marks as a summary takes the place of all that was before it.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::anthropic::blocks;
use super::assemble::{Assembler, AssistantRecord, UserRecord, add_counts, count, uncached};
use super::content;
use super::conversations::{Object, keep_unread, name, system_text};
use super::documents::Documents;
use super::lines::Line;
use super::openai_chat::parts;
use super::sketch;
use super::tool_names::class_of;
use super::{ImportError, Importer};
use crate::session::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, RecordedCompaction, Role, Session,
    Source, Tag, Thinking, ToolResult, ToolUse,
};
use crate::units::{ApiCallId, Tokens, Usage};

/// Reads messages of LangChain.
#[derive(Debug, Clone, Copy)]
pub(super) struct LangChain;

const FORMAT: &str = "langchain";

/// Where a state keeps its messages, innermost last.
const MESSAGES: &[&[&str]] = &[
    &["messages"],
    &["values", "messages"],
    &["channel_values", "messages"],
    &["checkpoint", "channel_values", "messages"],
    &["state", "messages"],
    &["output", "messages"],
    &["outputs", "messages"],
    &["input", "messages"],
    &["inputs", "messages"],
];

impl Importer for LangChain {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        let values = sketch::values(head);
        let Some(first) = values.first() else {
            return false;
        };
        let states = MESSAGES.iter().flat_map(|keys| {
            let at = keys.join("/");
            [format!("/{at}/0"), format!("/{at}/0/0")]
        });
        let mut firsts = ["/0".to_owned(), "/0/0".to_owned()]
            .into_iter()
            .chain(states);
        is_message(first) || firsts.any(|at| first.pointer(&at).is_some_and(is_message))
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        let documents = Documents::read(path, input)?;
        let (values, cut) = documents.values()?;
        let mut first = Source {
            warnings: documents.warnings.clone(),
            ..Source::default()
        };
        if cut {
            count(&mut first.warnings, "the last line was cut and is left out");
        }
        let mut sessions = Vec::new();
        for messages in conversations(&values)? {
            let mut reading = Reading::default();
            FORMAT.clone_into(&mut reading.assembler.source.format);
            for raw in messages {
                reading.message(raw);
            }
            let system = std::mem::take(&mut reading.system);
            reading.assembler.header.system = system_text(&system, &mut reading.assembler);
            let id = documents.id.clone();
            sessions.extend(reading.assembler.finish(id, path)?);
        }
        let Some(session) = sessions.first_mut() else {
            return Err(ImportError::NoConversation {
                path: path.to_owned(),
            });
        };
        add_counts(&mut session.parts.source, first);
        name(&mut sessions, &documents.id);
        Ok(sessions)
    }
}

fn is_message(value: &Value) -> bool {
    let text = |at: &str| value.pointer(at).and_then(Value::as_str);
    let has = |at: &str| value.pointer(at).is_some();
    let kind = text("/type").unwrap_or_default();
    has("/lc") && has("/id")
        || KINDS.contains(&kind) && value.get("role").is_none() && (has("/data") || has("/content"))
}

/// Types of messages.
const KINDS: &[&str] = &[
    "human",
    "ai",
    "AIMessageChunk",
    "tool",
    "system",
    "function",
    "chat",
];

/// The lists of messages in a file.
fn conversations<'a>(values: &[Line<'a>]) -> Result<Vec<Vec<&'a RawValue>>, ImportError> {
    let mut found = Vec::new();
    let mut loose = Vec::new();
    for value in values {
        let raw: &RawValue = value.parse()?;
        if raw.get().starts_with('[') {
            let items: Vec<&RawValue> = value.parse()?;
            if items
                .first()
                .is_some_and(|item| item.get().starts_with('['))
            {
                for item in items {
                    found.push(value.parse_part(item.get())?);
                }
            } else {
                found.push(items);
            }
            continue;
        }
        let object = Object::read(raw).ok_or_else(|| value.error("a message is a JSON object"))?;
        let list = MESSAGES.iter().find_map(|keys| {
            let (last, outer) = keys.split_last()?;
            let mut inner = object.clone();
            for key in outer {
                inner = inner.take_object(key)?;
            }
            inner.take_list(last)
        });
        match list {
            // A traced call: each list was asked by itself.
            Some(lists)
                if !lists.is_empty() && lists.iter().all(|it| it.get().starts_with('[')) =>
            {
                for (at, list) in lists.into_iter().enumerate() {
                    let mut messages: Vec<&RawValue> = value.parse_part(list.get())?;
                    messages.extend(generated(&object, at));
                    found.push(messages);
                }
            }
            Some(list) => found.push(list),
            None => loose.push(raw),
        }
    }
    if !loose.is_empty() {
        found.push(loose);
    }
    Ok(found)
}

/// What the model answered to the list of that number, in the trace of a call.
fn generated<'a>(run: &Object<'a>, at: usize) -> Option<&'a RawValue> {
    let lists = run
        .clone()
        .take_object("outputs")?
        .take_list("generations")?;
    let list: Vec<&RawValue> = serde_json::from_str(lists.get(at)?.get()).ok()?;
    Object::read(list.first()?)?.take("message")
}

#[derive(Default)]
struct Reading {
    assembler: Assembler,
    system: Vec<ContentBlock>,
    unnamed: parts::Unnamed,
}

impl Reading {
    fn message(&mut self, raw: &RawValue) {
        let Some(mut object) = Object::read(raw) else {
            return keep_unread("malformed", raw, &mut self.assembler);
        };
        let (kind, mut fields) = if object.has("kwargs") {
            let path: Vec<Arc<str>> = object
                .take_list("id")
                .into_iter()
                .flatten()
                .filter_map(content::text)
                .collect();
            let class = path.last().map_or("", |class| &**class);
            let class = class.strip_suffix("Chunk").unwrap_or(class);
            let kind = class
                .strip_suffix("Message")
                .unwrap_or(class)
                .to_ascii_lowercase();
            (kind, object.take_object("kwargs").unwrap_or_default())
        } else {
            let kind = object.take_text("type").unwrap_or_default();
            let kind = kind
                .strip_suffix("MessageChunk")
                .unwrap_or(&kind)
                .to_ascii_lowercase();
            (kind, object.take_object("data").unwrap_or(object))
        };
        match kind.as_str() {
            "human" => self.human(fields),
            "ai" => self.ai(fields),
            "tool" | "function" => self.tool(fields),
            "system" if self.assembler.is_empty() => {
                let content = fields.take("content");
                self.system
                    .extend(content::blocks(content, &mut self.assembler, part));
            }
            "system" => {
                let what = "a system message within the conversation is kept as the user's";
                self.assembler.warn(what);
                let blocks = content::blocks(fields.take("content"), &mut self.assembler, part);
                self.hear(blocks, vec![Tag::Meta]);
            }
            // A message of any role.
            "chat" => match fields.take_text("role").as_deref() {
                Some("user" | "human") => self.human(fields),
                Some("assistant" | "ai" | "model") => self.ai(fields),
                Some("tool" | "function") => self.tool(fields),
                Some("system" | "developer") if self.assembler.is_empty() => {
                    let content = fields.take("content");
                    let blocks = content::blocks(content, &mut self.assembler, part);
                    self.system.extend(blocks);
                }
                _ => keep_unread("chat", raw, &mut self.assembler),
            },
            "remove" => self.assembler.skip("removal of a message"),
            kind => keep_unread(kind, raw, &mut self.assembler),
        }
    }

    fn hear(&mut self, blocks: Vec<ContentBlock>, tags: Vec<Tag>) {
        let record = UserRecord {
            blocks,
            timestamp: None,
            tags,
        };
        self.assembler.user(None, record);
    }

    fn human(&mut self, mut fields: Object<'_>) {
        let mut additional = fields.take_object("additional_kwargs").unwrap_or_default();
        let is_summary = additional.take_text("lc_source").as_deref() == Some("summarization");
        let blocks = content::blocks(fields.take("content"), &mut self.assembler, part);
        if !is_summary {
            return self.hear(blocks, vec![Tag::TypedUser]);
        }
        if self.assembler.is_empty() {
            return self.hear(blocks, vec![Tag::CompactSummary]);
        }
        let summary = Message::new(Role::User, blocks).with_tags([Tag::CompactSummary]);
        let at = self.assembler.flush();
        self.assembler.compaction(RecordedCompaction {
            at,
            trigger: None,
            pre_tokens: None,
            after: CompactedTo::Replaced(vec![Recorded::Written(Arc::new(summary))]),
        });
    }

    fn ai(&mut self, mut fields: Object<'_>) {
        let calls = fields.take_list("tool_calls").unwrap_or_default();
        let mut ids = BTreeSet::new();
        let mut uses = Vec::new();
        for raw in calls {
            let tool_use = Object::read(raw).and_then(|mut call| {
                let name = call.take_text("name")?;
                Some(ToolUse {
                    id: call.take_text("id")?,
                    class: class_of(&name),
                    name,
                    input: call
                        .take("args")
                        .map_or_else(|| JsonText::of(&Value::Null), JsonText::from),
                })
            });
            uses.push(match tool_use {
                Some(tool_use) => {
                    ids.insert(tool_use.id.clone());
                    ContentBlock::ToolUse(tool_use)
                }
                None => content::unknown("tool_call", raw, &mut self.assembler),
            });
        }
        let mut additional = fields.take_object("additional_kwargs").unwrap_or_default();
        // Before the library had its own, it kept the provider's calls.
        if uses.is_empty() {
            let unnamed = &mut self.unnamed;
            uses = parts::tool_uses(&mut additional, unnamed, &mut self.assembler);
        }
        let mut blocks = parts::reasoning(&mut additional, &mut self.assembler);
        for repeated in ["tool_calls", "function_call"] {
            additional.take(repeated);
        }
        additional.count_left("additional key", &mut self.assembler);
        let said = content::blocks(fields.take("content"), &mut self.assembler, part);
        for block in said {
            match &block {
                ContentBlock::ToolUse(tool_use) if ids.contains(&tool_use.id) => {
                    self.assembler.skip("call repeated in the content");
                }
                _ => blocks.push(block),
            }
        }
        blocks.extend(uses);
        for raw in fields.take_list("invalid_tool_calls").into_iter().flatten() {
            blocks.push(match invalid(raw) {
                // It is sent back as the model wrote it, and answered.
                Some(tool_use) => {
                    self.assembler
                        .warn("tool arguments are no JSON; they are kept as a string");
                    ContentBlock::ToolUse(tool_use)
                }
                None => content::unknown("invalid_tool_call", raw, &mut self.assembler),
            });
        }
        let mut metadata = fields.take_object("response_metadata").unwrap_or_default();
        let usage = self.usage(&mut fields, &mut metadata);
        let own = fields.take_text("id");
        let call = metadata.take_text("id").or(own).filter(|id| !id.is_empty());
        let model = metadata.take_text("model_name");
        let record = AssistantRecord {
            call: call.map(ApiCallId),
            model: model.or_else(|| metadata.take_text("model")),
            blocks,
            usage,
            ..AssistantRecord::default()
        };
        self.assembler.assistant(None, record);
    }

    /// What the call cost: in the library's shape, or in the provider's.
    fn usage(&mut self, fields: &mut Object<'_>, metadata: &mut Object<'_>) -> Option<Usage> {
        if let Some(raw) = fields.take("usage_metadata") {
            return Some(usage(raw, &mut self.assembler));
        }
        let warnings = &mut self.assembler.source.warnings;
        if let Some(raw) = metadata.take("usage") {
            let value: Value = serde_json::from_str(raw.get()).ok()?;
            if value.get("input_tokens").is_some() {
                return Some(blocks::usage(&value, &mut |what| count(warnings, what)));
            }
            return parts::usage(raw, &mut self.assembler);
        }
        let raw = metadata.take("token_usage")?;
        parts::usage(raw, &mut self.assembler)
    }

    fn tool(&mut self, mut fields: Object<'_>) {
        let raw = fields.take("content");
        let content = match raw.and_then(content::text) {
            Some(text) => vec![ContentBlock::Text(text)],
            None => content::blocks(raw, &mut self.assembler, part),
        };
        let is_error = fields.take_text("status").as_deref() == Some("error");
        let name = fields.take_text("name");
        let id = fields.take_text("tool_call_id");
        let id = id.unwrap_or_else(|| self.unnamed.answered(name.as_deref()));
        let content = content.into_iter().map(told).collect();
        let block = ContentBlock::ToolResult(ToolResult {
            tool_use_id: id,
            content,
            is_error,
        });
        self.hear(vec![block], Vec::new());
    }
}

/// A tool thinks nothing and calls no other: what looks so is text.
fn told(block: ContentBlock) -> ContentBlock {
    match block {
        ContentBlock::Thinking(thinking) => ContentBlock::Text(thinking.text),
        ContentBlock::ToolUse(tool_use) => ContentBlock::Text(tool_use.input.as_str().into()),
        block => block,
    }
}

/// Parts that are kept as they are.
const KEPT: &[&str] = &[
    "audio",
    "document",
    "file",
    "input_json_delta",
    "non_standard",
    "redacted_thinking",
    "refusal",
    "server_tool_call",
    "server_tool_result",
    "text-plain",
    "video",
];

/// A part of a content, in the shape of any provider.
fn part(raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    if let Some(text) = content::text(raw) {
        return ContentBlock::Text(text);
    }
    let mut part = Object::read(raw).unwrap_or_default();
    let kind = part.take_text("type").unwrap_or_else(|| "untyped".into());
    let read = match &*kind {
        "text" | "input_text" | "output_text" => part.take_text("text").map(ContentBlock::Text),
        "image_url" => part.take("image_url").map(content::image),
        "image" => Some(content::image(part.take("source").unwrap_or(raw))),
        "thinking" | "reasoning" => thought(&mut part),
        "tool_use" | "tool_call" | "function_call" | "custom_tool_call" => call(&mut part),
        known if KEPT.contains(&known) => Some(content::kept(&kind, raw)),
        _ => None,
    };
    read.unwrap_or_else(|| content::unknown(&kind, raw, assembler))
}

/// A call whose arguments cannot be read.
fn invalid(raw: &RawValue) -> Option<ToolUse> {
    let mut call = Object::read(raw)?;
    let name = call.take_text("name")?;
    Some(ToolUse {
        id: call.take_text("id")?,
        class: class_of(&name),
        name,
        input: JsonText::string(&call.take_text("args").unwrap_or_default()),
    })
}

fn thought(part: &mut Object<'_>) -> Option<ContentBlock> {
    let told = ["thinking", "reasoning", "text"]
        .iter()
        .find_map(|key| part.take_text(key));
    let summary = part.take_list("summary").into_iter().flatten();
    let summary: Vec<Arc<str>> = summary
        .filter_map(|raw| Object::read(raw)?.take_text("text"))
        .collect();
    let summary = (!summary.is_empty()).then(|| summary.join("\n\n").into());
    let signature = part.take_text("signature").or_else(|| {
        let mut extras = part.take_object("extras")?;
        extras.take_text("signature")
    });
    Some(ContentBlock::Thinking(Thinking {
        text: told.or(summary)?,
        signature,
    }))
}

fn call(part: &mut Object<'_>) -> Option<ContentBlock> {
    let name = part.take_text("name")?;
    let id = part.take_text("call_id").or_else(|| part.take_text("id"))?;
    let input = ["input", "args", "arguments"]
        .iter()
        .find_map(|key| part.take(key));
    Some(ContentBlock::ToolUse(ToolUse {
        id,
        class: class_of(&name),
        name,
        input: input.map_or_else(|| JsonText::of(&Value::Null), JsonText::from),
    }))
}

/// The library's counters. What was written to the cache is told as a whole, by lifetime, or both.
fn usage(raw: &RawValue, assembler: &mut Assembler) -> Usage {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let mut counter = |at: &str| match value.pointer(at) {
        None | Some(Value::Null) => 0,
        Some(found) => found.as_u64().unwrap_or_else(|| {
            assembler.warn("a usage counter is no count and was taken as zero");
            0
        }),
    };
    let input = counter("/input_tokens");
    let read = counter("/input_token_details/cache_read");
    let hours = counter("/input_token_details/ephemeral_1h_input_tokens");
    let minutes = counter("/input_token_details/ephemeral_5m_input_tokens");
    let written = counter("/input_token_details/cache_creation");
    let written = written.max(hours.saturating_add(minutes));
    let output = counter("/output_tokens");
    Usage {
        input_uncached: uncached(input, read.saturating_add(written), assembler),
        cache_write_5m: Tokens(written.saturating_sub(hours)),
        cache_write_1h: Tokens(hours),
        cache_read: Tokens(read),
        output: Tokens(output),
    }
}
