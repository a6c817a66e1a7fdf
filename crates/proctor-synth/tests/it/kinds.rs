//! What each family plants: every kind, but where one cannot fit, told when and by whom it says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proctor_sessions::Tag;
use proctor_sessions::ground_truth::{Fact, PlantedFact};
use proctor_sessions::tokens::{CharsPer4, CountedTexts};
use proctor_sessions::units::Tokens;
use proctor_synth::{FAMILIES, Family, Generated, Length, Recipe, generate};

use super::{kinds, made_in, text_of};
use crate::goldens::sampled;

/// All kinds, by the first part of their ids.
const KINDS: [&str; 20] = [
    "recall",
    "binding",
    "constraint",
    "decoy",
    "decision",
    "update",
    "numeric",
    "rejected-path",
    "continuation",
    "error",
    "order",
    "last-request",
    "open-handle",
    "obsolete",
    "indirect",
    "two-step",
    "act",
    "artifact-read",
    "artifact-created",
    "artifact-modified",
];

/// What a family cannot hold, and why.
const UNFIT: [(&str, &str, &str); 4] = [
    ("policy-support", "error", "an error is at a file and line, and a help desk has no files"),
    ("policy-support", "artifact-read", "there are no files"),
    ("policy-support", "artifact-created", "there are no files"),
    ("policy-support", "artifact-modified", "there are no files"),
];

/// The families that are the work of `code-review` in one shape or another.
const SHAPES: [&str; 6] =
    ["code-review", "ci-agent", "teaching", "pause-return", "huge-outputs", "resumed"];

fn of(family: &str, seed: u64) -> Arc<Generated> {
    made_in(family, seed, Length::Rounds(160))
}

#[test]
fn every_family_plants_every_kind_but_where_one_cannot_fit() {
    for family in sampled(FAMILIES.iter()) {
        let name = family.name;
        // Files are made where the work asks for it: in some session of each family.
        let mut files: BTreeSet<&str> = BTreeSet::new();
        for seed in 1..=3 {
            let found = kinds(&of(name, seed));
            let unknown: Vec<&String> =
                found.keys().filter(|kind| !KINDS.contains(&kind.as_str())).collect();
            assert!(unknown.is_empty(), "{name}: {unknown:?}");
            for kind in KINDS {
                let unfit = UNFIT.iter().find(|it| (it.0, it.1) == (name, kind));
                let is_planted = found.contains_key(kind);
                if kind.starts_with("artifact") && unfit.is_none() {
                    files.extend(is_planted.then_some(kind));
                } else {
                    assert_eq!(is_planted, unfit.is_none(), "{name} {seed}: {kind} {unfit:?}");
                }
            }
        }
        let expected = if name == "policy-support" { 0 } else { 3 };
        assert_eq!(files.len(), expected, "{name}: {files:?}");
    }
}

/// A session of a few rounds more than a compaction needs holds what changes, too.
#[test]
fn sixty_rounds_hold_every_kind_of_what_happens() {
    for family in SHAPES {
        for seed in 1..=4 {
            let found = kinds(&made_in(family, seed, Length::Rounds(60)));
            for kind in ["decision", "update", "numeric", "rejected-path", "continuation"] {
                assert!(found.contains_key(kind), "{family} {seed}: {kind} {found:?}");
            }
        }
    }
}

/// Whether a fact is one of what happens: settled, revised, counted, tried or planned.
fn happens(fact: &PlantedFact) -> bool {
    matches!(
        fact.fact,
        Fact::Decision { .. }
            | Fact::Update { .. }
            | Fact::Numeric { .. }
            | Fact::RejectedPath { .. }
            | Fact::Continuation { .. }
    )
}

#[test]
fn what_happens_is_spread_over_the_session_or_told_in_its_first_quarter_to_learners() {
    for family in SHAPES {
        let mut thirds = [0; 3];
        for seed in 1..=4 {
            let made = of(family, seed);
            let end = made.session.messages().len();
            for fact in made.truth.facts.iter().filter(|fact| happens(fact)) {
                for at in &fact.evidence {
                    thirds[at * 3 / end] += 1;
                }
                let last = fact.evidence[fact.evidence.len() - 1];
                if family == "teaching" {
                    assert!(last * 100 / end <= 40, "{}: {last} of {end}", fact.id);
                }
            }
        }
        println!("{family}: {thirds:?}");
        if family != "teaching" {
            assert!(thirds.iter().all(|part| *part >= 10), "{family}: {thirds:?}");
        }
    }
}

#[test]
fn settings_of_a_pipeline_are_revised_by_tools_and_those_of_others_by_the_person_as_well() {
    for family in SHAPES {
        let (mut typed, mut printed) = (0, 0);
        for seed in 1..=12 {
            let made = of(family, seed);
            for fact in &made.truth.facts {
                if !matches!(fact.fact, Fact::Update { .. }) {
                    continue;
                }
                for at in &fact.evidence {
                    let message = made.session.message(*at);
                    let is_typed = message.has_tag(Tag::TypedUser);
                    let is_result = message.tool_results().next().is_some();
                    assert_ne!(is_typed, is_result, "{family} {}", fact.id);
                    typed += usize::from(is_typed);
                    printed += usize::from(is_result);
                }
            }
        }
        println!("{family}: {typed} typed, {printed} printed");
        assert!(printed >= 8, "{family}: {printed}");
        assert_eq!(typed >= 8, family != "ci-agent", "{family}: {typed}");
    }
}

/// Of counts that go up and down the newest is neither the largest nor the smallest as a rule.
#[test]
fn only_the_order_tells_which_count_is_the_newest() {
    let (mut largest, mut smallest, mut all) = (0, 0, 0);
    for family in SHAPES {
        for seed in 1..=4 {
            for fact in &of(family, seed).truth.facts {
                let Fact::Numeric { values, .. } = &fact.fact else {
                    continue;
                };
                let numbers = values.iter().map(|it| it.value.parse::<u64>().unwrap());
                let numbers: Vec<u64> = numbers.collect();
                if let [earlier @ .., newest] = numbers.as_slice()
                    && earlier.len() >= 2
                {
                    all += 1;
                    largest += usize::from(earlier.iter().all(|it| it < newest));
                    smallest += usize::from(earlier.iter().all(|it| it > newest));
                }
            }
        }
    }
    println!("{largest} largest, {smallest} smallest of {all}");
    assert!(all >= 30, "{all}");
    // Of three, a third each.
    assert!(largest * 2 < all && smallest * 2 < all);
    assert!(largest > 0 && smallest > 0);
}

#[test]
fn most_of_what_can_be_revised_is_revised() {
    for family in SHAPES {
        let (mut revised, mut all) = (0, 0);
        for seed in 1..=4 {
            for fact in &of(family, seed).truth.facts {
                if let Fact::Update { values, .. } | Fact::Numeric { values, .. } = &fact.fact {
                    all += 1;
                    revised += usize::from(values.len() > 1);
                }
            }
        }
        assert!(revised * 10 >= all * 8, "{family}: {revised} of {all}");
    }
}

/// The controls act on what happens as they do on keys and rules.
#[test]
fn the_controls_say_how_much_happens_and_in_how_many_ways_it_is_told() {
    let made = |family: &str, fact_percent, phrasings| {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let recipe = Recipe {
            family: family.to_owned(),
            seed: 4,
            length: Length::Rounds(160),
            fact_percent,
            phrasings,
            ..Recipe::default()
        };
        generate(&recipe, &counts).unwrap()
    };
    for family in SHAPES {
        let number = |percent| {
            let made = made(family, percent, None);
            made.truth.facts.iter().filter(|fact| happens(fact)).count()
        };
        let [none, usual, twice] = [0, 100, 200].map(number);
        assert_eq!(none, 0, "{family}");
        assert!(twice * 10 >= usual * 16, "{family}: {usual} {twice}");
        let shapes = |phrasings| {
            let made = made(family, 400, phrasings);
            let mut shapes: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
            for fact in &made.truth.facts {
                let (kind, said) = match &fact.fact {
                    Fact::Decision { key, choice, reason, .. } => {
                        ("decision", [key, choice, reason].to_vec())
                    }
                    Fact::Numeric { key, values, .. } => {
                        ("numeric", [key, &values[0].value].to_vec())
                    }
                    _ => continue,
                };
                let text = text_of(&made.session, fact.evidence[0]);
                let last = said[said.len() - 1];
                let line = text.lines().find(|line| line.contains(last.as_str()));
                let mut shape = line.unwrap().to_owned();
                for value in said {
                    shape = shape.replace(value.as_str(), "…");
                }
                shapes.entry(kind).or_default().insert(shape);
            }
            shapes.into_values().map(|it| it.len()).collect::<Vec<_>>()
        };
        assert_eq!(shapes(Some(1)), [1, 1], "{family}");
        assert!(shapes(None).iter().all(|it| *it >= 3), "{family}");
    }
}

/// A session that a small window holds is worth its questions: those of decoys do not count.
#[test]
fn a_session_of_six_thousand_tokens_has_ten_facts_in_every_family() {
    for family in FAMILIES.iter() {
        for (seed, head_tokens) in [(1, 0), (2, 7_400), (3, 0), (4, 7_400)] {
            let counts = CountedTexts::new(Arc::new(CharsPer4));
            let recipe = Recipe {
                family: family.name.to_owned(),
                seed,
                length: Length::Tokens(Tokens(6_000)),
                head_tokens: Tokens(head_tokens),
                ..Recipe::default()
            };
            let found = kinds(&generate(&recipe, &counts).unwrap());
            let facts = found.iter().filter(|(kind, _)| *kind != "decoy");
            let count: usize = facts.map(|(_, count)| count).sum();
            assert!(count >= 10, "{} {seed}: {found:?}", family.name);
            assert!(found["constraint"] >= 3, "{}: {found:?}", family.name);
        }
    }
}

#[test]
fn what_tests_the_use_of_a_memory_is_in_every_family_from_twelve_thousand_tokens_on() {
    for kind in ["indirect", "obsolete", "two-step", "open-handle"] {
        let holds_it = |family: &&Family| {
            let made = made_in(family.name, 1, Length::Tokens(Tokens(12_000)));
            kinds(&made).contains_key(kind)
        };
        let count = FAMILIES.iter().filter(holds_it).count();
        assert!(count >= 10, "{kind}: {count} families");
    }
}
