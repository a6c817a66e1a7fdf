//! Tool results that were changed, put into the agent's own items.
//!
//! Everything else in an item (its kind, a cache breakpoint, unknown keys) stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use serde_json::{Value, json};

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
    let mut unnamed = 0;
    let written = items.iter().map(|item| {
        let mut value: Value = serde_json::from_str(item.get()).ok()?;
        let before = texts.len();
        unnamed += usize::from(value["role"] == "function");
        let own = format!("unnamed-result-{unnamed}");
        texts.retain(|(id, text)| {
            (id.starts_with("unnamed-result-") && *id != own) || !put(&mut value, id, text)
        });
        Some(if texts.len() == before { item.get().to_owned() } else { value.to_string() })
    });
    let items = written.collect::<Option<Vec<String>>>()?;
    texts.is_empty().then_some(items)
}

/// Puts calls and results back as the agent sent them: a result answers a call of its own kind. One that was changed has
/// its new words, where its kind has a place for them. `old` is the message as it would be written anew.
pub(super) fn keep_kinds(items: &mut [String], sent: &[&RawValue], old: Vec<String>) {
    let old: BTreeSet<String> = old.into_iter().collect();
    let known = sent.iter().filter_map(|own| Some((call_of(own.get())?, own.get())));
    let known: BTreeMap<(bool, String), &str> = known.collect();
    for item in items {
        let Some(call) = call_of(item) else { continue };
        let Some(own) = known.get(&call) else { continue };
        if old.contains(&*item) {
            (*own).clone_into(item);
        } else if let Some(changed) = reworded(own, &call.1, item) {
            *item = changed;
        }
    }
}

/// A call or a result with the words of one that was written anew.
fn reworded(own: &str, id: &str, item: &str) -> Option<String> {
    let mut own: Value = serde_json::from_str(own).ok()?;
    let mut new: Value = serde_json::from_str(item).ok()?;
    if new["type"] == "function_call_output" {
        put(&mut own, id, new["output"].as_str()?);
    } else if let Some(key) = ["arguments", "input"].into_iter().find(|key| own[*key].is_string()) {
        own[key] = new["arguments"].take();
    }
    Some(own.to_string())
}

/// Whether an item is a result, and the id of the call that it is or answers.
fn call_of(item: &str) -> Option<(bool, String)> {
    let item: Value = serde_json::from_str(item).ok()?;
    let kind = item["type"].as_str()?;
    let id = item["call_id"].as_str().or_else(|| item["id"].as_str())?;
    let result = kind.ends_with("_output");
    (result || kind.ends_with("_call")).then(|| (result, id.to_owned()))
}

/// Puts a text into the result with this id, in the words of any of the APIs; whether it is there.
fn put(item: &mut Value, id: &str, text: &str) -> bool {
    // The result of a function of the old kind has no id, and was given one.
    let unnamed = item["role"] == "function" && id.starts_with("unnamed-result");
    let key = if unnamed || item["tool_call_id"] == id {
        "content"
    } else if item["call_id"] == id && item["type"] == "shell_call_output" {
        // A list, with how the command ended.
        let ended = item.pointer_mut("/output/0/outcome");
        let outcome = ended.map_or_else(|| json!({"type": "exit", "exit_code": 0}), Value::take);
        item["output"] = json!([{"stdout": text, "stderr": "", "outcome": outcome}]);
        return true;
    } else if item["call_id"] == id && (item["output"].is_string() || item["output"].is_array()) {
        // A screenshot, which is an object, has no place for words.
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
