//! Messages in the attributes of the conventions.

use super::super::traces::{is_part, parsed};
use super::Attributes;
use crate::prelude::*;

/// The messages of an attribute: a list, or one message, or the parts or the text of one.
pub(super) fn list(value: Value, role: &str) -> Vec<Value> {
    match value {
        Value::Array(messages) => messages,
        one if one.get("role").is_some() => vec![one],
        parts => vec![json!({"role": role, "parts": parts})],
    }
}

/// The content that a text holds as JSON, if it is a list of parts or blocks.
pub(super) fn content(value: Value) -> Value {
    match parsed(value.clone()) {
        Value::Array(parts) if parts.iter().all(is_part) => parts.into(),
        _ => value,
    }
}

/// The answer that the AI SDK writes in attributes of its own.
pub(super) fn ai_sdk_answer(attributes: &mut Attributes) -> Option<Value> {
    let [reasoning, text, object, made] = ["reasoning", "text", "object", "toolCalls"]
        .map(|key| attributes.remove(&format!("ai.response.{key}")).filter(|value| value != ""));
    let thought = reasoning.map(|text| json!({"type": "reasoning", "content": text}));
    let said = text.or(object).map(|text| json!({"type": "text", "content": text}));
    let calls = made.map(parsed).and_then(|mut calls| calls.as_array_mut().map(std::mem::take));
    let parts: Vec<Value> =
        thought.into_iter().chain(said).chain(calls.into_iter().flatten()).collect();
    (!parts.is_empty()).then(|| json!({"role": "assistant", "parts": parts}))
}

/// The messages that `OpenLLMetry` writes with an attribute for each field: `gen_ai.prompt.0.role`.
pub(super) fn flat(attributes: &mut Attributes, prefix: &str) -> Vec<Value> {
    type Fields = serde_json::Map<String, Value>;
    let mut messages: BTreeMap<usize, (Fields, BTreeMap<usize, Fields>)> = BTreeMap::new();
    attributes.retain(|key, value| {
        let Some((at, field)) = key.strip_prefix(prefix).and_then(|one| one.split_once('.')) else {
            return true;
        };
        let Ok(at) = at.parse() else { return true };
        let (fields, calls) = messages.entry(at).or_default();
        let call = field.strip_prefix("tool_calls.").and_then(|call| call.split_once('.'));
        match call.and_then(|(at, field)| Some((at.parse().ok()?, field))) {
            Some((at, field)) => {
                calls.entry(at).or_default().insert(field.to_owned(), value.take());
            }
            None => drop(fields.insert(field.to_owned(), value.take())),
        }
        false
    });
    let joined = messages.into_values().map(|(mut fields, calls)| {
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
    joined.collect()
}
