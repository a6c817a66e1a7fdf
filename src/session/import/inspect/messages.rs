//! One message of a sample, or of what a call was sent.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::session::import::assemble::Assembler;
use crate::session::import::content;
use crate::session::import::conversations::Object;
use crate::session::import::left::Shown;
use crate::session::import::tool_names::class_of;
use crate::session::{ContentBlock, JsonText, Role, Tag, Thinking, ToolResult, ToolUse};

/// What a message says, and who says it.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// The name that model events know it by.
    pub(super) id: Option<Arc<str>>,
    pub(super) speaker: Speaker,
    pub(super) blocks: Vec<ContentBlock>,
    pub(super) tags: Vec<Tag>,
    pub(super) model: Option<Arc<str>>,
}

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Model,
    Nobody,
}

impl Said {
    /// The message as a record of a context.
    pub(super) fn shown(self) -> Shown {
        let role = match self.speaker {
            Speaker::Model => Role::Assistant,
            Speaker::System | Speaker::User | Speaker::Nobody => Role::User,
        };
        Shown {
            name: self.id,
            role,
            blocks: self.blocks,
            tags: self.tags,
        }
    }
}

/// Reads one message.
pub(super) fn said(raw: &RawValue, assembler: &mut Assembler) -> Said {
    let mut message = Object::read(raw).unwrap_or_default();
    let role = message.take_text("role");
    let id = message.take_text("id");
    let mut tags = Vec::new();
    let (speaker, blocks) = match role.as_deref() {
        Some("system") => (Speaker::System, shown(message.take("content"), assembler)),
        Some("user") => {
            let mut metadata = message.take_object("metadata").unwrap_or_default();
            let is_summary = metadata.take("summary");
            let source = message.take_text("source");
            tags.push(match source.as_deref() {
                _ if is_summary.is_some_and(|raw| raw.get() == "true") => Tag::CompactSummary,
                Some("input") => Tag::TypedUser,
                None if assembler.is_empty() => Tag::TypedUser,
                Some(_) | None => Tag::Meta,
            });
            (Speaker::User, shown(message.take("content"), assembler))
        }
        Some("assistant") => (Speaker::Model, answered(&mut message, assembler)),
        Some("tool") => (Speaker::User, vec![result(&mut message, assembler)]),
        _ => {
            tags.push(Tag::Meta);
            let block = content::unknown("message", raw, assembler);
            (Speaker::Nobody, vec![block])
        }
    };
    Said {
        id,
        speaker,
        blocks,
        tags,
        model: message.take_text("model"),
    }
}

/// A content without what only a model says.
fn shown(raw: Option<&RawValue>, assembler: &mut Assembler) -> Vec<ContentBlock> {
    let blocks = content::blocks(raw, assembler, part).into_iter();
    let shown = blocks.map(|block| match block {
        ContentBlock::Thinking(thinking) => ContentBlock::Text(thinking.text),
        block => block,
    });
    shown.collect()
}

fn answered(message: &mut Object<'_>, assembler: &mut Assembler) -> Vec<ContentBlock> {
    let mut blocks = Vec::new();
    // Older logs keep what was thought beside the content.
    if let Some(text) = message
        .take_text("reasoning")
        .filter(|text| !text.is_empty())
    {
        let signature = None;
        blocks.push(ContentBlock::Thinking(Thinking { text, signature }));
    }
    blocks.extend(content::blocks(message.take("content"), assembler, part));
    for raw in message.take_list("tool_calls").into_iter().flatten() {
        let tool_use = Object::read(raw).and_then(|mut call| {
            let name = call.take_text("function")?;
            Some(ToolUse {
                id: call.take_text("id")?,
                class: class_of(&name),
                name,
                input: call
                    .take("arguments")
                    .map_or_else(|| JsonText::of(&Value::Null), JsonText::from),
            })
        });
        blocks.push(match tool_use {
            Some(tool_use) => ContentBlock::ToolUse(tool_use),
            None => content::unknown("tool_call", raw, assembler),
        });
    }
    blocks
}

/// A result; of a call that failed, the error is what the model was told.
fn result(message: &mut Object<'_>, assembler: &mut Assembler) -> ContentBlock {
    let error = message.take_object("error");
    let raw = message.take("content");
    let is_error = error.is_some();
    let told = error.and_then(|mut error| error.take_text("message"));
    let content = match (raw.and_then(content::text), told) {
        (text, Some(told)) => {
            // Output up to a limit is kept beside the error, and shown to nobody.
            if text.is_none_or(|text| !text.is_empty()) {
                assembler.skip("output of a call that failed");
            }
            vec![ContentBlock::Text(told)]
        }
        (Some(text), None) => vec![ContentBlock::Text(text)],
        (None, None) => shown(raw, assembler),
    };
    let id = message.take_text("tool_call_id");
    ContentBlock::ToolResult(ToolResult {
        tool_use_id: id.unwrap_or_else(|| "unnamed".into()),
        content,
        is_error,
    })
}

fn part(raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    let mut part = Object::read(raw).unwrap_or_default();
    let kind = part.take_text("type").unwrap_or_else(|| "untyped".into());
    let read = match &*kind {
        "text" => part.take_text("text").map(ContentBlock::Text),
        "reasoning" => {
            let is_redacted = part.take("redacted").is_some_and(|raw| raw.get() == "true");
            let summary = part.take_text("summary");
            let told = part.take_text("reasoning");
            let signature = part.take_text("signature");
            // What is redacted is there for the provider only; its summary may be shown.
            let text = if is_redacted {
                summary
            } else {
                told.or(summary)
            };
            match text {
                Some(text) => Some(ContentBlock::Thinking(Thinking { text, signature })),
                None => Some(content::kept("reasoning", raw)),
            }
        }
        "image" => part.take("image").map(content::image),
        "tool_use" | "document" | "audio" | "video" | "data" => Some(content::kept(&kind, raw)),
        _ => None,
    };
    read.unwrap_or_else(|| content::unknown(&kind, raw, assembler))
}
