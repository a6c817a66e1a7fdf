//! The bytes that go to a model's API and come back; no network.
//!
//! A [`Dialect`] writes a request as one provider takes it, and an [`IncomingAnswer`] reads the answer as
//! it comes, streamed or whole. The body that is written is also what a recorded answer is found
//! by, so that it is the same bytes for the same request.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::{Request, Task};
use crate::session::wire::{self, Provider};
use crate::session::{ContentBlock, Message};
use crate::units::Tokens;

mod anthropic;
mod events;
mod openai;

pub use events::{IncomingAnswer, longest_bytes, read};

/// A verdict as a JSON schema: the reason comes first, so that it is written first.
pub const VERDICT_SCHEMA: &str = r#"{"type":"object","properties":{"reason":{"type":"string"},"verdict":{"type":"string","enum":["right","incomplete","stale","another's","invented","abstained"]}},"required":["reason","verdict"],"additionalProperties":false}"#;

/// Tokens that a model behind an OpenAI-compatible API may think before an answer or a verdict, where nothing
/// else is said. Ours: models that think take a few hundred to a few thousand tokens, and for others a
/// higher limit changes nothing.
pub const THINKING: Tokens = Tokens(4_096);

/// Tags between which models write what they think, where no server takes it out.
const THOUGHTS: [(&str, &str); 3] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<reasoning>", "</reasoning>")];

/// Takes the thoughts off the front of an answer. Thoughts that do not end are all there is; an
/// end whose beginning stood in the prompt's template ends them, too, where nothing follows on its line.
pub fn without_thoughts(text: &str) -> &str {
    let mut rest = text;
    while let Some((_, close)) =
        THOUGHTS.iter().find(|(open, _)| rest.trim_start().starts_with(open))
    {
        let Some((_, after)) = rest.split_once(close) else {
            return "";
        };
        rest = after.trim_start();
    }
    for (open, close) in THOUGHTS {
        if let Some((before, after)) = rest.split_once(close)
            && !before.contains(open)
            && (after.is_empty() || after.starts_with(['\n', '\r']))
        {
            return after.trim_start();
        }
    }
    rest
}

/// How one model is spoken to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dialect {
    /// Whose API.
    pub provider: Provider,
    /// The model's id.
    pub model: String,
    /// Sent where it is set: many models refuse it.
    pub temperature: Option<f64>,
    /// The name of the limit of the output in OpenAI's API: `max_tokens`, which servers other than OpenAI's own
    /// understand, or `max_completion_tokens`, which OpenAI's reasoning models want.
    pub limit: &'static str,
    /// Added to the limit of every answer: a model that thinks first writes its thoughts within it.
    pub thinking: Tokens,
    /// Whether verdicts are asked for with a JSON schema.
    pub structured: bool,
}

/// How a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// By itself; the answer is streamed.
    Streamed,
    /// In a batch. Nothing is marked for the prompt cache, for requests of a batch come in no order: most marks
    /// would be paid for and never read.
    InBatch,
}

impl Dialect {
    /// A model by its id, with the provider's own habits.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Self {
            provider,
            model: model.into(),
            temperature: None,
            limit: "max_tokens",
            thinking: Tokens::ZERO,
            structured: false,
        }
    }

    /// The path behind the base URL.
    pub fn path(&self) -> &'static str {
        match self.provider {
            Provider::Anthropic => "/v1/messages",
            Provider::OpenAi => "/chat/completions",
        }
    }

    /// Tokens that an answer has at most, thoughts included.
    pub fn longest(&self, request: &Request) -> Tokens {
        request.max_output + self.thinking
    }

    /// How a request begins in both APIs; `limit` names the limit of the output.
    fn head(&self, request: &Request, limit: &str) -> String {
        let model = Value::from(self.model.as_str());
        let most = self.longest(request);
        let temperature = self.temperature.map_or_else(String::new, |temperature| {
            format!(",\"temperature\":{}", Value::from(temperature))
        });
        format!("{{\"model\":{model},\"{limit}\":{most}{temperature}")
    }

    /// The request with an answer, thoughts included, of no more tokens than this.
    pub fn body_within(&self, request: &Request, room: Tokens) -> String {
        let max_output = request.max_output.min(room);
        let dialect = Self { thinking: self.thinking.min(room - max_output), ..self.clone() };
        dialect.body(&Request { max_output, ..request.clone() })
    }

    /// The request as the API takes it. The same request gives the same bytes.
    pub fn body(&self, request: &Request) -> String {
        self.body_sent(request, Sending::Streamed)
    }

    /// The request as it is sent in one of these ways.
    pub fn body_sent(&self, request: &Request, sending: Sending) -> String {
        match self.provider {
            Provider::Anthropic => anthropic::body(self, request, sending),
            Provider::OpenAi => openai::body(self, request, sending),
        }
    }
}

/// The messages as they can be sent to any model.
///
/// It leaves out what the API would refuse: thinking, which is signed for the model that thought,
/// empty texts, and messages that have nothing else. A block of unknown kind becomes its text.
fn sendable(messages: &[Arc<Message>], provider: Provider) -> Vec<Arc<Message>> {
    let mut sent = Vec::with_capacity(messages.len());
    for message in messages {
        let message = wire::for_provider(message, provider);
        let blocks = message.content().iter().zip(message.model_text());
        let content = blocks.filter_map(|(block, text)| match block {
            ContentBlock::Thinking(_) => None,
            ContentBlock::Text(_) | ContentBlock::Opaque(_) if text.is_empty() => None,
            ContentBlock::Opaque(_) => Some(ContentBlock::Text(text.clone())),
            ContentBlock::Text(_)
            | ContentBlock::ToolUse(_)
            | ContentBlock::ToolResult(_)
            | ContentBlock::Image(_) => Some(block.clone()),
        });
        let content: Vec<ContentBlock> = content.collect();
        if content == message.content() {
            sent.push(message);
        } else if !content.is_empty() {
            sent.push(Arc::new(Message::new(message.role(), content)));
        }
    }
    sent
}

/// Definitions of the tools, as the provider takes them. Anthropic refuses a conversation in which
/// tools are used that have no definition: if none were recorded, their names are.
fn definitions(request: &Request, provider: Provider) -> Vec<String> {
    let tools = request.tools().iter();
    let mut defined: Vec<String> = tools.map(|tool| wire::definition(tool, provider)).collect();
    if defined.is_empty() && provider == Provider::Anthropic {
        let used = request.messages.iter().flat_map(|message| message.tool_uses());
        let used: BTreeSet<&str> = used.map(|(_, tool)| &*tool.name).collect();
        defined.extend(used.into_iter().map(|name| {
            let name = Value::from(name);
            format!(r#"{{"name":{name},"input_schema":{{"type":"object"}}}}"#)
        }));
    }
    defined
}

/// Whether the model must write and not call a tool. A summary is asked for exactly as its product
/// asks: a word on tools would break the prompt's cache.
fn forbids_tools(request: &Request) -> bool {
    match request.task {
        Task::Answer | Task::Select | Task::Judge => true,
        Task::Agent | Task::Summarise { .. } | Task::Recorded { .. } => false,
    }
}

/// A counter of a provider's usage; zero where it is missing.
fn tokens(counter: &Value) -> Tokens {
    Tokens(counter.as_u64().unwrap_or(0))
}

#[cfg(test)]
mod tests;
