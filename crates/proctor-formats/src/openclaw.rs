//! OpenClaw keeps the transcripts of an agent in a database (`~/.openclaw/agents/*/agent/openclaw-agent.sqlite`): each
//! row is an entry as pi writes it, as JSON or compressed (Zstandard). Before, it wrote pi's files.
//!
//! Source: databases that OpenClaw 2026.9.6 wrote, and their schema.

use std::io::ErrorKind;

use serde::de::IgnoredAny;

use super::compressed::unpacked;
use super::prelude::*;
use super::sqlite::reading::{Database, Listed};
use super::{MAX_FILE, pi};

/// All sessions, oldest first.
pub(super) fn list(database: &Database) -> Result<Vec<Listed>> {
    database.listed(
        "SELECT session_id, NULL, NULL, NULL FROM transcript_events \
         GROUP BY session_id ORDER BY MIN(created_at), session_id",
    )
}

/// One session, as if pi had written it to a file.
pub(super) fn read(database: &Database, one: &Listed) -> Result<Option<Session>> {
    let [packed] = database.columns("transcript_events", ["event_zstd"])?;
    let query = format!(
        "SELECT event_json, HEX({packed}) FROM transcript_events WHERE session_id = ?1 ORDER BY seq"
    );
    let (mut lines, mut assembler) = (Vec::new(), database.assembler(one));
    for [event, packed] in database.rows(&query, &[&*one.id])? {
        let event = match (event, packed) {
            (Some(event), _) => event.as_bytes().to_vec(),
            (None, Some(packed)) => {
                let event = unpacked(&bytes_of(&packed), database.left());
                database.charge(match &event {
                    Ok(event) => event.len() as u64,
                    Err(error) if error.kind() == ErrorKind::FileTooLarge => u64::MAX,
                    Err(_) => 0,
                })?;
                event.unwrap_or_default()
            }
            (None, None) => Vec::new(),
        };
        // One row that cannot be read costs itself.
        if serde_json::from_slice::<IgnoredAny>(&event).is_err() {
            assembler.unknown("row that is not JSON");
            continue;
        }
        lines.extend(
            event.into_iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }),
        );
        lines.push(b'\n');
    }
    let mut text = SourceFile::read(database.path(), &mut &lines[..], MAX_FILE)?.text();
    text.id = session_id(&one.id, Sha256::new().chain_update(&lines));
    let mut sessions = match pi::import(&text, &mut assembler.source) {
        Err(ImportError::NoConversation(_)) => return Ok(None),
        read => read?,
    };
    if let Some(session) = sessions.first_mut() {
        add_counts(&mut session.parts_mut().source, assembler.source);
    }
    Ok(sessions.pop())
}

/// The bytes that hexadecimal digits stand for.
fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.filter_map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}
