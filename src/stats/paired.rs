//! Paired differences: the same sessions and the same probes under two strategies.
//!
//! A probe's difference is the candidate's score minus the baseline's. Clusters are the independent
//! units: a session, with its side chains where it has any. Both estimates, by session and by probe,
//! take their error from the spread between clusters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bootstrap::{self, FEWEST_FOR_BOOTSTRAP};
use super::signflip::{self, SignFlip};
use super::{ConfidenceInterval, Estimate, power};

/// With fewer sessions there is no verdict about a population.
pub const FEWEST_SESSIONS: usize = 6;

/// The pairs of one session: score under the baseline, score under the candidate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairedSession {
    /// Pairs that were scored on both sides, in the order of the probes.
    pub pairs: Vec<(f64, f64)>,
    /// Pairs, likewise, of which at least one side was not scored: in no estimate, but in the bounds.
    pub unscored: Vec<(Option<f64>, Option<f64>)>,
}

/// The gain (above 0) or loss (below 0) of a candidate, session by session.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedDifference {
    /// The headline: the mean over clusters of the mean over sessions of each session's mean
    /// difference. Its sessions are clusters.
    pub by_session: Estimate,
    /// Every probe weighing the same; its error is clustered.
    pub by_probe: Estimate,
    /// Whether the two are more than one standard error apart: long sessions differ from short
    /// ones.
    pub weights_matter: bool,
    /// Pairs in which the candidate is better, equal, worse: a description, not a test.
    pub counts: Counts,
    /// Sign-flip test over clusters; nothing below two.
    pub sign_flip: Option<SignFlip>,
    /// Percentile interval of the cluster bootstrap; from 30 clusters only.
    pub bootstrap: Option<ConfidenceInterval>,
    /// The smallest difference that this many clusters would have shown in 8 of 10 experiments.
    pub detectable: Option<f64>,
    /// The point estimate if every pair without a score were as bad, and as good, as can be; `None`
    /// where all were scored.
    pub bounds: Option<(f64, f64)>,
    /// Pairs without a score.
    pub unscored: usize,
}

/// Wins, ties and losses of the candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// The candidate is better.
    pub wins: usize,
    /// Both are the same.
    pub ties: usize,
    /// The candidate is worse.
    pub losses: usize,
}

impl Counts {
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        pairs.fold(Self::default(), |mut counts, (old, new)| {
            match new.partial_cmp(&old) {
                Some(std::cmp::Ordering::Greater) => counts.wins += 1,
                Some(std::cmp::Ordering::Less) => counts.losses += 1,
                Some(std::cmp::Ordering::Equal) | None => counts.ties += 1,
            }
            counts
        })
    }

    /// All of them.
    pub fn total(self) -> usize {
        self.wins + self.ties + self.losses
    }
}

/// Sums of one cluster: its difference `D` and its number of pairs `m`, and its mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cluster {
    /// `D_s`, the sum of its differences.
    pub difference: f64,
    /// `m_s`, how many pairs.
    pub pairs: usize,
    /// The mean over its sessions of their mean differences; not a number without pairs.
    pub mean: f64,
}

impl Cluster {
    /// A session that is a cluster of its own: its mean is `D_s / m_s`.
    pub fn of(difference: f64, pairs: usize) -> Self {
        Self {
            difference,
            pairs,
            mean: difference / pairs as f64,
        }
    }

    /// Several sessions; those without pairs are left out.
    fn of_sessions(sessions: &[PairedSession]) -> Self {
        let used = sessions.iter().map(PairedSession::alone);
        let used: Vec<Self> = used.filter(|session| session.pairs > 0).collect();
        Self {
            difference: used.iter().map(|session| session.difference).sum(),
            pairs: used.iter().map(|session| session.pairs).sum(),
            mean: used.iter().map(|session| session.mean).sum::<f64>() / used.len() as f64,
        }
    }
}

/// Session-weighted difference `Δ_M = mean(D_s/m_s)` with `± t(1 − α/2, G − 1) · sd/√G`. Clusters
/// without pairs are left out.
pub fn session_weighted(clusters: &[Cluster]) -> Option<Estimate> {
    let used = clusters.iter().filter(|cluster| cluster.pairs > 0);
    let means: Vec<f64> = used.clone().map(|cluster| cluster.mean).collect();
    Estimate::of_sessions(&means, used.map(|cluster| cluster.pairs).sum())
}

/// Probe-weighted difference `Δ = Σ D_s / n`, with the clustered error:
/// `SE² = G/(G − 1) · Σ (D_s − m_s Δ)² / n²` (Liang and Zeger, 1986, with the usual correction for few
/// clusters) and `t(G − 1)`: a ratio of two sums over clusters.
pub fn probe_weighted(clusters: &[Cluster]) -> Option<Estimate> {
    let used = clusters.iter().filter(|cluster| cluster.pairs > 0);
    let sums: Vec<(f64, f64)> = used.map(|it| (it.difference, it.pairs as f64)).collect();
    Estimate::of_ratio(&sums, clusters.iter().map(|cluster| cluster.pairs).sum())
}

impl PairedDifference {
    /// Compares two strategies on the same sessions, given cluster by cluster. `seed` orders the
    /// draws of the resampling tests. `None` where no pair was scored.
    pub fn of(sessions: &[Vec<PairedSession>], seed: u64) -> Option<Self> {
        let clusters = sessions.iter().map(|own| Cluster::of_sessions(own));
        let clusters: Vec<Cluster> = clusters.collect();
        let by_session = session_weighted(&clusters)?;
        let by_probe = probe_weighted(&clusters)?;
        let used = clusters.iter().filter(|cluster| cluster.pairs > 0);
        let means: Vec<f64> = used.map(|cluster| cluster.mean).collect();
        let apart = (by_session.point_estimate - by_probe.point_estimate).abs();
        let error = by_session.standard_error;
        let spread = error.unwrap_or(0.0);
        let offered = Some(&means).filter(|means| means.len() >= FEWEST_FOR_BOOTSTRAP);
        let all = || sessions.iter().flatten();
        let unscored = all().map(|session| session.unscored.len()).sum();
        Some(Self {
            weights_matter: spread > 0.0 && apart > spread,
            counts: Counts::of(all().flat_map(|session| session.pairs.iter().copied())),
            sign_flip: signflip::test(&means, seed),
            bootstrap: offered.and_then(|means| bootstrap::percentile(means, seed)),
            detectable: error.and_then(|error| power::detectable(error, means.len())),
            bounds: (unscored > 0).then(|| bounds(sessions)),
            unscored,
            by_session,
            by_probe,
        })
    }
}

impl PairedSession {
    fn alone(&self) -> Cluster {
        let differences = self.pairs.iter().map(|(old, new)| new - old);
        Cluster::of(differences.sum(), self.pairs.len())
    }
}

/// The session-weighted difference with every missing score at its worst and at its best for the
/// candidate (Horowitz and Manski's bounds; scores lie between 0 and 1).
fn bounds(clusters: &[Vec<PairedSession>]) -> (f64, f64) {
    let of_session = |session: &PairedSession| {
        let count = session.pairs.len() + session.unscored.len();
        let difference = session.alone().difference;
        let (mut low, mut high) = (difference, difference);
        for (old, new) in &session.unscored {
            low += new.unwrap_or(0.0) - old.unwrap_or(1.0);
            high += new.unwrap_or(1.0) - old.unwrap_or(0.0);
        }
        (count > 0).then(|| (low / count as f64, high / count as f64))
    };
    let mean = |ends: &[(f64, f64)]| {
        let count = ends.len() as f64;
        let sum = |end: fn(&(f64, f64)) -> f64| ends.iter().map(end).sum::<f64>();
        (!ends.is_empty()).then(|| (sum(|ends| ends.0) / count, sum(|ends| ends.1) / count))
    };
    let of_cluster = |own: &Vec<PairedSession>| {
        let ends: Vec<(f64, f64)> = own.iter().filter_map(of_session).collect();
        mean(&ends)
    };
    let ends: Vec<(f64, f64)> = clusters.iter().filter_map(of_cluster).collect();
    mean(&ends).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    /// Ten sessions as in `scripts/statistics_reference`.
    const CLUSTERS: [(f64, usize); 10] = [
        (-2.0, 8),
        (1.0, 12),
        (0.0, 5),
        (-4.0, 20),
        (-1.0, 9),
        (2.0, 11),
        (-3.0, 7),
        (0.0, 16),
        (-1.0, 10),
        (-2.0, 13),
    ];

    fn clusters() -> Vec<Cluster> {
        CLUSTERS
            .iter()
            .map(|&(difference, pairs)| Cluster::of(difference, pairs))
            .collect()
    }

    #[test]
    fn both_weightings_agree_with_scipy_and_statsmodels() {
        // scipy.stats.ttest_1samp(means, 0).confidence_interval(0.95)
        let by_session = session_weighted(&clusters()).unwrap();
        let interval = by_session.confidence_interval.unwrap();
        close(by_session.point_estimate, SESSION.0);
        close(by_session.standard_error.unwrap(), SESSION.1);
        close(interval.lower_bound, SESSION.2);
        close(interval.upper_bound, SESSION.3);
        // statsmodels OLS on a constant, cov_type="cluster" with its own correction taken back to
        // G/(G − 1), use_t=True with G − 1 degrees of freedom.
        let by_probe = probe_weighted(&clusters()).unwrap();
        let interval = by_probe.confidence_interval.unwrap();
        close(by_probe.point_estimate, PROBE.0);
        close(by_probe.standard_error.unwrap(), PROBE.1);
        close(interval.lower_bound, PROBE.2);
        close(interval.upper_bound, PROBE.3);
    }

    /// Estimate, standard error, lower and upper end.
    const SESSION: (f64, f64, f64, f64) = (
        -0.097_837_717_837_837_8,
        0.055_424_412_272_786_3,
        -0.223_216_449_054_482,
        0.027_541_013_379_046_3,
    );
    const PROBE: (f64, f64, f64, f64) = (
        -0.090_090_090_090_090_1,
        0.050_583_173_963_681_8,
        -0.204_517_179_389_101,
        0.024_336_999_208_920_4,
    );

    #[test]
    fn pairs_without_a_score_are_dropped_counted_and_bounded() {
        let scored = PairedSession {
            pairs: vec![(1.0, 1.0), (1.0, 0.0), (0.0, 1.0)],
            unscored: vec![(Some(1.0), None)],
        };
        let difference = PairedDifference::of(&[vec![scored.clone()], vec![scored]], 1).unwrap();
        close(difference.by_session.point_estimate, 0.0);
        assert_eq!(difference.unscored, 2);
        assert_eq!(difference.by_probe.n.items, 6);
        // At worst one point of four is lost in each session; at best none.
        let (low, high) = difference.bounds.unwrap();
        close(low, -0.25);
        close(high, 0.0);
        let counts = difference.counts;
        assert_eq!((counts.wins, counts.ties, counts.losses), (2, 2, 2));
        assert_eq!(counts.total(), 6);
    }

    #[test]
    fn sessions_that_weigh_differently_are_told() {
        let long = PairedSession {
            pairs: vec![(1.0, 0.0); 90],
            unscored: Vec::new(),
        };
        let short = PairedSession {
            pairs: vec![(1.0, 1.0); 2],
            unscored: Vec::new(),
        };
        let sessions = [long, short.clone(), short.clone(), short].map(|session| vec![session]);
        let difference = PairedDifference::of(&sessions, 1).unwrap();
        close(difference.by_session.point_estimate, -0.25);
        assert!(difference.by_probe.point_estimate < -0.9);
        assert!(difference.weights_matter);
        assert_eq!(PairedDifference::of(&[], 1), None);
    }
}
