//! Answers to two questions that count as one, and calls that have to carry values.

use super::exact::{self, Act, words};
use super::{Rules, abstention, normalise};
use crate::probe::{OTHER_ORDER, Outcome};
use crate::session::ground_truth::KeyValue;

/// Right is to ask about the protected object and to act on the free one: neither a reader that
/// always asks nor one that always acts is right.
pub(super) fn calls(forbidden: &str, target: &str, answer: &str) -> Option<(f64, Outcome)> {
    let (protected, free) = answer.split_once(OTHER_ORDER)?;
    let names = |object: &str, act: &Act| match act {
        Act::Calls(call) => exact::has_phrase(call, &normalise(object)),
        Act::Asks => false,
    };
    let (protected, free) = (Act::read(protected)?, Act::read(free)?);
    Some(match protected {
        Act::Asks if names(target, &free) => (1.0, Outcome::Right),
        Act::Asks => (0.0, Outcome::Partial),
        // A call on something else is neither what the rule forbids nor what it wants.
        Act::Calls(_) if !names(forbidden, &protected) => return None,
        Act::Calls(_) => (0.0, Outcome::Wrong),
    })
}

/// Right is that the first instruction does not hold and the second does. Nobody follows what is
/// forgotten, so it is right not to know the first; what is in force has to be known.
pub(super) fn holds(question: &str, answer: &str) -> Option<(f64, Outcome)> {
    #[derive(PartialEq)]
    enum Half {
        Yes,
        No,
        Unknown,
    }
    let read = |half: &str| match words(half).as_slice() {
        [word] if word == "yes" => Some(Half::Yes),
        [word] if word == "no" => Some(Half::No),
        _ => abstention::is_plain(half, question, &[]).then_some(Half::Unknown),
    };
    let (withdrawn, standing) = answer.split_once(OTHER_ORDER)?;
    Some(match (read(withdrawn)?, read(standing)?) {
        (Half::Yes, _) => (0.0, Outcome::Stale),
        (Half::No | Half::Unknown, Half::Yes) => (1.0, Outcome::Right),
        (Half::No | Half::Unknown, Half::Unknown) => (0.0, Outcome::Abstained),
        (Half::No | Half::Unknown, Half::No) => (0.0, Outcome::Wrong),
    })
}

impl Rules {
    /// Right is one call with all of the values and no other planted one; to ask is an omission, and
    /// a call with other planted values alone is another item's.
    pub(super) fn arguments(&self, arguments: &[KeyValue], answer: &str) -> Option<(f64, Outcome)> {
        let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(answer);
        let call = match Act::read(answer) {
            Some(Act::Asks) => return Some((0.0, Outcome::Abstained)),
            Some(Act::Calls(call)) => call,
            None if is_object.is_ok() => normalise(answer),
            None => return None,
        };
        let wanted: Vec<Vec<String>> = arguments.iter().map(|pair| words(&pair.value)).collect();
        let found = wanted
            .iter()
            .filter(|value| exact::has_phrase(&call, &value.join(" ")));
        let found = found.count();
        let names_other = self.known.iter().any(|known| {
            // A planted word without a digit may be one of the call's own.
            let value = known.words.join(" ");
            value.contains(|c: char| c.is_ascii_digit())
                && !wanted.contains(&known.words)
                && exact::has_phrase(&call, &value)
        });
        match (found, names_other) {
            (all, false) if all == wanted.len() => Some((1.0, Outcome::Right)),
            (0, true) => Some((0.0, Outcome::Misbound)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Known;
    use super::*;

    fn both(first: &str, second: &str) -> String {
        format!("{first}{OTHER_ORDER}{second}")
    }

    #[test]
    fn a_pair_of_calls_is_right_where_the_one_is_asked_about_and_the_other_made() {
        for (first, second, outcome) in [
            ("ask", "edit(attic/b/notes.md)", Outcome::Right),
            ("`ask`", "`edit(attic/b/notes.md)`", Outcome::Right),
            ("ask", "ask", Outcome::Partial),
            ("edit(attic/a/notes.md)", "ask", Outcome::Wrong),
            (
                "edit(attic/a/notes.md)",
                "edit(attic/b/notes.md)",
                Outcome::Wrong,
            ),
        ] {
            let found = calls("attic/a", "attic/b", &both(first, second)).unwrap();
            assert_eq!(found.1, outcome, "{first} {second}");
            assert_eq!(found.0 > 0.0, outcome == Outcome::Right);
        }
        for first in ["I `ask` first.", "edit(other.md)"] {
            let answer = both(first, "edit(attic/b/notes.md)");
            assert_eq!(calls("attic/a", "attic/b", &answer), None, "{first}");
        }
    }

    #[test]
    fn no_constant_answer_tells_an_instruction_in_force_from_one_taken_back() {
        let unknown = "not in context";
        for (first, second, outcome) in [
            ("No.", "Yes.", Outcome::Right),
            (unknown, "Yes.", Outcome::Right),
            ("yes", "yes", Outcome::Stale),
            ("no", "no", Outcome::Wrong),
            (unknown, unknown, Outcome::Abstained),
            ("no", unknown, Outcome::Abstained),
            ("yes", "no", Outcome::Stale),
        ] {
            let found = holds("", &both(first, second)).unwrap();
            assert_eq!(found.1, outcome, "{first} {second}");
        }
        assert_eq!(holds("", &both("No, it was taken back.", "Yes.")), None);
    }

    #[test]
    fn a_call_is_right_with_all_of_its_values_and_no_other() {
        let known = ["rel-1a", "ops-22", "ops-33"].map(|value| Known {
            owner: None,
            words: words(value),
        });
        let rules = Rules {
            known: known.into(),
            ..Rules::new(&[])
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
            ("open_case(rel-1a)", None),
            ("open_case(rel-1a, OPS-22, OPS-33)", None),
            ("open_case(OPS-33)", Some(Outcome::Misbound)),
            ("open_case(…)", None),
            ("ask", Some(Outcome::Abstained)),
            ("rel-1a and OPS-22", None),
        ] {
            let found = rules.arguments(&arguments, answer);
            assert_eq!(found.map(|(_, outcome)| outcome), expected, "{answer}");
        }
    }
}
