//! Messages as the JSON that a provider's API takes: Anthropic's here, OpenAI's in [`openai`].
//!
//! Products hand Anthropic's form to a summariser, and keep it as a transcript.

use std::fmt;

use serde::Serialize;

use crate::{ContentBlock, Message};

pub mod api;
pub mod content;
pub mod images;
pub mod json_bytes;
mod look;
pub mod object;
pub mod openai;
mod provider;
pub mod request;
pub mod responses;
pub mod stream;

pub use look::Look;
pub use provider::{definition, for_provider};

/// Whose API a prompt is sent to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Anthropic's messages API.
    #[default]
    Anthropic,
    /// OpenAI's chat completions API.
    OpenAi,
}

impl Provider {
    /// All providers, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    /// The name used in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The API whose rules prompts are held to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleSet {
    /// Anthropic's messages API.
    #[default]
    Anthropic,
    /// OpenAI's chat completions API.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI's responses API.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Gemini's API.
    Gemini,
}

impl RuleSet {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::OpenAi, Self::OpenAiResponses, Self::Gemini];

    /// The name used in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }

    /// The provider in whose price file its prices and limits are.
    pub fn provider(self) -> &'static str {
        match self {
            Self::OpenAiResponses => "openai",
            other => other.name(),
        }
    }

    /// Whether consecutive messages of one role are looked at as one.
    pub fn combines_messages(self) -> bool {
        self != Self::OpenAi
    }
}

impl fmt::Display for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

/// One message as compact JSON. Tool arguments appear as recorded.
pub fn anthropic_json(message: &Message) -> String {
    anthropic_message(message, |_, json| json)
}

/// One message as compact JSON; `edit` gets each block's index and JSON.
pub fn anthropic_message(message: &Message, edit: impl Fn(usize, String) -> String) -> String {
    let role = string(message.role().name());
    let blocks = message.content().iter().enumerate();
    let content = list(blocks.map(|(at, block)| edit(at, anthropic_block(block))));
    object(vec![("role", role), ("content", content)])
}

/// One block as compact JSON.
pub fn anthropic_block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => typed("text", vec![("text", string(text))]),
        ContentBlock::Thinking(thinking) => {
            let signature = thinking.signature.iter().map(|text| ("signature", string(text)));
            let words = ("thinking", string(&thinking.text));
            typed("thinking", [words].into_iter().chain(signature).collect())
        }
        ContentBlock::ToolUse(tool) => {
            let (id, name) = (string(&tool.id), string(&tool.name));
            let input = tool.input.as_str().to_owned();
            typed("tool_use", vec![("id", id), ("name", name), ("input", input)])
        }
        ContentBlock::ToolResult(result) => {
            let content = result_content(&result.content, anthropic_block);
            let id = string(&result.tool_use_id);
            let mut entries = vec![("tool_use_id", id), ("content", content)];
            entries.extend(result.is_error.then(|| ("is_error", "true".to_owned())));
            typed("tool_result", entries)
        }
        ContentBlock::Image(image) => {
            typed("image", vec![("source", image.source.as_str().to_owned())])
        }
        ContentBlock::Opaque(opaque) => opaque.json.as_str().to_owned(),
    }
}

/// A JSON object of that type, with these values, which are JSON.
fn typed(kind: &str, mut entries: Vec<(&str, String)>) -> String {
    entries.insert(0, ("type", string(kind)));
    object(entries)
}

/// A JSON object of these values, which are JSON.
pub fn object(entries: Vec<(&str, String)>) -> String {
    let entries: Vec<String> =
        entries.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", entries.join(","))
}

/// The content of a result: one text as it is, anything else as a list of parts.
fn result_content(content: &[ContentBlock], part: impl Fn(&ContentBlock) -> String) -> String {
    match content {
        [ContentBlock::Text(text)] => string(text),
        content => list(content.iter().map(part)),
    }
}

/// A JSON list of these values, which are JSON.
fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A text as JSON.
pub fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JsonText, Role, ToolClass, ToolResult, ToolUse};

    #[test]
    fn writes_what_the_api_takes_and_keeps_arguments_as_recorded() {
        let call = Message::new(
            Role::Assistant,
            vec![
                ContentBlock::Text("a \"b\"\n".into()),
                ContentBlock::ToolUse(Box::new(ToolUse {
                    id: "t1".into(),
                    name: "Read".into(),
                    class: ToolClass::Read,
                    input: JsonText::parse(r#"{"b":1, "a":2}"#).unwrap(),
                })),
            ],
        );
        assert_eq!(
            anthropic_json(&call),
            r#"{"role":"assistant","content":[{"type":"text","text":"a \"b\"\n"},{"type":"tool_use","id":"t1","name":"Read","input":{"b":1, "a":2}}]}"#
        );
        let result = Message::new(
            Role::User,
            vec![ContentBlock::ToolResult(Box::new(ToolResult {
                tool_use_id: "t1".into(),
                content: vec![ContentBlock::Text("x".into())],
                is_error: true,
            }))],
        );
        assert_eq!(
            anthropic_json(&result),
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x","is_error":true}]}"#
        );
    }
}
