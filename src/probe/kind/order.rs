//! In which order things happened.

use super::prelude::*;

pub(super) fn spec<'a>(sequence: &'a str, events: &'a [Revision]) -> Spec<'a> {
    let parts = Part::revisions(Search::Event, sequence, events);
    Spec {
        answers: Answers::Ordered,
        values: Some(Vec::new()),
        grade: Some(Box::new(|answer| grade(&answer.current, answer.text))),
        ..Spec::new(ProbeKind::Order, AnswerFormat::Sequence, parts)
    }
}

/// Kendall's score over the pairs of `gold`; a pair of which one event is
/// not named counts for nothing. `None` where something else is named, an event twice, or lines are numbered in
/// another order.
fn grade(gold: &[&str], answer: &str) -> Option<Score> {
    let number = |line: &str| line.trim().split_once(['.', ')'])?.0.parse::<u32>().ok();
    if !answer.lines().filter_map(number).is_sorted() {
        return None;
    }
    let answer = answer.replace("->", "\n").replace(['→', ','], "\n");
    let named: Vec<String> = listed(&answer, &['\n']).map(normalise).collect();
    let named: Vec<&String> = named.iter().filter(|name| !name.is_empty()).collect();
    let gold: Vec<String> = gold.iter().map(|event| normalise(event)).collect();
    let place = |event| named.iter().position(|name| *name == event);
    let present: Vec<usize> = gold.iter().filter_map(place).collect();
    if present.is_empty() || present.len() != named.len() {
        return None;
    }
    let (_, score) = kendall(&present, gold.len());
    let outcome = if score >= 1.0 {
        Outcome::Right
    } else {
        Outcome::Partial
    };
    Some((score, outcome))
}
