//! Rules that the user sets: seven kinds, each composed of words that are never used twice.
//!
//! The question gives the made-up name of a rule. So the two options of a forced choice hold the
//! same name, and a pair of rules differs in polarity, number or object alone; which of the two the
//! user sets is drawn. Only the conversation distinguishes them.

use super::Ways;
use crate::random::{Random, Unique};
use crate::words::RuleWords;
use proctor_sessions::ground_truth::{AllowedCall, RuleForm};

/// The kind of rule that says what must be left alone.
const UNTOUCHED: usize = 5;

/// A bank of rules: kinds in random order, each made of slots that are never used twice.
#[derive(Debug)]
pub(crate) struct Rules {
    bank: &'static [RuleWords],
    kinds: Vec<usize>,
    decks: Vec<Vec<&'static str>>,
    names: Unique,
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
    pub(crate) fn new(random: &Random, bank: &'static [RuleWords], ways: Ways) -> Self {
        let mut decks: Vec<_> = bank.iter().map(|kind| kind.abouts.clone()).collect();
        for deck in &mut decks {
            random.shuffle(deck);
        }
        let aside = Random::new(random.forked().below(u64::MAX), "foils");
        Self {
            bank,
            kinds: Vec::new(),
            decks,
            names: Unique::default(),
            ways,
            said: 0,
            is_first: aside.percent(50),
            aside,
        }
    }

    /// The topic of the next rule, the rule, and the form of its question.
    pub(crate) fn next(&mut self, random: &Random) -> (String, String, RuleForm) {
        if self.kinds.is_empty() {
            self.kinds = (0..self.bank.len()).collect();
            random.shuffle(&mut self.kinds);
        }
        let kind = self.kinds.pop().unwrap_or(0);
        let about = self.decks[kind].pop().unwrap_or("remaining work");
        let name = self.names.draw(random, "rule_name");
        let spare = self.names.draw(&self.aside, "rule_name");
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
        let RuleWords {
            templates,
            pairs,
            topic,
            task,
            ..
        } = &self.bank[kind];
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
            let said = ways.say(random, templates, &slots);
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
        let said = ways.say(random, templates, &slots);
        (object, said, RuleForm::Open)
    }
}

#[cfg(test)]
mod tests {
    use crate::words::{HELP_DESK_FACTS, REPOSITORY_FACTS};

    /// The words of a template, sorted; slots are words.
    fn words(template: &str) -> Vec<&str> {
        let mut words: Vec<&str> = template.split([' ', ',', '.', ';']).collect();
        words.retain(|word| !word.is_empty());
        words.sort_unstable();
        words
    }

    #[test]
    fn two_rules_of_a_pair_hold_the_same_slots_and_differ_in_few_words() {
        for kind in REPOSITORY_FACTS.rules.iter().chain(&HELP_DESK_FACTS.rules) {
            assert_eq!(kind.pairs.is_empty(), !kind.task.is_empty());
            for (first, second) in &kind.pairs {
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
