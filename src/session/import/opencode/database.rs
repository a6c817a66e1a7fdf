//! opencode's database: the same messages and parts as in an export, one row each.

use std::sync::Arc;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::super::ImportError;
use super::super::assemble::count;
use super::super::sqlite::reading::{Database, session_id, text};
use super::Reading;
use crate::session::Session;

/// A message as it is stored: its name, what it says of itself, and its parts.
struct Stored {
    id: Arc<str>,
    info: Arc<str>,
    parts: Vec<Arc<str>>,
}

/// All sessions, oldest first; those that a tool started are side chains.
pub(in crate::session::import) fn read(database: &Database) -> Result<Vec<Session>, ImportError> {
    let mut found: Vec<(Arc<str>, bool)> = Vec::new();
    let parent = database.column("session", "parent_id")?;
    let query = format!("SELECT id, {parent} FROM session ORDER BY time_created, id");
    database.rows(&query, &[], |row| {
        found.extend(text(row, 0).map(|id| (id, text(row, 1).is_some())));
    })?;
    let mut sessions = Vec::new();
    for (id, is_child) in found {
        let (messages, hasher) = messages(database, &id)?;
        let mut reading = Reading::new(is_child);
        if database.has_log {
            reading.assembler.warn(
                "what the product has not yet moved from its log into the database is left out",
            );
        }
        for message in &messages {
            let info = raw(&message.info);
            let parts: Vec<Option<&RawValue>> = message.parts.iter().map(raw).collect();
            let unread = parts.iter().filter(|part| part.is_none()).count();
            for _ in 0..unread + usize::from(info.is_none()) {
                let unknown = &mut reading.assembler.source.unknown;
                count(unknown, "row that is not JSON");
            }
            let parts: Vec<&RawValue> = parts.into_iter().flatten().collect();
            if let Some(info) = info {
                reading.message(Some(message.id.clone()), info, &parts);
            }
        }
        sessions.extend(reading.finish(session_id(&id, hasher), database.path())?);
    }
    Ok(sessions)
}

fn raw(text: &Arc<str>) -> Option<&RawValue> {
    serde_json::from_str(text).ok()
}

fn messages(database: &Database, session: &str) -> Result<(Vec<Stored>, Sha256), ImportError> {
    let query = "SELECT m.id, m.data, p.data FROM message m \
                 LEFT JOIN part p ON p.message_id = m.id WHERE m.session_id = ?1 \
                 ORDER BY m.time_created, m.id, p.id";
    let mut messages: Vec<Stored> = Vec::new();
    let mut hasher = Sha256::new();
    database.rows(query, &[session], |row| {
        let Some(id) = text(row, 0) else {
            return;
        };
        let part = text(row, 2);
        if let Some(part) = &part {
            hasher.update(part.as_bytes());
        }
        match messages.last_mut() {
            Some(last) if last.id == id => last.parts.extend(part),
            _ => {
                let info = text(row, 1).unwrap_or_default();
                hasher.update(info.as_bytes());
                let parts = part.into_iter().collect();
                messages.push(Stored { id, info, parts });
            }
        }
    })?;
    Ok((messages, hasher))
}
