//! Sessions that begin as another did: products copy a conversation into a new file when it is
//! forked, or resumed under a new name.
//!
//! Run together, each would count the shared beginning again, as if it had been measured twice. So
//! the first session of a run keeps all its calls. A later one that repeats its beginning goes on
//! after it: the repeated messages count as loaded, as in a session that was resumed. An import
//! only reports them: it does not know which sessions will be run together.

use super::prelude::*;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use proctor_sessions::ResumePoint;

/// A shorter id may have been counted rather than drawn: `call-1`.
const DRAWN_CHARS: usize = 12;

/// The format of sessions that were generated.
const GENERATED: &str = "synthetic";

/// Half of a SHA-256: a session of a million messages has as many, and half of one is still unlike any other.
type HalfHash = [u8; 16];

fn half(hash: &ContentHash) -> HalfHash {
    hash.bytes().first_chunk().copied().unwrap_or_default()
}

/// The beginnings of the sessions so far.
#[derive(Debug, Default)]
pub struct ForkIndex {
    /// Every beginning, by the hash of its messages: the index of the first session that had it.
    begun: HashMap<HalfHash, u32, RandomState>,
    /// Their ids.
    sessions: Vec<Arc<str>>,
    /// Marks that only one recording has: two that merely say the same have none in common.
    marks: HashSet<HalfHash, RandomState>,
}

/// The messages that a session has in common with an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPrefix {
    /// How many messages, from the first.
    pub messages: usize,
    /// Whether these are all messages of the session.
    pub is_all: bool,
    /// The other session's id.
    pub of: String,
}

impl std::fmt::Display for SharedPrefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = &self.of;
        if self.is_all {
            return write!(f, "all of it stands in session `{of}`");
        }
        let count = self.messages;
        write!(f, "the first {count} messages are those of session `{of}`")
    }
}

impl ForkIndex {
    /// The beginning that a session shares with an earlier one; it is an earlier one itself from
    /// then on. Without a mark, a session that stands as a whole in another is a copy of it. A session
    /// that a generator made twice was asked for twice, and repeats nothing.
    pub fn repeated(&mut self, session: &Session) -> Option<SharedPrefix> {
        if session.source().format == GENERATED {
            return None;
        }
        let mut chain = ContentHash::of([]);
        let index = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX);
        self.sessions.push(session.id().into());
        self.begun.reserve(session.messages().len());
        let mut shared: Option<(usize, u32)> = None;
        let (mut is_marked, mut has_marks) = (false, false);
        for (at, message) in session.messages().iter().enumerate() {
            chain = ContentHash::of_parts([chain.bytes(), Look::of(message).bytes()]);
            let own = marks(message, chain);
            // No two beginnings of one session are alike, and a mark depends on its beginning.
            match self.begun.entry(half(&chain)) {
                Entry::Vacant(place) => _ = place.insert(index),
                Entry::Occupied(earlier) => {
                    is_marked |= own.iter().any(|mark| self.marks.contains(mark));
                    shared = Some((at + 1, *earlier.get()));
                }
            }
            has_marks |= !own.is_empty();
            self.marks.extend(own);
        }
        let (messages, of) = shared.filter(|(count, _)| *count > session.loaded())?;
        let all = messages == session.messages().len();
        let of = self.sessions.get(of as usize)?;
        (is_marked || all && !has_marks).then(|| SharedPrefix {
            messages,
            is_all: all,
            of: of.to_string(),
        })
    }
}

/// Marks that only one and the same answer of a model has: the moment it came, and drawn ids.
fn marks(message: &Message, chain: ContentHash) -> Vec<HalfHash> {
    if message.role() != Role::Assistant {
        return Vec::new();
    }
    let time = message.details.timestamp.map(|time| time.0.to_string());
    let call = message.details.api_call.iter().map(|call| call.0.to_string());
    let uses = message.tool_uses().map(|(_, tool_use)| tool_use.id.to_string());
    let ids = call.chain(uses).filter(|id| id.len() >= DRAWN_CHARS);
    let marks = time.into_iter().chain(ids);
    marks.map(|mark| half(&ContentHash::of_parts([chain.bytes(), mark.as_bytes()]))).collect()
}

impl SharedPrefix {
    /// The session with the shared messages loaded. Its warnings say so. If they were compacted,
    /// the context is loaded as the compactions left it.
    pub fn after(&self, session: Session) -> Result<Session, SessionError> {
        let at = self.messages;
        let mut parts = session.into_parts();
        let later = parts.compactions.partition_point(|one| one.at <= at);
        let rest = parts.compactions.split_off(later);
        if let Some(last) = parts.compactions.last() {
            let after = match kept_context::context(&parts.compactions, at) {
                Some(context) => CompactedTo::Replaced(kept_context::joined(context)),
                None => last.after.clone(),
            };
            parts.compactions = vec![RecordedCompaction { at, after, usage: None, ..last.clone() }];
        }
        parts.compactions.extend(rest);
        parts.source.warnings.insert(format!("{self}: what it repeats counts there"), 1);
        let notes = parts.resumed.and_then(|resumed| resumed.notes);
        parts.resumed = Some(ResumePoint { at, notes });
        Session::new(parts)
    }
}
