//! The blocks of a message: Anthropic's, and those that only Cline and Roo have.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::super::anthropic::blocks::{self, Speaker};
use super::super::assemble::{Assembler, count};
use super::super::conversations::Object;
use crate::session::{ContentBlock, Role, Thinking, ToolResult};

/// The blocks of a message's `content`: a text, or a list.
pub(super) fn blocks(
    content: Option<&RawValue>,
    role: Role,
    assembler: &mut Assembler,
) -> Vec<ContentBlock> {
    let items = content.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
    let Some(items) = items else {
        return shared(content, role, assembler);
    };
    let mut blocks = Vec::with_capacity(items.len());
    for raw in items {
        if let Some(block) = own(raw) {
            blocks.push(block);
        } else {
            let listed = RawValue::from_string(format!("[{}]", raw.get())).ok();
            blocks.extend(shared(listed.as_deref(), role, assembler));
        }
    }
    blocks.retain(|block| !matches!(block, ContentBlock::Text(text) if text.is_empty()));
    blocks
}

fn shared(content: Option<&RawValue>, role: Role, assembler: &mut Assembler) -> Vec<ContentBlock> {
    let speaker = match role {
        Role::User => Speaker::User,
        Role::Assistant => Speaker::Assistant,
    };
    let unknown = &mut assembler.source.unknown;
    blocks::blocks(content, speaker, &mut |what| count(unknown, what))
}

/// A block of a kind of their own; none if it is Anthropic's.
fn own(raw: &RawValue) -> Option<ContentBlock> {
    let mut block = Object::read(raw)?;
    match &*block.take_text("type")? {
        // A file that was attached: its path, and what stands in it.
        "file" => {
            let (path, text) = (block.take_text("path")?, block.take_text("content")?);
            Some(ContentBlock::Text(format!("{path}\n{text}").into()))
        }
        "reasoning" => Some(ContentBlock::Thinking(Thinking {
            text: block.take_text("text")?,
            signature: None,
        })),
        "tool_result" => {
            let tool_use_id = block.take_text("tool_use_id")?;
            let content = block.take("content")?;
            let rows: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
            let is_block = |raw: &&RawValue| {
                Object::read(raw).is_some_and(|mut it| it.take_text("type").is_some())
            };
            // Newer versions answer in rows of their own, which the model is sent as JSON.
            if rows.is_empty() || rows.iter().any(is_block) {
                return None;
            }
            let is_error = block.take("is_error").is_some_and(|it| it.get() == "true");
            Some(ContentBlock::ToolResult(ToolResult {
                tool_use_id,
                content: vec![ContentBlock::Text(Arc::from(content.get()))],
                is_error,
            }))
        }
        _ => None,
    }
}
