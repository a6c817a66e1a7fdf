//! OpenAI's chat completions API, as OpenAI and the many servers after it speak it.

use std::fmt::Write as _;

use serde_json::Value;

use super::events::AnswerParts;
use super::{Dialect, Sending, VERDICT_SCHEMA, definitions, forbids_tools, sendable, tokens};
use crate::model::{Request, Task};
use crate::session::wire::Provider;
use crate::session::wire::openai::openai_json;
use crate::units::Usage;

/// The request as the API takes it.
pub(super) fn body(dialect: &Dialect, request: &Request, sending: Sending) -> String {
    let mut out = dialect.head(request, dialect.limit);
    if dialect.structured && request.task == Task::Judge {
        let _ = write!(
            out,
            ",\"response_format\":{{\"type\":\"json_schema\",\"json_schema\":\
             {{\"name\":\"verdict\",\"strict\":true,\"schema\":{VERDICT_SCHEMA}}}}}"
        );
    }
    let tools = definitions(request, Provider::OpenAi);
    if !tools.is_empty() {
        let _ = write!(out, ",\"tools\":[{}]", tools.join(","));
        if forbids_tools(request) {
            out.push_str(",\"tool_choice\":\"none\"");
        }
    }
    let mut messages = Vec::new();
    if let Some(system) = request.system.as_ref().filter(|text| !text.is_empty()) {
        let text = Value::from(&**system);
        messages.push(format!(r#"{{"role":"system","content":{text}}}"#));
    }
    for message in sendable(&request.messages, Provider::OpenAi) {
        messages.extend(openai_json(&message));
    }
    let _ = write!(out, ",\"messages\":[{}]", messages.join(","));
    out.push_str(match sending {
        Sending::Streamed => ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
        Sending::InBatch => "}",
    });
    out
}

/// Reads a whole completion.
pub(super) fn answer(completion: &Value) -> AnswerParts<'_> {
    let choice = &completion["choices"][0];
    let message = &choice["message"];
    let calls = message["tool_calls"].as_array();
    AnswerParts {
        text: message["content"].as_str().unwrap_or_default().to_owned(),
        refusal: message["refusal"].as_str().unwrap_or_default(),
        usage: usage(&completion["usage"]),
        stop: choice["finish_reason"].as_str(),
        has_tool_use: calls.is_some_and(|calls| !calls.is_empty()),
    }
}

/// The disjoint counters: `prompt_tokens` counts what was read from the cache, too. Writes
/// to OpenAI's cache cost nothing extra, and the API does not report them.
fn usage(usage: &Value) -> Usage {
    let prompt = tokens(&usage["prompt_tokens"]);
    let read = tokens(&usage["prompt_tokens_details"]["cached_tokens"]).min(prompt);
    Usage {
        cache_read: read,
        ..Usage::uncached(prompt - read, tokens(&usage["completion_tokens"]))
    }
}
