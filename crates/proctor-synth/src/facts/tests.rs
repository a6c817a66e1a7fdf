//! Tests the planted facts before a session says them.

use super::*;
use crate::{FAMILIES, Length};
use proctor_sessions::units::Tokens;

/// The facts of a session of that family, as they are planned.
fn planned(family: &str, seed: u64, length: Length, fact_percent: u32) -> Facts {
    let family = FAMILIES.iter().find(|known| known.name == family);
    let recipe = Recipe { seed, length, fact_percent, ..Recipe::default() };
    let family = family.expect("a family");
    let rounds = recipe.rounds(family.tokens_per_round);
    Facts::plan(family, &recipe, rounds, &Random::new(seed, "test"))
}

impl Facts {
    fn count(&self, kind: &str) -> usize {
        self.planted.iter().filter(|fact| fact.id.starts_with(kind)).count()
    }
}

#[test]
fn questions_never_hold_the_answer_and_topics_stand_in_the_rule() {
    for seed in 0..50 {
        let (family, expected) = [("code-review", (24, 12, 8)), ("policy-support", (30, 18, 0))]
            [usize::from(seed % 2 == 1)];
        let made = planned(family, seed, Length::Rounds(200), 100);
        let counts = ["recall", "constraint", "error"].map(|kind| made.count(kind));
        assert_eq!(<(usize, usize, usize)>::from(counts), expected);
        let counts = ["obsolete", "indirect", "two-step"].map(|kind| made.count(kind));
        assert_eq!(counts, [3, 4, 3]);
        for planted in &made.planted {
            let question = &planted.question;
            match &planted.fact {
                Fact::Recall { key, value } => {
                    assert!(question.contains(key) && !question.contains(value));
                    assert!((2..=4).contains(&key.split(' ').count()), "{key}");
                }
                Fact::Constraint { topic, statement, .. } => {
                    assert!(!question.contains(statement.as_str()));
                    for word in topic.split([' ', '/']) {
                        assert!(statement.contains(word), "{topic}: {statement}");
                    }
                }
                Fact::Obsolete { withdrawn, withdrawal, standing, standing_question } => {
                    assert!(question.contains(&withdrawn.value));
                    assert!(withdrawal.contains(&withdrawn.value));
                    // The two questions differ in the two keys and values alone.
                    let other = question.replace(&withdrawn.value, &standing.value);
                    let other = other.replace(&withdrawn.key, &standing.key);
                    assert_eq!(other, *standing_question);
                }
                Fact::TwoStep { steps } => {
                    assert!(question.contains(&steps[0].key));
                    assert!(steps[1].key.contains(&steps[0].value));
                    for step in steps {
                        assert!(!question.contains(&step.value));
                    }
                }
                _ => {}
            }
        }
        for event in &made.events {
            if let Content::Part(_, part) = &event.content {
                assert!(!made.planted[event.fact].question.contains(part));
            }
        }
    }
}

#[test]
fn facts_are_due_in_every_third_of_the_session() {
    let made = planned("code-review", 5, Length::Rounds(200), 100);
    for third in 0..3 {
        let range = third * 307..(third + 1) * 307;
        let said = |event: &&DueEvent| {
            let fact = &made.planted[event.fact].fact;
            matches!(fact, Fact::Recall { .. } | Fact::Constraint { .. })
        };
        let due = made.events.iter().filter(|event| range.contains(&event.due));
        let count = due.filter(said).count();
        assert!((11..=13).contains(&count), "{third}: {count}");
    }
}

/// Whether a text has a number, an id, a path, a quotation, or a name within a sentence.
fn has_anchor(text: &str) -> bool {
    let mut words = text.split([' ', ',']);
    let mut ends_sentence = words.next().is_none_or(|word| word.ends_with(':'));
    words.any(|word| {
        let is_first = std::mem::replace(&mut ends_sentence, word.ends_with(['.', ':', '!', '?']));
        !is_first && word.len() > 1 && word.starts_with(char::is_uppercase)
    }) || text.contains(|c: char| c.is_ascii_digit() || "/`\"_".contains(c))
}

#[test]
fn every_rule_decision_and_step_has_an_anchor() {
    assert!(!has_anchor("Never restart the message bus."));
    for family in FAMILIES.iter() {
        for percent in [100, 400] {
            for fact in planned(family.name, 3, Length::Rounds(90), percent).planted {
                let texts = match fact.fact {
                    Fact::Constraint { statement, .. } => vec![statement],
                    Fact::Decision { choice, reason, .. } => vec![choice, reason],
                    Fact::Continuation { items, .. } => {
                        items.into_iter().map(|item| item.item).collect()
                    }
                    _ => Vec::new(),
                };
                for text in texts {
                    assert!(has_anchor(&text), "{}: {text}", family.name);
                }
            }
        }
    }
}

#[test]
fn half_of_the_words_of_a_key_are_of_no_other_key() {
    for family in FAMILIES.iter() {
        let made = planned(family.name, 4, Length::Tokens(Tokens(60_000)), 100);
        let mut keys: BTreeSet<BTreeSet<String>> = BTreeSet::new();
        for event in &made.events {
            let Content::Pairs(pairs) = &event.content else {
                continue;
            };
            let pairs = pairs.iter().filter(|pair| !pair.key.contains(char::is_numeric));
            for pair in pairs {
                let key: BTreeSet<String> = pair.key.split(' ').map(str::to_owned).collect();
                for other in &keys {
                    let common = key.intersection(other).count();
                    assert!(2 * common < key.len(), "{}: {key:?} {other:?}", family.name);
                }
                keys.insert(key);
            }
        }
    }
}

#[test]
fn one_person_or_tool_says_all_values_of_a_key() {
    for family in FAMILIES.iter() {
        let made = planned(family.name, 2, Length::Rounds(200), 100);
        let mut channels = std::collections::BTreeMap::new();
        for event in &made.events {
            if let Fact::Update { .. } = made.planted[event.fact].fact {
                let known = channels.entry(event.fact).or_insert(event.channel);
                assert_eq!(*known, event.channel, "{}", family.name);
            }
        }
        assert!(!channels.is_empty(), "{}", family.name);
    }
}

#[test]
fn a_short_session_has_the_first_facts_and_decoys_are_few() {
    for family in FAMILIES.iter() {
        for (tokens, percent, least) in [(6_000, 100, 12), (6_000, 400, 44), (10_000, 100, 18)] {
            let made = planned(family.name, 1, Length::Tokens(Tokens(tokens)), percent);
            let decoys = made.count("decoy");
            let facts = made.planted.len() - decoys;
            assert!(facts >= least, "{} {tokens}: {facts}", family.name);
            assert!(decoys * 7 <= facts, "{}: {decoys} of {facts}", family.name);
        }
    }
}
