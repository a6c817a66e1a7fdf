//! Why calls were refused or never answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A prompt that a limit of the provider's refused, beside the window.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// At this call of the agent.
    pub call: usize,
    /// The limit in words: `at most 100 images in a request`.
    pub limit: String,
    /// The document that names it.
    pub document: String,
}

/// Why a call was never answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeathCause {
    /// The prompt was too long, and no recovery made it fit.
    #[default]
    Overflow,
    /// The provider failed, however often the prompt was sent.
    Unanswered,
}
