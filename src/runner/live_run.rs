//! A closed loop as a run: each cell is replayed as it happened, and so measured as any other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::loaded::Texts;
use super::session_store::entry_of;
use super::{ThreadClock, manifest_of, prepare_texts, prices};
use serde_json::json;

use crate::live::{Finished, Setting};
use crate::patterns::PatternsError;
use crate::record::LiveRecord;
use crate::record::journal::{Journal, JournalError};
use crate::replay::{self, Models, Repetitions, Replayed, replay};
use crate::runner::{Access, Plan, PlanError, RunModels};
use crate::scenario::{Scenario, WindowMode};
use crate::tokens::{CountedTexts, counter};
use crate::units::{ContentHash, Tokens};
use crate::window::{KnownBy, NativeWindow, Window};

/// How a task ended.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskOutcome {
    /// The task.
    pub task: String,
    /// The name of the strategy; without one the outcome is that of every strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The repeat, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// From 0, not solved, to 1, solved.
    pub score: f64,
}

/// Why a closed loop is no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveRunError {
    /// The scenario cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The folder cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A session's values cannot be searched for.
    #[error(transparent)]
    Patterns(#[from] PatternsError),
    /// The window is a share of a session, and there is none yet.
    #[error(
        "a window that is a share of a session needs a recorded session: name a number of tokens"
    )]
    NoWindow,
}

/// The models of a closed loop.
pub fn models(scenario: &Scenario, access: &Access<'_>) -> Result<RunModels, PlanError> {
    let prices = prices::in_force(&scenario.cache)?;
    let asked = prices::asked(&scenario.models, &prices);
    RunModels::new(&scenario.models, scenario.seed, &asked, access)
}

/// The strategies of a scenario, each ready to stand in front of an agent.
pub fn settings(scenario: &Scenario, models: &RunModels) -> Result<Vec<Setting>, LiveRunError> {
    let counter = counter(&scenario.counter);
    let counter = counter.ok_or_else(|| PlanError::NoCounter(scenario.counter.clone()))?;
    let counts = Arc::new(CountedTexts::new(counter));
    let unknown = NativeWindow {
        tokens: Window::DEFAULT_TOKENS,
        max_output: Tokens::ZERO,
        known_by: KnownBy::Assumed,
    };
    let window = match scenario.window.mode {
        WindowMode::Native(_) => scenario.window.resolve(unknown, Tokens::ZERO, Tokens::ZERO),
        WindowMode::Fit(_) => return Err(LiveRunError::NoWindow),
    };
    let settings = scenario.strategies.iter().map(|spec| {
        spec.check_window(window).map_err(PlanError::from)?;
        Ok(Setting {
            spec: spec.clone(),
            window,
            sizes: scenario.sizes,
            summariser: models.for_session(&counts).summariser,
            counts: counts.clone(),
        })
    });
    settings.collect()
}

/// Writes the cells of a closed loop as a run, into a folder of its own under `folder`, and returns that.
///
/// The reference of a task is its first cell under a strategy that changes nothing, else its first cell: what the
/// whole history of that conversation would have cost.
pub fn write(
    scenario: &Scenario,
    finished: Vec<Finished>,
    outcomes: &[TaskOutcome],
    folder: &Path,
) -> Result<PathBuf, LiveRunError> {
    let prices = prices::in_force(&scenario.cache)?;
    let mut scenario = scenario.clone();
    let repeats = finished.iter().map(|it| it.cell.repeat + 1);
    scenario.repeats = repeats.max().unwrap_or(1);
    let scenario = &scenario;
    let mut plan = Plan {
        sources: Vec::new(),
        manifest: manifest_of(scenario, Vec::new(), &prices),
        sessions: Vec::new(),
        passed_over: Vec::new(),
        scenario: scenario.clone(),
        asked_prices: Arc::new(prices::asked(&scenario.models, &prices)),
        prices: Arc::new(prices),
        models: None,
    };
    let mut cells: BTreeMap<String, Vec<Finished>> = BTreeMap::new();
    for one in finished {
        cells
            .entry(one.session.id().to_owned())
            .or_default()
            .push(one);
    }
    let mut records = Vec::new();
    let mut entries = Vec::new();
    for cells in cells.into_values() {
        let of = cells
            .iter()
            .position(|it| is_unchanged(it, scenario))
            .unwrap_or(0);
        for (at, cell) in cells.into_iter().enumerate() {
            let texts = Texts {
                session: Arc::new(cell.session.clone()),
                counts: cell.counts.clone(),
            };
            let name = |strategy: &str, repeat| replay::CellName {
                strategy: strategy.to_owned(),
                repeat,
            };
            // Where several are given, the last one holds.
            let outcome = outcomes.iter().rfind(|it| is_of(it, &cell, scenario));
            let score = outcome.map(|outcome| outcome.score);
            let prepared = prepare_texts(&plan, &texts, Vec::new())?;
            let models = Models {
                summariser: cell.summariser,
                reader: None,
                judge: None,
                times: Repetitions::default(),
            };
            if at == of {
                let full = name("full", 0);
                records.push(replay(&prepared, full, Replayed::Full, &models, &ThreadClock).record);
                entries.push(entry_of(&texts, &[], scenario, &plan.prices));
            }
            let strategy = scenario.strategies[cell.cell.strategy].name();
            let replayed = Replayed::Strategy(cell.strategy, cell.window);
            let named = name(strategy, cell.cell.repeat);
            let mut record = replay(&prepared, named, replayed, &models, &ThreadClock).record;
            let measured = cell.measured;
            record.overflows.extend(&measured.refused);
            record.live = Some(LiveRecord {
                billed: measured.billed,
                calls: measured.calls,
                unbilled: measured.unbilled,
                strategy: measured.strategy,
                others: measured.others,
                skipped: measured.skipped,
                score,
            });
            records.push(record);
        }
    }
    plan.manifest = manifest_of(scenario, entries, &plan.prices);
    // What the agents did decides everything, and no setting does.
    let all = [json!(plan.manifest), json!(records)];
    plan.manifest.fingerprint = ContentHash::of_values(all).hex(16);
    let folder = plan.folder(folder);
    let mut journal = Journal::open(&folder, &plan.manifest)?;
    for record in records
        .iter()
        .filter(|it| !journal.done().contains(&it.key()))
        .collect::<Vec<_>>()
    {
        journal.append(record)?;
    }
    journal.sync()?;
    Ok(folder)
}

fn is_unchanged(cell: &Finished, scenario: &Scenario) -> bool {
    scenario.strategies[cell.cell.strategy].name() == "none"
}

/// Whether an outcome is that of a cell.
pub fn is_of(outcome: &TaskOutcome, cell: &Finished, scenario: &Scenario) -> bool {
    let strategy = scenario.strategies[cell.cell.strategy].name();
    outcome.task == cell.session.id()
        && outcome.repeat == cell.cell.repeat
        && outcome
            .strategy
            .as_ref()
            .is_none_or(|name| name == strategy)
}
