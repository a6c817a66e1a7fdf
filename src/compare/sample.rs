//! The results of one strategy in one run, as far as comparisons need them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::advice::FULL;
use super::axis::Axis;
use super::judge::DOLLARS;
use super::prices;
use crate::metric::CellSummary;
use crate::metric::answers::was_asked;
use crate::metric::assumption::alternatives;
use crate::metric::calls::is_on_the_bill;
use crate::metric::cost::BilledTokens;
use crate::metric::survival::is_planted;
use crate::naming::short_name;
use crate::record::words::{GradeVerdict, ModelKind, Worth};
use crate::record::{
    CellRecord, Level, Manifest, ModelEntry, PriceEntry, ProbeRecord, SurvivalRecord, kinds_of,
};
use crate::stats::mean;
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
    /// Who wrote summaries that are in its prompts; `None` where all of them are verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<ModelEntry>,
    /// Who answered probes; `None` where nobody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<ModelEntry>,
    /// How near it is to the product that it is called after, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth: Option<Worth>,
    /// Its sessions, by id.
    pub sessions: BTreeMap<String, SessionSample>,
}

impl Sample {
    /// [`Worth::outline`] of the strategy.
    pub(crate) fn outline(&self) -> String {
        self.worth.as_ref().map_or_else(String::new, Worth::outline)
    }

    /// The short name, as a sentence has it that may recommend the strategy.
    pub(crate) fn title(&self) -> String {
        let full = if self.strategy == FULL { " (full history)" } else { "" };
        short_name(&self.strategy) + full + &self.outline()
    }
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
    /// Values of axes with one value per session, one entry per repeat: `bill` in input tokens of the session's
    /// model, and `dollars` where its price is known.
    pub metrics: BTreeMap<String, Vec<f64>>,
    /// The tokens that its costs are computed from, one entry per repeat that has a cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub billed: Vec<BilledTokens>,
    /// Facts that were lost before a summariser saw them, and all facts, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<(usize, usize)>,
    /// Bill and tokens of the same calls under full history, one entry per repeat: not in files.
    #[serde(skip)]
    pub(crate) full: Vec<FullHistory>,
    /// The bill in dollars under other assumptions, by their words, one entry per repeat: not in files.
    #[serde(skip)]
    pub(crate) alternatives: BTreeMap<String, Vec<f64>>,
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
    /// The mean over repeats of the bill, or of the tokens, beside that of full history.
    pub(crate) fn against_full(&self, axis: Axis) -> Option<(f64, f64)> {
        let full = self.full.iter().map(|full| match axis {
            Axis::Bill => full.bill,
            _ => full.tokens,
        });
        let full: Vec<f64> = full.collect();
        Some((mean(self.metrics.get(axis.name())?)?, mean(&full)?))
    }

    /// The price of an input token in dollars, where that is known.
    pub(crate) fn token_price(&self) -> Option<f64> {
        let [dollars, tokens] = [DOLLARS, Axis::Bill.name()].map(|key| self.metrics.get(key));
        let price = mean(dollars?)? / mean(tokens?)?;
        Some(price).filter(|price| price.is_finite())
    }

    /// The mean of its probes' scores on an axis by weight; `None` where none is scored.
    pub(crate) fn score(&self, axis: Axis) -> Option<f64> {
        let scored = self
            .probes
            .values()
            .filter_map(|probe| Some((f64::from(probe.weight), mean(probe.scores(axis))?)));
        let (sum, weights) = scored
            .fold((0.0, 0.0), |sum, (weight, score)| (sum.0 + weight * score, sum.1 + weight));
        (weights > 0.0).then(|| sum / weights)
    }

    /// Repeats that were run.
    pub fn repeats(&self) -> usize {
        let metrics = self.metrics.values().map(Vec::len);
        let probes = self.probes.values().map(|probe| probe.survival.len());
        metrics.chain(probes).max().unwrap_or(0).max(self.dead)
    }
}

/// What full history costs over the calls that a cell reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FullHistory {
    /// In input tokens.
    pub(crate) bill: f64,
    /// Tokens processed.
    pub(crate) tokens: f64,
    /// Whether each of its prompts fits the window of the strategy's cell: where it does not, it is no choice.
    pub(crate) fits: bool,
}

/// One probe item under one strategy; one score per repeat in which it was scored.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSample {
    /// The kind of fact it asks about.
    pub kind: String,
    /// How much it weighs in the score of its session, from 0 to 3.
    pub weight: u8,
    /// Scores of string matching: what is shown to be kept.
    pub survival: Vec<f64>,
    /// The same if all that string matching cannot tell were kept, where it cannot tell of something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survival_most: Vec<f64>,
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
    /// The scores on an axis.
    pub fn scores(&self, axis: Axis) -> &[f64] {
        match axis {
            Axis::Facts => &self.survival,
            Axis::Answers => &self.accuracy,
            _ => &[],
        }
    }

    /// Whether it has a score on an axis.
    pub(super) fn has(&self, axis: Axis) -> bool {
        !self.scores(axis).is_empty()
    }

    fn add_survival(&mut self, found: &SurvivalRecord) {
        if found.most.is_some() && self.survival_most.is_empty() {
            self.survival_most.clone_from(&self.survival);
        }
        if found.most.is_some() || self.is_range(Axis::Facts) {
            self.survival_most.push(found.most.unwrap_or(found.score));
        }
        self.survival.push(found.score);
    }

    /// The scores on an axis if all that is not known were right.
    pub(super) fn most(&self, axis: Axis) -> &[f64] {
        if self.is_range(axis) { &self.survival_most } else { self.scores(axis) }
    }

    /// Whether string matching cannot tell of a part of it.
    pub(super) fn is_range(&self, axis: Axis) -> bool {
        axis == Axis::Facts && !self.survival_most.is_empty()
    }

    /// The scores on an axis, one for each time it was asked afresh.
    pub fn fresh(&self, axis: Axis) -> &[f64] {
        match axis {
            Axis::Answers if !self.answers.is_empty() => &self.answers,
            _ => self.scores(axis),
        }
    }
}

/// The share of its facts that a strategy may lose before its summariser sees them: with more, what it
/// writes says little about what it was given.
const MOST_UNSEEN: f64 = 0.2;

impl Sample {
    /// Reduces the cells of one strategy, or of full history. `references` are the cells of `full`, by session.
    pub(crate) fn of(
        name: &str,
        toml: &str,
        cells: &[&CellRecord],
        references: &BTreeMap<&str, &CellRecord>,
        manifest: &Manifest,
    ) -> Self {
        let entries = manifest.entries();
        let mut sessions: BTreeMap<String, SessionSample> = BTreeMap::new();
        for cell in cells {
            let reference = references.get(cell.session.as_str()).copied();
            let entry = entries.get(cell.session.as_str()).copied();
            let summary = CellSummary::of(cell, reference).in_session(entry);
            let session = sessions.entry(cell.session.clone()).or_default();
            session.add(cell, reference, &summary);
            session.assume(&summary, manifest.summariser.kind);
        }
        Self {
            strategy: name.to_owned(),
            definition: ContentHash::of(toml.as_bytes()).hex(16),
            writer: cells.iter().any(|cell| wrote(cell)).then(|| writer(toml, manifest)),
            reader: manifest.reader.clone().filter(|_| cells.iter().any(|cell| was_asked(cell))),
            worth: None,
            sessions,
        }
    }

    /// Puts the bills under another assumption in the place of those in dollars.
    pub(crate) fn assume(&mut self, at: &str) {
        for session in self.sessions.values_mut() {
            if let Some(bills) = session.alternatives.get(at) {
                session.metrics.insert(DOLLARS.to_owned(), bills.clone());
            }
        }
    }

    /// Whether it has values on an axis.
    pub(crate) fn has(&self, axis: Axis) -> bool {
        self.sessions.values().any(|session| {
            let mut probes = session.probes.values();
            session.metrics.contains_key(axis.name()) || probes.any(|probe| probe.has(axis))
        })
    }

    /// Whether it asked a model in any session.
    pub(crate) fn has_asked(&self) -> bool {
        let calls = self.sessions.values().filter_map(|one| one.metrics.get(Axis::Calls.name()));
        calls.flatten().any(|calls| *calls > 0.0)
    }

    /// Why it takes part in no ranking: sessions that died, prompts that would be rejected.
    pub fn broken(&self) -> Option<String> {
        let sessions = self.sessions.values();
        let dead = sessions.clone().filter(|session| session.dead > session.failed).count();
        let failed = sessions.clone().filter(|session| session.failed > 0).count();
        let rejected = sessions.clone().filter(|session| !session.rejected.is_empty()).count();
        let reasons = [
            (dead, "out of window"),
            (failed, "the strategy failed"),
            (rejected, "prompts would be rejected"),
        ];
        let (count, why) = reasons.into_iter().find(|(count, _)| *count > 0)?;
        let calls = sessions.filter_map(|session| {
            session.died_at.as_deref()?.strip_prefix("call ")?.parse::<usize>().ok()
        });
        let first = calls.min().map(|call| format!(", first at call {call}"));
        let (first, all) = (first.unwrap_or_default(), self.sessions.len());
        Some(format!("{why} in {count} of {all} sessions{first}"))
    }

    /// How many facts are lost before its summariser sees them, in a clause, where that is a large part.
    pub(crate) fn unseen_losses(&self) -> Option<String> {
        let known = self.sessions.values().filter_map(|session| session.unseen);
        let (lost, all) = known.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let large = all > 0 && lost as f64 >= MOST_UNSEEN * all as f64;
        large.then(|| format!("{lost} of {all} facts are lost before its summariser sees them"))
    }
}

/// Whether all prompts of full history fit the window of another cell of the session.
fn fits(full: &CellRecord, cell: &CellRecord) -> bool {
    let mut prompts = full.prompt_tokens.iter();
    cell.window.is_some_and(|window| !prompts.any(|prompt| window.overflows(*prompt)))
}

/// Whether a model wrote anything in this cell that may stand in a prompt.
fn wrote(cell: &CellRecord) -> bool {
    let calls = cell.model_calls.iter().filter(|call| is_on_the_bill(call.purpose));
    calls.filter(|call| call.failure.is_none()).count() > cell.summary_health.unread
}

/// Who wrote a strategy's summaries: the product's own model where they are the recorded ones.
fn writer(toml: &str, manifest: &Manifest) -> ModelEntry {
    if kinds_of(toml).iter().any(|kind| kind == "recorded") {
        let (name, kind) = ("the recorded product's model".to_owned(), ModelKind::Live);
        return ModelEntry { name, kind };
    }
    manifest.summariser.clone()
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

    /// Adds a repeat's bills under other assumptions.
    fn assume(&mut self, summary: &CellSummary, summariser: ModelKind) {
        for other in alternatives(summary, summariser) {
            let bills = self.alternatives.entry(other.words).or_default();
            bills.push(other.own.in_dollars());
        }
    }

    fn add(&mut self, cell: &CellRecord, reference: Option<&CellRecord>, summary: &CellSummary) {
        let cost = summary.costs.first();
        let plumbing = summary.plumbing.and_then(|score| score.mean());
        let spent = summary.savings.map(|s| (s.prompts + s.strategy).0 as f64);
        let amounts = [
            (Axis::Completion, summary.completion.share()),
            (Axis::Refused, Some(summary.findings.rejected as f64)),
            (Axis::Actions, summary.support.share()),
            (Axis::Plumbing, plumbing),
            (Axis::Tokens, spent),
            (Axis::Calls, Some(summary.model_calls.total().calls as f64)),
            (Axis::Waiting, summary.waiting()),
        ];
        let values = amounts.into_iter().map(|(axis, value)| (axis.name(), value));
        // The rates are those of the price: where the table has dollars, these are the same.
        let price = summary.price.as_ref().filter(|_| summary.dollars().is_some());
        let input = price_of_input(price);
        let priced = cost.into_iter().flat_map(|cost| prices::priced(cost.costs(), input));
        self.put(values.chain(priced));
        self.billed.extend(cost.map(|cost| cost.billed.clone()));
        let full = cost.zip(summary.savings).map(|(cost, savings)| FullHistory {
            bill: cost.reference_cost as f64 / 1_000.0,
            tokens: savings.reference.0 as f64,
            fits: reference.is_some_and(|full| fits(full, cell)),
        });
        self.full.extend(full);
        if wrote(cell) {
            let planted = cell.probes.iter().filter(|probe| is_planted(probe.kind));
            let (lost, all) = self.unseen.unwrap_or_default();
            let unseen = planted.clone().filter(|probe| is_unseen(probe)).count();
            self.unseen = Some((lost + unseen, all + planted.count()));
        }
        let rejected = cell.violations.iter().filter(|found| found.level == Level::Rejected);
        self.rejected.extend(rejected.map(|found| found.rule.clone()));
        let died_at = summary.completion.died_at.or(summary.completion.failed_at);
        self.dead += usize::from(died_at.is_some());
        self.failed += usize::from(summary.completion.failed_at.is_some());
        if self.died_at.is_none() {
            self.died_at = died_at.map(|call| format!("call {call}"));
        }
        for probe in cell.probes.iter().filter(|probe| is_planted(probe.kind)) {
            let id = format!("{}@{}", probe.probe, probe.percent);
            let item = self.probes.entry(id).or_insert_with(|| ProbeSample {
                kind: probe.kind.name().to_owned(),
                weight: probe.weight,
                ..ProbeSample::default()
            });
            if probe.kind.is_searched() {
                item.add_survival(&probe.survival);
            }
            if item.lost_at.is_none() {
                item.lost_at = probe.survival.where_lost();
            }
            // Nothing is right where the session died before the question; without a reader there
            // is no score.
            let lost =
                died_at.is_some() && probe.call >= cell.reached_calls && summary.answers.is_some();
            let answered = match probe.verdict().map(GradeVerdict::scored) {
                Some(scored) => scored.map(|(score, _)| score),
                None => lost.then_some(0.0),
            };
            item.accuracy.extend(answered);
            let answers = probe.answers().filter(|_| !probe.more.is_empty());
            let scores = answers.filter_map(|answer| Some(answer.verdict().scored()?.0));
            item.answers.extend(scores);
        }
    }
}

/// The price of an input token, in dollars.
pub(super) fn price_of_input(price: Option<&PriceEntry>) -> Option<f64> {
    let nanos = price?.per_token.input?.0;
    Some(nanos as f64 / 1e9)
}

/// Whether a fact was lost before a summariser saw it.
fn is_unseen(probe: &ProbeRecord) -> bool {
    let lost = probe.survival.lost_at.as_ref();
    lost.is_some_and(|lost| lost.seen_by_summariser == Some(false))
}
