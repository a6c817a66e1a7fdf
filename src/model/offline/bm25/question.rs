//! The words of a question that say what it is about.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::index::each_word;
use crate::script::is_unspaced;

/// Words of questions that say nothing about the answer.
const EMPTY_WORDS: &[&str] = &[
    "a",
    "about",
    "all",
    "an",
    "and",
    "are",
    "at",
    "be",
    "been",
    "conversation",
    "did",
    "do",
    "does",
    "for",
    "give",
    "had",
    "has",
    "have",
    "how",
    "in",
    "is",
    "it",
    "its",
    "me",
    "of",
    "on",
    "or",
    "said",
    "say",
    "says",
    "should",
    "so",
    "tell",
    "that",
    "the",
    "this",
    "to",
    "us",
    "used",
    "user",
    "value",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "who",
    "with",
    "you",
];

/// Phrases that say as little, where no space parts them from the others; longer ones first.
const EMPTY_PHRASES: &[&str] = &[
    "按什么顺序",
    "是什么",
    "为什么",
    "有多少",
    "是多少",
    "有哪些",
    "什么",
    "多少",
    "哪一个",
    "哪个",
    "哪些",
    "哪一",
    "怎么",
    "如何",
    "请问",
    "为何",
    "用户",
    "关于",
    "定了",
    "何ですか",
    "どのような",
    "どういう",
    "どれ",
    "どの",
    "何が",
    "何を",
    "いくつ",
    "なぜ",
    "でしたか",
    "ですか",
    "ましたか",
    "무엇입니까",
    "무엇인가요",
    "어떤",
    "어느",
    "얼마",
    "몇",
];

/// The words that say what the question is about.
pub(super) fn words(question: &str) -> BTreeSet<String> {
    let mut question = Cow::Borrowed(question);
    if question.contains(is_unspaced) {
        for phrase in EMPTY_PHRASES {
            question = question.replace(phrase, " ").into();
        }
    }
    let mut words = BTreeSet::new();
    each_word(&question, |word, _| {
        if EMPTY_WORDS.binary_search(&word).is_err() {
            words.insert(word.to_owned());
        }
    });
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_for_the_search() {
        assert!(EMPTY_WORDS.is_sorted());
    }
}
