//! Rules that the user sets: seven kinds, each composed of words that are never used twice.

use std::collections::BTreeSet;

use super::{Bank, Ways};
use crate::session::ground_truth::RuleForm;
use crate::session::synthetic::random::Random;

mod desk;
mod repository;

/// One kind of rule.
#[derive(Debug)]
struct Kind {
    /// What it may be about; each is used once.
    abouts: &'static [&'static str],
    /// How it is said: `{about}`, a made-up `{name}`, a `{number}`.
    templates: &'static [&'static str],
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
        Self {
            bank,
            kinds: Vec::new(),
            decks,
            names: BTreeSet::new(),
            ways,
            said: 0,
            aside: Random::new(random.clone().below(u64::MAX), "foils"),
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
        let number = random.between(2, 9).to_string();
        let slots = [
            ("name", name.as_str()),
            ("about", about),
            ("number", &number),
        ];
        let Kind {
            templates, topic, ..
        } = self.bank[kind];
        let template = self.ways.pick(random, templates);
        let said = self.ways.fill(template, &slots);
        self.said += 1;
        let form = if kind == UNTOUCHED && self.said.is_multiple_of(2) {
            let place = self.ways.fill(topic, &slots);
            RuleForm::Call {
                task: self
                    .ways
                    .fill(self.bank[kind].task, &[("place", place.as_str())]),
                forbidden: place,
            }
        } else if self.said.is_multiple_of(3) {
            // Another name, and another number: nothing but the conversation tells them apart.
            let name = self.other_name();
            let number = if number == "7" { "4" } else { "7" };
            let slots = [
                ("name", name.as_str()),
                ("about", about),
                ("number", number),
            ];
            RuleForm::Choice {
                foil: self.ways.fill(template, &slots),
            }
        } else {
            RuleForm::Open
        };
        (self.ways.fill(topic, &slots), said, form)
    }
}
