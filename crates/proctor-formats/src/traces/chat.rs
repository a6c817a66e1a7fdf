//! Messages of any library, in the shape of OpenAI's chat API.
//!
//! A message has its parts in `content` or in `parts`. Libraries name them in their own words:
//!
//! | library | a call | a result |
//! |---|---|---|
//! | OpenTelemetry | `{type: "tool_call", id, name, arguments}` | `{type: "tool_call_response", id, response}` |
//! | AI SDK | `{type: "tool-call", toolCallId, toolName, input}` | `{type: "tool-result", toolCallId, output}` |
//! | Gemini | `{functionCall: {name, args}}` | `{functionResponse: {name, response}}` |
//! | Bedrock | `{toolUse: {toolUseId, name, input}}` | `{toolResult: {toolUseId, content, status}}` |
//!
//! The parts of OpenAI's and Anthropic's messages stay as they are.

use super::parsed;
use crate::prelude::*;

/// A message with its parts as content; the results in it are messages of their own, before it.
pub(super) fn messages(message: Value) -> Vec<Value> {
    let Value::Object(mut message) = message else {
        return vec![message];
    };
    let parts = message.remove("parts").filter(|value| !value.is_null());
    let parts = match (parts, message.get("content")) {
        (Some(Value::Array(parts)), _) => parts,
        (Some(other), _) => vec![other],
        (None, Some(Value::Array(parts)))
            if parts.iter().all(|part| part.is_string() || is_part(part)) =>
        {
            parts.clone()
        }
        (None, _) => return vec![as_message(message.into())],
    };
    let (mut messages, mut unnamed, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        if let Some(result) = answered(&part) {
            messages.push(result);
            continue;
        }
        match called(&part) {
            Some([id, name, input]) if id.is_null() => {
                unnamed.push(json!({"function": {"name": name, "arguments": input.to_string()}}));
            }
            Some([id, name, input]) => {
                said.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
            }
            None => said.push(content_part(part)),
        }
    }
    // A message of results alone says nothing else.
    if messages.is_empty() || !said.is_empty() || !unnamed.is_empty() {
        message.insert("content".to_owned(), said.into());
        message.extend((!unnamed.is_empty()).then(|| ("tool_calls".to_owned(), unnamed.into())));
        messages.push(as_message(message.into()));
    }
    messages
}

/// The answers of a call: their parts are of one answer, unless several were asked for.
pub(super) fn choices(answers: Vec<Value>, several: bool) -> Vec<Value> {
    if several || !answers.iter().all(|answer| answer["parts"].is_array()) {
        return answers;
    }
    let mut rest = answers.into_iter();
    let Some(mut first) = rest.next() else {
        return Vec::new();
    };
    for mut other in rest {
        let parts = first["parts"].as_array_mut();
        if let (Some(parts), Value::Array(more)) = (parts, other["parts"].take()) {
            parts.extend(more);
        }
    }
    vec![first]
}

/// Whether it is a part in any list: it says what it is, or is a block of Bedrock's.
pub(in super::super) fn is_part(value: &Value) -> bool {
    let block = value.as_object().filter(|block| block.len() == 1);
    is_named(value) || block.is_some_and(|block| block.keys().all(|key| is_one_of(BLOCKS, key)))
}

/// Whether it says what it is.
pub(super) fn is_named(value: &Value) -> bool {
    value["type"].is_string() || value["toolName"].is_string()
}

/// The keys of Bedrock's blocks.
const BLOCKS: &str = "text toolUse toolResult reasoningContent image document json cachePoint";

/// The first value under one of these keys that is there.
pub(super) fn first<'a>(value: &'a Value, keys: &str) -> Option<&'a Value> {
    keys.split_whitespace().find_map(|key| value.get(key).filter(|value| !value.is_null()))
}

/// The id, the name and the arguments of a call.
fn called(part: &Value) -> Option<[Value; 3]> {
    let call = match part["type"].as_str() {
        Some("tool_call" | "tool-call") => part,
        None if part["toolName"].is_string() => part,
        None => first(part, "functionCall function_call toolUse")?,
        Some(_) => return None,
    };
    let keys = ["id toolCallId toolUseId", "name toolName", "arguments args input"];
    let [id, name, input] = keys.map(|keys| first(call, keys).cloned().unwrap_or_default());
    Some([id, name, parsed(input)])
}

/// Types of outputs of the AI SDK, which are beside their `value`.
const OUTPUTS: &str = "text json content error-text error-json";

/// The message with the result that is in a part.
fn answered(part: &Value) -> Option<Value> {
    let result = match part["type"].as_str() {
        Some("tool_call_response" | "tool-result") => part,
        None => first(part, "functionResponse function_response toolResult")?,
        Some(_) => return None,
    };
    let told = first(result, "response result output content").unwrap_or(&Value::Null);
    let kind = told["type"].as_str().unwrap_or_default();
    let (told, failed) = match (told.get("value"), told.get("output"), told.get("error")) {
        (Some(value), _, _) if is_one_of(OUTPUTS, kind) => (value, kind.starts_with("error")),
        (_, Some(text @ Value::String(_)), _) if part["type"].is_null() => (text, false),
        (_, None, Some(text @ Value::String(_))) if part["type"].is_null() => (text, true),
        _ => (told, false),
    };
    Some(json!({
        "role": "tool", "tool_call_id": first(result, "id toolCallId toolUseId"),
        "name": first(result, "name toolName"), "content": content_of(told.clone()),
        "is_error": failed || result["isError"] == true || result["status"] == "error",
    }))
}

/// The answer of a tool: a text, parts, or any JSON.
fn content_of(told: Value) -> Value {
    match told {
        Value::String(_) => told,
        Value::Null => json!(""),
        Value::Array(all) if all.iter().all(is_part) => all.into_iter().map(content_part).collect(),
        other => json!(other.to_string()),
    }
}

/// A part that is no call and no result.
fn content_part(part: Value) -> Value {
    let image = part["modality"] == "image";
    match (part["type"].as_str(), part["content"].as_str()) {
        (None, None) => untyped(part),
        (Some("text"), Some(said)) => json!({"type": "text", "text": said}),
        (Some("reasoning"), Some(thought)) => thinking(thought, &part["signature"]),
        (Some("blob"), Some(data)) if image => {
            let source = json!({"type": "base64", "media_type": part["mime_type"], "data": data});
            json!({"type": "image", "source": source})
        }
        // The provider wrote a summary, and did not show it.
        (Some("compaction"), None) if part["content"].is_null() => {
            let id = part["id"].as_str().unwrap_or_default();
            json!({"type": "compaction", "encrypted_content": id})
        }
        (Some("uri"), _) if image => {
            json!({"type": "image_url", "image_url": {"url": part["uri"]}})
        }
        _ => part,
    }
}

fn thinking(thought: &str, signature: &Value) -> Value {
    json!({"type": "thinking", "thinking": thought, "signature": signature})
}

/// A part of Gemini's, or a block of Bedrock's.
fn untyped(part: Value) -> Value {
    let reasoning = &part["reasoningContent"]["reasoningText"];
    if let Some(thought) = reasoning["text"].as_str() {
        thinking(thought, &reasoning["signature"])
    } else if let Some(said) = part["text"].as_str() {
        if part["thought"] == true {
            thinking(said, &part["thoughtSignature"])
        } else {
            json!({"type": "text", "text": said})
        }
    } else if let Some(data) = first(&part, "inlineData inline_data image") {
        json!({"type": "image", "source": data})
    } else if let Some(document) = part.get("document") {
        json!({"type": "document", "source": document})
    } else if let Some(told) = part.get("json") {
        json!({"type": "text", "text": told.to_string()})
    } else {
        part
    }
}

/// A message as OpenAI's chat API has it.
fn as_message(message: Value) -> Value {
    let Value::Object(mut message) = message else {
        return message;
    };
    let role = match message.get("role").and_then(Value::as_str) {
        Some("model" | "ai") => Some("assistant"),
        Some("human") => Some("user"),
        _ => None,
    };
    message.extend(role.map(|role| ("role".to_owned(), json!(role))));
    // The call is billed where the trace says so.
    for known in ["finish_reason", "stop_reason", "stop_sequence", "usage"] {
        message.shift_remove(known);
    }
    if message.get("role").is_some_and(|role| role == "tool") {
        let id = message.shift_remove("id").filter(|_| !message.contains_key("tool_call_id"));
        message.extend(id.map(|id| ("tool_call_id".to_owned(), id)));
        let told = message.get_mut("content");
        if let Some(told) = told.filter(|told| told.is_object() || is_list_of_others(told)) {
            *told = json!(told.to_string());
        }
    }
    let calls = message.get("tool_calls").is_some_and(Value::is_array);
    let others = message.get("additional_kwargs").map(|value| value["tool_calls"].clone());
    let beside = others.filter(|beside| !calls && beside.is_array());
    message.extend(beside.map(|beside| ("tool_calls".to_owned(), beside)));
    let parts = message.get("content").and_then(Value::as_array);
    let ids = parts.into_iter().flatten().map(|part| &part["id"]);
    let said: BTreeSet<String> = ids.filter_map(|id| Some(id.as_str()?.to_owned())).collect();
    if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
        // A call that stands in the content too is the same.
        calls.retain(|call| call["id"].as_str().is_none_or(|id| !said.contains(id)));
        calls.iter_mut().for_each(as_function);
    }
    message.into()
}

fn is_list_of_others(value: &Value) -> bool {
    value.as_array().into_iter().flatten().any(|item| !item.is_string() && !is_part(item))
}

/// A call with its name and its arguments as a text in `function`.
fn as_function(call: &mut Value) {
    let name = first(call, "name toolName").filter(|value| value.is_string());
    let flat = name.is_some();
    let arguments =
        if flat { first(call, "args arguments input") } else { call["function"].get("arguments") };
    let arguments = match arguments {
        Some(Value::String(_)) if !flat => return,
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => return,
    };
    if flat {
        *call = json!({"id": first(call, "id toolCallId"), "function": {"name": name}});
    }
    call["function"]["arguments"] = json!(arguments);
}
