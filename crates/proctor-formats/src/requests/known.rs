//! Knows what the requests of a log said, so that one that shares nothing with them is compared with
//! no session.

use super::super::prelude::*;
use proctor_sessions::units::ContentHash;
use proctor_sessions::wire::Look;

/// What the requests so far said.
#[derive(Default)]
pub(super) struct Known {
    hashes: BTreeSet<ContentHash>,
    /// A request without messages was answered: what goes on from it may share none.
    is_begun_by_model: bool,
}

impl Known {
    /// Whether a request has a message of an earlier one, or one that begins like it.
    pub(super) fn shares(&self, asked: &[Arc<Message>], looks: &[Look]) -> bool {
        let mut messages = asked.iter().zip(looks);
        self.is_begun_by_model
            || looks.is_empty()
            || messages.any(|(message, look)| {
                hashes(message, look)
                    .iter()
                    .any(|hash| self.hashes.contains(hash))
            })
    }

    /// Whether a message of that look was in an earlier request, or answered one.
    pub(super) fn holds(&self, look: &Look) -> bool {
        self.hashes.contains(&look.whole)
    }

    /// Takes note of a request, and of its answer.
    pub(super) fn add(&mut self, messages: &[Arc<Message>], asked: &[Look]) {
        self.is_begun_by_model |= asked.is_empty();
        for (at, message) in messages.iter().enumerate() {
            let look = asked.get(at).copied();
            let look = look.unwrap_or_else(|| Look::of(message));
            self.hashes.extend(hashes(message, &look));
        }
    }
}

/// The hashes of a message: of all of it, of its first block, and of its shape where the ids of tool
/// uses make that its own.
fn hashes(message: &Message, look: &Look) -> Vec<ContentHash> {
    let first = message.model_text().first();
    let first = first.map(|text| ContentHash::of(text.as_bytes()));
    let mut blocks = message.content().iter();
    let calls = blocks.any(|it: &ContentBlock| it.is_use() || it.is_result());
    [Some(look.whole), first, calls.then_some(look.shape)]
        .into_iter()
        .flatten()
        .collect()
}
