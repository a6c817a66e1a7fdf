//! Detects logs of API calls, and whose API they speak.
//!
//! Other products keep messages in similar shapes. Their importers are asked before.

use super::bodies;
use super::prelude::*;

/// How many records are looked at.
const SEEN: usize = 50;

/// Keys that only Anthropic's messages API has, or only OpenAI's chat completions.
const KEYS: [&str; 2] = [
    "anthropic_version input_schema input_tokens stop_reason tool_use_id",
    "choices function_call functions prompt_tokens reasoning_content refusal tool_call_id \
     tool_calls",
];

/// The same for types and roles.
const TYPES: [&str; 2] = [
    "document image message redacted_thinking search_result server_tool_use thinking \
     tool_result tool_use",
    "developer file function image_url input_audio refusal system tool",
];

/// The API of the file's conversations, or none if it holds something else. If nothing shows it, it
/// is OpenAI's chat completions: plain texts have the same shape in both APIs.
pub(super) fn api_of(head: &Head) -> Option<Api> {
    let records: Vec<Value> = head.values.iter().take(SEEN).map(bodies::seen).collect();
    let first = match records.first()? {
        Value::Array(items) => &bodies::seen(items.first()?),
        first => first,
    };
    if is_of_responses(first) {
        return Some(Api::Responses);
    }
    let (mut found, mut foreign) = (0, 0);
    let mut votes = [0, 0];
    for record in &records {
        match messages(record).filter(|messages| messages.iter().all(is_message)) {
            Some(messages) => {
                found += messages.len();
                vote(record, &mut votes);
            }
            None => foreign += 1,
        }
    }
    // A foreign line costs itself alone; a file of half such lines is something else.
    if foreign * 2 >= records.len() {
        return None;
    }
    match votes {
        [0, 0] if found == 0 => None,
        [anthropic, openai] if anthropic > openai => Some(Api::Messages),
        _ => Some(Api::ChatCompletions),
    }
}

/// The messages in a message, a conversation, or a list of either; none if it is something else.
fn messages(record: &Value) -> Option<Vec<Value>> {
    if let Value::Array(items) = record {
        let lists = items.iter().take(SEEN).map(|item| match item {
            Value::Array(messages) => Some(messages.clone()),
            item => messages(&bodies::seen(item)),
        });
        return Some(lists.collect::<Option<Vec<_>>>()?.concat());
    }
    match record.get("messages") {
        Some(messages) => messages.as_array().cloned(),
        None if is_shaped(record, "role") => Some(vec![record.clone()]),
        None if is_shaped(record, "input,output") => None,
        // The head was cut before the messages.
        None => is_shaped(record, "model,max_tokens,tools").then(Vec::new),
    }
}

fn is_message(message: &Value) -> bool {
    let Some(object) = message.as_object() else {
        return false;
    };
    let known_role = match object.get("role") {
        Some(Value::String(role)) => {
            is_one_of("user assistant session_meta", role) || is_one_of(TYPES[1], role)
        }
        Some(_) => false,
        // The head was cut before it.
        None => object.keys().all(|key| key == "content"),
    };
    // A message says something, unless the head was cut behind its first key.
    let mut words = ["content", "tool_calls", "function_call"].iter();
    let says = object.len() <= 1 || words.any(|key| object.contains_key(*key));
    let mut calls = object.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    // Other products have the calls flat.
    known_role
        && says
        && !calls.any(|call: &Value| call.get("name").is_some() || call.get("args").is_some())
        && match object.get("content") {
            None | Some(Value::Null | Value::String(_)) => true,
            // Items of the responses API, and of the AI SDK.
            Some(Value::Array(parts)) => !parts.iter().any(|part| {
                let kind = part.get("type").and_then(Value::as_str);
                let others = ["input_text", "output_text", "tool-call", "tool-result"];
                kind.is_some_and(|kind| others.contains(&kind))
            }),
            Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => false,
        }
}

/// Counts what only Anthropic's API has, and what only OpenAI's.
fn vote(value: &Value, votes: &mut [usize; 2]) {
    let entries = match value {
        Value::Array(items) => return items.iter().for_each(|item| vote(item, votes)),
        Value::Object(entries) => entries,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    let mut keys = ["max_tokens", "messages", "model"].iter();
    votes[0] +=
        usize::from(keys.any(|key| entries.contains_key(*key)) && entries.contains_key("system"));
    votes[1] += usize::from(entries.get("content").is_some_and(Value::is_null));
    for (key, value) in entries {
        let (word, words) = match value {
            Value::String(word) if key == "type" || key == "role" => (word, TYPES),
            _ => (key, KEYS),
        };
        for (count, words) in votes.iter_mut().zip(words) {
            *count += usize::from(is_one_of(words, word));
        }
        vote(value, votes);
    }
}

/// The shapes of items, requests and responses of OpenAI's responses API. A message may leave out its type.
const RESPONSES: &str = "!messages !type role content/0/type=input_text,output_text,input_image | \
     !messages type=message role content/0/type=input_text,output_text,input_image | \
     !messages type=function_call,function_call_output,custom_tool_call call_id | \
     !messages type=reasoning summary | \
     !messages input:s model | !messages input/0/role | !messages input:l instructions | \
     !messages !input model instructions,tools/0/parameters | \
     !messages object,response/object=response";

/// Whether a record is an item, a request or a response of OpenAI's responses API.
fn is_of_responses(record: &Value) -> bool {
    let first = record.pointer("/input/0");
    is_shaped(record, RESPONSES)
        || record.get("messages").is_none() && first.is_some_and(is_of_responses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Api>) {
        assert_eq!(api_of(&Head::of(text.as_bytes())), expected, "{text}");
    }

    #[test]
    fn an_api_is_known_by_what_only_it_has() {
        let anthropic = Some(Api::Messages);
        let openai = Some(Api::ChatCompletions);
        check(r#"{"system":"s","messages":[{"role":"user","content":"a"}]}"#, anthropic);
        check(r#"[{"role":"user","content":[{"type":"tool_result"}]}]"#, anthropic);
        check(r#"{"tools":[{"name":"a","input_schema":{}}],"messages":[]}"#, anthropic);
        check(
            r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1}}"#,
            anthropic,
        );
        check(
            r#"{"custom_id":"a","params":{"model":"m","max_tokens":1,"system":"s","messages":[{"role":"user","content":"a"}]}}"#,
            anthropic,
        );
        check(
            r#"{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"a"}]}}"#,
            openai,
        );
        check(
            r#"{"sessionId":"s","info":{},"messages":[{"role":"user","content":"a","uuid":"1"}]}"#,
            openai,
        );
        check(r#"[{"role":"user","content":"a"}]"#, openai);
        check(r#"[{"role":"system","content":"a"}]"#, openai);
        check(r#"[[{"role":"user","content":"a"}],[]]"#, openai);
        check("{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"tool\"}", openai);
        check(r#"{"messages":[{"role":"assistant","content":null}]}"#, openai);
        let item = r#"{"type":"message","role":"user","content":[{"type":"output_text"}]}"#;
        check(item, Some(Api::Responses));
        for other in [
            "",
            "{}",
            "[]",
            "7",
            "[7]",
            "[[[[",
            r#"{"type":"user","message":{"role":"user"}}"#,
            r#"{"sessionId":"s","messages":[{"id":"a","type":"user","content":"a"}]}"#,
            r#"{"info":{},"messages":[{"info":{"role":"user"},"parts":[]}]}"#,
            r#"{"messages":[{"role":"assistant","tool_calls":[{"name":"a","args":{}}]}]}"#,
            r#"{"messages":[{"role":"user","content":[{"type":"input_text"}]}]}"#,
            r#"[{"role":"model","parts":[]}]"#,
        ] {
            check(other, None);
        }
        check(&"[".repeat(60_000), None);
    }

    #[test]
    fn no_text_and_no_value_hides_what_a_file_is() {
        let anthropic = Some(Api::Messages);
        let said = r#"[{"role":"user","content":"a \ud83d"},{"role":"assistant","content":[{"type":"tool_use"}]}]"#;
        check(said, anthropic);
        // A first text of any length, also where it ends in escapes and in characters of several bytes.
        for long in ["x".repeat(200_000), r"é\n".repeat(50_000), r"\u00e9".repeat(40_000)] {
            check(&format!(r#"{{"system":"{long}","model":"m","messages":{said}}}"#), anthropic);
            check(
                &format!("{{\"note\":\"{long}\",\"messages\":{said}}}\n{{\"messages\":{said}}}"),
                anthropic,
            );
        }
        for deep in
            ["[".repeat(90) + &"]".repeat(90), "{\"a\":".repeat(100) + "1" + &"}".repeat(100)]
        {
            check(&format!(r#"{{"meta":{deep},"messages":{said}}}"#), anthropic);
        }
    }

    #[test]
    fn a_file_is_known_wherever_its_head_is_cut() {
        let long = "é\\n\\u00e9".repeat(20);
        for (text, api, from) in [
            (
                format!(r#"{{"model":"m","system":"{long}","messages":[{{"role":"user"}}]}}"#),
                Api::Messages,
                64,
            ),
            (
                format!(
                    r#"{{"messages":[{{"content":[{{"type":"text","text":"{long}"}}],"role":"user"}}]}}"#
                ),
                Api::ChatCompletions,
                40,
            ),
            (
                format!(r#"{{"tools":[{{"type":"function","function":{{"name":"{long}"}}}}]}}"#),
                Api::ChatCompletions,
                50,
            ),
        ] {
            for cut in from..text.len() {
                check(&String::from_utf8_lossy(&text.as_bytes()[..cut]), Some(api));
            }
        }
    }
}
