//! What a recipe asks for is what the session has: observations, distractors, phrasings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use proctor_sessions::Tag;
use proctor_sessions::ground_truth::Fact;
use proctor_sessions::tokens::{CharsPer4, CountedTexts};
use proctor_synth::{FAMILIES, Generated, Length, Recipe, generate};

use super::{check_truth, check_validity, text_of};
use crate::goldens::sampled;

/// Characters: what is asked for holds in the unit that counts, and these are counted quickly.
fn counts() -> CountedTexts {
    CountedTexts::new(Arc::new(CharsPer4))
}

#[expect(clippy::expect_used, reason = "a helper of tests")]
fn made(recipe: &Recipe) -> Generated {
    generate(recipe, &counts()).expect("a valid recipe")
}

/// The share of the messages' tokens that results have, in percent.
fn share(made: &Generated, counts: &CountedTexts) -> f64 {
    let (mut observed, mut all) = (0, 0);
    for message in made.session.messages() {
        let results: BTreeSet<usize> = message.tool_results().map(|(block, _)| block).collect();
        for (block, text) in message.model_text().iter().enumerate() {
            let tokens = counts.size(text).tokens.0;
            all += tokens;
            observed += if results.contains(&block) { tokens } else { 0 };
        }
    }
    100.0 * observed as f64 / all as f64
}

#[test]
fn every_family_meets_the_share_of_observations_that_is_asked_for() {
    let counts = counts();
    for family in sampled(FAMILIES.iter()) {
        let mut line = format!("{:<18}", family.name);
        for asked in [26, 45, 65, 84] {
            let made = made(&Recipe {
                family: family.name.to_owned(),
                seed: 5,
                length: Length::Rounds(160),
                observation_percent: Some(asked),
                ..Recipe::default()
            });
            check_validity(&made.session);
            let found = share(&made, &counts);
            let _ = write!(line, " {asked}: {found:.1}");
            let distance = (found - f64::from(asked)).abs();
            assert!(distance <= 4.0, "{line}");
        }
        println!("{line}");
    }
}

/// The sizes of the results, smallest first.
fn sizes(family: &str, result_percent: u32) -> Vec<usize> {
    let mut sizes = Vec::new();
    for seed in 1..=2 {
        let made = made(&Recipe {
            family: family.to_owned(),
            seed,
            length: Length::Rounds(90),
            result_percent,
            ..Recipe::default()
        });
        check_validity(&made.session);
        if seed == 1 {
            check_truth(&made);
        }
        for message in made.session.messages() {
            let results = message.tool_results();
            sizes.extend(results.map(|(block, _)| message.model_text()[block].len()));
        }
    }
    sizes.sort_unstable();
    sizes
}

#[test]
fn the_usual_size_of_results_moves_and_the_largest_stay() {
    for family in sampled(FAMILIES.iter()) {
        let [small, own, large] = [10, 100, 200].map(|percent| sizes(family.name, percent));
        let middle = |sizes: &[usize]| sizes[sizes.len() / 2];
        let upper = |sizes: &[usize]| sizes[sizes.len() * 3 / 4];
        let line = format!(
            "{:<18} p50 {} {} {}, p75 {} {} {}",
            family.name,
            middle(&small),
            middle(&own),
            middle(&large),
            upper(&small),
            upper(&own),
            upper(&large)
        );
        println!("{line}");
        // Short results are what they are: an edit says that it was made.
        assert!(upper(&small) * 10 < upper(&own) * 8, "{line}");
        assert!(middle(&small) <= middle(&own), "{line}");
        assert!(upper(&large) * 10 > upper(&own) * 12, "{line}");
        assert!(small.last() >= own.last().map(|it| it / 8).as_ref(), "{line}");
    }
}

/// The lines in which planted keys stand, each with key and value.
fn told(made: &Generated) -> Vec<(usize, String, String, String)> {
    let mut told = Vec::new();
    for fact in &made.truth.facts {
        let Fact::Recall { key, value } = &fact.fact else {
            continue;
        };
        let at = fact.evidence[0];
        let text = text_of(&made.session, at);
        let line = text.lines().find(|line| line.contains(value.as_str()));
        told.push((at, line.unwrap().to_owned(), key.clone(), value.clone()));
    }
    told
}

#[test]
fn as_many_distractors_stand_beside_a_fact_as_are_asked_for() {
    for family in sampled(FAMILIES.iter()) {
        for asked in [0, 3, 9] {
            let made = made(&Recipe {
                family: family.name.to_owned(),
                seed: 2,
                length: Length::Rounds(120),
                distractors: Some(asked),
                ..Recipe::default()
            });
            let told = told(&made);
            let mut others = Vec::new();
            for (at, line, key, value) in &told {
                // A distractor has the same attribute, which ends the key.
                let attribute = key.rsplit(' ').next().unwrap();
                let text = text_of(&made.session, *at);
                let lines = text.lines().filter(|other| *other != line);
                others.push(lines.filter(|it| it.contains(attribute)).count());
                let distractors = others.last().unwrap();
                assert!(*distractors >= asked as usize, "{key} {value}: {text}");
            }
            // Long outputs use such words, too.
            others.sort_unstable();
            let usual = others[others.len() / 2];
            assert_eq!(usual, asked as usize, "{}: {others:?}", family.name);
        }
    }
}

/// The shapes of the lines in which the person says a key, without key and value.
fn shapes(family: &str, phrasings: Option<u32>, seeds: u64) -> Vec<String> {
    let mut shapes = Vec::new();
    for seed in 1..=seeds {
        let made = made(&Recipe {
            family: family.to_owned(),
            seed,
            length: Length::Rounds(60),
            fact_percent: 400,
            phrasings,
            ..Recipe::default()
        });
        for (at, line, key, value) in told(&made) {
            if made.session.message(at).has_tag(Tag::TypedUser) {
                shapes.push(line.replace(&key, "K").replace(&value, "V"));
            }
        }
    }
    shapes
}

/// Whoever looks for one word finds few of the facts, unless they are all said in one way.
#[test]
fn a_fact_is_said_in_as_many_ways_as_are_asked_for_and_no_keyword_gives_it_away() {
    for family in sampled(FAMILIES.iter()) {
        let distinct = |shapes: &[String]| shapes.iter().collect::<BTreeSet<_>>().len();
        for asked in [1, 3] {
            let shapes = shapes(family.name, Some(asked), 2);
            assert_eq!(distinct(&shapes), asked as usize, "{}", family.name);
        }
        let shapes = shapes(family.name, None, 2);
        assert!(distinct(&shapes) >= 5, "{}", family.name);
        let mut words: BTreeMap<String, usize> = BTreeMap::new();
        for shape in &shapes {
            let own = shape.split(|c: char| !c.is_alphanumeric());
            let own: BTreeSet<&str> = own.filter(|word| word.len() > 3).collect();
            for word in own {
                *words.entry(word.to_lowercase()).or_default() += 1;
            }
        }
        let best = words.into_values().max().unwrap_or(0);
        let share = best as f64 / shapes.len() as f64;
        assert!(share <= 0.4, "{}: {share}", family.name);
    }
}

#[test]
fn more_facts_are_planted_where_more_are_asked_for() {
    for family in sampled(FAMILIES.iter()) {
        let number = |fact_percent| {
            let made = made(&Recipe {
                family: family.name.to_owned(),
                seed: 3,
                length: Length::Rounds(160),
                fact_percent,
                ..Recipe::default()
            });
            if fact_percent == 200 {
                check_truth(&made);
            }
            let facts = made.truth.facts.iter();
            let planted = facts.filter(|fact| !fact.id.starts_with("artifact"));
            planted.count()
        };
        let [none, half, usual, twice] = [0, 50, 100, 200].map(number);
        // One decoy is left in a session without facts.
        assert_eq!(none, 1, "{}", family.name);
        assert!(half < usual && usual < twice, "{}", family.name);
        assert!(twice * 10 > usual * 15, "{}: {usual} {twice}", family.name);
    }
}

#[test]
fn a_control_out_of_range_says_what_is_possible() {
    let check = |recipe: Recipe, message: &str| {
        let error = generate(&recipe, &counts()).unwrap_err();
        assert_eq!(error.to_string(), message);
    };
    for percent in [0, 25, 85] {
        check(
            Recipe { observation_percent: Some(percent), ..Recipe::default() },
            &format!("`observation_percent` is {percent}: it must be from 26 to 84"),
        );
    }
    for percent in [0, 4, 401] {
        check(
            Recipe { result_percent: percent, ..Recipe::default() },
            &format!("`result_percent` is {percent}: it must be from 5 to 400"),
        );
    }
    check(
        Recipe { distractors: Some(13), ..Recipe::default() },
        "`distractors` is 13: it must be from 0 to 12",
    );
    check(
        Recipe { phrasings: Some(0), ..Recipe::default() },
        "`phrasings` is 0: it must be at least 1",
    );
}

#[test]
fn what_is_set_is_part_of_the_id() {
    let made = made(&Recipe {
        length: Length::Rounds(20),
        fact_percent: 50,
        observation_percent: Some(60),
        result_percent: 40,
        distractors: Some(3),
        phrasings: Some(1),
        ..Recipe::default()
    });
    assert_eq!(made.session.id(), "code-review-s1-r20-f50-o60-z40-d3-p1");
}
