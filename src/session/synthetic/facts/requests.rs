//! The user's requests. Each carries a reference of its own, which distinguishes the last one from all
//! others and cannot be guessed.

use super::{Ways, unsaid};
use crate::session::ground_truth::{Fact, PlantedFact, Revision};
use crate::session::synthetic::Recipe;
use crate::session::synthetic::grammar::WORDS;
use crate::session::synthetic::random::Random;

/// The requests of a session.
#[derive(Debug)]
pub(crate) struct Requests {
    random: Random,
    ways: Ways,
    is_planted: bool,
    said: Vec<Revision>,
}

impl Requests {
    pub(crate) fn new(recipe: &Recipe) -> Self {
        Self {
            random: Random::new(recipe.seed, "requests"),
            ways: Ways::of(recipe),
            is_planted: recipe.fact_percent > 0,
            said: Vec::new(),
        }
    }

    /// The request as it is typed in the message of that index.
    pub(crate) fn ask(&mut self, text: String, message: usize) -> String {
        if !self.is_planted {
            return text;
        }
        let reference = WORDS.say(&mut self.random, "reference", &[]);
        let slots = [("reference", reference.as_str())];
        let filed = self.ways.say(&mut self.random, WORDS.bank("filed"), &slots);
        let value = format!("{text}{}{filed}", self.ways.language.gap());
        self.said.push(Revision::new(value.clone(), message));
        value
    }

    /// The fact, if anything was asked for.
    pub(crate) fn fact(self) -> Option<PlantedFact> {
        let evidence: Vec<usize> = self.said.iter().map(|said| said.message).collect();
        let question = self.ways.ask("last-request", &[]);
        let requests = self.said;
        (!evidence.is_empty()).then(|| PlantedFact {
            evidence,
            ..unsaid("last-request", 1, question, Fact::LastRequest { requests })
        })
    }
}
