//! A closed loop as a run: each cell is replayed as it happened, and so measured as any other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::loaded::{SessionTexts, counts_of};
use super::prices::of_bill;
use super::session_store::entry_of;
use super::{ThreadClock, manifest_of, prepare_texts, prices};
use serde_json::json;

use crate::live::{Finished, Measured, StrategySetting};
use crate::patterns::PatternsError;
use crate::record::journal::{Journal, JournalError};
use crate::record::{
    ActionSupport, Arm, CacheBasis, CacheRecord, CellKey, CellRecord, LiveRecord, PriceEntry,
    SessionCache, SessionEntry,
};
use crate::replay::{CellName, Models, Repetitions, Replayed, replay};
use crate::runner::{Access, Plan, PlanError, RunModels};
use crate::scenario::{Scenario, WindowMode};
use crate::session::import::outcomes::TrialOutcome;
use crate::session::{Role, Session};
use crate::units::{ContentHash, Tokens, Usage, Usd, is_valid_id};
use crate::window::{KnownBy, NativeWindow, PromptSizes, Window};

/// The strategy that changes nothing.
const UNCHANGED: &str = "none";

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
    RunModels::new(&scenario.models, &asked, access)
}

/// The strategies of a scenario, each ready to stand in front of an agent.
pub fn settings(
    scenario: &Scenario,
    models: &RunModels,
) -> Result<Vec<StrategySetting>, LiveRunError> {
    let counts = counts_of(&scenario.counter, None)?;
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
        spec.check_window(window, &PromptSizes::default()).map_err(PlanError::from)?;
        Ok(StrategySetting {
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
    outcomes: &[TrialOutcome],
    folder: &Path,
) -> Result<PathBuf, LiveRunError> {
    let prices = prices::in_force(&scenario.cache)?;
    let mut lost = unanswered(outcomes, &finished, scenario);
    let answered = finished.iter().map(|finished| finished.cell.repeat);
    let repeats = answered.chain(lost.keys().map(|key| key.repeat)).max().unwrap_or_default() + 1;
    let scenario = Scenario { repeats, ..scenario.clone() };
    let manifest = manifest_of(&scenario, Vec::new(), &prices);
    let mut plan = Plan::without_sessions(scenario, manifest, prices);
    let mut cells: BTreeMap<String, Vec<Finished>> = BTreeMap::new();
    for one in finished {
        let task = one.session.id().to_owned();
        cells.entry(task).or_default().push(one);
    }
    let all = cells.values().flatten();
    let bill = AgentBill::of(all.map(|cell| &cell.measured));
    let mut records = Vec::new();
    let mut entries = Vec::new();
    for cells in cells.into_values() {
        let mut task = cells_of_task(&plan, cells, outcomes)?;
        let own = lost.extract_if(.., |key, _| key.session == task.entry.id);
        task.cells.extend(own.map(lost_trial));
        bill.put(&plan, &mut task);
        records.extend(task.cells);
        entries.push(task.entry);
    }
    for (key, score) in lost {
        if let Some(other) = entries.first()
            && entries.iter().all(|entry| entry.id != key.session)
        {
            entries.push(SessionEntry {
                id: key.session.clone(),
                hash: ContentHash::of(&key.session).hex(16),
                messages: 0,
                calls: 0,
                tokens: Tokens::ZERO,
                ..other.clone()
            });
        }
        records.push(lost_trial((key, score)));
    }
    plan.manifest = manifest_of(&plan.scenario, entries, &plan.prices);
    // What the agents did decides everything, and no setting does.
    let all = [json!(plan.manifest), json!(records)];
    plan.manifest.fingerprint = ContentHash::of_values(all).hex(16);
    let folder = plan.folder(folder);
    let mut journal = Journal::open(&folder, &plan.manifest)?;
    let missing: Vec<&CellRecord> =
        records.iter().filter(|record| !journal.done().contains(&record.key())).collect();
    for record in missing {
        journal.append(record)?;
    }
    journal.sync()?;
    Ok(folder)
}

/// The cells of one task, the reference first.
struct TaskCells {
    session: Arc<Session>,
    entry: SessionEntry,
    cells: Vec<CellRecord>,
}

fn cells_of_task(
    plan: &Plan,
    cells: Vec<Finished>,
    outcomes: &[TrialOutcome],
) -> Result<TaskCells, LiveRunError> {
    let scenario = &plan.scenario;
    let unchanged =
        cells.iter().position(|cell| scenario.strategies[cell.cell.strategy].name() == UNCHANGED);
    let reference = &cells[unchanged.unwrap_or(0)];
    let texts = texts_of(reference);
    let replayed = |texts: &SessionTexts, name, replayed, summariser| {
        let prepared = prepare_texts(plan, texts, Vec::new())?;
        let models =
            Models { summariser, reader: None, judge: None, times: Repetitions::default() };
        let record = replay(&prepared, name, replayed, &models, &ThreadClock).record;
        Ok::<_, LiveRunError>((record, prepared.prompt_sizes()))
    };
    let full = CellName::first("full");
    let (full, _) = replayed(&texts, full, Replayed::Full, reference.summariser.clone())?;
    let mut task = TaskCells {
        session: texts.session.clone(),
        entry: entry_of(&texts, &[], scenario, &plan.prices),
        cells: vec![full],
    };
    for cell in cells {
        let outcome = outcomes.iter().find(|outcome| is_of(outcome, &cell, scenario));
        let spec = &scenario.strategies[cell.cell.strategy];
        let name = CellName { strategy: spec.name().to_owned(), repeat: cell.cell.repeat };
        let texts = texts_of(&cell);
        let played = Replayed::Strategy(cell.strategy, cell.window);
        let (mut record, prompts) = replayed(&texts, name, played, cell.summariser)?;
        let no_room = spec.check_window(cell.window, &prompts).err();
        if no_room.is_some() {
            record.action_support = ActionSupport::default();
            (record.rereads, record.trail, record.summary_atoms) = (None, None, None);
        }
        let measured = cell.measured;
        record.overflows.extend(&measured.refused);
        record.live = Some(LiveRecord {
            paid: paid(&measured, task.entry.price.as_ref(), plan),
            billed: measured.billed,
            calls: measured.calls,
            unbilled: measured.unbilled,
            strategy: measured.strategy,
            others: measured.others,
            skipped: measured.skipped,
            waited_ms: waited(&texts.session),
            score: outcome.and_then(|outcome| outcome.score.clone().ok()),
            no_room: no_room.map(|error| error.to_string()),
        });
        task.cells.push(record);
    }
    Ok(task)
}

/// The usage of a cell with calls of other models as so many tokens of the task's own as cost the same; `None` where there
/// are no such calls, or a price is unknown.
fn paid(measured: &Measured, own: Option<&PriceEntry>, plan: &Plan) -> Option<Usage> {
    let price = own.filter(|_| plan.scenario.cache.model.is_none())?;
    let Measured { billed, by_model, .. } = measured;
    let input = price.per_token.input.filter(|input| *input > Usd(0))?;
    let mut others = by_model.iter().filter(|(model, _)| ***model != *price.model).peekable();
    others.peek()?;
    let mut paid = *billed;
    for (model, usage) in others {
        let cost = plan.prices.of(model)?.1.per_token.cost(usage)?;
        paid = paid - *usage + Usage::uncached(Tokens(cost.0 / input.0), Tokens::ZERO);
    }
    Some(paid)
}

fn texts_of(cell: &Finished) -> SessionTexts {
    SessionTexts { session: Arc::new(cell.session.clone()), counts: cell.counts.clone() }
}

/// Milliseconds from requests to their answers.
fn waited(session: &Session) -> Option<u64> {
    let answers = session.messages().windows(2).filter(|pair| pair[1].role() == Role::Assistant);
    let times = answers.map(|pair| {
        let [asked, answered] = [&pair[0], &pair[1]].map(|message| message.details.timestamp);
        u64::try_from(answered?.0 - asked?.0).ok()
    });
    times.sum()
}

/// The bill of all agents.
struct AgentBill {
    /// Whether any answer said what it cost.
    is_known: bool,
    /// Whether many answers did, and none named a token that was read from a cache or written to it.
    is_uncached: bool,
}

/// Fewer answers without a cached token say nothing of the cache: prompts may be too short for it.
const MANY_ANSWERS: usize = 10;

impl AgentBill {
    fn of<'a>(cells: impl Iterator<Item = &'a Measured> + Clone) -> Self {
        let answers: usize = cells.clone().map(|cell| cell.calls - cell.unbilled).sum();
        let billed: Usage = cells.map(|cell| cell.billed).sum();
        Self {
            is_known: answers > 0,
            is_uncached: answers >= MANY_ANSWERS && billed.prompt() == billed.input_uncached,
        }
    }

    /// Puts what was billed in front of the simulated costs of a task. Where a strategy has no trial whose answers
    /// all say what they cost, the task counts in no bill.
    fn put(&self, plan: &Plan, task: &mut TaskCells) {
        if !self.is_known {
            return;
        }
        let lives =
            task.cells.iter().filter_map(|cell| Some((&*cell.strategy, cell.live.as_ref()?)));
        let (whole, partial): (Vec<_>, Vec<_>) = lives.partition(|(_, live)| live.is_billed());
        let complete = partial.iter().all(|(name, _)| whole.iter().any(|(other, _)| other == name));
        let usage: Usage = whole.iter().map(|(_, live)| live.billed).sum();
        let unchanged: Vec<&LiveRecord> =
            whole.iter().filter(|(name, _)| *name == UNCHANGED).map(|(_, live)| *live).collect();
        let reference = mean(&unchanged).filter(|_| complete);
        let (mut cache, scheme) = of_bill(&plan.scenario, &plan.prices, &task.session, &usage);
        if self.is_uncached && cache.basis != CacheBasis::Set {
            cache = SessionCache { scheme: "none".to_owned(), basis: CacheBasis::Billed };
        }
        for cell in &mut task.cells {
            if cell.arm == Arm::Reference {
                cell.live.clone_from(&reference);
            }
            let billed = cell.live.as_ref().is_none_or(LiveRecord::is_billed);
            let caches = &mut cell.prompt_cache;
            caches.sort_by_key(|record| record.scheme != cache.scheme);
            let Some(first) = caches.first().filter(|_| complete && billed) else {
                caches.clear();
                continue;
            };
            caches.insert(0, CacheRecord::billed(scheme.rates, first));
        }
        task.entry.cache = cache;
    }
}

/// The mean bill of some trials; `None` without any.
fn mean(lives: &[&LiveRecord]) -> Option<LiveRecord> {
    if lives.is_empty() {
        return None;
    }
    let several = lives.iter().any(|live| live.paid.is_some());
    Some(LiveRecord {
        billed: mean_usage(lives.iter().map(|live| live.billed)),
        paid: several.then(|| mean_usage(lives.iter().map(|live| live.paid()))),
        calls: lives.iter().map(|live| live.calls).sum::<usize>() / lives.len(),
        ..LiveRecord::default()
    })
}

/// The mean of some usages, of which there is one at least.
fn mean_usage(usages: impl ExactSizeIterator<Item = Usage>) -> Usage {
    let count = usages.len() as u64;
    let sum: Usage = usages.sum();
    Usage {
        input_uncached: Tokens(sum.input_uncached.0 / count),
        cache_write_5m: Tokens(sum.cache_write_5m.0 / count),
        cache_write_1h: Tokens(sum.cache_write_1h.0 / count),
        cache_read: Tokens(sum.cache_read.0 / count),
        output: Tokens(sum.output.0 / count),
    }
}

/// The trials that ended without an answered call, with their scores.
pub fn unanswered(
    outcomes: &[TrialOutcome],
    finished: &[Finished],
    scenario: &Scenario,
) -> BTreeMap<CellKey, f64> {
    let lost = outcomes.iter().filter(|outcome| {
        is_valid_id(&outcome.task) && !finished.iter().any(|cell| is_of(outcome, cell, scenario))
    });
    let scored = lost.filter_map(|outcome| {
        let name = outcome.strategy.as_ref()?;
        scenario.strategies.iter().find(|spec| spec.name() == name)?;
        let key = CellKey {
            session: outcome.task.clone(),
            strategy: name.clone(),
            repeat: outcome.trial,
        };
        Some((key, outcome.score.clone().ok()?))
    });
    scored.collect()
}

/// A trial whose agent got no answer: it has a score, and nothing else.
fn lost_trial((key, score): (CellKey, f64)) -> CellRecord {
    CellRecord {
        session: key.session,
        strategy: key.strategy,
        repeat: key.repeat,
        live: Some(LiveRecord { score: Some(score), ..LiveRecord::default() }),
        ..CellRecord::default()
    }
}

/// Whether an outcome is that of a cell.
pub fn is_of(outcome: &TrialOutcome, cell: &Finished, scenario: &Scenario) -> bool {
    outcome.task == cell.session.id()
        && outcome.trial == cell.cell.repeat
        && outcome.strategy.as_deref() == Some(scenario.strategies[cell.cell.strategy].name())
}
