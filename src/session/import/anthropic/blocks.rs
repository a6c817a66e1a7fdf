//! The blocks and counters of Anthropic's messages API, read as leniently as they are useful.
//!
//! Products that speak to this API keep its blocks in their own records.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::session::import::tool_names::class_of;
use crate::session::{ContentBlock, Image, JsonText, Opaque, Thinking, ToolResult, ToolUse};
use crate::units::{Tokens, Usage};

/// A block; which keys it has depends on its type.
#[derive(Deserialize)]
struct Block<'a> {
    r#type: Option<Arc<str>>,
    text: Option<Arc<str>>,
    thinking: Option<Arc<str>>,
    signature: Option<Arc<str>>,
    id: Option<Arc<str>>,
    name: Option<Arc<str>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    tool_use_id: Option<Arc<str>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
}

/// Whose message a block stands in: a session holds tool uses only in assistant messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session::import) enum Speaker {
    User,
    Assistant,
    Tool,
}

/// Types of blocks that the provider documents and Proctor keeps as they are.
const KNOWN_OPAQUE: &[&str] = &[
    "redacted_thinking",
    "document",
    "search_result",
    "tool_reference",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "tool_addition",
    "tool_removal",
    "browser_state",
    "container_upload",
    "compaction",
    "fallback",
];

/// The blocks of a message's `content`: a string, or a list. Calls `unknown` for each block that
/// is kept without being understood.
pub(in crate::session::import) fn blocks(
    content: Option<&RawValue>,
    speaker: Speaker,
    unknown: &mut dyn FnMut(&str),
) -> Vec<ContentBlock> {
    let Some(content) = content else {
        return Vec::new();
    };
    let text = content.get();
    match text.bytes().next() {
        Some(b'"') => match serde_json::from_str::<Arc<str>>(text) {
            Ok(text) if text.is_empty() && speaker != Speaker::Tool => Vec::new(),
            Ok(text) => vec![ContentBlock::Text(text)],
            Err(_) => vec![opaque("content", content, unknown)],
        },
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(items) => items
                .into_iter()
                .map(|item| block(item, speaker, unknown))
                .collect(),
            Err(_) => vec![opaque("content", content, unknown)],
        },
        _ => vec![opaque("content", content, unknown)],
    }
}

fn block(raw: &RawValue, speaker: Speaker, unknown: &mut dyn FnMut(&str)) -> ContentBlock {
    let Ok(block) = serde_json::from_str::<Block<'_>>(raw.get()) else {
        return opaque("malformed", raw, unknown);
    };
    let kind = block.r#type.clone().unwrap_or_else(|| Arc::from("untyped"));
    let read = match (&*kind, speaker) {
        ("text", _) => block.text.map(ContentBlock::Text),
        ("thinking", Speaker::Assistant) => Some(ContentBlock::Thinking(Thinking {
            text: block.thinking.unwrap_or_else(|| Arc::from("")),
            signature: block.signature,
        })),
        ("tool_use", Speaker::Assistant) => block.id.zip(block.name).map(|(id, name)| {
            ContentBlock::ToolUse(ToolUse {
                id,
                class: class_of(&name),
                name,
                input: block
                    .input
                    .map_or_else(|| JsonText::of(&Value::Null), JsonText::from),
            })
        }),
        ("tool_result", Speaker::User) => block.tool_use_id.map(|tool_use_id| {
            ContentBlock::ToolResult(ToolResult {
                tool_use_id,
                content: blocks(block.content, Speaker::Tool, unknown),
                is_error: block.is_error.unwrap_or_default(),
            })
        }),
        ("image", _) => block.source.map(|source| {
            ContentBlock::Image(Image {
                source: JsonText::from(source),
            })
        }),
        (known, _) if KNOWN_OPAQUE.contains(&known) => Some(kept(&kind, raw)),
        _ => None,
    };
    read.unwrap_or_else(|| opaque(&kind, raw, unknown))
}

fn kept(kind: &str, raw: &RawValue) -> ContentBlock {
    ContentBlock::Opaque(Opaque {
        kind: kind.into(),
        json: JsonText::from(raw),
    })
}

fn opaque(kind: &str, raw: &RawValue, unknown: &mut dyn FnMut(&str)) -> ContentBlock {
    unknown(&format!("block {kind}"));
    kept(kind, raw)
}

/// The five counters of a call. Calls `warn` for each that is no count.
///
/// `input_tokens` does not include the cached ones. Cache writes are split by lifetime where the
/// record says so; otherwise they are of the five-minute kind, the only one there was.
pub(in crate::session::import) fn usage(value: &Value, warn: &mut dyn FnMut(&str)) -> Usage {
    let mut counter = |pointer: &str| match value.pointer(pointer) {
        None | Some(Value::Null) => None,
        Some(found) => {
            let count = found.as_u64();
            if count.is_none() {
                warn("a usage counter is no count and was taken as zero");
            }
            count
        }
    };
    let written = counter("/cache_creation_input_tokens").unwrap_or_default();
    let minutes_told = counter("/cache_creation/ephemeral_5m_input_tokens");
    let hours_told = counter("/cache_creation/ephemeral_1h_input_tokens");
    let hours = hours_told.unwrap_or_default();
    let minutes = match (minutes_told, hours_told) {
        (Some(minutes), _) if minutes.saturating_add(hours) >= written => minutes,
        _ => written.saturating_sub(hours),
    };
    Usage {
        input_uncached: Tokens(counter("/input_tokens").unwrap_or_default()),
        cache_write_5m: Tokens(minutes),
        cache_write_1h: Tokens(hours),
        cache_read: Tokens(counter("/cache_read_input_tokens").unwrap_or_default()),
        output: Tokens(counter("/output_tokens").unwrap_or_default()),
    }
}
