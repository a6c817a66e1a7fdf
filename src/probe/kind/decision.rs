//! A choice between options, and its reason.

use super::prelude::*;

pub(super) fn spec<'a>(
    key: &'a str,
    choice: &'a str,
    reason: &'a str,
    rejected: &'a [String],
) -> Spec<'a> {
    let parts = vec![SpecPart::value(key, choice), SpecPart::new(SearchBy::Rule, "", reason)];
    Spec {
        reference: Some(format!("{choice}: {reason}").into()),
        values: vec![choice.into()],
        others: rejected.iter().map(String::as_str).collect(),
        grade: Some(Box::new(move |answer| {
            let said = words(answer.text);
            let around = answer.around(WORDS.because.iter());
            if around.holds_both(&said, &words(choice), &words(reason)) {
                return Some(RIGHT);
            }
            let plain = answer.around([]);
            let misbound = rejected.iter().any(|option| plain.holds_only(&said, &words(option)));
            misbound.then_some(wrong(Outcome::Misbound))
        })),
        ..Spec::new(ProbeKind::Decision, AnswerFormat::Choice, parts)
    }
}
