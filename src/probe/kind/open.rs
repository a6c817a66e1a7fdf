//! A question whose answer has to be put together: only a judge can grade it.

use super::prelude::*;

pub(super) fn spec(answer: &str) -> Spec<'_> {
    Spec {
        answers: AnswerSet::Together,
        reference: Some(answer.into()),
        // A share of omissions is not a share of answers: a judge sees all of them.
        grade: None,
        ..Spec::new(ProbeKind::Open, AnswerFormat::Sentence, Vec::new())
    }
}
