//! What is planted, before it is told.

use super::*;
use crate::session::synthetic::FAMILIES;

/// What is planted in a long session of that family.
fn planned(family: &str, seed: u64) -> (Vec<(u64, Planned)>, Vec<PlantedFact>) {
    let family = FAMILIES.iter().find(|it| it.name == family);
    let recipe = Recipe {
        seed,
        ..Recipe::default()
    };
    let (schedule, decoys) = plan(family.expect("a family"), &recipe, 200);
    (schedule.into_events(), decoys)
}

#[test]
fn questions_never_hold_the_answer_and_topics_stand_in_the_rule() {
    for seed in 0..50 {
        let family = ["code-review", "policy-support"][usize::from(seed % 2 == 1)];
        let (planned, decoys) = planned(family, seed);
        let of = |kind: &str| {
            let ids = planned.iter().map(|(_, planned)| &planned.fact.id);
            ids.filter(|id| id.starts_with(kind)).count()
        };
        let expected = [(24, 12, 8), (30, 18, 0)][usize::from(seed % 2 == 1)];
        assert_eq!((of("recall"), of("constraint"), of("error")), expected);
        assert!((16..=24).contains(&of("order")), "{}", of("order"));
        assert!((10..=14).contains(&of("open-handle")));
        let pieces = (of("obsolete"), of("indirect"), of("two-step"));
        assert_eq!(pieces, (6, 4, 6));
        assert_eq!(decoys.len(), 6);
        for (_, planned) in &planned {
            match &planned.fact.fact {
                Fact::Recall { key, value } => {
                    assert!(planned.fact.question.contains(key));
                    assert!(!planned.fact.question.contains(value));
                    assert!((2..=4).contains(&key.split(' ').count()), "{key}");
                }
                Fact::Error {
                    attempt,
                    code,
                    place,
                } => {
                    assert!(planned.fact.question.contains(attempt));
                    assert!(!planned.fact.question.contains(code));
                    assert!(!planned.fact.question.contains(place));
                }
                Fact::Order { sequence, events } => {
                    assert!(planned.fact.question.contains(sequence));
                    assert!(!planned.fact.question.contains(&events[0].value));
                }
                Fact::OpenHandle { owner, handles } => {
                    assert!(planned.fact.question.contains(owner));
                    assert!(!planned.fact.question.contains(&handles[0].name));
                }
                Fact::Indirect { key, value } => {
                    assert!(!planned.fact.question.contains(value));
                    assert!(!planned.fact.question.contains(key));
                }
                Fact::TwoStep { steps } => {
                    assert!(planned.fact.question.contains(&steps[0].key));
                    assert!(steps[1].key.contains(&steps[0].value));
                    for step in steps {
                        assert!(!planned.fact.question.contains(&step.value));
                    }
                }
                Fact::Obsolete {
                    withdrawn,
                    withdrawal,
                    standing,
                    standing_question,
                } => {
                    assert!(planned.fact.question.contains(&withdrawn.value));
                    assert!(withdrawal.contains(&withdrawn.value));
                    // The two questions differ in the two keys and values alone.
                    let other = planned
                        .fact
                        .question
                        .replace(&withdrawn.value, &standing.value);
                    let other = other.replace(&withdrawn.key, &standing.key);
                    assert_eq!(other, *standing_question);
                }
                Fact::Constraint {
                    topic, statement, ..
                } => {
                    assert!(!planned.fact.question.contains(statement.as_str()));
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
    let (planned, _) = planned("code-review", 5);
    for third in 0..3 {
        let range = third * 307..(third + 1) * 307;
        let said =
            |p: &Planned| matches!(&p.fact.fact, Fact::Recall { .. } | Fact::Constraint { .. });
        let due = planned.iter().filter(|(due, _)| range.contains(due));
        let count = due.filter(|(_, planned)| said(planned)).count();
        assert!((11..=13).contains(&count), "{third}: {count}");
    }
}
