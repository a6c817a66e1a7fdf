//! Snapshots: what a compaction leaves, and how the product answers it.

use crate::session::ContentBlock;

/// What the message holds that a compaction leaves.
pub(super) const SNAPSHOT: &str = "<state_snapshot>";
const SNAPSHOT_END: &str = "</state_snapshot>";

/// What the product answers to it in the model's place.
pub(super) const ACKS: &[&str] = &[
    "Got it. Thanks for the additional context!",
    "Got it. Thanks for the context!",
];

/// Whether the last message was a snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Snapshot {
    #[default]
    No,
    /// It was the first of all messages.
    First,
    /// It is what this compaction left.
    Of(usize),
}

/// Whether a text is what a compaction leaves.
pub(super) fn is_snapshot(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(text) => {
            let begins = text.trim_start().starts_with('<') || text.contains(SNAPSHOT_END);
            begins && text.contains(SNAPSHOT)
        }
        _ => false,
    }
}
