//! The cells of a run, in the order in which they are run.

use super::Plan;
use crate::record::CellKey;
use crate::record::order::{ArmIndex, ArmKind};
use crate::record::shard::work;

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

    /// The arm that this one follows: another strategy on the same session, in the same repeat.
    pub(super) fn followed_by(&self, arm: ArmIndex) -> Option<ArmIndex> {
        let ArmKind::Strategy(at) = arm.kind else {
            return None;
        };
        let strategies = &self.scenario.strategies;
        let follows = strategies[at].follows()?;
        let at = strategies.iter().position(|spec| spec.name() == follows)?;
        Some(ArmIndex { kind: ArmKind::Strategy(at), ..arm })
    }

    /// The cells of a session: see [`Manifest::arms`](crate::record::Manifest::arms).
    pub(super) fn arms(&self, session: usize) -> Vec<ArmIndex> {
        self.manifest.arms(self.sessions[session].place)
    }
}
