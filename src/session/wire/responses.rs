//! Messages as the items that OpenAI's responses API takes.

use super::openai::arguments;
use super::{anthropic_block, list, object, string};
use crate::session::{ContentBlock, Message, Role};

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
                let summary = object(vec![
                    ("type", string("summary_text")),
                    ("text", string(&thinking.text)),
                ]);
                let mut entries = vec![("type", string("reasoning"))];
                entries.push(("summary", list([summary].into_iter())));
                let encrypted = thinking.signature.iter();
                entries.extend(encrypted.map(|text| ("encrypted_content", string(text))));
                object(entries)
            }
            ContentBlock::ToolUse(tool) => object(vec![
                ("type", string("function_call")),
                ("call_id", string(&tool.id)),
                ("name", string(&tool.name)),
                ("arguments", string(&arguments(&tool.input))),
            ]),
            ContentBlock::ToolResult(result) => {
                let output = match &result.content[..] {
                    [ContentBlock::Text(text)] => string(text),
                    content => list(content.iter().map(|block| part(Role::User, block))),
                };
                object(vec![
                    ("type", string("function_call_output")),
                    ("call_id", string(&result.tool_use_id)),
                    ("output", output),
                ])
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
    let role = match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let said = std::mem::take(said);
    (!said.is_empty()).then(|| {
        object(vec![
            ("type", string("message")),
            ("role", string(role)),
            ("content", list(said.into_iter())),
        ])
    })
}

fn part(role: Role, block: &ContentBlock) -> String {
    match (block, role) {
        (ContentBlock::Text(text), Role::User) => typed("input_text", "text", string(text)),
        (ContentBlock::Text(text), Role::Assistant) => typed("output_text", "text", string(text)),
        (ContentBlock::Image(image), _) => {
            typed("input_image", "image_url", image.source.as_str().to_owned())
        }
        (block, _) => anthropic_block(block),
    }
}

fn typed(kind: &str, key: &str, value: String) -> String {
    object(vec![("type", string(kind)), (key, value)])
}
