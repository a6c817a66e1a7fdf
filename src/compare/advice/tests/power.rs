//! How often the judgement is right, in worlds whose truth is known. `scripts/power` prints the tables of
//! `docs/reference/statistics.md` from here.

use rayon::prelude::*;

use super::tests::{bill_of, row, world};
use std::fmt::Write as _;
use std::io::Write as _;

use super::*;
use crate::compare::gate::{Rules, Verdict as Gated, gate};
use crate::compare::judge::tests::billed;
use crate::compare::words::percent;
use crate::compare::{Chance, Target};
use crate::stats::draw::Draws;
use crate::stats::quantile;

/// Runs of each world about a population.
const RUNS: u64 = 200;

/// The most of them in which something may be found where there is nothing.
const MOST: usize = 17;

/// Runs about a suite, where little is drawn.
const RUNS_OF_A_SUITE: u64 = 20;

/// The usual spread of a difference from session to session.
const SPREAD: f64 = 0.08;

/// What a strategy saves of the bill of doing nothing, what it keeps against doing nothing, and against its
/// control.
type Truth = (f64, f64, f64);

const NOISE: Truth = (0.0, 0.0, 0.0);
const SAVES: Truth = (0.1, 0.0, 0.0);
const KEEPS: Truth = (0.0, 0.0, 0.15);
const LOSES: Truth = (0.1, -0.08, 0.15);
const AT_THE_MARGIN: Truth = (0.1, -0.05, 0.15);
const WINNER: Truth = (0.1, 0.0, 0.15);

/// What is drawn for each session.
#[derive(Clone, Copy)]
struct Drawn {
    sessions: usize,
    spread: f64,
    quality: Quality,
}

/// Whether facts and actions are one number or two.
#[derive(Clone, Copy)]
enum Quality {
    One,
    Two,
}

/// How a bill grows.
#[derive(Clone, Copy)]
enum Growth {
    /// By the same share in every session.
    Constant,
    /// In a quarter of the sessions, by so much that the total grows by the share.
    Concentrated,
}

/// Draws of a normal distribution.
struct Normal(Draws);

impl Normal {
    fn around(&mut self, mean: f64, spread: f64) -> f64 {
        let place = (self.0.index(1 << 20) as f64 + 0.5) / f64::from(1 << 20);
        mean + spread * quantile::normal(place).unwrap()
    }

    /// So many draws.
    fn all(&mut self, count: usize, mean: f64, spread: f64) -> Vec<f64> {
        (0..count).map(|_| self.around(mean, spread)).collect()
    }

    /// A strategy and its control.
    fn row(&mut self, name: &str, truth: Truth, drawn: Drawn) -> RunRow {
        let (facts, of_control) = self.kept(truth, drawn);
        let mut sample = billed(name, &self.bills(truth, drawn), &facts);
        let tail = format!("tail@{name}");
        let mut control = billed(&tail, &self.bills(truth, drawn), &of_control);
        if let Quality::Two = drawn.quality {
            let (own, of_control) = self.kept(truth, drawn);
            set_actions(&mut sample, own);
            set_actions(&mut control, of_control);
        }
        RunRow {
            sample,
            control: Some(control),
            ..row(name, drawn.sessions, (1.0, 1.0), (1.0, 1.0))
        }
    }

    fn bills(&mut self, (saves, ..): Truth, drawn: Drawn) -> Vec<f64> {
        let shares = self.all(drawn.sessions, 1.0 - saves, drawn.spread).into_iter().enumerate();
        shares.map(|(at, share)| bill_of(at) * share).collect()
    }

    /// The share that a strategy keeps in each session, and that of its control.
    fn kept(&mut self, (_, keeps, over_control): Truth, drawn: Drawn) -> (Vec<f64>, Vec<f64>) {
        let kept = self.all(drawn.sessions, 1.0 + keeps, drawn.spread);
        let over = self.all(drawn.sessions, over_control, drawn.spread);
        let of_control = kept.iter().zip(over).map(|(own, over)| own - over).collect();
        (kept, of_control)
    }

    /// What a program with a drawn element leaves: bill, facts, actions and, where it is asked, answers.
    fn program(&mut self, sessions: usize, spread: f64, has_reader: bool) -> Sample {
        let [bills, facts, actions, answers] = [0; 4].map(|_| self.all(sessions, 0.8, spread));
        let mut sample = billed("program", &bills, &facts);
        set_actions(&mut sample, actions);
        for (session, right) in sample.sessions.values_mut().zip(answers) {
            for probe in session.probes.values_mut().filter(|_| has_reader) {
                probe.accuracy = vec![right];
            }
        }
        sample
    }
}

fn set_actions(sample: &mut Sample, actions: Vec<f64>) {
    for (session, share) in sample.sessions.values_mut().zip(actions) {
        session.metrics.insert("actions".to_owned(), vec![share]);
    }
}

/// The first of these strategies among others of noise.
fn among(truth: Truth, strategies: usize) -> Vec<Truth> {
    let mut truths = vec![NOISE; strategies];
    truths[0] = truth;
    truths
}

/// In how many of so many runs one of these strategies is recommended.
fn used(runs: u64, drawn: Drawn, truths: &[Truth]) -> usize {
    let worlds = (0..runs).into_par_iter().map(|seed| {
        let mut normal = Normal(Draws::new(seed, "power of the advice"));
        let rows = truths.iter().enumerate();
        let rows = rows.map(|(at, truth)| normal.row(&format!("s{at}"), *truth, drawn));
        world(drawn.sessions, true, rows.collect())
    });
    worlds.filter(|world| world.cases().iter().any(|case| case.is_recommended)).count()
}

/// The verdict of a gate with the usual rules. About a population, results depend on chance.
fn gated(old: &Sample, new: &Sample, target: Target) -> Gated {
    let chance = match target {
        Target::Suite => Chance::Nowhere,
        Target::Population => Chance::Everywhere,
    };
    let rule = JudgingRule { target, chance, ..JudgingRule::of_population(1) };
    let findings = judge::judge(old, new, &rule);
    gate(&findings, [old, new], &Rules::default(), 1).verdict
}

/// In how many of so many runs the gate fails where the total bill grows by a share, and that of each session has a
/// spread besides.
fn failed(target: Target, growth: Growth, share: f64, sessions: usize, spread: f64) -> usize {
    let runs = match target {
        Target::Suite => RUNS_OF_A_SUITE,
        Target::Population => RUNS,
    };
    let grown = match growth {
        Growth::Constant => sessions,
        Growth::Concentrated => sessions.div_ceil(4),
    };
    let verdicts = (0..runs).into_par_iter().map(|seed| {
        let mut normal = Normal(Draws::new(seed, "power of the gate"));
        // Some sessions cost a multiple of others.
        let sizes = normal.all(sessions, 0.0, 0.5);
        let old: Vec<f64> = sizes.into_iter().map(libm::exp).collect();
        let more = share * old.iter().sum::<f64>() / old[..grown].iter().sum::<f64>();
        let mut new = Vec::new();
        for (at, bill) in old.iter().enumerate() {
            let more = if at < grown { more } else { 0.0 };
            new.push(bill * normal.around(1.0 + more, spread));
        }
        let facts = vec![0.8; sessions];
        let [old, new] = [old, new].map(|bills| billed("program", &bills, &facts));
        gated(&old, &new, target)
    });
    verdicts.filter(|verdict| *verdict == Gated::Regressed).count()
}

/// In how many of 200 runs the gate fails for a program with a drawn element against itself.
fn failed_against_itself(sessions: usize, spread: f64, has_reader: bool) -> usize {
    let verdicts = (0..RUNS).into_par_iter().map(|seed| {
        let mut normal = Normal(Draws::new(seed, "a program against itself"));
        // The difference of two draws has the spread.
        let each = spread / f64::sqrt(2.0);
        let [old, new] = [0; 2].map(|_| normal.program(sessions, each, has_reader));
        gated(&old, &new, Target::Population)
    });
    let failed = verdicts.filter(|verdict| *verdict == Gated::Regressed);
    failed.count()
}

#[test]
fn noise_is_recommended_in_no_more_than_17_of_200_runs_and_a_clear_winner_is_found() {
    let mut drawn = Drawn { sessions: 12, spread: SPREAD, quality: Quality::One };
    // The last are one strategy and its twin.
    for truths in [&[NOISE; 7][..], &[SAVES; 7], &[KEEPS; 7], &[SAVES]] {
        let used = used(RUNS, drawn, truths);
        assert!(used <= MOST, "{used} of {RUNS}: {truths:?}");
    }
    drawn.spread /= 2.0;
    let found = used(20, drawn, &among(WINNER, 7));
    assert!(found >= 18, "{found} of 20");
    for growth in [Growth::Constant, Growth::Concentrated] {
        let failed = failed(Target::Suite, growth, 0.03, 6, 0.0);
        assert!(failed >= 19, "{failed} of {RUNS_OF_A_SUITE}");
    }
}

/// Prints the head of a table: columns of words on the left of those of numbers.
fn print_head(out: &mut String, words: &[&str], numbers: &[&str]) {
    let _ = writeln!(out, "\n| {} |", [words, numbers].concat().join(" | "));
    let [left, right] = [":--|".repeat(words.len()), "--:|".repeat(numbers.len())];
    let _ = writeln!(out, "|{left}{right}");
}

/// A share of runs in percent.
fn share(count: usize, runs: u64) -> String {
    percent(count as f64 / runs as f64)
}

/// Recommendations by what is true of the strategies, for facts and actions as one number and as two.
fn print_advice(out: &mut String) {
    let numbers =
        ["sessions", "spread", "saves", "keeps", "over control", "*use*, one", "*use*, two"];
    print_head(out, &["strategies"], &numbers);
    let winner = "1, and 6 of chance";
    for (strategies, truths, sessions, spread) in [
        ("7", vec![NOISE; 7], 12, SPREAD),
        ("7", vec![SAVES; 7], 12, SPREAD),
        ("7", vec![KEEPS; 7], 12, SPREAD),
        ("7", vec![LOSES; 7], 12, SPREAD),
        ("7", vec![AT_THE_MARGIN; 7], 12, SPREAD),
        (winner, among(WINNER, 7), 12, SPREAD),
        (winner, among(WINNER, 7), 12, SPREAD / 2.0),
        ("1", vec![WINNER], 6, SPREAD),
        ("1", vec![WINNER], 6, SPREAD / 2.0),
    ] {
        let (saves, keeps, over_control) = truths[0];
        let numbers = [spread, saves, keeps, over_control];
        let numbers = numbers.map(|value| format!("{:.0}", value * 100.0).replace('-', "−"));
        let used = [Quality::One, Quality::Two].map(|quality| {
            let drawn = Drawn { sessions, spread, quality };
            share(used(RUNS, drawn, &truths), RUNS)
        });
        let _ = writeln!(
            out,
            "| {strategies} | {sessions} | {} | {} |",
            numbers.join(" | "),
            used.join(" | ")
        );
    }
}

/// Gates that fail by how much a bill grows, with 6, 8, 12 and 20 sessions.
fn print_growth(out: &mut String) {
    let numbers = ["spread", "+1 %", "+2 %", "+3 %", "+5 %", "+10 %"];
    print_head(out, &["about the", "the bill grows"], &numbers);
    for (target, spread, runs) in [
        (Target::Suite, 0.0, RUNS_OF_A_SUITE),
        (Target::Population, SPREAD / 2.0, RUNS),
        (Target::Population, SPREAD, RUNS),
    ] {
        for (growth, place) in
            [(Growth::Constant, "everywhere"), (Growth::Concentrated, "in a quarter")]
        {
            let rates = [0.01, 0.02, 0.03, 0.05, 0.1].map(|more| {
                let all = [6, 8, 12, 20];
                let counts = all.map(|sessions| failed(target, growth, more, sessions, spread));
                counts.map(|count| share(count, runs)).join(" · ")
            });
            let (spread, rates) = (percent(spread), rates.join(" | "));
            let _ = writeln!(out, "| {} | {place} | {spread} | {rates} |", target.name());
        }
    }
}

/// Of 200 gates of a program against itself, those that fail with 8, 12 and 20 sessions.
fn print_against_itself(out: &mut String) {
    print_head(out, &["metrics"], &["spread 4", "spread 8"]);
    for (metrics, has_reader) in [("bill, facts, actions", false), ("and answers", true)] {
        let failed = [SPREAD / 2.0, SPREAD].map(|spread| {
            let all = [8, 12, 20];
            let counts = all.map(|sessions| failed_against_itself(sessions, spread, has_reader));
            counts.map(|count| count.to_string()).join(" · ")
        });
        let _ = writeln!(out, "| {metrics} | {} |", failed.join(" | "));
    }
}

#[test]
#[ignore = "prints tables: `scripts/power`"]
fn prints_the_tables_of_comparing() {
    let mut out = String::new();
    print_advice(&mut out);
    print_growth(&mut out);
    print_against_itself(&mut out);
    std::io::stdout().write_all(out.as_bytes()).unwrap();
}
