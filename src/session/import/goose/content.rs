//! The parts of a message: words, requests of tools and their responses, notices for the user.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::assemble::{Assembler, count};
use super::super::conversations::Object;
use super::super::images;
use super::super::tool_names::class_of;
use crate::session::{
    ContentBlock, JsonText, Opaque, Role, Thinking, ToolClass, ToolResult, ToolUse,
};

/// Parts that are shown to the user, or ask for something of the user's.
const FOR_THE_USER: &[&str] = &[
    "toolConfirmationRequest",
    "systemNotification",
    "contextLengthExceeded",
    "summarizationRequested",
    "conversationCompacted",
    "actionRequired",
];

/// What the agent sees of a message's `content`.
pub(super) fn blocks(
    content: Option<&RawValue>,
    role: Role,
    assembler: &mut Assembler,
) -> Vec<ContentBlock> {
    let Some(raw) = content else {
        return Vec::new();
    };
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
        return vec![unknown("content", raw, assembler)];
    };
    let read = items.into_iter().map(|raw| part(raw, role, assembler));
    read.flatten().collect()
}

fn part(raw: &RawValue, role: Role, assembler: &mut Assembler) -> Option<ContentBlock> {
    let Some(mut part) = Object::read(raw) else {
        return Some(unknown("malformed", raw, assembler));
    };
    let kind = part.take_text("type").unwrap_or_else(|| "untyped".into());
    let read = match (&*kind, role) {
        ("text", _) => {
            let text = part.take_text("text")?;
            if text.is_empty() || is_for_the_user(&mut part) {
                assembler.skip("text that the model was not shown");
                return None;
            }
            Some(ContentBlock::Text(text))
        }
        ("image", _) => image(&mut part),
        ("thinking", Role::Assistant) => thinking(&mut part, "thinking"),
        ("reasoning", Role::Assistant) => thinking(&mut part, "text"),
        ("redactedThinking", _) => Some(opaque("redacted_thinking", raw)),
        ("toolRequest" | "frontendToolRequest", Role::Assistant) => request(part, assembler),
        ("toolResponse", Role::User) => response(part, assembler),
        (known, _) if FOR_THE_USER.contains(&known) => {
            assembler.skip(&format!("part {known}"));
            return None;
        }
        _ => None,
    };
    Some(read.unwrap_or_else(|| unknown(&kind, raw, assembler)))
}

/// Whether the audience of a part is the user alone.
fn is_for_the_user(part: &mut Object<'_>) -> bool {
    let annotations = part.take_object("annotations");
    let audience = annotations.and_then(|mut it| it.take_list("audience"));
    audience.is_some_and(|audience| {
        !audience.is_empty() && audience.iter().all(|one| one.get() == "\"user\"")
    })
}

fn image(part: &mut Object<'_>) -> Option<ContentBlock> {
    let data = part.take_text("data")?;
    Some(images::embedded(&part.take_text("mimeType")?, &data))
}

fn thinking(part: &mut Object<'_>, key: &str) -> Option<ContentBlock> {
    Some(ContentBlock::Thinking(Thinking {
        text: part.take_text(key)?,
        signature: part.take_text("signature"),
    }))
}

fn request(mut part: Object<'_>, assembler: &mut Assembler) -> Option<ContentBlock> {
    let id = part.take_text("id")?;
    let raw = part.take("toolCall")?;
    let value = Object::read(raw).and_then(|mut call| call.take_object("value"));
    let (name, input) = if let Some(mut value) = value {
        let input = value.take("arguments");
        let input = input.map_or_else(|| JsonText::of(&Value::Null), JsonText::from);
        (value.take_text("name")?, input)
    } else {
        assembler.warn("a tool request could not be read by the product");
        ("unreadable".into(), JsonText::from(raw))
    };
    Some(ContentBlock::ToolUse(ToolUse {
        id,
        class: class(&name),
        name,
        input,
    }))
}

/// Extensions that come with the product; the tools of all others are those of MCP servers.
const BUNDLED: &[&str] = &[
    "developer",
    "computercontroller",
    "memory",
    "platform",
    "subagent",
    "todo",
];

/// What a tool does, told from its name behind that of its extension, as in `developer__shell`.
fn class(name: &str) -> ToolClass {
    match name.split_once("__") {
        Some((extension, tool)) if BUNDLED.contains(&extension) => class_of(tool),
        Some(_) => ToolClass::Mcp,
        None => class_of(name),
    }
}

fn response(mut part: Object<'_>, assembler: &mut Assembler) -> Option<ContentBlock> {
    let tool_use_id = part.take_text("id")?;
    let mut result = part.take_object("toolResult")?;
    let mut is_error = result.take_text("status").as_deref() == Some("error");
    let mut content = Vec::new();
    if let Some(value) = result.take("value") {
        // Newer versions say beside the parts whether the tool failed.
        let items = match Object::read(value) {
            Some(mut value) => {
                is_error |= value.take("isError").is_some_and(|it| it.get() == "true");
                value.take_list("content")
            }
            None => serde_json::from_str(value.get()).ok(),
        };
        for raw in items? {
            content.extend(told(raw, assembler));
        }
    } else {
        let error = result.take_text("error").map(ContentBlock::Text);
        content.extend(error);
    }
    Some(ContentBlock::ToolResult(ToolResult {
        tool_use_id,
        content,
        is_error,
    }))
}

/// A part of what a tool answered.
fn told(raw: &RawValue, assembler: &mut Assembler) -> Option<ContentBlock> {
    let Some(mut part) = Object::read(raw) else {
        return Some(unknown("malformed", raw, assembler));
    };
    if is_for_the_user(&mut part) {
        assembler.skip("text that the model was not shown");
        return None;
    }
    let kind: Option<Arc<str>> = part.take_text("type");
    let read = match kind.as_deref() {
        Some("text") => part.take_text("text").map(ContentBlock::Text),
        Some("image") => image(&mut part),
        Some("resource") => {
            let resource = part.take_object("resource");
            let text = resource.and_then(|mut it| it.take_text("text"));
            text.map(ContentBlock::Text)
        }
        _ => None,
    };
    let kind = kind.as_deref().unwrap_or("untyped");
    Some(read.unwrap_or_else(|| unknown(&format!("of a response {kind}"), raw, assembler)))
}

fn opaque(kind: &str, raw: &RawValue) -> ContentBlock {
    ContentBlock::Opaque(Opaque {
        kind: kind.into(),
        json: JsonText::from(raw),
    })
}

fn unknown(kind: &str, raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    count(&mut assembler.source.unknown, &format!("part {kind}"));
    opaque(kind, raw)
}
