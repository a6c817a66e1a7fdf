//! Other plans over sessions that are loaded already, which sweeps run; and what decides whether the results
//! of two plans may be compared.

use std::collections::BTreeMap;

use super::{Plan, manifest_of};
use crate::scenario::Scenario;

/// What decides results and may differ between two runs of the same sessions, by name, in words: models,
/// counter, faults and window mode have places of their own in the manifest.
pub(super) fn conditions(scenario: &Scenario) -> BTreeMap<String, String> {
    let window = &scenario.window;
    let cache = &scenario.cache;
    let mut found = BTreeMap::from([
        ("provider".to_owned(), scenario.provider.to_string()),
        (
            "window reserves".to_owned(),
            format!(
                "max_output {}, overflow_reserve {}",
                window.max_output.0, window.overflow_reserve.0
            ),
        ),
        (
            "cache".to_owned(),
            format!(
                "model {}, scheme {}, {} s from call to call",
                cache.model.as_deref().unwrap_or("of the session"),
                cache.scheme.as_ref().map_or_else(
                    || "of the provider".to_owned(),
                    |scheme| format!("{scheme:?}")
                ),
                cache.pacing_seconds
            ),
        ),
    ]);
    if let Some(window) = scenario.models.asking.window {
        found.insert("reader window".to_owned(), format!("{} tokens", window.0));
    }
    if window.is_matched {
        found.insert("trigger".to_owned(), format!("{:?}", scenario.trigger));
    }
    found
}

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
        let mut manifest = manifest_of(&scenario, entries, &self.prices);
        manifest
            .calibrations
            .clone_from(&self.manifest.calibrations);
        Self {
            manifest,
            sessions,
            scenario,
            prices: self.prices.clone(),
            models: self.models.clone(),
        }
    }
}
