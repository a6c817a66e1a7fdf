//! What a reader gets right that sees the question and no conversation: nothing, or half of the
//! choices. One that knows the answer gets all of it right.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proctor::probe::AnswerFormat;
use proctor::probe::grade::GradingRules;
use proctor::probe::{Fact, GradeVerdict, OTHER_ORDER, Outcome, Probe, Selection};
use proctor::probe::{ProbeExt as _, Specified as _};
use proctor::session::ground_truth::RuleForm;
use proctor::session::synthetic::{FAMILIES, Generated, Length, Recipe, generate};
use proctor::tokens::{CharsPer4, CountedTexts};

/// A reader that sees the question only, with the options that the question offers.
type Guesser = fn(&str, &[Offer<'_>]) -> String;

/// An option of a question: how it is taken, and what it says.
struct Offer<'a> {
    answer: &'a str,
    text: &'a str,
}

const GUESSERS: [(&str, Guesser); 6] = [
    ("the most words of the question", |question, offers| {
        let asked = words(question.lines().next().unwrap_or_default());
        let common = |offer: &Offer<'_>| words(offer.text).intersection(&asked).count();
        best(question, offers, common)
    }),
    ("the longer option", |question, offers| best(question, offers, |offer| offer.text.len())),
    ("the shorter option", |question, offers| {
        best(question, offers, |offer| 10_000 - offer.text.len())
    }),
    ("the option that denies something", |question, offers| {
        best(question, offers, |offer| {
            let denials = ["not", "never", "no", "nothing", "nobody", "unless"];
            words(offer.text).iter().filter(|word| denials.contains(&word.as_str())).count()
        })
    }),
    ("always A", |_, _| "A".to_owned()),
    ("always `ask`", |_, _| "ask".to_owned()),
];

/// The option of the highest rank, the first of equals; without options the question itself.
fn best(question: &str, offers: &[Offer<'_>], rank: impl Fn(&Offer<'_>) -> usize) -> String {
    let best = offers.iter().rev().max_by_key(|offer| rank(offer));
    best.map_or(question, |offer| offer.answer).to_owned()
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn offers(question: &str, format: AnswerFormat) -> Vec<Offer<'_>> {
    let same = |text| Offer { answer: text, text };
    match format {
        AnswerFormat::Letter => question
            .lines()
            .filter_map(|line| {
                let (answer, text) = line.split_once(": ")?;
                (answer.len() == 1).then_some(Offer { answer, text })
            })
            .collect(),
        AnswerFormat::Call => {
            let quoted = question.split('`').skip(1).step_by(2);
            let calls = quoted.filter(|text| text.contains('(') || *text == "ask");
            calls.map(same).collect()
        }
        AnswerFormat::YesNo | AnswerFormat::YesOrNo => ["yes", "no"].map(same).into(),
        _ => Vec::new(),
    }
}

fn made(family: &str, seed: u64) -> Generated {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let recipe = Recipe {
        family: family.to_owned(),
        seed,
        length: Length::Rounds(64),
        fact_percent: 400,
        ..Recipe::default()
    };
    generate(&recipe, &counts).unwrap()
}

/// How a guess is scored: choices apart, because half of them is chance.
#[derive(Default)]
struct Tally {
    choices: (f64, usize),
    others: (f64, usize),
    right: Vec<String>,
}

#[test]
fn a_reader_that_sees_the_question_only_is_at_chance_in_every_family() {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut calls = 0;
    for family in FAMILIES.iter() {
        for seed in 1..=2 {
            let made = made(family.name, seed);
            let probes = made.truth.facts.clone();
            let rules = GradingRules::new(&probes);
            for item in Selection::default().items(&made.session, &probes) {
                let probe = &probes[item.probe];
                if item.percent != 100 || probe.kind().is_never_said() {
                    continue;
                }
                let before = made.session.calls()[item.call];
                let format = probe.answer_format();
                let questions = probe.questions();
                let is_choice = format == AnswerFormat::Letter;
                if is_choice {
                    check_options(&questions[0]);
                }
                calls += usize::from(format == AnswerFormat::Call);
                if matches!(&probe.fact, Fact::Constraint { form: RuleForm::Call { .. }, .. }) {
                    assert_eq!(questions.len(), 2, "{}: no pair", probe.id);
                }
                for (name, guess) in GUESSERS {
                    let answers: Vec<String> = questions
                        .iter()
                        .map(|question| guess(question, &offers(question, format)))
                        .collect();
                    let answer = answers.join(OTHER_ORDER);
                    let verdict = rules.verdict(probe, before, &answer);
                    let score = match verdict {
                        GradeVerdict::Scored { score, .. } => score,
                        GradeVerdict::Unscored { .. } => 0.0,
                    };
                    let tally = tallies.entry(name).or_default();
                    let part = if is_choice { &mut tally.choices } else { &mut tally.others };
                    *part = (part.0 + score, part.1 + 1);
                    if score > 0.0 && !is_choice {
                        let place = format!("{} {seed} {}", family.name, probe.id);
                        tally.right.push(format!("{place}: {answer}: {verdict:?}"));
                    }
                }
            }
        }
    }
    assert!(calls >= 40, "{calls} calls");
    for (name, tally) in tallies {
        let (sum, items) = tally.choices;
        assert!(items >= 100, "{items} choices");
        let share = sum / items as f64;
        let error = (0.25 / items as f64).sqrt();
        println!("{name}: {share:.3} of {items} choices, {:?}", tally.others);
        assert!(share <= 0.5 + 3.0 * error, "{name}: {share} of {items} choices");
        assert!(tally.right.is_empty(), "{name}: {:#?}", tally.right);
    }
}

/// Both options share as many words with the question, and hold the same made-up names.
fn check_options(question: &str) {
    let asked = words(question.lines().next().unwrap_or_default());
    let offers = offers(question, AnswerFormat::Letter);
    let common = |offer: &Offer<'_>| words(offer.text).intersection(&asked).count();
    assert_eq!(offers.len(), 2, "{question}");
    assert_eq!(common(&offers[0]), common(&offers[1]), "{question}");
}

/// The answers of a reader that knows what was planted.
fn known(probe: &Probe, before: usize) -> Vec<String> {
    let say = |answers: [&str; 2]| answers.map(str::to_owned).to_vec();
    // The order of the two questions is drawn.
    let in_order = |first: &str, answers: [&str; 2]| {
        let mut answers = say(answers);
        if probe.questions()[0] != first {
            answers.reverse();
        }
        answers
    };
    match &probe.fact {
        Fact::Constraint { form: RuleForm::Choice { .. }, .. } => say(["A", "B"]),
        Fact::Constraint { form: RuleForm::Call { task, allowed: Some(allowed), .. }, .. } => {
            in_order(task, ["ask", &format!("edit({}/notes.md)", allowed.target)])
        }
        Fact::RejectedPath { reason, .. } => {
            say([&format!("Yes: {reason}."), &format!("No, it failed with {reason}.")])
        }
        Fact::Obsolete { .. } => in_order(probe.question.trim(), ["No.", "Yes."]),
        Fact::Act { arguments } => {
            let values: Vec<&str> = arguments.iter().map(|pair| pair.value.as_str()).collect();
            vec![format!("open_case({})", values.join(", "))]
        }
        // Listing what may be left out is as right.
        fact @ Fact::Artifact { .. } => {
            let files = [fact.spec().current(before), fact.spec().optional(before)].concat();
            vec![files.join("\n")]
        }
        Fact::Decoy { .. } | Fact::Unanswerable => vec!["not in context".to_owned()],
        fact => vec![fact.spec().in_words(before)],
    }
}

#[test]
fn a_reader_that_knows_what_was_planted_is_right_at_every_point() {
    let mut optional = 0;
    let mut kinds = BTreeSet::new();
    for family in FAMILIES.iter() {
        let made = made(family.name, 2);
        let probes = made.truth.facts.clone();
        let rules = GradingRules::new(&probes);
        for item in Selection::default().items(&made.session, &probes) {
            let probe = &probes[item.probe];
            let before = made.session.calls()[item.call];
            let answers = known(probe, before);
            assert_eq!(answers.len(), probe.questions().len(), "{}", probe.id);
            let verdict = rules.verdict(probe, before, &answers.join(OTHER_ORDER));
            let right = GradeVerdict::Scored { score: 1.0, outcome: Outcome::Right };
            let place = format!("{} {} at {} %", family.name, probe.id, item.percent);
            assert_eq!(verdict, right, "{place}: {answers:?}");
            optional += probe.fact.spec().optional(before).len();
            kinds.insert(probe.kind());
        }
    }
    assert!(optional > 20, "{optional} optional files");
    assert_eq!(kinds.len(), 18, "{kinds:?}");
}
