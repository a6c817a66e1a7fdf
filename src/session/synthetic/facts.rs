//! What is planted: keys with unguessable values, rules, and decoys that are never said.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::random::{ID, Random};
use super::words::{FACTS, WorkFacts, fill};
use super::workspace::WorkspaceKind;
use super::{Language, Recipe};
use crate::session::ground_truth::{Fact, Importance, KeyValue, PlantedFact};

mod gathered;
mod kinds;
mod phrasing;
mod requests;
mod rules;

use rules::Rules;

pub(crate) use gathered::gathered;
pub(crate) use phrasing::{configuration, logged, said, shuffled, typed};
pub(crate) use requests::Requests;

/// What kind of value a key has; distractors share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Class {
    Ticket,
    Checksum,
    Endpoint,
    Build,
    Release,
    Account,
}

impl Class {
    /// One of the things that have such a value.
    fn attribute(self, random: &mut Random) -> &'static str {
        FACTS
            .attributes
            .get(&self)
            .map_or("", |bank| random.pick(bank))
    }

    /// At least 20 bits that cannot be guessed.
    fn value(self, random: &mut Random) -> String {
        match self {
            Self::Ticket => {
                let queue = random.pick(&["OPS", "INC", "NET", "CHG"]);
                format!("{queue}-{}", random.digits(7))
            }
            Self::Checksum => random.hex(12),
            Self::Endpoint => format!("n{}:{}", random.hex(5), random.between(20_011, 64_997)),
            Self::Build => random.digits(9),
            Self::Release => format!("rel-{}", random.hex(7)),
            Self::Account => format!("acct-{}", random.word(ID, 8)),
        }
    }
}

/// How a planted fact reaches the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The user says it.
    User,
    /// A configuration file that is read once.
    Config,
    /// A line in the output of a command.
    Log,
    /// A comment in a source file that is read once.
    Comment,
    /// A page of working instructions that is read once.
    Runbook,
    /// The output of a command that fails.
    Failure,
}

/// A fact that waits for its moment.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    /// When it is due, in thousandths of the session.
    pub(crate) due: u64,
    pub(crate) channel: Channel,
    /// Key and value, where it has them.
    pub(crate) pair: Option<Pair>,
    /// Same attribute, other keys: said nearby, so that the binding matters.
    pub(crate) distractors: Vec<Pair>,
    /// A sentence that is said as it is: a rule, an event.
    pub(crate) line: Option<String>,
    /// How it is said.
    pub(crate) ways: Ways,
    fact: PlantedFact,
    /// A second question about the same text: about a key beside the planted one.
    beside: Option<PlantedFact>,
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) value: String,
    /// In how many ways it may be said.
    pub(crate) ways: Ways,
}

impl Pair {
    fn known(&self) -> KeyValue {
        KeyValue {
            key: self.key.clone(),
            value: self.value.clone(),
        }
    }
}

/// How a planted fact is said: in which language, and in how many ways, from a single one, whose
/// words give every fact away, to as many as there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    most: usize,
    pub(crate) language: Language,
}

impl Ways {
    pub(crate) fn of(recipe: &Recipe) -> Self {
        let limit = recipe.phrasings.map(usize::try_from);
        Self {
            most: limit.and_then(Result::ok).unwrap_or(usize::MAX),
            language: recipe.language,
        }
    }

    /// One of the first of these, which must not be none.
    pub(crate) fn pick<T: Copy>(self, random: &mut Random, bank: &[T]) -> T {
        random.pick(&bank[..bank.len().min(self.most)])
    }

    /// The template in the language of the facts.
    pub(crate) fn fill(self, template: &str, slots: &[(&str, &str)]) -> String {
        self.language.fill(template, slots)
    }

    /// One of the first of these templates.
    pub(crate) fn say(self, random: &mut Random, bank: &[&str], slots: &[(&str, &str)]) -> String {
        self.fill(self.pick(random, bank), slots)
    }
}

/// A fact that was not said yet.
pub(crate) fn unsaid(
    id: String,
    question: String,
    importance: Importance,
    fact: Fact,
) -> PlantedFact {
    PlantedFact {
        id,
        fact,
        question,
        evidence: Vec::new(),
        importance,
    }
}

impl Planned {
    /// A fact without anything to say; what there is, is added.
    fn new(ways: Ways, due: u64, channel: Channel, fact: PlantedFact) -> Self {
        Self {
            due,
            channel,
            pair: None,
            distractors: Vec::new(),
            line: None,
            ways,
            fact,
            beside: None,
        }
    }

    /// The fact, said in the message of that index, and what else the same text answers.
    pub(crate) fn planted(mut self, message: usize) -> Vec<PlantedFact> {
        match &mut self.fact.fact {
            Fact::Order { events, .. } => {
                for event in events {
                    event.message = message;
                }
            }
            Fact::OpenHandle { handles, .. } => {
                for handle in handles {
                    match &mut handle.ended {
                        Some(ended) => *ended = message,
                        None => handle.started = message,
                    }
                }
            }
            _ => {}
        }
        let mut facts: Vec<PlantedFact> = [self.fact].into_iter().chain(self.beside).collect();
        for fact in &mut facts {
            fact.evidence = vec![message];
        }
        facts
    }
}

/// How many facts of each kind a session gets, and how they are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    recalls: usize,
    constraints: usize,
    /// Failures with a code and a place.
    errors: usize,
    /// Series of events.
    orders: usize,
    /// Series of things that are started, and of which some are ended.
    handles: usize,
    /// Pairs of instructions, one of which is taken back.
    obsolete: usize,
    /// Keys that are asked for in other words.
    indirect: usize,
    /// Values that are found by way of another.
    two_steps: usize,
    /// Whether requests carry a reference, and the last one is asked for.
    requests: bool,
    decoys: usize,
    words: &'static WorkFacts,
    /// Other keys of its kind beside each planted one; nothing for as many as it comes.
    distractors: Option<usize>,
    ways: Ways,
}

impl Numbers {
    /// The numbers for a session of so many rounds. Of keys and of rules, one falls on so many
    /// rounds, up to a cap; the recipe scales both.
    pub(crate) fn of(
        recipe: &Recipe,
        workspace: WorkspaceKind,
        rounds: u64,
        recalls: (u64, u64),
        constraints: (u64, u64),
    ) -> Self {
        let scaled = |(per, cap): (u64, u64)| {
            let number = (rounds / per).min(cap) * u64::from(recipe.fact_percent) / 100;
            usize::try_from(number).unwrap_or(0)
        };
        Self {
            recalls: scaled(recalls),
            // The bank of rules has 42 topics.
            constraints: scaled(constraints).min(42),
            // A help desk has no files that could be pointed at.
            errors: match workspace {
                WorkspaceKind::Repository => scaled((18, 8)),
                WorkspaceKind::HelpDesk => 0,
            },
            orders: scaled((30, 4)),
            handles: scaled((60, 2)),
            obsolete: scaled((50, 3)),
            indirect: scaled((40, 4)),
            two_steps: scaled((50, 3)),
            requests: recipe.fact_percent > 0,
            decoys: scaled((1, 6)).max(1),
            words: workspace.facts(),
            distractors: recipe
                .distractors
                .and_then(|number| usize::try_from(number).ok()),
            ways: Ways::of(recipe),
        }
    }
}

/// The facts that wait for their moment, the earliest last.
#[derive(Debug)]
pub(crate) struct Pending(Vec<Planned>);

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn due(&self, progress: u64) -> impl Iterator<Item = &Planned> {
        let is_due = move |fact: &&Planned| fact.due < progress;
        self.0.iter().rev().take_while(is_due)
    }

    /// Whether a fact that the user says is due.
    pub(crate) fn is_typed_due(&self, progress: u64) -> bool {
        self.due(progress).any(|fact| fact.channel == Channel::User)
    }

    /// Takes up to `limit` due facts that the user says, or that tools show.
    pub(crate) fn take(&mut self, progress: u64, limit: usize, is_typed: bool) -> Vec<Planned> {
        let first = self.0.len() - self.due(progress).count();
        let mut taken: Vec<Planned> = Vec::new();
        let mut at = self.0.len();
        while at > first && taken.len() < limit {
            at -= 1;
            let fact = &self.0[at];
            // Two events of one series are never in one message: they would have no order.
            let is_new = taken.iter().all(|known| known.fact.id != fact.fact.id);
            if (fact.channel == Channel::User) == is_typed && is_new {
                taken.push(self.0.remove(at));
            }
        }
        taken
    }

    /// All that was not told yet; of a series of events the next one.
    pub(crate) fn rest(&mut self) -> Vec<Planned> {
        let mut known = BTreeSet::new();
        let mut rest = std::mem::take(&mut self.0);
        rest.reverse();
        rest.retain(|fact| known.insert(fact.fact.id.clone()));
        rest.reverse();
        rest
    }
}

/// The parts of a key.
const KEY: &str = "{place} {part} {attribute}";

/// Draws keys and values so that none occurs twice.
#[derive(Debug)]
struct Names {
    keys: BTreeSet<String>,
    values: BTreeSet<String>,
    words: &'static WorkFacts,
    ways: Ways,
}

impl Names {
    /// Gives up on a fresh key only when the bank is exhausted, which the caps exclude.
    fn key(&mut self, random: &mut Random, attribute: &str) -> String {
        let mut slots = [("place", ""), ("part", ""), ("attribute", attribute)];
        for _ in 0..200 {
            slots[0].1 = random.pick(&self.words.places);
            slots[1].1 = random.pick(&self.words.parts);
            // The draws of all languages are those of English.
            let key = fill(KEY, &slots);
            if key.split(' ').count() <= 4 && self.keys.insert(key) {
                break;
            }
        }
        self.ways.fill(KEY, &slots)
    }

    fn pair(&mut self, random: &mut Random, class: Class, attribute: &str) -> Pair {
        let key = self.key(random, attribute);
        self.valued(random, class, key)
    }

    /// The key with a value that no other has.
    fn valued(&mut self, random: &mut Random, class: Class, key: String) -> Pair {
        loop {
            let value = class.value(random);
            if self.values.insert(value.clone()) {
                let ways = self.ways;
                return Pair { key, value, ways };
            }
        }
    }
}

/// All facts of a session, and the decoys; the facts are told by that thousandth of the session.
pub(crate) fn plan(seed: u64, numbers: Numbers, said_by: u64) -> (Pending, Vec<PlantedFact>) {
    let mut random = Random::new(seed, "facts");
    let mut names = Names {
        keys: BTreeSet::new(),
        values: BTreeSet::new(),
        words: numbers.words,
        ways: numbers.ways,
    };
    let decoys = (1..=numbers.decoys).map(|number| decoy(&mut random, &mut names, number));
    let decoys = decoys.collect();
    let mut planned = recalls(&mut random, &mut names, numbers);
    planned.extend(constraints(&mut random, numbers));
    // Drawn apart, so that what was there before stays as it is.
    let mut random = Random::new(seed, "more facts");
    kinds::beside(&mut random, &mut planned);
    planned.extend(kinds::errors(&mut random, &mut names, numbers));
    planned.extend(kinds::orders(&mut random, &mut names, numbers));
    let mut random = Random::new(seed, "notes");
    planned.extend(kinds::used(&mut random, &mut names, numbers));
    planned.sort_by(|a, b| (b.due, &b.fact.id).cmp(&(a.due, &a.fact.id)));
    for fact in &mut planned {
        fact.due = fact.due * said_by / 1_000;
    }
    (Pending(planned), decoys)
}

/// Somewhere in the `at`-th of `count` equal parts of the first 92 % of a session.
fn position(random: &mut Random, at: usize, count: usize) -> u64 {
    (at as u64 * 920 + random.below(920)) / count.max(1) as u64
}

fn ask(random: &mut Random, key: &str, ways: Ways) -> String {
    ways.fill(random.pick(&FACTS.asked), &[("key", key)])
}

fn decoy(random: &mut Random, names: &mut Names, number: usize) -> PlantedFact {
    let class = random.pick(&names.words.classes);
    let attribute = class.attribute(random);
    let Pair { key, value, ways } = names.pair(random, class, attribute);
    let question = ask(random, &key, ways);
    let fact = Fact::Decoy { key, value };
    unsaid(
        format!("decoy-{number:02}"),
        question,
        Importance::Normal,
        fact,
    )
}

fn recalls(random: &mut Random, names: &mut Names, numbers: Numbers) -> Vec<Planned> {
    const CHANNELS: [Channel; 6] = [
        Channel::User,
        Channel::User,
        Channel::Config,
        Channel::Log,
        Channel::Comment,
        Channel::Runbook,
    ];
    let (count, ways) = (numbers.recalls, numbers.ways);
    let mut channels = Vec::new();
    let mut classes = Vec::new();
    let mut planned = Vec::new();
    for at in 0..count {
        if channels.is_empty() {
            channels = CHANNELS.to_vec();
            random.shuffle(&mut channels);
        }
        if classes.is_empty() {
            classes.clone_from(&names.words.classes);
            random.shuffle(&mut classes);
        }
        let channel = channels.pop().unwrap_or(Channel::User);
        let class = classes.pop().unwrap_or(Class::Ticket);
        let attribute = class.attribute(random);
        let pair = names.pair(random, class, attribute);
        let around = numbers.distractors.unwrap_or_else(|| match channel {
            Channel::User => random.count(0, 2),
            _ => random.count(3, 6),
        });
        let distractors = (0..around)
            .map(|_| names.pair(random, class, attribute))
            .collect();
        let due = position(random, at, count);
        let question = ask(random, &pair.key, ways);
        let importance = if channel == Channel::User || random.percent(20) {
            Importance::High
        } else {
            Importance::Normal
        };
        let KeyValue { key, value } = pair.known();
        let id = format!("recall-{:02}", at + 1);
        let fact = unsaid(id, question, importance, Fact::Recall { key, value });
        planned.push(Planned {
            distractors,
            pair: Some(pair),
            ..Planned::new(ways, due, channel, fact)
        });
    }
    planned
}

fn constraints(random: &mut Random, numbers: Numbers) -> Vec<Planned> {
    let (count, ways) = (numbers.constraints, numbers.ways);
    let mut rules = Rules::new(random, &numbers.words.rules, ways);
    (0..count)
        .map(|at| {
            let (topic, statement, form) = rules.next(random);
            let slots = [("topic", topic.as_str())];
            let question = ways.fill("Which rule did the user set about: {topic}?", &slots);
            let line = Some(statement.clone());
            let id = format!("constraint-{:02}", at + 1);
            let fact = Fact::Constraint {
                topic,
                statement,
                form,
            };
            let fact = unsaid(id, question, Importance::High, fact);
            let due = position(random, at, count);
            Planned {
                line,
                ..Planned::new(ways, due, Channel::User, fact)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
