//! Answers that are exactly one known thing.

use std::collections::BTreeSet;

use super::words::WORDS;
use super::{spaced, trim_punctuation};
use crate::probe::survival::is_same_quantity;
use crate::script::is_unspaced;

/// Words of an amount or a date.
const AMOUNT_WORDS: usize = 4;

/// Signs that change what the value beside them claims.
const SIGNS: &[&str] = &["!=", "<", "<=", ">", ">=", "?", "~", "±", "≈", "≠", "✖", "✗", "✘", "❌"];

/// The words of a text as they are compared, and the [`SIGNS`] among them.
pub(crate) fn words(text: &str) -> Vec<String> {
    let text = spaced(text);
    let mut words = Vec::new();
    let mut split = text.split(' ').peekable();
    while let Some(word) = split.next() {
        let core = trim_punctuation(word);
        if !core.contains(char::is_alphanumeric) {
            // In front of other words it marks a quotation.
            let next = trim_punctuation(split.peek().unwrap_or(&""));
            let quotes = word.starts_with(['<', '>']) && !begins_with_digit(next);
            if SIGNS.contains(&word) && !quotes {
                words.push(word.to_owned());
            }
            continue;
        }
        let (before, behind) = word.split_once(core).unwrap_or_default();
        let opens = before.contains('<') && !behind.contains('>');
        if begins_with_digit(core) && (opens || before.contains('>')) {
            words.push(if opens { "<" } else { ">" }.to_owned());
        }
        words.push(core.to_owned());
        // A plain word with a question mark may end a question that is repeated.
        if behind.contains('?') && !core.chars().all(char::is_alphabetic) {
            words.push("?".to_owned());
        }
    }
    words
}

fn begins_with_digit(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Words around a known answer that claim nothing: those of the question, and a few others.
#[derive(Debug)]
pub(crate) struct Around(BTreeSet<String>);

impl Around {
    /// For a question, with more words that are usual around this form of answer.
    pub(crate) fn new<'w>(question: &str, more: impl IntoIterator<Item = &'w str>) -> Self {
        let mut allowed: BTreeSet<String> = words(question).into_iter().collect();
        allowed.retain(|word| {
            !WORDS.turning.has(word) && !SIGNS.contains(&&**word) && !word.ends_with("n't")
        });
        allowed.extend(WORDS.around.iter().chain(more).map(str::to_owned));
        Self(allowed)
    }

    pub(crate) fn allows(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    /// Whether the answer is this and nothing else.
    pub(crate) fn holds_only(&self, answer: &[String], known: &[String]) -> bool {
        !known.is_empty()
            && answer.windows(known.len()).enumerate().any(|(at, window)| {
                let rest = answer[..at].iter().chain(&answer[at + known.len()..]);
                window == known && rest.clone().all(|word| self.allows(word))
            })
    }

    /// Whether the answer is this amount or date in another form, and nothing else.
    pub(crate) fn holds_amount(&self, answer: &[String], known: &str) -> bool {
        known.parse::<u64>().is_err()
            && (1..=AMOUNT_WORDS).any(|length| {
                answer.windows(length).enumerate().any(|(at, window)| {
                    let rest = answer[..at].iter().chain(&answer[at + length..]);
                    rest.clone().all(|word| self.allows(word))
                        && is_same_quantity(known, &window.join(" "))
                })
            })
    }

    /// Whether the answer is these two, in this order, and nothing else.
    pub(crate) fn holds_both(
        &self,
        answer: &[String],
        first: &[String],
        second: &[String],
    ) -> bool {
        !first.is_empty()
            && answer.windows(first.len()).enumerate().any(|(at, window)| {
                let (lead, rest) = (&answer[..at], &answer[at + first.len()..]);
                window == first
                    && lead.iter().all(|word| self.allows(word))
                    && self.holds_only(rest, second)
            })
    }
}

/// Whether a text goes on with an exception that the known one has not.
pub(crate) fn excepts(text: &str, known: &str) -> bool {
    let (said, known) = (words(text), words(known));
    said.iter().filter(|word| !known.contains(word)).any(|word| WORDS.excepting.has(word))
}

/// Whether a text holds a phrase with no letter or digit beside it.
pub(crate) fn has_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + phrase.len()..]);
        !before.ends_with(is_spaced) && !behind.starts_with(is_spaced)
    })
}

fn is_spaced(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c)
}
