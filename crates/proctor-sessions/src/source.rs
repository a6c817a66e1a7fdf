//! Where a session came from, and what is not in it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Tokens;

/// The name of the format of made-up sessions.
pub const SYNTHETIC: &str = "synthetic";

/// Where a session came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Source {
    /// Name of the format: `native`, `claude-code`, `synthetic`.
    pub format: String,
    /// The product's version: the newest one that the recording names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Of a sub-agent's conversation, or a fork, the id of its main session. Where that is in a file of its own,
    /// the name that the product gave it, with which its id begins or ends but for the digits of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// Records that do not belong to the conversation (progress, titles, snapshots), by type.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, u64>,
    /// Records and blocks of a type the importer does not know, by type.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, u64>,
    /// The repairs and doubts of the importer, in words, by message; with counts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub warnings: BTreeMap<String, u64>,
    /// The parts of every prompt that the recording does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
}

/// How warnings of a loss begin, and what to do about it.
const LOSSES: [(&str, &str); 5] = [
    ("line ", COPY_AGAIN),
    ("further lines ", COPY_AGAIN),
    ("the last line ", COPY_AGAIN),
    ("facts in ", "name the file after the session"),
    ("records of ", "write each session to a file of its own"),
];
const COPY_AGAIN: &str = "copy the file again, or go on without it";

impl Source {
    /// The size of the system prompt and tools that a made-up session is declared to have and does
    /// not hold. What a recording lacks is learnt from its bill instead.
    pub fn declared_head(&self) -> Option<Tokens> {
        let missing = self.missing.filter(|_| self.format == SYNTHETIC);
        missing.and_then(|missing| missing.tokens)
    }

    /// Counts something that had to be mended or cannot be trusted.
    pub fn warn(&mut self, what: &str) {
        count(&mut self.warnings, what);
    }

    /// The warnings that something of the conversation, or of what is known about it, is lost: each with what to do.
    pub fn losses(&self) -> impl Iterator<Item = String> {
        self.warnings.keys().filter_map(|what| {
            let (_, advice) = LOSSES.into_iter().find(|(begin, _)| what.starts_with(begin))?;
            Some(format!("{what}; {advice}"))
        })
    }

    /// Counts something that does not belong to the conversation.
    pub fn skip(&mut self, what: &str) {
        count(&mut self.skipped, what);
    }

    /// Counts something that is not understood.
    pub fn not_understood(&mut self, what: &str) {
        count(&mut self.unknown, what);
    }
}

/// The parts of every prompt of a session that its recording does not hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Missing {
    /// The system prompt.
    pub system_prompt: bool,
    /// The definitions of tools that were used.
    pub tools: bool,
    /// Their approximate number of tokens, if the provider's first bill shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
}

/// Counts one `what`. Names come from the file, so they are cut where they get absurd.
pub fn count(counts: &mut BTreeMap<String, u64>, what: &str) {
    let name: String = what.chars().take(80).collect();
    *counts.entry(name).or_default() += 1;
}
