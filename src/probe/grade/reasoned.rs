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

/// The whole numbers of a text as digits, each with the word behind it. Thousands may be parted by
/// a comma, an apostrophe, a low line or a space.
pub(super) fn numbers(text: &str) -> Vec<(String, String)> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !is_digit(at) {
            at += 1;
            continue;
        }
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
        let behind = text[at..].trim_start();
        let word = behind.split(|c: char| !c.is_alphanumeric()).next();
        found.push((digits, word.unwrap_or_default().to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_what_they_count() {
        let found = numbers("7,340,192 cases in 41.2 s, 12 345 rows, 8");
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(number, word)| (number.as_str(), word.as_str()))
            .collect();
        let expected = [
            ("7340192", "cases"),
            ("41", ""),
            ("2", "s"),
            ("12345", "rows"),
            ("8", ""),
        ];
        assert_eq!(found, expected);
        assert!(AGAINST.is_sorted());
    }
}
