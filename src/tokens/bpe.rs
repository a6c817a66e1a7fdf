//! Exact counts in OpenAI's vocabularies, by an engine that is fast and linear.
//!
//! `toktok` needs no regular expression and takes time in proportion to the text, whatever it
//! holds. It is checked against the [reference](super::Reference) over every code point. The two
//! follow different versions of Unicode: a text that holds a code point which they do not class
//! alike goes to the reference.

use std::sync::LazyLock;

use toktok::Tokenizer;

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
        static ENGINE: LazyLock<Option<Tokenizer>> =
            LazyLock::new(|| Tokenizer::builtin("o200k_base").ok());
        count(ENGINE.as_ref(), Reference::O200k, text)
    }
}

impl TokenCounter for Cl100k {
    fn name(&self) -> &'static str {
        "cl100k"
    }

    fn count(&self, text: &str) -> Tokens {
        static ENGINE: LazyLock<Option<Tokenizer>> =
            LazyLock::new(|| Tokenizer::builtin("cl100k_base").ok());
        count(ENGINE.as_ref(), Reference::Cl100k, text)
    }
}

fn count(engine: Option<&Tokenizer>, reference: Reference, text: &str) -> Tokens {
    match engine {
        Some(engine) if !engines_may_differ(text) => fast(engine, text),
        Some(_) | None => reference.count(text),
    }
}

/// Room behind a text: the engine loads 16 bytes at a time and drops those behind the end.
const READ_AHEAD: [u8; 16] = [0; 16];

/// Counts a copy of `text` with room behind it, so that nothing is read that is not ours.
fn fast(engine: &Tokenizer, text: &str) -> Tokens {
    let mut copy = Vec::with_capacity(text.len() + READ_AHEAD.len());
    copy.extend_from_slice(text.as_bytes());
    copy.extend_from_slice(&READ_AHEAD);
    Tokens(engine.count(&copy[..text.len()]) as u64)
}

/// Whether `text` holds a code point that the two engines do not class alike.
fn engines_may_differ(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(|c| is_in(DIFFERING, c as u32))
}

fn is_in(ranges: &[(u32, u32)], code_point: u32) -> bool {
    let at = ranges.partition_point(|(_, last)| *last < code_point);
    ranges
        .get(at)
        .is_some_and(|(first, _)| *first <= code_point)
}

/// The code points on which the engines differ in either vocabulary: first and last of each range,
/// ascending.
///
/// Letters, digits and marks of Unicode 16 and 17, for the most part. The test
/// `the_engines_differ_on_the_code_points_of_the_table_only` finds them and prints the table.
const DIFFERING: &[(u32, u32)] = &[
    (0x88F, 0x88F),
    (0xC5C, 0xC5C),
    (0xCDC, 0xCDC),
    (0x1ACF, 0x1ADD),
    (0x1AE0, 0x1AEB),
    (0xA7CE, 0xA7CF),
    (0xA7D2, 0xA7D2),
    (0xA7D4, 0xA7D4),
    (0xA7F1, 0xA7F1),
    (0x10940, 0x10959),
    (0x10EC5, 0x10EC7),
    (0x10EFA, 0x10EFB),
    (0x11B60, 0x11B67),
    (0x11DB0, 0x11DDB),
    (0x11DE0, 0x11DE9),
    (0x16EA0, 0x16EB8),
    (0x16EBB, 0x16ED3),
    (0x16FF2, 0x16FF6),
    (0x187F8, 0x187FF),
    (0x18D09, 0x18D1E),
    (0x18D80, 0x18DF2),
    (0x1E6C0, 0x1E6DE),
    (0x1E6E0, 0x1E6F5),
    (0x1E6FE, 0x1E6FF),
    (0x2B73A, 0x2B73F),
    (0x2CEA2, 0x2CEAD),
    (0x323B0, 0x33479),
];

#[cfg(test)]
mod tests;
