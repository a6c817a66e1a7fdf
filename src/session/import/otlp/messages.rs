//! Messages of the conventions, in the shape of OpenAI's chat API.

use serde_json::json;

use super::super::prelude::*;
use super::super::traces::{chat_message, parsed};
use super::Attributes;

/// The messages of an attribute: a list, or one message, or the parts or the text of one.
pub(super) fn list(value: Value, role: &str) -> Vec<Value> {
    match value {
        Value::Array(messages) => messages,
        one if one.get("role").is_some() => vec![one],
        parts => vec![json!({"role": role, "parts": parts})],
    }
}

/// The answers of a call: one, unless several were asked for.
pub(super) fn choices(answers: Vec<Value>, asked_for: u64) -> Vec<Value> {
    if asked_for > 1 || !answers.iter().all(|it| it["parts"].is_array()) {
        return answers;
    }
    let mut answers = answers.into_iter();
    let Some(mut first) = answers.next() else {
        return Vec::new();
    };
    for mut other in answers {
        let parts = first["parts"].as_array_mut();
        if let (Some(parts), Value::Array(more)) = (parts, other["parts"].take()) {
            parts.extend(more);
        }
    }
    vec![first]
}

/// The content that a text holds as JSON, if it is a list of parts.
pub(super) fn content(value: Value) -> Value {
    match parsed(value.clone()) {
        Value::Array(parts) if parts.iter().all(|it| it["type"].is_string()) => parts.into(),
        _ => value,
    }
}

/// The messages that `OpenLLMetry` writes with an attribute for each field: `gen_ai.prompt.0.role`.
pub(super) fn flat(attributes: &mut Attributes, prefix: &str) -> Vec<Value> {
    type Fields = serde_json::Map<String, Value>;
    let mut messages: BTreeMap<usize, (Fields, BTreeMap<usize, Fields>)> = BTreeMap::new();
    attributes.retain(|key, value| {
        let Some((at, field)) = key.strip_prefix(prefix).and_then(|it| it.split_once('.')) else {
            return true;
        };
        let Ok(at) = at.parse() else {
            return true;
        };
        let (fields, calls) = messages.entry(at).or_default();
        let call = field.strip_prefix("tool_calls.");
        let call = call.and_then(|it| it.split_once('.'));
        match call.and_then(|(at, field)| Some((at.parse().ok()?, field))) {
            Some((at, field)) => {
                let call: &mut Fields = calls.entry(at).or_default();
                call.insert(field.to_owned(), value.take());
            }
            None => drop(fields.insert(field.to_owned(), value.take())),
        }
        false
    });
    let messages = messages.into_values().map(|(mut fields, calls)| {
        let said = fields.remove("content").map(content).unwrap_or_default();
        let mut parts = match (fields.remove("tool_call_id"), said) {
            (Some(id), said) => {
                vec![json!({"type": "tool_call_response", "id": id, "response": said})]
            }
            (None, Value::Array(parts)) => parts,
            (None, Value::Null) => Vec::new(),
            (None, other) => vec![other],
        };
        for mut call in calls.into_values() {
            call.insert("type".to_owned(), json!("tool_call"));
            parts.push(call.into());
        }
        fields.insert("parts".to_owned(), parts.into());
        fields.into()
    });
    messages.collect()
}

/// A message with its parts as content; the results in it are messages of their own, before it.
pub(super) fn chat(message: Value) -> Vec<Value> {
    let Value::Object(mut message) = message else {
        return vec![message];
    };
    let parts = match message.remove("parts") {
        Some(Value::Array(parts)) => parts,
        Some(Value::Null) | None => return vec![chat_message(message.into())],
        Some(other) => vec![other],
    };
    let (mut messages, mut unnamed, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for mut part in parts {
        let arguments = part.get_mut("arguments").map(Value::take).map(parsed);
        match (part["type"].as_str(), &part["id"], &part["name"]) {
            (Some("tool_call_response"), id, _) => {
                let keys = ["response", "result", "content"];
                let told = keys.iter().map(|key| part[*key].clone());
                let told = told.into_iter().find(|it| !it.is_null());
                messages.push(json!({
                    "role": "tool",
                    "tool_call_id": id,
                    "content": result(told.unwrap_or_default()),
                }));
            }
            (Some("tool_call"), Value::Null, name @ Value::String(_)) => {
                let arguments = arguments.unwrap_or_default().to_string();
                unnamed.push(json!({"function": {"name": name, "arguments": arguments}}));
            }
            (Some("tool_call"), id, name) => {
                said.push(json!({"type": "tool_use", "id": id, "name": name, "input": arguments}));
            }
            _ => {
                if let Some(arguments) = arguments {
                    part["arguments"] = arguments;
                }
                said.push(content_part(part));
            }
        }
    }
    // A message of results alone says nothing else.
    if messages.is_empty() || !said.is_empty() || !unnamed.is_empty() {
        message.insert("content".to_owned(), said.into());
        if !unnamed.is_empty() {
            message.insert("tool_calls".to_owned(), unnamed.into());
        }
        messages.push(chat_message(message.into()));
    }
    messages
}

/// What a tool answered: a text, parts, or any JSON.
fn result(told: Value) -> Value {
    match told {
        Value::String(_) => told,
        Value::Null => json!(""),
        Value::Array(parts) if parts.iter().all(|it| it["type"].is_string()) => {
            parts.into_iter().map(content_part).collect()
        }
        other => json!(other.to_string()),
    }
}

fn content_part(part: Value) -> Value {
    let text = |key: &str| part[key].as_str();
    let is_image = text("modality") == Some("image");
    match (text("type"), text("content")) {
        (Some("text"), Some(said)) => json!({"type": "text", "text": said}),
        (Some("reasoning"), Some(thought)) => {
            json!({"type": "thinking", "thinking": thought, "signature": part["signature"]})
        }
        (Some("blob"), Some(data)) if is_image => {
            let media = &part["mime_type"];
            let source = json!({"type": "base64", "media_type": media, "data": data});
            json!({"type": "image", "source": source})
        }
        (Some("uri"), _) if is_image => {
            json!({"type": "image_url", "image_url": {"url": part["uri"]}})
        }
        _ => part,
    }
}
