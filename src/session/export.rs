//! Writes a session as the JSON of a provider's API, for other tools to read.
//!
//! What the shape carries: system prompt, tools, model, and the messages. Reading the file again
//! gives equal messages, save for what no such file can say; that is counted in
//! [`Exported::left_out`]:
//! - compactions, usage, times, tags, API-call ids, the context window, and a tool's class where
//!   its name does not tell it;
//! - that two messages of the user's in a row are two, and that something stands before a tool
//!   result: the reader merges them, results first;
//! - for OpenAI, that a tool failed, and the order of thinking, content and tool calls;
//! - a block of an unknown kind that is no JSON object with its `type`. Others are written as they
//!   were recorded, and the API may refuse them.
//!
//! Image sources and tool definitions of the other provider are rewritten.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Value, json};

use super::import::tool_names::class_of;
use super::native::{AsItIs, Of, Whole};
use super::wire::openai::openai_json;
use super::wire::{Provider, anthropic_json, string};
use super::{ContentBlock, Image, JsonText, Message, Role, Session, ToolResult, ToolSchema};

/// A session in the shape of a provider's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The file: one JSON object, one message per line.
    pub json: String,
    /// What the shape cannot carry, in words, with counts.
    pub left_out: BTreeMap<&'static str, u64>,
}

/// Writes a session in the shape of a provider's API.
pub fn export(session: &Session, provider: Provider) -> Exported {
    let mut bytes = Vec::new();
    let left_out = export_whole(session, provider, &mut AsItIs, &mut bytes);
    Exported {
        json: String::from_utf8(bytes).unwrap_or_default(),
        // A vector takes everything.
        left_out: left_out.unwrap_or_default(),
    }
}

/// Writes a session, of which `whole` has the messages, in the shape of a provider's API. Returns
/// what the shape cannot carry, in words, with counts.
pub fn export_whole(
    session: &Session,
    provider: Provider,
    whole: &mut dyn Whole,
    out: &mut dyn Write,
) -> io::Result<BTreeMap<&'static str, u64>> {
    let mut left_out = Counts::default();
    left_out.add("compaction", session.compactions().len());
    left_out.add(
        "context window",
        usize::from(session.context_window().is_some()),
    );
    let mut json = "{".to_owned();
    if let Some(model) = session.model() {
        json.push_str("\"model\":");
        string(model, &mut json);
        json.push_str(",\n");
    }
    if let (Provider::Anthropic, Some(system)) = (provider, session.system()) {
        json.push_str("\"system\":");
        string(system, &mut json);
        json.push_str(",\n");
    }
    if !session.tools().is_empty() {
        let tools: Vec<String> = session
            .tools()
            .iter()
            .map(|tool| definition(tool, provider))
            .collect();
        let _ = writeln!(json, "\"tools\":[\n{}\n],", tools.join(",\n"));
    }
    json.push_str("\"messages\":[");
    out.write_all(json.as_bytes())?;
    let mut between = "\n";
    let mut write = |message: &str| {
        out.write_all(between.as_bytes())?;
        between = ",\n";
        out.write_all(message.as_bytes())
    };
    if let (Provider::OpenAi, Some(system)) = (provider, session.system()) {
        let mut message = r#"{"role":"system","content":"#.to_owned();
        string(system, &mut message);
        write(&(message + "}"))?;
    }
    let mut last = None;
    for message in session.messages() {
        let message = match whole.message(message, Of::History)? {
            Cow::Borrowed(_) => message.clone(),
            Cow::Owned(message) => Arc::new(message),
        };
        left_out.message(&message, provider);
        let repeats = last == Some(message.role()) && message.role() == Role::User;
        left_out.add("border between two user messages", usize::from(repeats));
        last = Some(message.role());
        let message = for_provider(&message, provider);
        match provider {
            Provider::Anthropic => write(&anthropic_json(&message))?,
            Provider::OpenAi => {
                for message in openai_json(&message) {
                    write(&message)?;
                }
            }
        }
    }
    out.write_all(b"\n]}\n")?;
    Ok(left_out.0)
}

#[derive(Default)]
struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    fn add(&mut self, what: &'static str, count: usize) {
        if count > 0 {
            *self.0.entry(what).or_default() += count as u64;
        }
    }

    fn message(&mut self, message: &Message, provider: Provider) {
        self.add("tag", message.tags.len());
        self.add("time", usize::from(message.timestamp.is_some()));
        self.add("API call id", usize::from(message.api_call.is_some()));
        self.add("usage", usize::from(message.usage.is_some()));
        let content = message.content();
        // In which order the shape has the kinds of blocks.
        let rank = |block: &ContentBlock| match (provider, message.role(), block) {
            (_, Role::User, ContentBlock::ToolResult(_))
            | (Provider::OpenAi, Role::Assistant, ContentBlock::Thinking(_)) => 0,
            (Provider::OpenAi, Role::Assistant, ContentBlock::ToolUse(_)) => 2,
            _ => 1,
        };
        let in_order = content.iter().map(rank).is_sorted();
        self.add("order of the blocks of a message", usize::from(!in_order));
        for block in content {
            self.block(block, provider);
        }
    }

    fn block(&mut self, block: &ContentBlock, provider: Provider) {
        match block {
            ContentBlock::ToolUse(tool_use) => {
                let told = tool_use.class == class_of(&tool_use.name);
                self.add("tool class", usize::from(!told));
            }
            ContentBlock::ToolResult(result) => {
                let failed = result.is_error && provider == Provider::OpenAi;
                self.add("failure of a tool", usize::from(failed));
                for part in &result.content {
                    self.block(part, provider);
                }
            }
            ContentBlock::Opaque(opaque) => {
                let value = opaque.json.value();
                let told = value.get("type").and_then(Value::as_str) == Some(&*opaque.kind);
                self.add("kind of an unknown block", usize::from(!told));
            }
            ContentBlock::Text(_) | ContentBlock::Thinking(_) | ContentBlock::Image(_) => {}
        }
    }
}

/// The message with image sources as the provider takes them.
pub fn for_provider(message: &Arc<Message>, provider: Provider) -> Arc<Message> {
    if message.content().iter().all(|block| block.images() == 0) {
        return message.clone();
    }
    let content = message.content().iter();
    let content = content.map(|block| with_images(block, provider)).collect();
    Arc::new(Message::new(message.role(), content))
}

fn with_images(block: &ContentBlock, provider: Provider) -> ContentBlock {
    match block {
        ContentBlock::Image(image) => match declared(&image.source) {
            Some(size) => ContentBlock::Text(size.into()),
            None => ContentBlock::Image(Image {
                source: image_source(&image.source, provider),
            }),
        },
        ContentBlock::ToolResult(result) => {
            let content = result.content.iter();
            ContentBlock::ToolResult(ToolResult {
                content: content.map(|part| with_images(part, provider)).collect(),
                ..result.clone()
            })
        }
        ContentBlock::Text(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::Opaque(_) => block.clone(),
    }
}

/// What stands in for an image of which only the size is known.
fn declared(source: &JsonText) -> Option<String> {
    let value = source.value();
    if value.get("type").and_then(Value::as_str) != Some("image-size") {
        return None;
    }
    let number = |key: &str| value.get(key).and_then(Value::as_u64);
    let (width, height) = number("width").zip(number("height"))?;
    Some(format!("[an image of {width} × {height} pixels]"))
}

/// The source of an image as the provider takes it; unchanged where it does already.
fn image_source(source: &JsonText, provider: Provider) -> JsonText {
    let value = source.value();
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let theirs = match (provider, text("type"), text("url")) {
        (Provider::OpenAi, Some("url"), Some(url)) => json!({"url": url}),
        (Provider::OpenAi, Some("base64"), _) => {
            let (Some(kind), Some(data)) = (text("media_type"), text("data")) else {
                return source.clone();
            };
            json!({"url": format!("data:{kind};base64,{data}")})
        }
        (Provider::Anthropic, None, Some(url)) => {
            let data = url
                .strip_prefix("data:")
                .and_then(|rest| rest.split_once(";base64,"));
            match data {
                Some((kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
                None => json!({"type": "url", "url": url}),
            }
        }
        _ => return source.clone(),
    };
    JsonText::of(&theirs)
}

/// The definition of a tool as the provider takes it; unchanged where it does already.
pub fn definition(tool: &ToolSchema, provider: Provider) -> String {
    let value = tool.definition.value();
    let theirs = match provider {
        Provider::OpenAi => value.get("input_schema").map(|parameters| {
            let mut function = json!({"name": &*tool.name});
            if let Some(description) = value.get("description") {
                function["description"] = description.clone();
            }
            function["parameters"] = parameters.clone();
            json!({"type": "function", "function": function})
        }),
        Provider::Anthropic => value.get("function").map(|function| {
            let mut definition = json!({"name": &*tool.name});
            if let Some(description) = function.get("description") {
                definition["description"] = description.clone();
            }
            let empty = json!({"type": "object", "properties": {}});
            definition["input_schema"] = function.get("parameters").cloned().unwrap_or(empty);
            definition
        }),
    };
    theirs.map_or_else(
        || tool.definition.as_str().to_owned(),
        |value| value.to_string(),
    )
}
