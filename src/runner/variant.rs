//! Other plans over sessions that are loaded already: what sweeps run.

use super::{Plan, manifest_of};
use crate::scenario::Scenario;

impl Plan {
    /// Another scenario over those of the same sessions that `keeps` wants, without loading or counting
    /// them again: settings of strategies and windows may differ, sessions and counter may not.
    #[must_use]
    pub fn variant(&self, scenario: Scenario, keeps: &dyn Fn(&str) -> bool) -> Self {
        let kept = self.sessions.iter().zip(&self.manifest.sessions);
        let (sessions, entries) = kept
            .filter(|(loaded, _)| keeps(loaded.session.id()))
            .map(|(loaded, entry)| (loaded.clone(), entry.clone()))
            .unzip();
        let manifest = manifest_of(&scenario, entries, &self.prices);
        Self {
            manifest,
            sessions,
            scenario,
            prices: self.prices.clone(),
            models: self.models.clone(),
        }
    }
}
