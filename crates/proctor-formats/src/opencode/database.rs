//! opencode's database: the same messages and parts as in an export, one row each; or the rows of
//! version 2 (see `rows`).

use super::super::prelude::Result;
use super::super::sqlite::reading::{Database, Listed};
use super::{OpencodeReading, StoredMessage};
use crate::prelude::*;

/// The name under which a row that is not JSON is counted.
const NOT_JSON: &str = "row that is not JSON";

/// All sessions, oldest first; those that a tool started are side chains.
pub(crate) fn list(database: &Database) -> Result<Vec<Listed>> {
    let [parent] = database.columns("session", ["parent_id"])?;
    database.listed(&format!(
        "SELECT id, {parent}, {parent} IS NOT NULL, NULL FROM session ORDER BY time_created, id"
    ))
}

/// One session, message by message.
pub(crate) fn read(database: &Database, one: &Listed) -> Result<Option<Session>> {
    let mut reading =
        OpencodeReading { assembler: database.assembler(one), ..OpencodeReading::default() };
    let query = "SELECT m.id, m.data, p.data FROM message m \
                 LEFT JOIN part p ON p.message_id = m.id WHERE m.session_id = ?1 \
                 ORDER BY m.time_created, m.id, p.id";
    let mut hasher = Sha256::new();
    let mut messages: Vec<StoredMessage> = Vec::new();
    for [id, info, part] in rows(database, &one.id, &["message", "part"], query)? {
        let Some(id) = id else { continue };
        hasher.update(part.as_deref().unwrap_or_default());
        match messages.last_mut() {
            Some(last) if last.id == id => last.parts.extend(part),
            _ => {
                let info = info.unwrap_or_default();
                hasher.update(info.as_bytes());
                messages.push(StoredMessage { id, info, parts: Vec::from_iter(part) });
            }
        }
    }
    reading.stored(&messages, NOT_JSON);
    let query = "SELECT id, type, data FROM session_message WHERE session_id = ?1 ORDER BY seq, id";
    for [id, kind, data] in rows(database, &one.id, &["session_message"], query)? {
        let (kind, data) = (kind.unwrap_or_default(), data.unwrap_or_default());
        hasher.update(data.as_bytes());
        if !messages.is_empty() {
            reading.assembler.skip("row of `session_message` beside messages");
            continue;
        }
        match serde_json::from_str(&data) {
            Ok(raw) => reading.row(id, &kind, raw),
            Err(_) => reading.assembler.unknown(NOT_JSON),
        }
    }
    reading.finish(session_id(&one.id, hasher), database.path())
}

/// The rows of a session; none if the database does not have these tables.
fn rows(database: &Database, id: &str, tables: &[&str], query: &str) -> Result<Vec<[Text; 3]>> {
    if database.has(tables) { database.rows(query, &[id]) } else { Ok(Vec::new()) }
}
