//! When an answer says that there is no answer: in the words it was asked for, or in others.

use super::{has_phrase, normalise};

/// What a reader is asked to write where it finds no answer, and what comes close; after
/// normalising. One of several words counts wherever it stands, one word only alone.
const PLAIN: &[&str] = &[
    "not in context",
    "not in the context",
    "not in the conversation",
    "not found in the context",
    "not mentioned in the context",
    "not mentioned in the conversation",
    "unknown",
    "n/a",
];

/// Who does not say it. In front of one of [`DENIALS`].
const NOT: &[&str] = &[
    "never", "not", "isn't", "wasn't", "aren't", "weren't", "doesn't", "didn't", "don't", "can't",
    "cannot", "couldn't", "no", "nothing", "nowhere",
];

/// What was not done with the answer, as words begin: behind one of [`NOT`], with at most
/// [`BETWEEN`] words between them.
const DENIALS: &[&str] = &[
    "answ", "appear", "availab", "clear", "contain", "defin", "determin", "discuss", "find",
    "found", "giv", "idea", "includ", "indicat", "info", "know", "mention", "present", "provid",
    "recor", "sai", "say", "specif", "stat", "tel", "told",
];

/// So many words may stand between the two: "was not explicitly mentioned".
const BETWEEN: usize = 2;

/// Single words that mean it where they are the whole answer.
const ALONE: &[&str] = &[
    "absent",
    "missing",
    "nil",
    "none",
    "nothing",
    "null",
    "unavailable",
    "undefined",
    "unspecified",
    "unstated",
];

/// Whether the reader says that it does not know: the one place that decides it, for rules and for
/// what a judge calls wrong.
pub fn abstains(answer: &str) -> bool {
    is_plain(answer, &[])
        || (is_told(answer, &[]) && !answer.contains(|c: char| c.is_ascii_digit()))
}

/// Whether it says so in the words it was asked for. What stands in `own`, the known answer, is
/// quoted from there and says nothing about the reader.
pub(super) fn is_plain(answer: &str, own: &[&str]) -> bool {
    let answer = normalise(answer);
    let is_own = |known: &str| own.iter().any(|own| has_phrase(&normalise(own), known));
    PLAIN.iter().any(|known| {
        answer == *known || (known.contains(' ') && has_phrase(&answer, known) && !is_own(known))
    })
}

/// Whether it says so in any words: "the conversation does not say", "there is no mention of it".
pub(super) fn is_told(answer: &str, own: &[&str]) -> bool {
    let answer = normalise(answer);
    if ALONE.contains(&answer.as_str()) {
        return true;
    }
    // A rule may well say "do not mention": quoting it is no abstention.
    let quoted: Vec<String> = own.iter().map(|own| normalise(own)).collect();
    let quoted: Vec<(&str, &str)> = quoted.iter().flat_map(|own| denials(own)).collect();
    denials(&answer).iter().any(|said| !quoted.contains(said))
}

/// Each denial of a text: what negates, and what is negated, within one clause.
fn denials(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for clause in text.split(['.', ',', ';', ':', '!', '?']) {
        let words: Vec<&str> = clause
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|word| !word.is_empty())
            .collect();
        for (at, not) in words
            .iter()
            .enumerate()
            .filter(|(_, word)| NOT.contains(word))
        {
            let mut behind = words[at + 1..].iter().take(BETWEEN + 1);
            let denied = behind.find(|word| DENIALS.iter().any(|stem| word.starts_with(stem)));
            found.extend(denied.map(|denied| (*not, *denied)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: bool) {
        assert_eq!(abstains(answer), expected, "{answer}");
    }

    #[test]
    fn whoever_gives_no_value_and_says_so_abstains() {
        for answer in [
            "Not in context.",
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
            "unspecified",
        ] {
            check(answer, true);
        }
        for answer in [
            "48213",
            "The port is 48213; the host was not mentioned.",
            "velmor-tharin",
            "Never touch the migrations folder.",
            "No, it was found in the other parser",
            "an unknown port, 59999",
        ] {
            check(answer, false);
        }
    }

    #[test]
    fn a_quoted_rule_is_no_abstention() {
        let rule = "Do not mention the client by name.";
        assert!(!is_told("do not mention the client by name", &[rule]));
        assert!(is_told("do not mention: they do not know", &[rule]));
        assert!(is_told("The user did not say.", &[rule]));
    }
}
