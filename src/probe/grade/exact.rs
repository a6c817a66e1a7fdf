//! Answers that are exactly one known thing.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{spaced, trim_punctuation};
use crate::probe::holds;
use crate::script::is_unspaced;

/// The lists of `words.toml`, each with single spaces between its words.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct Words {
    pub(super) around: String,
    turning: String,
    pub(super) excepting: String,
    pub(super) source: String,
}

pub(super) static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let table = include_str!("words.toml");
    let mut words: Words = toml::from_str(table).unwrap_or_default();
    let Words {
        around,
        turning,
        excepting,
        ..
    } = &mut words;
    for list in [around, turning, excepting] {
        *list = list.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    words
});

/// Words between a choice, or a yes, and its reason.
pub(crate) const BECAUSE: &[&str] = &[
    "because", "chose", "chosen", "due", "error", "failed", "reason", "since", "so", "to", "tried",
    "we",
];

/// Signs that change what the value beside them claims.
const SIGNS: &str = "!= < <= > >= ? ~ ± ≈ ≠ ✖ ✗ ✘ ❌";

/// The words of a text as they are compared, and the [`SIGNS`] among them.
pub(crate) fn words(text: &str) -> Vec<String> {
    let text = spaced(text);
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut words = Vec::new();
    let mut split = text.split(' ').peekable();
    while let Some(word) = split.next() {
        let core = trim_punctuation(word);
        if !core.contains(char::is_alphanumeric) {
            let next = split.peek().map(|next| trim_punctuation(next));
            // In front of other words it marks a quotation.
            let is_mark = word.starts_with(['<', '>']) && !next.is_some_and(is_number);
            words.extend((holds(SIGNS, word) && !is_mark).then(|| word.to_owned()));
            continue;
        }
        let (before, behind) = word.split_once(core).unwrap_or_default();
        let opens = before.contains('<') && !behind.contains('>');
        if is_number(core) && (opens || before.contains('>')) {
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

/// Words around a known answer that claim nothing: those of the question, and a few others.
#[derive(Debug)]
pub(crate) struct Around(BTreeSet<String>);

impl Around {
    /// For a question, with more words that are usual around this form of answer.
    pub(crate) fn new(question: &str, more: &[&str]) -> Self {
        let is_turning =
            |word: &str| holds(&WORDS.turning, word) || holds(SIGNS, word) || word.ends_with("n't");
        let asked = words(question).into_iter();
        let mut allowed: BTreeSet<String> = asked.filter(|word| !is_turning(word)).collect();
        let usual = WORDS.around.split(' ').chain(more.iter().copied());
        allowed.extend(usual.map(str::to_owned));
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

    /// Whether the answer is these two, in this order, and nothing else.
    pub(crate) fn holds_both(
        &self,
        answer: &[String],
        first: &[String],
        second: &[String],
    ) -> bool {
        !first.is_empty()
            && answer.windows(first.len()).enumerate().any(|(at, window)| {
                let is_lead = answer[..at].iter().all(|word| self.allows(word));
                let rest = &answer[at + first.len()..];
                window == first && is_lead && self.holds_only(rest, second)
            })
    }
}

/// Whether a text goes on with an exception that the known one has not.
pub(crate) fn excepts(text: &str, known: &str) -> bool {
    let known = words(known);
    let said = words(text);
    said.iter()
        .any(|word| holds(&WORDS.excepting, word) && !known.contains(word))
}

/// Whether a text holds a phrase with no letter or digit beside it.
pub(crate) fn has_phrase(text: &str, phrase: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() && !is_unspaced(c);
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(word) && !text[at + phrase.len()..].starts_with(word))
}
