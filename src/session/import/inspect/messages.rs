//! One message of a sample, or of what a call was sent.

use super::super::prelude::*;
use crate::session::import::kept_context::Shown;

/// A message, as a record of a context.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// Its name is the id by which model events know it.
    pub(super) record: Shown,
    pub(super) is_system: bool,
    pub(super) model: Option<Arc<str>>,
}

/// Reads one message.
pub(super) fn said(raw: &RawValue, assembler: &mut Assembler) -> Said {
    let mut message = Object::read(raw).unwrap_or_default();
    let role = message.take_text("role");
    let id = message.take_text("id");
    let mut tags = Vec::new();
    let blocks = match role.as_deref() {
        Some("system") => shown(message.take("content"), assembler),
        Some("user") => {
            let is_summary = message.inner("metadata").take_flag("summary");
            let source = message.take_text("source");
            tags.push(match source.as_deref() {
                _ if is_summary => Tag::CompactSummary,
                Some("input") => Tag::TypedUser,
                None if assembler.is_empty() => Tag::TypedUser,
                Some(_) | None => Tag::Meta,
            });
            shown(message.take("content"), assembler)
        }
        Some("assistant") => answered(&mut message, assembler),
        Some("tool") => vec![result(&mut message, assembler)],
        _ => {
            tags.push(Tag::Meta);
            vec![content::unknown("message", raw, assembler)]
        }
    };
    Said {
        record: Shown {
            name: id,
            role: match role.as_deref() {
                Some("assistant") => Role::Assistant,
                _ => Role::User,
            },
            blocks,
            tags,
        },
        is_system: role.as_deref() == Some("system"),
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
    let thought = message.take_text("reasoning");
    if let Some(text) = thought.filter(|text| !text.is_empty()) {
        blocks.push(ContentBlock::thinking(text, None));
    }
    blocks.extend(content::blocks(message.take("content"), assembler, part));
    for raw in message.items("tool_calls") {
        let call = flat_call(raw, "function", "arguments");
        blocks.push(call.unwrap_or_else(|| content::unknown("tool_call", raw, assembler)));
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
    let id = id.unwrap_or_else(|| "unnamed".into());
    ContentBlock::tool_result(id, content, is_error)
}

fn part(raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    let mut part = Object::read(raw).unwrap_or_default();
    let kind = part.take_text("type").unwrap_or_else(|| "untyped".into());
    let read = match &*kind {
        "text" => part.take_text("text").map(ContentBlock::Text),
        "reasoning" => {
            let is_redacted = part.take_flag("redacted");
            let summary = part.take_text("summary");
            let signature = part.take_text("signature");
            // What is redacted is there for the provider only; its summary may be shown.
            let told = part.take_text("reasoning").filter(|_| !is_redacted);
            Some(match told.or(summary) {
                Some(text) => ContentBlock::thinking(text, signature),
                None => content::kept("reasoning", raw),
            })
        }
        "image" => part.take("image").map(content::image),
        "tool_use" | "document" | "audio" | "video" | "data" => Some(content::kept(&kind, raw)),
        _ => None,
    };
    read.unwrap_or_else(|| content::unknown(&kind, raw, assembler))
}
