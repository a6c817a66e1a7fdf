//! The session's messages, for a page that shows a prompt entry by entry.

use super::CallView;
use super::prelude::*;
use crate::record::{MessageKind, PromptEntry};
use crate::script::first_chars;
use crate::session::redact::Redactor;

/// Characters of a message that are kept.
const CHARS: usize = 160;

/// Characters in which secrets are looked for, at least: a secret that is cut in two is none to the eye
/// that looks for its shape.
const REDACTED_CHARS: usize = 2_000;

/// Keeps how each message begins. That is written when the cell is over: a message takes less memory than its
/// beginning.
#[derive(Debug, Default)]
pub struct Messages {
    messages: Vec<(Arc<Message>, Tokens)>,
    answered_by: Vec<usize>,
}

impl Messages {
    /// Has room for so many messages.
    pub(super) fn with_room(messages: usize) -> Self {
        Self { messages: Vec::with_capacity(messages), ..Self::default() }
    }
}

impl Observer for Messages {
    fn appended(&mut self, entry: &Entry) {
        let tokens = entry.size().tokens;
        self.messages.push((entry.message.clone(), tokens));
    }

    fn called(&mut self, view: &CallView<'_>) {
        self.answered_by.push(view.before);
    }

    fn finish(self: Box<Self>, record: &mut CellRecord) {
        let messages = self.messages.iter().map(|(message, tokens)| {
            let size = Size { tokens: *tokens, ..Size::default() };
            let entry = Entry::sized(Origin::Verbatim(0), message.clone(), size);
            prompt_entry(&entry, None)
        });
        record.messages = messages.collect();
        record.answered_by = self.answered_by;
    }
}

/// An entry as records keep it, made of this message.
pub(super) fn prompt_entry(entry: &Entry, message: Option<usize>) -> PromptEntry {
    let (mut text, chars) = beginning(entry, None, CHARS);
    if chars > CHARS as u64 {
        text.push_str(" …");
    }
    PromptEntry { kind: kind(entry), message, tokens: entry.size().tokens, text }
}

/// How a message, or one block of it, begins, its secrets replaced; and the characters of the whole.
pub(super) fn beginning(entry: &Entry, block: Option<usize>, chars: usize) -> (String, u64) {
    let texts = entry.message.model_text();
    let whole = block.map_or(texts, |block| texts.get(block..=block).unwrap_or(texts)).join("\n");
    let head = first_chars(&whole, REDACTED_CHARS.max(4 * chars));
    // Most beginnings have no secret, and it takes fewer characters to see that: no secret has a space in it but a
    // block of a private key, which is known by its first line.
    let (near, far) = head.split_at(first_chars(head, 2 * chars).len());
    let near = &head[..near.len() + far.find(char::is_whitespace).unwrap_or(far.len())];
    let mut shown = Redactor::new().text(near);
    if shown != near {
        shown = Redactor::new().text(head);
    }
    let count = whole.chars().count() as u64;
    (first_chars(&shown, chars).to_owned(), count)
}

pub(super) fn kind(entry: &Entry) -> MessageKind {
    match &entry.origin {
        Origin::Derived(_) => MessageKind::Summary,
        Origin::Restored(_) => MessageKind::Restored,
        Origin::Authored => MessageKind::Authored,
        Origin::Verbatim(_) | Origin::Edited { .. } => {
            let message = &entry.message;
            if message.role() == Role::Assistant {
                MessageKind::Agent
            } else if message.tool_results().next().is_some() {
                MessageKind::Results
            } else {
                MessageKind::User
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::{CharsPer4, CountedTexts};

    #[test]
    fn a_secret_at_the_end_of_a_beginning_is_replaced_as_in_the_whole_text() {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let long = "Tr0ub4dor-el3ven:".repeat(20);
        let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n".repeat(30);
        for secret in [
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a".to_owned(),
            format!("password = \"{long}\""),
            format!("-----BEGIN PRIVATE KEY-----\n{key}-----END PRIVATE KEY-----"),
            "machine a.example login b password s3cretp4ss".to_owned(),
        ] {
            for before in (0..=CHARS).step_by(8) {
                let text = format!("{}\n{secret}\n{}", "x ".repeat(before / 2), "y\n".repeat(200));
                let message = Arc::new(Message::text(Role::User, &*text));
                let entry = Entry::new(Origin::Verbatim(0), message, &counts);
                let whole = Redactor::new().text(&text);
                assert_ne!(whole, text);
                let (shown, chars) = beginning(&entry, None, CHARS);
                assert_eq!(shown, first_chars(&whole, CHARS), "{before}: {secret}");
                assert_eq!(chars, text.chars().count() as u64);
            }
        }
    }
}
