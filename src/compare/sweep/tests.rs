//! Fronts, knees and what confirms them, on made-up estimates.

use std::collections::BTreeMap;

use super::*;
use crate::compare::{ProbeSample, SessionSample};
use crate::record::Importance;

fn tried(value: &str, scores: &[(f64, f64)]) -> Trial {
    let session = |(cost, survival): &(f64, f64)| SessionSample {
        metrics: BTreeMap::from([("cost_savings".to_owned(), vec![*cost])]),
        probes: BTreeMap::from([(
            "p@50".to_owned(),
            ProbeSample {
                kind: "recall".to_owned(),
                importance: Importance::Normal,
                survival: vec![*survival],
                extract: Vec::new(),
                accuracy: Vec::new(),
                answers: Vec::new(),
                lost_at: None,
            },
        )]),
        ..SessionSample::default()
    };
    let sessions = scores
        .iter()
        .enumerate()
        .map(|(at, s)| (format!("s{at}"), session(s)));
    Trial {
        values: if value.is_empty() {
            Vec::new()
        } else {
            vec![("keep".to_owned(), value.to_owned())]
        },
        sample: Sample {
            sessions: sessions.collect(),
            ..Sample::default()
        },
    }
}

fn all() -> Vec<Trial> {
    let mut dead = tried("0", &[(0.99, 1.0); 3]);
    dead.sample
        .sessions
        .values_mut()
        .for_each(|session| session.dead = 1);
    vec![
        tried("", &[(0.1, 0.9); 3]),
        tried("1", &[(0.9, 0.2); 3]),
        tried("2", &[(0.7, 0.85); 3]),
        tried("3", &[(0.6, 0.8); 3]),
        dead,
    ]
}

#[test]
fn what_costs_more_than_no_compaction_is_never_recommended() {
    let sessions: Vec<String> = (0..3).map(|at| format!("s{at}")).collect();
    let judged = |tried: &[Trial]| {
        let sweep = judge(
            tried,
            sessions.clone(),
            Vec::new(),
            "cost_savings",
            "survival",
        );
        let names = sweep.recommendations.iter().map(Recommendation::label);
        names.collect::<Vec<_>>().join("; ")
    };
    let dear = [
        tried("", &[(-1.5, 0.9); 3]),
        tried("11", &[(-1.4, 0.88); 3]),
        tried("5", &[(-0.2, 0.8); 3]),
    ];
    assert_eq!(judged(&dear), "");
    let mut one_saves = dear.to_vec();
    one_saves.push(tried("1", &[(0.5, 0.6); 3]));
    assert_eq!(judged(&one_saves), "keep=1");
}

#[test]
fn each_window_has_a_front_and_a_recommendation_of_its_own() {
    let sessions: Vec<String> = (0..3).map(|at| format!("s{at}")).collect();
    let within = |window: &str, keep: &str, cost: f64, kept: f64| {
        let mut point = tried(keep, &[(cost, kept); 3]);
        let window = ("window.tokens".to_owned(), window.to_owned());
        point.values.insert(0, window);
        point
    };
    let all = [
        tried("", &[(0.1, 0.9); 3]),
        within("40000", "", 0.3, 0.7),
        within("40000", "2", 0.4, 0.75),
        // In the larger window everything keeps more: that is not the merit of a setting.
        within("80000", "", 0.2, 0.95),
        within("80000", "2", 0.1, 0.9),
    ];
    let sweep = judge(&all, sessions, Vec::new(), "cost_savings", "survival");
    let names: Vec<(String, bool)> = sweep
        .recommendations
        .iter()
        .map(|found| (found.label(), found.is_default))
        .collect();
    assert_eq!(
        names,
        [
            ("window.tokens=40000, keep=2".to_owned(), false),
            ("window.tokens=80000".to_owned(), true)
        ]
    );
}

#[test]
fn a_session_that_one_setting_lacks_counts_for_none_and_is_told() {
    let sessions: Vec<String> = (0..3).map(|at| format!("s{at}")).collect();
    let mut lacking = tried("1", &[(0.9, 0.2); 3]);
    lacking.sample.sessions.remove("s2");
    let uneven = tried("", &[(0.1, 0.9), (0.1, 0.9), (0.7, 0.3)]);
    let sweep = judge(
        &[uneven, lacking],
        sessions,
        Vec::new(),
        "cost_savings",
        "survival",
    );
    assert_eq!(sweep.left_out, ["s2"]);
    let default = sweep.points.iter().find(|point| point.values.is_empty());
    // Its estimate rests on what the front rests on.
    let cost = default.unwrap().cost.unwrap();
    assert_eq!(cost.n.sessions, 2);
    assert!((cost.point_estimate - 0.1).abs() < 1e-12);
}

#[test]
fn to_beat_the_default_is_to_gain_in_one_and_to_be_shown_no_worse_in_the_other() {
    use crate::compare::{Chance, Settings};
    use crate::stats::gate::Target;
    let settings = Settings {
        target: Target::Population,
        chance: Chance::Everywhere,
        seed: 1,
    };
    let check = |change: &dyn Fn(f64) -> (f64, f64), sessions: usize, dead: bool, says: &str| {
        let base: Vec<(f64, f64)> = (0..sessions).map(|_| (0.2, 0.8)).collect();
        let turn = |at: usize| if at.is_multiple_of(2) { 1.0 } else { -1.0 };
        let other: Vec<(f64, f64)> = (0..sessions)
            .map(|at| {
                let (cost, kept) = change(turn(at));
                (0.2 + cost, 0.8 + kept)
            })
            .collect();
        let default = tried("", &base);
        let mut chosen = tried("1", &other);
        if dead {
            chosen.sample.sessions.values_mut().next().unwrap().dead = 1;
        }
        let comparison = Comparison::of(&default.sample, &chosen.sample, settings);
        let objective = |metric| Objective {
            metric,
            margin: 0.05,
        };
        let found = Confirmation::of(
            &comparison,
            objective("cost_savings"),
            objective("survival"),
            broken(&chosen.sample),
        );
        assert!(found.says.contains(says), "{}\n{says}", found.says);
        assert_eq!(
            found.beats_default,
            says.starts_with("it beats"),
            "{}",
            found.says
        );
    };
    check(
        &|t| (0.2 + 0.05 * t, 0.01 * t),
        12,
        false,
        "it beats the default on 12 sessions",
    );
    // Eight points lost, give or take twelve: not shown to be worse, and not shown to be no worse.
    check(
        &|t| (0.2 + 0.05 * t, -0.08 + 0.15 * t),
        12,
        false,
        "better in cost_savings, but survival may be worse by more than 5.0 pts",
    );
    check(&|t| (0.1 * t, 0.01 * t), 12, false, "better in neither");
    check(
        &|t| (0.2 + 0.05 * t, 0.01 * t),
        12,
        true,
        "there 1 session died",
    );
    check(&|t| (0.2 + 0.05 * t, 0.01 * t), 4, false, "6 are needed");
}

#[test]
fn the_knee_is_recommended_and_what_is_broken_is_on_no_front() {
    let sessions: Vec<String> = (0..3).map(|at| format!("s{at}")).collect();
    let sweep = judge(
        &all(),
        sessions.clone(),
        Vec::new(),
        "cost_savings",
        "survival",
    );
    let chosen = sweep.points.iter().find(|point| point.recommended).unwrap();
    assert_eq!(chosen.label(), "keep=2");
    let front: Vec<String> = sweep
        .points
        .iter()
        .filter(|p| p.on_front)
        .map(SweepPoint::label)
        .collect();
    assert_eq!(front, ["keep=1", "keep=2", "default"]);
    assert_eq!(sweep.points[0].broken.as_deref(), Some("3 sessions died"));
    assert!((sweep.sensitivity[0].quality_range - 0.65).abs() < 1e-12);
    assert_eq!(
        better_half(&all(), &sessions, "cost_savings", "survival"),
        [0, 1, 2]
    );
}
