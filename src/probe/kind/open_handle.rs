//! Handles that were opened and not yet closed.

use super::prelude::*;

pub(super) fn spec<'a>(owner: &'a str, handles: &'a [Handle]) -> Spec<'a> {
    let part = |handle: &'a Handle| Part {
        since: Some(handle.started),
        until: handle.ended,
        ..Part::value(owner, &handle.name)
    };
    let parts = handles.iter().map(part).collect();
    Spec {
        answers: Answers::Open,
        values: Some(Vec::new()),
        grade: Some(Box::new(|answer| {
            let known = lists::normalised(handles.iter().map(|handle| handle.name.as_str()));
            let separators = &['\n', ','];
            lists::grade(&answer.current, &known, &known, separators, answer.text)
        })),
        ..Spec::new(ProbeKind::OpenHandle, AnswerFormat::Items, parts)
    }
}
