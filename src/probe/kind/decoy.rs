//! Something that was never said: every value in an answer is invented.

use super::prelude::*;

pub(super) fn spec<'a>(key: &'a str, value: &'a str) -> Spec<'a> {
    unsaid(ProbeKind::Decoy, AnswerFormat::Value, vec![SpecPart::value(key, value)])
}

/// Something that the conversation does not say.
pub(super) fn unsaid(kind: ProbeKind, format: AnswerFormat, parts: Vec<SpecPart<'_>>) -> Spec<'_> {
    Spec {
        answers: AnswerSet::Nothing,
        reference: Some(NEVER_SAID.into()),
        values: Vec::new(),
        grade: Some(Box::new(grade)),
        ..Spec::new(kind, format, parts)
    }
}

/// Right is to say so and no more; exactly the value of another item is invented.
fn grade(answer: &GradedAnswer<'_>) -> Option<GradeScore> {
    if abstains(answer.text) {
        return Some(RIGHT);
    }
    answer.is_anothers(&answer.around([]), &words(answer.text)).then_some(wrong(Outcome::Invented))
}
