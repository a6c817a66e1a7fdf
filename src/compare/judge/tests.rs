//! Laws of the judgement.

use std::collections::BTreeMap;

use super::*;
use crate::compare::ProbeSample;

/// Eight sessions of three repeats, each with its own level.
fn sample(shift: f64) -> Sample {
    let session = |at: u32| {
        let value = |repeat: u32| f64::from(at % 5 + repeat) / 10.0 + shift * f64::from(at);
        let values: Vec<f64> = (0..3).map(value).collect();
        let probe = ProbeSample {
            kind: "recall".to_owned(),
            weight: 3,
            survival: values.clone(),
            ..ProbeSample::default()
        };
        SessionSample {
            metrics: BTreeMap::from([("actions".to_owned(), values.clone())]),
            probes: BTreeMap::from([("p@50".to_owned(), probe)]),
            ..SessionSample::default()
        }
    };
    Sample {
        strategy: "s".to_owned(),
        sessions: (0..8).map(|at| (format!("s{at}"), session(at))).collect(),
        ..Sample::default()
    }
}

/// With copies of three sessions, each a side chain of the session that it copies.
fn with_copies(mut sample: Sample) -> Sample {
    for (main, copy) in [("s1", "s1-side-1"), ("s1", "s1-side-2"), ("s6", "a")] {
        let mut session = sample.sessions[main].clone();
        session.cluster = Some(main.to_owned());
        sample.sessions.insert(copy.to_owned(), session);
    }
    sample
}

fn rule(target: Target, chance: Chance) -> JudgingRule {
    JudgingRule { target, chance, ..JudgingRule::of_population(1) }
}

#[test]
fn a_total_over_some_of_the_sessions_says_so() {
    let (whole, mut some) = (billed("a", &[1.0; 8], &[1.0; 8]), billed("a", &[1.0; 8], &[1.0; 8]));
    for (dead, says) in
        [(0, None), (3, Some("over 5 of 8 sessions")), (7, Some("over 1 of 8 sessions"))]
    {
        for session in some.sessions.values_mut().take(dead) {
            session.dead = 1;
        }
        let found = judge(&whole, &some, &rule(Target::Suite, Chance::Nowhere));
        assert_eq!(found.axis(Axis::Bill).unwrap().scope(8).as_deref(), says);
    }
    // A session that the candidate lacks did not die on both sides.
    let mut dead = billed("a", &[1.0; 8], &[1.0; 8]);
    dead.sessions.get_mut("s00").unwrap().dead = 1;
    let mut fewer = dead.clone();
    fewer.sessions.remove("s00");
    let found = judge(&dead, &fewer, &rule(Target::Suite, Chance::Nowhere));
    assert_eq!(found.axis(Axis::Bill).unwrap().scope(7), None);
}

#[test]
fn a_session_copied_as_its_own_side_chain_changes_no_mean_and_no_interval() {
    let close = |left: Option<f64>, right: Option<f64>, what: Axis| {
        let (left, right) = (left.unwrap_or(f64::NAN), right.unwrap_or(f64::NAN));
        let both_unknown = left.is_nan() && right.is_nan();
        assert!(both_unknown || (left - right).abs() < 1e-9, "{what}");
    };
    for target in [Target::Population, Target::Suite] {
        let rule = rule(target, Chance::Everywhere);
        let of = |change: fn(Sample) -> Sample| {
            judge(&change(sample(0.0)), &change(sample(0.01)), &rule)
        };
        let (alone, copied) = (of(|sample| sample), of(with_copies));
        assert_eq!(alone.axes.len(), 2);
        for (one, two) in alone.axes.iter().zip(&copied.axes) {
            let what = one.axis;
            close(Some(one.baseline), Some(two.baseline), what);
            close(Some(one.candidate), Some(two.candidate), what);
            assert_eq!(two.paired.by_session.n.sessions, 8, "{what}");
            close(one.p(), two.p(), what);
            let [left, right] = [one, two].map(|it| it.bounds.expect("it has an error"));
            close(Some(left.difference), Some(right.difference), what);
            close(Some(left.interval_lower), Some(right.interval_lower), what);
            assert_eq!(one.state, two.state, "{what}");
        }
    }
}

/// Sessions with a bill each, and one fact.
pub(crate) fn billed(name: &str, bills: &[f64], facts: &[f64]) -> Sample {
    let sessions = bills.iter().zip(facts).enumerate().map(|(at, (bill, fact))| {
        let probe = ProbeSample {
            kind: "recall".to_owned(),
            weight: 1,
            survival: vec![*fact],
            ..ProbeSample::default()
        };
        let metrics = [("completion", 1.0), ("bill", *bill), (DOLLARS, *bill), ("actions", *fact)];
        let session = SessionSample {
            metrics: metrics.map(|(name, value)| (name.to_owned(), vec![value])).into(),
            probes: BTreeMap::from([("p@50".to_owned(), probe)]),
            ..SessionSample::default()
        };
        (format!("s{at:02}"), session)
    });
    Sample { strategy: name.to_owned(), sessions: sessions.collect(), ..Sample::default() }
}

#[test]
fn a_bill_is_a_ratio_of_sums_and_its_unit_says_nothing() {
    let bills = [1.0, 2.0, 3.0, 4.0, 5.0, 60.0, 7.0];
    let facts = [0.9; 7];
    let cheaper = bills.map(|bill| bill * 0.9);
    let (old, new) = (billed("a", &bills, &facts), billed("b", &cheaper, &facts));
    let found = judge(&old, &new, &JudgingRule::of_population(1));
    let bill = found.axis(Axis::Bill).unwrap();
    assert!((bill.difference() - 0.1).abs() < 1e-12);
    assert_eq!(bill.state, State::Better);
    assert!((bill.baseline - 82.0).abs() < 1e-9);
    // Less is better.
    assert_eq!((bill.paired.counts.wins, bill.paired.counts.losses), (7, 0));
    // Seven of seven one way: 2 · 2⁻⁷.
    assert!((bill.p().unwrap() - 2.0 / 128.0).abs() < 1e-12);
    assert!((bill.one_sided_p() - 1.0 / 128.0).abs() < 1e-12);
    assert_eq!(found.axis(Axis::Facts).unwrap().state, State::Same);
    // Cents give the same state, share and interval.
    let cents = |sample: &Sample| {
        let mut sample = sample.clone();
        for session in sample.sessions.values_mut() {
            session.metrics.get_mut(DOLLARS).unwrap()[0] *= 100.0;
        }
        sample
    };
    let again = judge(&cents(&old), &cents(&new), &JudgingRule::of_population(1));
    let again = again.axis(Axis::Bill).unwrap();
    assert!(
        (again.bounds.unwrap().interval_lower - bill.bounds.unwrap().interval_lower).abs() < 1e-12
    );
    // Where no session is priced on both sides, input tokens are compared; where some are, only those.
    let unpriced = |sample: &Sample, keeps: fn(&str) -> bool| {
        let mut sample = sample.clone();
        for (id, session) in &mut sample.sessions {
            if !keeps(id) {
                session.metrics.remove(DOLLARS);
            }
        }
        sample
    };
    let tokens = judge(&unpriced(&old, |_| false), &new, &JudgingRule::of_population(1));
    assert_eq!(tokens.axis(Axis::Bill).unwrap().missing_sessions, 0);
    let some = judge(&old, &unpriced(&new, |id| id != "s05"), &JudgingRule::of_population(1));
    let some = some.axis(Axis::Bill).unwrap();
    assert_eq!((some.missing_sessions, some.paired.by_session.n.sessions), (1, 6));
}

#[test]
fn a_loss_in_sessions_without_a_price_is_a_loss() {
    let facts = [0.9; 8];
    let unpriced = |name: &str, share: f64| {
        let bills: Vec<f64> = (0..8).map(|at| if at < 2 { share } else { 1.0 }).collect();
        let mut sample = billed(name, &bills, &facts);
        for id in ["s00", "s01"] {
            sample.sessions.get_mut(id).unwrap().metrics.remove(DOLLARS);
        }
        sample
    };
    for target in [Target::Suite, Target::Population] {
        let bill = |share| {
            let (old, new) = (unpriced("a", 1.0), unpriced("a", share));
            let found = judge(&old, &new, &rule(target, Chance::Nowhere));
            found.axis(Axis::Bill).unwrap().clone()
        };
        let (dearer, same, cheaper) = (bill(5.0), bill(1.0), bill(0.9));
        assert!(!dearer.state.is_not_worse(), "{target:?}");
        assert!((dearer.difference() + 1.0).abs() < 1e-9);
        let why = dearer.note.unwrap();
        assert_eq!(why, "the bill in input tokens, as 2 sessions have no price");
        for priced in [same, cheaper] {
            assert!(priced.is_in_dollars && priced.note.is_none());
            assert_eq!(priced.state, State::Same);
        }
    }
}

#[test]
fn text_by_a_stand_in_is_compared_with_itself_alone() {
    let written = |name: &str, kind: Option<ModelKind>| {
        let mut sample = billed(name, &[1.0; 7], &[0.5; 7]);
        sample.writer = kind.map(|kind| ModelEntry { name: format!("{kind:?}"), kind });
        sample
    };
    let state = |left: &Sample, right: &Sample| {
        let found = judge(left, right, &JudgingRule::of_population(1));
        assert_eq!(found.axis(Axis::Bill).unwrap().state, State::Same);
        let facts = found.axis(Axis::Facts).unwrap();
        (facts.state, facts.note.clone().unwrap_or_default())
    };
    let rules = |name: &str| written(name, Some(ModelKind::Deterministic));
    let verbatim = written("tail@2", None);
    let apart = (State::NotComparable, "rules wrote the summaries of codex".to_owned());
    assert_eq!(state(&verbatim, &rules("codex")), apart);
    assert_eq!(state(&rules("codex"), &verbatim), apart);
    assert_eq!(state(&rules("aider"), &rules("codex")).0, State::NotComparable);
    let one = (State::Same, "as written by rules".to_owned());
    assert_eq!(state(&rules("codex"), &rules("codex[keep=2]")), one);
    let live = |name: &str| written(name, Some(ModelKind::Live));
    assert_eq!(state(&verbatim, &live("codex")).0, State::Same);
    assert_eq!(state(&live("codex"), &rules("codex")).0, State::NotComparable);
}

#[test]
fn fewer_than_six_sessions_say_nothing_unless_nothing_differs() {
    let of = |count: usize, factor: f64| {
        let bills = vec![2.0; count];
        let new: Vec<f64> = bills.iter().map(|bill| bill * factor).collect();
        let facts = vec![1.0; count];
        let found = judge(
            &billed("a", &bills, &facts),
            &billed("a", &new, &facts),
            &JudgingRule::of_population(1),
        );
        found.axis(Axis::Bill).unwrap().state
    };
    assert_eq!(of(5, 0.5), State::Unknown);
    assert_eq!(of(6, 0.5), State::Better);
    assert_eq!(of(6, 1.5), State::Worse);
    assert_eq!(of(5, 1.0), State::Same);
    assert_eq!((least_differing(1), least_differing(7), least_differing(57)), (6, 9, 12));
}
