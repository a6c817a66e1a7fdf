//! Pictures and tools as one provider takes them, whatever the recording's had.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Provider, images};
use crate::{ContentBlock, Image, JsonText, Message, ToolResult, ToolSchema};

/// The message with image sources as the provider takes them.
pub fn for_provider(message: &Arc<Message>, provider: Provider) -> Arc<Message> {
    if message.content().iter().all(|block| block.images() == 0) {
        return message.clone();
    }
    let content = message.content().iter().map(|block| with_images(block, provider)).collect();
    Arc::new(Message::new(message.role(), content))
}

fn with_images(block: &ContentBlock, provider: Provider) -> ContentBlock {
    match block {
        ContentBlock::Image(image) => match declared(&image.source) {
            Some(size) => ContentBlock::Text(size.into()),
            None => ContentBlock::Image(Image { source: image_source(&image.source, provider) }),
        },
        ContentBlock::ToolResult(result) => {
            let content = result.content.iter();
            ContentBlock::ToolResult(Box::new(ToolResult {
                content: content.map(|part| with_images(part, provider)).collect(),
                ..(**result).clone()
            }))
        }
        ContentBlock::Text(_)
        | ContentBlock::Thinking(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::Opaque(_) => block.clone(),
    }
}

/// The placeholder for an image of which only the size is known.
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
        (Provider::Anthropic, None, Some(url)) => images::addressed(url),
        _ => return source.clone(),
    };
    JsonText::of(&theirs)
}

/// The definition of a tool as the provider takes it; unchanged where it does already.
pub fn definition(tool: &ToolSchema, provider: Provider) -> String {
    let value = tool.definition.value();
    let theirs = match provider {
        Provider::OpenAi => value.get("input_schema").map(|schema| {
            let function = described(&tool.name, &value, "parameters", schema.clone());
            json!({"type": "function", "function": function})
        }),
        Provider::Anthropic => value.get("function").map(|function| {
            let parameters = function.get("parameters").cloned();
            let schema = parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
            described(&tool.name, function, "input_schema", schema)
        }),
    };
    theirs.map_or_else(|| tool.definition.as_str().to_owned(), |theirs| theirs.to_string())
}

/// A definition with the description of another one, and with the schema under this key.
fn described(name: &str, other: &Value, key: &str, schema: Value) -> Value {
    let mut definition = json!({ "name": name });
    if let Some(description) = other.get("description") {
        definition["description"] = description.clone();
    }
    definition[key] = schema;
    definition
}
