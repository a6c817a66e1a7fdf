//! The cells of a session, in the order in which they are run and written.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{Manifest, StrategyEntry};

/// A cell of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArmIndex {
    /// The reference, the floor, or a strategy.
    pub(crate) kind: ArmKind,
    /// Which repeat, from 0.
    pub(crate) repeat: u32,
}

/// The column of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ArmKind {
    /// The whole history.
    Full,
    /// System prompt and question only.
    Empty,
    /// The strategy at this place in the manifest.
    Strategy(usize),
}

impl Manifest {
    /// The cells of the session at this place: reference and floor first, then the strategies in seeded random order,
    /// those that follow another after all others. The floor is one of probes: where none is asked there is
    /// nothing to measure.
    pub(crate) fn arms(&self, session: usize) -> Vec<ArmIndex> {
        let mut arms: Vec<ArmIndex> = Vec::new();
        for kind in (0..self.strategies.len()).map(ArmKind::Strategy) {
            arms.extend((0..self.repeats).map(|repeat| ArmIndex { kind, repeat }));
        }
        let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ ((session as u64) << 32));
        // Fisher–Yates; the bias of the remainder is far below anything an order could matter.
        for last in (1..arms.len()).rev() {
            let at = random.next_u64() % (last as u64 + 1);
            arms.swap(last, usize::try_from(at).unwrap_or(last));
        }
        arms.sort_by_key(|arm| match arm.kind {
            ArmKind::Strategy(at) => self.strategies[at].follows(),
            ArmKind::Full | ArmKind::Empty => false,
        });
        let floor = (self.sessions[session].items > 0).then_some(ArmKind::Empty);
        let fixed = [Some(ArmKind::Full), floor].into_iter().flatten();
        fixed.map(|kind| ArmIndex { kind, repeat: 0 }).chain(arms).collect()
    }

    /// How many cells the session at this place has.
    pub(crate) fn cells_of(&self, session: usize) -> usize {
        let floor = usize::from(self.sessions[session].items > 0);
        1 + floor + self.strategies.len() * self.repeats as usize
    }

    /// The name that the records of a cell have.
    pub(crate) fn name_of(&self, arm: ArmIndex) -> &str {
        match arm.kind {
            ArmKind::Full => "full",
            ArmKind::Empty => "empty",
            ArmKind::Strategy(at) => &self.strategies[at].name,
        }
    }
}

impl StrategyEntry {
    /// Whether the strategy takes its sizes from another one, which is run before it.
    fn follows(&self) -> bool {
        let own = self.toml.lines().take_while(|line| !line.starts_with('['));
        { own }.any(|line| line.starts_with("follows = "))
    }
}
