//! One item of a rollout, as the model saw or wrote it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::session::import::assemble::{Assembler, count};
use crate::session::import::tool_names::class_of;
use crate::session::{ContentBlock, Image, JsonText, Opaque, Thinking, ToolResult, ToolUse};

/// What an item adds to the conversation, and who said it.
#[derive(Debug, PartialEq)]
pub(super) enum Item {
    /// Nothing.
    Nothing,
    /// The model.
    Model(Vec<ContentBlock>),
    /// The user or a tool.
    Other(Vec<ContentBlock>),
    /// The product, in a message of the developer's role.
    Product(Vec<ContentBlock>),
}

/// Items of the model's that the provider documents and Proctor keeps as they are.
const KNOWN_OPAQUE: &[&str] = &[
    "web_search_call",
    "image_generation_call",
    "code_interpreter_call",
    "file_search_call",
    "compaction",
    "compaction_summary",
    "context_compaction",
];

/// Whether an item of this type holds what only the provider can read.
pub(super) fn is_encrypted(kind: &str) -> bool {
    matches!(
        kind,
        "compaction" | "compaction_summary" | "context_compaction"
    )
}

#[derive(Deserialize)]
struct Raw<'a> {
    r#type: Option<Arc<str>>,
    role: Option<Arc<str>>,
    call_id: Option<Arc<str>>,
    id: Option<Arc<str>>,
    name: Option<Arc<str>>,
    encrypted_content: Option<Arc<str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
}

/// Reads one item.
pub(super) fn item(raw: &RawValue, assembler: &mut Assembler) -> Item {
    let Ok(item) = serde_json::from_str::<Raw<'_>>(raw.get()) else {
        return Item::Product(vec![unknown("malformed item", raw, assembler)]);
    };
    let kind = item.r#type.clone().unwrap_or_else(|| "untyped".into());
    match &*kind {
        "message" => {
            let blocks = parts(item.content, assembler);
            match item.role.as_deref() {
                _ if blocks.is_empty() => {
                    assembler.skip("message without content");
                    Item::Nothing
                }
                Some("assistant") => Item::Model(blocks),
                Some("user") => Item::Other(blocks),
                _ => Item::Product(blocks),
            }
        }
        "reasoning" => reasoning(&item, raw, assembler),
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
            match call(&kind, &item, assembler) {
                Some(tool_use) => Item::Model(vec![ContentBlock::ToolUse(tool_use)]),
                None => Item::Model(vec![unknown(&kind, raw, assembler)]),
            }
        }
        "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
            let Some(tool_use_id) = item.call_id.clone() else {
                return Item::Other(vec![unknown(&kind, raw, assembler)]);
            };
            let (content, is_error) = match (item.output, item.tools) {
                // What a search for tools found is shown to the model as it stands.
                (None, Some(tools)) => (vec![ContentBlock::Text(tools.get().into())], false),
                (output, _) => told(output, assembler),
            };
            Item::Other(vec![ContentBlock::ToolResult(ToolResult {
                tool_use_id,
                content,
                is_error,
            })])
        }
        "ghost_snapshot" | "other" => {
            assembler.skip(&kind);
            Item::Nothing
        }
        known if KNOWN_OPAQUE.contains(&known) => Item::Model(vec![kept(&kind, raw)]),
        _ => Item::Product(vec![unknown(&kind, raw, assembler)]),
    }
}

fn kept(kind: &str, raw: &RawValue) -> ContentBlock {
    ContentBlock::Opaque(Opaque {
        kind: kind.into(),
        json: JsonText::from(raw),
    })
}

fn unknown(kind: &str, raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    count(&mut assembler.source.unknown, &format!("item {kind}"));
    kept(kind, raw)
}

/// What the model thought: its text where it is shown, the item where it is encrypted.
fn reasoning(item: &Raw<'_>, raw: &RawValue, assembler: &mut Assembler) -> Item {
    let mut texts: Vec<Arc<str>> = Vec::new();
    for list in [item.summary, item.content].into_iter().flatten() {
        for block in parts(Some(list), assembler) {
            if let ContentBlock::Text(text) = block {
                texts.push(text);
            }
        }
    }
    let text: Arc<str> = texts.join("\n\n").into();
    if !text.is_empty() {
        let signature = item.encrypted_content.clone();
        return Item::Model(vec![ContentBlock::Thinking(Thinking { text, signature })]);
    }
    if item.encrypted_content.is_some() {
        return Item::Model(vec![kept("reasoning", raw)]);
    }
    assembler.skip("reasoning that is not shown");
    Item::Nothing
}

fn call(kind: &str, item: &Raw<'_>, assembler: &mut Assembler) -> Option<ToolUse> {
    let id = item.call_id.clone().or_else(|| item.id.clone())?;
    let name: Arc<str> = match (&item.name, kind) {
        (Some(name), _) => name.clone(),
        (None, "local_shell_call") => "local_shell".into(),
        (None, "tool_search_call") => "tool_search".into(),
        (None, _) => return None,
    };
    let text = |raw: &RawValue| serde_json::from_str::<Arc<str>>(raw.get()).ok();
    let input = match (item.arguments.or(item.action), item.input) {
        // Arguments are JSON in a string; a custom tool takes any text.
        (Some(raw), _) => match text(raw) {
            Some(arguments) => JsonText::parse(&arguments).unwrap_or_else(|_| {
                assembler.warn("tool arguments are no JSON; they are kept as a string");
                JsonText::string(&arguments)
            }),
            None => JsonText::from(raw),
        },
        (None, Some(raw)) => JsonText::from(raw),
        (None, None) => {
            assembler.warn("a tool call has no arguments");
            JsonText::string("")
        }
    };
    Some(ToolUse {
        id,
        class: class_of(&name),
        name,
        input,
    })
}

/// A result: a text, a list of parts, or an object with `content` and `success`.
fn told(raw: Option<&RawValue>, assembler: &mut Assembler) -> (Vec<ContentBlock>, bool) {
    #[derive(Deserialize)]
    struct Told<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
        success: Option<bool>,
    }
    let Some(raw) = raw else {
        assembler.warn("a tool result has no output");
        return (Vec::new(), false);
    };
    if let Ok(told) = serde_json::from_str::<Told<'_>>(raw.get()) {
        let is_error = told.success == Some(false);
        return (result_parts(told.content, assembler), is_error);
    }
    (result_parts(raw, assembler), false)
}

fn result_parts(raw: &RawValue, assembler: &mut Assembler) -> Vec<ContentBlock> {
    match raw.get().bytes().next() {
        // An empty result is a result.
        Some(b'"') => match serde_json::from_str::<Arc<str>>(raw.get()) {
            Ok(text) => vec![ContentBlock::Text(text)],
            Err(_) => vec![unknown("output", raw, assembler)],
        },
        Some(b'[') => parts(Some(raw), assembler),
        _ => vec![ContentBlock::Text(raw.get().into())],
    }
}

/// The parts of a message: a text, or a list.
fn parts(raw: Option<&RawValue>, assembler: &mut Assembler) -> Vec<ContentBlock> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else {
        return Vec::new();
    };
    if let Ok(text) = serde_json::from_str::<Arc<str>>(raw.get()) {
        let text = Some(text).filter(|text| !text.is_empty());
        return text.map(ContentBlock::Text).into_iter().collect();
    }
    match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        Ok(parts) => parts.into_iter().map(|raw| part(raw, assembler)).collect(),
        Err(_) => vec![unknown("content", raw, assembler)],
    }
}

fn part(raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    #[derive(Deserialize)]
    struct Part<'a> {
        r#type: Option<Arc<str>>,
        text: Option<Arc<str>>,
        #[serde(borrow)]
        image_url: Option<&'a RawValue>,
    }
    let Ok(part) = serde_json::from_str::<Part<'_>>(raw.get()) else {
        return unknown("malformed part", raw, assembler);
    };
    let kind = part.r#type.as_deref().unwrap_or("untyped");
    let read = match kind {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => {
            part.text.map(ContentBlock::Text)
        }
        "input_image" => part.image_url.map(|source| {
            ContentBlock::Image(Image {
                source: JsonText::from(source),
            })
        }),
        "input_file" | "input_audio" | "refusal" => Some(kept(kind, raw)),
        _ => None,
    };
    read.unwrap_or_else(|| unknown(kind, raw, assembler))
}
