//! Resumed sessions: three quarters of the history are there when the session begins, as many as do
//! not fit.

use std::sync::Arc;

use proctor_sessions::{ContentBlock, ResumePoint, Session, Tag};

/// The percentage of messages that are loaded, up to the request at which the work goes on.
const LOADED_PERCENT: usize = 75;

/// The most characters of each request in the notes.
const NOTE_CHARS: usize = 240;

/// The work goes on with the first request after most of the messages. A session of one request
/// is not resumed.
pub(super) fn resumption(session: &Session) -> Option<ResumePoint> {
    let messages = session.messages();
    let most = (messages.len() * LOADED_PERCENT).div_ceil(100);
    let typed = |at: &usize| messages[*at].has_tag(Tag::TypedUser);
    let at = (most..messages.len()).find(typed).or_else(|| (1..most).rev().find(typed))?;
    let mut notes = String::from("# What was asked\n");
    for message in messages[..at].iter().filter(|m| m.has_tag(Tag::TypedUser)) {
        let text = message.content().iter().find_map(ContentBlock::as_text);
        let words: Vec<&str> = text.map_or("", |text| text).split_whitespace().collect();
        let line: String = words.join(" ").chars().take(NOTE_CHARS).collect();
        notes.push_str("- ");
        notes.push_str(&line);
        notes.push('\n');
    }
    Some(ResumePoint { at, notes: Some(Arc::from(notes)) })
}
