//! The cells of a run, in the order in which they are run.

use super::Plan;
use crate::record::CellKey;
use crate::record::order::ArmIndex;
use crate::record::shard::work;
use crate::strategy::StrategySpec;

impl Plan {
    /// All cells, in the order in which they are run.
    pub fn cells(&self) -> Vec<CellKey> {
        let cells = (0..self.sessions.len()).flat_map(|session| {
            self.arms(session).into_iter().map(move |arm| self.key(session, arm))
        });
        cells.collect()
    }

    pub(super) fn key(&self, session: usize, arm: ArmIndex) -> CellKey {
        CellKey {
            session: self.sessions[session].id().to_owned(),
            strategy: self.name_of(arm),
            repeat: arm.repeat,
        }
    }

    /// The work of a cell of a session, relative to those of others.
    pub(super) fn work(&self, session: usize) -> u64 {
        work(&self.manifest, self.sessions[session].place)
    }

    pub(super) fn name_of(&self, arm: ArmIndex) -> String {
        self.manifest.name_of(arm).to_owned()
    }

    /// The cell whose sizes this one has, if it is of a strategy that follows another one.
    pub(super) fn followed_cell(&self, key: &CellKey) -> Option<CellKey> {
        let followed = self.spec(self.spec(&key.strategy)?.follows()?)?;
        Some(CellKey { strategy: followed.name().to_owned(), ..key.clone() })
    }

    pub(super) fn spec(&self, strategy: &str) -> Option<&StrategySpec> {
        self.scenario.strategies.iter().find(|spec| spec.name() == strategy)
    }

    /// The cells of a session: see [`Manifest::arms`](crate::record::Manifest::arms).
    pub(super) fn arms(&self, session: usize) -> Vec<ArmIndex> {
        self.manifest.arms(self.sessions[session].place)
    }
}
