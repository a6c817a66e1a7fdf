//! How near a key must stand to a value to bind it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{BINDING_BYTES, is_alike, words};

/// The greatest distance, in words, at which words of a key bind its value.
const BINDING_WORDS: usize = 40;

/// The text around a place, as far as anything binds, and the place in it.
pub(super) fn around<'t>(text: &'t str, place: &Range<usize>) -> (&'t str, Range<usize>) {
    let from = text.floor_char_boundary(place.start.saturating_sub(BINDING_BYTES));
    let to = text.floor_char_boundary((place.end + BINDING_BYTES).min(text.len()));
    (&text[from..to], place.start - from..place.end - from)
}

/// Whether at least half of the key's content words are in the value's line or JSON object, or
/// within [`BINDING_WORDS`] of it.
pub(super) fn is_bound(text: &str, place: &Range<usize>, key: &[String]) -> bool {
    if key.is_empty() {
        return true;
    }
    let (around, value) = around(text, place);
    let line = line_around(around, &value);
    let object = object_around(around, &value).unwrap_or_default();
    let mut own: Option<Range<usize>> = None;
    let mut places = Vec::new();
    words::each_word(around, |word, at| {
        if value.contains(&at.start) {
            own.get_or_insert(at.word..at.word).end = at.word;
        } else if let Some(index) = key.iter().position(|known| is_alike(word, known)) {
            places.push((index, at));
        }
    });
    places.retain(|(_, at)| {
        line.contains(&at.start)
            || object.contains(&at.start)
            || own.as_ref().is_some_and(|own| {
                let behind = at.word.saturating_sub(own.end);
                own.start.saturating_sub(at.word).max(behind) <= BINDING_WORDS
            })
    });
    let bound: BTreeSet<usize> = places.iter().map(|(index, _)| *index).collect();
    2 * bound.len() >= key.len()
}

/// The line around `value`; lines may be parted by the escape `\n`.
pub(super) fn line_around(text: &str, value: &Range<usize>) -> Range<usize> {
    let before = &text[..value.start];
    let start = before.rfind('\n').max(before.rfind("\\n")).unwrap_or(0);
    let after = &text[value.end..];
    let ends = [after.find('\n'), after.find("\\n")].into_iter().flatten();
    start..value.end + ends.min().unwrap_or(after.len())
}

/// The innermost pair of braces around `value`.
pub(super) fn object_around(text: &str, value: &Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let before = (0..value.start).rev().map(|at| (at, bytes[at]));
    let behind = (value.end..bytes.len()).map(|at| (at, bytes[at]));
    let start = unmatched(before, b'{', b'}')?;
    let end = unmatched(behind, b'}', b'{')?;
    Some(start..end)
}

/// The place of the first `brace` that no `other` before it pairs with.
fn unmatched(mut bytes: impl Iterator<Item = (usize, u8)>, brace: u8, other: u8) -> Option<usize> {
    let mut depth = 1_usize;
    let found = bytes.find(|(_, byte)| {
        depth += usize::from(*byte == other);
        depth -= usize::from(*byte == brace);
        depth == 0
    });
    found.map(|(at, _)| at)
}
