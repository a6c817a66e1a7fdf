//! The recovery arm: a search over what a strategy removed.
use serde::{Deserialize, Serialize};

/// How much each search brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Snippets, at most.
    pub snippets: usize,
    /// Tokens of a snippet, at most.
    pub snippet_tokens: u64,
}

impl Default for Recovery {
    /// Retrieval tools of products bring back about as much by default: a handful of paragraphs.
    fn default() -> Self {
        Self {
            snippets: 5,
            snippet_tokens: 200,
        }
    }
}
