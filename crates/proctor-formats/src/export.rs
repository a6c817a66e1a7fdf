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
    let mut left_out = ExportCounts::default();
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
        messages.push(object(vec![("role", string("system")), ("content", string(system))]));
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
    Exported { json, left_out: left_out.0 }
}

#[derive(Default)]
struct ExportCounts(BTreeMap<&'static str, u64>);

impl ExportCounts {
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
        self.add("request within a call", message.details.inner_requests.len());
        let content = message.content();
        // The order of the kinds of blocks in the shape.
        let ranks = content.iter().map(|block| match (provider, message.role(), block) {
            (_, Role::User, ContentBlock::ToolResult(_))
            | (Provider::OpenAi, Role::Assistant, ContentBlock::Thinking(_)) => 0,
            (Provider::OpenAi, Role::Assistant, ContentBlock::ToolUse(_)) => 2,
            _ => 1,
        });
        self.add("order of the blocks of a message", !ranks.is_sorted());
        for block in content {
            self.block(block, provider);
        }
    }

    fn block(&mut self, block: &ContentBlock, provider: Provider) {
        match block {
            ContentBlock::ToolUse(tool_use) => {
                self.add("tool class", tool_use.class != class_of(&tool_use.name));
            }
            ContentBlock::ToolResult(result) => {
                self.add("failure of a tool", result.is_error && provider == Provider::OpenAi);
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
