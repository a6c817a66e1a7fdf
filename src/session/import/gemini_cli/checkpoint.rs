//! Checkpoints: what `/chat save` keeps, the contents as Gemini's API has them.
//!
//! A file is the list itself, or an object with it as `history`. Calls and answers may have no ids:
//! they are paired by order.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{FORMAT, part, response};
use crate::session::import::ImportError;
use crate::session::import::assemble::{Assembler, AssistantRecord, UserRecord};
use crate::session::import::conversations::{Object, keep_unread};
use crate::session::import::lines::Line;
use crate::session::import::openai_chat::parts::Unnamed;
use crate::session::import::tool_names::class_of;
use crate::session::{ContentBlock, JsonText, Tag, Thinking, ToolResult, ToolUse};

/// How the product's own first message begins, which sets up the context.
const SETUP: &str = "This is the Gemini CLI.";

/// Whether a value is a checkpoint, or the beginning of one.
pub(super) fn is_checkpoint(value: &Value) -> bool {
    let list = value.get("history").unwrap_or(value);
    let is_content = |it: &Value| {
        it.get("parts").is_some_and(Value::is_array)
            && matches!(
                it.get("role").and_then(Value::as_str),
                Some("user" | "model")
            )
    };
    list.as_array()
        .and_then(|it| it.first())
        .is_some_and(is_content)
}

/// Whether a value of a chat is a checkpoint: a list, or an object with a history.
pub(super) fn begins(text: &str) -> bool {
    let text = text.trim_start();
    let is_object = || Object::read(serde_json::from_str(text).ok()?).map(|it| it.has("history"));
    text.starts_with('[') || text.starts_with("{\"history\"") || is_object() == Some(true)
}

/// Reads the contents of a checkpoint.
pub(super) fn read(value: &Line<'_>, assembler: &mut Assembler) -> Result<(), ImportError> {
    FORMAT.clone_into(&mut assembler.source.format);
    let contents: Vec<&RawValue> = match Object::read(value.parse()?) {
        Some(mut object) => {
            let list = object.take_list("history");
            object.count_left("key", assembler);
            list.ok_or_else(|| value.error("missing key `history`"))?
        }
        None => value.parse()?,
    };
    let mut unnamed = Unnamed::default();
    for raw in contents {
        let read = Object::read(raw).and_then(|mut content| {
            let role = content.take_text("role")?;
            Some((role, content.take_list("parts").unwrap_or_default()))
        });
        let Some((role, parts)) = read else {
            keep_unread("malformed", raw, assembler);
            continue;
        };
        let blocks = parts.into_iter();
        let blocks = blocks.map(|raw| block(raw, &mut unnamed, assembler));
        let blocks: Vec<ContentBlock> = blocks.collect();
        match &*role {
            "model" => {
                let record = AssistantRecord {
                    blocks,
                    ..AssistantRecord::default()
                };
                assembler.assistant(None, record);
            }
            "user" | "function" => {
                let record = UserRecord {
                    tags: speaker(&blocks),
                    blocks,
                    timestamp: None,
                };
                assembler.user(None, record);
            }
            role => keep_unread(role, raw, assembler),
        }
    }
    Ok(())
}

fn block(raw: &RawValue, unnamed: &mut Unnamed, assembler: &mut Assembler) -> ContentBlock {
    let mut object = Object::read(raw).unwrap_or_default();
    if let Some(mut call) = object.take_object("functionCall")
        && let Some(name) = call.take_text("name")
    {
        let id = call.take_text("id");
        return ContentBlock::ToolUse(ToolUse {
            id: id.unwrap_or_else(|| unnamed.called(&name)),
            class: class_of(&name),
            name,
            input: call
                .take("args")
                .map_or_else(|| JsonText::string(""), JsonText::from),
        });
    }
    if let Some(mut answer) = object.take_object("functionResponse") {
        let name = answer.take_text("name");
        let id = answer.take_text("id");
        let content = answer.take("response").map(response);
        return ContentBlock::ToolResult(ToolResult {
            tool_use_id: id.unwrap_or_else(|| unnamed.answered(name.as_deref())),
            content: content.into_iter().collect(),
            is_error: false,
        });
    }
    let is_thought = object.take("thought").is_some_and(|it| it.get() == "true");
    if is_thought && let Some(text) = object.take_text("text") {
        let signature = object.take_text("thoughtSignature");
        return ContentBlock::Thinking(Thinking { text, signature });
    }
    part(raw, assembler)
}

fn speaker(blocks: &[ContentBlock]) -> Vec<Tag> {
    let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(_));
    let is_setup =
        |block: &ContentBlock| matches!(block, ContentBlock::Text(it) if it.starts_with(SETUP));
    if blocks.iter().any(is_result) {
        Vec::new()
    } else if blocks.iter().any(super::is_snapshot) {
        vec![Tag::CompactSummary]
    } else if blocks.iter().any(is_setup) {
        vec![Tag::Meta]
    } else {
        vec![Tag::TypedUser]
    }
}
