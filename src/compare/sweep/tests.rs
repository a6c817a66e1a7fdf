//! Fronts, the margin rule and the confirmation, on made-up numbers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::choice::margin_rule;
use super::*;
use crate::compare::judge::judge as judge_pair;
use crate::compare::sample::FullHistory;
use crate::compare::{ProbeSample, Rule, SessionSample};
use crate::record::Importance;

const QUALITY: Objective = Objective {
    axis: Axis::Facts,
    margin: 0.05,
};

fn tried(value: &str, scores: &[(f64, f64)]) -> Trial {
    let session = |(cost, survival): &(f64, f64)| SessionSample {
        metrics: BTreeMap::from([("bill".to_owned(), vec![1.0 - *cost])]),
        full: vec![FullHistory {
            bill: 1.0,
            tokens: 1.0,
        }],
        probes: BTreeMap::from([(
            "p@50".to_owned(),
            ProbeSample {
                kind: "recall".to_owned(),
                importance: Importance::Normal,
                survival: vec![*survival],
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

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("s{at}")).collect()
}

fn judged(tried: &[Trial]) -> Sweep {
    judge(tried, ids(3), Vec::new(), Axis::Bill, QUALITY)
}

proptest! {
    #[test]
    fn the_margin_rule_takes_the_cheapest_of_those_that_keep_enough(
        means in prop::collection::vec(([-1.0..1.0_f64, 0.0..1.0_f64], prop::bool::weighted(0.8)), 0..12),
        margin in 0.0..0.3_f64,
    ) {
        let means: Vec<Point> = means
            .into_iter()
            .map(|(point, is_whole)| if is_whole { point } else { [f64::NAN, point[1]] })
            .collect();
        let whole = || means.iter().filter(|point| point[0].is_finite());
        let best = whole().map(|point| point[1]).fold(f64::NEG_INFINITY, f64::max);
        let enough = |margin: f64| whole().filter(move |point| point[1] >= best - margin);
        let Some(found) = margin_rule(&means, margin, 0) else {
            prop_assert_eq!(whole().count(), 0);
            return Ok(());
        };
        let chosen = means[found.cheapest];
        prop_assert_eq!(found.kept_enough, enough(margin).count());
        prop_assert!((means[found.best_kept][1] - best).abs() < 1e-9);
        prop_assert!(chosen[1] >= best - margin - 1e-9);
        prop_assert!(enough(margin).all(|point| point[0] <= chosen[0] + 1e-9));
        // Nothing that is chosen is beaten in both, and a larger margin saves no less.
        prop_assert!(!whole().any(|point| point[0] > chosen[0] + 1e-9 && point[1] > chosen[1] + 1e-9));
        let wider = margin_rule(&means, margin * 2.0, 0).map(|found| means[found.cheapest][0]);
        prop_assert!(wider.is_some_and(|saved| saved >= chosen[0] - 1e-9));
    }
}

#[test]
fn a_front_of_two_settings_gives_up_a_little_for_much() {
    // 0.7 saves 5 points more than the default, and keeps 0.6 points less.
    let two = [
        tried("", &[(0.236, 0.695); 3]),
        tried("0.7", &[(0.286, 0.689); 3]),
    ];
    let sweep = judged(&two);
    let choice = &sweep.choices[0];
    assert_eq!(choice.label().as_deref(), Some("keep=0.7"));
    assert_eq!(choice.standing, Some(Standing::NotConfirmed));
    assert_eq!(choice.best_kept.as_deref(), Some("default"));
}

#[test]
fn settings_that_come_out_the_same_leave_the_default() {
    let same = [tried("1", &[(0.2, 0.8); 3]), tried("", &[(0.2, 0.8); 3])];
    assert_eq!(judged(&same).choices[0].standing, Some(Standing::Default));
}

#[test]
fn where_nothing_is_chosen_the_problem_says_why() {
    #[track_caller]
    fn check(tried: &[Trial], says: &str) {
        let sweep = judged(tried);
        let choice = &sweep.choices[0];
        assert_eq!(choice.values, None);
        assert_eq!(choice.problem.as_deref(), Some(says));
        assert!(sweep.points.iter().all(|point| point.standing.is_none()));
    }
    let dear = [
        tried("", &[(-1.5, 0.9); 3]),
        tried("11", &[(-1.4, 0.88); 3]),
        tried("1", &[(0.5, 0.6); 3]),
    ];
    check(
        &dear,
        "no setting that keeps facts within 5.0 pts of the best kept (default) saves anything \
         of the bill: keep=11 comes closest, at −140.0 %",
    );
    let mut dead = dear.to_vec();
    for session in dead
        .iter_mut()
        .flat_map(|it| it.sample.sessions.values_mut())
    {
        session.dead = 1;
        session.died_at = Some("call 37".to_owned());
    }
    check(
        &dead,
        "all 3 settings are broken; each: out of window in 3 of 3 sessions, first at call 37",
    );
    let mut unmeasured = dear.to_vec();
    for session in unmeasured
        .iter_mut()
        .flat_map(|it| it.sample.sessions.values_mut())
    {
        session.probes.clear();
    }
    check(&unmeasured, "no session has facts");
    // The measurements are printed all the same.
    let sweep = judged(&unmeasured);
    assert!(sweep.points.iter().all(|point| point.cost.is_some()));
    assert_eq!(sweep.sensitivity[0].quality_range, None);
    let known = measured(&unmeasured, &ids(3), &[Axis::Facts, Axis::Bill]);
    assert_eq!(known, [Axis::Bill]);
}

#[test]
fn each_window_has_a_front_and_a_recommendation_of_its_own() {
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
    let sweep = judged(&all);
    let choices = sweep.choices.iter();
    let chosen: Vec<(String, Standing)> = choices
        .filter_map(|choice| Some((choice.label()?, choice.standing?)))
        .collect();
    assert_eq!(
        chosen,
        [
            ("keep=2".to_owned(), Standing::NotConfirmed),
            ("default".to_owned(), Standing::Default)
        ]
    );
}

#[test]
fn a_session_that_one_setting_lacks_counts_for_none_and_is_told() {
    let mut lacking = tried("1", &[(0.9, 0.2); 3]);
    lacking.sample.sessions.remove("s2");
    let uneven = tried("", &[(0.1, 0.9), (0.1, 0.9), (0.7, 0.3)]);
    let sweep = judged(&[uneven, lacking]);
    assert_eq!(sweep.left_out, ["s2"]);
    let default = sweep.points.iter().find(|point| point.values.is_empty());
    // Its estimate rests on what the front rests on.
    let cost = default.unwrap().cost.unwrap();
    assert_eq!(cost.n.sessions, 2);
    assert!((cost.point_estimate - 0.1).abs() < 1e-12);
}

#[test]
fn a_choice_is_confirmed_if_it_is_shown_to_be_cheaper_and_no_worse() {
    let rule = Rule::of_population(1);
    // How cost and quality change, in turns up and down; what is not shown, or the problem.
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
        let findings = judge_pair(&default.sample, &chosen.sample, &rule);
        let found = Confirmation::of(&findings, Axis::Bill, QUALITY, broken(&chosen.sample));
        let claims = found.not_shown.iter().map(|missing| {
            let needed = missing.sessions_needed.map(|needed| format!(" ({needed})"));
            missing.claim.clone() + &needed.unwrap_or_default()
        });
        let text = claims
            .chain(found.problem.clone())
            .collect::<Vec<_>>()
            .join("; ");
        assert_eq!(text, says);
        assert_eq!(found.is_confirmed, says.is_empty());
        // The sweep takes it over.
        let mut sweep = judged(&[tried("", &[(0.2, 0.8); 3]), tried("1", &[(0.3, 0.8); 3])]);
        sweep.confirm(0, found);
        let standing = if says.is_empty() {
            Standing::Recommended
        } else {
            Standing::NotConfirmed
        };
        assert_eq!(sweep.choices[0].standing, Some(standing));
        let marked = sweep.points.iter().filter_map(|point| point.standing);
        assert_eq!(marked.collect::<Vec<_>>(), [standing]);
    };
    let cheaper = |t: f64| 0.2 + 0.05 * t;
    check(&|t| (cheaper(t), 0.01 * t), 12, false, "");
    // Eight points lost, give or take twelve: not shown to be worse, and not shown to be no worse.
    check(
        &|t| (cheaper(t), -0.08 + 0.15 * t),
        12,
        false,
        "that facts are worse by no more than 5.0 pts",
    );
    check(
        &|t| (cheaper(t), 0.15 * t),
        12,
        false,
        "that facts are worse by no more than 5.0 pts (63)",
    );
    check(
        &|t| (-0.01 + 0.1 * t, 0.01 * t),
        12,
        false,
        "that the bill is lower than the default's",
    );
    check(
        &|t| (cheaper(t), 0.01 * t),
        12,
        true,
        "out of window in 1 of 12 sessions",
    );
    check(
        &|t| (cheaper(t), 0.01 * t),
        4,
        false,
        "6 sessions to confirm on are needed",
    );
}

#[test]
fn what_is_broken_is_on_no_front_and_is_not_chosen() {
    let sweep = judged(&all());
    // Of 0.9, 0.85 and 0.8 the first two are within the margin.
    assert_eq!(sweep.choices[0].label().as_deref(), Some("keep=2"));
    assert_eq!(sweep.choices[0].kept_enough, 2);
    let front: Vec<String> = sweep
        .points
        .iter()
        .filter(|p| p.on_front)
        .map(SweepPoint::label)
        .collect();
    assert_eq!(front, ["keep=1", "keep=2", "default"]);
    let broken = "out of window in 3 of 3 sessions";
    assert_eq!(sweep.points[0].broken.as_deref(), Some(broken));
    assert!((sweep.sensitivity[0].quality_range.unwrap() - 0.65).abs() < 1e-12);
    assert_eq!(
        better_half(&all(), &ids(3), Axis::Bill, Axis::Facts),
        [0, 1, 2]
    );
}
