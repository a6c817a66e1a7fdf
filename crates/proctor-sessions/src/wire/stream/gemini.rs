//! The stream of Gemini's `generateContent`: each event is a response with the parts that came.
//!
//! Source: <https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent>. Without `alt=sse` the
//! stream is one JSON array of them. Google's own tools get each under `response` (Code Assist).

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::append;

/// The answer, or the error, in bytes that are not server-sent events: an object, or an array of a stream.
pub(super) fn whole(bytes: &[u8]) -> Option<Box<RawValue>> {
    let Ok(events) = serde_json::from_slice::<Vec<Value>>(bytes) else {
        return serde_json::from_slice(bytes).ok();
    };
    let mut whole = Value::Null;
    let mut is_complete = false;
    for event in events {
        is_complete |= add(&mut whole, event);
    }
    let raw = serde_json::value::to_raw_value(&whole).ok();
    raw.filter(|_| is_complete || whole["error"].is_object())
}

/// Adds an event to the answer. Returns whether it is the last, but for counters.
pub(super) fn add(whole: &mut Value, mut event: Value) -> bool {
    if event["response"].is_object() {
        event = event["response"].take();
    }
    let Value::Object(event) = event else {
        return false;
    };
    if !whole.is_object() {
        *whole = json!({});
    }
    let mut is_complete = false;
    for (key, mut value) in event {
        if key == "candidates" {
            // Of several candidates the first is the answer.
            let candidate = value.get_mut(0).map(Value::take).unwrap_or_default();
            is_complete = candidate["finishReason"].is_string();
            add_candidate(whole, candidate);
        } else {
            is_complete |= key == "promptFeedback" && value["blockReason"].is_string();
            whole[key] = value;
        }
    }
    is_complete
}

fn add_candidate(whole: &mut Value, candidate: Value) {
    if !whole["candidates"].is_array() {
        whole["candidates"] = json!([{"content": {"role": "model", "parts": []}}]);
    }
    let known = &mut whole["candidates"][0];
    let Value::Object(candidate) = candidate else {
        return;
    };
    for (key, mut value) in candidate {
        if key != "content" {
            known[key] = value;
            continue;
        }
        let parts = value.get_mut("parts").map(Value::take);
        let Some(Value::Array(parts)) = parts else {
            continue;
        };
        if let Some(said) = known["content"]["parts"].as_array_mut() {
            for part in parts {
                add_part(said, part);
            }
        }
    }
}

/// Adds a part; a text goes on with the one before it.
fn add_part(said: &mut Vec<Value>, mut part: Value) {
    let (Some(text), Some(last)) = (part["text"].as_str(), said.last_mut()) else {
        return said.push(part);
    };
    if !last["text"].is_string() || (last["thought"] == true) != (part["thought"] == true) {
        return said.push(part);
    }
    append(last, "text", text);
    if part["thoughtSignature"].is_string() {
        last["thoughtSignature"] = part["thoughtSignature"].take();
    }
}

#[cfg(test)]
mod tests;
