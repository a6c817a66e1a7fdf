//! Sentences, case by case.

use super::*;
use crate::compare::{Chance, Comparison, Sample, SessionSample, Settings};
use crate::stats::gate::Target;

/// A strategy that saves `saved`, with its differences from its control: axis, difference and half of the
/// one-sided interval, and p.
fn candidate(name: &str, saved: f64, axes: &[(Axis, f64, f64, f64)]) -> Candidate {
    let difference = |(axis, difference, half, p): &(Axis, f64, f64, f64)| Difference {
        axis: *axis,
        bounds: Bounds {
            lower: difference - half,
            upper: difference + half,
            interval_lower: difference - 1.2 * half,
            interval_upper: difference + 1.2 * half,
            deviation: Some(half * 2.0),
            error: Some(half / 2.0),
            freedom: 11,
            target: Target::Population,
            ..Bounds::exact(*difference, 12)
        },
        p: Some(*p),
        flip: None,
    };
    Candidate {
        name: name.to_owned(),
        control: Some(format!("tail@{name}")),
        fired: 12,
        saved: Estimate::of_sessions(&[saved - 0.01, saved, saved + 0.01], 30),
        differences: axes.iter().map(difference).collect(),
        ..Candidate::default()
    }
}

fn winner(name: &str, saved: f64) -> Candidate {
    let axes = [
        (Axis::Cost, 0.09, 0.02, 0.0005),
        (Axis::Facts, 0.01, 0.03, 0.6),
        (Axis::Actions, -0.01, 0.02, 0.4),
    ];
    candidate(name, saved, &axes)
}

fn broken(name: &str) -> Candidate {
    Candidate {
        broken: Some("died in 12 of 12, first at 33".to_owned()),
        ..candidate(name, 0.0, &[])
    }
}

fn says(clusters: usize, candidates: Vec<Candidate>) -> Vec<String> {
    let population = crate::report::display::many(clusters, "session", "sessions");
    let verdict = Verdict::of((population, clusters), clusters, candidates);
    let lines = verdict.lines().into_iter();
    lines
        .map(|it| format!("{}: {}", it.label, it.text))
        .collect()
}

#[track_caller]
fn check(clusters: usize, candidates: Vec<Candidate>, expected: &[&str]) {
    assert_eq!(says(clusters, candidates), expected);
}

#[test]
fn a_clear_winner_is_named_with_what_it_is_better_and_not_worse_on() {
    check(
        12,
        vec![winner("codex", 0.25)],
        &[
            "use: codex saves 25 % and beats its control tail@codex on cost +9 [+7, +11], and is worse \
             by no more than 5 points on facts +1 [−3, +5] and actions −1 [−3, +1]. Shown on 12 sessions.",
        ],
    );
}

#[test]
fn nothing_that_costs_more_than_full_history_is_recommended_where_that_fits() {
    let beside_full = |saved: f64| Candidate {
        full_history: Some(FullHistory {
            sessions: 12,
            of: 12,
            saved,
        }),
        ..winner("codex", saved)
    };
    check(
        12,
        vec![beside_full(-0.14)],
        &[
            "no recommendation: full history (`none`) fits the window in 12 sessions and costs less there: keep it. \
             codex beats its control tail@codex on cost +9 [+7, +11], but costs 14 % more. Compared on 12 sessions.",
            "avoid: codex: 1.1 times the cost of prompts",
        ],
    );
    assert!(says(12, vec![beside_full(0.14)])[0].starts_with("use: codex"));
    // A cheaper one beside it is recommended all the same.
    let cheaper = Candidate {
        name: "masking".to_owned(),
        ..beside_full(0.02)
    };
    let said = says(12, vec![beside_full(-0.03), cheaper]);
    assert!(said[0].starts_with("use: masking saves 2 %"), "{said:?}");
    assert_eq!(said.len(), 1);
    // Where it fits in few sessions only, something has to be done.
    let in_few = FullHistory {
        sessions: 6,
        of: 12,
        saved: -0.01,
    };
    let needed = Candidate {
        full_history: Some(in_few),
        ..winner("codex", 0.4)
    };
    assert!(says(12, vec![needed])[0].starts_with("use: codex"));
}

#[test]
fn of_many_winners_two_are_explained() {
    let names = ["a", "b", "c", "d"];
    let all = names.iter().map(|name| winner(name, 0.2)).collect();
    let said = says(12, all);
    assert_eq!(said.len(), 3);
    assert_eq!(said[2], "use: c, d beat their controls, too");
}

#[test]
fn where_none_beats_its_control_it_is_said_what_would_show_it() {
    let axes = [
        (Axis::Cost, 0.004, 0.03, 0.8),
        (Axis::Facts, 0.04, 0.04, 0.1),
        (Axis::Actions, -0.02, 0.04, 0.3),
    ];
    let said = says(12, vec![candidate("codex", 0.25, &axes)]);
    assert_eq!(
        said,
        [
            "no recommendation: codex saves 25 %, but is not shown to beat its control \
             tail@codex: cost 0 [−3, +4], facts +4 [−1, +9], actions −2 [−7, +3]. About 46 sessions like \
             these would show it, if the differences stay. Compared on 12 sessions."
        ]
    );
}

#[test]
fn differences_that_round_to_nothing_are_none_and_no_number_of_sessions_shows_them() {
    let axes = [
        (Axis::Cost, 0.004, 0.01, 0.5),
        (Axis::Actions, -0.001, 0.01, 0.8),
    ];
    check(
        12,
        vec![candidate("codex", 0.25, &axes)],
        &[
            "no recommendation: codex saves 25 %, and does the same here as its control tail@codex: \
             cost 0 [−1, +2], actions 0 [−1, +1]. Compared on 12 sessions.",
        ],
    );
}

#[test]
fn worse_by_more_than_the_margin_is_no_recommendation_however_much_it_saves() {
    let mut one = winner("codex", 0.4);
    one.differences[2].bounds = one.differences[2].bounds.moved(-0.08);
    let verdict = Verdict::of(("12 sessions".to_owned(), 12), 12, vec![one]);
    assert!(verdict.recommended.is_empty());
    assert!(verdict.contenders[0].axes[0].is_better);
    assert_eq!(
        verdict.contenders[0].sessions_needed, None,
        "no number would"
    );
}

#[test]
fn axes_that_are_not_compared_count_as_not_shown() {
    for (why, says_why) in [
        (
            "no model wrote the summaries",
            "Facts are not compared: no model wrote the summaries.",
        ),
        (
            "nothing was planted in these sessions",
            "Facts are not compared: nothing was planted in these sessions.",
        ),
    ] {
        let mut one = winner("codex", 0.25);
        one.differences.remove(1);
        one.uncompared = vec![(Axis::Facts, why)];
        let said = says(12, vec![one]);
        assert!(
            said[0].starts_with("no recommendation: codex saves 25 %"),
            "{said:?}"
        );
        assert!(said[0].contains(says_why), "{said:?}");
    }
}

#[test]
fn live_answers_take_the_place_of_facts() {
    let axes = [
        (Axis::Cost, 0.09, 0.02, 0.0005),
        (Axis::Answers, 0.01, 0.03, 0.6),
        (Axis::Actions, -0.01, 0.02, 0.4),
    ];
    let said = says(12, vec![candidate("codex", 0.25, &axes)]);
    assert!(said[0].contains("on answers +1 [−3, +5]"), "{said:?}");
}

#[test]
fn a_sign_that_an_assumption_changes_is_no_recommendation_and_both_numbers_are_said() {
    let flips = [
        (
            Flip::Edge { edge: -0.04 },
            "+9 with the usual cache breakpoints and −4 with one at the edge",
        ),
        (
            Flip::LeftOut {
                session: "s7".to_owned(),
                without: -0.01,
            },
            "Its advantage on cost is +9, and −1 without s7.",
        ),
    ];
    for (flip, says_so) in flips {
        let mut one = winner("codex", 0.25);
        one.differences[0].flip = Some(flip);
        let said = says(12, vec![one]);
        assert!(said[0].starts_with("no recommendation"), "{said:?}");
        assert!(said[0].contains(says_so), "{said:?}");
    }
}

#[test]
fn too_few_sessions_say_nothing_about_others() {
    check(
        5,
        vec![winner("codex", 0.25)],
        &[
            "no recommendation: 5 sessions are too few to say anything about others: 6 independent ones are \
             the least. Here codex differs from its control tail@codex by: cost +9, \
             facts +1, actions −1.",
        ],
    );
    // One session: no difference has an error, and so there is none.
    check(
        1,
        vec![candidate("codex", 0.25, &[])],
        &[
            "no recommendation: 1 session is too few to say anything about others: 6 independent ones are the least.",
        ],
    );
}

#[test]
fn nothing_that_ran_fired_or_survived_is_said_as_such() {
    let resting = Candidate {
        fired: 0,
        ..winner("codex", 0.0)
    };
    let died = Candidate {
        fired: 0,
        ..broken("none")
    };
    let is_broken = "every strategy that changed a session broke, or none changed one";
    let cases = [
        (
            vec![resting.clone()],
            "no strategy changed anything in these sessions",
        ),
        (vec![broken("codex"), broken("none")], is_broken),
        (vec![died.clone()], is_broken),
        (vec![died, resting], is_broken),
        (
            vec![Candidate {
                control: None,
                ..winner("codex", 0.1)
            }],
            "this run has no controls",
        ),
    ];
    for (candidates, expected) in cases {
        let said = says(12, candidates);
        assert!(said[0].contains(expected), "{said:?}");
    }
    assert!(says(0, Vec::new())[0].contains("nothing was recorded yet"));
}

#[test]
fn the_dearer_and_the_dominated_are_to_be_avoided_with_their_cause() {
    let dearer = Candidate {
        tokens_saved: Some(0.55),
        edits: 489,
        ..candidate("masking", -1.74, &[])
    };
    let sibling = candidate("masking[every=10]", 0.04, &[]);
    let (better, axes) = (winner("x", 0.0).differences.remove(0), []);
    let beaten = Candidate {
        dominated: Some(("codex".to_owned(), better)),
        ..candidate("beaten", 0.1, &axes)
    };
    let said = says(12, vec![beaten, dearer, sibling, broken("none")]);
    assert_eq!(
        said[1..],
        [
            "avoid: masking: 55 % fewer tokens, 2.7 times the cost of prompts, as 489 edits break the prompt cache; \
             masking[every=10] saves 4 %",
            "avoid: beaten: codex is no worse on any axis, and better on cost (+9 [+7, +11])",
        ]
    );
}

#[test]
fn p_values_are_adjusted_over_strategies_and_axes() {
    // Alone it is shown; among ten strategies that are not, it is not.
    let one = |p| {
        let axes = [
            (Axis::Cost, 0.09, 0.02, p),
            (Axis::Facts, 0.01, 0.03, 0.6),
            (Axis::Actions, -0.01, 0.02, 0.4),
        ];
        candidate("codex", 0.25, &axes)
    };
    let alone = Verdict::of((String::new(), 12), 12, vec![one(0.01)]);
    assert_eq!(alone.recommended, ["codex"]);
    let mut many = vec![one(0.01)];
    many.extend((0..10).map(|_| one(0.9)));
    let among = Verdict::of((String::new(), 12), 12, many);
    assert!(among.recommended.is_empty());
}

/// Eight sessions that differ a little, under two strategies: each axis before and after.
fn compared(axes: &[(&str, f64, f64)]) -> Comparison {
    let sample = |name: &str, is_after: bool| {
        let of = |number: u32| {
            let metrics = axes.iter().map(|(metric, before, after)| {
                let spread = f64::from(number) / 1_000.0;
                let value = if is_after { after + spread } else { *before };
                ((*metric).to_owned(), vec![value])
            });
            let sample = SessionSample {
                metrics: metrics.collect(),
                ..SessionSample::default()
            };
            (format!("s{number}"), sample)
        };
        Sample {
            strategy: name.to_owned(),
            definition: name.to_owned(),
            sessions: (0..8).map(of).collect(),
        }
    };
    let settings = Settings {
        target: Target::Population,
        chance: Chance::Nowhere,
        seed: 1,
    };
    Comparison::of(&sample("old", false), &sample("new", true), settings)
}

#[test]
fn a_comparison_says_which_of_two_to_use_if_that_is_shown() {
    let actions = |after| ("action_support", 0.9, after);
    let cost = |after| ("cost_savings", 0.1, after);
    for (axes, label, says) in [
        (
            [cost(0.3), actions(0.89)],
            "use",
            "new: better on cost +20 [+20, +21], and worse by no more than 5 points on actions −1 [−1, 0].",
        ),
        (
            [cost(0.3), actions(0.7)],
            "no recommendation",
            "new is better on cost +20 [+20, +21], worse on actions −20 [−20, −19].",
        ),
        (
            [cost(0.0), actions(0.7)],
            "keep",
            "old: new is worse on cost −10 [−10, −9] and actions −20 [−20, −19].",
        ),
        (
            [cost(0.09), actions(0.89)],
            "no difference",
            "new is worse by no more than 5 points on any axis, and better on none",
        ),
    ] {
        let line = of_pair(&compared(&axes));
        assert_eq!(
            (line.label, line.text.contains(says)),
            (label, true),
            "{line:?}"
        );
    }
}
