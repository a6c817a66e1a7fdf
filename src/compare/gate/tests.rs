//! Tests of the gate.

use super::*;
use std::collections::BTreeMap;

use crate::compare::judge::judge;
use crate::compare::{Chance, JudgingRule, ProbeSample, Sample, SessionSample};

/// Twenty sessions of ten probes, all right; each session weighs a little less than the one before.
fn sample() -> Sample {
    let probe = || ProbeSample {
        kind: "recall".to_owned(),
        weight: 3,
        survival: vec![1.0],
        accuracy: vec![1.0],
        ..ProbeSample::default()
    };
    let session = |at: u32| SessionSample {
        metrics: BTreeMap::from([
            ("completion".to_owned(), vec![1.0]),
            ("tokens".to_owned(), vec![1_000.0 + f64::from(at)]),
        ]),
        probes: (0..10).map(|at| (format!("p{at}@50"), probe())).collect(),
        ..SessionSample::default()
    };
    Sample {
        sessions: (0..20).map(|at| (format!("s{at:02}"), session(at))).collect(),
        ..Sample::default()
    }
}

fn rule(target: Target, chance: Chance) -> JudgingRule {
    JudgingRule { target, chance, ..JudgingRule::of_population(1) }
}

fn gated(alter: impl Fn(&mut Sample), chance: Chance, rules: &Rules) -> (Findings, GateResult) {
    let baseline = sample();
    let mut candidate = sample();
    alter(&mut candidate);
    let comparison = judge(&baseline, &candidate, &rule(Target::Population, chance));
    let gated = gate(&comparison, [&baseline, &candidate], rules, 1);
    (comparison, gated)
}

fn dies(sample: &mut Sample) {
    let session = sample.sessions.get_mut("s07").unwrap();
    session.metrics.insert("completion".to_owned(), vec![0.5]);
    session.dead = 1;
    session.died_at = Some("call 31".to_owned());
}

#[test]
fn one_session_of_twenty_that_newly_dies_breaks_the_gate_though_no_mean_is_sure() {
    let (_, broken) = gated(dies, Chance::Answers, &Rules::default());
    let completion = broken.axes.iter().find(|it| it.axis == Axis::Completion);
    assert_eq!(completion.unwrap().verdict, Verdict::Inconclusive);
    assert_eq!(broken.verdict, Verdict::Regressed);
    assert_eq!(broken.deaths[0].session, "s07");
    assert_eq!(broken.deaths[0].at.as_deref(), Some("call 31"));
    // By chance once: the report says so, and nothing is as good as before.
    let (_, unsure) = gated(dies, Chance::Everywhere, &Rules::default());
    assert_eq!((unsure.deaths.len(), unsure.unconfirmed_deaths.len()), (0, 1));
    assert_eq!(unsure.verdict, Verdict::Inconclusive);
    let (_, same) = gated(|_| {}, Chance::Everywhere, &Rules::default());
    assert_eq!(same.verdict, Verdict::NonInferior);
}

#[test]
fn what_a_summariser_never_sees_breaks_the_gate_where_the_baseline_kept_it() {
    // Of two hundred facts so many are newly lost; the summariser sees none of those, and none of a hundred others.
    for (lost, breaks) in [(0, false), (10, false), (11, true)] {
        let alter = |sample: &mut Sample| {
            let sessions = sample.sessions.values_mut();
            for probe in sessions.flat_map(|own| own.probes.values_mut()).take(lost) {
                probe.survival = vec![0.0];
            }
            sample.sessions.get_mut("s00").unwrap().unseen = Some((100 + lost, 200));
        };
        let rules = Rules { hard_break: false, ..Rules::default() };
        let (_, gated) = gated(alter, Chance::Nowhere, &rules);
        assert_eq!(!gated.avoided.is_empty(), breaks, "{lost}: {:?}", gated.avoided);
    }
}

#[test]
fn one_draw_of_a_live_summariser_loses_no_probe_for_sure() {
    let lose = |sample: &mut Sample| {
        let session = sample.sessions.get_mut("s03").unwrap();
        session.probes.get_mut("p4@50").unwrap().survival = vec![0.0];
    };
    let (_, exact) = gated(lose, Chance::Answers, &Rules::default());
    assert_eq!((exact.lost.len(), exact.unconfirmed.len()), (1, 0));
    assert_eq!(exact.verdict, Verdict::Regressed);
    let (_, by_chance) = gated(lose, Chance::Everywhere, &Rules::default());
    assert_eq!((by_chance.lost.len(), by_chance.unconfirmed.len()), (0, 1));
    assert_ne!(by_chance.verdict, Verdict::Regressed);
}

#[test]
fn what_is_always_scored_does_not_hide_the_answers_that_are_missing() {
    // Eight answers of 200: 96 % of them, and 98 % of all items.
    let silent = |sample: &mut Sample| {
        for session in sample.sessions.values_mut().take(8) {
            session.probes.get_mut("p0@50").unwrap().accuracy.clear();
        }
    };
    let (comparison, gated) = gated(silent, Chance::Answers, &Rules::default());
    assert!((comparison.coverage.share() - 0.96).abs() < 1e-12);
    let says = gated.coverage.unwrap();
    assert!(says.starts_with("answers: scored 192 of the baseline's 200 items"), "{says}");
    assert_eq!(gated.verdict, Verdict::Regressed);
}

/// The verdict on one metric without a rule for coverage.
fn said(alter: impl Fn(&mut Sample), axis: Axis) -> (Verdict, String) {
    let rules = Rules { coverage: 0.0, ..Rules::default() };
    let (_, gated) = gated(alter, Chance::Nowhere, &rules);
    let found = gated.axes.into_iter().find(|found| found.axis == axis).unwrap();
    (found.verdict, found.reason.unwrap_or_default())
}

#[test]
fn what_is_missing_is_never_as_good_as_before() {
    use Verdict::{Inconclusive, NonInferior, Regressed};
    let (verdict, reason) = said(|_| {}, Axis::Completion);
    assert_eq!((verdict, &*reason), (NonInferior, ""));
    let gone = |sample: &mut Sample| {
        sample.sessions.remove("s07");
    };
    let (verdict, reason) = said(gone, Axis::Completion);
    assert_eq!((verdict, &*reason), (Inconclusive, "1 sessions are missing"));
    // A tenth of the answers, by which the margin of a twentieth could be missed.
    let silent = |sample: &mut Sample| {
        for session in sample.sessions.values_mut() {
            session.probes.get_mut("p0@50").unwrap().accuracy.clear();
        }
    };
    let (verdict, reason) = said(silent, Axis::Answers);
    let turns = "20 pairs were not scored, which could turn the verdict";
    assert_eq!((verdict, &*reason), (Inconclusive, turns));
    // It does not make a sure loss unsure.
    let worse = |sample: &mut Sample| {
        silent(sample);
        for session in sample.sessions.values_mut() {
            for at in 1..6 {
                let probe = session.probes.get_mut(&format!("p{at}@50")).unwrap();
                probe.accuracy = vec![0.0];
            }
        }
    };
    assert_eq!(said(worse, Axis::Answers).0, Regressed);
}

#[test]
fn a_probe_is_lost_where_no_repeat_has_it_and_unscored_where_one_side_does_not_ask_it() {
    let changed = |survival: &[f64]| {
        let lose = |sample: &mut Sample| {
            let session = sample.sessions.get_mut("s03").unwrap();
            session.probes.get_mut("p4@50").unwrap().survival = survival.to_vec();
        };
        let (comparison, _) = gated(lose, Chance::Nowhere, &Rules::default());
        comparison.changed[0].lost
    };
    assert!(changed(&[0.0; 3]));
    assert!(!changed(&[1.0, 0.0, 0.0]));
    let more = |sample: &mut Sample| {
        let session = sample.sessions.get_mut("s03").unwrap();
        let probe = session.probes["p4@50"].clone();
        session.probes.insert("p99@50".to_owned(), probe);
    };
    let (comparison, _) = gated(more, Chance::Nowhere, &Rules::default());
    assert_eq!(comparison.axis(Axis::Facts).unwrap().paired.unscored, 1);
}

#[test]
fn an_amount_of_nothing_has_no_margin_and_says_so() {
    let mut rules = Rules::default();
    rules.margins.set("tokens", 0.02).unwrap();
    let tokens =
        |gated: &GateResult| gated.axes.iter().find(|it| it.axis == Axis::Tokens).unwrap().clone();
    let dearer = |sample: &mut Sample| {
        for session in sample.sessions.values_mut() {
            session.metrics.get_mut("tokens").unwrap()[0] *= 1.5;
        }
    };
    let (comparison, more) = gated(dearer, Chance::Everywhere, &rules);
    assert_eq!(tokens(&more).verdict, Verdict::Regressed);
    // The share of the total, and the test flips the signs of the amounts.
    let found = comparison.axis(Axis::Tokens).unwrap();
    assert!((found.by_cluster[3].1 + 501.5).abs() < 1e-9);
    assert!((found.bounds.unwrap().difference + 0.5).abs() < 1e-12);
    let free = |sample: &mut Sample| {
        for session in sample.sessions.values_mut() {
            session.metrics.insert("tokens".to_owned(), vec![0.0]);
        }
    };
    // One side for nothing is a share of something; nothing on both sides is the same.
    let (_, less) = gated(free, Chance::Everywhere, &rules);
    assert_eq!(tokens(&less).verdict, Verdict::Improved);
    let mut nothing = sample();
    free(&mut nothing);
    let of = |new: &Sample| {
        let comparison = judge(&nothing, new, &rule(Target::Suite, Chance::Nowhere));
        tokens(&gate(&comparison, [&nothing, new], &rules, 1))
    };
    assert_eq!(of(&nothing).verdict, Verdict::NonInferior);
    let told = of(&sample());
    assert_eq!(told.verdict, Verdict::Inconclusive);
    assert!(told.reason.unwrap().contains("total is 0"));
}

#[test]
fn a_session_that_died_earlier_has_saved_nothing() {
    let mut rules = Rules::default();
    rules.margins.set("tokens", 0.02).unwrap();
    let dies_cheaply = |sample: &mut Sample| {
        dies(sample);
        let session = sample.sessions.get_mut("s07").unwrap();
        session.metrics.insert("tokens".to_owned(), vec![1.0]);
    };
    let (comparison, one) = gated(dies_cheaply, Chance::Everywhere, &rules);
    let tokens = comparison.axis(Axis::Tokens).unwrap();
    assert_eq!(tokens.missing_sessions, 1);
    assert_eq!(tokens.paired.by_session.n.sessions, 19);
    assert!(tokens.difference().abs() < 1e-12);
    let told = one.axes.iter().find(|it| it.axis == Axis::Tokens).unwrap();
    assert_eq!(told.verdict, Verdict::Inconclusive);
    assert!(told.reason.as_deref().unwrap().contains("different calls"));
    // Two that end at the same call made the same calls.
    let mut both = sample();
    dies(&mut both);
    let rule = rule(Target::Population, Chance::Everywhere);
    let comparison = judge(&both, &both, &rule);
    assert_eq!(comparison.axis(Axis::Tokens).unwrap().missing_sessions, 0);
    // One that dies no more is not compared, and is no gap.
    let comparison = judge(&both, &sample(), &rule);
    let tokens = comparison.axis(Axis::Tokens).unwrap();
    assert_eq!(tokens.missing_sessions, 0);
    assert_eq!(tokens.paired.by_session.n.sessions, 19);
}

#[test]
fn about_a_suite_what_depends_on_chance_is_judged_as_about_a_population() {
    let (old, mut new) = (sample(), sample());
    let session = new.sessions.values_mut().next().unwrap();
    session.probes.values_mut().next().unwrap().accuracy = vec![0.0];
    let comparison = judge(&old, &new, &rule(Target::Suite, Chance::Answers));
    assert_eq!(comparison.target, Target::Suite);
    let [facts, answers] = [Axis::Facts, Axis::Answers].map(|axis| comparison.axis(axis).unwrap());
    assert!(facts.bounds.unwrap().is_exact());
    assert!(!answers.bounds.unwrap().is_exact());
}

#[test]
fn verdicts_come_in_their_order_and_an_improvement_needs_the_margin() {
    use Verdict::{Improved, Inconclusive, NonInferior, Regressed};
    let around = |difference: f64, error: f64, sessions: usize| {
        let values: Vec<f64> =
            (0..sessions).map(|at| difference + if at % 2 == 0 { error } else { -error }).collect();
        let estimate = crate::stats::Estimate::of_sessions(&values, sessions).unwrap();
        Bounds::estimated(&estimate).unwrap()
    };
    let of = |bounds: &Bounds| Verdict::of(bounds, Target::Population, 0.05, 1, None);
    assert_eq!(of(&around(0.10, 0.02, 20)), Improved);
    assert_eq!(of(&around(0.0, 0.02, 20)), NonInferior);
    // Shown to be below 0, and within the margin: the margin decides.
    assert_eq!(of(&around(-0.02, 0.02, 20)), NonInferior);
    assert_eq!(of(&around(0.04, 0.02, 20)), NonInferior);
    assert_eq!(of(&around(-0.10, 0.02, 20)), Regressed);
    assert_eq!(of(&around(-0.01, 0.3, 20)), Inconclusive);
    assert_eq!(of(&around(0.0, 0.02, 4)), Inconclusive);
    let exact = |difference: f64, margin: f64| {
        Verdict::of(&Bounds::exact(difference, 3), Target::Suite, margin, 8, None)
    };
    assert_eq!(exact(0.0, 0.0), NonInferior);
    assert_eq!(exact(-0.001, 0.0), Regressed);
    assert_eq!(exact(-0.04, 0.05), NonInferior);
    assert_eq!(exact(-0.06, 0.05), Regressed);
    // Exactly the margin is within it, in spite of rounding.
    assert_eq!(exact(1.0 - 1.02, 0.02), NonInferior);
    assert_eq!(exact(1.02 - 1.0, 0.02), NonInferior);
    assert_eq!(exact(0.06, 0.05), Improved);
    // Among many comparisons each must be surer.
    let worse = around(-0.10, 0.19, 20);
    assert_eq!(of(&worse), Regressed);
    assert_eq!(Verdict::of(&worse, Target::Population, 0.05, 8, None), Inconclusive);
}

#[test]
fn what_one_side_alone_has_is_never_as_good_as_before() {
    let (old, mut new) = (sample(), sample());
    for session in new.sessions.values_mut() {
        session.metrics.insert("bill".to_owned(), vec![1.0]);
    }
    let of = |old: &Sample, new: &Sample| {
        let comparison = judge(old, new, &rule(Target::Suite, Chance::Nowhere));
        let gated = gate(&comparison, [old, new], &Rules::default(), 1);
        let bill = gated.axes.iter().find(|gated| gated.axis == Axis::Bill).cloned();
        (gated.verdict, bill.and_then(|bill| bill.reason).unwrap_or_default())
    };
    let (verdict, reason) = of(&old, &new);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert_eq!(reason, "the baseline has none that could be compared");
    assert_eq!(of(&new, &old).1, "the candidate has none that could be compared");
    assert_eq!(of(&old, &old).0, Verdict::NonInferior);
}
