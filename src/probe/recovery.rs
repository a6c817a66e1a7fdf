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
    /// What products' retrieval tools bring back by default is of this size: a handful of
    /// paragraphs.
    fn default() -> Self {
        Self {
            snippets: 5,
            snippet_tokens: 200,
        }
    }
}
