//! Tool results that were changed, put into the agent's own items.
//!
//! Everything else in an item (its kind, a cache breakpoint, unknown keys) stays as it is.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::session::ContentBlock;

/// The items with the texts of these blocks; `None` where anything but texts of tool results was changed.
pub(super) fn changed(
    items: &[&RawValue],
    old: &[ContentBlock],
    new: &[ContentBlock],
) -> Option<Vec<String>> {
    if old.len() != new.len() {
        return None;
    }
    let pairs = old.iter().zip(new).filter(|(old, new)| old != new);
    let texts = pairs.map(|(old, new)| match (old, new) {
        (ContentBlock::ToolResult(old), ContentBlock::ToolResult(new))
            if old.tool_use_id == new.tool_use_id && old.is_error == new.is_error =>
        {
            match &new.content[..] {
                [ContentBlock::Text(text)] => Some((&*new.tool_use_id, &**text)),
                _ => None,
            }
        }
        _ => None,
    });
    let mut texts: Vec<(&str, &str)> = texts.collect::<Option<_>>()?;
    let written = items.iter().map(|item| {
        let mut value: Value = serde_json::from_str(item.get()).ok()?;
        let before = texts.len();
        texts.retain(|(id, text)| !put(&mut value, id, text));
        Some(if texts.len() == before { item.get().to_owned() } else { value.to_string() })
    });
    let items = written.collect::<Option<Vec<String>>>()?;
    texts.is_empty().then_some(items)
}

/// Puts a text into the result with this id, in the words of any of the APIs; whether it is there.
fn put(item: &mut Value, id: &str, text: &str) -> bool {
    let key = if item["tool_call_id"] == id {
        "content"
    } else if item["call_id"] == id && item.get("output").is_some() {
        "output"
    } else {
        let mut parts = item.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
        let part = parts.find(|part| part["type"] == "tool_result" && part["tool_use_id"] == id);
        return part.is_some_and(|part| {
            part["content"] = text.into();
            true
        });
    };
    item[key] = text.into();
    true
}
