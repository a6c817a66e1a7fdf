//! Fronts, the margin rule and the confirmation, on made-up numbers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::choice::margin_rule;
use super::*;
use crate::compare::judge::judge as judge_pair;
use crate::compare::sample::FullHistory;
use crate::compare::{JudgingRule, ProbeSample, Sample, SessionSample};

const BILL: Objective = Objective { axis: Axis::Bill, margin: 0.02 };
const QUALITY: Objective = Objective { axis: Axis::Facts, margin: 0.05 };

fn tried(value: &str, scores: &[(f64, f64)]) -> Trial {
    let session = |(cost, survival): &(f64, f64)| SessionSample {
        metrics: BTreeMap::from([("bill".to_owned(), vec![1.0 - *cost])]),
        full: vec![FullHistory { bill: 1.0, tokens: 1.0, fits: true }],
        probes: BTreeMap::from([(
            "p@50".to_owned(),
            ProbeSample {
                kind: "recall".to_owned(),
                weight: 1,
                survival: vec![*survival],
                ..ProbeSample::default()
            },
        )]),
        ..SessionSample::default()
    };
    let sessions = scores.iter().enumerate().map(|(at, s)| (format!("s{at}"), session(s)));
    let values = [("keep".to_owned(), value.to_owned())];
    let values = values.into_iter().filter(|(_, value)| !value.is_empty());
    let sample = Sample { sessions: sessions.collect(), ..Sample::default() };
    Trial::new(values.collect(), sample, value.is_empty())
}

/// The same setting, dead in each session.
fn dead(trial: &Trial) -> Trial {
    let mut sample = trial.sample.clone();
    for session in sample.sessions.values_mut() {
        session.dead = 1;
        session.died_at = Some("call 37".to_owned());
    }
    Trial::new(trial.values.clone(), sample, trial.is_default)
}

fn all() -> Vec<Trial> {
    vec![
        tried("", &[(0.1, 0.9); 3]),
        tried("1", &[(0.9, 0.2); 3]),
        tried("2", &[(0.7, 0.85); 3]),
        tried("3", &[(0.6, 0.8); 3]),
        dead(&tried("0", &[(0.99, 1.0); 3])),
    ]
}

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("s{at}")).collect()
}

fn judged(tried: &[Trial]) -> Sweep {
    judge(tried, ids(3), Vec::new(), [BILL, QUALITY])
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
        let Some(found) = margin_rule(&means, margin, &[0; 12]) else {
            prop_assert_eq!(whole().count(), 0);
            return Ok(());
        };
        let chosen = means[found.cheapest];
        prop_assert_eq!(found.enough.len(), enough(margin).count());
        prop_assert!((means[found.best_kept][1] - best).abs() < 1e-9);
        prop_assert!(chosen[1] >= best - margin - 1e-9);
        prop_assert!(enough(margin).all(|point| point[0] <= chosen[0] + 1e-9));
        // Nothing that is chosen is beaten in both, and a larger margin saves no less.
        prop_assert!(!whole().any(|point| point[0] > chosen[0] + 1e-9 && point[1] > chosen[1] + 1e-9));
        let wider = margin_rule(&means, margin * 2.0, &[0; 12]).map(|found| means[found.cheapest][0]);
        prop_assert!(wider.is_some_and(|saved| saved >= chosen[0] - 1e-9));
    }
}

#[test]
fn a_bill_is_that_of_dollars_where_all_have_a_price() {
    // The one session is of a model that costs nine times as much.
    let mut trial = tried("1", &[(0.5, 1.0), (-0.5, 1.0)]);
    let saved = |trial: &Trial| {
        let trial = Trial::new(Vec::new(), trial.sample.clone(), false);
        judge(&[tried("", &[(0.0, 1.0); 2]), trial], ids(2), Vec::new(), [BILL, QUALITY]).points
    };
    let of = |points: &[SweepPoint]| {
        let mut saved = points.iter().filter_map(|point| point.cost).map(|it| it.point_estimate);
        saved.find(|saved| *saved != 0.0)
    };
    assert_eq!(of(&saved(&trial)), None);
    for (id, price) in [("s0", 1.0), ("s1", 9.0)] {
        let metrics = &mut trial.sample.sessions.get_mut(id).unwrap().metrics;
        let dollars = metrics["bill"][0] * price;
        metrics.insert("dollars".to_owned(), vec![dollars]);
    }
    assert!(of(&saved(&trial)).is_some_and(|saved| (saved + 0.4).abs() < 1e-9));
    trial.sample.sessions.get_mut("s0").unwrap().metrics.remove("dollars");
    assert_eq!(of(&saved(&trial)), None);
}

#[test]
fn a_setting_that_beats_the_default_on_both_is_chosen_before_it() {
    // The best kept costs more than the default; of those that keep no less than that, `2` costs the least. The default
    // written out is no setting of its own.
    let mut twin = tried("0", &[(0.1, 0.5); 3]);
    twin.is_default = true;
    let all = [
        tried("", &[(0.1, 0.5); 3]),
        twin,
        tried("1", &[(-0.5, 0.9); 3]),
        tried("2", &[(0.3, 0.6); 3]),
        tried("3", &[(0.4, 0.4); 3]),
    ];
    let choice = &judged(&all).choice;
    assert_eq!(choice.label().as_deref(), Some("keep=2"));
    assert_eq!(choice.dearer.as_deref(), Some("keep=1"));
    let near = judged(&all[..2]).choice.kept_enough;
    assert_eq!(near, 1);
}

#[test]
fn a_front_of_two_settings_gives_up_a_little_for_much() {
    // 0.7 saves 5 points more than the default, and keeps 0.6 points less.
    let two = [tried("", &[(0.236, 0.695); 3]), tried("0.7", &[(0.286, 0.689); 3])];
    let sweep = judged(&two);
    let choice = &sweep.choice;
    assert_eq!(choice.label().as_deref(), Some("keep=0.7"));
    assert_eq!(choice.standing, Some(Standing::NotConfirmed));
    assert_eq!(choice.best_kept.as_deref(), Some("default"));
}

#[test]
fn settings_that_come_out_the_same_leave_the_default() {
    let same = [tried("1", &[(0.2, 0.8); 3]), tried("", &[(0.2, 0.8); 3])];
    assert_eq!(judged(&same).choice.standing, Some(Standing::Default));
}

#[test]
fn where_nothing_is_chosen_the_problem_says_why() {
    #[track_caller]
    fn check(tried: &[Trial], says: &str) {
        let sweep = judged(tried);
        let choice = &sweep.choice;
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
    check(
        &dear.each_ref().map(dead),
        "all 3 settings are broken; each: out of window in 3 of 3 sessions, first at call 37",
    );
    let idle = [tried("", &[(-0.9, 0.8); 3]), tried("300", &[(0.0, 1.0); 3])];
    check(
        &idle,
        "no setting that keeps facts within 5.0 pts of the best kept (keep=300) saves anything \
         of the bill: keep=300 changes nothing, which is cheaper than the default and keeps more",
    );
    let mut unmeasured = dear.to_vec();
    for session in unmeasured.iter_mut().flat_map(|it| it.sample.sessions.values_mut()) {
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
fn a_session_that_one_setting_lacks_counts_for_none_and_is_told() {
    let mut lacking = tried("1", &[(0.9, 0.2); 3]);
    lacking.sample.sessions.remove("s2");
    let uneven = tried("", &[(0.1, 0.9), (0.1, 0.9), (0.7, 0.3)]);
    let both = [uneven, lacking];
    let mut held = both.clone();
    held[1].held_against(&both[0].sample);
    let lacks = Some("not measurable in 1 of 3 sessions".to_owned());
    assert_eq!(held[1].broken, lacks);
    let sweep = judged(&both);
    assert_eq!(sweep.left_out, ["s2"]);
    let default = sweep.points.iter().find(|point| point.values.is_empty());
    // Its estimate rests on what the front rests on.
    let cost = default.unwrap().cost.unwrap();
    assert_eq!(cost.n.sessions, 2);
    assert!((cost.point_estimate - 0.1).abs() < 1e-12);
}

#[test]
fn a_choice_is_confirmed_if_it_is_shown_to_be_cheaper_and_no_worse() {
    let rule = JudgingRule::of_population(1);
    // How cost and quality change, in turns up and down; what is not shown, or the problem.
    let check = |change: &dyn Fn(f64) -> (f64, f64), sessions: usize, is_dead: bool, says: &str| {
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
        if is_dead {
            chosen.sample.sessions.values_mut().next().unwrap().dead = 1;
        }
        let findings = judge_pair(&default.sample, &chosen.sample, &rule);
        let found = Confirmation::of(&findings, Axis::Bill, QUALITY, chosen.sample.broken());
        let claims = found.not_shown.iter().map(|missing| {
            let needed = missing.sessions_needed.map(|needed| format!(" ({needed})"));
            missing.claim.clone() + &needed.unwrap_or_default()
        });
        let text = claims.chain(found.problem.clone()).collect::<Vec<_>>().join("; ");
        assert_eq!(text, says);
        assert_eq!(found.is_confirmed, says.is_empty());
        // The sweep takes it over.
        let mut sweep = judged(&[tried("", &[(0.2, 0.8); 3]), tried("1", &[(0.3, 0.8); 3])]);
        sweep.confirm(found);
        let standing = if says.is_empty() { Standing::Recommended } else { Standing::NotConfirmed };
        assert_eq!(sweep.choice.standing, Some(standing));
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
    check(&|t| (-0.01 + 0.1 * t, 0.01 * t), 12, false, "that the bill is lower than the default's");
    check(&|t| (cheaper(t), 0.01 * t), 12, true, "out of window in 1 of 12 sessions");
    check(&|t| (cheaper(t), 0.01 * t), 4, false, "6 sessions to confirm on are needed");
}

#[test]
fn what_is_broken_is_on_no_front_and_is_not_chosen() {
    let sweep = judged(&all());
    // Of 0.9, 0.85 and 0.8 the first two are within the margin.
    assert_eq!(sweep.choice.label().as_deref(), Some("keep=2"));
    assert_eq!(sweep.choice.kept_enough, 2);
    let front: Vec<String> =
        sweep.points.iter().filter(|p| p.on_front).map(SweepPoint::label).collect();
    assert_eq!(front, ["keep=1", "keep=2", "default"]);
    let broken = "out of window in 3 of 3 sessions, first at call 37";
    assert_eq!(sweep.points[0].broken.as_deref(), Some(broken));
    assert!((sweep.sensitivity[0].quality_range.unwrap() - 0.65).abs() < 1e-12);
}

/// A grid of two knobs, `wait` down and `keep` across, and the default, which is the setting at `default`.
fn grid(rows: &[&[(f64, f64)]], default: [usize; 2]) -> Vec<Trial> {
    let mut all = Vec::new();
    for (row, cells) in rows.iter().enumerate() {
        for (column, scores) in cells.iter().enumerate() {
            let mut setting = tried(&column.to_string(), &[*scores; 3]);
            setting.values.insert(0, ("wait".to_owned(), row.to_string()));
            setting.is_default = default == [row, column];
            if setting.is_default {
                all.push(tried("", &[*scores; 3]));
            }
            all.push(setting);
        }
    }
    all
}

/// The choice with its neighbours in words.
#[track_caller]
fn check_beside(rows: &[&[(f64, f64)]], default: [usize; 2], says: &str) {
    let sweep = judged(&grid(rows, default));
    let choice = &sweep.choice;
    let found = choice.neighbours.as_ref().map_or_else(
        || "none".to_owned(),
        |beside| {
            let edge = beside.edge.as_ref();
            let edge = edge.map_or_else(String::new, |(knob, value)| format!(", {knob}={value}"));
            let (alike, tried) = (beside.alike, beside.tried);
            format!("{:?} {alike} of {tried}{edge}", beside.shape)
        },
    );
    let label = choice.label();
    assert_eq!(format!("{}: {found}", label.as_deref().unwrap_or("-")), says);
}

#[test]
fn a_choice_is_on_a_plateau_or_stands_alone() {
    let (low, high) = ((0.1, 0.8), (0.5, 0.8));
    let flat = (0.48, 0.8);
    check_beside(
        &[&[low, flat, low], &[flat, high, flat], &[low, flat, low]],
        [0, 0],
        "wait=1, keep=1: Plateau 4 of 4",
    );
    check_beside(
        &[&[low, low, low], &[low, high, low], &[low, low, low]],
        [0, 0],
        "wait=1, keep=1: Spike 0 of 4",
    );
    check_beside(
        &[&[low, low, flat], &[low, flat, high], &[low, low, low]],
        [0, 0],
        "wait=1, keep=2: Slope 2 of 3",
    );
    // In a corner, what is worse on one side says nothing of the other.
    check_beside(
        &[&[low, low, low], &[low, low, low], &[low, low, high]],
        [0, 0],
        "wait=2, keep=2: Slope 0 of 2, keep=2",
    );
    // Beyond a word there is nothing.
    let mut words = grid(&[&[low, low, high]], [0, 0]);
    for (_, value) in words.iter_mut().flat_map(|setting| &mut setting.values) {
        *value = format!("\"{value}\"");
    }
    assert_eq!(judged(&words).choice.neighbours.as_ref().unwrap().edge, None);
    // What saves more and keeps less is another trade, and what is broken says nothing.
    let more = (0.9, 0.4);
    check_beside(
        &[&[low, low, low], &[more, high, low], &[low, low, low]],
        [0, 0],
        "wait=1, keep=1: Spike 0 of 4",
    );
    check_beside(&[&[more, high, low]], [0, 2], "keep=1: Slope 0 of 2");
    // One setting beside it is no plateau.
    check_beside(&[&[high, flat]], [0, 1], "keep=0: Slope 1 of 1");
    // Each metric has its own margin: three points are the same facts, and another bill.
    let (dearer, fewer) = ((0.47, 0.8), (0.5, 0.77));
    check_beside(&[&[dearer, high, dearer]], [0, 0], "keep=1: Spike 0 of 2");
    check_beside(&[&[fewer, high, fewer]], [0, 0], "keep=1: Plateau 2 of 2");
    // The default is found where it is written out.
    check_beside(
        &[&[low, flat, low], &[flat, high, flat], &[low, flat, low]],
        [1, 1],
        "default: Plateau 4 of 4",
    );
}

#[test]
fn a_spike_is_not_recommended_though_other_sessions_confirm_it() {
    let (low, high) = ((0.1, 0.8), (0.5, 0.8));
    let rows: [&[(f64, f64)]; 3] = [&[low, low, low], &[low, high, low], &[low, low, low]];
    let mut sweep = judged(&grid(&rows, [0, 0]));
    let confirmation = Confirmation {
        cost: None,
        quality: None,
        sessions: 6,
        is_confirmed: true,
        not_shown: Vec::new(),
        problem: None,
    };
    sweep.confirm(confirmation);
    assert_eq!(sweep.choice.standing, Some(Standing::NotConfirmed));
}

#[test]
fn a_knob_does_nothing_if_no_value_of_it_changes_a_number() {
    let idle = |rows: &[&[(f64, f64)]]| -> Vec<String> {
        let sweep = judged(&grid(rows, [0, 0]));
        let knobs = sweep.sensitivity.into_iter().filter(|knob| knob.does_nothing);
        knobs.map(|knob| knob.knob).collect()
    };
    let (one, other) = ((0.1, 0.8), (0.2, 0.8));
    assert_eq!(idle(&[&[one, other], &[one, other]]), ["wait"]);
    assert_eq!(idle(&[&[one, one], &[other, other]]), ["keep"]);
    assert_eq!(idle(&[&[one, one], &[one, one]]), ["wait", "keep"]);
    // In one row it does.
    assert_eq!(idle(&[&[one, one], &[one, other]]), [""; 0]);
}

#[test]
fn where_full_history_does_not_fit_a_choice_may_cost_more_than_it() {
    let mut both = [tried("", &[(-1.5, 0.8); 3]), tried("1", &[(-0.1, 0.8); 3])];
    assert_eq!(judged(&both).choice.label(), None);
    let sessions = both.iter_mut().flat_map(|trial| trial.sample.sessions.values_mut());
    sessions.flat_map(|session| &mut session.full).for_each(|full| full.fits = false);
    assert_eq!(judged(&both).choice.label().as_deref(), Some("keep=1"));
}

proptest! {
    #[test]
    fn the_margin_that_a_trade_names_chooses_it(
        scores in prop::collection::vec((-1.0..1.0_f64, 0.0..1.0_f64), 2..10),
    ) {
        let mut all = vec![tried("", &[scores[0]; 3])];
        let others = scores[1..].iter().enumerate();
        all.extend(others.map(|(at, score)| tried(&at.to_string(), &[*score; 3])));
        let sweep = judged(&all);
        let choice = &sweep.choice;
        let saved = |values: &Option<Vec<(String, String)>>| {
            let point = sweep.points.iter().find(|point| Some(&point.values) == values.as_ref());
            point.and_then(|point| point.cost).map(|cost| cost.point_estimate)
        };
        let Some(trade) = &choice.trade else {
            // Nothing on the front saves more.
            let chosen = saved(&choice.values).unwrap_or(0.0);
            let most = sweep.points.iter().filter(|point| point.on_front).filter_map(|point| point.cost).map(|cost| cost.point_estimate);
            prop_assert!(most.fold(f64::NEG_INFINITY, f64::max) <= chosen.max(0.0) + 1e-9);
            return Ok(());
        };
        prop_assert!(trade.given_up > QUALITY.margin);
        let wider = Objective { axis: Axis::Facts, margin: trade.margin };
        let again = judge(&all, ids(3), Vec::new(), [BILL, wider]);
        let chosen = &again.choice;
        prop_assert_eq!(chosen.values.as_ref(), Some(&trade.values));
        prop_assert!(trade.margin - trade.given_up < 0.001 + 1e-9);
    }
}

#[test]
fn what_keeps_more_and_costs_more_than_the_default_leaves_the_default() {
    let two =
        [tried("", &[(0.1, 0.6); 3]), tried("1", &[(0.05, 0.9); 3]), tried("2", &[(0.3, 0.58); 3])];
    let choice = &judged(&two).choice;
    assert_eq!(choice.standing, Some(Standing::Default));
    assert_eq!(choice.dearer.as_deref(), Some("keep=1"));
    let trade = choice.trade.as_ref().map(Trade::label);
    assert_eq!(trade.as_deref(), Some("keep=2"));
}
