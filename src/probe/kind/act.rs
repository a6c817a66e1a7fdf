//! A tool call that needs values said at different places.

use serde_json::{Map, Value};

use super::prelude::*;

pub(super) fn spec(arguments: &[KeyValue]) -> Spec<'_> {
    let line = |pair: &KeyValue| format!("\n{}: {}", pair.key, pair.value);
    let lines: String = arguments.iter().map(line).collect();
    let reference = format!("One call with all of these values:{lines}");
    Spec {
        answers: Answers::Together,
        reference: Reference::Written(reference),
        values: Some(Vec::new()),
        grade: Some(Box::new(|answer| grade(arguments, answer))),
        ..Spec::new(ProbeKind::Act, AnswerFormat::Call, Part::values(arguments))
    }
}

/// Right is one call with all of the values as its arguments and no other planted one; to ask is an omission, and
/// a call with other planted values alone is another item's.
fn grade(arguments: &[KeyValue], answer: &Answer<'_>) -> Option<Score> {
    let call = match Call::read(answer.text) {
        Some(Call::Asks) => return Some(wrong(Outcome::Abstained)),
        Some(Call::Made(call)) => call,
        None => {
            serde_json::from_str::<Map<String, Value>>(answer.text).ok()?;
            normalise(answer.text)
        }
    };
    let wanted: Vec<Vec<String>> = arguments.iter().map(|pair| words(&pair.value)).collect();
    let has = |value: &[String]| has_phrase(&call, &value.join(" "));
    let found = wanted.iter().filter(|value| has(value)).count();
    let names_other = answer.rules.known_values().any(|value| {
        // A planted word without a digit may be one of the call's own.
        let is_code = value
            .iter()
            .any(|word| word.contains(|c: char| c.is_ascii_digit()));
        is_code && !wanted.iter().any(|own| own == value) && has(value)
    });
    match (found, names_other) {
        (all, false) if all == wanted.len() && is_passed(arguments, &call) => Some(RIGHT),
        (0, true) => Some(wrong(Outcome::Misbound)),
        _ => None,
    }
}

/// Whether each value is an argument by itself, and none under the name of another.
fn is_passed(arguments: &[KeyValue], call: &str) -> bool {
    let mut quote = None;
    let is_between = |c| {
        if let Some(open) = quote {
            quote = quote.filter(|_| open != c);
            return false;
        }
        quote = Some(c).filter(|c| matches!(c, '"' | '\''));
        ",(){}[]\n".contains(c)
    };
    let passed: Vec<&str> = call.split(is_between).collect();
    arguments.iter().all(|own| {
        let own_value = words(&own.value);
        let is_others = |name: &str| {
            let mut others = arguments.iter().filter(|other| other.key != own.key);
            others.any(|other| normalise(&other.key) == normalise(name))
        };
        passed.iter().any(|passed| {
            let (name, value) = passed.split_once(['=', ':']).unwrap_or(("", passed));
            words(passed) == own_value || (words(value) == own_value && !is_others(name))
        })
    })
}
