//! Messages as the items that OpenAI's responses API takes.

use super::openai::arguments;
use super::{anthropic_block, list, result_content, string, typed};
use crate::{ContentBlock, Message, Role};

/// One message as the compact JSON of one item or several.
pub fn responses_json(message: &Message) -> Vec<String> {
    let role = message.role();
    let mut items = Vec::new();
    let mut said = Vec::new();
    for block in message.content() {
        let item = match block {
            ContentBlock::Text(_) | ContentBlock::Image(_) => {
                said.push(part(role, block));
                continue;
            }
            ContentBlock::Thinking(thinking) => {
                let summary = typed("summary_text", vec![("text", string(&thinking.text))]);
                let mut entries = vec![("summary", list([summary].into_iter()))];
                let encrypted = thinking.signature.iter();
                entries.extend(encrypted.map(|text| ("encrypted_content", string(text))));
                typed("reasoning", entries)
            }
            ContentBlock::ToolUse(tool) => {
                let arguments = string(&arguments(&tool.input));
                let (id, name) = (string(&tool.id), string(&tool.name));
                let entries = vec![("call_id", id), ("name", name), ("arguments", arguments)];
                typed("function_call", entries)
            }
            ContentBlock::ToolResult(result) => {
                let output = result_content(&result.content, |block| part(Role::User, block));
                let entries = vec![("call_id", string(&result.tool_use_id)), ("output", output)];
                typed("function_call_output", entries)
            }
            ContentBlock::Opaque(opaque) => opaque.json.as_str().to_owned(),
        };
        items.extend(spoken(role, &mut said));
        items.push(item);
    }
    items.extend(spoken(role, &mut said));
    items
}

/// The texts so far, as a message of its own.
fn spoken(role: Role, said: &mut Vec<String>) -> Option<String> {
    let said = std::mem::take(said);
    (!said.is_empty()).then(|| {
        let content = list(said.into_iter());
        let entries = vec![("role", string(role.name())), ("content", content)];
        typed("message", entries)
    })
}

fn part(role: Role, block: &ContentBlock) -> String {
    let (kind, key, value) = match (block, role) {
        (ContentBlock::Text(text), Role::User) => ("input_text", "text", string(text)),
        (ContentBlock::Text(text), Role::Assistant) => ("output_text", "text", string(text)),
        (ContentBlock::Image(image), _) => {
            ("input_image", "image_url", image.source.as_str().to_owned())
        }
        (block, _) => return anthropic_block(block),
    };
    typed(kind, vec![(key, value)])
}
