//! When an answer says that there is no answer, and nothing else.
//!
//! The form is free: the words that were asked for, a sentence, another language. What makes it plain
//! is that no word is left that could claim something: each belongs to the question, or to
//! [`VOCABULARY`].

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::exact::words;
use super::normalise;
use crate::probe::holds;

/// Whole answers that mean it, after normalising: English, German, French, Spanish, Portuguese,
/// Italian, Russian, Turkish, Chinese, Japanese, Korean.
static WHOLE: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let known = include_str!("abstentions.txt").lines();
    known.map(normalise).collect()
});

/// Words that deny. In front of one of [`DONE`] or [`DOES`].
const NOT: &str = "\
    aren't can't cannot couldn't didn't doesn't don't isn't never no none not nothing nowhere \
    wasn't weren't";

/// Participles of a denial: "was never mentioned", "none given".
const DONE: &str = "\
    answered available clear contained context conversation defined determined discussed \
    found given included known mentioned present provided recorded said shown specified \
    stated told";

/// Nouns of a denial: "no mention". Behind `no` only: "do not mention the client" is a rule.
const THINGS: &str = "indication information mention record";

/// Verbs of a denial: "does not say". Behind a helping verb only.
const DOES: &str = "\
    answer appear contain determine find give have include know mention provide say see show \
    specify state tell";

/// Verbs that make a denial a statement; `do` only where the reader speaks of itself.
const HELPING: &str = "can can't cannot could couldn't did didn't does doesn't";

/// Words that may come between a negation and its verb: "was not explicitly mentioned".
const BETWEEN: usize = 2;

/// Words of a rule that deny without one of [`NOT`].
const FORBIDDING: &str = "avoid exclude omit without";

/// Words that claim nothing beside a denial, as those of the lists above.
const VOCABULARY: &str = "\
    a about an and any anything anywhere are as at be been by do enough explicitly far for \
    from has here history i in is it its me of on session so sorry such that the there this \
    to user value was we were what which with yet";

/// Whether the answer says that it is not in the context and claims nothing else.
///
/// A rule may be "don't include tests": a denial of a word that the known answer, `own`, has in some form
/// repeats the rule and says nothing about the reader.
pub(crate) fn is_plain(answer: &str, question: &str, own: &[&str]) -> bool {
    let whole = normalise(answer);
    if WHOLE.contains(&whole) {
        return true;
    }
    let said = words(answer);
    let asked: BTreeSet<String> = words(question).into_iter().collect();
    let is_empty = |word: &String| {
        let word = word.as_str();
        [NOT, DONE, DOES, THINGS, HELPING, VOCABULARY]
            .iter()
            .any(|list| holds(list, word))
            || asked.contains(word)
    };
    // A yes or a no answers a question; "no ticket" denies one.
    let is_answer = matches!(whole.split([',', '.', ';', ':']).next(), Some("yes" | "no"));
    if said.is_empty() || is_answer || !said.iter().all(is_empty) {
        return false;
    }
    let denied = denials(&said);
    let own_words: Vec<String> = own.iter().flat_map(|own| words(own)).collect();
    if !denied.is_empty() {
        let denies = |own: &String| holds(NOT, own) || holds(FORBIDDING, own);
        let is_own = |verb: &str| own_words.iter().any(|own| is_form_of(own, verb));
        return !own_words.iter().any(denies) || !denied.into_iter().any(is_own);
    }
    // "No ticket", of a ticket that was asked for.
    let is_noun = |word: &String| asked.contains(word) && word.len() > 2;
    own.is_empty() && said.len() <= 3 && said[0] == "no" && said.get(1).is_some_and(is_noun)
}

/// Whether two words can be forms of one, which differ in their last three letters at most: `include` and
/// `included`.
fn is_form_of(one: &str, other: &str) -> bool {
    let same = one
        .bytes()
        .zip(other.bytes())
        .take_while(|(one, other)| one == other);
    let same = same.count();
    same > 2 && same + 3 >= one.len().max(other.len())
}

/// The word that each denial negates.
fn denials(said: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, not) in said.iter().enumerate() {
        if !holds(NOT, not) {
            continue;
        }
        let before = |back: usize| at.checked_sub(back).map(|at| said[at].as_str());
        let is_helped = holds(HELPING, not)
            || before(1).is_some_and(|word| holds(HELPING, word))
            || (matches!(not.as_str(), "don't") && matches!(before(1), Some("i" | "we")))
            || (before(1) == Some("do") && matches!(before(2), Some("i" | "we")));
        let behind = said[at + 1..].iter().take(BETWEEN + 1);
        let denied = behind.map(String::as_str).find(|word| {
            holds(DONE, word)
                || (not == "no" && holds(THINGS, word))
                || (is_helped && holds(DOES, word))
        });
        found.extend(denied);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: bool) {
        let question = "Which change ticket covers the coastal cache port?";
        assert_eq!(is_plain(answer, question, &[]), expected, "{answer}");
    }

    #[test]
    fn an_answer_that_says_nothing_but_that_it_does_not_know_abstains() {
        for answer in [
            "Not in context.",
            "not in context (the conversation does not mention it)",
            "The conversation does not say.",
            "I don’t know.",
            "It is not specified",
            "There is no mention of this.",
            "This was never explicitly stated anywhere.",
            "The conversation doesn't contain that information",
            "It cannot be determined from what is here.",
            "No information about a cache port was given.",
            "I couldn't find it",
            "None",
            "None given.",
            "None mentioned",
            "Not applicable",
            "N/A",
            "No ticket",
            "No ticket was given.",
            "Unbekannt.",
            "未提及",
            "記載なし。",
        ] {
            check(answer, true);
        }
        for answer in [
            "48213",
            "",
            "…",
            "No.",
            "No, it is not.",
            "The port is 48213; the host was not mentioned.",
            "There is no change ticket; only a batch number (232931448) was given.",
            "velmor-tharin",
            "Never touch the migrations folder.",
            "Do not mention the change ticket.",
            "an unknown port, 59999",
        ] {
            check(answer, false);
        }
    }

    #[test]
    fn a_quoted_rule_is_no_abstention() {
        let rule = "The client is never mentioned here.";
        let question = "What did the user say about the client?";
        assert!(!is_plain(
            "the client is never mentioned",
            question,
            &[rule]
        ));
        assert!(is_plain("The user did not say.", question, &[rule]));
        let question = "What did the user demand about: tests, summary?";
        let rule = "Don't include tests in the summary.";
        let answer = "Tests are not to be included in the summary.";
        assert!(!is_plain(answer, question, &[rule]));
        let rule = "Never edit the spec files by hand.";
        assert!(is_plain("It is not specified.", question, &[rule]));
    }
}
