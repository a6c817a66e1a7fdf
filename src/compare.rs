//! Is it better? Two strategies on the same sessions, paired probe by probe.
//!
//! A [`Sample`] is what one run left of one strategy, as far as a comparison needs it; it comes from a
//! run's records or from a [`baseline`]. [`Comparison::of`] pairs two samples and says, metric by
//! metric, what changed and how sure that is; [`gate`] turns it into a verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Direction;
use crate::stats::gate::{Bounds, Target};
use crate::stats::paired::PairedDifference;
use crate::stats::ratio::Ratio;

pub mod baseline;
mod canonical;
mod difference;
pub mod family;
pub mod gate;
pub mod sample;
mod slices;
pub mod source;
pub mod sweep;

pub use sample::{ProbeSample, Sample, SessionSample};
pub use slices::Slice;
pub use source::{Mismatch, Source};

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
pub struct Compared {
    /// Its name: in files, in `[gate]` and on the command line.
    pub name: &'static str,
    /// How it is compared.
    pub kind: Kind,
    /// Which way is better.
    pub direction: Direction,
    /// Who measures it, with the version of the evaluator.
    pub evaluator: &'static str,
    /// The margin it is gated with where none is named; nothing for what is shown only.
    pub margin: Option<f64>,
}

/// Every metric that is compared, in the order of tables.
pub const COMPARED: &[Compared] = &[
    Compared::new(
        "completion",
        Kind::Share,
        Direction::Higher,
        "replay",
        Some(0.0),
    ),
    Compared::new(
        "rejected",
        Kind::Count,
        Direction::Lower,
        "validity v1",
        Some(0.0),
    ),
    Compared::new(
        "survival",
        Kind::Probes,
        Direction::Higher,
        "survival v1",
        Some(0.05),
    ),
    Compared::new(
        "extract",
        Kind::Probes,
        Direction::Higher,
        "bm25-extract v1",
        None,
    ),
    Compared::new(
        "accuracy",
        Kind::Probes,
        Direction::Higher,
        "reader",
        Some(0.05),
    ),
    Compared::new(
        "action_support",
        Kind::Share,
        Direction::Higher,
        "replay",
        Some(0.05),
    ),
    Compared::new(
        "token_savings",
        Kind::Share,
        Direction::Higher,
        "counter",
        None,
    ),
    Compared::new(
        "cost_savings",
        Kind::Share,
        Direction::Higher,
        "prompt cache",
        None,
    ),
    Compared::new("tokens", Kind::Amount, Direction::Lower, "counter", None),
    Compared::new("cost", Kind::Amount, Direction::Lower, "prompt cache", None),
];

impl Compared {
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
    /// Whether both are written the same; nothing where one definition is not known.
    pub same_definition: Option<bool>,
    /// Metric by metric, those that both sides have.
    pub metrics: Vec<MetricDifference>,
    /// Probes whose score changed, the losses of high importance first.
    pub changed: Vec<ChangedProbe>,
    /// Rules of the provider that the candidate breaks and the baseline does not.
    pub broken_rules: Vec<BrokenRule>,
    /// How much of what the baseline scored the candidate scored too.
    pub coverage: Coverage,
    /// Survival by kind of probe: explored, never gated.
    pub slices: Vec<Slice>,
    /// What the verdicts are about.
    pub target: Target,
    /// Seed of the resampling tests.
    pub seed: u64,
}

/// What changed in one metric.
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
    /// Mean over sessions under the baseline.
    pub baseline: f64,
    /// Mean over sessions under the candidate.
    pub candidate: f64,
    /// Differences per session and per probe; a share or count has one value per session.
    pub paired: PairedDifference,
    /// For amounts: candidate / baseline.
    pub ratio: Option<Ratio>,
    /// What a verdict rests on, turned so that higher is better; nothing where one session alone
    /// leaves the error unknown.
    pub bounds: Option<Bounds>,
    /// p value of the sign-flip test, adjusted for all comparisons of the family.
    pub adjusted_p: Option<f64>,
    /// Sessions of the baseline that the candidate lacks, for this metric.
    pub missing_sessions: usize,
    /// Each session's difference, in the order of session ids: what families of tests are made of.
    #[serde(skip)]
    pub by_session: Vec<(String, f64)>,
}

/// A probe whose score is not what it was.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ChangedProbe {
    /// The session.
    pub session: String,
    /// The probe, and at which percent of the session it was asked.
    pub probe: String,
    /// What it asks about.
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
}

/// A rule of level `rejected` that only the candidate breaks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
pub struct BrokenRule {
    /// The session.
    pub session: String,
    /// The rule.
    pub rule: String,
}

/// How much was scored on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize)]
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
}

impl Coverage {
    /// Paired items, or sessions where there are no items, as a share of the baseline's; 1 of nothing.
    pub fn share(&self) -> f64 {
        let (part, whole) = if self.items > 0 {
            (self.paired_items, self.items)
        } else {
            (self.paired_sessions, self.sessions)
        };
        if whole == 0 {
            1.0
        } else {
            part as f64 / whole as f64
        }
    }
}

/// How two samples are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What is asked about.
    pub target: Target,
    /// Whether no model with chance in it took part: then differences on the suite are exact.
    pub deterministic: bool,
    /// Seed of the resampling tests.
    pub seed: u64,
}

impl Comparison {
    /// Compares `candidate` with `baseline`, over the sessions of the baseline.
    pub fn of(baseline: &Sample, candidate: &Sample, settings: Settings) -> Self {
        difference::compare(baseline, candidate, settings)
    }

    /// The difference in this metric.
    pub fn metric(&self, name: &str) -> Option<&MetricDifference> {
        self.metrics.iter().find(|metric| metric.metric == name)
    }
}
