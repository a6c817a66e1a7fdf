//! The cells of a run, in the order in which they are run.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::Plan;
use crate::record::CellKey;

impl Plan {
    /// All cells, in the order in which they are run.
    pub fn cells(&self) -> Vec<CellKey> {
        let sessions = 0..self.sessions.len();
        let of_session = |session| {
            let arms = self.arms(session).into_iter();
            arms.map(move |arm| self.key(session, arm))
        };
        sessions.flat_map(of_session).collect()
    }

    pub(super) fn key(&self, session: usize, arm: ArmIndex) -> CellKey {
        CellKey {
            session: self.sessions[session].id().to_owned(),
            strategy: self.name_of(arm),
            repeat: arm.repeat,
        }
    }

    pub(super) fn name_of(&self, arm: ArmIndex) -> String {
        match arm.kind {
            ArmKind::Full => "full".to_owned(),
            ArmKind::Empty => "empty".to_owned(),
            ArmKind::Strategy(at) => self.scenario.strategies[at].name().to_owned(),
        }
    }

    /// The arm that this one follows: another strategy on the same session, in the same repeat.
    pub(super) fn followed_by(&self, arm: ArmIndex) -> Option<ArmIndex> {
        let ArmKind::Strategy(at) = arm.kind else {
            return None;
        };
        let strategies = &self.scenario.strategies;
        let follows = strategies[at].follows()?;
        let at = strategies.iter().position(|spec| spec.name() == follows)?;
        Some(ArmIndex {
            kind: ArmKind::Strategy(at),
            ..arm
        })
    }

    /// Reference and floor first, then the strategies in seeded random order, those that follow
    /// another after all others.
    pub(super) fn arms(&self, session: usize) -> Vec<ArmIndex> {
        let mut arms: Vec<ArmIndex> = (0..self.scenario.strategies.len())
            .flat_map(|at| {
                (0..self.scenario.repeats).map(move |repeat| ArmIndex {
                    kind: ArmKind::Strategy(at),
                    repeat,
                })
            })
            .collect();
        let place = self.sessions[session].place;
        let mut random = ChaCha8Rng::seed_from_u64(self.scenario.seed ^ ((place as u64) << 32));
        // Fisher–Yates; the bias of the remainder is far below anything an order could matter.
        for last in (1..arms.len()).rev() {
            let at = random.next_u64() % (last as u64 + 1);
            arms.swap(last, usize::try_from(at).unwrap_or(last));
        }
        arms.sort_by_key(|arm| self.followed_by(*arm).is_some());
        // The floor is one of probes: where none is asked there is nothing to measure.
        let floor = (self.manifest.sessions[place].items > 0).then_some(ArmKind::Empty);
        let fixed = [Some(ArmKind::Full), floor].into_iter().flatten();
        let fixed = fixed.map(|kind| ArmIndex { kind, repeat: 0 });
        fixed.chain(arms).collect()
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ArmIndex {
    pub(super) kind: ArmKind,
    pub(super) repeat: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ArmKind {
    Full,
    Empty,
    Strategy(usize),
}
