//! Many cells: threads, the run folder, continuing where a run stopped.
//!
//! Workers take cells in session order, so that what the cells of a session share is made once
//! and dropped when the last of them is done; within a session strategies come in a seeded random
//! order. A failed cell is data and never touches another.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use crate::model::price::Prices;
use crate::record::journal::{self, Journal, JournalError, RecordedRun};
use crate::record::order::{ArmIndex, ArmKind};
use crate::record::shard::PlannedSource;
use crate::record::{CellKey, CellRecord, FORMAT_VERSION, Manifest, SessionEntry, StrategyEntry};
use crate::scenario::Scenario;
use crate::settings::SettingError;
use crate::stop::StopToken;
use crate::units::{ContentHash, Tokens};

#[cfg(feature = "http")]
pub mod batch;
mod calibrations;
mod cells;
mod dependencies;
mod each;
mod error;
mod first;
pub mod forecast;
mod limits;
mod loaded;
pub mod live_run;
#[cfg(feature = "http")]
mod live;
#[cfg(not(feature = "http"))]
#[path = "runner/no_live.rs"]
mod live;
mod models;
pub mod native;
mod order;
mod part;
pub mod prices;
mod probes;
mod programs;
mod queue;
mod sample;
mod session_store;
mod sink;
mod thread_clock;
mod variant;

use cells::{CellError, Cells, prepare, prepare_texts, replay_arm};
use dependencies::Dependencies;
pub(crate) use dependencies::sizes_of;
pub use each::PlannedSession;
pub use error::PlanError;
use error::{Result, read_named};
pub use first::FirstAnswers;
use limits::Limits;
#[cfg(feature = "http")]
pub use live::time_server;
use loaded::LoadedSession;
pub use models::{Access, RunModels};
pub use probes::check_facts;
pub use programs::{Remembered, starts};
use queue::Queue;
use session_store::{PlannedPart, native_hash};
use sink::Sink;
use thread_clock::ThreadClock;

/// A scenario with its sessions loaded: ready to run.
#[derive(Debug)]
pub struct Plan {
    manifest: Manifest,
    sessions: Vec<LoadedSession>,
    passed_over: Vec<String>,
    lost_lines: BTreeSet<String>,
    sources: Vec<PlannedSource>,
    scenario: Scenario,
    prices: Arc<Prices>,
    /// Those of the models of the run itself.
    asked_prices: Arc<Prices>,
    models: Option<Arc<RunModels>>,
}

impl Plan {
    /// Loads and counts all sessions of the scenario.
    pub fn new(scenario: Scenario) -> Result<Self> {
        Self::load(scenario, None)
    }

    fn load(mut scenario: Scenario, part: Option<&PlannedPart<'_>>) -> Result<Self> {
        for spec in &scenario.strategies {
            if let Some((path, place)) = spec.unread_prompt() {
                let problem = format!("the prompt `{path}` was not read");
                return Err(SettingError::new(&place, problem).into());
            }
        }
        let prices = prices::in_force(&scenario.cache)?;
        scenario.models.settle_window(|model: &str| prices.of(model)?.1.windows.last().copied());
        let loaded = session_store::load_all(&scenario, &prices, part)?;
        let mut manifest = manifest_of(&scenario, loaded.entries, &prices);
        manifest.left_out = loaded.left_out;
        manifest.calibrations = calibrations::read(&scenario.models)?;
        let mut plan = Self {
            sessions: loaded.sessions,
            passed_over: loaded.passed_over,
            lost_lines: loaded.lost_lines,
            sources: loaded.sources,
            ..Self::without_sessions(scenario, manifest, prices)
        };
        if !plan.scenario.models.has_any() {
            plan.connect(&Access::none())?;
        }
        match part {
            None => plan.note_programs()?,
            Some(part) => plan.take_plan(part)?,
        }
        Ok(plan)
    }

    /// A plan of no session.
    fn without_sessions(scenario: Scenario, manifest: Manifest, prices: Prices) -> Self {
        Self {
            manifest,
            sessions: Vec::new(),
            passed_over: Vec::new(),
            lost_lines: BTreeSet::new(),
            sources: Vec::new(),
            asked_prices: Arc::new(prices::asked(&scenario.models, &prices)),
            scenario,
            prices: Arc::new(prices),
            models: None,
        }
    }

    /// Makes the models ready that are not rules: before this is done, none of them can be asked,
    /// and no cell that needs them is run.
    pub fn connect(&mut self, access: &Access<'_>) -> Result<()> {
        let models = RunModels::new(&self.scenario.models, &self.asked_prices, access)?;
        self.models = Some(Arc::new(models));
        Ok(())
    }

    /// The models, once they are connected.
    pub fn models(&self) -> Option<&RunModels> {
        self.models.as_deref()
    }

    /// Why files that were found in folders are not among the sessions, one reason each: they hold no
    /// conversation, or this build cannot read them.
    pub fn passed_over(&self) -> &[String] {
        &self.passed_over
    }

    /// The lines of recordings that could not be read and are left out, in words, with their files.
    pub fn lost_lines(&self) -> &BTreeSet<String> {
        &self.lost_lines
    }

    /// The scenario it was made of.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Frees the sessions: no cell can be run any more, and a report needs none.
    pub fn forget_sessions(&mut self) {
        self.sessions = Vec::new();
    }

    /// The manifest of the run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The prices of the models of the run itself.
    pub fn asked_prices(&self) -> &Prices {
        &self.asked_prices
    }

    /// How many requests may be under way at once, where a live model is asked. Cells whose only server is on
    /// this machine take turns at its slots, in their order: so most of a prompt is still there for the next one.
    pub fn at_once(&self) -> Option<usize> {
        let models = &self.scenario.models;
        let slots = models.homes().map(|(_, home)| home.slots).max();
        let live = models.has_live().then_some(models.pace.at_once)?;
        Some(live.min(slots.unwrap_or(usize::MAX)))
    }

    /// The folder this run is found in again: `<scenario>-<8 hex digits of the fingerprint>`.
    pub fn folder(&self, reports: &Path) -> PathBuf {
        reports.join(format!("{}-{}", self.manifest.scenario, &self.manifest.fingerprint[..8]))
    }
}

fn manifest_of(scenario: &Scenario, sessions: Vec<SessionEntry>, prices: &Prices) -> Manifest {
    let models = &scenario.models;
    let reader = models.reader.as_ref();
    let mut manifest = Manifest {
        format: journal::FORMAT.to_owned(),
        version: FORMAT_VERSION,
        proctor: env!("CARGO_PKG_VERSION").to_owned(),
        fingerprint: String::new(),
        scenario: scenario.name.clone(),
        counter: scenario.counter.clone(),
        seed: scenario.seed,
        window: scenario.window.to_string(),
        summariser: models::entry(models, &models.summariser),
        reader: reader.map(|reader| models::entry(models, reader)),
        judge: models::panel(models),
        sessions,
        sample: scenario.sample,
        left_out: BTreeMap::new(),
        strategies: scenario
            .strategies
            .iter()
            .map(|spec| StrategyEntry {
                name: spec.name().to_owned(),
                description: spec.description().to_owned(),
                toml: spec.to_toml(),
                is_added: spec.is_added(),
                is_random: false,
                program: None,
                worth: None,
            })
            .collect(),
        repeats: scenario.repeats,
        answers: models.answers,
        judgements: models.judgements,
        faults: (!scenario.faults.is_empty()).then(|| scenario.faults.to_string()),
        conditions: BTreeMap::new(),
        servers: BTreeMap::new(),
        margins: BTreeMap::new(),
        calibrations: Vec::new(),
    };
    manifest.fingerprint = ContentHash::of_values([
        json!(manifest),
        json!(scenario.window),
        json!(scenario.trigger),
        json!(scenario.provider),
        prices::values(&scenario.cache, prices),
        json!(scenario.recovery),
        scenario.models.values(),
        json!(models::scripts(&scenario.models)),
        json!(scenario.selection),
        json!(crate::probe::weight::TABLE),
    ])
    .hex(16);
    // No result depends on it.
    for (entry, spec) in manifest.strategies.iter_mut().zip(&scenario.strategies) {
        entry.worth = spec.worth().cloned();
    }
    manifest.servers = models::servers(models);
    // In words, so that a comparison can say what differs; the fingerprint holds all of it already.
    manifest.conditions = variant::conditions(scenario);
    let margins = scenario.gate.margins.iter();
    manifest.margins = margins.map(|(name, margin, _)| (name.clone(), *margin)).collect();
    manifest
}

/// Follows a run from outside.
pub trait Progress: Debug + Sync {
    /// Cells are missing that are so much work.
    fn begin(&self, _work: u64) {}
    /// A cell is done, and was so much of the work.
    fn cell(&self, record: &CellRecord, work: u64);
    /// All cells of a session are done.
    fn session(&self, id: &str, cells: usize);
}

/// How many threads, and how to stop early.
#[derive(Debug)]
pub struct Workers {
    /// Threads.
    pub threads: usize,
    /// Once it is requested, no new cell is begun; those under way are finished and written. One that waits for a
    /// language model is given up: no request is sent again, or waited for whose answer has not begun.
    pub stop: StopToken,
}

/// How a run came out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunOutcome {
    /// Cells that were done before.
    pub already_done: usize,
    /// Cells that were done now.
    pub done_now: usize,
    /// Cells that are still missing.
    pub outstanding: usize,
    /// Cells in which Proctor itself failed, and why; they are outstanding too.
    pub broken: Vec<(CellKey, String)>,
    /// Which limit of the budget was reached, in words: sessions that were not begun are
    /// outstanding.
    pub budget: Option<String>,
    /// Whether a recorded answer was wanted that is not there: the run stopped.
    pub missed: bool,
    /// Cells whose model or program could not be asked, or whose program changed meanwhile, and why; they are
    /// outstanding too.
    pub unreached: Vec<(CellKey, String)>,
    /// The largest prompt that was read by a server that cuts prompts: the run stopped, and cells that may rest
    /// on cut ones are outstanding too.
    pub cut_at: Option<Tokens>,
    /// How many finished cells were made outstanding by that.
    pub withdrawn: usize,
    /// Why the cells are in the order in which they were finished: there was no room to sort them.
    pub unordered: Option<String>,
}

/// Runs the cells that are missing from the journal.
pub fn run(
    plan: &Plan,
    journal: &mut Journal,
    workers: &Workers,
    progress: &dyn Progress,
) -> Result<RunOutcome, JournalError> {
    journal.keep_calibrations(&plan.manifest.calibrations)?;
    let cells = plan.cells();
    let done = journal.done();
    let missing: Vec<(usize, Vec<ArmIndex>)> = (0..plan.sessions.len())
        .map(|session| {
            let arms = plan.arms(session).into_iter();
            (session, arms.filter(|arm| !done.contains(&plan.key(session, *arm))).collect())
        })
        .collect();
    let outstanding: usize = missing.iter().map(|(_, arms)| arms.len()).sum();
    let works = missing.iter().map(|(session, arms)| plan.work(*session) * arms.len() as u64);
    progress.begin(works.sum());
    let running = Cells { plan, followed: followed_cells(plan, &missing, journal)? };
    let queue = Queue::new(missing);
    let limits = Limits::new(plan.models());
    let shared_sink = Mutex::new(Sink {
        journal,
        outcome: RunOutcome::default(),
        failure: None,
        last_sync: sink::now(),
        unreached_in_a_row: 0,
        has_stopped: false,
    });
    let run_cells = || {
        while !workers.stop.is_requested() {
            let Some((shared, arm)) = queue.take(&|| limits.allow()) else {
                break;
            };
            // A panic is a mistake in Proctor; it costs one cell, and is shown as such.
            let replay = match catch_unwind(AssertUnwindSafe(|| running.run_twice(&shared, arm))) {
                Ok(Ok(done)) => Ok(Some(done)),
                // The cell that it follows is outstanding itself, and says why.
                Ok(Err(CellError::NothingToFollow)) => Ok(None),
                Ok(Err(why)) => Err(why.to_string()),
                Err(_) => Err("it panicked; the message stands above".to_owned()),
            };
            let key = plan.key(shared.session, arm);
            let replayed = replay.as_ref().ok().and_then(Option::as_ref);
            let answered = replayed.filter(|replay| replay.unanswered.is_none());
            running.followed.finish(&key, answered.map(|replay| &replay.record));
            let mut sink = shared_sink.lock().unwrap_or_else(PoisonError::into_inner);
            match sink.take(key, replay, plan) {
                ControlFlow::Break(()) => break,
                ControlFlow::Continue(None) => continue,
                ControlFlow::Continue(Some(record)) => {
                    progress.cell(&record, plan.work(shared.session));
                }
            }
            drop(sink);
            if let Some(cells) = shared.finished() {
                progress.session(plan.sessions[shared.session].id(), cells);
            }
        }
    };
    // The thread that waits is one of them: a new one would leave what reading the sessions has freed unused.
    let work_all = || {
        std::thread::scope(|scope| {
            for _ in 1..workers.threads.min(outstanding) {
                scope.spawn(run_cells);
            }
            run_cells();
        });
    };
    if let Some(models) = plan.models() {
        models.servers.until(&|| workers.stop.is_requested() || limits.is_late(), work_all);
    } else {
        work_all();
    }
    let mut sink = shared_sink.into_inner().unwrap_or_else(PoisonError::into_inner);
    sink.withdraw_cut(plan)?;
    sink.withdraw_changed(plan)?;
    sink.failure.map_or(sink.journal.sync(), Err)?;
    let mut outcome = sink.outcome;
    let done = sink.journal.done();
    let (all, left) = (cells.len(), cells.iter().filter(|key| done.contains(*key)).count());
    outcome.already_done = (all - outstanding).min(left);
    outcome.done_now = left - outcome.already_done;
    outcome.outstanding = all - left;
    outcome.budget = limits.reached(outcome.outstanding);
    // The order of one worker that is never stopped. If sorting fails, all records are still there.
    let ordered = sink.journal.put_in_order(&cells);
    outcome.unordered = ordered.err().map(|error| match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    });
    Ok(outcome)
}

/// The cells that missing ones follow; those that were done in an earlier run are read back.
fn followed_cells(
    plan: &Plan,
    missing: &[(usize, Vec<ArmIndex>)],
    journal: &Journal,
) -> Result<Dependencies, JournalError> {
    let wanted: BTreeSet<CellKey> = missing
        .iter()
        .flat_map(|(session, arms)| arms.iter().map(move |arm| (*session, *arm)))
        .filter_map(|(session, arm)| plan.followed_cell(&plan.key(session, arm)))
        .collect();
    let done = if wanted.is_disjoint(journal.done()) {
        Vec::new()
    } else {
        RecordedRun::read(journal.folder())?.cells
    };
    Ok(Dependencies::new(wanted, &done))
}
