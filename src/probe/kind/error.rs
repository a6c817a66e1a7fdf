//! The code and the place of a failure.

use super::prelude::*;

pub(super) fn spec<'a>(attempt: &'a str, code: &'a str, place: &'a str) -> Spec<'a> {
    let parts = [code, place].map(|text| SpecPart::value(attempt, text));
    let whole = format!("{code} at {place}");
    Spec {
        values: vec![code.into(), whole.clone().into()],
        reference: Some(whole.into()),
        grade: Some(Box::new(|answer| {
            if is_fault(&answer.around(WORDS.fault.iter()), code, place, answer.text) {
                return Some(RIGHT);
            }
            let score = answer.one_of(&[]);
            score.filter(|_| !words(answer.text).contains(&normalise(code)))
        })),
        ..Spec::new(ProbeKind::Error, AnswerFormat::Fault, parts.into())
    }
}

/// Code and place and nothing else; the place as `file:line`, or as the file and the line apart.
fn is_fault(around: &Around, code: &str, place: &str, answer: &str) -> bool {
    let [code, place] = [code, place].map(normalise);
    let (file, line) = place.rsplit_once(':').unwrap_or((&place, &place));
    let parts = [&*code, &*place, file, line];
    let answer = words(answer);
    let mut said: BTreeSet<&str> = answer.iter().map(String::as_str).collect();
    said.retain(|word| parts.contains(word) || !around.allows(word));
    said == BTreeSet::from([parts[0], parts[1]]) || said == BTreeSet::from([parts[0], file, line])
}
