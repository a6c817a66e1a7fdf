//! Crush keeps the sessions of a project in a database (`.crush/crush.db`): messages, whose parts
//! are JSON.
//!
//! Rules of this format, beside those every importer shares:
//! - The results of a call are a message of the role `tool`.
//! - A summary is a message of the model's that is marked, or that its session names: the model reads
//!   it as the user's, and nothing before it.
//! - What a call cost is not recorded: a session has only totals.
//! - A session with a parent is a sub-agent's.
//! - Times are whole seconds: rows of one second are in the order in which they were written.
//!
//! Source: charmbracelet/crush, `internal/db/migrations/` at b86336ac32 and
//! `internal/message/content.go` at 0373c96add.

use super::prelude::*;
use super::sqlite::reading::{Database, Listed};

/// All sessions, oldest first.
pub(super) fn list(database: &Database) -> Result<Vec<Listed>> {
    let [parent] = database.columns("sessions", ["parent_session_id"])?;
    database.listed(&format!(
        "SELECT id, NULLIF(CAST({parent} AS TEXT), ''), {parent} <> '', NULL FROM sessions \
         ORDER BY created_at, rowid"
    ))
}

/// One session, message by message.
pub(super) fn read(database: &Database, one: &Listed) -> Result<Option<Session>> {
    let mut assembler = database.assembler(one);
    let [named] = database.columns("sessions", ["summary_message_id"])?;
    let query = format!("SELECT {named} FROM sessions WHERE id = ?1");
    let named = database.rows::<1>(&query, &[&*one.id])?.into_iter().flatten().flatten().next();
    let [marked] = database.columns("messages", ["is_summary_message"])?;
    let query = format!(
        "SELECT id, role, parts, model, created_at, {marked} FROM messages \
         WHERE session_id = ?1 ORDER BY created_at, rowid"
    );
    let mut hasher = Sha256::new();
    for [id, role, parts, model, created, marked] in database.rows(&query, &[&*one.id])? {
        let json = parts.unwrap_or_default();
        hasher.update(json.as_bytes());
        let Ok(parts) = serde_json::from_str::<Vec<&RawValue>>(&json) else {
            assembler.unknown("row that is not JSON");
            continue;
        };
        let time = created.and_then(|text| time(&RawValue::from_string(text.to_string()).ok()?));
        let of_model = role.as_deref() == Some("assistant");
        let summary = marked.as_deref() == Some("1") || id.is_some() && id == named;
        let mut is_hidden = false;
        let mut blocks = Vec::new();
        for raw in parts {
            blocks.extend(part(raw, of_model, &mut is_hidden, &mut assembler));
        }
        if summary {
            let text = joined_texts(&blocks);
            assembler.summarizes(None, None, (!text.is_empty()).then(|| text.into()), None);
        } else if of_model {
            let known = model.filter(|model| !model.is_empty());
            assembler.assistant(None, ModelRecord::of(blocks, time).by(id, known, None));
        } else {
            assembler.hear_user(blocks, time, is_hidden || role.as_deref() == Some("system"));
        }
    }
    assembler.finish(session_id(&one.id, hasher), database.path())
}

/// One part of a message: its type, and its data.
fn part(
    raw: &RawValue,
    is_model: bool,
    is_hidden: &mut bool,
    assembler: &mut Assembler,
) -> Option<ContentBlock> {
    let mut part = Object::read(raw).unwrap_or_default();
    let named = part.take_text("type");
    let kind = named.as_deref().unwrap_or("untyped");
    let mut data = part.inner("data");
    let read = match kind {
        "finish" => return None,
        "text" => {
            *is_hidden |= data.take_flag("hidden");
            match data.take_text("text") {
                Some(text) if text.is_empty() => return None,
                text => text.map(ContentBlock::Text),
            }
        }
        "reasoning" if is_model => {
            let signature =
                data.take_words("signature").or_else(|| data.take_words("thought_signature"));
            let text = data.take_text("thinking");
            text.map(|text| ContentBlock::thinking(text, signature))
        }
        "tool_call" if is_model => {
            let names = data.take_text("id").zip(data.take_text("name"));
            let input = data.take_text("input").unwrap_or_default();
            names
                .map(|(id, name)| ContentBlock::tool_use(id, name, arguments_in(&input, assembler)))
        }
        "tool_result" if !is_model => data.take_text("tool_call_id").map(|id| {
            let mut blocks = Vec::from_iter(data.take_text("content").map(ContentBlock::Text));
            blocks.extend(data.take_words("data").map(|_| content::kept("media", raw)));
            ContentBlock::tool_result(id, blocks, data.take_flag("is_error"))
        }),
        "image_url" => data.take("url").map(content::image),
        // A file that the user attached, and a command of the user's with its output.
        "binary" | "shell_command" => Some(content::kept(kind, raw)),
        _ => None,
    };
    Some(read.unwrap_or_else(|| assembler.unread(kind, raw)))
}
