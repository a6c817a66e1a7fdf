//! One message of a sample, or of what a call was sent.

use crate::kept_context::Shown;
use crate::prelude::*;

/// A message, as a record of a context.
#[derive(Debug, Clone)]
pub(super) struct MessageRecord {
    /// Its name is the id by which model events know it.
    pub(super) record: Shown,
    pub(super) is_system: bool,
    pub(super) model: Text,
}

/// Reads one message.
pub(super) fn said(raw: &RawValue, assembler: &mut Assembler) -> MessageRecord {
    let mut message = Object::read(raw).unwrap_or_default();
    let role = message.take_text("role");
    let id = message.take_text("id");
    let mut tags = Vec::new();
    let blocks = match role.as_deref() {
        Some("system") => message.take_blocks("content", Speaker::User, assembler),
        Some("user") => {
            tags.push(match message.take_text("source").as_deref() {
                _ if message.inner("metadata").take_flag("summary") => Tag::CompactSummary,
                Some("input") => Tag::TypedUser,
                None if assembler.is_empty() => Tag::TypedUser,
                Some(_) | None => Tag::Meta,
            });
            message.take_blocks("content", Speaker::User, assembler)
        }
        Some("assistant") => answered(&mut message, assembler),
        Some("tool") => vec![result(&mut message, assembler)],
        _ => {
            tags.push(Tag::Meta);
            vec![assembler.unread("message", raw)]
        }
    };
    MessageRecord {
        record: Shown::of(id, role_of(role.as_deref() == Some("assistant")), blocks, tags),
        is_system: role.as_deref() == Some("system"),
        model: message.take_text("model"),
    }
}

fn answered(message: &mut Object<'_>, assembler: &mut Assembler) -> Blocks {
    let mut blocks = Vec::new();
    // Older logs keep what was thought beside the content.
    blocks.extend(message.take_words("reasoning").map(|text| ContentBlock::thinking(text, None)));
    blocks.extend(message.take_blocks("content", Speaker::Assistant, assembler));
    let calls = message.items("tool_calls");
    let keys = ["id", "function", "arguments"];
    blocks.extend(assembler.calls("tool_call", calls, |call, _| flat_call(call, keys)));
    blocks
}

/// A result; of a call that failed, the error is the text that the model got.
fn result(message: &mut Object<'_>, assembler: &mut Assembler) -> ContentBlock {
    let error = message.take_object("error");
    let raw = message.take("content");
    let failed = error.is_some();
    let told = error.and_then(|mut error| error.take_text("message"));
    let content = match (raw.and_then(content::text), told) {
        (text, Some(told)) => {
            // Output up to a limit is kept beside the error, and not shown.
            if text.is_none_or(|text| !text.is_empty()) {
                assembler.skip("output of a call that failed");
            }
            vec![ContentBlock::Text(told)]
        }
        (_, None) => assembler.blocks(raw, Speaker::Tool),
    };
    let id = message.take_text("tool_call_id");
    ContentBlock::tool_result(id.unwrap_or_else(|| "unnamed".into()), content, failed)
}
