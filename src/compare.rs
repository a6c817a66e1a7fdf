//! Is it better? Two strategies on the same sessions, paired probe by probe.
//!
//! A [`Sample`] is what one run left of one strategy, as far as a comparison needs it; it comes from a
//! run's records or from a [`baseline`]. [`Comparison::of`] pairs two samples and says, metric by
//! metric, what changed and how sure that is; [`gate`] turns it into a verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Direction::{self, Higher, Lower};
use crate::record::evaluators::{SURVIVAL, VALIDITY};
use crate::stats::gate::{Bounds, Target};
use crate::stats::paired::PairedDifference;
use crate::stats::ratio::Ratio;
use crate::stats::suite::SuiteDifference;

pub mod baseline;
mod canonical;
mod difference;
pub mod family;
pub mod gate;
pub mod prices;
pub mod sample;
mod slices;
pub mod source;
pub mod sweep;
pub mod verdict;

pub use prices::Repriced;
pub use sample::{ProbeSample, Sample, SessionSample};
pub use slices::Slice;
pub use source::{ComparedRun, FactText, Mismatch};

/// How the values of a metric are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One score from 0 to 1 per probe: paired by probe, clustered by session.
    Probes,
    /// One share per session.
    Share,
    /// One count per session.
    Count,
    /// One amount per session: compared as a ratio, on the log scale.
    Amount,
}

/// A metric that can be compared, and so gated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparableMetric {
    /// Its name: in files, in `[gate]` and on the command line.
    pub name: &'static str,
    /// How it is compared.
    pub kind: Kind,
    /// Which way is better.
    pub direction: Direction,
    /// Who measures it, with the version of the evaluator.
    pub evaluator: &'static str,
    /// The margin it is gated with where none is named; `None` for what is shown only.
    pub margin: Option<f64>,
}

/// Every metric that is compared, in the order of tables.
pub const COMPARED: &[ComparableMetric] = &[
    ComparableMetric::new("completion", Kind::Share, Higher, "replay", Some(0.0)),
    ComparableMetric::new("rejected", Kind::Count, Lower, VALIDITY, Some(0.0)),
    ComparableMetric::new("survival", Kind::Probes, Higher, SURVIVAL, Some(0.05)),
    ComparableMetric::new("accuracy", Kind::Probes, Higher, "reader", Some(0.05)),
    ComparableMetric::new("action_support", Kind::Share, Higher, "replay", Some(0.05)),
    ComparableMetric::new("token_savings", Kind::Share, Higher, "counter", None),
    ComparableMetric::new("cost_savings", Kind::Share, Higher, "prompt cache", None),
    ComparableMetric::new("tokens", Kind::Amount, Lower, "counter", None),
    ComparableMetric::new("cost", Kind::Amount, Lower, "prompt cache", Some(0.02)),
];

impl ComparableMetric {
    const fn new(
        name: &'static str,
        kind: Kind,
        direction: Direction,
        evaluator: &'static str,
        margin: Option<f64>,
    ) -> Self {
        Self {
            name,
            kind,
            direction,
            evaluator,
            margin,
        }
    }

    /// The metric of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        COMPARED.iter().find(|metric| metric.name == name)
    }
}

/// One strategy, compared with another or with itself in another run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    /// The baseline strategy.
    pub baseline: String,
    /// The candidate strategy.
    pub candidate: String,
    /// Whether both are written the same; `None` where one definition is not known.
    pub same_definition: Option<bool>,
    /// Metric by metric, those that both sides have.
    pub metrics: Vec<MetricDifference>,
    /// Probes whose score changed, the losses of high importance first.
    pub changed: Vec<ChangedProbe>,
    /// Rules of the provider that the candidate breaks and the baseline does not.
    pub broken_rules: Vec<BrokenRule>,
    /// Sessions that die, or in which the strategy fails, more often under the candidate.
    pub deaths: Vec<NewDeath>,
    /// How much of what the baseline scored the candidate scored too.
    pub coverage: Coverage,
    /// Sessions whose costs were computed again at the candidate's prices, because the baseline's were others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repriced: Option<Repriced>,
    /// Sessions whose prices are not the same on both sides, and whose costs could not be computed again: what
    /// they cost is not compared.
    pub unpriced_sessions: usize,
    /// Survival by kind of probe: explored, never gated.
    pub slices: Vec<Slice>,
    /// The subject of the verdicts.
    pub target: Target,
    /// The measurements that depend on chance.
    pub chance: Chance,
    /// Seed of the resampling tests.
    pub seed: u64,
}

/// The measurements of a comparison that depend on chance, that is, on answers of live models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chance {
    /// Nothing: the same command gives the same numbers.
    Nowhere,
    /// Answers to probes, or their grades; contexts, and so what survives in them, do not.
    Answers,
    /// Summaries, and so everything that is measured.
    Everywhere,
}

impl Chance {
    /// Whether this metric depends on chance.
    pub fn touches(self, metric: &str) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Answers => metric == "accuracy",
            Self::Everywhere => true,
        }
    }
}

/// The difference in one metric.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct MetricDifference {
    /// The metric.
    pub metric: &'static str,
    /// How it was compared.
    pub kind: Kind,
    /// Which way is better.
    pub direction: Direction,
    /// Who measured it.
    pub evaluator: &'static str,
    /// Mean over clusters under the baseline.
    pub baseline: f64,
    /// Mean over clusters under the candidate.
    pub candidate: f64,
    /// Differences per session and per probe; a share or count has one value per session.
    pub paired: PairedDifference,
    /// For amounts: candidate / baseline; `None` where one of them is 0.
    pub ratio: Option<Ratio>,
    /// The difference on a suite by repeats, where chance has a part; of amounts on the log scale.
    pub suite: Option<SuiteDifference>,
    /// About a suite, where pairs have no score: the bounds if each of them were as bad, and as
    /// good, as possible for the candidate.
    #[serde(skip)]
    pub worst: Option<(Bounds, Bounds)>,
    /// The bounds that a verdict rests on, with the sign such that higher is better, of amounts on
    /// the log scale; `None` where the error is not known.
    pub bounds: Option<Bounds>,
    /// p value of the test (sign flips of clusters; about a suite, permutation of repeats), adjusted for all
    /// comparisons of the family.
    pub adjusted_p: Option<f64>,
    /// Sessions of the baseline that the candidate lacks, for this metric; of amounts also those in which the
    /// candidate died at another call than the baseline, or alone.
    pub missing_sessions: usize,
    /// Each cluster's difference, of amounts the logarithm of the ratio, in the order of their names: what
    /// families of tests are made of.
    #[serde(skip)]
    pub by_cluster: Vec<(String, f64)>,
}

impl MetricDifference {
    /// p value of its test, as if it stood alone.
    pub fn p(&self) -> Option<f64> {
        match &self.suite {
            Some(suite) => Some(suite.p),
            None => self.paired.sign_flip.map(|test| test.p),
        }
    }
}

/// A probe whose score is not what it was.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ChangedProbe {
    /// The session.
    pub session: String,
    /// The probe, and at which percent of the session it was asked.
    pub probe: String,
    /// The kind of fact it asks about.
    pub kind: String,
    /// Whether a loss of it breaks the gate.
    pub high_importance: bool,
    /// The metric.
    pub metric: &'static str,
    /// Score under the baseline, mean over repeats.
    pub baseline: f64,
    /// Score under the candidate, mean over repeats.
    pub candidate: f64,
    /// Whether it went from right in all repeats to wrong in all.
    pub lost: bool,
    /// The fewest repeats on either side.
    pub repeats: usize,
    /// Where the candidate lost it: `call 57 by clear_results`.
    pub lost_at: Option<String>,
    /// Its question and value; `None` where neither side is a run that recorded them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<FactText>,
}

/// A rule of level `rejected` that only the candidate breaks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
pub struct BrokenRule {
    /// The session.
    pub session: String,
    /// The rule.
    pub rule: String,
}

/// A session that died, or in which the strategy failed, more often under the candidate.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct NewDeath {
    /// The session.
    pub session: String,
    /// In how many of how many repeats under the baseline.
    pub baseline: (usize, usize),
    /// In how many of how many repeats under the candidate.
    pub candidate: (usize, usize),
    /// Where the candidate's first one died: `call 57`; `None` where the records do not say.
    pub at: Option<String>,
}

/// How much was scored on both sides.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Coverage {
    /// Sessions of the baseline.
    pub sessions: usize,
    /// Of these, sessions that the candidate has too.
    pub paired_sessions: usize,
    /// Probe items that the baseline scored.
    pub items: usize,
    /// Of these, items that the candidate scored too.
    pub paired_items: usize,
    /// Cells of the candidate in which a session died or the strategy failed, and the baseline's did
    /// not.
    pub newly_dead: usize,
    /// The same by metric, those that the baseline scored: one that is always scored must not hide what
    /// another lacks.
    pub by_metric: Vec<MetricCoverage>,
}

/// How much of one metric was scored on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct MetricCoverage {
    /// The metric, a name of [`COMPARED`].
    pub metric: &'static str,
    /// Probe items that the baseline scored.
    pub items: usize,
    /// Of these, items that the candidate scored too.
    pub paired_items: usize,
}

impl MetricCoverage {
    /// Paired items as a share of the baseline's.
    pub fn share(&self) -> f64 {
        self.paired_items as f64 / self.items.max(1) as f64
    }
}

impl Coverage {
    /// The metric of which the smallest share was scored again; `None` where no item was scored.
    pub fn worst(&self) -> Option<MetricCoverage> {
        let all = self.by_metric.iter().copied();
        all.min_by(|left, right| left.share().total_cmp(&right.share()))
    }

    /// The smallest share of a metric that was scored again, or of sessions where there are no items; 1 of
    /// nothing.
    pub fn share(&self) -> f64 {
        match (self.worst(), self.sessions) {
            (Some(worst), _) => worst.share(),
            (None, 0) => 1.0,
            (None, sessions) => self.paired_sessions as f64 / sessions as f64,
        }
    }
}

/// How two samples are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The subject of the verdicts.
    pub target: Target,
    /// The measurements that depend on chance: without any, differences on the suite are exact.
    pub chance: Chance,
    /// Seed of the resampling tests.
    pub seed: u64,
}

impl Comparison {
    /// Compares `candidate` with `baseline`, over the sessions of the baseline.
    pub fn of(baseline: &Sample, candidate: &Sample, settings: Settings) -> Self {
        difference::compare(baseline, candidate, settings)
    }

    /// Adds question and value to each changed probe, from the first of these sources that knows them.
    #[must_use]
    pub fn with_texts(mut self, sources: &[&ComparedRun]) -> Self {
        for probe in &mut self.changed {
            let item = (probe.session.clone(), probe.probe.clone());
            let mut known = sources.iter().filter_map(|source| source.texts.get(&item));
            probe.text = known.next().cloned();
        }
        self
    }

    /// The difference in this metric.
    pub fn metric(&self, name: &str) -> Option<&MetricDifference> {
        self.metrics.iter().find(|metric| metric.metric == name)
    }
}
