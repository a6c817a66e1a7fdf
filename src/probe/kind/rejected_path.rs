//! Something that was tried and failed, and why: asked once as tried and once as untried.

use super::prelude::*;

pub(super) fn spec<'a>(approach: &'a str, reason: &'a str) -> Spec<'a> {
    let untried = format!("Is the {approach} still untried? If it is not, say how it ended.");
    let parts = vec![SpecPart::value(approach, reason)];
    Spec {
        asked: own_and(&untried).into(),
        reference: Some(format!("Yes; it failed: {reason}").into()),
        grade: Some(Box::new(|answer| is_tried(answer, reason).then_some(RIGHT))),
        ..Spec::new(ProbeKind::RejectedPath, AnswerFormat::YesNo, parts)
    }
}

/// Yes with the reason; the question in the other order takes a no.
fn is_tried(answer: &GradedAnswer<'_>, reason: &str) -> bool {
    let (around, reason) = (answer.around(WORDS.because.iter()), words(reason));
    answer.text.split(OTHER_ORDER).zip(["yes", "no"]).all(|(half, first)| {
        let said = words(half);
        said.first().is_some_and(|word| word == first) && around.holds_only(&said[1..], &reason)
    })
}
