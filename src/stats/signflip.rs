//! The sign-flip test: if nothing had changed, each session's difference could as well have had the
//! other sign.
//!
//! It counts the patterns of signs whose sum is at least as far from zero as the one seen. Up to 20
//! sessions that differ, all `2^G` patterns are counted, exactly: the sums of each half of the
//! sessions are sorted, and for each sum of one half those of the other are found by bisection. Above,
//! patterns are drawn. The test assumes no shape, only that differences are symmetric under the null.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::draw::Draws;

/// Up to this many sessions that differ, every pattern is counted.
pub const MOST_EXACT: usize = 20;

/// Patterns that are drawn where there are too many to count. With the pattern seen they make
/// 10,000, so that a p value has four digits.
pub const DRAWN_PATTERNS: usize = 9_999;

/// Result of a sign-flip test, two-sided.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignFlip {
    /// Share of patterns at least as far from zero as the one seen.
    pub p: f64,
    /// Whether every pattern was counted.
    pub exact: bool,
}

/// Tests whether the mean of one difference per session is zero. `None` below two sessions, and for
/// differences that are not finite.
pub fn test(differences: &[f64], seed: u64) -> Option<SignFlip> {
    if differences.len() < 2 || differences.iter().any(|value| !value.is_finite()) {
        return None;
    }
    // A session without a difference is the same under both signs.
    let moved: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let few = moved.len() <= MOST_EXACT;
    let p = if few { exact(&moved) } else { drawn(&moved, DRAWN_PATTERNS, seed) };
    Some(SignFlip { p, exact: few })
}

/// How far from a threshold a sum may lie and still count as equal: sums of the same numbers in
/// another order differ by rounding.
fn tolerance(differences: &[f64]) -> f64 {
    1e-11 * differences.iter().map(|value| value.abs()).sum::<f64>()
}

/// The share of all patterns; 1 where nothing differs.
pub(super) fn exact(differences: &[f64]) -> f64 {
    let observed = differences.iter().sum::<f64>().abs() - tolerance(differences);
    if observed <= 0.0 {
        return 1.0;
    }
    let (left, right) = differences.split_at(differences.len() / 2);
    let (left, right) = (sums(left), sums(right));
    // Sums lie symmetrically: as many reach `observed` as reach its negative.
    let below = left.iter().map(|sum| right.partition_point(|other| sum + other < observed));
    let all = left.len() * right.len();
    (2 * (all - below.sum::<usize>())) as f64 / all as f64
}

/// The sums under all patterns of signs, ascending.
fn sums(differences: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for value in differences {
        let both = sums.iter().flat_map(|sum| [sum - value, sum + value]);
        sums = both.collect();
    }
    sums.sort_by(f64::total_cmp);
    sums
}

/// The share of `patterns` drawn patterns, the one seen counted among them (Phipson and Smyth,
/// 2010: a p value of 0 is impossible).
pub(super) fn drawn(differences: &[f64], patterns: usize, seed: u64) -> f64 {
    let observed = differences.iter().sum::<f64>().abs() - tolerance(differences);
    let mut draws = Draws::new(seed, "sign-flip");
    let extreme = (0..patterns).filter(|_| drawn_sum(differences, &mut draws).abs() >= observed);
    (extreme.count() + 1) as f64 / (patterns + 1) as f64
}

/// The sum of the differences with drawn signs.
fn drawn_sum(differences: &[f64], draws: &mut Draws) -> f64 {
    let signed = differences.chunks(64).flat_map(|chunk| {
        let bits = draws.bits();
        let sessions = chunk.iter().enumerate();
        sessions.map(move |(at, value)| if bits >> at & 1 == 1 { -value } else { *value })
    });
    signed.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts every pattern, one after the other.
    fn brute(differences: &[f64]) -> f64 {
        let observed = differences.iter().sum::<f64>().abs();
        let patterns = 1_usize << differences.len();
        let extreme = (0..patterns).filter(|pattern| {
            let sum: f64 = differences
                .iter()
                .enumerate()
                .map(|(at, d)| if pattern >> at & 1 == 1 { -d } else { *d })
                .sum();
            sum.abs() >= observed - 1e-9
        });
        extreme.count() as f64 / patterns as f64
    }

    #[test]
    fn counting_from_both_ends_is_counting_every_pattern() {
        let mut draws = Draws::new(7, "test");
        for sessions in 2..=12 {
            for _ in 0..20 {
                // Few distinct values, so that ties abound.
                let differences: Vec<f64> =
                    (0..sessions).map(|_| (draws.index(9) as f64 - 4.0) / 3.0).collect();
                let p = test(&differences, 1).unwrap();
                assert!(p.exact);
                let counted = brute(&differences);
                assert!((p.p - counted).abs() < 1e-12, "{differences:?}: {p:?} {counted}");
            }
        }
    }

    #[test]
    fn all_sessions_one_way_is_one_pattern_in_all() {
        let p = test(&[0.1; 6], 1).unwrap().p;
        assert!((p - 2.0 / 64.0).abs() < 1e-12);
        let p = test(&[0.1; 20], 1).unwrap().p;
        assert!((p - 2.0 / 1_048_576.0).abs() < 1e-15);
        assert!((test(&[0.0; 6], 1).unwrap().p - 1.0).abs() < 1e-12);
        assert_eq!(test(&[0.1], 1), None);
        assert_eq!(test(&[0.1, f64::NAN], 1), None);
    }

    #[test]
    fn it_agrees_with_scipy() {
        // scipy.stats.permutation_test(permutation_type="samples") over all patterns
        let sums = [-2.0, 1.0, 0.0, -4.0, -1.0, 2.0, -3.0, 0.0, -1.0, -2.0];
        let sizes = [8.0, 12.0, 5.0, 20.0, 9.0, 11.0, 7.0, 16.0, 10.0, 13.0];
        let means: Vec<f64> = sums.iter().zip(sizes).map(|(sum, size)| sum / size).collect();
        assert!((test(&means, 1).unwrap().p - 0.117_187_5).abs() < 1e-12);
    }

    #[test]
    fn drawn_patterns_come_near_all_patterns() {
        let differences: Vec<f64> = (0..18).map(|at| f64::from(at % 5) - 1.5).collect();
        let all = exact(&differences);
        let drawn = drawn(&differences, 9_999, 3);
        assert!((all - drawn).abs() < 0.015, "{all} {drawn}");
    }
}
