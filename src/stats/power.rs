//! Power: what an experiment of this size can see, and how large one must be to see more.

use super::quantile;

/// Share of experiments in which a difference of the detectable size is seen.
pub const POWER: f64 = 0.8;

/// The most sessions that are ever recommended.
const MOST_SESSIONS: usize = 100_000;

/// The smallest difference that G sessions show in 8 of 10 experiments:
/// `(t(0.975, G − 1) + t(0.80, G − 1)) · SE`. Nothing below two sessions.
pub fn detectable(standard_error: f64, sessions: usize) -> Option<f64> {
    let freedom = sessions.checked_sub(1)?;
    let reach = quantile::t(0.975, freedom)? + quantile::t(POWER, freedom)?;
    Some(reach * standard_error)
}

/// The same before an experiment: `(t(0.975, G − 1) + t(0.80, G − 1)) · σ_d · √((1 + (m − 1)ρ)/(G m))`,
/// with `σ_d` the standard deviation of a probe's difference, m probes in each of G sessions, and ρ the
/// correlation of differences within a session.
pub fn detectable_ahead(
    deviation: f64,
    correlation: f64,
    probes_per_session: f64,
    sessions: usize,
) -> Option<f64> {
    if probes_per_session <= 0.0 || deviation < 0.0 {
        return None;
    }
    let effect = 1.0 + (probes_per_session - 1.0) * correlation;
    let error = deviation * (effect.max(0.0) / (sessions as f64 * probes_per_session)).sqrt();
    detectable(error, sessions)
}

/// How many sessions like these it takes to show, in 8 of 10 experiments, that the candidate is not
/// worse by `margin` when the true difference is `difference`. It is the smallest G with
/// `(t(0.95, G − 1) + t(0.80, G − 1)) · sd/√G ≤ distance`, where `distance = margin + difference`.
/// `None` where no number is enough: where the distance is not above 0.
pub fn sessions_needed(deviation: f64, distance: f64) -> Option<usize> {
    sessions_at(deviation, distance, 0.05)
}

/// The same at another one-sided level than 5 %: where several strategies are judged, 5 % over their number.
pub fn sessions_at(deviation: f64, distance: f64, level: f64) -> Option<usize> {
    if !(distance > 0.0 && deviation.is_finite()) {
        return None;
    }
    let enough = |sessions: usize| {
        let freedom = sessions - 1;
        quantile::t(1.0 - level, freedom).zip(quantile::t(POWER, freedom)).is_some_and(
            |(alpha, power)| (alpha + power) * deviation / (sessions as f64).sqrt() <= distance,
        )
    };
    if !enough(MOST_SESSIONS) {
        return None;
    }
    let (mut low, mut high) = (1, MOST_SESSIONS);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high.max(super::paired::FEWEST_SESSIONS))
}

/// Correlation of values within a session, by analysis of variance: `ρ = (MSB − MSW)/(MSB + (m₀ −
/// 1)·MSW)`, m₀ the usual mean size (Donner, 1986), not below 0. `None` with fewer than two
/// sessions, no session with two values, or values that are all the same.
pub fn correlation_within(sessions: &[Vec<f64>]) -> Option<f64> {
    let used: Vec<&Vec<f64>> = sessions.iter().filter(|s| !s.is_empty()).collect();
    let items: usize = used.iter().map(|session| session.len()).sum();
    if used.len() < 2 || items <= used.len() {
        return None;
    }
    let (groups, n) = (used.len() as f64, items as f64);
    let grand = used.iter().flat_map(|session| session.iter()).sum::<f64>() / n;
    let (mut between, mut within, mut squares) = (0.0, 0.0, 0.0);
    for session in &used {
        let size = session.len() as f64;
        let mean = session.iter().sum::<f64>() / size;
        between += size * (mean - grand).powi(2);
        within += session.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        squares += size * size;
    }
    let (between, within) = (between / (groups - 1.0), within / (n - groups));
    let size = (n - squares / n) / (groups - 1.0);
    let whole = between + (size - 1.0) * within;
    (whole > 0.0).then(|| ((between - within) / whole).max(0.0))
}

/// The design effect of clusters of these sizes: `1 + (m − 1)ρ`, by which the number of observations is to be divided.
pub fn design_effect(clusters: &[usize], correlation: f64) -> f64 {
    let items: usize = clusters.iter().sum();
    if items == 0 {
        return 1.0;
    }
    let squares: f64 = clusters.iter().map(|size| (*size as f64).powi(2)).sum();
    1.0 + (squares / items as f64 - 1.0) * correlation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example_is_met() {
        // SciPy: (t.ppf(.975, 19) + t.ppf(.8, 19)) * .45 * sqrt((1 + 19 * .1) / (20 * 20))
        let ahead = detectable_ahead(0.45, 0.1, 20.0, 20).unwrap();
        assert!((ahead - AHEAD).abs() < 1e-9, "{ahead}");
        assert_eq!(detectable_ahead(0.45, 0.1, 0.0, 20), None);
        assert_eq!(detectable(0.1, 1), None);
    }

    const AHEAD: f64 = 0.113_184_843_430_913;

    #[test]
    fn more_sessions_are_needed_for_less_margin() {
        let needed = |margin| sessions_needed(0.1, margin);
        let ten = needed(0.1).unwrap();
        let five = needed(0.05).unwrap();
        assert!(ten < five);
        // Just enough, and one fewer is not.
        let reach = |g: usize| {
            let t = quantile::t(0.95, g - 1).unwrap() + quantile::t(0.8, g - 1).unwrap();
            t * 0.1 / (g as f64).sqrt()
        };
        assert!(reach(five) <= 0.05 && reach(five - 1) > 0.05);
        assert_eq!(needed(0.0), None);
        assert_eq!(sessions_needed(0.0, 0.1), Some(6));
    }

    #[test]
    fn correlation_within_is_that_of_the_analysis_of_variance() {
        let sessions = vec![vec![0.5, 1.5], vec![2.5, 3.5]];
        // By hand: grand mean 2; MSB = 2·1 + 2·1 = 4 over 1; MSW = 4·0.25 over 2 = 0.5; (4 − 0.5)/(4 + 0.5).
        let rho = correlation_within(&sessions).unwrap();
        assert!((rho - 3.5 / 4.5).abs() < 1e-12);
        assert_eq!(correlation_within(&[vec![1.0]]), None);
        assert_eq!(correlation_within(&[vec![1.0, 1.0], vec![1.0, 1.0]]), None);
        assert!((design_effect(&[5; 4], 0.5) - 3.0).abs() < 1e-12);
    }
}
