//! Drops facts that were not said as a whole, and asks for calls that need several keys.

use std::collections::BTreeSet;

use super::{Facts, Ways, unsaid};
use proctor_sessions::ground_truth::{Fact, KeyValue, PlantedFact};

/// Fewer events that were said make no order.
const LEAST_EVENTS: usize = 3;

/// Fewer handles are not a list.
const LEAST_HANDLES: usize = 2;

/// One call is asked for per this many keys; it needs two or three of them.
const RECALLS_PER_ACT: usize = 6;

impl Facts {
    /// The facts that were said, without those whose parts are incomplete. Adds questions for calls that
    /// need several of the keys.
    pub(crate) fn gathered(mut self) -> Vec<PlantedFact> {
        self.planted.retain(|fact| match &fact.fact {
            Fact::Order { events, .. } => events.len() >= LEAST_EVENTS,
            Fact::OpenHandle { handles, .. } => handles.len() >= LEAST_HANDLES,
            Fact::Obsolete { .. } | Fact::TwoStep { .. } => fact.evidence.len() == 2,
            Fact::Decoy { .. } => true,
            _ => !fact.evidence.is_empty(),
        });
        let calls = acts(&self.planted, self.ways);
        self.planted.into_iter().chain(calls).collect()
    }
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
        let three = at % 2 == 1;
        let places = [first, middle, middle + 1];
        let taken: Vec<&(usize, KeyValue)> =
            places.iter().take(2 + usize::from(three)).filter_map(|at| said.get(*at)).collect();
        let evidence: BTreeSet<usize> = taken.iter().map(|(message, _)| *message).collect();
        if evidence.len() < taken.len() {
            continue;
        }
        let names = ["first", "second", "third"].into_iter();
        let slots = names.zip(taken.iter().map(|(_, pair)| pair.key.as_str()));
        let kind = if three { "act-of-three" } else { "act-of-two" };
        let question = ways.ask(kind, &slots.collect::<Vec<_>>());
        let arguments = taken.into_iter().map(|(_, pair)| pair.clone()).collect();
        acts.push(PlantedFact {
            evidence: evidence.into_iter().collect(),
            ..unsaid("act", acts.len() + 1, question, Fact::Act { arguments })
        });
    }
    acts
}
