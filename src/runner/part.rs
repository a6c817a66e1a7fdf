//! A part of a run: some of its sessions, for one of several machines.

use super::session_store::PlannedPart;
use super::{Manifest, Plan, PlanError, Result};
use crate::record::shard::{Partition, PlannedSource, work};
use crate::scenario::Scenario;
use crate::units::{Tokens, Usd};

impl Plan {
    /// Reads and counts the sessions of one part of a run, whose manifest and sources were written before.
    pub fn planned(
        scenario: Scenario,
        (manifest, sources): (&Manifest, &[PlannedSource]),
        part: Partition,
    ) -> Result<Self> {
        let part = PlannedPart::of(&scenario, (manifest, sources), part)?;
        Self::load(scenario, Some(&part))
    }

    /// The sessions of each source of the scenario.
    pub fn sources(&self) -> &[PlannedSource] {
        &self.sources
    }

    /// Takes the manifest of the plan, once it is known to be of the same run.
    pub(super) fn take_plan(&mut self, part: &PlannedPart<'_>) -> Result<()> {
        let (planned, wanted) = (&part.manifest.fingerprint, &self.manifest.fingerprint);
        if planned != wanted {
            return Err(PlanError::AnotherPlan {
                planned: planned.clone(),
                wanted: wanted.clone(),
            });
        }
        self.manifest = part.manifest.clone();
        self.has_planned_programs()?;
        self.sessions.retain(|loaded| Some(loaded.place) != part.guest);
        Ok(())
    }

    /// Leaves only the sessions of one part to be run; the manifest stays that of the whole run.
    pub fn keep_part(&mut self, part: Partition) {
        let shards = part.by.shards(part.of, &self.manifest);
        self.sessions.retain(|loaded| shards[loaded.place] == part.shard);
    }

    /// The share of the whole run's work that a part is.
    pub fn share(&self, part: Partition) -> f64 {
        let numbered = part.by.shards(part.of, &self.manifest).into_iter().enumerate();
        let works = numbered.map(|(at, shard)| (shard, work(&self.manifest, at)));
        let own = works.clone().filter(|(shard, _)| *shard == part.shard);
        let [own, all] =
            [own.map(|(_, work)| work).sum::<u64>(), works.map(|(_, work)| work).sum()];
        own as f64 / all.max(1) as f64
    }

    /// Divides limits that hold for the whole run: what may be spent by the work of the part, and what may go on at
    /// once by the number of parts.
    pub fn divide_limits(&mut self, part: Partition) {
        let share = self.share(part);
        let models = &mut self.scenario.models;
        // A share of nothing would stop the part before its first session.
        let shared = |amount: u64| (Tokens(amount).fraction(share).0 + 1).min(amount);
        let (budget, pace) = (&mut models.budget, &mut models.pace);
        budget.money = budget.money.map(|money| Usd(shared(money.0)));
        budget.tokens = budget.tokens.map(|tokens| Tokens(shared(tokens.0)));
        pace.at_once = (pace.at_once / part.of as usize).max(1);
    }

    /// How many of the manifest's sessions are run.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }
}
