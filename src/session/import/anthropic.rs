//! Anthropic's messages API: requests, logs of them, and bare lists of messages.
//!
//! Beside `messages` stand `system` (a text or a list of texts), `tools` and `model` as in a
//! request, and in a log perhaps `response` or `usage`. Blocks of tools that the provider runs
//! itself, and documents, are kept as they are. What the provider compacts itself is an event.

use std::io::BufRead;
use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

use super::assemble::{Assembler, AssistantRecord, UserRecord, count};
use super::conversations::{
    self, Conversation, Object, Shape, keep_unread, speaker_of, system_text,
};
use super::sketch::{Api, api_of};
use super::{ImportError, Importer};
use crate::session::wire::stream as wire;
use crate::session::{ContentBlock, Session, Tag};
use crate::units::{ApiCallId, Timestamp, Usage};
use blocks::Speaker;
use server::Asked;

pub(super) mod blocks;
mod server;

/// Reads conversations in the shape of the messages API.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anthropic;

const FORMAT: &str = "anthropic";

const SHAPE: Shape = Shape::of_messages(FORMAT, "messages").of_api(wire::Api::Messages);

impl Importer for Anthropic {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        api_of(head) == Some(Api::Anthropic)
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        conversations::sessions(SHAPE, path, input, read)
    }
}

fn read(conversation: Conversation<'_>, assembler: &mut Assembler) {
    let Conversation {
        mut around,
        messages,
    } = conversation;
    around.header(assembler);
    if let Some(system) = around.take("system") {
        let blocks = blocks_of(system, Speaker::User, assembler);
        assembler.header.system = system_text(&blocks, assembler);
    }
    let asked = Asked::of(&mut around);
    let time = around.take_time("timestamp", assembler);
    let response = around.take_object("response");
    // Counters beside messages without a response are those of the last message.
    let mut usage = match &response {
        Some(_) => None,
        None => around.take("usage"),
    };
    let last = messages.len().saturating_sub(1);
    for (at, raw) in messages.into_iter().enumerate() {
        let usage = if at == last { &mut usage } else { &mut None };
        message(raw, &asked, usage, assembler);
    }
    if usage.is_some() {
        assembler.skip("usage without a response");
    }
    if let Some(response) = response {
        assistant(response, time, &asked, None, assembler);
    }
    around.count_left("key", assembler);
}

fn message(
    raw: &RawValue,
    asked: &Asked,
    usage: &mut Option<&RawValue>,
    assembler: &mut Assembler,
) {
    let Some(mut object) = Object::read(raw) else {
        return keep_unread("malformed", raw, assembler);
    };
    let role = object.take_text("role");
    match role.as_deref() {
        Some("assistant") => assistant(object, None, asked, usage.take(), assembler),
        Some(role @ ("user" | "system")) => {
            let content = object.take("content");
            let blocks = content.map_or_else(Vec::new, |content| {
                blocks_of(content, Speaker::User, assembler)
            });
            let tags = if role == "system" {
                assembler.warn("a system message within the conversation is kept as the user's");
                vec![Tag::Meta]
            } else {
                speaker_of(&blocks)
            };
            let timestamp = object.take_time("timestamp", assembler);
            object.count_left("message key", assembler);
            assembler.user(
                None,
                UserRecord {
                    blocks,
                    timestamp,
                    tags,
                },
            );
        }
        Some(role) => keep_unread(role, raw, assembler),
        None => keep_unread("without role", raw, assembler),
    }
}

/// A message of the model's: of a request, or a whole response.
fn assistant(
    mut object: Object<'_>,
    time: Option<Timestamp>,
    asked: &Asked,
    usage: Option<&RawValue>,
    assembler: &mut Assembler,
) {
    let content = object.take("content");
    let mut blocks = content.map_or_else(Vec::new, |content| {
        blocks_of(content, Speaker::Assistant, assembler)
    });
    let own = object.take("usage").or(usage);
    let is_compacted = server::summed_up(&mut blocks, own, assembler);
    let usage = own.and_then(|raw| usage_of(raw, assembler));
    server::applied(&mut object, asked, usage.as_ref(), assembler);
    let timestamp = object.take_time("timestamp", assembler).or(time);
    let record = AssistantRecord {
        call: object.take_text("id").map(ApiCallId),
        model: object.take_text("model"),
        blocks,
        usage,
        timestamp,
        tags: Vec::new(),
    };
    for known in ["role", "type"] {
        object.take(known);
    }
    object.count_left("message key", assembler);
    // A response that paused there says nothing else.
    if !(is_compacted && record.blocks.is_empty()) {
        assembler.assistant(None, record);
    }
}

fn usage_of(raw: &RawValue, assembler: &mut Assembler) -> Option<Usage> {
    let value: Value = serde_json::from_str(raw.get()).ok()?;
    let warnings = &mut assembler.source.warnings;
    value
        .is_object()
        .then(|| blocks::usage(&value, &mut |what| count(warnings, what)))
}

fn blocks_of(content: &RawValue, speaker: Speaker, assembler: &mut Assembler) -> Vec<ContentBlock> {
    let unknown = &mut assembler.source.unknown;
    blocks::blocks(Some(content), speaker, &mut |what| count(unknown, what))
}
