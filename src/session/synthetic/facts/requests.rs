//! What the user asks for: each request carries a reference of its own, so that the last one can be
//! told from all others, and cannot be guessed.

use super::{Numbers, Ways};
use crate::session::ground_truth::{Fact, Importance, PlantedFact, Revision};
use crate::session::synthetic::random::Random;
use crate::session::synthetic::words::FACTS;

/// How the last one is asked for.
const LAST: &str = "What did the user ask for last? Quote the whole request, with the words it was \
                    filed with.";

/// The requests of a session.
#[derive(Debug)]
pub(crate) struct Requests {
    random: Random,
    ways: Ways,
    is_planted: bool,
    said: Vec<Revision>,
}

impl Requests {
    pub(crate) fn new(seed: u64, numbers: Numbers) -> Self {
        Self {
            random: Random::new(seed, "requests"),
            ways: numbers.ways,
            is_planted: numbers.requests,
            said: Vec::new(),
        }
    }

    /// The request as it is typed in the message of that index.
    pub(crate) fn ask(&mut self, text: String, message: usize) -> String {
        if !self.is_planted {
            return text;
        }
        let reference = format!("WO-{}", self.random.digits(7));
        let slots = [("reference", reference.as_str())];
        let filed = self.ways.say(&mut self.random, &FACTS.filed, &slots);
        let value = format!("{text}{}{filed}", self.ways.language.gap());
        self.said.push(Revision::new(value.clone(), message));
        value
    }

    /// The fact, if anything was asked for.
    pub(crate) fn fact(self) -> Option<PlantedFact> {
        let evidence: Vec<usize> = self.said.iter().map(|said| said.message).collect();
        (!evidence.is_empty()).then(|| PlantedFact {
            id: "last-request-01".to_owned(),
            question: self.ways.fill(LAST, &[]),
            fact: Fact::LastRequest {
                requests: self.said,
            },
            evidence,
            importance: Importance::High,
        })
    }
}
