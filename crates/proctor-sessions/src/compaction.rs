//! Compactions that recorded products made, and what the context was afterwards.

use std::ops::Range;
use std::sync::Arc;

use crate::units::{Tokens, Usage};
use crate::{ContentBlock, Message, Role, Tag};

/// A compaction that the recorded product made.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCompaction {
    /// It happened before the message of this index (after all earlier ones).
    pub at: usize,
    /// The cause: `auto`, `manual`, or the product's own word for something else.
    pub trigger: Option<Arc<str>>,
    /// The size of the context before it, in the product's own count.
    pub pre_tokens: Option<Tokens>,
    /// The bill of the call that wrote its summary, where the recording has it.
    pub usage: Option<Usage>,
    /// The context afterwards.
    pub after: CompactedTo,
}

impl RecordedCompaction {
    /// Whether the product decided on it. Neither this nor [`is_manual`](Self::is_manual) where the
    /// recording does not tell.
    pub fn is_automatic(&self) -> bool {
        self.trigger.as_deref() == Some("auto")
    }

    /// Whether a person asked for it.
    pub fn is_manual(&self) -> bool {
        self.trigger.as_deref() == Some("manual")
    }
}

/// The context after a recorded compaction.
#[derive(Debug, Clone, PartialEq)]
pub enum CompactedTo {
    /// The context was replaced by these, in order.
    Replaced(Vec<Recorded>),
    /// The product kept it in a form only the provider can read.
    Encrypted,
    /// The recording does not say.
    Missing,
}

/// A piece of a context after a recorded compaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    /// These messages of the session stayed as they were.
    Kept(Range<usize>),
    /// This message stayed, with the text of one block replaced. Pieces that follow each other and
    /// name the same message are one message with several blocks replaced.
    Edited {
        /// Index of the message.
        message: usize,
        /// Index of the block in it.
        block: usize,
        /// The new text of the block.
        text: Arc<str>,
    },
    /// The product wrote this: a summary, an attachment.
    Written(Arc<Message>),
}

impl Recorded {
    /// A message that the product wrote.
    pub fn written(role: Role, blocks: Vec<ContentBlock>, tags: &[Tag]) -> Self {
        let message = Message::new(role, blocks).with_tags(tags.iter().copied());
        Self::Written(Arc::new(message))
    }

    /// A summary in the user's place.
    pub fn summary(text: impl Into<Arc<str>>) -> Self {
        let blocks = vec![ContentBlock::Text(text.into())];
        Self::written(Role::User, blocks, &[Tag::CompactSummary])
    }

    /// Adds a message that stayed.
    pub fn keep(message: usize, pieces: &mut Vec<Self>) {
        match pieces.last_mut() {
            Some(Self::Kept(range)) if range.end == message => range.end += 1,
            _ => pieces.push(Self::Kept(message..message + 1)),
        }
    }

    /// Adds a message that stayed, of which the last piece may hold a part already.
    pub fn keep_once(message: usize, pieces: &mut Vec<Self>) {
        if !matches!(pieces.last(), Some(Self::Kept(range)) if message < range.end) {
            Self::keep(message, pieces);
        }
    }
}
