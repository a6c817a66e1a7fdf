//! Exact counts in OpenAI's vocabularies, by a fast engine.
//!
//! The engine splits a text without backtracking, and merges a piece of n bytes in O(n log n) time. It is
//! checked against the [reference](super::Reference) over every code point.

use std::sync::LazyLock;

use tiktoken::CoreBpe;

use super::TokenCounter;
use super::reference::always_cuts;
use crate::units::Tokens;

/// Exact byte-pair encoding in a vocabulary of OpenAI's; special tokens count as plain text.
#[derive(Debug, Clone, Copy)]
pub enum Vocabulary {
    /// That of GPT-4o and later.
    O200k,
    /// That of GPT-4.
    Cl100k,
}

pub use Vocabulary::{Cl100k, O200k};

impl TokenCounter for Vocabulary {
    fn name(&self) -> &'static str {
        match self {
            O200k => "o200k",
            Cl100k => "cl100k",
        }
    }

    fn count(&self, text: &str) -> Tokens {
        static ENGINES: [LazyLock<CoreBpe>; 2] = [
            LazyLock::new(tiktoken::encoding::o200k_base),
            LazyLock::new(tiktoken::encoding::cl100k_base),
        ];
        Tokens(ENGINES[*self as usize].count(text) as u64)
    }

    fn always_cuts(&self, before: u8, after: u8) -> bool {
        always_cuts(before, after)
    }
}

#[cfg(test)]
mod tests;
