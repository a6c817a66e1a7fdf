//! Agreement: how far two graders, or a grader and the truth, say the same.

use std::collections::BTreeMap;

/// Cohen's κ (1960) of two graders' labels on the same items: `(p_o − p_e)/(1 − p_e)`. Nothing without
/// items, or where chance alone agrees on everything.
pub fn cohens_kappa<L: Ord>(pairs: &[(L, L)]) -> Option<f64> {
    if pairs.is_empty() {
        return None;
    }
    let n = pairs.len() as f64;
    let mut counts: BTreeMap<&L, (f64, f64)> = BTreeMap::new();
    for (left, right) in pairs {
        counts.entry(left).or_default().0 += 1.0;
        counts.entry(right).or_default().1 += 1.0;
    }
    let observed = pairs.iter().filter(|(left, right)| left == right).count() as f64 / n;
    let expected: f64 = counts.values().map(|(l, r)| l * r / (n * n)).sum();
    (expected < 1.0).then(|| (observed - expected) / (1.0 - expected))
}

/// Area under the ROC curve: the share of pairs of a positive and a negative in which the positive
/// scores higher, ties counting half (the Mann–Whitney statistic). Nothing without either kind.
pub fn auc(items: &[(f64, bool)]) -> Option<f64> {
    let mut sorted: Vec<(f64, bool)> = items.to_vec();
    if sorted.iter().any(|(score, _)| score.is_nan()) {
        return None;
    }
    sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (mut below, mut sum, mut positives) = (0.0, 0.0, 0.0);
    let same = |left: &(f64, bool), right: &(f64, bool)| left.0.total_cmp(&right.0).is_eq();
    for tied in sorted.chunk_by(same) {
        let hits = tied.iter().filter(|(_, positive)| *positive).count() as f64;
        let misses = tied.len() as f64 - hits;
        sum += hits * (below + misses / 2.0);
        below += misses;
        positives += hits;
    }
    (below > 0.0 && positives > 0.0).then(|| sum / (below * positives))
}

/// How far two values are apart, for [`krippendorffs_alpha`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Labels: the same, or not.
    Nominal,
    /// Numbers: the square of their difference.
    Interval,
}

/// Krippendorff's α (2011 computation) over units with any number of gradings each: `1 − D_o/D_e`.
/// Units with fewer than two gradings say nothing. Nothing where all values are the same.
pub fn krippendorffs_alpha(units: &[Vec<f64>], scale: Scale) -> Option<f64> {
    let apart = |left: f64, right: f64| match scale {
        Scale::Nominal => f64::from(u8::from(left.total_cmp(&right).is_ne())),
        Scale::Interval => (left - right).powi(2),
    };
    let pairable: Vec<&Vec<f64>> = units.iter().filter(|unit| unit.len() >= 2).collect();
    let all: Vec<f64> = pairable.iter().flat_map(|u| u.iter().copied()).collect();
    let n = all.len() as f64;
    let sum_over = |values: &[f64]| -> f64 {
        let of = |left: &f64| values.iter().map(|r| apart(*left, *r)).sum::<f64>();
        values.iter().map(of).sum()
    };
    let observed: f64 = pairable
        .iter()
        .map(|unit| sum_over(unit) / (unit.len() - 1) as f64)
        .sum::<f64>()
        / n;
    let expected = sum_over(&all) / (n * (n - 1.0));
    (expected > 0.0).then(|| 1.0 - observed / expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: Option<f64>, expected: f64) {
        let value = value.unwrap();
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    #[test]
    fn kappa_agrees_with_scikit_learn() {
        let left = [0, 1, 1, 2, 0, 1, 2, 2, 1, 0, 0, 1];
        let right = [0, 1, 0, 2, 0, 1, 1, 2, 1, 0, 1, 1];
        let pairs: Vec<(i32, i32)> = left.into_iter().zip(right).collect();
        // sklearn.metrics.cohen_kappa_score
        check(cohens_kappa(&pairs), KAPPA);
        assert_eq!(cohens_kappa(&[(1, 1), (1, 1)]), None);
        assert_eq!(cohens_kappa::<u8>(&[]), None);
    }

    #[test]
    fn auc_agrees_with_scikit_learn() {
        let scores = [0.1, 0.4, 0.35, 0.8, 0.4, 0.7, 0.2, 0.9, 0.4];
        let truth = [0, 0, 1, 1, 1, 0, 0, 1, 0];
        let items: Vec<(f64, bool)> = scores.into_iter().zip(truth.map(|t| t == 1)).collect();
        // sklearn.metrics.roc_auc_score
        check(auc(&items), AUC);
        assert_eq!(auc(&[(0.1, true)]), None);
        assert_eq!(auc(&[(f64::NAN, true), (0.1, false)]), None);
    }

    #[test]
    fn alpha_is_that_of_the_published_example() {
        // Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: four
        // observers, twelve units, values missing; nominal 0.743, interval 0.849.
        let missing = f64::NAN;
        let observers = [
            [
                1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 4.0, 1.0, 2.0, missing, missing, missing,
            ],
            [
                1.0, 2.0, 3.0, 3.0, 2.0, 2.0, 4.0, 1.0, 2.0, 5.0, missing, 3.0,
            ],
            [
                missing, 3.0, 3.0, 3.0, 2.0, 3.0, 4.0, 2.0, 2.0, 5.0, 1.0, missing,
            ],
            [
                1.0, 2.0, 3.0, 3.0, 2.0, 4.0, 4.0, 1.0, 2.0, 5.0, 1.0, missing,
            ],
        ];
        let units: Vec<Vec<f64>> = (0..12)
            .map(|at| {
                observers
                    .iter()
                    .map(|o| o[at])
                    .filter(|v| !v.is_nan())
                    .collect()
            })
            .collect();
        let nominal = krippendorffs_alpha(&units, Scale::Nominal).unwrap();
        let interval = krippendorffs_alpha(&units, Scale::Interval).unwrap();
        assert!((nominal - 0.743).abs() < 5e-4, "{nominal}");
        assert!((interval - 0.849).abs() < 5e-4, "{interval}");
        // The same from the definition, by NumPy in `scripts/statistics_reference`.
        check(Some(nominal), ALPHA.0);
        check(Some(interval), ALPHA.1);
        assert_eq!(krippendorffs_alpha(&[vec![1.0, 1.0]], Scale::Nominal), None);
    }

    const KAPPA: f64 = 0.608_695_652_173_913;
    const AUC: f64 = 0.75;
    const ALPHA: (f64, f64) = (0.743_421_052_631_579, 0.849_107_142_857_143);
}
