//! Conversations in short, for tests.

#![cfg(test)]

use std::sync::Arc;

use super::Finding;
use crate::context::{Entry, Origin};
use crate::session::{
    ContentBlock, JsonText, Message, Role, Thinking, ToolClass, ToolResult, ToolUse,
};
use crate::tokens::Size;

/// Messages from a text such as `U(hi) A(look +1 +2) U(=1 =2)`: `U` the user, `A` the assistant,
/// `+id` a tool use, `=id` its result, `~` thinking, `_` an empty text, and any other word a text,
/// in which `-` means a space.
pub(crate) fn messages(text: &str) -> Vec<Message> {
    text.split_inclusive(')').map(message).collect()
}

fn message(text: &str) -> Message {
    let (role, blocks) = text.trim().split_once('(').unwrap();
    let role = match role {
        "U" => Role::User,
        "A" => Role::Assistant,
        other => panic!("no role `{other}`"),
    };
    let blocks = blocks.strip_suffix(')').unwrap().split_whitespace();
    Message::new(role, blocks.map(block).collect())
}

fn block(word: &str) -> ContentBlock {
    match word.split_at(1) {
        ("+", id) => ContentBlock::ToolUse(Box::new(ToolUse {
            id: id.into(),
            name: "read".into(),
            class: ToolClass::Read,
            input: JsonText::of(&serde_json::json!({})),
        })),
        ("=", id) => ContentBlock::ToolResult(Box::new(ToolResult {
            tool_use_id: id.into(),
            content: vec![ContentBlock::Text("what the tool found".into())],
            is_error: false,
        })),
        ("~", _) => {
            ContentBlock::Thinking(Box::new(Thinking { text: "hm".into(), signature: None }))
        }
        ("_", _) => ContentBlock::Text(" \n".into()),
        _ => ContentBlock::Text(word.replace('-', " ").into()),
    }
}

/// The messages as verbatim entries of a session that consists of them.
pub(crate) fn entries(text: &str) -> Vec<Entry> {
    let entry =
        |(at, message)| Entry::sized(Origin::Verbatim(at), Arc::new(message), Size::default());
    messages(text).into_iter().enumerate().map(entry).collect()
}

/// Findings as `rule: subject`, in order.
pub(crate) fn lines<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<String> {
    let line = |finding: &Finding| format!("{}: {}", finding.rule, finding.subject);
    findings.into_iter().map(line).collect()
}
