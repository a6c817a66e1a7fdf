//! Facts of a recorded session that can be asked for, derived from what the session needed again.
//!
//! A fact is derived from its use, which is seen in the structure of the recording and not in its words: a rule that the
//! user repeated or corrected, a value that was fetched again after it had left the recorded context, what was started
//! and ran on through a compaction, the plan, the last request. It is asked before that use, never after it.
//!
//! A derived fact is a proposal. A person can edit the file, `proctor sessions facts --check` compares it with its session, and the
//! caller keeps only the facts that the full history answers.

use std::collections::BTreeMap;

use super::survival::marks;
use crate::probe::{ProbeExt as _, Specified as _};
use crate::session::Session;
use crate::session::ground_truth::{Fact, GroundTruth, Importance, PlantedFact};
use crate::units::ContentHash;

pub mod decisions;
mod own;
pub(crate) mod said;
pub(crate) mod work;

/// The greatest number of facts of each kind, spread over the session.
const MOST: usize = 12;

/// Keys that nobody named, asked beside the facts of each session.
const DECOYS: usize = 2;

/// Derives facts of every kind but decisions, which take a model.
pub fn derive(session: &Session) -> GroundTruth {
    let mut of_kind: BTreeMap<&str, Vec<PlantedFact>> = BTreeMap::new();
    let proposed = [said::rules(session), said::requests(session), work::facts(session)];
    for fact in proposed.into_iter().flatten() {
        of_kind.entry(fact.kind().name()).or_default().push(fact);
    }
    let decoys = (0..DECOYS).filter_map(|at| decoy(session, at)).collect();
    of_kind.insert("decoy", decoys);
    let mut facts = Vec::new();
    for (kind, all) in of_kind {
        let (count, taken) = (all.len(), all.len().min(MOST));
        facts.extend((0..taken).map(|at| PlantedFact {
            id: format!("{kind}-{:02}", at + 1),
            ..all[at * count / taken].clone()
        }));
    }
    GroundTruth::new(session.id(), facts)
}

/// How many of these facts hold nothing exact that survival could compare, and how many there are; decoys are left out.
pub(crate) fn without_anchor(facts: &[PlantedFact]) -> (usize, usize) {
    let planted = facts.iter().filter(|fact| !fact.kind().is_never_said());
    let lacking = planted.clone().filter(|fact| {
        let mut parts = fact.fact.spec().parts.into_iter();
        parts.all(|part| part.unasked || marks(part.text).anchors.is_empty())
    });
    (lacking.count(), planted.count())
}

/// A fact without an id, which is not used before the session ends.
fn proposal(question: impl Into<String>, evidence: Vec<usize>, fact: Fact) -> PlantedFact {
    PlantedFact {
        id: String::new(),
        fact,
        question: question.into(),
        evidence,
        until: None,
        importance: Importance::Normal,
    }
}

/// A key that is never named, made from the session's id.
fn decoy(session: &Session, at: usize) -> Option<PlantedFact> {
    const SYLLABLES: [&str; 16] = [
        "quo", "mis", "tar", "vel", "dro", "pim", "lus", "gan", "fer", "hok", "zat", "ned", "cul",
        "ryb", "wof", "jat",
    ];
    let seed = format!("{} decoy {at}", session.id());
    let hash = ContentHash::of(seed.as_bytes()).hex(32);
    let mut key = String::new();
    for (at, hex) in hash.chars().take(8).enumerate() {
        key.push_str(if at == 4 { " " } else { "" });
        key.push_str(SYLLABLES[hex.to_digit(16)? as usize]);
    }
    let value = hash.get(12..24)?.to_owned();
    let question = format!("Which value belongs to {key}?");
    Some(proposal(question, Vec::new(), Fact::Decoy { key, value }))
}

#[cfg(test)]
mod tests;
