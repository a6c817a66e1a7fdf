//! Multiple comparisons: p values are adjusted for their number.
//!
//! They are adjusted by Holm's steps, so that one false finding in the whole family stays as rare as promised.

/// Holm's adjusted p values (S. Holm, 1979), in the order of the input.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    // NaN comes last.
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|left, right| p_values[*left].total_cmp(&p_values[*right]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut highest: f64 = 0.0;
    for (rank, at) in order.iter().enumerate() {
        let factor = (p_values.len() - rank) as f64;
        highest = highest.max(p_values[*at] * factor).min(1.0);
        adjusted[*at] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: [f64; 8] = [0.04, 0.001, 0.03, 0.2, 0.012, 0.03, 0.9, 0.005];

    #[track_caller]
    fn check(adjusted: &[f64], expected: &[f64]) {
        assert_eq!(adjusted.len(), expected.len());
        for (ours, theirs) in adjusted.iter().zip(expected) {
            assert!((ours - theirs).abs() < 1e-12, "{adjusted:?} is not {expected:?}");
        }
    }

    #[test]
    fn holm_agrees_with_statsmodels() {
        // statsmodels.stats.multitest.multipletests(P, method="holm")
        check(&holm(&P), &HOLM);
        check(&holm(&[]), &[]);
    }

    const HOLM: [f64; 8] = [0.15, 0.008, 0.15, 0.4, 0.072, 0.15, 0.9, 0.035];
}
