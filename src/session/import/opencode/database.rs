//! opencode's database: the same messages and parts as in an export, one row each.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::super::ImportError;
use super::super::sqlite::reading::{Database, session_id, text};
use super::{Reading, Stored};
use crate::session::Session;

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
        reading.stored(&messages, "row that is not JSON");
        sessions.extend(reading.finish(session_id(&id, hasher), database.path())?);
    }
    Ok(sessions)
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
