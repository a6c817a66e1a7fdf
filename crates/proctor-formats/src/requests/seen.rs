//! A message of a context, as a later request may hold it.

use super::agent::is_alike;
use super::said::{LONG_CHARS, text};
use crate::prelude::*;

/// A message of a context.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) look: Look,
    /// An answer may look otherwise when it is sent back: without its thoughts, trimmed.
    pub(super) is_answer: bool,
    /// Its shape with the ids that the client gives it.
    pub(super) sent: ContentHash,
    pub(super) message: Arc<Message>,
}

/// Texts of fewer words are alike by chance.
const WORDS: usize = 8;

impl Seen {
    /// Whether it is surely this message of a request.
    pub(super) fn is(&self, look: &Look) -> bool {
        let sent_back = self.is_answer && self.look.shape == look.shape;
        self.look.whole == look.whole || self.look.form == look.form || sent_back
    }

    /// Whether both are words of the user's, which a client may send again with another date.
    pub(super) fn is_reworded(&self, look: &Look, message: &Message) -> bool {
        let calls = self.look.has_calls() || look.has_calls();
        !calls && [&*self.message, message].map(Message::role) == [Role::User; 2]
    }

    /// Whether a client may have sent it with another date or other notes.
    pub(super) fn is_alike(&self, look: &Look, message: &Message) -> bool {
        if !self.is_reworded(look, message) {
            return false;
        }
        let (own, other) = (text(&self.message), text(message));
        own.split_whitespace().nth(WORDS).is_some() && is_alike(&own, &other)
    }

    /// Whether it is a call, or its result, with the ids that a request has: others may have called a tool alike.
    pub(super) fn is_call(&self, look: &Look) -> bool {
        let mut calls = self.message.tool_uses().map(|(_, call)| &call.id);
        let unnamed = calls.any(|id| id.starts_with(UNNAMED));
        look.has_calls() && (self.look.shape == look.shape || self.is(look) && unnamed)
    }

    /// Whether it says more than others would by chance.
    pub(super) fn is_long(&self) -> bool {
        text(&self.message).chars().count() >= LONG_CHARS
    }

    /// Whether the model said it, or a tool, and the same in a request.
    pub(super) fn is_answer_in(&self, look: &Look) -> bool {
        self.look.whole == look.whole && is_models(&self.message) || self.is_call(look)
    }
}

/// Whether the model said it, rather than the product in its name.
pub(super) fn is_models(message: &Message) -> bool {
    message.role() == Role::Assistant && !message.has_tag(Tag::Synthetic)
}
