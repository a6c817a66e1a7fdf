//! Paired differences: the same sessions under two strategies.
//!
//! A session's difference is the candidate's score minus the baseline's. Clusters are the independent
//! units: a session, with its side chains where it has any. The error comes from the spread between
//! clusters.

use derive_more::AddAssign;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bootstrap::{self, FEWEST_FOR_BOOTSTRAP};
use super::signflip::{self, SignFlip};
use super::{ConfidenceInterval, Estimate, mean};

/// With fewer sessions there is no verdict about a population.
pub const FEWEST_SESSIONS: usize = 6;

/// One session under both.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PairedSession {
    /// Its value under the baseline and under the candidate; `None` where a side has none.
    pub values: Option<(f64, f64)>,
    /// The pairs of scores that they are means of.
    pub counts: Counts,
    /// Pairs of which a side was not scored.
    pub unscored: usize,
    /// Pairs of which a side has a score that is a range; what is shown of it is in the values.
    pub unsure: usize,
}

impl PairedSession {
    /// A session that has one value on each side.
    pub fn of(baseline: f64, candidate: f64) -> Self {
        let mut session = Self { values: Some((baseline, candidate)), ..Self::default() };
        session.counts.add(baseline, candidate);
        session
    }
}

/// The gain (above 0) or loss (below 0) of a candidate, session by session.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedDifference {
    /// The mean over clusters of the mean over their sessions' differences. Its sessions are clusters.
    pub by_session: Estimate,
    /// Pairs in which the candidate is better, equal, worse: a description, not a test.
    pub counts: Counts,
    /// Sign-flip test over clusters; nothing below two.
    pub sign_flip: Option<SignFlip>,
    /// Percentile interval of the cluster bootstrap; from 30 clusters only.
    pub bootstrap: Option<ConfidenceInterval>,
    /// Pairs without a score.
    pub unscored: usize,
    /// Pairs with a score that is a range.
    pub unsure: usize,
}

/// Wins, ties and losses of the candidate.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, AddAssign, JsonSchema, Serialize, Deserialize,
)]
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
    /// Adds a pair.
    pub fn add(&mut self, baseline: f64, candidate: f64) {
        match candidate.partial_cmp(&baseline) {
            Some(std::cmp::Ordering::Greater) => self.wins += 1,
            Some(std::cmp::Ordering::Less) => self.losses += 1,
            Some(std::cmp::Ordering::Equal) | None => self.ties += 1,
        }
    }

    /// All of them.
    pub fn total(self) -> usize {
        self.wins + self.ties + self.losses
    }
}

impl PairedDifference {
    /// Compares two strategies on the same sessions, given cluster by cluster. `seed` orders the
    /// draws of the resampling tests. `None` where no session has a value on both sides.
    pub fn of(clusters: &[Vec<PairedSession>], seed: u64) -> Option<Self> {
        let differences = means(clusters);
        let mut counts = Counts::default();
        let (mut unscored, mut unsure) = (0, 0);
        for session in clusters.iter().flatten() {
            counts += session.counts;
            unscored += session.unscored;
            unsure += session.unsure;
        }
        let by_session = Estimate::of_sessions(&differences, counts.total())?;
        let offered = Some(&differences).filter(|all| all.len() >= FEWEST_FOR_BOOTSTRAP);
        Some(Self {
            counts,
            sign_flip: signflip::test(&differences, seed),
            bootstrap: offered.and_then(|all| bootstrap::percentile(all, seed)),
            unscored,
            unsure,
            by_session,
        })
    }
}

/// The mean difference alone, without tests.
pub fn estimate(clusters: &[Vec<PairedSession>]) -> Option<Estimate> {
    let items = clusters.iter().flatten().map(|session| session.counts.total()).sum();
    Estimate::of_sessions(&means(clusters), items)
}

fn means(clusters: &[Vec<PairedSession>]) -> Vec<f64> {
    clusters.iter().filter_map(|own| mean_difference(own)).collect()
}

/// The mean over the sessions of a cluster of their differences.
fn mean_difference(cluster: &[PairedSession]) -> Option<f64> {
    let known = cluster.iter().filter_map(|session| session.values);
    mean(&known.map(|(old, new)| new - old).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    /// The differences of ten sessions as in `scripts/statistics_reference`: sum and pairs.
    const SESSIONS: [(f64, f64); 10] = [
        (-2.0, 8.0),
        (1.0, 12.0),
        (0.0, 5.0),
        (-4.0, 20.0),
        (-1.0, 9.0),
        (2.0, 11.0),
        (-3.0, 7.0),
        (0.0, 16.0),
        (-1.0, 10.0),
        (-2.0, 13.0),
    ];

    #[test]
    fn the_difference_agrees_with_scipy() {
        let sessions = SESSIONS.map(|(sum, pairs)| vec![PairedSession::of(0.0, sum / pairs)]);
        // scipy.stats.ttest_1samp(means, 0).confidence_interval(0.95)
        let found = PairedDifference::of(&sessions, 1).unwrap().by_session;
        let interval = found.confidence_interval.unwrap();
        close(found.point_estimate, -0.097_837_717_837_837_8);
        close(found.standard_error.unwrap(), 0.055_424_412_272_786_3);
        close(interval.lower_bound, -0.223_216_449_054_482);
        close(interval.upper_bound, 0.027_541_013_379_046_3);
        assert_eq!(PairedDifference::of(&[], 1), None);
    }

    #[test]
    fn the_sessions_of_a_cluster_are_one() {
        let main = PairedSession::of(1.0, 0.0);
        let side = PairedSession { unscored: 2, ..PairedSession::of(1.0, 1.0) };
        let unknown = PairedSession::default();
        let clusters = [vec![main, side, unknown], vec![side], vec![unknown]];
        let found = PairedDifference::of(&clusters, 1).unwrap();
        close(found.by_session.point_estimate, -0.25);
        assert_eq!(found.by_session.n.sessions, 2);
        let counts = found.counts;
        assert_eq!((counts.wins, counts.ties, counts.losses), (0, 2, 1));
        assert_eq!((counts.total(), found.unscored), (3, 4));
    }
}
