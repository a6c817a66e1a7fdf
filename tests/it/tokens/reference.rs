//! The reference of token counters, which gets texts in pieces that it can handle.
//!
//! `tiktoken-rs` is OpenAI's own encoder. It splits text with a backtracking regular expression that overflows its
//! stack on a megabyte of spaces. So a long text is cut first, at places where the vocabularies' own splitting rules
//! always cut; the sum over the pieces is then the count of the whole. Only a stretch of [`LONGEST_PIECE`] bytes
//! without any such place (spaces alone, one letter repeated, a script without ASCII) is cut by force, and each such
//! cut may change the count by a token or two.

use proctor::tokens::{O200k, TokenCounter as _};
use proctor::units::Tokens;
use proptest::prelude::*;

/// No more than this is given to the tokeniser at once, in bytes.
const LONGEST_PIECE: usize = 100_000;

/// A text is cut at the first good place after this many bytes: short enough to stay in the
/// processor's cache, long enough that the call costs nothing.
const USUAL_PIECE: usize = 16_384;

/// OpenAI's own encoder, about four times slower than the counters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reference {
    /// The o200k vocabulary.
    O200k,
    /// The cl100k vocabulary.
    Cl100k,
}

impl Reference {
    pub(crate) fn count(self, text: &str) -> Tokens {
        let encoding = match self {
            Self::O200k => tiktoken_rs::o200k_base_singleton(),
            Self::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        };
        let mut rest = text;
        let mut tokens = 0;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(first_cut(rest));
            tokens += encoding.count_ordinary(piece) as u64;
            rest = after;
        }
        Tokens(tokens)
    }
}

/// Where the first piece of `text` ends.
fn first_cut(text: &str) -> usize {
    if text.len() <= USUAL_PIECE {
        return text.len();
    }
    let bytes = text.as_bytes();
    let end = text.len().min(LONGEST_PIECE);
    (USUAL_PIECE..end)
        .find(|at| O200k.always_cuts(bytes[at - 1], bytes[*at]))
        .unwrap_or_else(|| text.floor_char_boundary(end))
}

#[test]
fn counts_published_examples() {
    // From the README of OpenAI's tiktoken and its cookbook page on counting tokens.
    for (text, tokens) in [("hello world", 2), ("tiktoken is great!", 6)] {
        assert_eq!(Reference::O200k.count(text), Tokens(tokens), "{text}");
    }
}

#[test]
fn a_long_stretch_of_one_thing_is_counted() {
    for unit in [" ", "a", "\n", "漢", "aGVsbG8gd29ybGQ"] {
        let text = unit.repeat(400_000 / unit.len());
        let tokens = Reference::O200k.count(&text).0;
        assert!(tokens > 0 && tokens <= text.len() as u64, "{unit:?}: {tokens}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Pieces of every class of characters in any order, longer than one piece in all.
    #[test]
    fn cutting_changes_no_count(
        parts in prop::collection::vec("[a-z]{1,9}|[A-Z]{1,3}|[0-9]{1,7}|[ \\t]{1,4}|[\\r\\n]{1,3}|'[st]|[.,:/#'\"-]{1,4}|[äß漢字🙂\u{301}]{1,3}", 64..256),
        times in 20_usize..60,
    ) {
        let text = parts.concat().repeat(times);
        let o200k = tiktoken_rs::o200k_base_singleton().count_ordinary(&text);
        prop_assert_eq!(Reference::O200k.count(&text).0, o200k as u64);
        let cl100k = tiktoken_rs::cl100k_base_singleton().count_ordinary(&text);
        prop_assert_eq!(Reference::Cl100k.count(&text).0, cl100k as u64);
    }
}
