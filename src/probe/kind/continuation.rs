//! The items of a plan that are not done.

use super::prelude::*;

pub(super) fn spec<'a>(items: &'a [PlanItem]) -> Spec<'a> {
    let part = |item: &'a PlanItem| Part {
        until: item.done,
        ..Part::new(Search::Item, "", &item.item)
    };
    let parts = items.iter().map(part).collect();
    Spec {
        answers: Answers::Planned,
        values: Some(Vec::new()),
        grade: Some(Box::new(|answer| {
            let all = lists::normalised(items.iter().map(|item| item.item.as_str()));
            let known = answer.rules.items();
            lists::grade(&answer.current, &all, known, &['\n'], answer.text)
        })),
        ..Spec::new(ProbeKind::Continuation, AnswerFormat::Items, parts)
    }
}
