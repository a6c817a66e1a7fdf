//! Kimi CLI keeps a session's context as `context.jsonl`: chat messages, one per line, and records of
//! its own beside them, whose roles begin with an underscore.
//!
//! Rules of this format, beside those every importer shares:
//! - `_system_prompt` is the system prompt, where it was kept. `_usage` counts the tokens of the whole
//!   context and not those of a call, and `_checkpoint` a place to go back to: they are skipped.
//! - When the context is compacted or reverted, the product begins a new file, and the old one is kept
//!   under a numbered name: a file is what is left.

use super::conversations::{self, Shape};
use super::openai_chat::{self, Dialect};
use super::prelude::*;

const SHAPE: Shape = Shape::of_messages("messages");

pub(super) const IMPORTER: Importer = Importer::new("kimi-cli", detect, import);

fn detect(head: &Head) -> bool {
    let role = |value: &Value| value.get("role")?.as_str().map(str::to_owned);
    let mut roles = head.values.iter().take(20).filter_map(role);
    head.text.starts_with('{') && roles.any(|role| role.starts_with('_'))
}

fn import(file: &SourceText, source: &mut Source) -> Result<Vec<Session>, ImportError> {
    conversations::sessions(SHAPE, file, source, |mut conversation, assembler| {
        let mut system = None;
        conversation.messages.retain(|raw| {
            let mut record = Object::read(raw).unwrap_or_default();
            let role = record.take_text("role");
            match role.as_deref().filter(|role| role.starts_with('_')) {
                None => return true,
                Some("_system_prompt") => system = record.take_text("content"),
                Some(role) => assembler.skip(role),
            }
            false
        });
        openai_chat::read(conversation, Dialect::Api, assembler);
        assembler.header.system = system.or(assembler.header.system.take());
    })
}
