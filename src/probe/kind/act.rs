//! A tool call that needs values said at different places.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::prelude::*;

pub(super) fn spec(arguments: &[KeyValue]) -> Spec<'_> {
    let mut reference = "One call with all of these values:".to_owned();
    for pair in arguments {
        let _ = write!(reference, "\n{}: {}", pair.key, pair.value);
    }
    Spec {
        answers: AnswerSet::Together,
        reference: Some(reference.into()),
        grade: Some(Box::new(|answer| grade(arguments, answer))),
        ..Spec::new(ProbeKind::Act, AnswerFormat::Call, SpecPart::values(arguments))
    }
}

/// Right is one call with all of the values as its arguments and no other planted one; to ask is an omission, and
/// a call with other planted values alone is another item's.
fn grade(arguments: &[KeyValue], answer: &GradedAnswer<'_>) -> Option<GradeScore> {
    let call = match ReadCall::read(answer.text) {
        Some(ReadCall::Asks) => return Some(wrong(Outcome::Abstained)),
        Some(ReadCall::Made(call)) => call,
        None => {
            serde_json::from_str::<Map<String, Value>>(answer.text).ok()?;
            normalise(answer.text)
        }
    };
    let wanted: Vec<Vec<String>> = arguments.iter().map(|pair| words(&pair.value)).collect();
    let found = wanted.iter().filter(|value| holds(&call, value)).count();
    // A planted word without a digit may be one of the call's own.
    let mut others = answer.rules.known_values().filter(|value| {
        let mut letters = value.iter().flat_map(|word| word.chars());
        letters.any(|c| c.is_ascii_digit()) && wanted.iter().all(|own| own != value)
    });
    match (found, others.any(|value| holds(&call, value))) {
        (all, false) if all == wanted.len() && is_passed(arguments, &call) => Some(RIGHT),
        (0, true) => Some(wrong(Outcome::Misbound)),
        _ => None,
    }
}

fn holds(call: &str, value: &[String]) -> bool {
    has_phrase(call, &value.join(" "))
}

/// Whether each value is an argument by itself, and none under the name of another.
fn is_passed(arguments: &[KeyValue], call: &str) -> bool {
    let mut quote = None;
    let passed = call.split(|c| {
        if let Some(open) = quote {
            quote = quote.filter(|_| open != c);
            return false;
        }
        quote = Some(c).filter(|c| matches!(c, '"' | '\''));
        ",(){}[]\n".contains(c)
    });
    let passed: Vec<&str> = passed.collect();
    arguments.iter().all(|own| {
        let own_value = words(&own.value);
        let others = arguments.iter().filter(|other| other.key != own.key);
        let others: Vec<String> = others.map(|other| normalise(&other.key)).collect();
        passed.iter().any(|passed| {
            let (name, value) = passed.split_once(['=', ':']).unwrap_or(("", passed));
            words(passed) == own_value
                || (words(value) == own_value && !others.contains(&normalise(name)))
        })
    })
}
