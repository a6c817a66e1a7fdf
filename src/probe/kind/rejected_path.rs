//! Something that was tried and failed, and why: asked once as tried and once as untried.

use super::prelude::*;

pub(super) fn spec<'a>(approach: &'a str, reason: &'a str) -> Spec<'a> {
    let untried = format!("Is the {approach} still untried? If it is not, say how it ended.");
    let parts = vec![Part::value(approach, reason)];
    Spec {
        asked: own_and(&untried),
        reference: Reference::Written(format!("Yes; it failed: {reason}")),
        grade: Some(Box::new(|answer| {
            is_tried(answer.question(), reason, answer.text).then_some(RIGHT)
        })),
        ..Spec::new(ProbeKind::RejectedPath, AnswerFormat::YesNo, parts)
    }
}

/// Yes with the reason; the question in the other order takes a no.
fn is_tried(question: &str, reason: &str, answer: &str) -> bool {
    let around = Around::new(question, BECAUSE);
    let reason = words(reason);
    let is_half = |first: &str, half: &str| {
        let said = words(half);
        said.first().is_some_and(|word| word == first) && around.holds_only(&said[1..], &reason)
    };
    match answer.split_once(OTHER_ORDER) {
        Some((straight, turned)) => is_half("yes", straight) && is_half("no", turned),
        None => is_half("yes", answer),
    }
}
