//! In which order things happened.

use super::prelude::*;

pub(super) fn spec<'a>(sequence: &'a str, events: &'a [Revision]) -> Spec<'a> {
    let parts = SpecPart::revisions(SearchBy::Event, sequence, events);
    Spec {
        answers: AnswerSet::Ordered,
        grade: Some(Box::new(|answer| grade(&answer.current, answer.text))),
        ..Spec::new(ProbeKind::Order, AnswerFormat::Sequence, parts)
    }
}

/// Kendall's score over the pairs of `gold`; a pair of which one event is
/// not named counts for nothing. `None` where something else is named, an event twice, or lines are numbered in
/// another order.
fn grade(gold: &[&str], answer: &str) -> Option<GradeScore> {
    if !answer.lines().filter_map(number).is_sorted() {
        return None;
    }
    let lines = answer.replace("->", "\n").replace(['→', ','], "\n");
    let mut named: Vec<String> = listed(&lines, &['\n']).map(normalise).collect();
    named.retain(|name| !name.is_empty());
    let events = gold.iter().map(|event| normalise(event));
    let present: Vec<usize> =
        events.filter_map(|event| named.iter().position(|name| *name == event)).collect();
    if present.is_empty() || present.len() != named.len() {
        return None;
    }
    let (_, score) = kendall(&present, gold.len());
    Some(if score >= 1.0 { RIGHT } else { (score, Outcome::Partial) })
}

/// The number in front of a line of a list.
fn number(line: &str) -> Option<u32> {
    line.trim().split_once(['.', ')'])?.0.parse().ok()
}
