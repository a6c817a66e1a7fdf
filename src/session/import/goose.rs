//! goose kept a session as a header and one message per line; newer versions export it as one
//! object with its `conversation`.
//!
//! Rules of this format, beside those every importer shares:
//! - Requests and responses of tools carry their value or their error, with a `status`.
//! - What is meant for the user alone is no part of the conversation: notices, requests for a
//!   confirmation, texts whose `audience` is the user.
//! - A compaction hides earlier messages from the agent (`agentVisible`), and writes messages that
//!   the user does not see (`userVisible`): a summary, and what the agent is told beside it. Who
//!   sees what is recorded as it was at the end; messages that the user does not see are taken to
//!   have been written where they stand, and what was hidden by then as hidden with them.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::assemble::{Assembler, AssistantRecord, UserRecord, add_counts};
use super::conversations::{Object, keep_unread, speaker_of, unknown_record};
use super::documents::Documents;
use super::lines::{head_lines, strip_bom};
use super::{ImportError, Importer};
use crate::session::{
    CompactedTo, ContentBlock, Message, Recorded, RecordedCompaction, Role, Session, Source, Tag,
};
use crate::units::{ApiCallId, Timestamp, Usage};

mod content;
#[cfg(feature = "sqlite")]
pub(super) mod database;

/// Reads sessions of goose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goose;

const FORMAT: &str = "goose";

impl Importer for Goose {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        let text = String::from_utf8_lossy(strip_bom(head));
        let start: String = text.trim_start().chars().take(4_000).collect();
        let has = |keys: &[&str]| keys.iter().all(|key| start.contains(key));
        if !start.starts_with('{') {
            return false;
        }
        let (lines, rest) = head_lines(head);
        let first = lines.first().copied().unwrap_or(rest);
        let is_message = serde_json::from_slice::<&RawValue>(first).is_ok_and(is_message);
        is_message
            || has(&["\"working_dir\"", "\"message_count\""])
            || has(&["\"working_dir\"", "\"extension_data\""])
            || has(&["\"working_dir\"", "\"conversation\""])
            || has(&["\"description\"", "\"message_count\"", "\"total_tokens\""])
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        let documents = Documents::read(path, input)?;
        let (values, cut) = documents.values()?;
        let mut reading = Reading::default();
        let source = Source {
            format: FORMAT.to_owned(),
            warnings: documents.warnings.clone(),
            ..Source::default()
        };
        reading.assembler.source.format.clone_from(&source.format);
        add_counts(&mut reading.assembler.source, source);
        if cut {
            reading
                .assembler
                .warn("the last line was cut and is left out");
        }
        for (at, value) in values.iter().enumerate() {
            let raw: &RawValue = value.parse()?;
            let Some(mut object) = Object::read(raw) else {
                keep_unread("malformed", raw, &mut reading.assembler);
                continue;
            };
            if is_message(raw) {
                reading.message(raw, None);
            } else if let Some(messages) = object.take_list("conversation") {
                reading.header(object);
                for raw in messages {
                    reading.message(raw, None);
                }
            } else if at == 0 || object.has("working_dir") {
                reading.header(object);
                reading.assembler.skip("header");
            } else {
                reading.unknown(raw);
            }
        }
        let session = reading.finish(documents.id.clone(), path)?;
        let session = session.ok_or_else(|| ImportError::NoConversation {
            path: path.to_owned(),
        })?;
        Ok(vec![session])
    }
}

fn is_message(raw: &RawValue) -> bool {
    Object::read(raw).is_some_and(|mut object| {
        let has_role = object.take("role").is_some();
        has_role && object.take("created").is_some() && object.take("content").is_some()
    })
}

/// Who sees a message, at the end of the session.
#[derive(Debug, Clone, Copy)]
struct Visibility {
    to_user: bool,
    to_agent: bool,
}

/// What the context may hold: a message of the session, or one that a compaction wrote.
enum Piece {
    Said(Arc<str>),
    Written(Arc<Message>),
}

/// One session, growing message by message.
#[derive(Default)]
struct Reading {
    assembler: Assembler,
    /// Everything that was said or written, and whether the agent still sees it at the end.
    pieces: Vec<(Piece, bool)>,
    /// Messages that a compaction wrote, until one follows that the user sees too.
    written: Vec<Arc<Message>>,
}

impl Reading {
    fn unknown(&mut self, raw: &RawValue) {
        let source = &mut self.assembler.source;
        if let Some(kept) = unknown_record("record without a message", raw, source) {
            self.assembler.user(None, kept);
        }
    }

    /// What stands beside the messages.
    fn header(&mut self, mut header: Object<'_>) {
        if let Some(mut config) = header.take_object("model_config") {
            let model = config.take_text("model_name");
            self.assembler.header.model = model.map(|model| model.to_string());
        }
    }

    /// Reads a message, with what its call was billed where that is known.
    fn message(&mut self, raw: &RawValue, usage: Option<Usage>) {
        let Some(mut object) = Object::read(raw) else {
            return keep_unread("malformed", raw, &mut self.assembler);
        };
        let role = match object.take_text("role").as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return keep_unread("of unknown role", raw, &mut self.assembler),
        };
        let blocks = content::blocks(object.take("content"), role, &mut self.assembler);
        let timestamp = object.take_time("created", &mut self.assembler);
        let id = object.take_text("id");
        let seen = visibility(object.take_object("metadata"));
        if blocks.is_empty() {
            self.assembler.skip("message for the user alone");
        } else if seen.to_user {
            self.compacted();
            self.said(role, blocks, timestamp, id, usage, seen);
        } else {
            let tag = match role {
                _ if !self.written.is_empty() => Tag::Meta,
                Role::User | Role::Assistant => Tag::CompactSummary,
            };
            let message = Arc::new(Message::new(role, blocks).with_tags([tag]));
            self.written.push(message.clone());
            self.pieces.push((Piece::Written(message), seen.to_agent));
        }
    }

    fn said(
        &mut self,
        role: Role,
        blocks: Vec<ContentBlock>,
        timestamp: Option<Timestamp>,
        id: Option<Arc<str>>,
        usage: Option<Usage>,
        seen: Visibility,
    ) {
        let name: Arc<str> = format!("message {}", self.pieces.len()).into();
        match role {
            Role::User => {
                let record = UserRecord {
                    tags: speaker_of(&blocks),
                    blocks,
                    timestamp,
                };
                self.assembler.user(Some(&name), record);
            }
            Role::Assistant => {
                let record = AssistantRecord {
                    call: id.map(ApiCallId),
                    model: None,
                    blocks,
                    usage,
                    timestamp,
                    tags: Vec::new(),
                };
                self.assembler.assistant(Some(&name), record);
            }
        }
        self.pieces.push((Piece::Said(name), seen.to_agent));
    }

    /// Ends a compaction whose messages were collected.
    fn compacted(&mut self) {
        let written = std::mem::take(&mut self.written).len();
        if written == 0 {
            return;
        }
        let at = self.assembler.flush();
        let mut after: Vec<Recorded> = Vec::new();
        let before = self.pieces.len() - written;
        for (place, (piece, is_visible)) in self.pieces.iter().enumerate() {
            match piece {
                // What this compaction wrote was seen, whatever came later.
                Piece::Written(message) if *is_visible || place >= before => {
                    after.push(Recorded::Written(message.clone()));
                }
                Piece::Said(name) if *is_visible => {
                    let message = self.assembler.message_of(name);
                    match (message, after.last_mut()) {
                        (None, _) => {}
                        (Some(message), Some(Recorded::Kept(range))) if message < range.end => {}
                        (Some(message), Some(Recorded::Kept(range))) if message == range.end => {
                            range.end += 1;
                        }
                        (Some(message), _) => after.push(Recorded::Kept(message..message + 1)),
                    }
                }
                Piece::Written(_) | Piece::Said(_) => {}
            }
        }
        self.assembler.compaction(RecordedCompaction {
            at,
            trigger: None,
            pre_tokens: None,
            after: CompactedTo::Replaced(after),
        });
    }

    fn finish(mut self, id: String, path: &Path) -> Result<Option<Session>, ImportError> {
        self.compacted();
        self.assembler.finish(id, path)
    }
}

/// Without metadata everybody sees a message.
fn visibility(metadata: Option<Object<'_>>) -> Visibility {
    let mut metadata = metadata.unwrap_or_default();
    let mut sees = |key| metadata.take(key).is_none_or(|it| it.get() != "false");
    Visibility {
        to_user: sees("userVisible"),
        to_agent: sees("agentVisible"),
    }
}
