//! Facts of a recorded session that can be asked for: found by rule, one kind per function.
//!
//! What is found here is a proposal. A person can edit the file, `proctor probes check` holds it
//! against its session, and the caller keeps only what the full history answers. Nothing is proposed
//! that is not unique: a value that stands in two messages is no planted value.

use std::collections::{BTreeMap, BTreeSet};

use crate::session::ground_truth::{ArtifactVerb, Fact, GroundTruth, Importance, PlantedFact};
use crate::session::{Session, ToolUse};
use crate::units::ContentHash;

pub mod decisions;
mod entities;
mod said;
mod work;

/// Of each kind at most so many are proposed, spread over the session.
const MOST: usize = 12;

/// A decoy for every so many proposed keys,
const KEYS_PER_DECOY: usize = 3;
/// and at least so many.
const LEAST_DECOYS: usize = 2;

/// What a tool use does to which files: the caller knows the tools.
pub type Touched<'a> = &'a dyn Fn(&ToolUse) -> Vec<(ArtifactVerb, String)>;

/// Proposes facts of every kind that rules can find: all but decisions, which take a model.
pub fn derive(session: &Session, touched: Touched<'_>) -> GroundTruth {
    let texts = Texts::new(session);
    let found: Vec<Vec<Proposal>> = vec![
        entities::recalls(session, &texts),
        entities::revised(session, &texts),
        entities::bindings(session, &texts, touched),
        work::errors(session, &texts),
        work::numbers(session),
        work::rejected(session, &texts),
        work::artifacts(session, touched),
        work::order(session, &texts, touched),
        work::plan(session),
        said::rules(session, &texts),
        said::requests(session, &texts),
    ];
    let mut facts: Vec<PlantedFact> = Vec::new();
    for proposals in found {
        let chosen = spread(proposals, MOST);
        for (at, proposal) in chosen.into_iter().enumerate() {
            facts.push(proposal.fact(at));
        }
    }
    let keys = facts.iter().filter(|fact| fact.id.starts_with("recall"));
    let decoys = (keys.count() / KEYS_PER_DECOY).max(LEAST_DECOYS);
    facts.extend((0..decoys).filter_map(|at| decoy(session, &texts, at)));
    facts.sort_by(|a, b| a.id.cmp(&b.id));
    GroundTruth::new(session.id(), facts)
}

/// Something that can be asked for.
#[derive(Debug)]
struct Proposal {
    kind: &'static str,
    question: String,
    evidence: Vec<usize>,
    importance: Importance,
    fact: Fact,
}

impl Proposal {
    fn fact(self, at: usize) -> PlantedFact {
        PlantedFact {
            id: format!("{}-{:02}", self.kind, at + 1),
            fact: self.fact,
            question: self.question,
            evidence: self.evidence,
            importance: self.importance,
        }
    }
}

/// At most `most` of them, at equal distances.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let count = all.len();
    let wanted: BTreeSet<usize> = if count <= most {
        (0..count).collect()
    } else {
        (0..most).map(|at| at * count / most).collect()
    };
    let all = all.into_iter().enumerate();
    all.filter(|(at, _)| wanted.contains(at))
        .map(|(_, proposal)| proposal)
        .collect()
}

/// A key that nobody ever named, made from the session's id.
fn decoy(session: &Session, texts: &Texts, at: usize) -> Option<PlantedFact> {
    const SYLLABLES: [&str; 16] = [
        "quo", "mis", "tar", "vel", "dro", "pim", "lus", "gan", "fer", "hok", "zat", "ned", "cul",
        "ryb", "wof", "jat",
    ];
    let seed = format!("{} decoy {at}", session.id());
    let hash = ContentHash::of(seed.as_bytes()).hex(32);
    let digits: Vec<usize> = hash
        .chars()
        .filter_map(|digit| usize::try_from(digit.to_digit(16)?).ok())
        .collect();
    let word = |from: usize| -> String {
        let digits = digits.iter().skip(from).take(4);
        let syllables = digits.filter_map(|digit| SYLLABLES.get(*digit));
        syllables.copied().collect()
    };
    let key = format!("{} {}", word(0), word(4));
    let value = hash.get(12..24)?.to_owned();
    let is_said =
        key.split(' ').any(|word| texts.frequency(word) > 0) || texts.frequency(&value) > 0;
    (!is_said).then(|| PlantedFact {
        id: format!("decoy-{:02}", at + 1),
        question: format!("Which value belongs to {key}?"),
        fact: Fact::Decoy { key, value },
        evidence: Vec::new(),
        importance: Importance::Normal,
    })
}

/// In how many messages each word and each token stands: looked up, never searched again.
#[derive(Debug)]
struct Texts {
    words: BTreeMap<String, Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    /// How many messages hold it.
    messages: usize,
    /// How often it stands there, in all.
    times: usize,
    /// The last message that holds it.
    last: usize,
}

impl Texts {
    fn new(session: &Session) -> Self {
        let mut words: BTreeMap<String, Seen> = BTreeMap::new();
        let mut note = |token: &str, message: usize| {
            let seen = words.entry(token.to_owned()).or_insert(Seen {
                messages: 0,
                times: 0,
                last: usize::MAX,
            });
            seen.times += 1;
            if seen.last != message {
                seen.messages += 1;
                seen.last = message;
            }
        };
        let fixed = session.system().into_iter();
        let fixed = fixed.chain(session.tools().iter().map(crate::session::ToolSchema::text));
        // What stands in every prompt is nobody's secret: it counts as another message.
        let pinned = session.messages().len();
        let fixed = fixed.map(|text| (pinned, text));
        let messages = session.messages().iter().enumerate();
        let messages = messages
            .flat_map(|(at, message)| message.model_text().iter().map(move |text| (at, text)));
        for (at, text) in messages.chain(fixed) {
            for token in tokens(text) {
                note(token, at);
                let lower = token.to_lowercase();
                for word in lower.split(|c: char| !c.is_alphanumeric()) {
                    if !word.is_empty() && word != token {
                        note(word, at);
                    }
                }
            }
        }
        Self { words }
    }

    /// In how many messages it stands.
    fn frequency(&self, token: &str) -> usize {
        self.words.get(token).map_or(0, |seen| seen.messages)
    }

    /// Whether it stands once, in one message.
    fn is_unique(&self, token: &str) -> bool {
        let seen = self.words.get(token);
        seen.is_some_and(|seen| seen.messages == 1 && seen.times == 1)
    }

    /// The rarest of these words, in their order.
    fn rarest(&self, words: &[String], most: usize) -> Vec<String> {
        let mut by_rarity: Vec<(usize, usize)> = words
            .iter()
            .enumerate()
            .map(|(at, word)| (self.frequency(word), at))
            .collect();
        by_rarity.sort_unstable();
        by_rarity.truncate(most);
        by_rarity.sort_by_key(|(_, at)| *at);
        let chosen = by_rarity.into_iter();
        chosen.map(|(_, at)| words[at].clone()).collect()
    }
}

/// Runs without white space, quotes and brackets, and without punctuation around them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let between = |c: char| {
        c.is_whitespace()
            || matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}')
            || matches!(c, '<' | '>' | ',' | ';' | '=' | '|' | '\\')
    };
    text.split(between).filter_map(|token| {
        let token = token.trim_matches(['.', ':', '!', '?', '*']);
        (!token.is_empty()).then_some(token)
    })
}

/// The words of a line that say what it is about: lower case, letters only, without `but`.
fn key_words(line: &str, but: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in line.replace(but, " ").split(|c: char| !c.is_alphabetic()) {
        let word = word.to_lowercase();
        if word.chars().count() > 3 && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests;
