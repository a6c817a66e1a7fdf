//! What is planted: keys with unguessable values, rules, and decoys that are never said.

use std::collections::BTreeSet;

use super::grammar::fill;
use super::random::Random;
use super::{Language, Recipe};
use crate::session::ground_truth::{Fact, Importance, PlantedFact};

mod bank;
mod memory;
mod more;
mod phrasing;
mod requests;
mod rules;

use rules::Rules;

pub(crate) use bank::Bank;
pub(crate) use more::gathered;
pub(crate) use phrasing::{configuration, logged, said, shuffled, typed};
pub(crate) use requests::Requests;

/// What kind of value a key has; distractors share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Ticket,
    Checksum,
    Endpoint,
    Build,
    Release,
    Account,
}

impl Class {
    const ALL: [Self; 6] = [
        Self::Ticket,
        Self::Checksum,
        Self::Endpoint,
        Self::Build,
        Self::Release,
        Self::Account,
    ];

    fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::Ticket => &["incident", "escalation", "change ticket"],
            Self::Checksum => &["checksum", "fingerprint", "revision"],
            Self::Endpoint => &["port", "endpoint", "listener"],
            Self::Build => &["build", "snapshot number", "batch number"],
            Self::Release => &["hotfix", "release tag", "rollback target"],
            Self::Account => &["account", "contract", "storage container"],
        }
    }

    /// At least 20 bits that cannot be guessed.
    fn value(self, random: &mut Random) -> String {
        match self {
            Self::Ticket => {
                format!(
                    "{}-{}",
                    random.pick(&["OPS", "INC", "NET", "CHG"]),
                    random.digits(7)
                )
            }
            Self::Checksum => random.hex(12),
            Self::Endpoint => {
                format!("n{}:{}", random.hex(5), random.between(20_011, 64_997))
            }
            Self::Build => random.digits(9),
            Self::Release => format!("rel-{}", random.hex(7)),
            Self::Account => {
                format!(
                    "acct-{}",
                    random.word(b"23456789abcdefghjkmnpqrstuvwxyz", 8)
                )
            }
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
    /// Key and value; absent for a rule, which is said by the user as it stands.
    pub(crate) pair: Option<Pair>,
    /// Same attribute, other keys: said nearby, so that the binding matters.
    pub(crate) distractors: Vec<Pair>,
    /// What is said as it stands, where it is no key and value.
    pub(crate) line: Option<String>,
    /// How it is said.
    pub(crate) ways: Ways,
    fact: Fact,
    /// A second question about the same text.
    beside: Option<Beside>,
    id: String,
    question: String,
    importance: Importance,
}

/// A question about a key that stands beside the planted one.
#[derive(Debug, Clone)]
struct Beside {
    id: String,
    question: String,
    fact: Fact,
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) value: String,
    /// In how many ways it may be said.
    pub(crate) ways: Ways,
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
}

impl Planned {
    /// What is said as it stands: a rule, an event.
    pub(crate) fn statement(&self) -> Option<&str> {
        self.line.as_deref()
    }

    /// The fact, said in the message of that index, and what else the same text answers.
    pub(crate) fn planted(self, message: usize) -> Vec<PlantedFact> {
        let Self {
            id,
            mut fact,
            question,
            importance,
            beside,
            ..
        } = self;
        match &mut fact {
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
        let evidence = vec![message];
        let beside = beside.map(|beside| PlantedFact {
            id: beside.id,
            fact: beside.fact,
            question: beside.question,
            evidence: evidence.clone(),
            importance: Importance::Normal,
        });
        let planted = PlantedFact {
            id,
            fact,
            question,
            evidence,
            importance,
        };
        [planted].into_iter().chain(beside).collect()
    }
}

/// How many facts of each kind a session gets, and how they are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) recalls: usize,
    pub(crate) constraints: usize,
    /// Failures with a code and a place.
    pub(crate) errors: usize,
    /// Series of events.
    pub(crate) orders: usize,
    /// Series of things that are started, and of which some are ended.
    pub(crate) handles: usize,
    /// Pairs of instructions, one of which is taken back.
    pub(crate) obsolete: usize,
    /// Keys that are asked for in other words.
    pub(crate) indirect: usize,
    /// Values that are found by way of another.
    pub(crate) two_steps: usize,
    /// Whether requests carry a reference, and the last one is asked for.
    pub(crate) requests: bool,
    pub(crate) decoys: usize,
    pub(crate) bank: Bank,
    /// Other keys of its kind beside each planted one; nothing for as many as it comes.
    pub(crate) distractors: Option<usize>,
    pub(crate) ways: Ways,
}

impl Numbers {
    /// The numbers for a session of so many rounds. Of keys and of rules, one falls on so many
    /// rounds, up to a cap; the recipe scales both.
    pub(crate) fn of(
        recipe: &Recipe,
        bank: Bank,
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
            errors: match bank {
                Bank::Repository => scaled((18, 8)),
                Bank::Desk => 0,
            },
            orders: scaled((30, 4)),
            handles: scaled((60, 2)),
            obsolete: scaled((50, 3)),
            indirect: scaled((40, 4)),
            two_steps: scaled((50, 3)),
            requests: recipe.fact_percent > 0,
            decoys: scaled((1, 6)).max(1),
            bank,
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
    /// All facts are told by this thousandth of the session.
    pub(crate) fn hasten(&mut self, said_by: u64) {
        for fact in &mut self.0 {
            fact.due = fact.due * said_by / 1_000;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn due(&self, progress: u64) -> impl Iterator<Item = &Planned> {
        let is_due = move |fact: &&Planned| fact.due < progress;
        self.0.iter().rev().take_while(is_due)
    }

    /// Whether a fact of that channel is due.
    pub(crate) fn is_due(&self, progress: u64, channel: Channel) -> bool {
        self.due(progress).any(|fact| fact.channel == channel)
    }

    /// Takes up to `limit` due facts that `fits`.
    pub(crate) fn take(
        &mut self,
        progress: u64,
        limit: usize,
        fits: impl Fn(&Planned) -> bool,
    ) -> Vec<Planned> {
        let first = self.0.len() - self.due(progress).count();
        let mut taken = Vec::new();
        let mut at = self.0.len();
        while at > first && taken.len() < limit {
            at -= 1;
            // Two events of one series never stand in one message: they would have no order.
            let is_new = |taken: &[Planned]| taken.iter().all(|fact| fact.id != self.0[at].id);
            if fits(&self.0[at]) && is_new(&taken) {
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
        rest.retain(|fact| known.insert(fact.id.clone()));
        rest.reverse();
        rest
    }
}

/// What a key is made of.
const KEY: &str = "{place} {part} {attribute}";

/// Draws keys and values so that none occurs twice.
#[derive(Debug)]
struct Names {
    keys: BTreeSet<String>,
    values: BTreeSet<String>,
    bank: Bank,
    ways: Ways,
}

impl Names {
    /// Gives up on a fresh key only when the bank is exhausted, which the caps exclude.
    fn key(&mut self, random: &mut Random, attribute: &str) -> String {
        let mut slots = [("place", ""), ("part", ""), ("attribute", attribute)];
        for _ in 0..200 {
            slots[0].1 = random.pick(self.bank.places());
            slots[1].1 = random.pick(self.bank.parts());
            // The draws of all languages are those of English.
            let key = fill(KEY, &slots);
            if key.split(' ').count() <= 4 && self.keys.insert(key) {
                break;
            }
        }
        self.ways.fill(KEY, &slots)
    }

    fn pair(&mut self, random: &mut Random, class: Class, attribute: &str) -> Pair {
        Pair {
            key: self.key(random, attribute),
            value: self.value(random, class),
            ways: self.ways,
        }
    }

    /// A value that no key has.
    fn value(&mut self, random: &mut Random, class: Class) -> String {
        loop {
            let value = class.value(random);
            if self.values.insert(value.clone()) {
                return value;
            }
        }
    }
}

/// All facts of a session, and the decoys.
pub(crate) fn plan(seed: u64, numbers: Numbers) -> (Pending, Vec<PlantedFact>) {
    let mut random = Random::new(seed, "facts");
    let mut names = Names {
        keys: BTreeSet::new(),
        values: BTreeSet::new(),
        bank: numbers.bank,
        ways: numbers.ways,
    };
    let decoys = (0..numbers.decoys)
        .map(|i| decoy(&mut random, &mut names, i))
        .collect();
    let mut planned = recalls(&mut random, &mut names, numbers);
    planned.extend(constraints(&mut random, numbers));
    // Drawn apart, so that what was there before stays as it is.
    let mut random = Random::new(seed, "more facts");
    more::beside(&mut random, &mut planned);
    planned.extend(more::errors(&mut random, &mut names, numbers));
    planned.extend(more::orders(&mut random, &mut names, numbers));
    let mut random = Random::new(seed, "notes");
    planned.extend(memory::planned(&mut random, &mut names, numbers));
    planned.sort_by(|a, b| (b.due, &b.id).cmp(&(a.due, &a.id)));
    (Pending(planned), decoys)
}

/// Somewhere in the `at`-th of `count` equal parts of the first 92 % of a session.
fn position(random: &mut Random, at: usize, count: usize) -> u64 {
    (at as u64 * 920 + random.below(920)) / count.max(1) as u64
}

fn ask(random: &mut Random, key: &str, ways: Ways) -> String {
    let templates = [
        "What is the {key}?",
        "Which value was given for the {key}?",
        "Name the {key} exactly as it was given.",
    ];
    ways.fill(random.pick(&templates), &[("key", key)])
}

fn decoy(random: &mut Random, names: &mut Names, at: usize) -> PlantedFact {
    let class = random.pick(names.bank.classes());
    let attribute = random.pick(class.attributes());
    let Pair { key, value, .. } = names.pair(random, class, attribute);
    PlantedFact {
        id: format!("decoy-{:02}", at + 1),
        question: ask(random, &key, names.ways),
        fact: Fact::Decoy { key, value },
        evidence: Vec::new(),
        importance: Importance::Normal,
    }
}

fn recalls(random: &mut Random, names: &mut Names, numbers: Numbers) -> Vec<Planned> {
    let count = numbers.recalls;
    let mut channels = Vec::new();
    let mut classes = Vec::new();
    (0..count)
        .map(|at| {
            if channels.is_empty() {
                channels = vec![
                    Channel::User,
                    Channel::User,
                    Channel::Config,
                    Channel::Log,
                    Channel::Comment,
                    Channel::Runbook,
                ];
                random.shuffle(&mut channels);
            }
            if classes.is_empty() {
                classes = names.bank.classes().to_vec();
                random.shuffle(&mut classes);
            }
            let channel = channels.pop().unwrap_or(Channel::User);
            let class = classes.pop().unwrap_or(Class::Ticket);
            let attribute = random.pick(class.attributes());
            let pair = names.pair(random, class, attribute);
            let around = numbers.distractors.unwrap_or_else(|| match channel {
                Channel::User => random.count(0, 2),
                Channel::Config
                | Channel::Log
                | Channel::Comment
                | Channel::Runbook
                | Channel::Failure => random.count(3, 6),
            });
            let distractors = (0..around)
                .map(|_| names.pair(random, class, attribute))
                .collect();
            Planned {
                due: position(random, at, count),
                channel,
                distractors,
                line: None,
                ways: numbers.ways,
                beside: None,
                id: format!("recall-{:02}", at + 1),
                question: ask(random, &pair.key, numbers.ways),
                importance: if channel == Channel::User || random.percent(20) {
                    Importance::High
                } else {
                    Importance::Normal
                },
                fact: Fact::Recall {
                    key: pair.key.clone(),
                    value: pair.value.clone(),
                },
                pair: Some(pair),
            }
        })
        .collect()
}

fn constraints(random: &mut Random, numbers: Numbers) -> Vec<Planned> {
    let count = numbers.constraints;
    let mut rules = Rules::new(random, numbers.bank, numbers.ways);
    (0..count)
        .map(|at| {
            let (topic, statement, form) = rules.next(random);
            Planned {
                due: position(random, at, count),
                channel: Channel::User,
                pair: None,
                distractors: Vec::new(),
                line: Some(statement.clone()),
                ways: numbers.ways,
                beside: None,
                id: format!("constraint-{:02}", at + 1),
                question: numbers.ways.fill(
                    "Which rule did the user set about: {topic}?",
                    &[("topic", &topic)],
                ),
                importance: Importance::High,
                fact: Fact::Constraint {
                    topic,
                    statement,
                    form,
                },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
