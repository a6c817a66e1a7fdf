//! The items of a plan that are not done.

use super::prelude::*;

pub(super) fn spec(items: &[PlanItem]) -> Spec<'_> {
    let parts = items
        .iter()
        .map(|item| SpecPart { until: item.done, ..SpecPart::new(SearchBy::Item, "", &item.item) });
    Spec {
        answers: AnswerSet::Planned,
        grade: Some(Box::new(|answer| {
            let gold = Gold {
                wanted: normalised(answer.current.iter().copied()),
                optional: BTreeSet::new(),
                ever: &normalised(items.iter().map(|item| item.item.as_str())),
                known: &answer.rules.items,
            };
            gold.grade(&normalised(listed(answer.text, &['\n'])))
        })),
        ..Spec::new(ProbeKind::Continuation, AnswerFormat::Items, parts.collect())
    }
}
