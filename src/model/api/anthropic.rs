//! Anthropic's messages API.

use std::fmt::Write as _;

use serde_json::Value;

use super::events::AnswerParts;
use super::{Dialect, Sending, VERDICT_SCHEMA, definitions, forbids_tools, sendable, tokens};
use crate::model::{Request, Task};
use crate::session::Role;
use crate::session::wire::{Provider, anthropic_message};
use crate::units::Usage;

const CACHED: &str = r#","cache_control":{"type":"ephemeral"}}"#;

/// The request as the API takes it.
///
/// Breakpoints of the prompt cache: after the system prompt (after the tools where there is none),
/// at the end of the last user message but one, and in the last user message before its last block:
/// many questions are asked of one prompt.
pub(super) fn body(dialect: &Dialect, request: &Request, sending: Sending) -> String {
    let (mark, end) = match sending {
        Sending::Streamed => (CACHED, ",\"stream\":true}"),
        Sending::InBatch => ("}", "}"),
    };
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
        let _ = write!(out, ",\"system\":[{{\"type\":\"text\",\"text\":{text}{mark}]");
    } else if let Some(last) = tools.last_mut() {
        *last = marked_with(mark, last);
    }
    if !tools.is_empty() {
        let _ = write!(out, ",\"tools\":[{}]", tools.join(","));
        if forbids_tools(request) {
            out.push_str(",\"tool_choice\":{\"type\":\"none\"}");
        }
    }
    let sent = sendable(&request.messages, Provider::Anthropic);
    let mut users = (0..sent.len()).rev().filter(|at: &usize| sent[*at].role() == Role::User);
    let (last, before) = (users.next(), users.next());
    let messages = sent.iter().enumerate().map(|(at, message)| {
        let blocks = message.content().len();
        let marked = if Some(at) == last {
            Some(blocks.saturating_sub(2))
        } else if Some(at) == before {
            blocks.checked_sub(1)
        } else {
            None
        };
        anthropic_message(message, |at, json| match marked {
            Some(marked) if marked == at => marked_with(mark, &json),
            Some(_) | None => json,
        })
    });
    let messages: Vec<String> = messages.collect();
    let _ = write!(out, ",\"messages\":[{}]{end}", messages.join(","));
    out
}

/// The JSON object with this end, such as a breakpoint of the cache.
fn marked_with(end: &str, object: &str) -> String {
    let open = object.strip_suffix('}');
    open.map_or_else(|| object.to_owned(), |open| format!("{open}{end}"))
}

/// Reads a whole message.
pub(super) fn answer(message: &Value) -> AnswerParts<'_> {
    let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    AnswerParts {
        text: blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        refusal: "",
        usage: usage(&message["usage"]),
        stop: message["stop_reason"].as_str(),
        has_tool_use: blocks.iter().any(|block| block["type"] == "tool_use"),
    }
}

/// The five disjoint counters. `input_tokens` leaves out what was read from or written to the
/// cache; without a count for each lifetime, all writes count as five minutes.
fn usage(usage: &Value) -> Usage {
    let written = tokens(&usage["cache_creation_input_tokens"]);
    let hour = tokens(&usage["cache_creation"]["ephemeral_1h_input_tokens"]);
    Usage {
        input_uncached: tokens(&usage["input_tokens"]),
        cache_write_5m: written - hour,
        cache_write_1h: hour,
        cache_read: tokens(&usage["cache_read_input_tokens"]),
        output: tokens(&usage["output_tokens"]),
    }
}
