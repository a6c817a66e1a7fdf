//! Finds many fixed strings in many texts, searching each distinct text once.
//!
//! Planted values and the words of later tool calls are looked for in every message of every
//! strategy's context. All patterns of a session make one automaton ([`Patterns`]), and what was
//! found in a text is remembered ([`PerText`]) and shared between the threads that replay it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, StartKind};
use foldhash::fast::RandomState;

use crate::tokens::SHORT_BYTES;

/// Patterns of up to this many bytes in all are searched with a table of all transitions; beyond
/// that the table would no longer fit the processor's caches.
const DENSE_BYTES: usize = 1 << 14;

/// A string that is looked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    /// The string, searched byte for byte. An empty one is never found.
    pub text: String,
    /// Where it may begin and end.
    pub boundary: Boundary,
}

/// Where a match may begin and end.
///
/// A line feed or tab written as an escape (`\n`, `\t`) is a boundary like the character itself:
/// recorded tool arguments are JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Boundary {
    /// Where no letter, digit or underscore goes on.
    Word,
    /// Where the path does not go on: `src/a.rs` is found neither in `lib/src/a.rs` nor in
    /// `src/a.rs.orig`, but in `./src/a.rs` and at the end of a sentence.
    Path,
}

/// A place of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Index of the pattern.
    pub pattern: u32,
    /// The byte at which it starts.
    pub start: usize,
}

/// All patterns of a session, searched together.
///
/// A search takes time linear in the text and the number of matches, overlapping ones included.
pub struct Patterns {
    automaton: AhoCorasick,
    /// For each pattern of the automaton, its index as given: empty ones are left out.
    given: Vec<u32>,
    all: Vec<Pattern>,
    found: PerText<[Hit]>,
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patterns").field("patterns", &self.all.len()).finish_non_exhaustive()
    }
}

impl Patterns {
    /// An automaton for `patterns`; hits name them by their index.
    pub fn new(patterns: Vec<Pattern>) -> Result<Self, PatternsError> {
        let full = (0_u32..).zip(&patterns).filter(|(_, pattern)| !pattern.text.is_empty());
        let (given, texts): (Vec<u32>, Vec<&str>) =
            full.map(|(index, pattern)| (index, &*pattern.text)).unzip();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .start_kind(StartKind::Unanchored)
            .kind(Some(if bytes <= DENSE_BYTES {
                AhoCorasickKind::DFA
            } else {
                AhoCorasickKind::ContiguousNFA
            }))
            .build(texts)
            .map_err(|source| PatternsError::TooLarge { bytes, source })?;
        Ok(Self { automaton, given, all: patterns, found: PerText::default() })
    }

    /// The patterns, in the order of their indices.
    pub fn patterns(&self) -> &[Pattern] {
        &self.all
    }

    /// Every place of a pattern in `text`, by the position of its end; searched now if the text was
    /// never seen.
    pub fn hits(&self, text: &Arc<str>) -> Arc<[Hit]> {
        self.found.get_or(text, || self.search(text).into())
    }

    /// Every place of a pattern in `text`, by the position of its end; nothing is remembered.
    pub fn search(&self, text: &str) -> Vec<Hit> {
        if self.given.is_empty() {
            return Vec::new();
        }
        let bytes = text.as_bytes();
        self.automaton
            .find_overlapping_iter(text)
            .filter_map(|found| {
                let pattern = self.given[found.pattern().as_usize()];
                let (start, end) = (found.start(), found.end());
                let whole = match self.all[pattern as usize].boundary {
                    Boundary::Word => is_word(bytes, start, end),
                    Boundary::Path => is_path(bytes, start, end),
                };
                whole.then_some(Hit { pattern, start })
            })
            .collect()
    }
}

/// Whether the byte continues a word. Bytes above 127 belong to letters of other scripts or to
/// punctuation; they count as punctuation, so that a value in curly quotes is found.
fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether `bytes[at]` is the letter of an escape such as `\n`.
fn is_escape(bytes: &[u8], at: usize) -> bool {
    matches!(bytes[at], b'n' | b't' | b'r' | b'f' | b'b') && at > 0 && bytes[at - 1] == b'\\'
}

fn is_word(bytes: &[u8], start: usize, end: usize) -> bool {
    let before =
        start.checked_sub(1).is_some_and(|at| continues_word(bytes[at]) && !is_escape(bytes, at));
    let after = bytes.get(end).is_some_and(|byte| continues_word(*byte));
    !(before && continues_word(bytes[start]) || after && continues_word(bytes[end - 1]))
}

fn is_path(bytes: &[u8], start: usize, end: usize) -> bool {
    let begins = may_begin_path(bytes, start)
        || (start >= 2 && &bytes[start - 2..start] == b"./" && may_begin_path(bytes, start - 2));
    let ends = match bytes.get(end) {
        None => true,
        // The end of a sentence, unless a suffix follows.
        Some(b'.') => bytes.get(end + 1).is_none_or(|next| !continues_word(*next) && *next != b'/'),
        Some(byte) => !continues_path(*byte),
    };
    begins && ends
}

fn continues_path(byte: u8) -> bool {
    continues_word(byte) || matches!(byte, b'/' | b'.' | b'-' | b'~' | b'@')
}

fn may_begin_path(bytes: &[u8], at: usize) -> bool {
    at == 0 || !continues_path(bytes[at - 1]) || is_escape(bytes, at - 1)
}

/// One result per text, so that each text but the shortest is searched once.
///
/// The key is the text itself: two texts never share an answer. Shared between threads; where two
/// ask for the same text at once, both look, and one answer is kept.
pub struct PerText<T: ?Sized>(RwLock<HashMap<Arc<str>, Arc<T>, RandomState>>);

impl<T: ?Sized> Default for PerText<T> {
    fn default() -> Self {
        Self(RwLock::new(HashMap::default()))
    }
}

impl<T: ?Sized> fmt::Debug for PerText<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerText").finish_non_exhaustive()
    }
}

impl<T: ?Sized> PerText<T> {
    /// The result for `text`; calls `find` if there is none yet.
    pub fn get_or(&self, text: &Arc<str>, find: impl FnOnce() -> Arc<T>) -> Arc<T> {
        if text.len() <= SHORT_BYTES {
            return find();
        }
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(text) {
            return known.clone();
        }
        drop(all);
        let found = find();
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(text.clone()).or_insert(found).clone()
    }
}

/// Why patterns cannot be searched.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PatternsError {
    /// They are too many for one automaton.
    #[error("{bytes} bytes of patterns are too many to be searched at once")]
    TooLarge {
        /// Bytes of all patterns.
        bytes: usize,
        /// The automaton's error.
        source: aho_corasick::BuildError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(patterns: &[(&str, Boundary)]) -> Patterns {
        let patterns = patterns
            .iter()
            .map(|&(text, boundary)| Pattern { text: text.to_owned(), boundary })
            .collect();
        Patterns::new(patterns).unwrap()
    }

    fn check(pattern: &str, boundary: Boundary, text: &str, starts: &[usize]) {
        let hits = patterns(&[(pattern, boundary)]).search(text);
        let found: Vec<usize> = hits.iter().map(|hit| hit.start).collect();
        assert_eq!(found, starts, "`{pattern}` in `{text}`");
    }

    #[test]
    fn a_value_is_found_as_a_whole_word_only() {
        use Boundary::Word;
        check("8443", Word, "8443", &[0]);
        check("8443", Word, "port=8443, 18443, 84430, x8443 _8443", &[5]);
        check("8443", Word, "a-8443.", &[2]);
        check("8443", Word, "“8443”", &[3]);
        check("8443", Word, r#"{"x":"a\n8443\tb"}"#, &[9]);
        check("8443", Word, "n8443", &[]);
        check("#8443", Word, "x#8443", &[1]);
        check("", Word, "anything", &[]);
    }

    #[test]
    fn a_path_is_found_as_a_whole_path_only() {
        use Boundary::Path;
        check("src/a.rs", Path, "src/a.rs", &[0]);
        check("src/a.rs", Path, "see `src/a.rs`, src/a.rs.", &[5, 16]);
        check("src/a.rs", Path, "./src/a.rs:12", &[2]);
        check("src/a.rs", Path, "../src/a.rs lib/src/a.rs /src/a.rs", &[]);
        check("src/a.rs", Path, "src/a.rs.orig src/a.rsx src/a.rs/b", &[]);
        check("src/a.rs", Path, r#"{"f":"x\nsrc/a.rs"}"#, &[9]);
    }

    #[test]
    fn overlapping_patterns_are_all_found() {
        let patterns = patterns(&[
            ("a b", Boundary::Word),
            ("b", Boundary::Word),
            ("b c", Boundary::Word),
            ("", Boundary::Word),
        ]);
        let mut hits = patterns.search("a b c");
        hits.sort_unstable();
        let hits: Vec<_> = hits.iter().map(|hit| (hit.pattern, hit.start)).collect();
        assert_eq!(hits, [(0, 0), (1, 2), (2, 2)]);
    }

    #[test]
    fn a_text_is_searched_once() {
        let patterns = patterns(&[("x", Boundary::Word)]);
        let text = "x y x".repeat(SHORT_BYTES);
        let first = patterns.hits(&text.as_str().into());
        let second = patterns.hits(&text.as_str().into());
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(first.len(), 2);
    }
}
