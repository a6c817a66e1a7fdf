//! Writes a session as the JSON of a provider's API, for other tools to read.
//!
//! The shape carries system prompt, tools, model, and the messages. Reading the file again gives
//! equal messages, except for the things that no such file can express; those are counted in
//! [`Exported::left_out`]:
//!
//! Image sources and tool definitions of the other provider are rewritten.

use super::prelude::*;
use std::fmt::Write as _;

use proctor_sessions::wire::openai::openai_json;
use proctor_sessions::wire::{Provider, anthropic_json, definition, for_provider, object, string};

mod atif;
mod otlp;

pub use atif::atif;
pub use otlp::{TraceTooLarge, otlp};

/// A session in the shape of a provider's API, or of another tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The file: one JSON object, one message per line.
    pub json: String,
    /// The parts that the shape cannot carry, in words, with counts.
    pub left_out: BTreeMap<&'static str, u64>,
}

/// Writes a session in the shape of a provider's API.
pub fn export(session: &Session, provider: Provider) -> Exported {
    let mut left_out = Counts::default();
    left_out.add("compaction", session.compactions().len());
    left_out.add("context window", session.context_window().is_some());
    let mut json = "{".to_owned();
    let system = session.system().map(AsRef::as_ref);
    if let Some(model) = session.model() {
        let _ = writeln!(json, "\"model\":{},", string(model));
    }
    if let Some(system) = system.filter(|_| provider == Provider::Anthropic) {
        let _ = writeln!(json, "\"system\":{},", string(system));
    }
    if !session.tools().is_empty() {
        let tools: Vec<String> =
            session.tools().iter().map(|tool| definition(tool, provider)).collect();
        let _ = writeln!(json, "\"tools\":[\n{}\n],", tools.join(",\n"));
    }
    let mut messages = Vec::new();
    if let (Provider::OpenAi, Some(system)) = (provider, system) {
        let system = vec![("role", string("system")), ("content", string(system))];
        messages.push(object(system));
    }
    let mut last = None;
    for message in session.messages() {
        left_out.message(message, provider);
        let repeats = last == Some(message.role()) && message.role() == Role::User;
        left_out.add("border between two user messages", repeats);
        last = Some(message.role());
        let message = for_provider(message, provider);
        match provider {
            Provider::Anthropic => messages.push(anthropic_json(&message)),
            Provider::OpenAi => messages.extend(openai_json(&message)),
        }
    }
    let _ = writeln!(json, "\"messages\":[\n{}\n]}}", messages.join(",\n"));
    let left_out = left_out.0;
    Exported { json, left_out }
}

#[derive(Default)]
struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    /// Counts something, which may be there or not.
    fn add(&mut self, what: &'static str, count: impl Into<usize>) {
        let count: usize = count.into();
        if count > 0 {
            *self.0.entry(what).or_default() += count as u64;
        }
    }

    fn message(&mut self, message: &Message, provider: Provider) {
        self.add("tag", message.tags.count());
        self.add("time", message.details.timestamp.is_some());
        self.add("API call id", message.details.api_call.is_some());
        self.add("usage", message.details.usage.is_some());
        let inner = message.details.inner_requests.len();
        self.add("request within a call", inner);
        let content = message.content();
        // In which order the shape has the kinds of blocks.
        let rank = |block: &ContentBlock| match (provider, message.role(), block) {
            (_, Role::User, ContentBlock::ToolResult(_))
            | (Provider::OpenAi, Role::Assistant, ContentBlock::Thinking(_)) => 0,
            (Provider::OpenAi, Role::Assistant, ContentBlock::ToolUse(_)) => 2,
            _ => 1,
        };
        let in_order = content.iter().map(rank).is_sorted();
        self.add("order of the blocks of a message", !in_order);
        for block in content {
            self.block(block, provider);
        }
    }

    fn block(&mut self, block: &ContentBlock, provider: Provider) {
        match block {
            ContentBlock::ToolUse(tool_use) => {
                let told = tool_use.class == class_of(&tool_use.name);
                self.add("tool class", !told);
            }
            ContentBlock::ToolResult(result) => {
                let failed = result.is_error && provider == Provider::OpenAi;
                self.add("failure of a tool", failed);
                for part in &result.content {
                    self.block(part, provider);
                }
            }
            ContentBlock::Opaque(opaque) => {
                let value = opaque.json.value();
                let told = value.get("type").and_then(Value::as_str) == Some(&*opaque.kind);
                self.add("kind of an unknown block", !told);
            }
            ContentBlock::Text(_) | ContentBlock::Thinking(_) | ContentBlock::Image(_) => {}
        }
    }
}
