//! The code and the place of a failure.

use std::collections::BTreeSet;

use super::prelude::*;

/// Words around a code, a file and a line.
const AROUND: &[&str] = &["code", "error", "file", "line"];

pub(super) fn spec<'a>(attempt: &'a str, code: &'a str, place: &'a str) -> Spec<'a> {
    let parts = [code, place].map(|text| Part::value(attempt, text));
    let whole = format!("{code} at {place}");
    Spec {
        values: Some(vec![code.to_owned(), whole.clone()]),
        reference: Reference::Written(whole),
        grade: Some(Box::new(|answer| {
            if is_fault(answer.question(), code, place, answer.text) {
                return Some(RIGHT);
            }
            let names_code = words(answer.text).contains(&normalise(code));
            answer.one_of(&[]).filter(|_| !names_code)
        })),
        ..Spec::new(ProbeKind::Error, AnswerFormat::Fault, parts.into())
    }
}

/// Code and place and nothing else; the place as `file:line`, or as the file and the line apart.
fn is_fault(question: &str, code: &str, place: &str, answer: &str) -> bool {
    let around = Around::new(question, AROUND);
    let (code, place) = (&*normalise(code), &*normalise(place));
    let (file, line) = place.rsplit_once(':').unwrap_or((place, place));
    let answer = words(answer);
    let said = answer.iter().map(String::as_str);
    let said: BTreeSet<&str> = said
        .filter(|word| [code, place, file, line].contains(word) || !around.allows(word))
        .collect();
    said == BTreeSet::from([code, place]) || said == BTreeSet::from([code, file, line])
}
