//! Wilson's interval for a share, with the effective number of observations.
//!
//! Probes of one session go right or wrong together, so that 200 of them say less than 200
//! independent ones; the interval rests on `n / (1 + (m − 1)ρ)`.

use super::{ConfidenceInterval, UPPER_SHARE, power, quantile};

/// Wilson's score interval (E. B. Wilson, 1927) of `share` over `n` observations, which need not be
/// a whole number. `None` without observations, or for a share outside 0 to 1.
pub fn interval(share: f64, n: f64) -> Option<ConfidenceInterval> {
    if n.is_nan() || n <= 0.0 || !(0.0..=1.0).contains(&share) {
        return None;
    }
    let z = quantile::normal(UPPER_SHARE)?;
    let square = z * z / n;
    let centre = (share + square / 2.0) / (1.0 + square);
    let half = z / (1.0 + square) * (share * (1.0 - share) / n + square / (4.0 * n)).sqrt();
    let (lower, upper) = ((centre - half).max(0.0), (centre + half).min(1.0));
    Some(ConfidenceInterval::of(lower, upper))
}

/// The interval of the share of all values, each 0 or 1, session by session, and the effective n it
/// rests on.
pub fn of_sessions(sessions: &[Vec<f64>]) -> Option<(ConfidenceInterval, f64)> {
    let sizes: Vec<usize> = sessions.iter().map(Vec::len).collect();
    let items: usize = sizes.iter().sum();
    let share = sessions.iter().flatten().sum::<f64>() / items as f64;
    let correlation = power::correlation_within(sessions).unwrap_or(0.0);
    let effective = items as f64 / power::design_effect(&sizes, correlation).max(1.0);
    Some((interval(share, effective)?, effective))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_statsmodels() {
        // statsmodels.stats.proportion.proportion_confint(k, n, method="wilson")
        for (hits, n, low, high) in WILSON {
            let interval = interval(hits / n, n).unwrap();
            assert!((interval.lower_bound - low).abs() < 1e-9, "{hits}/{n}");
            assert!((interval.upper_bound - high).abs() < 1e-9, "{hits}/{n}");
        }
        assert_eq!(interval(0.5, 0.0), None);
        assert_eq!(interval(1.5, 10.0), None);
    }

    /// Hits, trials, lower and upper end.
    const WILSON: [(f64, f64, f64, f64); 5] = [
        (0.0, 10.0, 0.0, 0.277_532_799_862_889),
        (3.0, 10.0, 0.107_791_267_406_301, 0.603_221_852_538_855),
        (398.0, 400.0, 0.981_955_081_563_757, 0.998_627_747_045_29),
        (25.0, 40.0, 0.470_324_391_373_011, 0.757_770_208_327_667),
        (40.0, 40.0, 0.912_378_398_802_713, 1.0),
    ];

    #[test]
    fn what_goes_right_together_counts_once() {
        let together: Vec<Vec<f64>> = (0..10).map(|at| vec![f64::from(at % 2); 20]).collect();
        let (wide, effective) = of_sessions(&together).unwrap();
        assert!((effective - 10.0).abs() < 1e-9, "{effective}");
        let apart: Vec<Vec<f64>> =
            (0..10).map(|_| (0..20).map(|at| f64::from(at % 2)).collect()).collect();
        let (narrow, effective) = of_sessions(&apart).unwrap();
        assert!((effective - 200.0).abs() < 1e-9, "{effective}");
        let width = |i: ConfidenceInterval| i.upper_bound - i.lower_bound;
        assert!(width(wide) > 3.0 * width(narrow));
        assert_eq!(of_sessions(&[]), None);
    }
}
