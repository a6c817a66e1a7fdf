//! Messages as the JSON that OpenAI's chat completions API takes.
//!
//! Tool results become messages of their own, before whatever else the user says. Thinking goes
//! into `thinking_blocks`, where LiteLLM has it: the API itself takes none. Arguments are JSON in a
//! string; those that were no JSON when they were recorded are written as they were.

use super::{anthropic_block, list, object, result_content, string, typed};
use crate::{ContentBlock, JsonText, Message, Role, ToolUse};

/// One message as the compact JSON of one message or several.
pub fn openai_json(message: &Message) -> Vec<String> {
    match message.role() {
        Role::User => user(message.content()),
        Role::Assistant => vec![assistant(message.content())],
    }
}

fn user(content: &[ContentBlock]) -> Vec<String> {
    let mut messages = Vec::new();
    let mut rest = Vec::new();
    for block in content {
        let ContentBlock::ToolResult(result) = block else {
            rest.push(block);
            continue;
        };
        let content = result_content(&result.content, part);
        messages.push(object(vec![
            ("role", string("tool")),
            ("tool_call_id", string(&result.tool_use_id)),
            ("content", content),
        ]));
    }
    if !rest.is_empty() {
        let content = text_or_parts(&rest);
        messages.push(object(vec![("role", string("user")), ("content", content)]));
    }
    messages
}

fn assistant(content: &[ContentBlock]) -> String {
    let (mut thinking, mut rest, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for block in content {
        match block {
            ContentBlock::Thinking(_) => thinking.push(anthropic_block(block)),
            ContentBlock::ToolUse(tool_use) => calls.push(call(tool_use)),
            ContentBlock::Text(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::Image(_)
            | ContentBlock::Opaque(_) => rest.push(block),
        }
    }
    let content = if rest.is_empty() { "null".to_owned() } else { text_or_parts(&rest) };
    let mut entries = vec![("role", string("assistant")), ("content", content)];
    for (key, items) in [("thinking_blocks", thinking), ("tool_calls", calls)] {
        if !items.is_empty() {
            entries.push((key, list(items.into_iter())));
        }
    }
    object(entries)
}

fn call(tool_use: &ToolUse) -> String {
    let function = object(vec![
        ("name", string(&tool_use.name)),
        ("arguments", string(&arguments(&tool_use.input))),
    ]);
    let (id, kind) = (string(&tool_use.id), string("function"));
    object(vec![("id", id), ("type", kind), ("function", function)])
}

/// The arguments as the API has them. A JSON string that holds no JSON represents arguments that
/// were none.
pub(super) fn arguments(input: &JsonText) -> String {
    match serde_json::from_str::<String>(input.as_str()) {
        Ok(text) if JsonText::parse(&text).is_err() && JsonText::string(&text) == *input => text,
        _ => input.as_str().to_owned(),
    }
}

/// One text as a string, anything else as a list of parts. An empty string would be no content.
fn text_or_parts(content: &[&ContentBlock]) -> String {
    match content {
        [ContentBlock::Text(text)] if !text.is_empty() => string(text),
        content => list(content.iter().map(|block| part(block))),
    }
}

fn part(block: &ContentBlock) -> String {
    let ContentBlock::Image(image) = block else {
        return anthropic_block(block);
    };
    let source = image.source.as_str().to_owned();
    typed("image_url", vec![("image_url", source)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Thinking, ToolClass, ToolResult};

    #[test]
    fn results_become_messages_and_arguments_strings() {
        let tool_use = |input: &str| {
            ContentBlock::ToolUse(Box::new(ToolUse {
                id: "t1".into(),
                name: "Read".into(),
                class: ToolClass::Read,
                input: JsonText::parse(input).unwrap(),
            }))
        };
        let said = [
            ContentBlock::Thinking(Box::new(Thinking { text: "hm".into(), signature: None })),
            tool_use(r#"{"b":1, "a":2}"#),
            tool_use(r#""{\"cut""#),
            tool_use(r#""7""#),
        ];
        assert_eq!(
            openai_json(&Message::new(Role::Assistant, said.to_vec())),
            [concat!(
                r#"{"role":"assistant","content":null,"#,
                r#""thinking_blocks":[{"type":"thinking","thinking":"hm"}],"tool_calls":["#,
                r#"{"id":"t1","type":"function","function":{"name":"Read","arguments":"{\"b\":1, \"a\":2}"}},"#,
                r#"{"id":"t1","type":"function","function":{"name":"Read","arguments":"{\"cut"}},"#,
                r#"{"id":"t1","type":"function","function":{"name":"Read","arguments":"\"7\""}}]}"#,
            )]
        );
        let result = ContentBlock::ToolResult(Box::new(ToolResult {
            tool_use_id: "t1".into(),
            content: vec![ContentBlock::Text("x".into())],
            is_error: false,
        }));
        let answer = [ContentBlock::Text("so".into()), result];
        assert_eq!(
            openai_json(&Message::new(Role::User, answer.to_vec())),
            [
                r#"{"role":"tool","tool_call_id":"t1","content":"x"}"#,
                r#"{"role":"user","content":"so"}"#,
            ]
        );
    }
}
