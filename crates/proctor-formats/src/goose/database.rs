//! goose's database: sessions, their messages, and what each call was billed.

use crate::prelude::*;
use serde::Serialize;

use super::super::sqlite::reading::{Database, Listed};
use super::GooseReading;

/// A message with the keys that it has in a log.
#[derive(Serialize)]
struct GooseRow {
    id: Text,
    role: Text,
    created: Option<u64>,
    content: Option<Box<RawValue>>,
    metadata: Option<Box<RawValue>>,
}

/// All sessions in the order in which they were begun.
pub(crate) fn list(database: &Database) -> Result<Vec<Listed>> {
    let [kind, config] = database.columns("sessions", ["session_type", "model_config_json"])?;
    let mut sessions = database.listed(&format!(
        "SELECT id, NULL, {kind} = 'sub_agent', {config} FROM sessions ORDER BY created_at, id"
    ))?;
    for one in &mut sessions {
        let config: Value =
            serde_json::from_str(&one.model.take().unwrap_or_default()).unwrap_or_default();
        one.model = config["model_name"].as_str().map(Arc::from);
    }
    Ok(sessions)
}

/// One session, message by message.
pub(crate) fn read(database: &Database, one: &Listed) -> Result<Option<Session>> {
    let mut reading =
        GooseReading { assembler: database.assembler(one), ..GooseReading::default() };
    let [id, metadata] = database.columns("messages", ["message_id", "metadata_json"])?;
    let query = format!(
        "SELECT {id}, role, created_timestamp, content_json, {metadata} FROM messages \
         WHERE session_id = ?1 ORDER BY id"
    );
    let mut hasher = Sha256::new();
    let mut rows: Vec<GooseRow> = Vec::new();
    for [id, role, created, content, metadata] in database.rows(&query, &[&*one.id])? {
        hasher.update(content.as_deref().unwrap_or_default());
        let [content, metadata] = [content, metadata].map(|text| serde_json::from_str(&text?).ok());
        rows.push(GooseRow { id, role, created: number(created), content, metadata });
    }
    let billed = bills(database, &one.id, &rows, &mut reading.assembler)?;
    for (at, row) in rows.iter().enumerate() {
        match serde_json::value::to_raw_value(row) {
            Ok(raw) if row.content.is_some() => reading.message(&raw, billed.get(&at).copied()),
            _ => reading.assembler.unknown("row that is not JSON"),
        }
    }
    reading.compacted();
    reading.assembler.finish(session_id(&one.id, hasher), database.path())
}

/// The bills of calls, by the place of their message.
///
/// A call is entered when it is done: its message is the last that was begun before, of those that
/// no earlier entry has. The input includes the cached tokens.
fn bills(
    database: &Database,
    session: &str,
    rows: &[GooseRow],
    assembler: &mut Assembler,
) -> Result<BTreeMap<usize, Usage>> {
    let mut bills = BTreeMap::new();
    if !database.has(&["usage_ledger"]) {
        return Ok(bills);
    }
    let columns = ["cache_read_tokens", "cache_write_tokens", "is_compaction"];
    let [read, written, compaction] = database.columns("usage_ledger", columns)?;
    let query = format!(
        "SELECT created_timestamp, input_tokens, output_tokens, {read}, {written}, {compaction} \
         FROM usage_ledger WHERE session_id = ?1 ORDER BY created_timestamp, rowid"
    );
    let places = rows.iter().enumerate();
    let mut answers = places.filter(|(_, row)| row.role.as_deref() == Some("assistant")).peekable();
    for row in database.rows(&query, &[session])? {
        let [done, input, output, read, written, compaction] = row.map(number);
        if compaction > Some(0) {
            assembler.skip("call that wrote a summary");
            continue;
        }
        let begun = std::iter::from_fn(|| answers.next_if(|(_, row)| row.created <= done));
        let Some((at, _)) = begun.last() else {
            assembler.skip("usage of a call that is not recorded");
            continue;
        };
        let counters =
            json!({ "input": input, "output": output, "cacheRead": read, "cacheWrite": written });
        bills.insert(at, usage_in(&counters, CachedTokens::Within, &mut assembler.source));
    }
    Ok(bills)
}

/// The number in a column; none if it is negative or no number.
fn number(text: Text) -> Option<u64> {
    text?.parse().ok()
}
