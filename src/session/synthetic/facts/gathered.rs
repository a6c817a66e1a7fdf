//! Joins facts that several messages say, and asks for calls that need several keys.

use std::collections::BTreeSet;

use super::{Ways, unsaid};
use crate::session::ground_truth::{Fact, KeyValue, PlantedFact};

/// Fewer events that were said make no order.
const LEAST_EVENTS: usize = 3;

/// Fewer handles are no list.
const LEAST_HANDLES: usize = 2;

/// One call is asked for per this many keys; it needs two or three of them.
const RECALLS_PER_ACT: usize = 6;

/// Joins the parts of a fact from several messages, in their order, and drops facts whose parts are
/// incomplete. Adds questions for calls that need several of the keys.
pub(crate) fn gathered(facts: Vec<PlantedFact>, ways: Ways) -> Vec<PlantedFact> {
    let mut gathered: Vec<PlantedFact> = Vec::new();
    for fact in facts {
        match gathered.iter_mut().find(|known| known.id == fact.id) {
            Some(known) => join(known, fact),
            None => gathered.push(fact),
        }
    }
    for fact in &mut gathered {
        if let Fact::Order { events, .. } = &mut fact.fact {
            events.sort_by_key(|event| event.message);
        }
        fact.evidence.sort_unstable();
    }
    gathered.retain(|fact| match &fact.fact {
        Fact::Order { events, .. } => events.len() >= LEAST_EVENTS,
        Fact::OpenHandle { handles, .. } => handles.len() >= LEAST_HANDLES,
        Fact::Obsolete { .. } | Fact::TwoStep { .. } => fact.evidence.len() == 2,
        _ => true,
    });
    gathered.extend(acts(&gathered, ways));
    gathered
}

/// Adds a later part of the same fact.
fn join(known: &mut PlantedFact, more: PlantedFact) {
    match (&mut known.fact, more.fact) {
        (Fact::Order { events, .. }, Fact::Order { events: more, .. }) => events.extend(more),
        (Fact::OpenHandle { handles, .. }, Fact::OpenHandle { handles: more, .. }) => {
            for handle in more {
                match handles.iter_mut().find(|known| known.name == handle.name) {
                    Some(known) => known.ended = handle.ended,
                    None => handles.push(handle),
                }
            }
        }
        _ => {}
    }
    known.evidence.extend(more.evidence);
}

/// Calls that need two or three of the keys that were said, each in a message of its own and far
/// from one another.
fn acts(facts: &[PlantedFact], ways: Ways) -> Vec<PlantedFact> {
    let recalls = facts.iter().filter_map(|fact| match &fact.fact {
        Fact::Recall { key, value } => {
            let (key, value) = (key.clone(), value.clone());
            Some((*fact.evidence.first()?, KeyValue { key, value }))
        }
        _ => None,
    });
    let mut said: Vec<(usize, KeyValue)> = recalls.collect();
    said.sort_by_key(|(message, _)| *message);
    let mut acts = Vec::new();
    for at in 0..said.len() / RECALLS_PER_ACT {
        let (first, middle) = (at * 3, said.len() / 2 + at * 3);
        let is_three = at % 2 == 1;
        let places = [first, middle, middle + 1];
        let taken = places.iter().take(2 + usize::from(is_three));
        let taken: Vec<&(usize, KeyValue)> = taken.filter_map(|at| said.get(*at)).collect();
        let evidence: BTreeSet<usize> = taken.iter().map(|(message, _)| *message).collect();
        if evidence.len() < taken.len() {
            continue;
        }
        let names = ["first", "second", "third"].into_iter();
        let slots = names.zip(taken.iter().map(|(_, pair)| pair.key.as_str()));
        let kind = if is_three {
            "act-of-three"
        } else {
            "act-of-two"
        };
        let question = ways.ask(kind, &slots.collect::<Vec<_>>());
        let arguments = taken.into_iter().map(|(_, pair)| pair.clone()).collect();
        acts.push(PlantedFact {
            evidence: evidence.into_iter().collect(),
            ..unsaid("act", acts.len() + 1, question, Fact::Act { arguments })
        });
    }
    acts
}
