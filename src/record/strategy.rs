//! A strategy in the manifest of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ProgramState;
use super::words::Worth;

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
    /// Whether the run added it as a control: it has no row in reports, and no place in baselines.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub is_added: bool,
    /// Whether its program made two contexts of the same session: its numbers depend on chance, as those of a live
    /// model do.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub is_random: bool,
    /// The state of its program, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramState>,
    /// How near it is to the product that it is called after, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth: Option<Worth>,
}

/// The mark of a strategy that removes text from the provider's cache.
pub const OWN_MECHANISM: &str = "Claude Code's own mechanism: no public API offers it";

impl StrategyEntry {
    /// The reason why the strategy cannot be used outside Proctor, if there is one: a mark of its
    /// row.
    pub fn own_mechanism(&self) -> Option<&'static str> {
        let edits = self.toml.lines().any(|line: &str| line.trim() == "mode = \"cache_edit\"");
        edits.then_some(OWN_MECHANISM)
    }
}
