//! The blocks and counters of Anthropic's messages API, read as leniently as they are useful.
//!
//! Products that speak to this API keep its blocks in their own records.

use serde::Deserialize;

use super::super::prelude::*;
use crate::session::import::content::{image, kept};
use crate::session::import::product::is_one_of;

/// A block; which keys it has depends on its type.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
struct Block<'a> {
    r#type: Option<Arc<str>>,
    text: Option<Arc<str>>,
    thinking: Option<Arc<str>>,
    signature: Option<Arc<str>>,
    id: Option<Arc<str>>,
    name: Option<Arc<str>>,
    input: Option<&'a RawValue>,
    tool_use_id: Option<Arc<str>>,
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
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
const KNOWN_OPAQUE: &str = "redacted_thinking document search_result tool_reference server_tool_use \
    web_search_tool_result web_fetch_tool_result code_execution_tool_result \
    bash_code_execution_tool_result text_editor_code_execution_tool_result \
    tool_search_tool_result mcp_tool_use mcp_tool_result mcp_tool_listing tool_addition \
    tool_removal browser_state container_upload compaction fallback";

/// The blocks of a message's `content`: a string, or a list. Each block that is kept without being
/// understood is counted.
pub(in crate::session::import) fn blocks(
    content: Option<&RawValue>,
    speaker: Speaker,
    source: &mut Source,
) -> Vec<ContentBlock> {
    let Some(content) = content else {
        return Vec::new();
    };
    let text = content.get();
    if let Ok(text) = serde_json::from_str::<Arc<str>>(text) {
        let is_said = !text.is_empty() || speaker == Speaker::Tool;
        let said = is_said.then_some(ContentBlock::Text(text));
        return said.into_iter().collect();
    }
    match serde_json::from_str::<Vec<&RawValue>>(text) {
        Ok(items) => items
            .into_iter()
            .map(|item| block(item, speaker, source))
            .collect(),
        Err(_) => vec![opaque("content", content, source)],
    }
}

/// One block of a message.
pub(in crate::session::import) fn block(
    raw: &RawValue,
    speaker: Speaker,
    source: &mut Source,
) -> ContentBlock {
    let Ok(block) = serde_json::from_str::<Block<'_>>(raw.get()) else {
        return opaque("malformed", raw, source);
    };
    let kind = block.r#type.clone().unwrap_or_else(|| Arc::from("untyped"));
    let read = match (&*kind, speaker) {
        ("text", _) => block.text.map(ContentBlock::Text),
        ("thinking", Speaker::Assistant) => {
            let text = block.thinking.unwrap_or_default();
            Some(ContentBlock::thinking(text, block.signature))
        }
        ("tool_use", Speaker::Assistant) => block
            .id
            .zip(block.name)
            .map(|(id, name)| ContentBlock::tool_use(id, name, input(block.input))),
        ("tool_result", Speaker::User) => block.tool_use_id.map(|id| {
            let content = blocks(block.content, Speaker::Tool, source);
            ContentBlock::tool_result(id, content, block.is_error.unwrap_or_default())
        }),
        ("image", _) => block.source.map(image),
        (known, _) if is_one_of(KNOWN_OPAQUE, known) => Some(kept(&kind, raw)),
        _ => None,
    };
    read.unwrap_or_else(|| opaque(&kind, raw, source))
}

fn opaque(kind: &str, raw: &RawValue, source: &mut Source) -> ContentBlock {
    source.not_understood(&format!("block {kind}"));
    kept(kind, raw)
}

/// The five counters of a call.
///
/// `input_tokens` does not include the cached ones. Cache writes are split by lifetime where the
/// record says so; otherwise they are of the five-minute kind, the only one there was.
pub(in crate::session::import) fn usage(value: &Value, source: &mut Source) -> Usage {
    let keys = [
        "/cache_creation_input_tokens",
        "/input_tokens",
        "/cache_read_input_tokens",
        "/output_tokens",
    ];
    let [written, uncached, read, output] = counters(value, keys, source);
    let of_minutes = counter(value, "/cache_creation/ephemeral_5m_input_tokens", source);
    let of_hours = counter(value, "/cache_creation/ephemeral_1h_input_tokens", source);
    let hours = of_hours.unwrap_or_default();
    let minutes = match (of_minutes, of_hours) {
        (Some(minutes), _) if minutes.saturating_add(hours) >= written => minutes,
        _ => written.saturating_sub(hours),
    };
    Usage {
        cache_write_1h: Tokens(hours),
        ..billed(uncached, minutes, read, output)
    }
}
