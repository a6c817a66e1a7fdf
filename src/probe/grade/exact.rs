//! Answers that are exactly one known thing.

use std::collections::BTreeSet;

use super::{normalise, trim_punctuation};
use crate::probe::holds;
use crate::script::is_unspaced;

/// Words around a known answer that claim nothing.
const AROUND: &str = "\
    a an answer are as at be been by for has have in is it it's its of on said says that the \
    this user value was were with";

/// Words that turn a sentence round or speak of another time: they claim something, even where the
/// question holds them.
const TURNING: &str = "\
    before except former formerly instead neither never no nor not old older or previous \
    previously than unless until without";

/// Words between a choice, or a yes, and its reason.
pub(crate) const BECAUSE: &[&str] = &[
    "because", "chose", "chosen", "due", "error", "failed", "reason", "since", "so", "to", "tried",
    "we",
];

/// The words of a text as they are compared, without isolated signs.
pub(crate) fn words(text: &str) -> Vec<String> {
    let text = normalise(text);
    let words = text.split_whitespace().map(trim_punctuation);
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    words.filter(is_word).map(str::to_owned).collect()
}

/// Words around a known answer that claim nothing: those of the question, and a few others.
#[derive(Debug)]
pub(crate) struct Around(BTreeSet<String>);

impl Around {
    /// For a question, with more words that are usual around this form of answer.
    pub(crate) fn new(question: &str, more: &[&str]) -> Self {
        let is_turning = |word: &str| holds(TURNING, word) || word.ends_with("n't");
        let asked = words(question).into_iter();
        let mut allowed: BTreeSet<String> = asked.filter(|word| !is_turning(word)).collect();
        let usual = AROUND.split(' ').chain(more.iter().copied());
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

/// Whether a text holds a phrase with no letter or digit beside it.
pub(crate) fn has_phrase(text: &str, phrase: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() && !is_unspaced(c);
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(word) && !text[at + phrase.len()..].starts_with(word))
}
