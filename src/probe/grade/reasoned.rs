//! Choices with their reasons, and numbers in sentences.

use super::{PARAPHRASE, content_word_recall, has_phrase, is_flipped, normalise};
use crate::probe::Outcome;

/// An option behind one of these words is named, and not taken.
const AGAINST: &[&str] = &[
    "against",
    "discarded",
    "instead",
    "not",
    "over",
    "rejected",
    "than",
    "unlike",
    "versus",
    "without",
];

/// The word that sets an option aside stands at most so many words before it.
const AGAINST_WORDS: usize = 4;

/// The choice with its reason is right, alone it is half right; nothing where the answer takes
/// several options at once, which rules cannot tell.
pub(super) fn choice(
    choice: &str,
    reason: &str,
    rejected: &[String],
    answer: &str,
) -> Option<(f64, Outcome)> {
    let said = normalise(answer);
    let is_taken = |option: &str| takes(&said, &normalise(option));
    let others = rejected.iter().any(|option| is_taken(option));
    match (is_taken(choice), others) {
        (true, true) => None,
        (false, _) => Some((0.0, Outcome::Wrong)),
        (true, false) if content_word_recall(reason, answer) >= PARAPHRASE => {
            Some(if is_flipped(reason, answer) {
                (0.5, Outcome::Partial)
            } else {
                (1.0, Outcome::Right)
            })
        }
        (true, false) => Some((0.5, Outcome::Partial)),
    }
}

/// Whether the option stands in the text without a word before it that sets it aside.
fn takes(text: &str, option: &str) -> bool {
    has_phrase(text, option)
        && text.match_indices(option).any(|(at, _)| {
            let before = text[..at].rsplit([',', '.', ';', ':']).next().unwrap_or("");
            let mut words = before.split_whitespace().rev().take(AGAINST_WORDS);
            !words.any(|word| AGAINST.binary_search(&word).is_ok())
        })
}

/// Words that put one number beside another as if it were the same count, or in its place.
const BETWEEN_NUMBERS: &[&str] = &[
    "and", "became", "maybe", "now", "or", "perhaps", "then", "to",
];

/// A number of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// Its digits, with the point and what follows if it has any.
    pub(super) digits: String,
    /// The word behind it; empty where something else stands there.
    pub(super) behind: String,
    /// Whether it stands beside an `or` (or another such word) with no word of its own behind it.
    pub(super) is_alternative: bool,
}

/// The numbers of a text with what they count. Thousands may be parted by a comma, an apostrophe,
/// a low line or a space.
pub(super) fn numbers(text: &str) -> Vec<Said> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let joins = |word: &str| BETWEEN_NUMBERS.binary_search(&word).is_ok();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !is_digit(at) {
            at += 1;
            continue;
        }
        let start = at;
        let mut digits = String::new();
        loop {
            while is_digit(at) {
                digits.push(char::from(bytes[at]));
                at += 1;
            }
            let is_parted = bytes
                .get(at)
                .is_some_and(|byte| matches!(byte, b',' | b'\'' | b'_' | b' '));
            let is_group = (1..=3).all(|step| is_digit(at + step)) && !is_digit(at + 4);
            if !is_parted || !is_group {
                break;
            }
            at += 1;
        }
        if bytes.get(at) == Some(&b'.') && is_digit(at + 1) {
            digits.push('.');
            at += 1;
            while is_digit(at) {
                digits.push(char::from(bytes[at]));
                at += 1;
            }
        }
        let behind = text[at..].trim_start();
        let behind = behind.split(|c: char| !c.is_alphanumeric()).next();
        let behind = behind.unwrap_or_default();
        let before = text[..start].split_whitespace().next_back();
        let stands_alone = behind.is_empty() || joins(behind);
        found.push(Said {
            digits,
            behind: behind.to_owned(),
            is_alternative: stands_alone && (joins(behind) || before.is_some_and(joins)),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_what_they_count() {
        let found = numbers("7,340,192 cases in 41.2 s, 12 345 rows, 8 or 9");
        let found: Vec<(&str, &str, bool)> = found
            .iter()
            .map(|said| (&*said.digits, &*said.behind, said.is_alternative))
            .collect();
        let expected = [
            ("7340192", "cases", false),
            ("41.2", "s", false),
            ("12345", "rows", false),
            ("8", "or", true),
            ("9", "", true),
        ];
        assert_eq!(found, expected);
        assert!(AGAINST.is_sorted() && BETWEEN_NUMBERS.is_sorted());
    }
}
