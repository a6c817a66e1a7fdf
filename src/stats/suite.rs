//! Suite inference: did these very sessions come out differently, with repeats as the only noise?
//!
//! Sessions are fixed; what is random is which answers a model happened to give. The error is that of
//! the repeats within each session, and the test permutes the labels of repeats within a session.

use schemars::JsonSchema;
use serde::Serialize;

use super::draw::Draws;
use super::{Estimate, SampleSize, mean_of, power, quantile};
use crate::units::index;

/// Permutations that are drawn.
const PERMUTATIONS: usize = 9_999;

/// Scores of one session: one value per repeat, under the baseline and under the candidate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Repeats {
    /// Under the baseline.
    pub baseline: Vec<f64>,
    /// Under the candidate.
    pub candidate: Vec<f64>,
}

/// A difference on a frozen suite.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct SuiteDifference {
    /// Mean over sessions of the difference of means; its error comes from repeats. Its interval is that of
    /// `freedom`.
    pub estimate: Estimate,
    /// Degrees of freedom of that error, by Welch and Satterthwaite, rounded down: repeats of a session
    /// that always come out the same lend none to one that does not.
    pub freedom: usize,
    /// The fewest repeats of a session on a side.
    pub repeats: usize,
    /// Share of relabelled repeats whose difference is at least as far from zero.
    pub p: f64,
}

impl SuiteDifference {
    /// The smallest difference that this many repeats would have shown in 8 of 10 experiments.
    pub fn detectable(&self) -> Option<f64> {
        power::detectable(self.estimate.standard_error?, self.freedom + 1)
    }

    /// How many repeats would show, in 8 of 10 experiments, a distance of this size, by normal
    /// quantiles: `R · ((z(0.95) + z(0.80)) · SE / distance)²`. `None` where no number would.
    pub fn repeats_needed(&self, distance: f64) -> Option<usize> {
        let error = self.estimate.standard_error?;
        let reach = quantile::normal(0.95)? + quantile::normal(power::POWER)?;
        let needed = self.repeats as f64 * (reach * error / distance).powi(2);
        (distance > 0.0 && needed <= 10_000.0).then(|| index(needed.ceil()).max(self.repeats + 1))
    }
}

/// Compares repeats. `None` where a session has fewer than two repeats on a side: noise cannot be
/// estimated then.
pub fn compare(sessions: &[Repeats], seed: u64) -> Option<SuiteDifference> {
    compare_with(sessions, PERMUTATIONS, seed)
}

pub(super) fn compare_with(
    sessions: &[Repeats],
    permutations: usize,
    seed: u64,
) -> Option<SuiteDifference> {
    let sides = sessions.iter().flat_map(|own| [&own.baseline, &own.candidate]);
    if sessions.is_empty() || sides.clone().any(|side| side.len() < 2) {
        return None;
    }
    let groups = sessions.len() as f64;
    // Welch and Satterthwaite: ν = (Σ v)² / Σ v²/(R − 1), v the variance of each mean.
    let (mut squares, mut fourth, mut items) = (0.0, 0.0, 0);
    for session in sessions {
        for side in [&session.baseline, &session.candidate] {
            let of_mean = variance(side) / side.len() as f64;
            squares += of_mean;
            fourth += of_mean * of_mean / (side.len() - 1) as f64;
            items += side.len();
        }
    }
    let repeats = sides.clone().map(Vec::len).min()?;
    let freedom = if fourth > 0.0 {
        // Rounding must not make 1.9999 of what is 2.
        index(squares * squares / fourth * (1.0 + 1e-9)).max(1)
    } else {
        sides.map(|side| side.len() - 1).sum()
    };
    let differences = sessions.iter().map(|one| mean_of(&one.candidate) - mean_of(&one.baseline));
    let observed = differences.sum::<f64>() / groups;
    if !observed.is_finite() {
        return None;
    }
    let mut draws = Draws::new(seed, "suite");
    let pools = sessions.iter().map(|own| [&own.baseline[..], &own.candidate[..]].concat());
    let mut pool: Vec<Vec<f64>> = pools.collect();
    // Sums of the same numbers in another order differ by rounding.
    let size: f64 = pool.iter().flatten().map(|value| value.abs()).sum();
    let reach = observed.abs() - 1e-11 * size / groups;
    let extreme = (0..permutations).filter(|_| {
        let mut sum = 0.0;
        for (pool, session) in pool.iter_mut().zip(sessions) {
            draws.shuffle(pool);
            let (old, new) = pool.split_at(session.baseline.len());
            sum += mean_of(new) - mean_of(old);
        }
        (sum / groups).abs() >= reach
    });
    let p = (extreme.count() + 1) as f64 / (permutations + 1) as f64;
    let n = SampleSize { sessions: sessions.len(), items };
    Some(SuiteDifference {
        estimate: Estimate::with_freedom(observed, Some(squares.sqrt() / groups), freedom, n),
        freedom,
        repeats,
        p,
    })
}

/// Unbiased. Values that differ by rounding alone do not vary: their freedom would be that of the dust.
fn variance(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if high - low <= 1e-12 * high.abs().max(low.abs()) {
        return 0.0;
    }
    let mean = mean_of(values);
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_differ_from_each_other_are_no_noise() {
        // Each session has its own level; the candidate is better by 0.1 on each of them.
        let sessions: Vec<Repeats> = (0..4)
            .map(|at| {
                let level = f64::from(at);
                Repeats {
                    baseline: vec![level, level + 0.01, level - 0.01],
                    candidate: vec![level + 0.1, level + 0.11, level + 0.09],
                }
            })
            .collect();
        let difference = compare(&sessions, 1).unwrap();
        assert!((difference.estimate.point_estimate - 0.1).abs() < 1e-12);
        // Variance 10⁻⁴ on 3 repeats, 8 times, over 4 sessions.
        let error = (8.0 * 1e-4 / 3.0_f64).sqrt() / 4.0;
        assert!((difference.estimate.standard_error.unwrap() - error).abs() < 1e-12);
        assert_eq!(difference.freedom, 16);
        assert!(difference.p < 0.001);
        assert_eq!(compare(&[Repeats::default()], 1), None);
    }

    #[test]
    fn sessions_without_noise_lend_no_certainty_to_one_with_it() {
        let mut sessions = vec![Repeats { baseline: vec![1.0, 1.0], candidate: vec![1.0, 1.0] }; 3];
        sessions.push(Repeats { baseline: vec![0.0, 0.2], candidate: vec![0.3, 0.8] });
        let difference = compare(&sessions, 1).unwrap();
        // v = 0.02/2 and 0.125/2; (0.0725)²/(0.01² + 0.0625²) = 1.312: rounded down.
        assert_eq!((difference.freedom, difference.repeats), (1, 2));
        // One session of two repeats: a third of all relabellings is as far out.
        assert!((difference.p - 1.0 / 3.0).abs() < 0.03, "{}", difference.p);
        let interval = difference.estimate.confidence_interval.unwrap();
        assert!((interval.half_width() - 12.706_2 * 0.0725_f64.sqrt() / 4.0).abs() < 1e-3);
        // R · ((1.644854 + 0.841621) · SE / δ)², from 2 repeats and SE 0.0673.
        let error = 0.0725_f64.sqrt() / 4.0;
        let needed = (2.0 * (2.486_475 * error / 0.05).powi(2)).ceil();
        let told = difference.repeats_needed(0.05).unwrap() as f64;
        assert!((told - needed).abs() < 0.5, "{told} {needed}");
        assert_eq!(difference.repeats_needed(0.0), None);
    }

    #[test]
    fn rounding_is_no_noise_and_no_difference() {
        // The same share thrice, added up in another order: no noise, and all degrees of freedom.
        let third = (0.1 + 0.2) / 0.9;
        let dusty = vec![third, 0.3 / 0.9, 1.0 / 3.0];
        assert!(dusty[0] > dusty[2], "they differ in the last bit");
        let still = Repeats { baseline: dusty.clone(), candidate: vec![1.0 / 3.0; 3] };
        let steady = Repeats { baseline: vec![0.5; 3], candidate: vec![0.5; 3] };
        let difference = compare(&[still, steady.clone(), steady], 1).unwrap();
        assert_eq!(difference.freedom, 12);
        assert!((difference.p - 1.0).abs() < 1e-12, "{}", difference.p);
    }

    #[test]
    fn the_same_answers_on_both_sides_differ_by_nothing() {
        let same = Repeats { baseline: vec![0.2, 0.4], candidate: vec![0.4, 0.2] };
        let difference = compare(&[same], 1).unwrap();
        assert!((difference.p - 1.0).abs() < 1e-12);
    }
}
