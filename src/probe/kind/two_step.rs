//! A value that is found by way of another.

use super::prelude::*;

pub(super) fn spec(steps: &[KeyValue]) -> Spec<'_> {
    Spec {
        answers: Answers::Together,
        reference: Reference::Newest(""),
        grade: Some(Box::new(|answer| answer.one_of(&[&steps.last()?.value]))),
        ..Spec::new(ProbeKind::TwoStep, AnswerFormat::Value, Part::values(steps))
    }
}
