//! Draws what is planted in a session: how many facts of each kind, their words, and their moments.

use std::collections::BTreeMap;

use super::{Channel, Content, DueEvent, Ways, unsaid};
use crate::family::{Family, TimelinePlan};
use crate::grammar::{bank, fill};
use crate::random::{Random, Unique, whole};
use crate::words::WorkFacts;
use crate::{Length, Recipe};
use proctor_sessions::ground_truth::{Fact, KeyValue, PlantedFact};

/// Tokens of a session for each of its first facts: the rule `first` lists their kinds.
const TOKENS_PER_FACT: u64 = 500;

/// One fact that was never said is asked for per this many that were.
const FACTS_PER_DECOY: usize = 8;

/// Draws of a key that shares less than half of its words with every other one.
const TRIES: usize = 200;

/// One of so many equal parts of a session: a chapter.
pub(super) type ChapterSpan = (usize, usize);

/// The whole session.
pub(super) const WHOLE: ChapterSpan = (0, 1);

/// A part of a span, in percent.
pub(super) type Share = (u64, u64);

/// Draws the facts of a session.
pub(super) struct Planner {
    pub(super) random: Random,
    /// Draws what is not said, so that what is said does not depend on it.
    pub(super) aside: Random,
    pub(super) family: &'static Family,
    pub(super) words: &'static WorkFacts,
    pub(super) ways: Ways,
    /// Other keys of its kind beside each planted one; nothing for as many as it comes.
    pub(super) distractors: Option<u32>,
    pub(super) rounds: u64,
    percent: u64,
    /// How many facts of each kind a session has at least.
    least: BTreeMap<&'static str, u64>,
    /// The names of the chapters,
    pub(super) chapters: Vec<String>,
    /// and the rounds of each.
    pub(super) chapter_rounds: u64,
    /// Words that are dealt: each once before any comes again.
    decks: BTreeMap<&'static str, Vec<&'static str>>,
    /// The words of all keys.
    keys: Vec<Vec<String>>,
    /// Names and values: none occurs twice.
    pub(super) drawn: Unique,
    numbers: BTreeMap<&'static str, usize>,
    pub(super) facts: Vec<PlantedFact>,
    pub(super) events: Vec<DueEvent>,
}

/// The kinds of the first facts of a session, one every [`TOKENS_PER_FACT`]: what is needed most comes first.
const FIRST: [&str; 20] = [
    "constraint",
    "update",
    "continuation",
    "recall",
    "constraint",
    "decision",
    "update",
    "rejected-path",
    "constraint",
    "recall",
    "numeric",
    "obsolete",
    "constraint",
    "recall",
    "indirect",
    "two-step",
    "open-handle",
    "error",
    "order",
    "update",
];

impl Planner {
    pub(super) fn new(family: &'static Family, recipe: &Recipe, rounds: u64) -> Self {
        let TimelinePlan { rounds_per_chapter, most_chapters, .. } = family.timeline;
        let chapters = (rounds / rounds_per_chapter).clamp(1, most_chapters);
        let percent = u64::from(recipe.fact_percent);
        let tokens = match recipe.length {
            Length::Tokens(tokens) => tokens.0,
            Length::Rounds(_) => rounds * family.tokens_per_round,
        };
        let count = (tokens / TOKENS_PER_FACT).min(FIRST.len() as u64) * percent / 100;
        let mut least = BTreeMap::new();
        for kind in FIRST.iter().cycle().take(whole(count)) {
            *least.entry(*kind).or_default() += 1;
        }
        let mut planner = Self {
            // Each family has its own: no fact is in two families.
            random: Random::new(recipe.seed, &format!("facts {}", family.name)),
            aside: Random::new(recipe.seed, &format!("foils {}", family.name)),
            family,
            words: family.workspace.facts(),
            ways: Ways::of(recipe),
            distractors: recipe.distractors,
            rounds,
            percent,
            least,
            chapters: Vec::new(),
            chapter_rounds: (rounds / chapters).min(2 * rounds_per_chapter),
            decks: BTreeMap::new(),
            keys: Vec::new(),
            drawn: Unique::default(),
            numbers: BTreeMap::new(),
            facts: Vec::new(),
            events: Vec::new(),
        };
        planner.chapters = (0..chapters).map(|_| planner.draw("names")).collect();
        planner
    }

    /// Draws all kinds of facts.
    pub(super) fn plan(&mut self) {
        self.constraints();
        self.recalls();
        self.errors();
        self.orders();
        self.open_handles();
        self.obsoletes();
        self.indirects();
        self.two_steps();
        self.decisions();
        self.updates();
        self.counts();
        self.attempts();
        self.plans();
        if self.percent > 0 {
            let question = self.ways.ask("last-request", &[]);
            let requests = Vec::new();
            self.add("last-request", question, Fact::LastRequest { requests });
        }
        self.decoys((self.facts.len() / FACTS_PER_DECOY).max(1));
    }

    /// How many facts of that kind are planted.
    pub(super) fn number(&self, kind: &str) -> usize {
        let in_all = self.family.every.get(kind).or(self.words.every.get(kind));
        let in_chapter = self.family.timeline.every.get(kind);
        let amount = |rounds: u64, (per, cap): &(u64, u64)| (rounds / per).min(*cap);
        let usual = match (in_all, in_chapter) {
            (Some(every), _) => amount(self.rounds, every),
            (None, Some(every)) => self.chapters.len() as u64 * amount(self.chapter_rounds, every),
            (None, None) => return 0,
        };
        let least = self.least.get(kind).copied().unwrap_or(0);
        whole((usual * self.percent / 100).max(least))
    }

    /// The chapter of the `at`-th of `count` facts, and which of how many it is there.
    pub(super) fn place(&self, at: usize, count: usize) -> (ChapterSpan, usize, usize) {
        let chapters = self.chapters.len();
        let parts = count.div_ceil(chapters).max(1);
        ((at / parts, chapters), at % parts, parts)
    }

    /// The moment of the `part`-th of `parts` equal parts of the session.
    pub(super) fn moment(&self, part: usize, parts: usize) -> u64 {
        self.within(WHOLE, (0, 100), part, parts)
    }

    /// A moment in the `part`-th of `parts` equal parts of a share of a span. All that is planted
    /// falls into the first 92 % of the session, or of what the family says.
    pub(super) fn within(&self, span: ChapterSpan, share: Share, part: usize, parts: usize) -> u64 {
        let (at, count) = span;
        let length = 920_000 / count as u64;
        let width = (share.1 - share.0) * 1_000 / parts.max(1) as u64;
        let far = share.0 * 1_000 + part as u64 * width + self.random.below(width);
        let due = (at as u64 * length + length * far / 100_000) / 1_000;
        due * self.family.said_by / 1_000
    }

    /// A name or a value of its own.
    pub(super) fn draw(&mut self, rule: &str) -> String {
        self.drawn.draw(&self.random, rule)
    }

    /// The next word of a bank in random order.
    pub(super) fn deal(&mut self, name: &'static str, bank: &[&'static str]) -> &'static str {
        let deck = self.decks.entry(name).or_default();
        if deck.is_empty() {
            deck.extend(bank);
            self.random.shuffle(deck);
        }
        deck.pop().unwrap_or_default()
    }

    /// The next phrase of the family.
    pub(super) fn phrase(&mut self, rule: &'static str) -> &'static str {
        self.deal(rule, self.family.phrases.bank(rule))
    }

    /// A key that ends in this word, and shares less than half of its words with others as long as
    /// the banks allow it. The draws of all languages are those of English.
    pub(super) fn key(&mut self, attribute: &str) -> String {
        const KEY: &str = "{place} {part} {attribute}";
        let mut slots = [("place", ""), ("part", ""), ("attribute", attribute)];
        for attempt in 0..3 * TRIES {
            slots[0].1 = self.random.pick(&self.words.places);
            slots[1].1 = self.random.pick(&self.words.parts);
            let key = fill(KEY, &slots);
            let words: Vec<String> = key.split(' ').map(str::to_owned).collect();
            let alike = self.keys.iter().any(|other| {
                let common = other.iter().filter(|word| words.contains(word)).count();
                common == words.len() || (attempt < TRIES && 2 * common >= words.len())
            });
            if words.len() <= 4 && !alike {
                self.keys.push(words);
                break;
            }
        }
        self.ways.fill(KEY, &slots)
    }

    /// The key with a value of that class that no other key has.
    pub(super) fn valued(&mut self, key: String, class: &str) -> KeyValue {
        let value = self.draw(&format!("values.{class}"));
        KeyValue { key, value }
    }

    pub(super) fn pair(&mut self, attribute: &str, class: &str) -> KeyValue {
        let key = self.key(attribute);
        self.valued(key, class)
    }

    /// A class of values, and what a key of it names.
    pub(super) fn class(&mut self) -> (&'static str, &'static str) {
        let class = self.deal("classes", &self.words.classes);
        (class, self.deal(class, bank(&format!("attributes.{class}"))))
    }

    pub(super) fn ask_for(&mut self, key: &str) -> String {
        let asked = self.random.word("asked");
        self.ways.fill(asked, &[("key", key)])
    }

    /// Adds a fact that was not said yet. Its index.
    pub(super) fn add(&mut self, kind: &'static str, question: String, fact: Fact) -> usize {
        let number = self.numbers.entry(kind).or_default();
        *number += 1;
        self.facts.push(unsaid(kind, *number, question, fact));
        self.facts.len() - 1
    }

    /// Lets a text say a fact or a part of it.
    pub(super) fn plant(&mut self, due: u64, channel: Channel, content: Content, fact: usize) {
        self.events.push(DueEvent { due, channel, content, fact, second_fact: None });
    }
}
