//! opencode's database: the same messages and parts as in an export, one row each.

use sha2::{Digest, Sha256};

use super::super::ImportError;
use super::super::file::session_id;
use super::super::sqlite::reading::{Database, Listed, text};
use super::{Reading, Stored};
use crate::session::Session;

/// What a row is counted as that is not JSON.
const NOT_JSON: &str = "row that is not JSON";

/// All sessions, oldest first; those that a tool started are side chains.
pub(in crate::session::import) fn list(database: &Database) -> Result<Vec<Listed>, ImportError> {
    let mut found = Vec::new();
    let parent = database.column("session", "parent_id")?;
    let query = format!("SELECT id, {parent} FROM session ORDER BY time_created, id");
    database.rows(&query, &[], |row| {
        found.extend(text(row, 0).map(|id| Listed {
            id,
            is_child: text(row, 1).is_some(),
            model: None,
        }));
    })?;
    Ok(found)
}

/// One session, message by message.
pub(in crate::session::import) fn read(
    database: &Database,
    one: &Listed,
) -> Result<Option<Session>, ImportError> {
    let mut reading = Reading::new(one.is_child);
    if database.has_log {
        let what = "what the product has not yet moved from its log into the database is left out";
        reading.assembler.warn(what);
    }
    let query = "SELECT m.id, m.data, p.data FROM message m \
                 LEFT JOIN part p ON p.message_id = m.id WHERE m.session_id = ?1 \
                 ORDER BY m.time_created, m.id, p.id";
    let mut hasher = Sha256::new();
    let mut last: Option<Stored> = None;
    database.rows(query, &[&*one.id], |row| {
        let Some(id) = text(row, 0) else {
            return;
        };
        let part = text(row, 2);
        if let Some(part) = &part {
            hasher.update(part.as_bytes());
        }
        match &mut last {
            Some(last) if last.id == id => last.parts.extend(part),
            _ => {
                let info = text(row, 1).unwrap_or_default();
                hasher.update(info.as_bytes());
                let parts = part.into_iter().collect();
                let before = last.replace(Stored { id, info, parts });
                if let Some(before) = before {
                    reading.stored(&[before], NOT_JSON);
                }
            }
        }
    })?;
    if let Some(last) = last {
        reading.stored(&[last], NOT_JSON);
    }
    reading.finish(session_id(&one.id, hasher), database.path())
}
