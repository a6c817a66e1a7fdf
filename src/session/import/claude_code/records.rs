//! The lines of a Claude Code recording, read as leniently as they are useful.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::session::import::tool_names::class_of;
use crate::session::{ContentBlock, Image, JsonText, Opaque, Thinking, ToolResult, ToolUse};
use crate::units::{Timestamp, Tokens, Usage};

/// One line. Keys that are not here are no part of the conversation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record<'a> {
    pub(super) r#type: Option<Arc<str>>,
    pub(super) subtype: Option<Arc<str>>,
    pub(super) uuid: Option<Arc<str>>,
    pub(super) parent_uuid: Option<Arc<str>>,
    pub(super) logical_parent_uuid: Option<Arc<str>>,
    pub(super) agent_id: Option<Arc<str>>,
    pub(super) request_id: Option<Arc<str>>,
    pub(super) is_sidechain: Option<bool>,
    pub(super) is_meta: Option<bool>,
    pub(super) is_compact_summary: Option<bool>,
    pub(super) is_api_error_message: Option<bool>,
    #[serde(borrow)]
    pub(super) timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) attachment: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) compact_metadata: Option<&'a RawValue>,
}

/// The `message` of a user or assistant record, as the provider's API has it.
#[derive(Deserialize)]
pub(super) struct ApiMessage<'a> {
    pub(super) id: Option<Arc<str>>,
    pub(super) model: Option<Arc<str>>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) usage: Option<Value>,
}

/// The `compactMetadata` of a boundary.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CompactMetadata {
    pub(super) trigger: Option<Arc<str>>,
    pub(super) pre_tokens: Option<Value>,
    pub(super) preserved_messages: Option<Preserved>,
    pub(super) preserved_segment: Option<Preserved>,
}

/// Records before a boundary that stayed in the context.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Preserved {
    pub(super) anchor_uuid: Option<Arc<str>>,
    pub(super) uuids: Option<Vec<Arc<str>>>,
    pub(super) head_uuid: Option<Arc<str>>,
    pub(super) tail_uuid: Option<Arc<str>>,
}

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
pub(super) enum Speaker {
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
    "container_upload",
    "compaction",
];

/// The blocks of a message's `content`: a string, or a list. Calls `unknown` for each block that
/// is kept without being understood.
pub(super) fn blocks(
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
pub(super) fn usage(value: &Value, warn: &mut dyn FnMut(&str)) -> Usage {
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

/// An RFC 3339 time, or milliseconds since 1970; none if it is neither.
pub(super) fn timestamp(raw: &RawValue) -> Option<Timestamp> {
    match serde_json::from_str(raw.get()).ok()? {
        Value::String(text) => text
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|time| Timestamp(time.as_millisecond())),
        Value::Number(number) => number.as_i64().map(Timestamp),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
