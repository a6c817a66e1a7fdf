//! Cline and Roo keep a task's conversation as a list of Anthropic's messages with a few keys
//! more; newer versions of Cline as an object with `system_prompt` and `messages`.
//!
//! Rules of this format, beside those every importer shares:
//! - Where the agent was given no tools, calls stand in the model's text and results in the user's,
//!   which nobody typed; what a person typed stands in tags such as `<task>`.
//! - Roo never deletes: what was summarised names its summary (`condenseParent`), what was cut off
//!   names its marker (`truncationParent`). Summaries and markers stand where they take effect in
//!   the list, which is not when they were written: see [`hidden`].
//! - The newer versions' input of a call includes the cached tokens. The older ones keep usage in
//!   a file of its own.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::assemble::{Assembler, AssistantRecord, UserRecord, add_counts};
use super::conversations::{Object, keep_unread};
use super::documents::Documents;
use super::lines::strip_bom;
use super::{ImportError, Importer};
use crate::session::{ContentBlock, Role, Session, Source, Tag};
use crate::units::{ApiCallId, Tokens, Usage};
use hidden::Hidden;

mod content;
mod hidden;

/// Reads tasks of Cline and Roo.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cline;

const FORMAT: &str = "cline";

/// Tags around what a person typed, where results are text too.
const TYPED: &[&str] = &[
    "<task>",
    "<feedback>",
    "<answer>",
    "<user_message>",
    "<user_feedback>",
];

impl Importer for Cline {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        let head = String::from_utf8_lossy(strip_bom(head));
        let head = head.trim_start();
        let has = |text: &str, keys: &[&str]| keys.iter().all(|key| text.contains(key));
        if head.starts_with('[') {
            let marks = ["\"ts\":", "\"isSummary\":", "<environment_details>"];
            return has(head, &["\"role\"", "\"content\""])
                && marks.iter().any(|mark| head.contains(mark));
        }
        let start: String = head.chars().take(1_000).collect();
        start.starts_with('{') && has(&start, &["\"updated_at\"", "\"agent\"", "\"sessionId\""])
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        let documents = Documents::read(path, input)?;
        let (values, _) = documents.values()?;
        let mut assembler = Assembler::new([]);
        FORMAT.clone_into(&mut assembler.source.format);
        let source = Source {
            warnings: documents.warnings.clone(),
            ..Source::default()
        };
        add_counts(&mut assembler.source, source);
        for value in &values {
            let raw: &RawValue = value.parse()?;
            let messages = match Object::read(raw) {
                Some(mut object) => {
                    assembler.header.system = object.take_text("system_prompt");
                    let messages = object.take_list("messages");
                    messages.ok_or_else(|| value.error("missing key `messages`"))?
                }
                None => value.parse()?,
            };
            read(&messages, &mut assembler);
        }
        let session = assembler.finish(documents.id.clone(), path)?;
        let session = session.ok_or_else(|| ImportError::NoConversation {
            path: path.to_owned(),
        })?;
        Ok(vec![session])
    }
}

/// Reads the messages of one task.
fn read(messages: &[&RawValue], assembler: &mut Assembler) {
    let mut hidden = Hidden::of(messages);
    for (at, raw) in messages.iter().enumerate() {
        hidden.take_effect(at, assembler);
        let Some(mut object) = Object::read(raw) else {
            keep_unread("malformed", raw, assembler);
            continue;
        };
        if hidden.is_written(at) {
            hidden.write(at, &mut object, assembler);
            continue;
        }
        message(raw, object, &hidden::name(at), assembler);
    }
    hidden.take_effect(messages.len(), assembler);
}

fn message(raw: &RawValue, mut object: Object<'_>, name: &Arc<str>, assembler: &mut Assembler) {
    let timestamp = object.take_time("ts", assembler);
    let role = match object.take_text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        // Proof of reasoning that only the provider can read.
        _ if object.take_text("type").as_deref() == Some("reasoning") => {
            return assembler.skip("encrypted reasoning");
        }
        _ => return keep_unread("of unknown role", raw, assembler),
    };
    let blocks = content::blocks(object.take("content"), role, assembler);
    if role == Role::User {
        let record = UserRecord {
            tags: speaker(&blocks),
            blocks,
            timestamp,
        };
        return assembler.user(Some(name), record);
    }
    let mut model = object.take_object("modelInfo").unwrap_or_default();
    let model = model.take_text("id").or_else(|| model.take_text("modelId"));
    let usage = object.take("metrics").and_then(|raw| usage(raw, assembler));
    let record = AssistantRecord {
        call: object.take_text("id").map(ApiCallId),
        model,
        blocks,
        usage,
        timestamp,
        tags: Vec::new(),
    };
    assembler.assistant(Some(name), record);
}

/// Who wrote a message of the user's: a person, or the product with what came of a call.
fn speaker(blocks: &[ContentBlock]) -> Vec<Tag> {
    let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(_));
    let text = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => Some(text.clone()),
        _ => None,
    };
    let mut texts = blocks.iter().filter_map(text).peekable();
    let is_told = texts.peek().is_some_and(|first| first.starts_with('['));
    let is_typed = texts.any(|text| TYPED.iter().any(|tag| text.contains(tag)));
    if is_typed {
        vec![Tag::TypedUser]
    } else if blocks.iter().any(is_result) {
        Vec::new()
    } else if is_told {
        vec![Tag::Meta]
    } else {
        vec![Tag::TypedUser]
    }
}

/// The input includes what was read from the cache and written to it.
fn usage(raw: &RawValue, assembler: &mut Assembler) -> Option<Usage> {
    let value: Value = serde_json::from_str(raw.get()).ok()?;
    if value.get("tokens").is_some() {
        assembler.skip("usage that does not tell what was read from the cache");
        return None;
    }
    let mut counter = |key: &str| {
        let found = value.get(key).filter(|it| !it.is_null());
        let count = found.and_then(Value::as_u64);
        if count.is_none() && found.is_some() {
            assembler.warn("a usage counter is no count and was taken as zero");
        }
        count.unwrap_or_default()
    };
    let (input, output) = (counter("inputTokens"), counter("outputTokens"));
    let (read, written) = (counter("cacheReadTokens"), counter("cacheWriteTokens"));
    let cached = read.saturating_add(written);
    if cached > input {
        assembler.warn("a usage counts more cached tokens than the prompt has");
    }
    let usage = Usage {
        input_uncached: Tokens(input.saturating_sub(cached)),
        cache_write_5m: Tokens(written),
        cache_write_1h: Tokens::ZERO,
        cache_read: Tokens(read),
        output: Tokens(output),
    };
    (usage != Usage::default()).then_some(usage)
}
