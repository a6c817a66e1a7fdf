//! iFlow CLI writes records like Claude Code's, one per line, with differences.
//!
//! Rules of this format, beside those every importer shares:
//! - Records that follow each other without a user's between them are one call: while an answer
//!   comes in it is written piece by piece, and a tool use stands in two pieces.
//! - The content of a result is an object of Gemini's: what the model was told is the response in
//!   it; what was shown on the screen stands beside it.
//! - All pieces of an answer have the same parent, so that the order of the file is the
//!   conversation.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::anthropic::blocks::{self, Speaker};
use super::assemble::{Assembler, AssistantRecord, UserRecord, add_counts, count};
use super::content;
use super::conversations::{Object, speaker_of, unknown_record};
use super::gemini_cli::response;
use super::lines::{Lines, Strictness, head_lines};
use super::{ImportError, Importer};
use crate::session::{ContentBlock, Session, Source, Tag, ToolResult};
use crate::units::{ApiCallId, Timestamp, Usage};

/// Reads sessions of iFlow CLI.
#[derive(Debug, Clone, Copy)]
pub(super) struct IFlow;

const FORMAT: &str = "iflow";

impl Importer for IFlow {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct First {
            session_id: String,
            #[serde(rename = "uuid")]
            _uuid: String,
            user_type: String,
        }
        let (lines, rest) = head_lines(head);
        let first = lines.first().copied().unwrap_or(rest);
        // Claude Code's ids are nothing but hexadecimal digits and dashes.
        serde_json::from_slice::<First>(first).is_ok_and(|first| {
            first.session_id.starts_with("session-") && !first.user_type.is_empty()
        })
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        let mut lines = Lines::new(path, input, Strictness::Recording);
        let mut reading = Reading::default();
        FORMAT.clone_into(&mut reading.assembler.source.format);
        while let Some(line) = lines.next()? {
            let raw = line.parse()?;
            if let Some(record) = Object::read(raw) {
                reading.record(record, raw);
            } else {
                let unknown = &mut reading.assembler.source.unknown;
                count(unknown, "record that is no object");
            }
        }
        let source = Source {
            warnings: std::mem::take(&mut lines.warnings),
            ..Source::default()
        };
        add_counts(&mut reading.assembler.source, source);
        let session = reading.assembler.finish(lines.session_id(), path)?;
        let session = session.ok_or_else(|| ImportError::NoConversation { path: lines.path() })?;
        Ok(vec![session])
    }
}

#[derive(Default)]
struct Reading {
    assembler: Assembler,
    calls: u64,
    is_open: bool,
    uses: BTreeSet<Arc<str>>,
}

impl Reading {
    fn record(&mut self, mut record: Object<'_>, raw: &RawValue) {
        let time = record.take_time("timestamp", &mut self.assembler);
        let kind = record.take_text("type");
        let message = record.take_object("message");
        match (kind.as_deref(), message) {
            (Some("user"), Some(message)) => {
                let is_meta = record.take("isMeta").is_some_and(|raw| raw.get() == "true");
                self.user(message, time, is_meta);
            }
            (Some("assistant"), Some(message)) => self.model(message, time),
            (kind, message) => {
                let what = match (kind, message) {
                    (Some("user" | "assistant"), _) => "record without a message".to_owned(),
                    (kind, _) => format!("record {}", kind.unwrap_or("without type")),
                };
                if let Some(kept) = unknown_record(&what, raw, &mut self.assembler.source) {
                    let timestamp = time;
                    self.assembler.user(None, UserRecord { timestamp, ..kept });
                }
            }
        }
    }

    fn model(&mut self, mut message: Object<'_>, time: Option<Timestamp>) {
        self.calls += u64::from(!self.is_open);
        self.is_open = true;
        let mut blocks = self.blocks(message.take("content"), Speaker::Assistant);
        let before = blocks.len();
        blocks.retain(|block| match block {
            ContentBlock::ToolUse(tool_use) => self.uses.insert(tool_use.id.clone()),
            _ => true,
        });
        for _ in blocks.len()..before {
            self.assembler.skip("tool use written again");
        }
        let usage = message.take("usage");
        let usage = usage.and_then(|raw| {
            let value: serde_json::Value = serde_json::from_str(raw.get()).ok()?;
            let warnings = &mut self.assembler.source.warnings;
            Some(blocks::usage(&value, &mut |what| count(warnings, what)))
        });
        let record = AssistantRecord {
            call: Some(ApiCallId(format!("call-{}", self.calls).into())),
            model: message.take_text("model"),
            blocks,
            // Most models are not billed, and written with zeros.
            usage: usage.filter(|usage| *usage != Usage::default()),
            timestamp: time,
            tags: Vec::new(),
        };
        self.assembler.assistant(None, record);
    }

    fn user(&mut self, mut message: Object<'_>, timestamp: Option<Timestamp>, is_meta: bool) {
        self.is_open = false;
        let raw = message.take("content");
        let items = raw.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        let blocks = match items {
            Some(items) => items.into_iter().flat_map(|raw| self.item(raw)).collect(),
            None => self.blocks(raw, Speaker::User),
        };
        let tags = if is_meta {
            vec![Tag::Meta]
        } else {
            speaker_of(&blocks)
        };
        let record = UserRecord {
            blocks,
            timestamp,
            tags,
        };
        self.assembler.user(None, record);
    }

    /// A block of the user's; a result holds an object.
    fn item(&mut self, raw: &RawValue) -> Vec<ContentBlock> {
        let mut block = Object::read(raw).unwrap_or_default();
        let inner = block.take_object("content");
        let id = block.take_text("tool_use_id");
        let is_error = block
            .take("is_error")
            .is_some_and(|raw| raw.get() == "true");
        let (Some(mut inner), Some(tool_use_id)) = (inner, id) else {
            return self.one(raw);
        };
        let part = inner
            .take_object("responseParts")
            .unwrap_or_else(|| inner.clone());
        let function = part.clone().take_object("functionResponse");
        let told = function.and_then(|mut function| function.take("response"));
        let content = match told {
            Some(told) => vec![response(told)],
            None => vec![content::unknown("tool_result", raw, &mut self.assembler)],
        };
        let error = told
            .and_then(Object::read)
            .is_some_and(|told| told.has("error"));
        vec![ContentBlock::ToolResult(ToolResult {
            tool_use_id,
            content,
            is_error: is_error || error,
        })]
    }

    fn one(&mut self, raw: &RawValue) -> Vec<ContentBlock> {
        let list = format!("[{}]", raw.get());
        let list: Option<Box<RawValue>> = RawValue::from_string(list).ok();
        self.blocks(list.as_deref(), Speaker::User)
    }

    fn blocks(&mut self, raw: Option<&RawValue>, speaker: Speaker) -> Vec<ContentBlock> {
        let unknown = &mut self.assembler.source.unknown;
        blocks::blocks(raw, speaker, &mut |what| count(unknown, what))
    }
}
