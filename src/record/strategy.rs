//! A strategy as the manifest holds it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A strategy in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategyEntry {
    /// Its name, overrides in brackets.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// The whole strategy, as TOML.
    pub toml: String,
}

/// The mark of a strategy that removes text from the provider's cache.
pub const OWN_MECHANISM: &str = "Claude Code's own mechanism: no public API offers it";

impl StrategyEntry {
    /// Why nobody else can use the strategy, where that is so: a mark of its row.
    pub fn own_mechanism(&self) -> Option<&'static str> {
        let is_cached = |line: &str| line.trim() == "mode = \"cache_edit\"";
        let is_own = self.toml.lines().any(is_cached);
        is_own.then_some(OWN_MECHANISM)
    }
}
