//! The content of a message, as every product writes it: a text, or a list of parts.
//!
//! The parts have the shapes of the providers' APIs, and of libraries that speak to several.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::object::Object;
use crate::{ContentBlock, Image, JsonText, Opaque, Role, Source};

/// The author of a part's message: a session holds tool uses and thinking only in the assistant's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The user, or a tool in the user's place.
    User,
    /// The model.
    Assistant,
    /// The content of a result, of which an empty text is a text.
    Tool,
}

impl From<Role> for Speaker {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
        }
    }
}

/// Types of parts that providers and libraries document and Proctor keeps as they are.
const KNOWN_OPAQUE: &str = include_str!("known_parts.txt");

/// The blocks of a content: none for nothing and for an empty text, one for a text, and one for
/// each item of a list.
pub fn blocks(raw: Option<&RawValue>, speaker: Speaker, source: &mut Source) -> Vec<ContentBlock> {
    blocks_by(raw, speaker, source, |raw, source| part(raw, speaker, source))
}

/// The blocks of a content of which a product writes the parts in its own way.
pub fn blocks_by(
    raw: Option<&RawValue>,
    speaker: Speaker,
    source: &mut Source,
    mut part: impl FnMut(&RawValue, &mut Source) -> ContentBlock,
) -> Vec<ContentBlock> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else {
        return Vec::new();
    };
    if let Some(text) = text(raw) {
        let said = !text.is_empty() || speaker == Speaker::Tool;
        return Vec::from_iter(said.then_some(ContentBlock::Text(text)));
    }
    match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        Ok(parts) => parts.into_iter().map(|raw| part(raw, source)).collect(),
        Err(_) => vec![unknown("content", raw, source)],
    }
}

/// The blocks of a message in the form of Anthropic's API, and what the form does not have of them: `block x`.
pub fn blocks_of(
    role: Role,
    content: &Value,
) -> Result<(Vec<ContentBlock>, Vec<String>), serde_json::Error> {
    let raw = serde_json::value::to_raw_value(content)?;
    let mut source = Source::default();
    let read = blocks(Some(&raw), role.into(), &mut source);
    Ok((read, source.unknown.into_keys().collect()))
}

/// The content of a result: a text, a list of parts, or another value, which is written as JSON.
pub fn of_result(raw: &RawValue, source: &mut Source) -> Vec<ContentBlock> {
    if raw.get().starts_with(['"', '[']) {
        return blocks(Some(raw), Speaker::Tool, source);
    }
    vec![ContentBlock::Text(JsonText::from(raw).as_str().into())]
}

/// One part of a content.
pub fn part(raw: &RawValue, speaker: Speaker, source: &mut Source) -> ContentBlock {
    if let Some(text) = text(raw) {
        return ContentBlock::Text(text);
    }
    let Some(mut part) = Object::read(raw) else {
        return unknown("malformed", raw, source);
    };
    let kind = part.take_text("type").unwrap_or_else(|| "untyped".into());
    let read = match (&*kind, speaker) {
        (
            "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text"
            | "tool_output",
            _,
        ) => part.take_text("text").map(ContentBlock::Text),
        ("image_url" | "input_image" | "computer_screenshot", _) => {
            part.take("image_url").map(image)
        }
        ("image", _) => {
            let inner = part.take("source").or_else(|| part.take("image"));
            inner.or((!part.is_empty()).then_some(raw)).map(image)
        }
        ("thinking" | "reasoning" | "think", _) => match thought(part, raw) {
            Some(ContentBlock::Thinking(it)) if speaker != Speaker::Assistant => {
                Some(ContentBlock::Text(it.text))
            }
            thought => thought,
        },
        // The provider ran such a tool itself.
        ("tool_use", _) if part.has("tool_type") => Some(kept(&kind, raw)),
        (
            "tool_use" | "tool_call" | "function_call" | "custom_tool_call" | "toolCall",
            Speaker::Assistant,
        ) => call(part),
        // AgentScope's has the names of a call.
        ("tool_result", Speaker::User) => part.first_text(&["tool_use_id", "id"]).map(|id| {
            let content = part.first(&["content", "output"]);
            let content = blocks(content, Speaker::Tool, source);
            ContentBlock::tool_result(id, content, part.take_flag("is_error"))
        }),
        (known, _) if KNOWN_OPAQUE.split_whitespace().any(|kind| kind == known) => {
            Some(kept(&kind, raw))
        }
        _ => None,
    };
    read.unwrap_or_else(|| unknown(&kind, raw, source))
}

/// The model's thinking: the text, a summary of it, or a form that only the provider can read.
fn thought(mut part: Object<'_>, raw: &RawValue) -> Option<ContentBlock> {
    let redacted = part.take_flag("redacted");
    let told = part.first_text(&["thinking", "reasoning", "text", "think"]);
    let summary = part.take_text("summary").or_else(|| {
        let items = part.objects("summary");
        let texts: Vec<Arc<str>> = items.filter_map(|mut item| item.take_text("text")).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n").into())
    });
    let own = part.first_text(&["signature", "thinkingSignature"]);
    let signature = own.or_else(|| part.inner("extras").take_text("signature"));
    match told.filter(|_| !redacted).or(summary) {
        Some(text) => Some(ContentBlock::thinking(text, signature)),
        None if redacted => Some(kept("reasoning", raw)),
        None => signature.map(|signature| ContentBlock::thinking("", Some(signature))),
    }
}

fn call(mut part: Object<'_>) -> Option<ContentBlock> {
    let name = part.take_text("name")?;
    let id = part.first_text(&["call_id", "tool_call_id", "id"])?;
    let written = part.text("arguments");
    let parsed = written.and_then(|text| JsonText::parse(&text).ok());
    let input = parsed.unwrap_or_else(|| input(part.first(&["input", "args", "arguments"])));
    Some(ContentBlock::tool_use(id, name, input))
}

/// The value, if it is a text.
pub fn text(raw: &RawValue) -> Option<Arc<str>> {
    serde_json::from_str(raw.get()).ok()
}

/// A picture, with its source as recorded.
pub fn image(source: &RawValue) -> ContentBlock {
    ContentBlock::Image(Image { source: JsonText::from(source) })
}

/// A block that is kept as it is.
pub fn kept(kind: &str, raw: &RawValue) -> ContentBlock {
    ContentBlock::Opaque(Box::new(Opaque { kind: kind.into(), json: JsonText::from(raw) }))
}

/// A block that is kept without being understood, and counted.
pub fn unknown(kind: &str, raw: &RawValue, source: &mut Source) -> ContentBlock {
    unread("block", kind, raw, source)
}

/// A part of a record that is kept without being understood; `what` names it in the count.
pub fn unread(what: &str, kind: &str, raw: &RawValue, source: &mut Source) -> ContentBlock {
    source.not_understood(&format!("{what} {kind}"));
    kept(kind, raw)
}

/// The arguments of a call as written; `null` where there are none.
pub fn input(raw: Option<&RawValue>) -> JsonText {
    raw.map_or_else(|| JsonText::of(&Value::Null), JsonText::from)
}
