//! The rule of the gate: is the candidate not worse than the baseline by more than a margin?
//!
//! Four verdicts, decided in this order: `improved`, `non-inferior`, `regressed`, `inconclusive`. What
//! breaks a gate before any number is looked at (a probe of high importance lost, a rule of the
//! provider broken) is decided where probes are known.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paired::FEWEST_SESSIONS;
use super::{Estimate, power, quantile};

/// The verdict on one metric.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better by more than the margin and the noise.
    Improved,
    /// Not worse by the margin.
    NonInferior,
    /// The data allow both.
    Inconclusive,
    /// Worse.
    Regressed,
}

impl Verdict {
    /// Its name in files and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Self::Improved => "improved",
            Self::NonInferior => "non-inferior",
            Self::Inconclusive => "inconclusive",
            Self::Regressed => "regressed",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// About what a verdict speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// These very sessions: did anything change on them? Where everything is deterministic there is
    /// no noise, and each difference is real.
    Suite,
    /// Sessions like these: would it hold on others?
    Population,
}

impl Target {
    /// Its name in settings and on the terminal.
    pub fn name(self) -> &'static str {
        match self {
            Self::Suite => "suite",
            Self::Population => "population",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Bounds of a difference, candidate − baseline, turned so that higher is better.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The difference.
    pub difference: f64,
    /// One-sided 95 % lower bound.
    pub lower: f64,
    /// One-sided 95 % upper bound.
    pub upper: f64,
    /// Lower end of the two-sided 95 % interval.
    pub interval_lower: f64,
    /// Its upper end.
    pub interval_upper: f64,
    /// Standard deviation of a session's difference; `None` where the difference is exact.
    pub deviation: Option<f64>,
    /// Sessions it rests on.
    pub sessions: usize,
    /// The subject of the verdict.
    pub target: Target,
    /// Standard error of the difference; `None` where it is exact.
    pub error: Option<f64>,
    /// Degrees of freedom of that error; 0 where the difference is exact.
    pub freedom: usize,
    /// About a suite whose results depend on chance: p of the permutation of repeats, without which
    /// nothing is called better or worse. A session whose few repeats came out the same by luck has
    /// no error to see.
    pub permuted: Option<f64>,
}

impl Bounds {
    /// A difference that is exact on the sessions that were run.
    pub fn exact(difference: f64, sessions: usize) -> Self {
        Self {
            // A difference of −0 keeps its sign.
            upper: difference,
            interval_upper: difference,
            ..Self::around(difference, (0.0, 0.0), sessions, Target::Suite)
        }
    }

    /// Bounds at this distance on either side: of the one-sided bounds, and of the interval.
    fn around(difference: f64, (one, two): (f64, f64), sessions: usize, target: Target) -> Self {
        Self {
            difference,
            lower: difference - one,
            upper: difference + one,
            interval_lower: difference - two,
            interval_upper: difference + two,
            deviation: None,
            sessions,
            target,
            error: None,
            freedom: 0,
            permuted: None,
        }
    }

    /// A difference with an error, of `freedom` degrees of freedom; `None` without either.
    pub fn estimated(estimate: &Estimate, freedom: usize, target: Target) -> Option<Self> {
        let error = estimate.standard_error?;
        let one = quantile::t(0.95, freedom)? * error;
        let two = quantile::t(0.975, freedom)? * error;
        let sessions = estimate.n.sessions;
        Some(Self {
            deviation: Some(error * (sessions as f64).sqrt()),
            error: Some(error),
            freedom,
            ..Self::around(estimate.point_estimate, (one, two), sessions, target)
        })
    }

    /// The same, `by` further up.
    #[must_use]
    pub fn moved(self, by: f64) -> Self {
        Self {
            difference: self.difference + by,
            lower: self.lower + by,
            upper: self.upper + by,
            interval_lower: self.interval_lower + by,
            interval_upper: self.interval_upper + by,
            ..self
        }
    }

    /// The verdict, for a margin δ ≥ 0 and the noise that is seen between two runs of the same.
    ///
    /// `improved` if the difference is over δ and the whole two-sided interval lies above the noise;
    /// `non-inferior` if L ≥ −δ (with a margin of 0, no change at all passes); `regressed` if U < 0; else
    /// `inconclusive`. About a population nothing is said with fewer than 6 sessions.
    ///
    /// Of a `family` of comparisons that are looked at together, `improved` and `regressed` are said at
    /// a level of 5 % divided by their number (Bonferroni), so that among all of them a false one stays
    /// as rare. `non-inferior` needs none of it: all must be.
    pub fn verdict(&self, family: usize, margin: f64, noise: f64) -> Verdict {
        if self.target == Target::Population && self.sessions < FEWEST_SESSIONS {
            return Verdict::Inconclusive;
        }
        let level = 0.05 / family.max(1) as f64;
        let reach = |tail: f64| {
            let error = self.error.unwrap_or(0.0);
            if error > 0.0 {
                quantile::t(1.0 - tail, self.freedom).map_or(f64::INFINITY, |t| t * error)
            } else {
                0.0
            }
        };
        let permuted = self.permuted.unwrap_or(0.0);
        let is_above_noise = self.difference - reach(level / 2.0) > noise.max(0.0);
        if self.difference > margin && is_above_noise && permuted <= level {
            Verdict::Improved
        } else if self.lower >= -margin {
            Verdict::NonInferior
        } else if self.difference + reach(level) < 0.0 && permuted / 2.0 <= level {
            Verdict::Regressed
        } else {
            Verdict::Inconclusive
        }
    }

    /// How many sessions like these would show `non-inferior` in 8 of 10 experiments if nothing had
    /// changed; without a margin, how many would show the difference seen. `None` where none would.
    pub fn sessions_needed(&self, margin: f64) -> Option<usize> {
        let distance = if margin > 0.0 {
            margin
        } else {
            self.difference.abs()
        };
        power::sessions_needed(self.deviation?, distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SampleSize;

    #[track_caller]
    fn check(bounds: &Bounds, margin: f64, expected: Verdict) {
        assert_eq!(bounds.verdict(1, margin, 0.01), expected, "{bounds:?}");
    }

    fn around(difference: f64, error: f64, sessions: usize) -> Bounds {
        let values: Vec<f64> = (0..sessions)
            .map(|at| difference + if at % 2 == 0 { error } else { -error })
            .collect();
        let estimate = Estimate::of_sessions(&values, sessions).unwrap();
        Bounds::estimated(&estimate, sessions - 1, Target::Population).unwrap()
    }

    #[test]
    fn the_four_verdicts_come_in_their_order() {
        check(&around(0.10, 0.02, 20), 0.05, Verdict::Improved);
        check(&around(0.0, 0.02, 20), 0.05, Verdict::NonInferior);
        // Significantly below 0, and within the margin: the margin decides.
        check(&around(-0.02, 0.02, 20), 0.05, Verdict::NonInferior);
        check(&around(-0.10, 0.02, 20), 0.05, Verdict::Regressed);
        check(&around(-0.01, 0.3, 20), 0.05, Verdict::Inconclusive);
        check(&around(0.0, 0.02, 4), 0.05, Verdict::Inconclusive);
    }

    #[test]
    fn an_exact_difference_is_never_inconclusive() {
        check(&Bounds::exact(0.0, 3), 0.0, Verdict::NonInferior);
        check(&Bounds::exact(-0.001, 3), 0.0, Verdict::Regressed);
        check(&Bounds::exact(-0.04, 3), 0.05, Verdict::NonInferior);
        check(&Bounds::exact(-0.06, 3), 0.05, Verdict::Regressed);
        check(&Bounds::exact(0.02, 3), 0.0, Verdict::Improved);
        // Above 0, but not above the noise, or not above the margin.
        check(&Bounds::exact(0.005, 3), 0.0, Verdict::NonInferior);
        check(&Bounds::exact(0.04, 3), 0.05, Verdict::NonInferior);
        check(&Bounds::exact(0.06, 3), 0.05, Verdict::Improved);
    }

    #[test]
    fn among_many_comparisons_each_must_be_surer() {
        let worse = around(-0.10, 0.24, 20);
        assert_eq!(worse.verdict(1, 0.05, 0.0), Verdict::Regressed);
        assert_eq!(worse.verdict(8, 0.05, 0.0), Verdict::Inconclusive);
        let better = worse.moved(0.22);
        assert_eq!(better.verdict(1, 0.05, 0.0), Verdict::Improved);
        // That it is not inferior needs no more than before.
        assert_eq!(better.verdict(8, 0.05, 0.0), Verdict::NonInferior);
        assert_eq!(
            Bounds::exact(-0.06, 3).verdict(8, 0.05, 0.0),
            Verdict::Regressed
        );
    }

    #[test]
    fn repeats_that_agree_by_luck_prove_nothing() {
        let mut lucky = around(-0.10, 0.0, 20);
        lucky.permuted = Some(1.0 / 3.0);
        assert_eq!(lucky.verdict(1, 0.05, 0.0), Verdict::Inconclusive);
        lucky.permuted = Some(0.001);
        assert_eq!(lucky.verdict(1, 0.05, 0.0), Verdict::Regressed);
    }

    #[test]
    fn an_unclear_result_says_how_many_sessions_it_would_need() {
        let unclear = around(-0.01, 0.3, 20);
        let needed = unclear.sessions_needed(0.05).unwrap();
        assert!(needed > 200, "{needed}");
        assert_eq!(Bounds::exact(-0.06, 3).sessions_needed(0.05), None);
    }

    #[test]
    fn about_repeats_nothing_is_better_or_worse_that_relabelling_them_brings_as_well() {
        let verdict = |difference: f64, p: f64| {
            let estimate = Estimate::with_error(
                difference,
                Some(0.01),
                SampleSize {
                    sessions: 4,
                    items: 12,
                },
            );
            let mut bounds = Bounds::estimated(&estimate, 8, Target::Suite).unwrap();
            bounds.permuted = Some(p);
            bounds.verdict(1, 0.05, 0.0)
        };
        assert_eq!(verdict(0.2, 0.04), Verdict::Improved);
        assert_eq!(verdict(0.2, 0.06), Verdict::NonInferior);
        // One side of the test is half of its p.
        assert_eq!(verdict(-0.2, 0.09), Verdict::Regressed);
        assert_eq!(verdict(-0.2, 0.11), Verdict::Inconclusive);
    }
}
