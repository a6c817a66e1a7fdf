//! Facts about a message besides its text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A fact about a message that an importer or generator knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tag {
    /// A person typed it, as against tool results and injected text.
    TypedUser,
    /// The product wrote it, not the model: an interruption, an API error.
    Synthetic,
    /// A summary of what came before.
    CompactSummary,
    /// Marks where a compaction happened.
    CompactBoundary,
    /// Belongs to a sub-agent's conversation.
    Sidechain,
    /// Injected by the product: reminders, command output, attachments.
    Meta,
    /// A phase of the work ends here, or a person asks for a compaction.
    PhaseEnd,
    /// Named by the agent as no longer needed.
    Snip,
    /// Holds a tool result that answers no earlier tool use.
    Orphan,
    /// Holds tool results that must outlive a compaction: a file read with critical data.
    Protected,
}

impl Tag {
    const ALL: [Self; 10] = [
        Self::TypedUser,
        Self::Synthetic,
        Self::CompactSummary,
        Self::CompactBoundary,
        Self::Sidechain,
        Self::Meta,
        Self::PhaseEnd,
        Self::Snip,
        Self::Orphan,
        Self::Protected,
    ];

    /// The tag's bit in [`Tags`].
    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of tags, in two bytes: every message of a session has one.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Tags(u16);

impl Tags {
    /// Whether the tag is among them.
    pub fn contains(self, tag: Tag) -> bool {
        self.0 & tag.bit() != 0
    }

    /// Adds or removes a tag.
    pub fn set(&mut self, tag: Tag, is_there: bool) {
        self.0 &= !tag.bit();
        self.0 |= u16::from(is_there) * tag.bit();
    }

    /// The tags, in the order of [`Tag`].
    pub fn iter(self) -> impl Iterator<Item = Tag> {
        Tag::ALL.into_iter().filter(move |tag| self.contains(*tag))
    }

    /// Tags.
    pub fn count(self) -> usize {
        self.iter().count()
    }
}

impl FromIterator<Tag> for Tags {
    fn from_iter<T: IntoIterator<Item = Tag>>(tags: T) -> Self {
        Self(tags.into_iter().fold(0, |bits, tag| bits | tag.bit()))
    }
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
