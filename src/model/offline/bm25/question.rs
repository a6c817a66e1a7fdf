//! The words of a question that say what it is about.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::index::each_word;
use crate::script::is_unspaced;

/// Words of questions that say nothing about the answer.
const EMPTY_WORDS: [&str; 3] = [
    "a|about|all|an|and|are|at|be|been|conversation|did|do|does|for|give|had|has|have|how",
    "in|is|it|its|me|of|on|or|said|say|says|should|so|tell|that|the|this|to|us|used|user",
    "value|was|we|were|what|when|where|which|who|with|you",
];

/// Phrases that say as little, where no space parts them from the others; longer ones first.
const EMPTY_PHRASES: [&str; 3] = [
    "按什么顺序|是什么|为什么|有多少|是多少|有哪些|什么|多少|哪一个|哪个|哪些|哪一|怎么",
    "如何|请问|为何|用户|关于|定了|何ですか|どのような|どういう|どれ|どの|何が|何を|いくつ",
    "なぜ|でしたか|ですか|ましたか|무엇입니까|무엇인가요|어떤|어느|얼마|몇",
];

/// The words of a list that is written line by line, with bars between words.
pub(in crate::model::offline) fn listed(
    lines: &'static [&'static str],
) -> impl Iterator<Item = &'static str> {
    lines.iter().flat_map(|line| line.split('|'))
}

/// The words that say what the question is about.
pub(super) fn words(question: &str) -> BTreeSet<String> {
    let mut question = Cow::Borrowed(question);
    if question.contains(is_unspaced) {
        for phrase in listed(&EMPTY_PHRASES) {
            question = question.replace(phrase, " ").into();
        }
    }
    let mut words = BTreeSet::new();
    each_word(&question, |word, _| {
        if listed(&EMPTY_WORDS).all(|empty| empty != word) {
            words.insert(word.to_owned());
        }
    });
    words
}
