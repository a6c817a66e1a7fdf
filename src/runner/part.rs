//! A part of a run: some of its sessions, for one of several machines.

use super::session_store::PlannedPart;
use super::{Manifest, Plan, PlanError};
use crate::record::shard::Partition;
use crate::scenario::Scenario;

impl Plan {
    /// Loads and counts the sessions of one part of a run, whose manifest was made before.
    pub fn planned(
        scenario: Scenario,
        manifest: &Manifest,
        part: Partition,
    ) -> Result<Self, PlanError> {
        let sessions = manifest.sessions.iter().enumerate();
        let shards = part.by.shards(part.of, manifest);
        let own = sessions
            .zip(shards)
            .filter(|(_, shard)| *shard == part.shard);
        let own = own.map(|((place, session), _)| (session.id.as_str(), place));
        let part = PlannedPart {
            manifest,
            own: own.collect(),
        };
        Self::load(scenario, Some(&part))
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
