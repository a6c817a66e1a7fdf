//! What is planted: keys with unguessable values, rules, and decoys that are never said.

use std::collections::BTreeSet;

use super::grammar::fill;
use super::random::Random;
use crate::session::ground_truth::{Fact, Importance, PlantedFact};

mod phrasing;
mod rules;

use rules::Rules;

pub(crate) use phrasing::{configuration, logged, said, shuffled, typed};

const PLACES: &[&str] = &[
    "staging",
    "canary",
    "sandbox",
    "production",
    "preview",
    "nightly",
    "failover",
    "regional",
    "loadtest",
    "partner",
    "legacy",
    "pilot",
    "onprem",
    "shadow",
    "training",
    "acceptance",
];

const PARTS: &[&str] = &[
    "database",
    "gateway",
    "broker",
    "warehouse",
    "proxy",
    "mirror",
    "dashboard",
    "cluster",
    "beacon",
    "firewall",
    "vault",
    "crawler",
    "scheduler",
    "bastion",
    "replica",
    "collector",
    "signer",
    "licence server",
    "image registry",
    "data lake",
];

/// What kind of value a key has; distractors share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
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
    fact: Fact,
    id: String,
    question: String,
    importance: Importance,
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Planned {
    /// The rule, if it is one.
    pub(crate) fn statement(&self) -> Option<&str> {
        match &self.fact {
            Fact::Constraint { statement, .. } => Some(statement),
            Fact::Recall { .. }
            | Fact::Artifact { .. }
            | Fact::Decision { .. }
            | Fact::Update { .. }
            | Fact::Numeric { .. }
            | Fact::RejectedPath { .. }
            | Fact::Continuation { .. }
            | Fact::Decoy { .. } => None,
        }
    }

    /// The fact, said in the message of that index.
    pub(crate) fn planted(self, message: usize) -> PlantedFact {
        PlantedFact {
            id: self.id,
            fact: self.fact,
            question: self.question,
            evidence: vec![message],
            importance: self.importance,
        }
    }
}

/// How many facts of each kind a session gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) recalls: usize,
    pub(crate) constraints: usize,
    pub(crate) decoys: usize,
}

/// Draws keys and values so that none occurs twice.
#[derive(Debug)]
struct Names {
    keys: BTreeSet<String>,
    values: BTreeSet<String>,
}

impl Names {
    /// Gives up on a fresh key only when the bank is exhausted, which the caps exclude.
    fn pair(&mut self, random: &mut Random, class: Class, attribute: &str) -> Pair {
        let mut key = String::new();
        for _ in 0..200 {
            key = format!("{} {} {attribute}", random.pick(PLACES), random.pick(PARTS));
            if key.split(' ').count() <= 4 && self.keys.insert(key.clone()) {
                break;
            }
        }
        let mut value = class.value(random);
        while !self.values.insert(value.clone()) {
            value = class.value(random);
        }
        Pair { key, value }
    }
}

/// All facts of a session in the order in which they are due, and the decoys.
pub(crate) fn plan(seed: u64, numbers: Numbers) -> (Vec<Planned>, Vec<PlantedFact>) {
    let mut random = Random::new(seed, "facts");
    let mut names = Names {
        keys: BTreeSet::new(),
        values: BTreeSet::new(),
    };
    let decoys = (0..numbers.decoys)
        .map(|i| decoy(&mut random, &mut names, i))
        .collect();
    let mut planned = recalls(&mut random, &mut names, numbers.recalls);
    planned.extend(constraints(&mut random, numbers.constraints));
    planned.sort_by(|a, b| (a.due, &a.id).cmp(&(b.due, &b.id)));
    (planned, decoys)
}

/// Somewhere in the `at`-th of `count` equal parts of the first 92 % of a session.
fn position(random: &mut Random, at: usize, count: usize) -> u64 {
    (at as u64 * 920 + random.below(920)) / count.max(1) as u64
}

fn ask(random: &mut Random, key: &str) -> String {
    let templates = [
        "What is the {key}?",
        "Which value was given for the {key}?",
        "Name the {key} exactly as it was given.",
    ];
    fill(random.pick(&templates), &[("key", key)])
}

fn decoy(random: &mut Random, names: &mut Names, at: usize) -> PlantedFact {
    let class = random.pick(&Class::ALL);
    let attribute = random.pick(class.attributes());
    let Pair { key, value } = names.pair(random, class, attribute);
    PlantedFact {
        id: format!("decoy-{:02}", at + 1),
        question: ask(random, &key),
        fact: Fact::Decoy { key, value },
        evidence: Vec::new(),
        importance: Importance::Normal,
    }
}

fn recalls(random: &mut Random, names: &mut Names, count: usize) -> Vec<Planned> {
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
                classes = Class::ALL.to_vec();
                random.shuffle(&mut classes);
            }
            let channel = channels.pop().unwrap_or(Channel::User);
            let class = classes.pop().unwrap_or(Class::Ticket);
            let attribute = random.pick(class.attributes());
            let pair = names.pair(random, class, attribute);
            let around = if channel == Channel::User {
                random.count(0, 2)
            } else {
                random.count(3, 6)
            };
            let distractors = (0..around)
                .map(|_| names.pair(random, class, attribute))
                .collect();
            Planned {
                due: position(random, at, count),
                channel,
                distractors,
                id: format!("recall-{:02}", at + 1),
                question: ask(random, &pair.key),
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

fn constraints(random: &mut Random, count: usize) -> Vec<Planned> {
    let mut rules = Rules::new(random);
    (0..count)
        .map(|at| {
            let (topic, statement) = rules.next(random);
            Planned {
                due: position(random, at, count),
                channel: Channel::User,
                pair: None,
                distractors: Vec::new(),
                id: format!("constraint-{:02}", at + 1),
                question: format!("Which rule did the user set about: {topic}?"),
                importance: Importance::High,
                fact: Fact::Constraint { topic, statement },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_never_hold_the_answer_and_topics_stand_in_the_rule() {
        let numbers = Numbers {
            recalls: 24,
            constraints: 12,
            decoys: 6,
        };
        for seed in 0..50 {
            let (planned, decoys) = plan(seed, numbers);
            assert_eq!((planned.len(), decoys.len()), (36, 6));
            for planned in &planned {
                match &planned.fact {
                    Fact::Recall { key, value } => {
                        assert!(planned.question.contains(key));
                        assert!(!planned.question.contains(value));
                        assert!((2..=4).contains(&key.split(' ').count()), "{key}");
                    }
                    Fact::Constraint { topic, statement } => {
                        assert!(!planned.question.contains(statement.as_str()));
                        for word in topic.split([' ', '/']) {
                            assert!(statement.contains(word), "{topic}: {statement}");
                        }
                    }
                    other => panic!("not planned: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn facts_are_due_in_every_third_of_the_session() {
        let numbers = Numbers {
            recalls: 24,
            constraints: 12,
            decoys: 6,
        };
        let (planned, _) = plan(5, numbers);
        for third in 0..3 {
            let range = third * 307..(third + 1) * 307;
            let count = planned.iter().filter(|p| range.contains(&p.due)).count();
            assert!((11..=13).contains(&count), "{third}: {count}");
        }
    }
}
