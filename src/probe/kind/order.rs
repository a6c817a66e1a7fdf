//! In which order things happened.

use super::{
    AnswerFormat, Answers, Outcome, Part, ProbeKind, Revision, Score, Search, Spec, listed,
    normalise,
};

pub(super) fn spec<'a>(sequence: &'a str, events: &'a [Revision]) -> Spec<'a> {
    let parts = Part::revisions(Search::Event, sequence, events);
    Spec {
        answers: Answers::Ordered,
        values: Some(Vec::new()),
        grade: Some(Box::new(|answer| grade(&answer.current, answer.text))),
        ..Spec::new(ProbeKind::Order, AnswerFormat::Sequence, parts)
    }
}

/// Kendall's `max(0, (C − D) / (n(n − 1)/2))` over the pairs of `gold`; a pair of which one event is
/// not named counts for nothing. `None` where something else is named, or an event twice.
fn grade(gold: &[&str], answer: &str) -> Option<Score> {
    let answer = answer.replace("->", "\n").replace(['→', ','], "\n");
    let named: Vec<String> = listed(&answer, &['\n']).map(normalise).collect();
    let named: Vec<&String> = named.iter().filter(|name| !name.is_empty()).collect();
    let gold: Vec<String> = gold.iter().map(|event| normalise(event)).collect();
    let present: Vec<usize> = gold
        .iter()
        .filter_map(|event| named.iter().position(|name| *name == event))
        .collect();
    if present.is_empty() || present.len() != named.len() {
        return None;
    }
    let mut balance = 0_i64;
    for (at, earlier) in present.iter().enumerate() {
        for later in &present[at + 1..] {
            balance += i64::from(earlier < later) - i64::from(earlier > later);
        }
    }
    let pairs = gold.len() * gold.len().saturating_sub(1) / 2;
    let score = balance.max(0) as f64 / pairs.max(1) as f64;
    let outcome = if score >= 1.0 {
        Outcome::Right
    } else {
        Outcome::Partial
    };
    Some((score, outcome))
}
