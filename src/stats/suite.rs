//! Suite inference: did these very sessions come out differently, with repeats as the only noise?
//!
//! Sessions are fixed; what is random is which answers a model happened to give. The error is that of
//! the repeats within each session, and the test permutes the labels of repeats within a session.

use super::draw::Draws;
use super::{Estimate, SampleSize};

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
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SuiteDifference {
    /// Mean over sessions of the difference of means; its error comes from repeats.
    pub estimate: Estimate,
    /// Degrees of freedom of that error.
    pub freedom: usize,
    /// Share of relabelled repeats whose difference is at least as far from zero.
    pub p: f64,
}

/// Compares repeats. Nothing where a session has fewer than two repeats on a side: there is then
/// nothing to tell noise by.
pub fn compare(sessions: &[Repeats], seed: u64) -> Option<SuiteDifference> {
    let few = |s: &Repeats| s.baseline.len() < 2 || s.candidate.len() < 2;
    if sessions.is_empty() || sessions.iter().any(few) {
        return None;
    }
    let groups = sessions.len() as f64;
    let (mut squares, mut freedom, mut items) = (0.0, 0, 0);
    for session in sessions {
        for side in [&session.baseline, &session.candidate] {
            squares += variance(side) / side.len() as f64;
            freedom += side.len() - 1;
            items += side.len();
        }
    }
    let observed = sessions
        .iter()
        .map(|session| mean(&session.candidate) - mean(&session.baseline))
        .sum::<f64>()
        / groups;
    if !observed.is_finite() {
        return None;
    }
    let mut draws = Draws::new(seed, "suite");
    let reach = observed.abs() * (1.0 - 1e-11);
    let mut pool: Vec<Vec<f64>> = sessions
        .iter()
        .map(|session| [&session.baseline[..], &session.candidate[..]].concat())
        .collect();
    let extreme = (0..PERMUTATIONS).filter(|_| {
        let mut sum = 0.0;
        for (pool, session) in pool.iter_mut().zip(sessions) {
            draws.shuffle(pool);
            let (old, new) = pool.split_at(session.baseline.len());
            sum += mean(new) - mean(old);
        }
        (sum / groups).abs() >= reach
    });
    let p = (extreme.count() + 1) as f64 / (PERMUTATIONS + 1) as f64;
    let n = SampleSize {
        sessions: sessions.len(),
        items,
    };
    Some(SuiteDifference {
        estimate: Estimate {
            confidence_interval: None,
            ..Estimate::with_error(observed, Some(squares.sqrt() / groups), n)
        },
        freedom,
        p,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
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
    fn the_same_answers_on_both_sides_differ_by_nothing() {
        let same = Repeats {
            baseline: vec![0.2, 0.4],
            candidate: vec![0.4, 0.2],
        };
        let difference = compare(&[same], 1).unwrap();
        assert!((difference.p - 1.0).abs() < 1e-12);
    }
}
