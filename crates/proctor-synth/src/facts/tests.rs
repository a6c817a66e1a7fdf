//! Tests the planted facts before a session says them.

use super::*;
use crate::FAMILIES;

/// The planted facts of a long session of that family.
fn planned(family: &str, seed: u64) -> (Vec<Event<Planned>>, Vec<PlantedFact>) {
    let family = FAMILIES.iter().find(|it| it.name == family);
    let recipe = Recipe {
        seed,
        ..Recipe::default()
    };
    let (schedule, facts) = plan(family.expect("a family"), &recipe, 200);
    (schedule.into_events(), facts)
}

#[test]
fn questions_never_hold_the_answer_and_topics_stand_in_the_rule() {
    for seed in 0..50 {
        let family = ["code-review", "policy-support"][usize::from(seed % 2 == 1)];
        let (planned, facts) = planned(family, seed);
        let of = |kind: &str| {
            let ids = planned.iter().map(|event| &facts[event.what.fact].id);
            ids.filter(|id| id.starts_with(kind)).count()
        };
        let expected = [(24, 12, 8), (30, 18, 0)][usize::from(seed % 2 == 1)];
        assert_eq!((of("recall"), of("constraint"), of("error")), expected);
        assert!((16..=24).contains(&of("order")), "{}", of("order"));
        assert!((10..=14).contains(&of("open-handle")));
        let pieces = (of("obsolete"), of("indirect"), of("two-step"));
        assert_eq!(pieces, (6, 4, 6));
        let decoys = facts.iter().filter(|fact| fact.id.starts_with("decoy"));
        assert_eq!(decoys.count(), 6);
        for Event { what: planned, .. } in &planned {
            let fact = &facts[planned.fact];
            if let Content::Part(_, part) = &planned.content {
                assert!(!fact.question.contains(part));
            }
            match &fact.fact {
                Fact::Recall { key, value } => {
                    assert!(fact.question.contains(key));
                    assert!(!fact.question.contains(value));
                    assert!((2..=4).contains(&key.split(' ').count()), "{key}");
                }
                Fact::Error {
                    attempt,
                    code,
                    place,
                } => {
                    assert!(fact.question.contains(attempt));
                    assert!(!fact.question.contains(code));
                    assert!(!fact.question.contains(place));
                }
                Fact::Order { sequence, .. } => assert!(fact.question.contains(sequence)),
                Fact::OpenHandle { owner, .. } => assert!(fact.question.contains(owner)),
                Fact::Indirect { key, value } => {
                    assert!(!fact.question.contains(value));
                    assert!(!fact.question.contains(key));
                }
                Fact::TwoStep { steps } => {
                    assert!(fact.question.contains(&steps[0].key));
                    assert!(steps[1].key.contains(&steps[0].value));
                    for step in steps {
                        assert!(!fact.question.contains(&step.value));
                    }
                }
                Fact::Obsolete {
                    withdrawn,
                    withdrawal,
                    standing,
                    standing_question,
                } => {
                    assert!(fact.question.contains(&withdrawn.value));
                    assert!(withdrawal.contains(&withdrawn.value));
                    // The two questions differ in the two keys and values alone.
                    let other = fact.question.replace(&withdrawn.value, &standing.value);
                    let other = other.replace(&withdrawn.key, &standing.key);
                    assert_eq!(other, *standing_question);
                }
                Fact::Constraint {
                    topic, statement, ..
                } => {
                    assert!(!fact.question.contains(statement.as_str()));
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
    let (planned, facts) = planned("code-review", 5);
    for third in 0..3 {
        let range = third * 307..(third + 1) * 307;
        let said = |p: &Planned| {
            let fact = &facts[p.fact].fact;
            matches!(fact, Fact::Recall { .. } | Fact::Constraint { .. })
        };
        let due = planned.iter().filter(|event| range.contains(&event.due));
        let count = due.filter(|event| said(&event.what)).count();
        assert!((11..=13).contains(&count), "{third}: {count}");
    }
}
