//! The content words of a question.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::index::each_word;
use crate::model::offline::listed;
use crate::script::is_unspaced;

/// The words that say nothing.
static EMPTY: LazyLock<BTreeSet<&str>> = LazyLock::new(|| listed("empty_words").collect());

/// The content words.
pub(super) fn words(question: &str) -> BTreeSet<String> {
    let mut question = Cow::Borrowed(question);
    if question.contains(is_unspaced) {
        for phrase in listed("empty_phrases") {
            question = question.replace(phrase, " ").into();
        }
    }
    let mut words = BTreeSet::new();
    each_word(&question, |word, _| {
        if !EMPTY.contains(word) {
            words.insert(word.to_owned());
        }
    });
    words
}
