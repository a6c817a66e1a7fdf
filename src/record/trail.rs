//! Texts that an agent would have to read again, files that its context still names, and
//! unsupported claims of summaries.

use std::collections::BTreeMap;

use derive_more::AddAssign;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::ground_truth::ArtifactVerb;
use crate::units::Tokens;

/// Something that a call needed and its prompt no longer held, and that was not read again before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reread {
    /// The call that needed it.
    pub call: usize,
    /// The message with the tool result that brought it; `None` where no tool ever did: it would
    /// have to be looked for, or asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<usize>,
    /// Size of that result: what reading it again brings.
    pub tokens: Tokens,
}

/// Files the agent worked on, and files that its prompts still name, by what was done.
pub type ArtifactTrail = BTreeMap<ArtifactVerb, TrailCounts>;

/// Files, added up over the calls that were sent.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, AddAssign, JsonSchema, Serialize, Deserialize,
)]
#[serde(deny_unknown_fields)]
pub struct TrailCounts {
    /// Files that this was done to, by the full history.
    pub touched: u64,
    /// Files of which the prompt says so.
    #[serde(rename = "told")]
    pub mentioned: u64,
    /// Of these, files of which it is true.
    #[serde(rename = "right")]
    pub correct: u64,
}

/// Names, paths and numbers in summaries.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryAtoms {
    /// Texts that were written in place of messages.
    pub summaries: u64,
    /// Different atoms in them, summary by summary.
    pub atoms: u64,
    /// Of these, atoms that do not occur in the text that the summary replaces.
    pub unsupported: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<UnsupportedAtom>,
}

/// An atom of a summary that does not occur in the text that the summary replaces.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnsupportedAtom {
    /// Before or after this call.
    pub call: usize,
    /// The stage that wrote it.
    pub stage: String,
    /// The atom.
    pub atom: String,
}
