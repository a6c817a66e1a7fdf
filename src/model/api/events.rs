//! Reads a model's answer, whole or as it comes in.

use serde_json::Value;

use super::{anthropic, openai, without_thoughts};
use crate::model::{CallFailure, CallResult, Response, Stop, overflow};
use crate::session::wire::Provider;
use crate::session::wire::stream::{Api, Assembly, StreamProblem};
use crate::units::{Tokens, Usage};

/// Bytes of an answer of so many tokens at most: a server that sends more is broken. In a stream each
/// token may come as an event of its own, of some hundred bytes.
pub fn longest_bytes(tokens: Tokens) -> usize {
    const ANY: u64 = 256 * 1024;
    const TOKEN: u64 = 1024;
    const MOST: u64 = 64 * 1024 * 1024;
    let bytes = ANY + tokens.0.saturating_mul(TOKEN);
    usize::try_from(bytes.min(MOST)).unwrap_or(usize::MAX)
}

/// An answer as it comes in.
#[derive(Debug)]
pub struct IncomingAnswer {
    provider: Provider,
    is_stream: bool,
    longest: usize,
    received: usize,
    assembly: Assembly,
    /// Whether nothing is wanted behind its first JSON object, if it is streamed.
    pub ends_with_object: bool,
}

/// The parts of an answer that each provider writes in its own way.
#[derive(Debug)]
pub(super) struct AnswerParts<'a> {
    pub(super) text: String,
    pub(super) refusal: &'a str,
    pub(super) usage: Usage,
    pub(super) stop: Option<&'a str>,
    pub(super) has_tool_use: bool,
}

impl IncomingAnswer {
    /// An answer of that provider, streamed as server-sent events or not, of at most `longest` bytes.
    pub fn new(provider: Provider, is_stream: bool, longest: usize) -> Self {
        let api = match provider {
            Provider::Anthropic => Api::Messages,
            Provider::OpenAi => Api::ChatCompletions,
        };
        Self {
            provider,
            is_stream,
            longest,
            received: 0,
            assembly: Assembly::new(api, is_stream),
            ends_with_object: false,
        }
    }

    /// Whether all that is wanted of it has come, and the model writes on.
    pub fn is_enough(&self) -> bool {
        let text = self.assembly.completion_text();
        self.ends_with_object && text.is_some_and(has_text_behind_object)
    }

    /// Whether the rest is not worth waiting for: it holds an error or is longer than any answer.
    pub fn is_broken(&self) -> bool {
        self.is_too_long() || self.assembly.has_failed()
    }

    /// Whether it is longer than it may be.
    pub fn is_too_long(&self) -> bool {
        self.received > self.longest
    }

    /// Takes the next bytes, cut anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        self.received += bytes.len();
        if !self.is_too_long() {
            self.assembly.push(bytes);
        }
    }

    /// The whole answer; a failure where it did not come to its end.
    pub fn finish(self) -> CallResult {
        if self.is_too_long() {
            return Err(CallFailure::Unreadable);
        }
        let enough = self.is_enough();
        let (whole, problem) = self.assembly.so_far();
        let must_end = self.provider == Provider::Anthropic;
        match problem {
            Some(StreamProblem::Unreadable) => return Err(CallFailure::Unreadable),
            Some(StreamProblem::Reported(event)) => {
                return Err(reported(&event).unwrap_or(CallFailure::SERVER));
            }
            Some(StreamProblem::BrokeOff) if must_end => return Err(CallFailure::Cut),
            // Some servers leave out the last line of OpenAI's streams; the reason to stop ends them.
            Some(StreamProblem::BrokeOff) | None => {}
        }
        let mut whole: Value =
            whole.and_then(|whole| serde_json::from_str(whole.get()).ok()).unwrap_or_default();
        // A stream that came to its end is whole even without a reason to stop.
        if must_end && self.is_stream && whole["stop_reason"].is_null() {
            whole["stop_reason"] = Value::from("end_turn");
        }
        if enough {
            // The rest is left out however much of it came, and with it what the server says of the whole.
            let choice = &mut whole["choices"][0];
            let text = choice["message"]["content"].as_str().unwrap_or_default();
            let text = first_object(text).map(|(object, _)| object.to_owned());
            choice["message"]["content"] = Value::from(text);
            choice["finish_reason"] = Value::from("stop");
            whole["usage"] = Value::Null;
        }
        read(self.provider, &whole)
    }
}

/// Whether a text goes on behind its first JSON object and the fence around that.
fn has_text_behind_object(text: &str) -> bool {
    let rest = first_object(text).map(|(_, rest)| rest.trim_matches(['`', ' ', '\n', '\r']));
    rest.is_some_and(|rest| !rest.is_empty())
}

/// The first whole JSON object of an answer, and what stands behind it.
fn first_object(text: &str) -> Option<(&str, &str)> {
    let text = without_thoughts(text);
    let text = &text[text.find('{')?..];
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    objects.next()?.ok()?;
    text.split_at_checked(objects.byte_offset())
}

/// Reads an answer that came whole; without a reason to stop, it was cut.
pub fn read(provider: Provider, whole: &Value) -> CallResult {
    if let Some(failure) = reported(whole) {
        return Err(failure);
    }
    let answer = match provider {
        Provider::Anthropic => anthropic::answer(whole),
        Provider::OpenAi => openai::answer(whole),
    };
    let stop = answer.stop.ok_or(CallFailure::Cut)?;
    let refused = answer.text.is_empty() && !answer.refusal.is_empty();
    let stop = match stop {
        "length" | "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "content_filter" => Stop::ContentFilter,
        "refusal" => Stop::Refusal,
        "tool_use" | "tool_calls" | "function_call" => Stop::ToolUse,
        _ if refused => Stop::Refusal,
        _ if answer.has_tool_use && answer.text.trim().is_empty() => Stop::ToolUse,
        _ => Stop::End,
    };
    let text = if refused { answer.refusal } else { without_thoughts(&answer.text) };
    Ok(Response {
        text: text.into(),
        stop,
        usage: answer.usage,
        model: whole["model"].as_str().unwrap_or_default().into(),
    })
}

/// The failure that a server reports inside an answer that began as a success.
fn reported(value: &Value) -> Option<CallFailure> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    let text = value.to_string();
    let code = error["code"].as_u64().unwrap_or(500);
    let status = u16::try_from(code).ok().filter(|code| *code >= 400);
    if overflow::refusal(status.unwrap_or(500), &text).is_some() {
        return Some(CallFailure::Overflow);
    }
    Some(match (error["type"].as_str(), status) {
        (Some("rate_limit_error"), _) | (_, Some(429)) => CallFailure::RateLimited,
        _ => CallFailure::SERVER,
    })
}
