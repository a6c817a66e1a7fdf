//! The cluster bootstrap: whole sessions are drawn with replacement.
//!
//! It is offered from 30 sessions only, and with its percentiles moved outwards. The plain
//! percentile interval is too short: with few sessions it rejects a true null in 9 to 15 of 100
//! experiments where 5 are promised, and with 40 still in 7, which the simulation in
//! `simulation.rs` shows.

use super::draw::Draws;
use super::{ConfidenceInterval, UPPER_SHARE, quantile};

/// Fewest sessions for which the interval is shown.
pub const FEWEST_FOR_BOOTSTRAP: usize = 30;

/// Resamples: the ends of the interval then rest on 40 of them each.
pub const RESAMPLES: usize = 2_000;

/// `Φ(−√(G/(G − 1)) · t(1 − α/2, G − 1))`, the percentile at the ends of the expanded interval: resampled
/// means spread less than means do, by just that factor (Hesterberg, 2015). The plain one is `α/2`.
pub(super) fn expanded_tail(sessions: usize) -> Option<f64> {
    let groups = sessions as f64;
    let t = quantile::t(UPPER_SHARE, sessions.checked_sub(1)?)?;
    let reach = (groups / (groups - 1.0)).sqrt() * t;
    Some(0.5 * libm::erfc(reach / std::f64::consts::SQRT_2))
}

/// Expanded percentile interval of the mean over sessions. Nothing below two sessions.
pub fn percentile(values: &[f64], seed: u64) -> Option<ConfidenceInterval> {
    percentile_of(values, RESAMPLES, expanded_tail(values.len())?, seed)
}

pub(super) fn percentile_of(
    values: &[f64],
    resamples: usize,
    tail: f64,
    seed: u64,
) -> Option<ConfidenceInterval> {
    if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut draws = Draws::new(seed, "bootstrap");
    let means = (0..resamples).map(|_| {
        let mut sum = 0.0;
        for _ in 0..values.len() / 2 {
            let bits = draws.bits();
            sum += picked(values, bits >> 32) + picked(values, bits & 0xffff_ffff);
        }
        if values.len() % 2 == 1 {
            sum += picked(values, draws.bits() >> 32);
        }
        sum / values.len() as f64
    });
    let mut means: Vec<f64> = means.collect();
    means.sort_by(f64::total_cmp);
    let [low, high] = [tail, 1.0 - tail].map(|share| quantile::of_sorted(&means, share));
    Some(ConfidenceInterval::of(low?, high?))
}

/// The value that half a draw picks; its bias is below G/2³².
fn picked(values: &[f64], half: u64) -> f64 {
    values[usize::try_from((half * values.len() as u64) >> 32).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_many_sessions_it_is_the_t_interval() {
        let values: Vec<f64> = (0..201).map(|at| f64::from(at % 17)).collect();
        let interval = percentile(&values, 1).unwrap();
        let t =
            super::super::Estimate::of_sessions(&values, 201).unwrap().confidence_interval.unwrap();
        assert!((interval.lower_bound - t.lower_bound).abs() < 0.08);
        assert!((interval.upper_bound - t.upper_bound).abs() < 0.08);
        assert_eq!(percentile(&values, 1), Some(interval));
        assert_eq!(percentile(&[1.0], 1), None);
    }

    #[test]
    fn percentiles_move_outwards_with_few_sessions() {
        let share = |sessions| expanded_tail(sessions).unwrap();
        assert!(share(5) < 0.002 && share(30) > 0.018 && share(30) < 0.0205);
        assert!(share(1_000) > 0.0248);
    }
}
