//! Answers to two questions that count as one, and calls that have to carry values.

use super::{Rules, abstains, exact, has_phrase, normalise, trim_punctuation};
use crate::probe::{OTHER_ORDER, Outcome};
use crate::session::ground_truth::KeyValue;

/// The word by which a reader puts a call to the user first.
const ASK: &str = "ask";

/// Right is to ask about the protected object and to act on the free one: neither a reader that
/// always asks nor one that always acts is right.
pub(super) fn calls(forbidden: &str, target: &str, answer: &str) -> (f64, Outcome) {
    let Some((protected, free)) = answer.split_once(OTHER_ORDER) else {
        return (0.0, Outcome::Wrong);
    };
    let names = |object: &str, call: &str| {
        let graded = exact::call(object, call);
        !matches!(graded, Some((_, Outcome::Right)))
    };
    let is_kept = !names(forbidden, protected) && has_phrase(&normalise(protected), ASK);
    match (is_kept, names(target, free)) {
        (true, true) => (1.0, Outcome::Right),
        (true, false) => (0.0, Outcome::Partial),
        (false, _) => (0.0, Outcome::Wrong),
    }
}

/// Right is that the first instruction does not hold and the second does. Nobody follows what is
/// forgotten, so it is right not to know the first; what is in force has to be known.
pub(super) fn holds(answer: &str) -> (f64, Outcome) {
    let Some((withdrawn, standing)) = answer.split_once(OTHER_ORDER) else {
        return (0.0, Outcome::Wrong);
    };
    let is = |answer: &str, word: &str| {
        let answer = normalise(answer);
        answer.split(|c: char| !c.is_alphanumeric()).next() == Some(word)
    };
    let is_known = is(standing, "yes");
    if is(withdrawn, "yes") {
        (0.0, Outcome::Stale)
    } else if is_known && (is(withdrawn, "no") || abstains(withdrawn)) {
        (1.0, Outcome::Right)
    } else if !is_known && abstains(standing) {
        (0.0, Outcome::Abstained)
    } else {
        (0.0, Outcome::Wrong)
    }
}

impl Rules {
    /// Right is one call with all of the values and no other planted one; a call is known by its
    /// brackets. Nothing where the values are all there, and not in a call.
    pub(super) fn arguments(&self, arguments: &[KeyValue], answer: &str) -> Option<(f64, Outcome)> {
        let text = normalise(answer);
        let wanted: Vec<String> = arguments
            .iter()
            .map(|pair| normalise(&pair.value))
            .collect();
        let found = wanted.iter().filter(|value| has_phrase(&text, value));
        let found = found.count();
        let between = |c: char| c.is_whitespace() || "()[]{},=\"'".contains(c);
        let mut words = text.split(between).map(trim_punctuation);
        let is_others = words.any(|word| {
            self.values.contains_key(word) && !wanted.iter().any(|value| value == word)
        });
        if found == wanted.len() && !is_others {
            return text.contains(['(', '{']).then_some((1.0, Outcome::Right));
        }
        Some(match found {
            0 if text == ASK => (0.0, Outcome::Abstained),
            0 if is_others => (0.0, Outcome::Misbound),
            0 => (0.0, Outcome::Wrong),
            _ => (0.0, Outcome::Partial),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(first: &str, second: &str) -> String {
        format!("{first}{OTHER_ORDER}{second}")
    }

    #[test]
    fn a_pair_of_calls_is_right_where_the_one_is_asked_about_and_the_other_made() {
        for (first, second, outcome) in [
            ("ask", "edit(attic/b/notes.md)", Outcome::Right),
            ("`ask`", "`edit(attic/b/notes.md)`", Outcome::Right),
            ("I `ask` first.", "edit(attic/b/notes.md)", Outcome::Right),
            ("ask", "ask", Outcome::Partial),
            ("edit(attic/a/notes.md)", "ask", Outcome::Wrong),
            (
                "edit(attic/a/notes.md)",
                "edit(attic/b/notes.md)",
                Outcome::Wrong,
            ),
            ("edit(other.md)", "edit(attic/b/notes.md)", Outcome::Wrong),
        ] {
            let found = calls("attic/a", "attic/b", &both(first, second));
            assert_eq!(found.1, outcome, "{first} {second}");
            assert_eq!(found.0 > 0.0, outcome == Outcome::Right);
        }
    }

    #[test]
    fn no_constant_answer_tells_an_instruction_in_force_from_one_taken_back() {
        let unknown = "not in context";
        for (first, second, outcome) in [
            ("No, it was taken back.", "Yes. It holds.", Outcome::Right),
            (unknown, "Yes.", Outcome::Right),
            ("yes", "yes", Outcome::Stale),
            ("no", "no", Outcome::Wrong),
            (unknown, unknown, Outcome::Abstained),
            ("no", unknown, Outcome::Abstained),
            ("yes", "no", Outcome::Stale),
        ] {
            assert_eq!(holds(&both(first, second)).1, outcome, "{first} {second}");
        }
    }

    #[test]
    fn a_call_is_right_with_all_of_its_values_and_no_other() {
        let rules = Rules {
            values: ["rel-1a", "ops-22", "ops-33"]
                .map(|value| (value.to_owned(), ["x".to_owned()].into()))
                .into(),
            units: std::collections::BTreeSet::new(),
        };
        let pair = |value: &str| KeyValue {
            key: "k".to_owned(),
            value: value.to_owned(),
        };
        let arguments = [pair("rel-1a"), pair("OPS-22")];
        for (answer, expected) in [
            ("open_case(rel-1a, OPS-22)", Some(Outcome::Right)),
            (
                "open_case(release=\"rel-1a\", ticket='OPS-22')",
                Some(Outcome::Right),
            ),
            (
                "{\"release\": \"rel-1a\", \"ticket\": \"OPS-22\"}",
                Some(Outcome::Right),
            ),
            ("open_case(rel-1a)", Some(Outcome::Partial)),
            ("open_case(rel-1a, OPS-22, OPS-33)", Some(Outcome::Partial)),
            ("open_case(OPS-33)", Some(Outcome::Misbound)),
            ("open_case(…)", Some(Outcome::Wrong)),
            ("ask", Some(Outcome::Abstained)),
            ("rel-1a and OPS-22", None),
        ] {
            let found = rules.arguments(&arguments, answer);
            assert_eq!(found.map(|(_, outcome)| outcome), expected, "{answer}");
        }
    }
}
