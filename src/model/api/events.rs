//! An answer as it comes in: server-sent events cut anywhere, or one JSON object.

use serde_json::Value;

use super::{Read, anthropic, openai, without_thoughts};
use crate::model::{CallFailure, Response, Stop, overflow};
use crate::session::wire::Provider;
use crate::units::Usage;

/// No answer of a model is longer than this: a server that sends more is broken.
const LONGEST_BYTES: usize = 64 * 1024 * 1024;

/// An answer as it comes in.
#[derive(Debug)]
pub struct Incoming {
    provider: Provider,
    is_stream: bool,
    answer: Answer,
    /// Bytes of which no event was made yet; of an answer that is no stream, all of them.
    bytes: Vec<u8>,
    received: usize,
    problem: Option<CallFailure>,
}

/// An answer, put together from its events or from one object.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    pub(super) refusal: String,
    pub(super) usage: Usage,
    pub(super) model: String,
    pub(super) stop: Option<String>,
    pub(super) is_complete: bool,
    pub(super) has_tool_use: bool,
}

impl Answer {
    /// Adds text; says whether there was any.
    pub(super) fn write(&mut self, text: &Value) -> bool {
        let text = text.as_str().unwrap_or_default();
        self.text.push_str(text);
        !text.is_empty()
    }

    /// Notes why the model stopped, where that is said.
    pub(super) fn stopped(&mut self, reason: &Value) {
        let reason = reason.as_str().map(str::to_owned);
        self.stop = reason.or(self.stop.take());
    }

    /// The answer; a failure where it did not come to its end.
    fn finish(self) -> Read {
        if !self.is_complete {
            return Err(CallFailure::Cut);
        }
        let is_refused = self.text.is_empty() && !self.refusal.is_empty();
        let stop = match self.stop.as_deref().unwrap_or_default() {
            "length" | "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "content_filter" => Stop::ContentFilter,
            "refusal" => Stop::Refusal,
            "tool_use" | "tool_calls" | "function_call" => Stop::ToolUse,
            _ if is_refused => Stop::Refusal,
            _ if self.has_tool_use && self.text.trim().is_empty() => Stop::ToolUse,
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
            model: self.model.into(),
        })
    }
}

/// Whether one of these fields holds text: the model wrote something that is not part of its answer.
pub(super) fn has_text(part: &Value, fields: &[&str]) -> bool {
    let mut texts = fields.iter().filter_map(|field| part[*field].as_str());
    texts.any(|text| !text.is_empty())
}

impl Incoming {
    /// An answer of that provider, streamed as server-sent events or not.
    pub fn new(provider: Provider, is_stream: bool) -> Self {
        Self {
            provider,
            is_stream,
            answer: Answer::default(),
            bytes: Vec::new(),
            received: 0,
            problem: None,
        }
    }

    /// Whether more of it is not worth waiting for: it is longer than any answer, or an error.
    pub fn is_broken(&self) -> bool {
        self.problem.is_some()
    }

    /// Takes the next bytes, cut anywhere; says whether they brought something that was written.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.received += bytes.len();
        if self.received > LONGEST_BYTES {
            self.problem = Some(CallFailure::Unreadable);
            return false;
        }
        self.bytes.extend_from_slice(bytes);
        if !self.is_stream {
            return !bytes.is_empty();
        }
        let whole = std::mem::take(&mut self.bytes);
        let mut wrote = false;
        let mut rest = &whole[..];
        while let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
            wrote |= self.line(&rest[..length]);
            rest = &rest[length + 1..];
        }
        self.bytes = rest.to_vec();
        wrote
    }

    /// One line of the stream: these APIs put the data of an event into one line.
    fn line(&mut self, line: &[u8]) -> bool {
        let Some(data) = line.strip_prefix(b"data:") else {
            return false;
        };
        let data = data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return false;
        }
        let Some(event) = serde_json::from_slice::<Value>(data).ok() else {
            self.problem.get_or_insert(CallFailure::Unreadable);
            return false;
        };
        if let Some(failure) = reported(&event) {
            self.problem.get_or_insert(failure);
            return false;
        }
        match self.provider {
            Provider::Anthropic => anthropic::event(&mut self.answer, &event),
            Provider::OpenAi => openai::take(&mut self.answer, &event, "delta"),
        }
    }

    /// The whole answer; a failure where it did not come to its end.
    pub fn finish(mut self) -> Read {
        let rest = std::mem::take(&mut self.bytes);
        if self.is_stream {
            self.line(&rest);
        } else if let Ok(whole) = serde_json::from_slice::<Value>(&rest) {
            if let Some(failure) = reported(&whole) {
                return Err(failure);
            }
            match self.provider {
                Provider::Anthropic => anthropic::whole(&mut self.answer, &whole),
                Provider::OpenAi => drop(openai::take(&mut self.answer, &whole, "message")),
            }
        } else {
            return Err(CallFailure::Unreadable);
        }
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        self.answer.finish()
    }
}

/// The failure that a server reports inside an answer that began as a success.
fn reported(value: &Value) -> Option<CallFailure> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    let text = value.to_string();
    let code = error.get("code").and_then(Value::as_u64).unwrap_or(500);
    let status = u16::try_from(code).ok().filter(|code| *code >= 400);
    if overflow::refusal(status.unwrap_or(500), &text).is_some() {
        return Some(CallFailure::Overflow);
    }
    let kind = error
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(match (kind, status) {
        ("rate_limit_error", _) | (_, Some(429)) => CallFailure::RateLimited,
        _ => CallFailure::Server,
    })
}
