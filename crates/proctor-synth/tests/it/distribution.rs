//! How large results are, how many come at once, and how long nobody does anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use proctor_sessions::units::Tokens;
use proctor_synth::{FAMILIES, Generated, Length};

use super::{counts, made_in, rounds, size};
use crate::goldens::sampled;

/// Families in which a person goes away.
const AWAY: [&str; 3] = ["pause-return", "policy-support", "marathon"];

/// Sessions of one family, long enough for a tail.
fn sessions(family: &str) -> Vec<Arc<Generated>> {
    let made = |seed| made_in(family, seed, Length::Rounds(200));
    (1..=6).map(made).collect()
}

fn sizes(made: &[Arc<Generated>]) -> Vec<usize> {
    let messages = made.iter().flat_map(|made| made.session.messages());
    let mut sizes: Vec<usize> = messages
        .flat_map(|message| {
            let results = message.tool_results();
            results.map(|(block, _)| message.model_text()[block].len())
        })
        .collect();
    sizes.sort_unstable();
    sizes
}

/// A normal distribution of logarithms has a tail that a symmetrical one has not: the largest of a
/// hundred is many times the middle one, and so is the middle one of the smallest of ten.
#[test]
fn results_are_heavy_tailed_in_every_family() {
    for family in sampled(FAMILIES.iter()) {
        let name = family.name;
        let sizes = sizes(&sessions(name));
        let at = |permille: usize| sizes[(sizes.len() - 1) * permille / 1_000];
        let [p10, p50, p90, p99, max] = [100, 500, 900, 990, 1_000].map(at);
        println!("{name:<18} {p10:>6} {p50:>6} {p90:>6} {p99:>7} {max:>7}");
        let middle = if name == "policy-support" { 100..900 } else { 500..5_000 };
        assert!(middle.contains(&p50), "{name}: {p50}");
        assert!(p90 > 2 * p50, "{name}: {p90} of {p50}");
        assert!(p99 > 5 * p50, "{name}: {p99} of {p50}");
        assert!(p50 > 3 * p10, "{name}: {p50} of {p10}");
        assert!((3_000..=520_000).contains(&max), "{name}: {max}");
    }
}

#[test]
fn half_a_megabyte_comes_in_one_result_where_that_is_the_point_or_the_session_is_long() {
    let largest = |made: &[Arc<Generated>]| sizes(made).pop().unwrap_or(0);
    let huge = largest(&sessions("huge-outputs"));
    assert!((400_000..=520_000).contains(&huge), "{huge}");
    let long = largest(&[made_in("marathon", 2, Length::Rounds(2_500))]);
    assert!((80_000..=520_000).contains(&long), "{long}");
    let short = largest(&sessions("policy-support"));
    assert!(short < 30_000, "{short}");
}

#[test]
fn tools_are_used_at_once_in_every_family_and_alone_in_every_family() {
    for family in sampled(FAMILIES.iter()) {
        let mut calls: BTreeMap<bool, usize> = BTreeMap::new();
        for made in sessions(family.name) {
            for message in made.session.messages() {
                match message.tool_uses().count() {
                    0 => {}
                    count => *calls.entry(count > 1).or_default() += 1,
                }
            }
        }
        let share = calls[&true] * 100 / (calls[&true] + calls[&false]);
        println!("{}: {share} % at once", family.name);
        assert!((10..=70).contains(&share), "{}: {share}", family.name);
    }
}

#[test]
fn nobody_is_away_but_where_that_is_the_point() {
    for family in sampled(FAMILIES.iter()) {
        let (mut minutes, mut hours) = (0, 0);
        for made in sessions(family.name) {
            let messages = made.session.messages().iter();
            let times: Vec<i64> = messages.map(|it| it.details.timestamp.unwrap().0).collect();
            for pair in times.windows(2) {
                match pair[1] - pair[0] {
                    gap if gap > 3_600_000 => hours += 1,
                    gap if gap > 300_000 => minutes += 1,
                    _ => {}
                }
            }
        }
        println!("{}: {minutes} over 5 m, {hours} over 1 h", family.name);
        if AWAY.contains(&family.name) {
            assert!(minutes >= 6 && hours >= 6, "{}", family.name);
        } else {
            assert_eq!((minutes, hours), (0, 0), "{}", family.name);
        }
    }
}

#[test]
fn results_are_heavy_tailed_and_observations_have_their_share() {
    let counts = counts();
    let mut sizes: Vec<usize> = Vec::new();
    let (mut per_round, mut shares) = (Vec::new(), Vec::new());
    for seed in 1..=8 {
        let made = rounds(seed, 120);
        let session = &made.session;
        let results: Vec<&Arc<str>> = session
            .messages()
            .iter()
            .flat_map(|m| m.tool_results().map(|(block, _)| &m.model_text()[block]))
            .collect();
        let observed: Tokens = results.iter().map(|text| counts.size(text).tokens).sum();
        let all = size(session, &counts);
        let share = observed.0 * 100 / all.0;
        shares.push(share);
        per_round.push(all.0 / 120);
        sizes.extend(results.iter().map(|text| text.len()));
    }
    sizes.sort_unstable();
    let at = |share: usize| sizes[(sizes.len() - 1) * share / 1_000];
    println!(
        "results {}: p10 {} median {} p75 {} p95 {} p99 {} max {}; tokens per round {per_round:?}; share of observations {shares:?}",
        sizes.len(),
        at(100),
        at(500),
        at(750),
        at(950),
        at(990),
        at(1_000)
    );
    assert!(shares.iter().all(|share| (26..=84).contains(share)), "{shares:?}");
    assert!((1_500..=4_000).contains(&at(500)), "{}", at(500));
    assert!((9_000..=25_000).contains(&at(950)), "{}", at(950));
    assert!((40_000..=200_000).contains(&at(1_000)), "{}", at(1_000));
    let mean = per_round.iter().sum::<u64>() / per_round.len() as u64;
    assert!((1_500..=2_600).contains(&mean), "{mean}");
}

#[test]
fn a_long_session_holds_results_forty_times_the_usual_and_none_above_half_a_megabyte() {
    let made = rounds(1, 3_000);
    let sizes = made.session.messages().iter().flat_map(|message| {
        message.tool_results().map(|(block, _)| message.model_text()[block].len())
    });
    let largest = sizes.max().unwrap_or(0);
    assert!((80_000..=520_000).contains(&largest), "{largest}");
}
