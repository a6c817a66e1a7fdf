//! Agreement: how far two graders, or a grader and the truth, say the same.

use std::collections::BTreeMap;

/// Cohen's κ (1960) of two graders' labels on the same items: `(p_o − p_e)/(1 − p_e)`. `None`
/// without items, or where chance alone agrees on everything.
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

/// Krippendorff's α (2011 computation) for labels over units with any number of gradings each: `1 −
/// D_o/D_e`. Units with fewer than two gradings say nothing. `None` where all values are the same.
pub fn krippendorffs_alpha(units: &[Vec<f64>]) -> Option<f64> {
    let pairable: Vec<&Vec<f64>> = units.iter().filter(|unit| unit.len() >= 2).collect();
    let all: Vec<f64> = pairable.iter().flat_map(|u| u.iter().copied()).collect();
    let n = all.len() as f64;
    let within = pairable.iter().map(|unit| differing_pairs(unit) / (unit.len() - 1) as f64);
    let observed = within.sum::<f64>() / n;
    let expected = differing_pairs(&all) / (n * (n - 1.0));
    (expected > 0.0).then(|| 1.0 - observed / expected)
}

/// How many pairs of these values differ, both ways round.
fn differing_pairs(values: &[f64]) -> f64 {
    let counts = values
        .iter()
        .map(|left| values.iter().filter(|right| left.total_cmp(right).is_ne()).count() as f64);
    counts.sum()
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
    fn alpha_is_that_of_the_published_example() {
        // Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: four
        // observers, twelve units, values missing; nominal 0.743.
        let missing = f64::NAN;
        let observers = [
            [1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 4.0, 1.0, 2.0, missing, missing, missing],
            [1.0, 2.0, 3.0, 3.0, 2.0, 2.0, 4.0, 1.0, 2.0, 5.0, missing, 3.0],
            [missing, 3.0, 3.0, 3.0, 2.0, 3.0, 4.0, 2.0, 2.0, 5.0, 1.0, missing],
            [1.0, 2.0, 3.0, 3.0, 2.0, 4.0, 4.0, 1.0, 2.0, 5.0, 1.0, missing],
        ];
        let units: Vec<Vec<f64>> = (0..12)
            .map(|at| observers.iter().map(|o| o[at]).filter(|v| !v.is_nan()).collect())
            .collect();
        let nominal = krippendorffs_alpha(&units).unwrap();
        assert!((nominal - 0.743).abs() < 5e-4, "{nominal}");
        // The same from the definition, by NumPy in `scripts/statistics_reference`.
        check(Some(nominal), ALPHA);
        assert_eq!(krippendorffs_alpha(&[vec![1.0, 1.0]]), None);
    }

    const KAPPA: f64 = 0.608_695_652_173_913;
    const ALPHA: f64 = 0.743_421_052_631_579;
}
