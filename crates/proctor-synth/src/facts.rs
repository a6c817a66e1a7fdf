//! The facts that are planted in a session: who says them, when, and how they are asked for.

use std::collections::BTreeSet;

use super::family::Family;
use super::grammar::{WORDS, bank, fill};
use super::random::{Random, Unique, whole};
use super::schedule::{Event, Schedule};
use super::words::WorkFacts;
use super::{Language, Recipe};
use proctor_sessions::ground_truth::{Fact, Handle, Importance, KeyValue, PlantedFact, Revision};

mod gathered;
mod kinds;
mod rules;

use rules::Rules;

pub(crate) use gathered::gathered;

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

/// A text that waits for its moment, and the fact that it says or is a part of.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) channel: Channel,
    pub(crate) content: Content,
    /// Index of the fact.
    fact: usize,
    /// Index of a second fact that the same text says: about a key beside the planted one.
    second_fact: Option<usize>,
}

/// The text of a fact.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// A sentence that is said as it is.
    Line(String),
    /// A rule of the user, which has an introduction.
    Rule(String),
    /// A sentence, and what it adds to a fact of several messages.
    Part(String, String),
    /// A key with its value, and behind it others with the same attribute, which are said with it:
    /// only its key shows which value is its own.
    Pairs(Vec<KeyValue>),
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
        let (most, language) = (recipe.phrasings, recipe.language);
        let most = most.map_or(usize::MAX, |most| whole(most.into()));
        Self { most, language }
    }

    /// One of the first of these, which must not be none.
    fn pick<T: Copy>(self, random: &Random, bank: &[T]) -> T {
        random.pick(&bank[..bank.len().min(self.most)])
    }

    /// The template in the language of the facts.
    pub(crate) fn fill(self, template: &str, slots: &[(&str, &str)]) -> String {
        self.language.fill(template, slots)
    }

    /// One of the first of these templates.
    pub(crate) fn say(self, random: &Random, bank: &[&str], slots: &[(&str, &str)]) -> String {
        self.fill(self.pick(random, bank), slots)
    }

    /// One of the first of these templates, about a key and its value.
    pub(crate) fn pair(self, random: &Random, bank: &[&str], pair: &KeyValue) -> String {
        let slots = [("key", pair.key.as_str()), ("value", &pair.value)];
        self.say(random, bank, &slots)
    }

    /// The question about a fact of that kind.
    pub(crate) fn ask(self, kind: &str, slots: &[(&str, &str)]) -> String {
        self.fill(WORDS.one(&format!("ask.{kind}")), slots)
    }
}

/// A fact that was not said yet.
pub(crate) fn unsaid(kind: &str, number: usize, question: String, fact: Fact) -> PlantedFact {
    PlantedFact {
        id: format!("{kind}-{number:02}"),
        fact,
        question,
        evidence: Vec::new(),
        until: None,
        importance: match bank(&format!("importance.{kind}")) {
            [] => Importance::Normal,
            _ => Importance::High,
        },
    }
}

impl Content {
    /// The same, the pairs in random order.
    pub(crate) fn shuffled(&self, random: &Random) -> Self {
        let mut content = self.clone();
        if let Self::Pairs(pairs) = &mut content {
            random.shuffle(pairs);
        }
        content
    }

    /// The lines that say it; of pairs by `said`, the rule of persons, or `logged`, that of logs.
    pub(crate) fn lines(&self, random: &Random, ways: Ways, rule: &str) -> Vec<String> {
        match self {
            Self::Line(line) | Self::Rule(line) | Self::Part(line, _) => vec![line.clone()],
            Self::Pairs(pairs) => {
                let lines = pairs.iter();
                lines
                    .map(|pair| ways.pair(random, bank(rule), pair))
                    .collect()
            }
        }
    }

    /// A configuration file in one of four notations: path and lines.
    pub(crate) fn configuration(&self, random: &Random, noun: &str) -> (String, Vec<String>) {
        let number = random.between(10, 99_999).to_string();
        let notation = random.word("notations");
        let rule = |part: &str| format!("{notation}.{part}");
        let slots = [("noun", noun), ("number", &number), ("notation", notation)];
        let mut text = random.say(&rule("head"), &slots);
        if let Self::Pairs(pairs) = self {
            let joint = random.word(&rule("joint"));
            for KeyValue { key, value } in pairs {
                let slots = [("key", &*key.replace(' ', joint)), ("value", value)];
                text += &random.say(&rule("pair"), &slots);
            }
        }
        text += &random.draw(&rule("foot"));
        let path = fill("deploy/{noun}-{number}.{notation}", &slots);
        (path, text.lines().map(str::to_owned).collect())
    }
}

impl Planned {
    /// The text that the user types.
    pub(crate) fn typed(&self, random: &Random, ways: Ways) -> String {
        let lines = self.content.shuffled(random).lines(random, ways, "said");
        let lead = match self.content {
            Content::Rule(_) => ways.language.say(random.word("rule_leads")),
            _ => "",
        };
        format!("{lead}{}", lines.join("\n"))
    }

    /// The message of that index says it.
    pub(crate) fn say(self, facts: &mut [PlantedFact], message: usize) {
        for at in [self.fact].into_iter().chain(self.second_fact) {
            facts[at].evidence.push(message);
        }
        match (&mut facts[self.fact].fact, self.content) {
            (Fact::Order { events, .. }, Content::Part(_, event)) => {
                events.push(Revision::new(event, message));
            }
            (Fact::OpenHandle { handles, .. }, Content::Part(_, name)) => {
                match handles.iter_mut().find(|known| known.name == name) {
                    Some(known) => known.ended = Some(message),
                    None => handles.push(Handle {
                        name,
                        started: message,
                        ended: None,
                    }),
                }
            }
            _ => {}
        }
    }
}

/// Draws the facts of a session.
struct Planner {
    random: Random,
    words: &'static WorkFacts,
    ways: Ways,
    /// Other keys of its kind beside each planted one; nothing for as many as it comes.
    distractors: Option<u32>,
    rounds: u64,
    percent: u64,
    /// All keys and all values: none occurs twice.
    keys: BTreeSet<String>,
    values: Unique,
    facts: Vec<PlantedFact>,
    planned: Vec<Event<Planned>>,
}

/// When the facts of a session with that number of rounds are said, and all facts; the last one is
/// that of the requests, which are not planned.
pub(crate) fn plan(
    family: &Family,
    recipe: &Recipe,
    rounds: u64,
) -> (Schedule<Planned>, Vec<PlantedFact>) {
    let mut planner = Planner {
        random: Random::new(recipe.seed, "facts"),
        words: family.workspace.facts(),
        ways: Ways::of(recipe),
        distractors: recipe.distractors,
        rounds,
        percent: recipe.fact_percent.into(),
        keys: BTreeSet::new(),
        values: Unique::default(),
        facts: Vec::new(),
        planned: Vec::new(),
    };
    planner.decoys();
    planner.recalls(planner.scaled(family.recalls));
    // The bank of rules has 42 topics.
    planner.constraints(planner.scaled(family.constraints).min(42));
    // Drawn apart, so that what was there before stays as it is.
    planner.random = Random::new(recipe.seed, "more facts");
    planner.bindings();
    planner.errors();
    planner.orders();
    planner.random = Random::new(recipe.seed, "notes");
    planner.open_handles();
    planner.obsoletes();
    planner.indirects();
    planner.two_steps();
    if planner.percent > 0 {
        let question = planner.ways.ask("last-request", &[]);
        let requests = Vec::new();
        planner.add("last-request", 1, question, Fact::LastRequest { requests });
    }
    let schedule = Schedule::new(planner.planned).within(family.said_by);
    (schedule, planner.facts)
}

impl Planner {
    /// The number of facts for one every `per` rounds, up to a cap.
    fn scaled(&self, (per, cap): (u64, u64)) -> usize {
        whole((self.rounds / per).min(cap) * self.percent / 100)
    }

    /// How many facts of that kind are planted.
    fn number(&self, kind: &str) -> usize {
        let every = self.words.every.get(kind);
        every.map_or(0, |every| self.scaled(*every))
    }

    /// Somewhere in the `at`-th of `count` equal parts of the first 92 % of a session.
    fn position(&mut self, at: usize, count: usize) -> u64 {
        (at as u64 * 920 + self.random.below(920)) / count.max(1) as u64
    }

    /// A key that ends in this word. Gives up on a fresh one only when the bank is exhausted, which
    /// the caps exclude.
    fn key(&mut self, attribute: &str) -> String {
        const KEY: &str = "{place} {part} {attribute}";
        let mut slots = [("place", ""), ("part", ""), ("attribute", attribute)];
        for _ in 0..200 {
            slots[0].1 = self.random.pick(&self.words.places);
            slots[1].1 = self.random.pick(&self.words.parts);
            // The draws of all languages are those of English.
            let key = fill(KEY, &slots);
            if key.split(' ').count() <= 4 && self.keys.insert(key) {
                break;
            }
        }
        self.ways.fill(KEY, &slots)
    }

    /// The key with a value of that class that no other key has.
    fn valued(&mut self, key: String, class: &str) -> KeyValue {
        let value = self.values.draw(&self.random, &format!("values.{class}"));
        KeyValue { key, value }
    }

    fn pair(&mut self, attribute: &str, class: &str) -> KeyValue {
        let key = self.key(attribute);
        self.valued(key, class)
    }

    fn ask_for(&mut self, key: &str) -> String {
        let asked = self.random.word("asked");
        self.ways.fill(asked, &[("key", key)])
    }

    /// Adds a fact that was not said yet. Its index.
    fn add(&mut self, kind: &str, number: usize, question: String, fact: Fact) -> usize {
        self.facts.push(unsaid(kind, number, question, fact));
        self.facts.len() - 1
    }

    /// Lets a text say a fact or a part of it.
    fn plant(&mut self, due: u64, channel: Channel, content: Content, fact: usize) {
        self.planned.push(Event {
            due,
            // Two events of one series are never in one message: they would have no order.
            key: self.facts[fact].id.clone(),
            is_typed: channel == Channel::User,
            what: Planned {
                channel,
                content,
                fact,
                second_fact: None,
            },
        });
    }

    fn decoys(&mut self) {
        for number in 1..=self.number("decoy").max(1) {
            let class = self.random.pick(&self.words.classes);
            let attribute = self.random.word(&format!("attributes.{class}"));
            let KeyValue { key, value } = self.pair(attribute, class);
            let question = self.ask_for(&key);
            self.add("decoy", number, question, Fact::Decoy { key, value });
        }
    }

    /// Keys with values, which the user says and tools show by turns.
    fn recalls(&mut self, count: usize) {
        const CHANNELS: [Channel; 6] = [
            Channel::User,
            Channel::User,
            Channel::Config,
            Channel::Log,
            Channel::Comment,
            Channel::Runbook,
        ];
        let mut channels = Vec::new();
        let mut classes = Vec::new();
        for at in 0..count {
            if channels.is_empty() {
                channels = CHANNELS.to_vec();
                self.random.shuffle(&mut channels);
            }
            if classes.is_empty() {
                classes.clone_from(&self.words.classes);
                self.random.shuffle(&mut classes);
            }
            let channel = channels.pop().unwrap_or(Channel::User);
            let class = classes.pop().unwrap_or("ticket");
            let attribute = self.random.word(&format!("attributes.{class}"));
            let own = self.pair(attribute, class);
            let distractors = match (self.distractors, channel) {
                (Some(number), _) => whole(number.into()),
                (None, Channel::User) => self.random.count(0, 2),
                (None, _) => self.random.count(3, 6),
            };
            let KeyValue { key, value } = own.clone();
            let mut pairs = vec![own];
            pairs.extend((0..distractors).map(|_| self.pair(attribute, class)));
            let due = self.position(at, count);
            let question = self.ask_for(&key);
            let fact = self.add("recall", at + 1, question, Fact::Recall { key, value });
            if channel == Channel::User || self.random.percent(20) {
                self.facts[fact].importance = Importance::High;
            }
            self.plant(due, channel, Content::Pairs(pairs), fact);
        }
    }

    fn constraints(&mut self, count: usize) {
        let mut rules = Rules::new(&self.random, &self.words.rules, self.ways);
        for at in 0..count {
            let (topic, statement, form) = rules.next(&self.random);
            let line = Content::Rule(statement.clone());
            let question = self.ways.ask("constraint", &[("topic", &topic)]);
            let fact = Fact::Constraint {
                topic,
                statement,
                form,
            };
            let fact = self.add("constraint", at + 1, question, fact);
            let due = self.position(at, count);
            self.plant(due, Channel::User, line, fact);
        }
    }
}

#[cfg(test)]
mod tests;
