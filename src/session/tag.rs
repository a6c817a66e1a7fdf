//! Facts about a message besides its text.

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
