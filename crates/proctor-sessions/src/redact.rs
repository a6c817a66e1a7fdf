//! Takes secrets out of a session, so that it can be shared, and leaves all else as it is.
//!
//! Each secret is replaced by a name that says what it was, numbered by first appearance and about
//! as long: `redacted-token-1-xxxxxxxx`. The same secret has the same name wherever one
//! [`Redactor`] meets it, in text, in the JSON of a tool's arguments, in a summary. What was
//! replaced is recognised and left alone, so that redacting twice changes nothing.
//!
//! Secrets are recognised by their shape or by the name before them. What has neither, a pass
//! phrase in a sentence, a name, a picture, stays: look before you share.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, RecordedCompaction, ResumePoint,
    Session, SessionError, SessionParts, Source,
};
use crate::units::{ContentHash, to_valid_id};

mod json;
mod keys;
mod patterns;
mod secret;

pub use keys::{value_without_keys, without_keys};
pub use secret::Secret;

/// The kind of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Class {
    /// The inside of a private-key block.
    PrivateKey,
    /// A key or token that a provider gives out, recognised by its beginning.
    Token,
    /// The value in a header that authorises a request.
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
const LENGTHS: &[usize] = &[16, 24, 32, 40, 48, 64, 96, 128, 192, 256, 512, 1_024, 2_048, 4_096];

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
        let mut tools = session.tools().to_vec();
        for tool in &mut tools {
            tool.definition = self.json(&tool.definition);
        }
        let mut resumed = session.resumed().cloned();
        if let Some(ResumePoint { notes, .. }) = &mut resumed {
            *notes = notes.as_ref().map(|notes| self.shared(notes));
        }
        let id = to_valid_id(&self.text(session.id()), 80);
        let main = session.source().main.as_deref();
        let source = Source {
            main: main.map(|id| to_valid_id(&self.text(id), 80)),
            skipped: self.names(&session.source().skipped),
            unknown: self.names(&session.source().unknown),
            ..session.source().clone()
        };
        let mut messages = Vec::new();
        let mut compactions = Vec::new();
        // In the order in which a file has them, for secrets are numbered as they appear.
        let mut left = session.compactions().iter().peekable();
        for (at, message) in session.messages().iter().enumerate() {
            while let Some(compaction) = left.next_if(|compaction| compaction.at <= at) {
                compactions.push(self.compaction(compaction));
            }
            messages.push(Arc::new(self.message(message)));
        }
        compactions.extend(left.map(|compaction| self.compaction(compaction)));
        Session::new(SessionParts {
            id,
            system,
            tools,
            messages,
            compactions,
            source,
            resumed,
            ..session.clone().into_parts()
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

    fn compaction(&mut self, recorded: &RecordedCompaction) -> RecordedCompaction {
        let mut compaction = recorded.clone();
        if let CompactedTo::Replaced(pieces) = &mut compaction.after {
            for piece in pieces {
                match piece {
                    Recorded::Kept(_) => {}
                    Recorded::Edited { text, .. } => *text = self.shared(text),
                    Recorded::Written(message) => *message = Arc::new(self.message(message)),
                }
            }
        }
        compaction
    }

    fn message(&mut self, message: &Message) -> Message {
        let mut redacted = Message::new(message.role(), self.blocks(message.content()));
        redacted.tags = message.tags;
        redacted.details = message.details.clone();
        if let Some(hint) = &message.details.compact_hint {
            redacted.details.compact_hint = Some(self.shared(hint));
        }
        redacted
    }

    fn blocks(&mut self, original: &[ContentBlock]) -> Vec<ContentBlock> {
        let mut blocks = original.to_vec();
        for block in &mut blocks {
            match block {
                ContentBlock::Text(text) => *text = self.shared(text),
                ContentBlock::Thinking(thinking) => thinking.text = self.shared(&thinking.text),
                ContentBlock::ToolUse(tool_use) => tool_use.input = self.json(&tool_use.input),
                ContentBlock::ToolResult(result) => result.content = self.blocks(&result.content),
                ContentBlock::Image(image) => image.source = self.json(&image.source),
                ContentBlock::Opaque(opaque) => opaque.json = self.json(&opaque.json),
            }
        }
        blocks
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

    /// The placeholder of the secret, the same everywhere.
    fn name(&mut self, secret: &str, class: Class) -> Arc<str> {
        *self.counts.entry(class).or_default() += 1;
        let name = self.names.entry(ContentHash::of(secret)).or_insert_with(|| {
            let number = self.given.entry(class).or_default();
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
    let length = LENGTHS.iter().rev().find(|usual| **usual <= length);
    let missing = length.map_or(0, |length| length.saturating_sub(name.len()));
    if missing > 1 {
        name.push('-');
        name.extend(std::iter::repeat_n('x', missing - 1));
    }
    name
}

/// Whether a candidate is already the placeholder of a secret.
fn is_replaced(text: &str) -> bool {
    text.starts_with(MARK) || text.contains("REDACTED")
}

#[cfg(test)]
mod tests;
