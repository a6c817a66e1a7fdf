//! Messages as the JSON that OpenAI's chat completions API takes.
//!
//! Tool results become messages of their own, before whatever else the user says. Thinking goes
//! into `thinking_blocks`, where LiteLLM has it: the API itself takes none. Arguments are JSON in a
//! string; those that were no JSON when they were recorded are written as they were.

use std::fmt::Write as _;

use super::string;
use crate::session::{ContentBlock, JsonText, Message, Role, ToolUse};

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
        if let ContentBlock::ToolResult(result) = block {
            let mut out = r#"{"role":"tool","tool_call_id":"#.to_owned();
            string(&result.tool_use_id, &mut out);
            out.push_str(r#","content":"#);
            match &result.content[..] {
                [ContentBlock::Text(text)] => string(text, &mut out),
                content => parts(content, &mut out),
            }
            out.push('}');
            messages.push(out);
        } else {
            rest.push(block);
        }
    }
    if !rest.is_empty() {
        let mut out = r#"{"role":"user","content":"#.to_owned();
        text_or_parts(&rest, &mut out);
        out.push('}');
        messages.push(out);
    }
    messages
}

fn assistant(content: &[ContentBlock]) -> String {
    let (mut thinking, mut rest, mut calls) = (String::new(), Vec::new(), String::new());
    for block in content {
        match block {
            ContentBlock::Thinking(_) => {
                comma(&mut thinking);
                super::blocks(std::slice::from_ref(block), &mut thinking);
            }
            ContentBlock::ToolUse(tool_use) => {
                comma(&mut calls);
                call(tool_use, &mut calls);
            }
            ContentBlock::Text(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::Image(_)
            | ContentBlock::Opaque(_) => rest.push(block),
        }
    }
    let mut out = r#"{"role":"assistant","content":"#.to_owned();
    if rest.is_empty() {
        out.push_str("null");
    } else {
        text_or_parts(&rest, &mut out);
    }
    for (key, list) in [("thinking_blocks", thinking), ("tool_calls", calls)] {
        if !list.is_empty() {
            let _ = write!(out, ",\"{key}\":[{list}]");
        }
    }
    out.push('}');
    out
}

fn comma(list: &mut String) {
    if !list.is_empty() {
        list.push(',');
    }
}

fn call(tool_use: &ToolUse, out: &mut String) {
    out.push_str(r#"{"id":"#);
    string(&tool_use.id, out);
    out.push_str(r#","type":"function","function":{"name":"#);
    string(&tool_use.name, out);
    out.push_str(r#","arguments":"#);
    string(&arguments(&tool_use.input), out);
    out.push_str("}}");
}

/// The arguments as the API has them. A JSON string that holds no JSON stands for arguments that
/// were none.
fn arguments(input: &JsonText) -> String {
    match serde_json::from_str::<String>(input.as_str()) {
        Ok(text) if JsonText::parse(&text).is_err() && JsonText::string(&text) == *input => text,
        _ => input.as_str().to_owned(),
    }
}

/// One text as a string, anything else as a list of parts. An empty string would be no content.
fn text_or_parts(content: &[&ContentBlock], out: &mut String) {
    match content {
        [ContentBlock::Text(text)] if !text.is_empty() => string(text, out),
        content => parts(content.iter().copied(), out),
    }
}

fn parts<'a>(content: impl IntoIterator<Item = &'a ContentBlock>, out: &mut String) {
    out.push('[');
    for (at, block) in content.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        match block {
            ContentBlock::Image(image) => {
                out.push_str(r#"{"type":"image_url","image_url":"#);
                out.push_str(image.source.as_str());
                out.push('}');
            }
            ContentBlock::Text(_)
            | ContentBlock::Thinking(_)
            | ContentBlock::ToolUse(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::Opaque(_) => super::blocks(std::slice::from_ref(block), out),
        }
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Thinking, ToolClass, ToolResult};

    #[test]
    fn results_become_messages_and_arguments_strings() {
        let tool_use = |input: &str| {
            ContentBlock::ToolUse(ToolUse {
                id: "t1".into(),
                name: "Read".into(),
                class: ToolClass::Read,
                input: JsonText::parse(input).unwrap(),
            })
        };
        let said = [
            ContentBlock::Thinking(Thinking {
                text: "hm".into(),
                signature: None,
            }),
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
        let result = ContentBlock::ToolResult(ToolResult {
            tool_use_id: "t1".into(),
            content: vec![ContentBlock::Text("x".into())],
            is_error: false,
        });
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
