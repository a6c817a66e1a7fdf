//! A part of a run: some of its sessions, for one of several machines.

use super::session_store::PlannedPart;
use super::{Manifest, Plan, PlanError};
use crate::record::shard::{Partition, PlannedSource};
use crate::scenario::Scenario;

impl Plan {
    /// Reads and counts the sessions of one part of a run, whose manifest and sources were written before.
    pub fn planned(
        scenario: Scenario,
        (manifest, sources): (&Manifest, &[PlannedSource]),
        part: Partition,
    ) -> Result<Self, PlanError> {
        let part = PlannedPart::of(&scenario, (manifest, sources), part)?;
        Self::load(scenario, Some(&part))
    }

    /// The sessions of each source of the scenario.
    pub fn sources(&self) -> &[PlannedSource] {
        &self.sources
    }

    /// Takes what the plan knows from all sessions, once the sessions that are here are those of the plan.
    pub(super) fn is_as_planned(&mut self, part: &PlannedPart<'_>) -> Result<(), PlanError> {
        let (planned, wanted) = (&part.manifest.fingerprint, &self.manifest.fingerprint);
        if planned != wanted {
            return Err(PlanError::AnotherPlan {
                planned: planned.clone(),
                wanted: wanted.clone(),
            });
        }
        self.manifest = part.manifest.clone();
        Ok(())
    }

    /// Leaves only the sessions of one part to be run; the manifest stays that of the whole run.
    pub fn keep_part(&mut self, part: Partition) {
        let shards = part.by.shards(part.of, &self.manifest);
        let is_own = |place: usize| shards[place] == part.shard;
        self.sessions.retain(|loaded| is_own(loaded.place));
    }

    /// How many of the manifest's sessions are run.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }
}
