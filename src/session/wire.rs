//! Messages as the JSON that a provider's API takes: Anthropic's here, OpenAI's in [`openai`].
//!
//! Products hand Anthropic's form to a summariser, and keep it as a transcript.

use std::fmt;

use serde::Serialize;

use super::{ContentBlock, Message, Role};

pub mod openai;
pub mod stream;

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

/// One message as compact JSON. Tool arguments appear as recorded.
pub fn anthropic_json(message: &Message) -> String {
    let mut out = String::new();
    out.push_str(match message.role() {
        Role::User => r#"{"role":"user","content":["#,
        Role::Assistant => r#"{"role":"assistant","content":["#,
    });
    blocks(message.content(), &mut out);
    out.push_str("]}");
    out
}

/// One block as compact JSON.
pub fn anthropic_block(block: &ContentBlock) -> String {
    let mut out = String::new();
    blocks(std::slice::from_ref(block), &mut out);
    out
}

fn blocks(content: &[ContentBlock], out: &mut String) {
    for (at, block) in content.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        match block {
            ContentBlock::Text(text) => {
                out.push_str(r#"{"type":"text","text":"#);
                string(text, out);
                out.push('}');
            }
            ContentBlock::Thinking(thinking) => {
                out.push_str(r#"{"type":"thinking","thinking":"#);
                string(&thinking.text, out);
                if let Some(signature) = &thinking.signature {
                    out.push_str(r#","signature":"#);
                    string(signature, out);
                }
                out.push('}');
            }
            ContentBlock::ToolUse(tool) => {
                out.push_str(r#"{"type":"tool_use","id":"#);
                string(&tool.id, out);
                out.push_str(r#","name":"#);
                string(&tool.name, out);
                out.push_str(r#","input":"#);
                out.push_str(tool.input.as_str());
                out.push('}');
            }
            ContentBlock::ToolResult(result) => {
                out.push_str(r#"{"type":"tool_result","tool_use_id":"#);
                string(&result.tool_use_id, out);
                out.push_str(r#","content":"#);
                if let [ContentBlock::Text(text)] = &result.content[..] {
                    string(text, out);
                } else {
                    out.push('[');
                    blocks(&result.content, out);
                    out.push(']');
                }
                if result.is_error {
                    out.push_str(r#","is_error":true"#);
                }
                out.push('}');
            }
            ContentBlock::Image(image) => {
                out.push_str(r#"{"type":"image","source":"#);
                out.push_str(image.source.as_str());
                out.push('}');
            }
            ContentBlock::Opaque(opaque) => out.push_str(opaque.json.as_str()),
        }
    }
}

pub(super) fn string(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{JsonText, ToolClass, ToolResult, ToolUse};

    #[test]
    fn writes_what_the_api_takes_and_keeps_arguments_as_recorded() {
        let call = Message::new(
            Role::Assistant,
            vec![
                ContentBlock::Text("a \"b\"\n".into()),
                ContentBlock::ToolUse(ToolUse {
                    id: "t1".into(),
                    name: "Read".into(),
                    class: ToolClass::Read,
                    input: JsonText::parse(r#"{"b":1, "a":2}"#).unwrap(),
                }),
            ],
        );
        assert_eq!(
            anthropic_json(&call),
            r#"{"role":"assistant","content":[{"type":"text","text":"a \"b\"\n"},{"type":"tool_use","id":"t1","name":"Read","input":{"b":1, "a":2}}]}"#
        );
        let result = Message::new(
            Role::User,
            vec![ContentBlock::ToolResult(ToolResult {
                tool_use_id: "t1".into(),
                content: vec![ContentBlock::Text("x".into())],
                is_error: true,
            })],
        );
        assert_eq!(
            anthropic_json(&result),
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x","is_error":true}]}"#
        );
    }
}
