//! Exact counts in OpenAI's vocabularies, by a fast engine.
//!
//! The engine splits a text without backtracking, and merges a piece of n bytes in O(n log n) time. It is
//! checked against `tiktoken-rs`, OpenAI's own encoder, over every code point.

use std::sync::LazyLock;

use tiktoken::CoreBpe;

use super::TokenCounter;
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

    /// Their splitting rules take letters, up to three digits, punctuation or white space at a time. A
    /// token of letters may begin with one character that is neither letter, digit nor line end; one
    /// of punctuation may end with line feeds; white space before a word leaves its last character to
    /// the word. What is left are these four.
    fn always_cuts(&self, before: u8, after: u8) -> bool {
        match after {
            b'a'..=b'z' | b'A'..=b'Z' => before == b'\n' || before.is_ascii_digit(),
            b'0'..=b'9' => before.is_ascii_alphabetic(),
            b' ' | b'\n' => before.is_ascii_alphanumeric(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
