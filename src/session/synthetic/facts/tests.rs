//! What is planted, before it is told.

use super::*;
use crate::session::synthetic::words::{HELP_DESK_FACTS, REPOSITORY_FACTS};

fn numbers(words: &'static WorkFacts) -> Numbers {
    Numbers {
        recalls: 24,
        constraints: 12,
        errors: 6,
        orders: 3,
        handles: 2,
        obsolete: 2,
        indirect: 4,
        two_steps: 3,
        requests: true,
        decoys: 6,
        words,
        distractors: None,
        ways: Ways {
            most: usize::MAX,
            language: Language::English,
        },
    }
}

#[test]
fn questions_never_hold_the_answer_and_topics_stand_in_the_rule() {
    for seed in 0..50 {
        let words = [&REPOSITORY_FACTS, &HELP_DESK_FACTS][usize::from(seed % 2 == 1)];
        let (Pending(planned), decoys) = plan(seed, numbers(words), 1_000);
        let of = |kind: &str| {
            planned
                .iter()
                .filter(|p| p.fact.id.starts_with(kind))
                .count()
        };
        assert_eq!((of("recall"), of("constraint"), of("error")), (24, 12, 6));
        assert!((12..=18).contains(&of("order")), "{}", of("order"));
        assert!((10..=14).contains(&of("open-handle")));
        let pieces = (of("obsolete"), of("indirect"), of("two-step"));
        assert_eq!(pieces, (4, 4, 6));
        assert_eq!(decoys.len(), 6);
        for planned in &planned {
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
    let (Pending(planned), _) = plan(5, numbers(&REPOSITORY_FACTS), 1_000);
    for third in 0..3 {
        let range = third * 307..(third + 1) * 307;
        let said =
            |p: &&Planned| matches!(&p.fact.fact, Fact::Recall { .. } | Fact::Constraint { .. });
        let due = planned.iter().filter(|p| range.contains(&p.due));
        let count = due.filter(said).count();
        assert!((11..=13).contains(&count), "{third}: {count}");
    }
}
