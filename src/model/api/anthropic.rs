//! Anthropic's messages API.

use std::fmt::Write as _;

use serde_json::Value;

use super::events::{Answer, has_text};
use super::{Dialect, VERDICT_SCHEMA, definitions, forbids_tools, sendable};
use crate::model::{Request, Task};
use crate::session::Role;
use crate::session::wire::{Provider, anthropic_message};
use crate::units::{Tokens, Usage};

const CACHED: &str = r#","cache_control":{"type":"ephemeral"}}"#;

/// The request as the API takes it.
///
/// Breakpoints of the prompt cache: after the system prompt (after the tools where there is none),
/// at the end of the last user message but one, and in the last user message before its last block:
/// many questions are asked of one prompt.
pub(super) fn body(dialect: &Dialect, request: &Request) -> String {
    let mut out = dialect.head(request, "max_tokens");
    if dialect.structured && request.task == Task::Judge {
        let _ = write!(
            out,
            ",\"output_config\":{{\"format\":{{\"type\":\"json_schema\",\"schema\":{VERDICT_SCHEMA}}}}}"
        );
    }
    let mut tools = definitions(request, Provider::Anthropic);
    if let Some(system) = request.system.as_ref().filter(|text| !text.is_empty()) {
        let text = Value::from(&**system);
        let _ = write!(
            out,
            ",\"system\":[{{\"type\":\"text\",\"text\":{text}{CACHED}]"
        );
    } else if let Some(last) = tools.last_mut() {
        *last = cached(last);
    }
    if !tools.is_empty() {
        let _ = write!(out, ",\"tools\":[{}]", tools.join(","));
        if forbids_tools(request) {
            out.push_str(",\"tool_choice\":{\"type\":\"none\"}");
        }
    }
    let messages = sendable(&request.messages, Provider::Anthropic);
    let is_user = |at: &usize| messages[*at].role() == Role::User;
    let mut users = (0..messages.len()).rev().filter(is_user);
    let (last, before) = (users.next(), users.next());
    let messages = messages.iter().enumerate().map(|(at, message)| {
        let blocks = message.content().len();
        let marked = if Some(at) == last {
            Some(blocks.saturating_sub(2))
        } else if Some(at) == before {
            blocks.checked_sub(1)
        } else {
            None
        };
        anthropic_message(message, |at, json| match marked {
            Some(marked) if marked == at => cached(&json),
            Some(_) | None => json,
        })
    });
    let messages: Vec<String> = messages.collect();
    let messages = messages.join(",");
    let _ = write!(out, ",\"messages\":[{messages}],\"stream\":true}}");
    out
}

/// The JSON object with a breakpoint of the cache.
fn cached(object: &str) -> String {
    let open = object.strip_suffix('}');
    open.map_or_else(|| object.to_owned(), |open| format!("{open}{CACHED}"))
}

/// Takes one event of a streamed answer; says whether it brought something that was written.
pub(super) fn event(answer: &mut Answer, event: &Value) -> bool {
    match event["type"].as_str().unwrap_or_default() {
        "message_start" => {
            begin(answer, &event["message"]);
            false
        }
        "content_block_start" => {
            answer.has_tool_use |= event["content_block"]["type"] == "tool_use";
            answer.write(&event["content_block"]["text"])
        }
        "content_block_delta" => {
            let delta = &event["delta"];
            let hidden = has_text(delta, &["thinking", "partial_json"]);
            answer.write(&delta["text"]) || hidden
        }
        "message_delta" => {
            // Counters of the end are totals so far. They do not tell the cache's lifetimes
            // apart: the part that the start counted as written for an hour stays so.
            let mut end = usage(&event["usage"]);
            let hour = answer.usage.cache_write_1h.max(end.cache_write_1h);
            let written = end.cache_write_5m + end.cache_write_1h;
            end.cache_write_5m = written - hour;
            end.cache_write_1h = hour;
            answer.usage = answer.usage.max(end);
            answer.stopped(&event["delta"]["stop_reason"]);
            false
        }
        "message_stop" => {
            answer.is_complete = true;
            false
        }
        _ => false,
    }
}

/// Takes an answer that came whole.
pub(super) fn whole(answer: &mut Answer, message: &Value) {
    begin(answer, message);
    for block in message["content"].as_array().into_iter().flatten() {
        answer.has_tool_use |= block["type"] == "tool_use";
        answer.write(&block["text"]);
    }
    answer.is_complete = message["stop_reason"].is_string();
}

fn begin(answer: &mut Answer, message: &Value) {
    answer.usage = usage(&message["usage"]);
    let model = message["model"].as_str().unwrap_or_default();
    model.clone_into(&mut answer.model);
    answer.stopped(&message["stop_reason"]);
}

/// The five disjoint counters. `input_tokens` leaves out what was read from or written to the
/// cache; without a count for each lifetime, all writes count as five minutes.
fn usage(usage: &Value) -> Usage {
    let number = |value: &Value| Tokens(value.as_u64().unwrap_or(0));
    let written = number(&usage["cache_creation_input_tokens"]);
    let hour = number(&usage["cache_creation"]["ephemeral_1h_input_tokens"]);
    Usage {
        input_uncached: number(&usage["input_tokens"]),
        cache_write_5m: written - hour,
        cache_write_1h: hour,
        cache_read: number(&usage["cache_read_input_tokens"]),
        output: number(&usage["output_tokens"]),
    }
}
