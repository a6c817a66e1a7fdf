//! OpenAI's chat completions API, as OpenAI and the many servers after it speak it.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::{
    Assemble, Dialect, LimitName, VERDICT_SCHEMA, definitions, forbids_tools, sendable,
    without_thoughts,
};
use crate::model::{CallFailure, Request, Response, Stop, Task};
use crate::session::wire::Provider;
use crate::session::wire::openai::openai_json;
use crate::units::{Tokens, Usage};

/// The request as the API takes it.
pub(super) fn body(dialect: &Dialect, request: &Request) -> String {
    let mut out = String::from("{\"model\":");
    let _ = write!(out, "{}", Value::from(dialect.model.as_str()));
    let limit = match dialect.limit {
        LimitName::MaxTokens => "max_tokens",
        LimitName::MaxCompletionTokens => "max_completion_tokens",
    };
    let most = request.max_output + dialect.thinking;
    let _ = write!(out, ",\"{limit}\":{most}");
    if let Some(temperature) = dialect.temperature {
        let _ = write!(out, ",\"temperature\":{}", Value::from(temperature));
    }
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
    out.push_str(",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
    out
}

/// Puts the answer together from its chunks, or from one whole completion.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    refusal: String,
    usage: Usage,
    model: String,
    stop: Option<String>,
    has_tool_call: bool,
}

impl Answer {
    fn take(&mut self, part: &Value, key: &str) -> bool {
        if let Some(model) = part["model"].as_str().filter(|model| !model.is_empty()) {
            model.clone_into(&mut self.model);
        }
        if part["usage"].is_object() {
            self.usage = usage(&part["usage"]);
        }
        let choice = &part["choices"][0];
        let said = &choice[key];
        if let Some(stop) = choice["finish_reason"].as_str() {
            self.stop = Some(stop.to_owned());
        }
        let calls = said["tool_calls"].as_array();
        self.has_tool_call |= calls.is_some_and(|calls| !calls.is_empty());
        let text = said["content"].as_str().unwrap_or_default();
        let refusal = said["refusal"].as_str().unwrap_or_default();
        self.text.push_str(text);
        self.refusal.push_str(refusal);
        let hidden = ["reasoning_content", "reasoning"].iter().any(|key| {
            let text = said[*key].as_str();
            text.is_some_and(|text| !text.is_empty())
        });
        hidden || !text.is_empty() || !refusal.is_empty()
    }
}

impl Assemble for Answer {
    fn event(&mut self, chunk: &Value) -> bool {
        self.take(chunk, "delta")
    }

    fn whole(&mut self, completion: &Value) {
        self.take(completion, "message");
    }

    fn finish(self: Box<Self>) -> super::Read {
        let Some(reason) = self.stop else {
            return Err(CallFailure::Cut);
        };
        let is_refused = self.text.is_empty() && !self.refusal.is_empty();
        let stop = match reason.as_str() {
            "length" => Stop::Length,
            "content_filter" => Stop::ContentFilter,
            "tool_calls" | "function_call" => Stop::ToolUse,
            _ if is_refused => Stop::Refusal,
            _ if self.has_tool_call && self.text.trim().is_empty() => Stop::ToolUse,
            _ => Stop::End,
        };
        let text = if is_refused {
            &self.refusal
        } else {
            without_thoughts(&self.text)
        };
        Ok(Response {
            text: text.into(),
            stop,
            usage: self.usage,
            model: Arc::from(self.model),
        })
    }
}

/// The disjoint counters: `prompt_tokens` counts what was read from the cache, too. Writing to
/// OpenAI's cache costs nothing extra and is not told.
fn usage(usage: &Value) -> Usage {
    let number = |value: &Value| Tokens(value.as_u64().unwrap_or(0));
    let read = number(&usage["prompt_tokens_details"]["cached_tokens"]);
    let prompt = number(&usage["prompt_tokens"]);
    let read = read.min(prompt);
    Usage {
        cache_read: read,
        ..Usage::uncached(prompt - read, number(&usage["completion_tokens"]))
    }
}
