//! An answer as it comes in: server-sent events cut anywhere, or one JSON object.

use serde_json::Value;

use super::{Read, anthropic, openai};
use crate::model::{CallFailure, overflow};
use crate::session::wire::Provider;

/// No answer of a model is longer than this: a server that sends more is broken.
const LONGEST_BYTES: usize = 64 * 1024 * 1024;

/// An answer as it comes in.
#[derive(Debug)]
pub struct Incoming {
    is_stream: bool,
    answer: Box<dyn Assemble>,
    /// Bytes of which no event was made yet; of an answer that is no stream, all of them.
    bytes: Vec<u8>,
    received: usize,
    problem: Option<CallFailure>,
}

/// Puts an answer together.
pub(super) trait Assemble: std::fmt::Debug + Send {
    /// Takes one event; says whether it brought something that was written.
    fn event(&mut self, event: &Value) -> bool;
    /// Takes an answer that came whole.
    fn whole(&mut self, answer: &Value);
    /// The answer; a failure where it did not come to its end.
    fn finish(self: Box<Self>) -> Read;
}

impl Incoming {
    /// An answer of that provider, streamed as server-sent events or not.
    pub fn new(provider: Provider, is_stream: bool) -> Self {
        Self {
            is_stream,
            answer: match provider {
                Provider::Anthropic => Box::new(anthropic::Answer::default()),
                Provider::OpenAi => Box::new(openai::Answer::default()),
            },
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
        self.answer.event(&event)
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
            self.answer.whole(&whole);
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
