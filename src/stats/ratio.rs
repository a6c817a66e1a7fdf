//! Ratios of amounts (tokens, cost, latency): compared on the log scale, session by session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Estimate;

/// A candidate's amount over the baseline's. Below 1 the candidate needs less.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Geometric mean over clusters, and over the sessions of each, of candidate / baseline; its interval is that of the mean of
    /// logarithms, so it is not symmetric. The standard error is on the log scale.
    pub geometric: Estimate,
    /// Ratio of the totals: long sessions weigh more. Exact.
    pub of_totals: f64,
    /// Whether one says more and the other says less.
    pub contradict: bool,
}

impl Ratio {
    /// Compares amounts, `(baseline, candidate)` per session, given cluster by cluster. `None`
    /// without sessions, or where an amount is not above 0: a ratio to 0 is not a number.
    pub fn of(clusters: &[Vec<(f64, f64)>]) -> Option<Self> {
        let amounts = || clusters.iter().flatten();
        if amounts().any(|(old, new)| !(*old > 0.0 && *new > 0.0)) {
            return None;
        }
        let logs = clusters.iter().filter(|own| !own.is_empty()).map(|own| {
            let logs = own.iter().map(|(old, new)| libm::log(new / old));
            logs.sum::<f64>() / own.len() as f64
        });
        let log = Estimate::of_sessions(&logs.collect::<Vec<_>>(), amounts().count())?;
        let geometric = Estimate {
            point_estimate: libm::exp(log.point_estimate),
            confidence_interval: log.confidence_interval.map(|it| it.map(libm::exp)),
            ..log
        };
        let old: f64 = amounts().map(|(old, _)| old).sum();
        let new: f64 = amounts().map(|(_, new)| new).sum();
        let of_totals = new / old;
        Some(Self {
            contradict: (geometric.point_estimate - 1.0) * (of_totals - 1.0) < 0.0,
            geometric,
            of_totals,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(amounts: &[(f64, f64)]) -> Option<Ratio> {
        let clusters: Vec<_> = amounts.iter().map(|amounts| vec![*amounts]).collect();
        Ratio::of(&clusters)
    }

    #[test]
    fn a_ratio_and_its_inverse_say_the_same() {
        let there: Vec<(f64, f64)> = vec![(10.0, 5.0), (20.0, 16.0), (40.0, 10.0), (5.0, 4.0)];
        let back: Vec<(f64, f64)> = there.iter().map(|(old, new)| (*new, *old)).collect();
        let (there, back) = (ratio(&there).unwrap(), ratio(&back).unwrap());
        let product = there.geometric.point_estimate * back.geometric.point_estimate;
        assert!((product - 1.0).abs() < 1e-12);
        // Fourth root of ½ · ⅘ · ¼ · ⅘.
        assert!((there.geometric.point_estimate - 0.08_f64.powf(0.25)).abs() < 1e-12);
        assert!((there.of_totals - 35.0 / 75.0).abs() < 1e-12);
        let (a, b) = (
            there.geometric.confidence_interval.unwrap(),
            back.geometric.confidence_interval.unwrap(),
        );
        assert!((a.lower_bound * b.upper_bound - 1.0).abs() < 1e-12);
    }

    #[test]
    fn totals_that_say_the_opposite_are_told() {
        // Two short sessions got cheaper, the long one dearer.
        let told = ratio(&[(10.0, 5.0), (10.0, 5.0), (1000.0, 1200.0)]).unwrap();
        assert!(told.contradict);
        assert_eq!(ratio(&[(0.0, 1.0)]), None);
        assert_eq!(ratio(&[]), None);
    }
}
