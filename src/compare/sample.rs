//! The results of one strategy in one run, as far as comparisons need them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::prices;
use crate::metric::CellSummary;
use crate::metric::cost::{BilledTokens, SchemeCost, edge_savings};
use crate::metric::survival::is_planted;
use crate::record::words::Verdict;
use crate::record::{CellRecord, Importance, Level, StrategyEntry};
use crate::units::ContentHash;

/// A strategy in a baseline.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Stored")]
pub struct Sample {
    /// The strategy's name, overrides in brackets; a file holds it as the key.
    #[serde(skip)]
    pub strategy: String,
    /// Hash of the whole strategy as TOML.
    pub definition: String,
    /// Its sessions, by id.
    pub sessions: BTreeMap<String, SessionSample>,
}

/// One session under one strategy.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSample {
    /// The main session that it is a side chain of; a file holds it in [`ComparedRun::clusters`].
    ///
    /// [`ComparedRun::clusters`]: super::ComparedRun::clusters
    #[serde(skip)]
    pub cluster: Option<String>,
    /// Metrics with one value per session, one entry per repeat.
    pub metrics: BTreeMap<String, Vec<f64>>,
    /// The tokens that its costs are computed from, one entry per repeat that has a cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub billed: Vec<BilledTokens>,
    /// Cost savings with a breakpoint in front of what the strategy changes next, one entry per repeat that
    /// has one: not in files.
    #[serde(skip)]
    pub(crate) edge_savings: Vec<f64>,
    /// Probe items: `fact-3@50` is probe `fact-3`, asked at 50 % of the session.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub probes: BTreeMap<String, ProbeSample>,
    /// Rules of level `rejected` that a prompt broke.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rejected: BTreeSet<String>,
    /// Repeats in which the session died or the strategy failed.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub dead: usize,
    /// Of these, repeats in which the strategy failed. A baseline does not say.
    #[serde(skip)]
    pub failed: usize,
    /// Where the first of them died: `call 57`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub died_at: Option<String>,
}

impl SessionSample {
    /// Repeats that were run.
    pub fn repeats(&self) -> usize {
        let metrics = self.metrics.values().map(Vec::len);
        let probes = self.probes.values().map(|probe| probe.survival.len());
        metrics.chain(probes).max().unwrap_or(0).max(self.dead)
    }
}

/// One probe item under one strategy; one score per repeat in which it was scored.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSample {
    /// The kind of fact it asks about.
    pub kind: String,
    /// How much its loss matters.
    pub importance: Importance,
    /// Scores of string matching.
    pub survival: Vec<f64>,
    /// Scores of a model's answers, where one was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accuracy: Vec<f64>,
    /// Scores of all fresh answers of a model, where it gave several in a repeat: what a loss is
    /// confirmed by. `accuracy` is their mean in each repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<f64>,
    /// Where it was lost, in the first repeat that lost it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at: Option<String>,
}

impl ProbeSample {
    /// The scores of a metric.
    pub fn scores(&self, metric: &str) -> &[f64] {
        match metric {
            "survival" => &self.survival,
            "accuracy" => &self.accuracy,
            _ => &[],
        }
    }

    /// The scores of a metric, one for each time it was asked afresh.
    pub fn fresh(&self, metric: &str) -> &[f64] {
        match metric {
            "accuracy" if !self.answers.is_empty() => &self.answers,
            _ => self.scores(metric),
        }
    }
}

impl Sample {
    /// Reduces the cells of one strategy. `references` are the cells of `full`, by session.
    pub(super) fn of(
        strategy: &StrategyEntry,
        cells: &[&CellRecord],
        references: &BTreeMap<&str, &CellRecord>,
    ) -> Self {
        let mut sessions: BTreeMap<String, SessionSample> = BTreeMap::new();
        for cell in cells {
            let reference = references.get(cell.session.as_str()).copied();
            let summary = CellSummary::of(cell, reference);
            let session = sessions.entry(cell.session.clone()).or_default();
            session.add(cell, &summary);
        }
        Self {
            strategy: strategy.name.clone(),
            definition: ContentHash::of(strategy.toml.as_bytes()).hex(16),
            sessions,
        }
    }
}

impl SessionSample {
    /// Adds a repeat's values of metrics, as far as they are known.
    pub(super) fn put(&mut self, values: impl Iterator<Item = (&'static str, Option<f64>)>) {
        for (name, value) in values {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                self.metrics.entry(name.to_owned()).or_default().push(value);
            }
        }
    }

    fn add(&mut self, cell: &CellRecord, summary: &CellSummary) {
        let cost = summary.costs.first();
        let spent = summary.savings.map(|s| (s.prompts + s.strategy).0 as f64);
        let values = [
            ("completion", summary.completion.share()),
            ("rejected", Some(summary.findings.rejected as f64)),
            ("action_support", summary.support.share()),
            ("token_savings", summary.savings.and_then(|s| s.share())),
            ("tokens", spent),
        ];
        let costs = cost.map(SchemeCost::costs);
        let priced = costs.into_iter().flat_map(prices::priced);
        self.put(values.into_iter().chain(priced));
        self.billed.extend(cost.map(|cost| cost.billed.clone()));
        let edge = edge_savings(summary).map(|(share, _)| share);
        self.edge_savings.extend(edge.filter(|it| it.is_finite()));
        let violations = cell.violations.iter();
        let rejected = violations.filter(|it| it.level == Level::Rejected);
        self.rejected.extend(rejected.map(|it| it.rule.clone()));
        let died_at = summary.completion.died_at.or(summary.completion.failed_at);
        self.dead += usize::from(died_at.is_some());
        self.failed += usize::from(summary.completion.failed_at.is_some());
        if self.died_at.is_none() {
            self.died_at = died_at.map(|call| format!("call {call}"));
        }
        for probe in cell.probes.iter().filter(|probe| is_planted(probe.kind)) {
            let item = self
                .probes
                .entry(format!("{}@{}", probe.probe, probe.percent));
            let item = item.or_insert_with(|| ProbeSample {
                kind: probe.kind.name().to_owned(),
                importance: probe.importance,
                survival: Vec::new(),
                accuracy: Vec::new(),
                answers: Vec::new(),
                lost_at: None,
            });
            if probe.kind.is_searched() {
                item.survival.push(probe.survival.score);
            }
            if item.lost_at.is_none() {
                let lost = probe.survival.lost_at.as_ref();
                item.lost_at = lost.map(|lost| format!("call {} by {}", lost.call, lost.stage));
            }
            // Nothing is right where the session died before the question; without a reader there
            // is no score.
            let is_lost =
                died_at.is_some() && probe.call >= cell.reached_calls && summary.answers.is_some();
            let answered = match probe.verdict().map(Verdict::scored) {
                Some(scored) => scored.map(|(score, _)| score),
                None => is_lost.then_some(0.0),
            };
            item.accuracy.extend(answered);
            let answers = probe.answers().filter(|_| !probe.more.is_empty());
            let scores = answers.filter_map(|answer| Some(answer.verdict().scored()?.0));
            item.answers.extend(scores);
        }
    }
}
