//! The sessions in a manifest, and which of them are one cluster.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Manifest, NativeWindow, PriceEntry, SessionCache, SessionSizes};
use crate::units::Tokens;

/// A session in the manifest.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionEntry {
    /// Its id.
    pub id: String,
    /// Hash of its content.
    pub hash: String,
    /// The id of the main session that it is a side chain of: both are one cluster, and count once.
    /// `None` where it is a cluster of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The format it was read from, or `synthetic`.
    pub format: String,
    /// Messages in the full history.
    pub messages: usize,
    /// API calls.
    pub calls: usize,
    /// Size of the full history: system prompt, tools and messages.
    pub tokens: Tokens,
    /// Probe items that are asked of it; 0 where nothing was planted.
    pub items: usize,
    /// Hash of questions, gold, evidence and importance; `None` without probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<String>,
    /// Compactions that the recorded product made.
    pub compactions: usize,
    /// The sizes of its prompts.
    pub sizes: SessionSizes,
    /// The window in which it is replayed where the scenario asks for its own.
    pub native_window: NativeWindow,
    /// The prices of the agent's model, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceEntry>,
    /// The agent's model, where it is a real one and its prices are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<String>,
    /// How the provider's cache was billed.
    pub cache: SessionCache,
    /// Records and blocks of unknown type, by type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, u64>,
    /// The repairs of the importer, with counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub warnings: BTreeMap<String, u64>,
}

impl SessionEntry {
    /// The id of its main session, or its own.
    pub fn cluster(&self) -> &str {
        self.cluster.as_deref().unwrap_or(&self.id)
    }
}

/// Kinds of repairs that a sentence names; a report's table has all.
const NAMED_REPAIRS: usize = 2;

/// What importers mended or left out in these sessions, in a sentence without its full stop; nothing
/// where they are as their products wrote them. What was cut comes first.
pub fn repairs(sessions: &[SessionEntry]) -> Option<String> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for what in sessions.iter().flat_map(|entry| entry.warnings.keys()) {
        *kinds.entry(what).or_default() += 1;
    }
    let mended = sessions.iter().filter(|entry| !entry.warnings.is_empty());
    let (mended, all) = (recordings(mended), recordings(sessions));
    let mut kinds: Vec<(&str, usize)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(what, sessions)| (!what.contains("cut"), Reverse(*sessions)));
    let in_words = kinds.iter().take(NAMED_REPAIRS).map(|(what, sessions)| match sessions {
        1 => (*what).to_owned(),
        sessions => format!("{what} ({sessions})"),
    });
    let mut named: Vec<String> = in_words.collect();
    if kinds.len() > NAMED_REPAIRS {
        named.push(format!("and {} more", kinds.len() - NAMED_REPAIRS));
    }
    let words = named.join("; ");
    (mended > 0)
        .then(|| format!("{mended} of {all} recordings were mended as they were read: {words}"))
}

/// How many recordings these are: sub-agents count with their main session.
fn recordings<'a>(sessions: impl IntoIterator<Item = &'a SessionEntry>) -> usize {
    sessions.into_iter().map(SessionEntry::cluster).collect::<BTreeSet<&str>>().len()
}

impl Manifest {
    /// The sessions, by id.
    pub fn entries(&self) -> BTreeMap<&str, &SessionEntry> {
        self.sessions.iter().map(|entry| (entry.id.as_str(), entry)).collect()
    }

    /// The cluster of each session, by the session's id: its main session, or itself.
    pub fn clusters(&self) -> BTreeMap<&str, &str> {
        self.sessions.iter().map(|entry| (entry.id.as_str(), entry.cluster())).collect()
    }
}
