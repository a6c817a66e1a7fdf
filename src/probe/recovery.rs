//! The recovery arm: a search over what a strategy removed.
use serde::{Deserialize, Serialize};

/// How much each search brings back. Retrieval tools of products bring back about as much as the
/// defaults of a scenario: a handful of paragraphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Snippets, at most.
    pub snippets: usize,
    /// Tokens of a snippet, at most.
    pub snippet_tokens: u64,
}
