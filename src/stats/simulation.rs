//! Whether the tests keep their promise: of experiments in which nothing changed, one in twenty may
//! be called a change.
//!
//! Nothing differs between the two strategies below but chance: their session effects come from the
//! same distribution. Every method that Proctor uses must stay at or below 7 %, and the methods that it
//! refuses must be seen to exceed 8 % somewhere, so that this test can fail.
#![cfg(test)]

use std::sync::LazyLock;

use rayon::prelude::*;

use super::bounds::Bounds;
use super::draw::Draws;
use super::{Estimate, bootstrap, quantile, signflip};

/// Experiments of each kind. The standard error of a share of 5 % is 0.4 points with `PROCTOR_SCAN=all`, and
/// otherwise 0.6.
#[expect(clippy::disallowed_methods, reason = "asks whether to try everything")]
static RUNS: LazyLock<u32> = LazyLock::new(|| {
    if std::env::var_os("PROCTOR_SCAN").is_some_and(|value| value == "all") { 2_500 } else { 1_250 }
});
const SESSIONS: [usize; 4] = [6, 8, 20, 40];
const MOST: f64 = 0.07;
const TOO_OFTEN: f64 = 0.08;

#[derive(Debug, Clone, Copy)]
enum Process {
    /// Sessions differ in difficulty, and each strategy has a normal effect of its own on each.
    LogitNormal,
    /// The same, with effects that have Student's t of 2 degrees of freedom: now and then one session
    /// goes all wrong.
    HeavyTailed,
    /// Nine pairs of ten are ties; those that differ go one way within a session.
    MostlyTies,
}

const PROCESSES: [Process; 3] = [Process::LogitNormal, Process::HeavyTailed, Process::MostlyTies];

/// Rejections of the null, by method.
#[derive(Debug, Clone, Copy, Default)]
struct RejectionCounts {
    session_t: u32,
    sign_flip: u32,
    /// The gate's one-sided bound: `regressed`, with a margin of 0.
    regressed: u32,
    bootstrap: u32,
    mcnemar: u32,
    probe_level_t: u32,
}

impl RejectionCounts {
    fn plus(self, other: Self) -> Self {
        Self {
            session_t: self.session_t + other.session_t,
            sign_flip: self.sign_flip + other.sign_flip,
            regressed: self.regressed + other.regressed,
            bootstrap: self.bootstrap + other.bootstrap,
            mcnemar: self.mcnemar + other.mcnemar,
            probe_level_t: self.probe_level_t + other.probe_level_t,
        }
    }
}

/// Effects at 1,024 evenly spaced shares of their distribution.
fn effects(quantile: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..1_024).map(|at| quantile((f64::from(at) + 0.5) / 1_024.0)).collect()
}

/// Of 2³² draws, how many are a success at these log odds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 2³²")]
fn threshold(log_odds: f64) -> u64 {
    (4_294_967_296.0 / (1.0 + libm::exp(-log_odds))) as u64
}

/// One experiment: each session's sum of differences and number of pairs, with wins and losses.
fn experiment(
    process: Process,
    sessions: usize,
    normal: &[f64],
    heavy: &[f64],
    draws: &mut Draws,
) -> Vec<(u32, u32, usize)> {
    (0..sessions)
        .map(|_| {
            let pairs = 10 + draws.index(21);
            let effect = |draws: &mut Draws, from: &[f64]| from[draws.index(1_024)];
            let (mut wins, mut losses) = (0, 0);
            let (old, new) = match process {
                Process::LogitNormal => {
                    let level = 0.8 + effect(draws, normal);
                    let old = level + 0.8 * effect(draws, normal);
                    (threshold(old), threshold(level + 0.8 * effect(draws, normal)))
                }
                Process::HeavyTailed => {
                    let level = 0.8 + effect(draws, normal);
                    let old = level + 0.6 * effect(draws, heavy);
                    (threshold(old), threshold(level + 0.6 * effect(draws, heavy)))
                }
                Process::MostlyTies => (429_496_730, threshold(2.0 * effect(draws, normal))),
            };
            let ties = matches!(process, Process::MostlyTies);
            for _ in 0..pairs {
                let bits = draws.bits();
                let (low, high) = (bits & 0xffff_ffff, bits >> 32);
                let (old, new) = (low < old, high < new);
                if ties {
                    wins += u32::from(old && new);
                    losses += u32::from(old && !new);
                } else {
                    wins += u32::from(new && !old);
                    losses += u32::from(old && !new);
                }
            }
            (wins, losses, pairs)
        })
        .collect()
}

fn run(process: Process, sessions: usize) -> RejectionCounts {
    let normal = effects(|share| quantile::normal(share).unwrap());
    let heavy = effects(|share| quantile::t(share, 2).unwrap());
    let t = quantile::t(0.975, sessions - 1).unwrap();
    let one = |seed: u64| {
        let mut draws = Draws::new(seed, "type-I error");
        let seen = experiment(process, sessions, &normal, &heavy, &mut draws);
        let means: Vec<f64> = seen
            .iter()
            .map(|(wins, losses, pairs)| (f64::from(*wins) - f64::from(*losses)) / *pairs as f64)
            .collect();
        let wins: f64 = seen.iter().map(|(wins, ..)| f64::from(*wins)).sum();
        let losses: f64 = seen.iter().map(|(_, losses, _)| f64::from(*losses)).sum();
        let n: f64 = seen.iter().map(|(.., pairs)| *pairs as f64).sum();
        let by_session = Estimate::of_sessions(&means, means.len()).unwrap();
        let beyond = |point: f64, error: f64, reach: f64| u32::from(point.abs() > reach * error);
        let error = by_session.standard_error.unwrap();
        let delta = (wins - losses) / n;
        let naive = ((wins + losses - n * delta * delta) / (n - 1.0) / n).sqrt();
        // The bootstrap is a default from 30 sessions on; below, its plain form is tried.
        let tail = if sessions >= bootstrap::FEWEST_FOR_BOOTSTRAP {
            bootstrap::expanded_tail(sessions)
        } else {
            (sessions == 8).then_some(0.025)
        };
        let interval = tail.and_then(|tail| bootstrap::percentile_of(&means, 199, tail, seed));
        // A sign-flip test with fewer drawn patterns has the same level; 199 are enough here.
        let moved: Vec<f64> = means.iter().copied().filter(|mean| *mean != 0.0).collect();
        let flip = if moved.len() <= signflip::MOST_EXACT {
            signflip::exact(&moved)
        } else {
            signflip::drawn(&moved, 199, seed)
        };
        RejectionCounts {
            session_t: beyond(by_session.point_estimate, error, t),
            sign_flip: u32::from(flip <= 0.05),
            regressed: Bounds::estimated(&by_session)
                .map_or(0, |bounds| u32::from(bounds.interval_at(0.05).1 < 0.0)),
            bootstrap: u32::from(
                interval.is_some_and(|i| i.lower_bound > 0.0 || i.upper_bound < 0.0),
            ),
            mcnemar: u32::from((wins - losses).powi(2) > 3.841_459 * (wins + losses)),
            probe_level_t: beyond(delta, naive, 1.96),
        }
    };
    (0..u64::from(*RUNS))
        .into_par_iter()
        .map(one)
        .reduce(RejectionCounts::default, RejectionCounts::plus)
}

#[test]
fn what_is_shown_by_default_is_wrong_as_rarely_as_it_says_and_what_is_refused_is_not() {
    let share = |count: u32| f64::from(count) / f64::from(*RUNS);
    let mut worst = [0.0_f64; 3];
    for process in PROCESSES {
        for sessions in SESSIONS {
            let rejected = run(process, sessions);
            let mut defaults = vec![
                ("session-weighted t", rejected.session_t),
                ("sign flip", rejected.sign_flip),
                ("regressed", rejected.regressed),
            ];
            if sessions >= bootstrap::FEWEST_FOR_BOOTSTRAP {
                defaults.push(("bootstrap", rejected.bootstrap));
            }
            for (method, count) in defaults {
                let share = share(count);
                assert!(share <= MOST, "{method} at {sessions} sessions, {process:?}: {share}");
            }
            if sessions <= 12 {
                let refused = [rejected.bootstrap, rejected.mcnemar, rejected.probe_level_t];
                for (worst, count) in worst.iter_mut().zip(refused) {
                    *worst = worst.max(share(count));
                }
            }
        }
    }
    for (method, worst) in ["bootstrap", "McNemar", "probe-level t"].iter().zip(worst) {
        assert!(worst > TOO_OFTEN, "{method}: {worst} at most");
    }
}

#[test]
fn a_ratio_of_totals_is_wrong_as_rarely_as_promised() {
    let heavy = effects(|share| quantile::t(share, 4).unwrap());
    for sessions in [6, 12] {
        let one = |seed: u64| {
            let mut draws = Draws::new(seed, "amounts");
            let mut effect = |size: f64| libm::exp(size * heavy[draws.index(1_024)]);
            // Both sides replay the same session: long ones are long on both.
            let mut amounts = Vec::new();
            for _ in 0..sessions {
                let session = 1_000.0 * effect(0.4);
                amounts.push((session * effect(0.1), session * effect(0.1)));
            }
            let ratio = Estimate::of_ratio(&amounts, sessions).unwrap();
            let interval = ratio.confidence_interval.unwrap();
            let differences: Vec<f64> = amounts.iter().map(|(own, other)| own - other).collect();
            // What is shown needs the interval and the test: of few sessions of very different length the interval
            // alone errs too often.
            let is_flipped = signflip::test(&differences, seed).is_some_and(|test| test.p <= 0.05);
            u32::from(is_flipped && (interval.lower_bound > 1.0 || interval.upper_bound < 1.0))
        };
        let wrong: u32 = (0..u64::from(*RUNS)).into_par_iter().map(one).sum();
        let share = f64::from(wrong) / f64::from(*RUNS);
        assert!(share <= MOST, "{sessions} sessions: {share}");
    }
}
