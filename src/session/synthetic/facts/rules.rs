//! Rules that the user sets: seven kinds, each composed of words that are never used twice.
//!
//! The question gives the made-up name of a rule. So the two options of a forced choice hold the same
//! name, and a pair of rules differs in polarity, number or object alone; which of the two the user
//! sets is drawn. Nothing but the conversation tells them apart.

use std::collections::BTreeSet;

use super::{Bank, Ways};
use crate::session::ground_truth::{AllowedCall, RuleForm};
use crate::session::synthetic::random::Random;

mod desk;
mod repository;

/// One kind of rule.
#[derive(Debug)]
struct Kind {
    /// What it may be about; each is used once.
    abouts: &'static [&'static str],
    /// How it is said: `{about}`, a made-up `{name}`, a `{number}`. Where a place must be left
    /// alone, another one is free: `{spare}`.
    templates: &'static [&'static str],
    /// Two rules that differ in polarity, number or object alone: one is set, the other is its
    /// foil. They share as many words with the question, and hold the same slots but for
    /// `{number}`, which is `{other}` in the second. Many hang on a negation and an exception,
    /// which a careless summary drops. Empty where the rule is asked for by calls.
    pairs: &'static [(&'static str, &'static str)],
    /// How it is named, in words that stand in each template.
    topic: &'static str,
    /// Work that breaks it, at a `{place}`; only where a place must be left alone.
    task: &'static str,
}

/// The kind of rule that says what must be left alone.
const UNTOUCHED: usize = 5;

impl Bank {
    fn rules(self) -> &'static [Kind; 7] {
        match self {
            Self::Repository => &repository::KINDS,
            Self::Desk => &desk::KINDS,
        }
    }
}

/// A bank of rules: kinds in random order, each made of slots that are never used twice.
#[derive(Debug)]
pub(crate) struct Rules {
    bank: &'static [Kind; 7],
    kinds: Vec<usize>,
    decks: Vec<Vec<&'static str>>,
    names: BTreeSet<String>,
    ways: Ways,
    /// How many rules were made.
    said: usize,
    /// Whether the first rule of the next pair is set: each time the other one, so that the longer
    /// rule and the one with a negation are set as often as not.
    is_first: bool,
    /// Draws what was not said, apart from what was.
    aside: Random,
}

impl Rules {
    pub(crate) fn new(random: &mut Random, bank: Bank, ways: Ways) -> Self {
        let bank = bank.rules();
        let decks = bank
            .iter()
            .map(|kind| {
                let mut deck = kind.abouts.to_vec();
                random.shuffle(&mut deck);
                deck
            })
            .collect();
        let mut aside = Random::new(random.clone().below(u64::MAX), "foils");
        Self {
            bank,
            kinds: Vec::new(),
            decks,
            names: BTreeSet::new(),
            ways,
            said: 0,
            is_first: aside.percent(50),
            aside,
        }
    }

    /// A name that no rule has.
    fn other_name(&mut self) -> String {
        let mut aside = self.aside.clone();
        let name = self.name(&mut aside);
        self.aside = aside;
        name
    }

    /// A made-up name of three syllables.
    fn name(&mut self, random: &mut Random) -> String {
        const SYLLABLES: &[&str] = &[
            "vel", "mor", "tha", "rin", "qua", "zel", "bro", "nim", "fyr", "dos", "lun", "kep",
            "wix", "hal", "jor",
        ];
        loop {
            let name: String = (0..3).map(|_| random.pick(SYLLABLES)).collect();
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    /// What the rule is about, the rule, and how it is asked for.
    pub(crate) fn next(&mut self, random: &mut Random) -> (String, String, RuleForm) {
        if self.kinds.is_empty() {
            self.kinds = (0..self.bank.len()).collect();
            random.shuffle(&mut self.kinds);
        }
        let kind = self.kinds.pop().unwrap_or(0);
        let about = self.decks[kind].pop().unwrap_or("remaining work");
        let name = self.name(random);
        let spare = self.other_name();
        let number = random.between(2, 9);
        // Another number of one digit, all of them equally likely.
        let other = (number - 2 + self.aside.between(1, 7)) % 8 + 2;
        let (number, other) = (number.to_string(), other.to_string());
        let slots = [
            ("name", name.as_str()),
            ("spare", &spare),
            ("about", about),
            ("number", &number),
            ("other", &other),
        ];
        let Kind {
            templates,
            pairs,
            topic,
            task,
            ..
        } = self.bank[kind];
        let ways = self.ways;
        let object = ways.fill(topic, &slots);
        self.said += 1;
        if kind == UNTOUCHED {
            let free = ways.fill(topic, &[("name", &spare), ("about", about)]);
            let asked = |place: &str| ways.fill(task, &[("place", place)]);
            let form = RuleForm::Call {
                task: asked(&object),
                allowed: Some(AllowedCall {
                    task: asked(&free),
                    target: free,
                }),
                forbidden: object.clone(),
            };
            let said = ways.fill(ways.pick(random, templates), &slots);
            return (object, said, form);
        }
        if self.said.is_multiple_of(2) && !pairs.is_empty() {
            let (first, second) = ways.pick(random, pairs);
            let (said, foil) = if self.is_first {
                (first, second)
            } else {
                (second, first)
            };
            self.is_first = !self.is_first;
            let foil = ways.fill(foil, &slots);
            return (object, ways.fill(said, &slots), RuleForm::Choice { foil });
        }
        let said = ways.fill(ways.pick(random, templates), &slots);
        (object, said, RuleForm::Open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a template, sorted; slots are words.
    fn words(template: &str) -> Vec<&str> {
        let mut words: Vec<&str> = template.split([' ', ',', '.', ';']).collect();
        words.retain(|word| !word.is_empty());
        words.sort_unstable();
        words
    }

    #[test]
    fn two_rules_of_a_pair_hold_the_same_slots_and_differ_in_few_words() {
        for kind in repository::KINDS.iter().chain(&desk::KINDS) {
            assert_eq!(kind.pairs.is_empty(), !kind.task.is_empty());
            for (first, second) in kind.pairs {
                assert_ne!(first, second);
                for topic in ["{name}", "{about}"] {
                    assert!(first.contains(topic) && second.contains(topic), "{first}");
                }
                let second = second.replace("{other}", "{number}");
                let [first, second] = [words(first), words(&second)];
                let differs = |a: &[&str], b: &[&str]| {
                    let lower = |word: &str| word.to_lowercase();
                    let b: Vec<String> = b.iter().map(|word| lower(word)).collect();
                    a.iter().filter(|word| !b.contains(&lower(word))).count()
                };
                assert!(differs(&first, &second) <= 2, "{first:?}");
                assert!(differs(&second, &first) <= 2, "{second:?}");
            }
        }
    }
}
