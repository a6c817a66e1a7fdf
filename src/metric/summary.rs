//! Every metric of one cell.

use super::prelude::*;
use crate::metric::answers::{Accuracy, AnswerScope, ControlCells, was_asked};
use crate::metric::calls::ModelCalls;
use crate::metric::compaction::{self, StageTotal};
use crate::metric::completion::Completion;
use crate::metric::context_pressure::ContextPressure;
use crate::metric::cost::SchemeCost;
use crate::metric::rereads::Rereads;
use crate::metric::retention::Retention;
use crate::metric::summaries::{self, Summaries};
use crate::metric::support::Support;
use crate::metric::survival::{Score, Survival};
use crate::metric::tokens::{self, Savings, peak_prompt};
use crate::metric::trail;
use crate::metric::validity::ValidityFindings;
use crate::record::{Arm, ArtifactTrail, End, LiveRecord, PriceEntry, SessionEntry, SummaryAtoms};

/// Every metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellSummary {
    /// The session's id.
    pub session: String,
    /// The session's [cluster](crate::record::Manifest::clusters): side chains count with their
    /// main session.
    #[serde(skip)]
    pub cluster: String,
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// The prices of the session's model, where the manifest knows them.
    #[serde(skip)]
    pub price: Option<PriceEntry>,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Which column of the comparison it belongs to.
    pub arm: Arm,
    /// How far it got.
    pub completion: Completion,
    /// Whether it and the reference both reached the end: only then totals compare them.
    #[serde(skip)]
    pub both_completed: bool,
    /// Against the reference; `None` without one, and nothing for the floor, which costs nothing.
    pub savings: Option<Savings>,
    /// Its cost under each cache scheme, the one of the comparison first.
    pub costs: Vec<SchemeCost>,
    /// The largest prompt that was sent.
    pub peak_prompt: Option<Tokens>,
    /// All prompts together.
    pub area: Tokens,
    /// The share of the effective window that compactions left free.
    pub headroom: Option<f64>,
    /// The least and the most of the effective window that was in use when the strategy fired.
    pub fired_at: Option<(f64, f64)>,
    /// The share of the messages that compactions left.
    pub retained: Option<f64>,
    /// The work of each stage.
    pub stages: BTreeMap<String, StageTotal>,
    /// Calls the strategy made.
    pub model_calls: ModelCalls,
    /// The summaries that a model wrote, generation by generation.
    pub summaries: Summaries,
    /// Rules of the provider that prompts broke.
    pub findings: ValidityFindings,
    /// How near the window prompts came, and how restless the strategy was.
    #[serde(rename = "strain")]
    pub context_pressure: ContextPressure,
    /// Needs of the agent's tool calls.
    pub support: Support,
    /// Texts that would have to be read again; `None` where this was not recorded.
    pub rereads: Option<Rereads>,
    /// Files that the prompts still mention; `None` where this was not recorded.
    pub trail: Option<ArtifactTrail>,
    /// Names in summaries that were never said; `None` where no summary was written.
    pub summary_atoms: Option<SummaryAtoms>,
    /// Planted values, by string matching.
    pub survival: Survival,
    /// The same of a program whose summaries quote every fact.
    #[serde(skip)]
    pub plumbing: Option<Score>,
    /// Planted items with their ages.
    #[serde(skip)]
    pub retention: Retention,
    /// Answers to its prompts; `None` without a reader.
    pub answers: Option<Accuracy>,
    /// Answers to the summaries in its prompts alone; `None` where none were asked for.
    pub summary_answers: Option<Accuracy>,
    /// How well the task was solved, where an agent ran and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

impl CellSummary {
    /// Measures a cell. `reference` is `full` on the same session.
    pub fn of(cell: &CellRecord, reference: Option<&CellRecord>) -> Self {
        let (full, empty) = (reference, None);
        Self::with_controls(cell, ControlCells { full, empty })
    }

    /// The same with the cell of the empty context: items that did not qualify are then left out of
    /// fidelity.
    pub fn with_controls(cell: &CellRecord, controls: ControlCells<'_>) -> Self {
        let reference = controls.full;
        let mut both = [Some(cell), reference].into_iter();
        let replayed = reference.filter(|_| cell.live.as_ref().is_none_or(LiveRecord::is_replayed));
        // A session that died before the first question was still to be asked, if the reference
        // was.
        let asked = was_asked(cell) || reference.is_some_and(was_asked);
        let summarised = cell.probes.iter().any(|item| item.from_summary.is_some());
        let savings = match cell.arm {
            Arm::Reference | Arm::Strategy => reference.and_then(|full| Savings::of(cell, full)),
            Arm::Floor => None,
        };
        Self {
            session: cell.session.clone(),
            cluster: cell.session.clone(),
            strategy: cell.strategy.clone(),
            repeat: cell.repeat,
            arm: cell.arm,
            price: None,
            completion: Completion::of(cell),
            both_completed: both.all(|end| end.is_some_and(|cell| cell.end == End::Completed)),
            rereads: savings.and_then(|savings| Rereads::of(cell, &savings)),
            savings,
            costs: match (cell.arm, reference) {
                (Arm::Reference | Arm::Strategy, Some(full)) => SchemeCost::of(cell, full),
                (Arm::Floor, _) | (_, None) => Vec::new(),
            },
            peak_prompt: peak_prompt(cell),
            area: tokens::area(cell),
            headroom: compaction::headroom(cell),
            fired_at: compaction::fired_at(cell),
            retained: compaction::retained(cell),
            stages: compaction::by_stage(cell),
            model_calls: ModelCalls::of(cell),
            summaries: summaries::of(cell),
            findings: ValidityFindings::of(cell),
            context_pressure: ContextPressure::of(cell),
            support: Support::of(cell, replayed),
            trail: trail::of(cell, replayed),
            summary_atoms: cell.summary_atoms.clone(),
            survival: Survival::of(cell),
            plumbing: cell.plumbing.map(Score::from),
            retention: Retention::of(cell, reference),
            answers: asked.then(|| Accuracy::of(cell, controls, AnswerScope::Context)),
            summary_answers: summarised
                .then(|| Accuracy::of(cell, controls, AnswerScope::Summaries)),
            score: cell.live.as_ref().and_then(|live| live.score),
        }
    }

    /// The same with the cluster and the prices that the manifest knows of its session.
    #[must_use]
    pub fn in_session(mut self, entry: Option<&SessionEntry>) -> Self {
        if let Some(entry) = entry {
            entry.cluster().clone_into(&mut self.cluster);
            self.price.clone_from(&entry.price);
        }
        self
    }

    /// The answers in this scope.
    pub(crate) fn accuracy(&self, scope: AnswerScope) -> Option<&Accuracy> {
        match scope {
            AnswerScope::Context => self.answers.as_ref(),
            AnswerScope::Summaries => self.summary_answers.as_ref(),
        }
    }

    /// Patches that were applied.
    pub fn compactions(&self) -> usize {
        self.stages.values().map(|stage| stage.patches).sum()
    }

    /// Whether the strategy changed the context at all.
    pub fn fired(&self) -> bool {
        self.compactions() > 0
    }

    /// Whether the session ended early or a prompt would have been rejected: such a cell takes
    /// part in no ranking.
    pub fn is_broken(&self) -> bool {
        self.completion.died_at.is_some()
            || self.completion.failed_at.is_some()
            || self.findings.rejected > 0
    }
}
