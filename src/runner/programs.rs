//! Programs as strategies: whether the same session makes the same contexts of them.

use super::{Plan, prepare};
use crate::record::{CellRecord, End};
use crate::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay};
use crate::strategy::StrategySpec;
use crate::window::Window;

impl Plan {
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
