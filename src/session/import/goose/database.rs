//! goose's database: sessions, their messages, and what each call was billed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::super::ImportError;
use super::super::assemble::{Assembler, count};
use super::super::file::session_id;
use super::super::sqlite::reading::{Database, Listed, number, text};
use super::{FORMAT, Reading};
use crate::session::{Session, Tag};
use crate::units::{Tokens, Usage};

/// A message as a log would hold it.
#[derive(Serialize)]
struct Stored<'a> {
    id: Option<Arc<str>>,
    role: Option<Arc<str>>,
    created: Option<u64>,
    content: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
}

/// A message before it is read: who speaks, and since when.
struct Row {
    role: Option<Arc<str>>,
    created: Option<u64>,
}

/// All sessions in the order in which they were begun.
pub(in crate::session::import) fn list(database: &Database) -> Result<Vec<Listed>, ImportError> {
    let [kind, config] =
        ["session_type", "model_config_json"].map(|column| database.column("sessions", column));
    let query = format!(
        "SELECT id, {}, {} FROM sessions ORDER BY created_at, id",
        kind?, config?
    );
    let mut found = Vec::new();
    database.rows(&query, &[], |row| {
        let config = text(row, 2).unwrap_or_default();
        let config: serde_json::Value = serde_json::from_str(&config).unwrap_or_default();
        let model = config.get("model_name").and_then(|it| it.as_str());
        found.extend(text(row, 0).map(|id| Listed {
            id,
            is_child: text(row, 1).as_deref() == Some("sub_agent"),
            model: model.map(str::to_owned),
        }));
    })?;
    Ok(found)
}

/// One session, message by message.
pub(in crate::session::import) fn read(
    database: &Database,
    one: &Listed,
) -> Result<Option<Session>, ImportError> {
    let tags: Vec<Tag> = one.is_child.then_some(Tag::Sidechain).into_iter().collect();
    let mut reading = Reading {
        assembler: Assembler::new(tags),
        ..Reading::default()
    };
    FORMAT.clone_into(&mut reading.assembler.source.format);
    if database.has_log {
        reading
            .assembler
            .warn("what the product has not yet moved from its log into the database is left out");
    }
    reading.assembler.header.model.clone_from(&one.model);
    let mut rows = Vec::new();
    let query = "SELECT role, created_timestamp FROM messages WHERE session_id = ?1 ORDER BY id";
    database.rows(query, &[&*one.id], |row| {
        rows.push(Row {
            role: text(row, 0),
            created: number(row, 1),
        });
    })?;
    let billed = billed(database, &one.id, &rows, &mut reading.assembler)?;
    let [id, metadata] =
        ["message_id", "metadata_json"].map(|column| database.column("messages", column));
    let query = format!(
        "SELECT {}, role, created_timestamp, content_json, {} FROM messages \
         WHERE session_id = ?1 ORDER BY id",
        id?, metadata?
    );
    let mut hasher = Sha256::new();
    let mut at = 0;
    database.rows(&query, &[&*one.id], |row| {
        let content = text(row, 3).unwrap_or_default();
        hasher.update(content.as_bytes());
        let metadata = text(row, 4);
        let message = Stored {
            id: text(row, 0),
            role: text(row, 1),
            created: number(row, 2),
            content: serde_json::from_str(&content).ok(),
            metadata: metadata
                .as_deref()
                .and_then(|it| serde_json::from_str(it).ok()),
        };
        let raw = serde_json::value::to_raw_value(&message).ok();
        match raw.filter(|_| message.content.is_some()) {
            Some(raw) => reading.message(&raw, billed.get(&at).copied()),
            None => count(
                &mut reading.assembler.source.unknown,
                "row that is not JSON",
            ),
        }
        at += 1;
    })?;
    reading.finish(session_id(&one.id, hasher), database.path())
}

/// What the calls were billed, by the place of their message.
///
/// A call is entered when it is done: its message is the last that was begun before, of those that
/// no earlier entry has. The input includes the cached tokens.
fn billed(
    database: &Database,
    session: &str,
    rows: &[Row],
    assembler: &mut Assembler,
) -> Result<BTreeMap<usize, Usage>, ImportError> {
    let mut billed = BTreeMap::new();
    if !database.has(&["usage_ledger"]) {
        return Ok(billed);
    }
    let [read, written, compaction] = ["cache_read_tokens", "cache_write_tokens", "is_compaction"]
        .map(|column| database.column("usage_ledger", column));
    let query = format!(
        "SELECT created_timestamp, input_tokens, output_tokens, {}, {}, {} FROM usage_ledger \
         WHERE session_id = ?1 ORDER BY created_timestamp, rowid",
        read?, written?, compaction?
    );
    let said = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.role.as_deref() == Some("assistant"));
    let mut said = said.map(|(at, row)| (at, row.created)).peekable();
    database.rows(&query, &[session], |row| {
        let count = |column| number(row, column).unwrap_or_default();
        if count(5) > 0 {
            return assembler.skip("call that wrote a summary");
        }
        let done = number(row, 0);
        let mut its = None;
        while let Some((at, _)) = said.next_if(|(_, began)| *began <= done) {
            its = Some(at);
        }
        let Some(at) = its else {
            return assembler.skip("usage of a call that is not recorded");
        };
        let (input, read, written) = (count(1), count(3), count(4));
        let cached = read.saturating_add(written);
        let usage = Usage {
            input_uncached: Tokens(input.checked_sub(cached).unwrap_or(input)),
            cache_write_5m: Tokens(written),
            cache_write_1h: Tokens::ZERO,
            cache_read: Tokens(read),
            output: Tokens(count(2)),
        };
        billed.insert(at, usage);
    })?;
    Ok(billed)
}
