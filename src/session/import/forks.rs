//! Sessions that begin as another did: products copy a conversation into a new file when it is
//! forked, or resumed under a new name.
//!
//! Run together, each would count what they share again, as if it had been measured twice. So the
//! first session of a run keeps all its calls, and a later one that repeats its beginning goes on
//! after it: what it repeats was loaded, as in a session that was resumed. An import only tells:
//! which sessions will be run together is not known there.

use std::collections::{BTreeMap, BTreeSet};

use super::pieces;
use super::requests::Look;
use crate::session::{
    CompactedTo, Message, RecordedCompaction, Resumed, Role, Session, SessionError, SessionParts,
};
use crate::units::ContentHash;

/// An id that is shorter may have been counted rather than drawn: `call-1`.
const DRAWN_CHARS: usize = 12;

/// The format of sessions that were generated.
const GENERATED: &str = "synthetic";

/// How the sessions so far began.
#[derive(Debug, Default)]
pub struct Beginnings {
    /// Every beginning, by the hash of its messages: the session, the first that had it.
    begun: BTreeMap<ContentHash, String>,
    /// What tells that two beginnings are one recording, and not two that say the same.
    told: BTreeSet<ContentHash>,
}

/// What a session has in common with an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// So many messages, from the first, are those of the other session.
    pub messages: usize,
    /// Whether that is all there is.
    pub is_all: bool,
    /// The other session's id.
    pub of: String,
}

impl std::fmt::Display for Repeated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            messages,
            is_all,
            of,
        } = self;
        if *is_all {
            write!(f, "all of it stands in session `{of}`")
        } else {
            write!(
                f,
                "the first {messages} messages are those of session `{of}`"
            )
        }
    }
}

impl Repeated {
    /// The session, going on after what it repeats. Its warnings say so.
    pub fn after(&self, session: Session) -> Result<Session, SessionError> {
        goes_on(session, self)
    }
}

impl Beginnings {
    /// What the session repeats of an earlier one; it is an earlier one itself from then on. What a
    /// generator made twice was asked for twice, and repeats nothing.
    pub fn repeated(&mut self, session: &Session) -> Option<Repeated> {
        if session.source().format == GENERATED {
            return None;
        }
        let mut chain = ContentHash::of([]);
        let mut shared: Option<(usize, String)> = None;
        let mut is_told = false;
        let mut own = Vec::new();
        for (at, message) in session.messages().iter().enumerate() {
            let look = Look::of(message);
            chain = ContentHash::of_parts([chain.bytes(), look.bytes()]);
            let told = marks(message, chain);
            if let Some(earlier) = self.begun.get(&chain) {
                is_told |= told.iter().any(|mark| self.told.contains(mark));
                shared = Some((at + 1, earlier.clone()));
            }
            own.push((chain, told));
        }
        for (chain, told) in own {
            let first = || session.id().to_owned();
            self.begun.entry(chain).or_insert_with(first);
            self.told.extend(told);
        }
        let (messages, of) = shared.filter(|(count, _)| is_told && *count > session.loaded())?;
        let is_all = messages == session.messages().len();
        Some(Repeated {
            messages,
            is_all,
            of,
        })
    }

    /// The session, going on after what it repeats of an earlier one. Its warnings say so.
    pub fn after_repeated(&mut self, session: Session) -> Result<Session, SessionError> {
        match self.repeated(&session) {
            Some(repeated) => goes_on(session, &repeated),
            None => Ok(session),
        }
    }
}

/// What only one and the same answer of a model has: the moment it came, and names that were drawn.
fn marks(message: &Message, chain: ContentHash) -> Vec<ContentHash> {
    if message.role() != Role::Assistant {
        return Vec::new();
    }
    let time = message.timestamp.map(|time| time.0.to_string());
    let call = message.api_call.iter().map(|call| call.0.to_string());
    let uses = message.tool_uses().map(|(_, it)| it.id.to_string());
    let names = call.chain(uses).filter(|name| name.len() >= DRAWN_CHARS);
    time.into_iter()
        .chain(names)
        .map(|mark| ContentHash::of_parts([chain.bytes(), mark.as_bytes()]))
        .collect()
}

/// The session, with this many messages loaded. What was compacted in them was loaded as it stood.
fn goes_on(session: Session, repeated: &Repeated) -> Result<Session, SessionError> {
    let count = repeated.messages;
    let mut parts: SessionParts = session.parts;
    let later = parts
        .compactions
        .iter()
        .position(|one| one.at > count)
        .unwrap_or(parts.compactions.len());
    let rest = parts.compactions.split_off(later);
    if let Some(last) = parts.compactions.last() {
        let after = match pieces::context(&parts.compactions, count) {
            Some(context) => CompactedTo::Replaced(pieces::joined(context)),
            None => last.after.clone(),
        };
        parts.compactions = vec![RecordedCompaction {
            at: count,
            after,
            ..last.clone()
        }];
    }
    parts.compactions.extend(rest);
    let what = format!("{repeated}: what it repeats counts there");
    parts.source.warnings.insert(what, 1);
    let notes = parts.resumed.and_then(|resumed| resumed.notes);
    parts.resumed = Some(Resumed { at: count, notes });
    Session::new(parts)
}
