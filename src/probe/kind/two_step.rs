//! A value that is found by way of another.

use super::prelude::*;

pub(super) fn spec(steps: &[KeyValue]) -> Spec<'_> {
    let last = steps.last().map_or("", |step| &step.value);
    Spec {
        answers: AnswerSet::Together,
        reference: Some(last.into()),
        grade: Some(Box::new(move |answer| answer.one_of(&[last]))),
        ..Spec::new(ProbeKind::TwoStep, AnswerFormat::Value, SpecPart::values(steps))
    }
}
