//! Exact counts in OpenAI's vocabularies, by an engine that is fast and linear.
//!
//! The engine splits a text without backtracking and takes time in proportion to it. It is checked
//! against the [reference](super::Reference) over every code point.

use std::sync::LazyLock;

use tiktoken::CoreBpe;

use super::{Reference, TokenCounter};
use crate::units::Tokens;

/// Exact byte-pair encoding in OpenAI's o200k vocabulary; special tokens count as plain text.
#[derive(Debug, Clone, Copy)]
pub struct O200k;

/// Exact byte-pair encoding in OpenAI's cl100k vocabulary; special tokens count as plain text.
#[derive(Debug, Clone, Copy)]
pub struct Cl100k;

impl TokenCounter for O200k {
    fn name(&self) -> &'static str {
        "o200k"
    }

    fn count(&self, text: &str) -> Tokens {
        static ENGINE: LazyLock<CoreBpe> = LazyLock::new(tiktoken::encoding::o200k_base);
        Tokens(ENGINE.count(text) as u64)
    }

    fn always_cuts(&self, before: u8, after: u8) -> bool {
        Reference::O200k.always_cuts(before, after)
    }
}

impl TokenCounter for Cl100k {
    fn name(&self) -> &'static str {
        "cl100k"
    }

    fn count(&self, text: &str) -> Tokens {
        static ENGINE: LazyLock<CoreBpe> = LazyLock::new(tiktoken::encoding::cl100k_base);
        Tokens(ENGINE.count(text) as u64)
    }

    fn always_cuts(&self, before: u8, after: u8) -> bool {
        Reference::Cl100k.always_cuts(before, after)
    }
}

#[cfg(test)]
mod tests;
