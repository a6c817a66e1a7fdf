//! Programs as strategies: whether they are still those that made earlier results, and answer twice the same.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{Plan, PlanError, Result, native, prepare};
use crate::model::cassette::ReplayMode;
use crate::record::journal::{Journal, JournalError};
use crate::record::{CellKey, CellRecord, End, ProgramState};
use crate::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay};
use crate::scenario::ModelSetting;
use crate::settings::SettingError;
use crate::strategy::StrategySpec;
use crate::strategy::external::ProgramError;
use crate::units::ContentHash;
use crate::window::Window;

/// Whose finished cells an earlier run may have left: those of presets stand in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembered {
    /// None of a program.
    PresetsOnly,
    /// Those of an unfinished run, if its programs are the same: the same command goes on.
    Unfinished,
    /// Those of a part of a run, finished or not, if its programs are the same.
    Part,
}

impl Plan {
    /// Finished cells that are computed again, because their numbers may no longer hold: those that failed, those of
    /// programs which are not remembered, and those of which the cassette no longer has an answer; with them the
    /// controls that follow them.
    ///
    /// # Errors
    ///
    /// If the cells cannot be read.
    pub fn stale(
        &self,
        journal: &Journal,
        remembered: Remembered,
    ) -> Result<BTreeSet<CellKey>, JournalError> {
        let done = journal.done();
        let mut cells = self.cells();
        let may_stand = match remembered {
            Remembered::PresetsOnly => false,
            Remembered::Unfinished => !cells.iter().all(|key| done.contains(key)),
            Remembered::Part => true,
        };
        let strategies = self.manifest.strategies.iter();
        let replayed: BTreeSet<&str> = strategies
            .filter_map(|own| {
                let state = own.program.as_ref()?;
                let mut entries = journal.strategies().iter();
                let before = entries.find(|entry| entry.name == own.name);
                let program = before.and_then(|entry| entry.program.as_ref());
                let same = program.is_some_and(|before| before.difference(state).is_none());
                (!may_stand || !same).then_some(&*own.name)
            })
            .collect();
        cells.retain(|key| done.contains(key));
        let unanswered = self.without_answers(journal)?;
        let stale = cells.iter().filter(|key| {
            journal.failed().contains(*key)
                || replayed.contains(&*key.strategy)
                || unanswered.contains(*key)
        });
        Ok(self.with_followers(stale.cloned().collect(), cells))
    }

    /// Finished cells of which the cassette no longer has an answer that it kept: somebody deleted it, or a power cut
    /// took it. Where nothing may be asked, no cell is given up.
    fn without_answers(&self, journal: &Journal) -> Result<BTreeSet<CellKey>, JournalError> {
        let cassette = self.models().and_then(|models| models.cassette.as_ref());
        let mut models = self.scenario.models.all();
        let can_ask = !models.any(|model| matches!(model, ModelSetting::Cassette { .. }));
        match cassette.map(|cassette| (cassette, cassette.mode())) {
            Some((cassette, ReplayMode::Auto | ReplayMode::Record)) if can_ask => {
                journal.resting_on(&|name| !cassette.holds(name))
            }
            _ => Ok(BTreeSet::new()),
        }
    }

    /// These cells, and of `all` the controls that follow them.
    fn with_followers(
        &self,
        mut cells: BTreeSet<CellKey>,
        mut all: Vec<CellKey>,
    ) -> BTreeSet<CellKey> {
        all.retain(|key| self.followed_cell(key).is_some_and(|lead| cells.contains(&lead)));
        cells.extend(all);
        cells
    }

    /// The finished cells of programs that are not what they were when the run was planned, each with the difference.
    pub(super) fn changed_cells(&self, done: &BTreeSet<CellKey>) -> BTreeMap<CellKey, String> {
        let mut found = BTreeMap::new();
        for (spec, own) in self.scenario.strategies.iter().zip(&self.manifest.strategies) {
            let Some(planned) = &own.program else {
                continue;
            };
            let own_cells: BTreeSet<CellKey> =
                done.iter().filter(|key| key.strategy == own.name).cloned().collect();
            if own_cells.is_empty() {
                continue;
            }
            let now = ProgramState { files: loaded_files(spec), answers: None };
            if let Some(difference) = planned.difference(&now) {
                let cells = self.with_followers(own_cells, done.iter().cloned().collect());
                let why =
                    format!("the program of `{}` was edited meanwhile: {difference}", own.name);
                found.extend(cells.into_iter().map(|key| (key, why.clone())));
            }
        }
        found
    }

    /// Whether this strategy asks a program of the user's own.
    pub(super) fn is_of_program(&self, strategy: &str) -> bool {
        self.spec(strategy).is_some_and(|spec| !spec.programs().is_empty())
    }

    /// Notes the state of each program: its files, and its cell of the shortest session, which it is asked for twice. One
    /// whose answers differ is marked; one that fails says so in its cells. One that does not start is a mistake of
    /// the scenario.
    pub(super) fn note_programs(&mut self) -> Result<(), SettingError> {
        let programs = self.programs();
        if programs.is_empty() {
            return Ok(());
        }
        for at in &programs {
            starts(&self.scenario.strategies[*at])?;
        }
        let prepared = self.shortest();
        for at in programs {
            let spec = &self.scenario.strategies[at];
            let played = || {
                let (prepared, window) = prepared.as_ref()?;
                play(spec, prepared, *window)
            };
            let mut files = loaded_files(spec);
            let twice = played().and_then(|first| Some((first, played()?)));
            // What it writes while it works is no part of it.
            let after = loaded_files(spec);
            files.retain(|name, hash| after.get(name) == Some(hash));
            let entry = &mut self.manifest.strategies[at];
            entry.is_random = twice.as_ref().is_some_and(|(first, second)| first != second);
            let answers = twice.filter(|_| !entry.is_random);
            entry.program =
                Some(ProgramState { files, answers: answers.map(|(record, _)| hash_of(&record)) });
        }
        Ok(())
    }

    /// The shortest session in its window: what programs are asked about.
    fn shortest(&self) -> Option<(PreparedSession, Window)> {
        let entries = &self.manifest.sessions;
        let shortest = self.sessions.iter().min_by_key(|loaded| entries[loaded.place].messages)?;
        let prepared = prepare(self, shortest, Vec::new()).ok()?;
        let own = entries[shortest.place].native_window;
        let window = native::resolved(&self.scenario.window, own, &prepared);
        Some((prepared, window))
    }

    /// Refuses programs that are not those which the plan of a part was made with.
    pub(super) fn has_planned_programs(&self) -> Result<()> {
        let programs = self.programs();
        let shortest = (!programs.is_empty()).then(|| self.shortest()).flatten();
        for at in programs {
            let spec = &self.scenario.strategies[at];
            let planned = self.manifest.strategies[at].program.clone().unwrap_or_default();
            let asked = shortest.as_ref().filter(|_| planned.answers.is_some());
            let record = asked.and_then(|(prepared, window)| play(spec, prepared, *window));
            let answers = record.as_ref().map(hash_of);
            let now = ProgramState { files: loaded_files(spec), answers };
            if let Some(difference) = planned.difference(&now) {
                let strategy = self.manifest.strategies[at].name.clone();
                return Err(PlanError::AnotherProgram { strategy, difference });
            }
        }
        Ok(())
    }

    /// The places of the strategies that ask programs.
    fn programs(&self) -> Vec<usize> {
        let strategies = self.scenario.strategies.iter().enumerate();
        strategies.filter(|(_, spec)| !spec.programs().is_empty()).map(|(at, _)| at).collect()
    }
}

/// Refuses a strategy whose programs do not start.
///
/// # Errors
///
/// If one of them does not start, or the strategy cannot be built.
pub fn starts(spec: &StrategySpec) -> Result<(), SettingError> {
    match (spec.build()?.declared(), spec.programs().first()) {
        (Err(error @ ProgramError::Start { .. }), Some((.., place))) => {
            Err(SettingError::new(place, error.to_string()).with_hint(error.hint()))
        }
        _ => Ok(()),
    }
}

/// The files that the programs of a strategy consist of now.
fn loaded_files(spec: &StrategySpec) -> BTreeMap<String, String> {
    let built = spec.build().ok();
    built.map_or_else(BTreeMap::new, |built| built.loaded_files())
}

fn hash_of(record: &CellRecord) -> String {
    ContentHash::of_values([json!(record)]).hex(16)
}

/// The cell of a strategy without a model; `None` where its program fails.
fn play(spec: &StrategySpec, prepared: &PreparedSession, window: Window) -> Option<CellRecord> {
    let strategy = Box::new(spec.build().ok()?);
    let name = CellName::first(spec.name());
    let models = Models::offline(prepared.counts());
    let replayed = Replayed::Strategy(strategy, window);
    let record = replay(prepared, name, replayed, &models, &NoClock).record;
    (!matches!(record.end, End::Failed { .. })).then_some(record)
}
