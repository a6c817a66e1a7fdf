//! Programs as strategies: whether the same session makes the same contexts of them.

use std::collections::BTreeSet;

use super::{Plan, prepare};
use crate::record::journal::Journal;
use crate::record::{CellKey, CellRecord, End};
use crate::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay};
use crate::strategy::StrategySpec;
use crate::window::Window;

/// The treatment of finished cells of programs in a run that is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// They stand, so that the same command goes on.
    GoesOn,
    /// They are computed again.
    Replayed,
}

impl Plan {
    /// Finished cells that are computed again, because their numbers may no longer hold: those that failed and,
    /// if the run is finished or `unfinished` says so, those of programs, whose files may have changed; with them
    /// the controls that follow them.
    pub fn stale(&self, journal: &Journal, unfinished: Unfinished) -> BTreeSet<CellKey> {
        let mut strategies = self.scenario.strategies.iter();
        let has_programs = strategies.any(|spec| !spec.programs().is_empty());
        if !has_programs && journal.failed().is_empty() {
            return BTreeSet::new();
        }
        let done = journal.done();
        let mut cells = self.cells();
        let is_finished = cells.iter().all(|key| done.contains(key));
        let replays = is_finished || unfinished == Unfinished::Replayed;
        cells.retain(|key| done.contains(key));
        let is_stale = |key: &&CellKey| {
            journal.failed().contains(*key) || (replays && self.is_of_program(&key.strategy))
        };
        let mut stale: BTreeSet<CellKey> = cells.iter().filter(is_stale).cloned().collect();
        cells.retain(|key| {
            self.followed_cell(key)
                .is_some_and(|it| stale.contains(&it))
        });
        stale.extend(cells);
        stale
    }

    /// The cell whose sizes this one has, if it is of a control that follows a strategy.
    fn followed_cell(&self, key: &CellKey) -> Option<CellKey> {
        let strategy = self.spec(&key.strategy)?.follows()?.to_owned();
        Some(CellKey {
            strategy,
            ..key.clone()
        })
    }

    /// Whether this strategy asks a program of the user's own.
    fn is_of_program(&self, strategy: &str) -> bool {
        self.spec(strategy)
            .is_some_and(|spec| !spec.programs().is_empty())
    }

    fn spec(&self, strategy: &str) -> Option<&StrategySpec> {
        let mut specs = self.scenario.strategies.iter();
        specs.find(|spec| spec.name() == strategy)
    }

    /// Asks each program twice on the shortest session, and marks those that answer differently. One that fails says
    /// so in its cells.
    pub(super) fn ask_programs_twice(&mut self) {
        let strategies = self.scenario.strategies.iter().enumerate();
        let programs: Vec<usize> = strategies
            .filter(|(_, it)| !it.programs().is_empty())
            .map(|(at, _)| at)
            .collect();
        if programs.is_empty() {
            return;
        }
        let sessions = self.sessions.iter();
        let Some(shortest) = sessions.min_by_key(|it| it.session.messages().len()) else {
            return;
        };
        let Ok(prepared) = prepare(self, shortest, Vec::new()) else {
            return;
        };
        let window = self.scenario.window.resolve(
            self.manifest.sessions[shortest.place].native_window,
            prepared.largest_prompt(),
            prepared.bill().scale(0).head,
        );
        for at in programs {
            self.manifest.strategies[at].is_random =
                is_random(&self.scenario.strategies[at], &prepared, window);
        }
    }
}

fn is_random(spec: &StrategySpec, prepared: &PreparedSession, window: Window) -> bool {
    let play = || -> Option<CellRecord> {
        let strategy = Box::new(spec.build().ok()?);
        let name = CellName {
            strategy: spec.name().to_owned(),
            repeat: 0,
        };
        let models = Models::offline(prepared.counts());
        let record = replay(
            prepared,
            name,
            Replayed::Strategy(strategy, window),
            &models,
            &NoClock,
        )
        .record;
        (!matches!(record.end, End::Failed { .. })).then_some(record)
    };
    play().is_some_and(|first| play().is_some_and(|second| second != first))
}
