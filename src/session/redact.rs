//! Takes secrets out of a session, so that it can be shared, and leaves all else as it is.
//!
//! Each secret is replaced by a name that says what it was, numbered by first appearance and about
//! as long: `redacted-token-1-xxxxxxxx`. The same secret has the same name wherever one
//! [`Redactor`] meets it, in text, in the JSON of a tool's arguments, in a summary. What was
//! replaced is recognised and left alone, so that redacting twice changes nothing.
//!
//! Secrets are told by their shape or by the name they stand behind. What has
//! neither, a pass phrase in a sentence, a name, a picture, stays: look before you share.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{
    CompactedTo, ContentBlock, Image, JsonText, Message, Opaque, Recorded, RecordedCompaction,
    Session, SessionError, SessionParts, Source, Thinking, ToolResult, ToolSchema, ToolUse,
};
use crate::units::{ContentHash, to_valid_id};

mod json;
mod patterns;

/// What kind of secret was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Class {
    /// The inside of a private-key block.
    PrivateKey,
    /// A key or token that a provider gives out, told by how it begins.
    Token,
    /// What stands in a header that authorises a request.
    Credential,
    /// The password in an address, as in `postgres://user:password@host`.
    Password,
    /// An unguessable value behind a name such as `client_secret`.
    Secret,
    /// An e-mail address.
    #[serde(rename = "e-mail")]
    Email,
    /// The name of a home folder.
    Home,
}

impl Class {
    /// The name in counts and in replacements.
    pub fn name(self) -> &'static str {
        match self {
            Self::PrivateKey => "private-key",
            Self::Token => "token",
            Self::Credential => "credential",
            Self::Password => "password",
            Self::Secret => "secret",
            Self::Email => "e-mail",
            Self::Home => "home",
        }
    }
}

/// How replacements begin, but for those of addresses and folders.
const MARK: &str = "redacted-";

/// Lengths that replacements have: about that of the secret, and not exactly.
const LENGTHS: &[usize] = &[
    16, 24, 32, 40, 48, 64, 96, 128, 192, 256, 512, 1_024, 2_048, 4_096,
];

/// Replaces secrets, and remembers which got which name.
#[derive(Debug, Default)]
pub struct Redactor {
    /// By hash: a redactor that is printed shows no secret.
    names: BTreeMap<ContentHash, Arc<str>>,
    given: BTreeMap<Class, usize>,
    counts: BTreeMap<Class, u64>,
}

impl Redactor {
    /// A redactor that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many places were replaced since this was asked last, by class.
    pub fn take_counts(&mut self) -> BTreeMap<Class, u64> {
        std::mem::take(&mut self.counts)
    }

    /// The session without its secrets.
    pub fn session(&mut self, session: &Session) -> Result<Session, SessionError> {
        let system = session.system().map(|text| self.shared(text));
        let tools = session.tools().iter().map(|tool| ToolSchema {
            name: tool.name.clone(),
            definition: self.json(&tool.definition),
        });
        let tools = tools.collect();
        let resumed = session.resumed().cloned().map(|mut resumed| {
            resumed.notes = resumed.notes.map(|notes| self.shared(&notes));
            resumed
        });
        let id = to_valid_id(&self.text(session.id()), 80);
        let source = Source {
            skipped: self.names(&session.source().skipped),
            unknown: self.names(&session.source().unknown),
            ..session.source().clone()
        };
        let mut messages = Vec::new();
        let mut compactions = Vec::new();
        // In the order in which a file has them, for secrets are numbered as they appear.
        let mut left = session.compactions().iter().peekable();
        for (at, message) in session.messages().iter().enumerate() {
            while let Some(compaction) = left.next_if(|it| it.at <= at) {
                compactions.push(self.compaction(compaction));
            }
            messages.push(Arc::new(self.message(message)));
        }
        compactions.extend(left.map(|it| self.compaction(it)));
        Session::new(SessionParts {
            id,
            system,
            tools,
            messages,
            compactions,
            source,
            resumed,
            ..session.parts.clone()
        })
    }

    /// Names of records come from the file too.
    fn names(&mut self, counts: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let mut named = BTreeMap::new();
        for (name, count) in counts {
            *named.entry(self.text(name)).or_default() += count;
        }
        named
    }

    fn compaction(&mut self, compaction: &RecordedCompaction) -> RecordedCompaction {
        let after = match &compaction.after {
            CompactedTo::Replaced(pieces) => {
                let pieces = pieces.iter().map(|piece| match piece {
                    Recorded::Kept(range) => Recorded::Kept(range.clone()),
                    Recorded::Edited {
                        message,
                        block,
                        text,
                    } => Recorded::Edited {
                        message: *message,
                        block: *block,
                        text: self.shared(text),
                    },
                    Recorded::Written(message) => {
                        Recorded::Written(Arc::new(self.message(message)))
                    }
                });
                CompactedTo::Replaced(pieces.collect())
            }
            CompactedTo::Encrypted => CompactedTo::Encrypted,
            CompactedTo::Missing => CompactedTo::Missing,
        };
        RecordedCompaction {
            after,
            ..compaction.clone()
        }
    }

    fn message(&mut self, message: &Message) -> Message {
        let blocks = message.content().iter().map(|block| self.block(block));
        let mut redacted = Message::new(message.role(), blocks.collect());
        redacted.timestamp = message.timestamp;
        redacted.api_call.clone_from(&message.api_call);
        redacted.usage = message.usage;
        redacted.tags.clone_from(&message.tags);
        redacted.injected.clone_from(&message.injected);
        redacted.model.clone_from(&message.model);
        redacted.compact_hint = message.compact_hint.as_ref().map(|hint| self.shared(hint));
        redacted
    }

    fn block(&mut self, block: &ContentBlock) -> ContentBlock {
        match block {
            ContentBlock::Text(text) => ContentBlock::Text(self.shared(text)),
            ContentBlock::Thinking(thinking) => ContentBlock::Thinking(Thinking {
                text: self.shared(&thinking.text),
                signature: thinking.signature.clone(),
            }),
            ContentBlock::ToolUse(tool_use) => ContentBlock::ToolUse(ToolUse {
                input: self.json(&tool_use.input),
                ..tool_use.clone()
            }),
            ContentBlock::ToolResult(result) => ContentBlock::ToolResult(ToolResult {
                content: result.content.iter().map(|it| self.block(it)).collect(),
                ..result.clone()
            }),
            ContentBlock::Image(image) => ContentBlock::Image(Image {
                source: self.json(&image.source),
            }),
            ContentBlock::Opaque(opaque) => ContentBlock::Opaque(Opaque {
                kind: opaque.kind.clone(),
                json: self.json(&opaque.json),
            }),
        }
    }

    fn shared(&mut self, text: &Arc<str>) -> Arc<str> {
        match self.changed(text) {
            Some(changed) => changed.into(),
            None => text.clone(),
        }
    }

    /// The text without its secrets.
    pub fn text(&mut self, text: &str) -> String {
        self.changed(text).unwrap_or_else(|| text.to_owned())
    }

    /// The JSON without its secrets: still JSON, with its numbers, spaces and order as they were.
    pub fn json(&mut self, json: &JsonText) -> JsonText {
        json::redact(json, self).unwrap_or_else(|| json.clone())
    }

    /// The text without its secrets, if it has any.
    fn changed(&mut self, text: &str) -> Option<String> {
        let found = patterns::secrets(text);
        if found.is_empty() {
            return None;
        }
        let mut changed = String::with_capacity(text.len());
        let mut end = 0;
        for (range, class) in found {
            changed.push_str(&text[end..range.start]);
            changed.push_str(&self.name(&text[range.clone()], class));
            end = range.end;
        }
        changed.push_str(&text[end..]);
        Some(changed)
    }

    /// What stands for the secret, everywhere.
    fn name(&mut self, secret: &str, class: Class) -> Arc<str> {
        *self.counts.entry(class).or_default() += 1;
        let given = &mut self.given;
        let name = self
            .names
            .entry(ContentHash::of(secret))
            .or_insert_with(|| {
                let number = given.entry(class).or_default();
                *number += 1;
                replacement(class, *number, secret.len()).into()
            });
        name.clone()
    }
}

fn replacement(class: Class, number: usize, length: usize) -> String {
    match class {
        Class::Email => return format!("person{number}@example.com"),
        Class::Home => return format!("user{number}"),
        Class::PrivateKey | Class::Token | Class::Credential | Class::Password | Class::Secret => {}
    }
    let mut name = format!("{MARK}{}-{number}", class.name());
    let length = LENGTHS.iter().rev().find(|it| **it <= length);
    let missing = length.map_or(0, |length| length.saturating_sub(name.len()));
    if missing > 1 {
        name.push('-');
        name.extend(std::iter::repeat_n('x', missing - 1));
    }
    name
}

/// Whether a candidate is what stands for a secret already.
fn is_replaced(text: &str) -> bool {
    text.starts_with(MARK) || text.contains("REDACTED")
}

#[cfg(test)]
mod tests;
