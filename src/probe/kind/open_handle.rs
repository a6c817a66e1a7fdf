//! Handles that were opened and not yet closed.

use super::prelude::*;

pub(super) fn spec<'a>(owner: &'a str, handles: &'a [Handle]) -> Spec<'a> {
    let parts = handles.iter().map(|handle| SpecPart {
        since: Some(handle.started),
        until: handle.ended,
        ..SpecPart::value(owner, &handle.name)
    });
    Spec {
        answers: AnswerSet::Open,
        grade: Some(Box::new(|answer| {
            let known = normalised(handles.iter().map(|handle| handle.name.as_str()));
            let gold = Gold {
                wanted: normalised(answer.current.iter().copied()),
                optional: BTreeSet::new(),
                ever: &known,
                known: &known,
            };
            gold.grade(&normalised(listed(answer.text, &['\n', ','])))
        })),
        ..Spec::new(ProbeKind::OpenHandle, AnswerFormat::Items, parts.collect())
    }
}
