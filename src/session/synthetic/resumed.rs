//! The family `resumed`: three quarters of the history are there when the session begins, as many
//! as do not fit.

use std::sync::Arc;

use super::code_review::profile::{Away, DENSITY, Profile};
use super::code_review::words::PHRASES;
use super::plot::Plot;
use super::{Family, Generated, Recipe};
use crate::session::{ContentBlock, Resumed, Session, SessionError, Tag};
use crate::tokens::CountedTexts;

/// What was done before, and after.
static WORK: Profile = Profile {
    name: "resumed",
    description: "three quarters of the history are loaded at once, with the notes of an earlier session: the first prompt may not fit",
    tokens_per_round: 1_600,
    weights: [42, 9, 9, 9, 12, 8, 6, 2, 4],
    task: (3, 7),
    interrupts: true,
    said_by: 1_000,
    large_percent: 0,
    at_once_percent: 0,
    away: Away::Never,
    plot: Plot {
        seed: "resumed-schedule",
        rounds_per_chapter: 48,
        most_chapters: 8,
        density: DENSITY,
        phrases: PHRASES,
    },
};

/// So many of a hundred messages are loaded, up to the request at which the work goes on.
const LOADED_PERCENT: usize = 75;

/// How many characters of each request stand in the notes.
const NOTE_CHARS: usize = 240;

/// Work that goes on from an earlier session.
#[derive(Debug)]
pub(super) struct Resumption;

impl Family for Resumption {
    fn name(&self) -> &'static str {
        WORK.name
    }

    fn description(&self) -> &'static str {
        WORK.description
    }

    fn generate(&self, recipe: &Recipe, counts: &CountedTexts) -> Result<Generated, SessionError> {
        let made = WORK.generate(recipe, counts)?;
        let session = match resumption(&made.session) {
            Some(resumed) => made.session.resume(resumed)?,
            None => made.session,
        };
        Ok(Generated { session, ..made })
    }
}

/// The work goes on with the first request after most of the messages. A session of one request
/// is not resumed.
fn resumption(session: &Session) -> Option<Resumed> {
    let messages = session.messages();
    let most = (messages.len() * LOADED_PERCENT).div_ceil(100);
    let typed = |at: &usize| messages[*at].has_tag(Tag::TypedUser);
    let at = (most..messages.len())
        .find(typed)
        .or_else(|| (1..most).rev().find(typed))?;
    let mut notes = String::from("# What was asked\n");
    for message in messages[..at].iter().filter(|m| m.has_tag(Tag::TypedUser)) {
        let text = message.content().iter().find_map(|block| match block {
            ContentBlock::Text(text) => Some(text.trim()),
            _ => None,
        });
        let words: Vec<&str> = text.unwrap_or("").split_whitespace().collect();
        let line: String = words.join(" ").chars().take(NOTE_CHARS).collect();
        notes.push_str("- ");
        notes.push_str(&line);
        notes.push('\n');
    }
    Some(Resumed {
        at,
        notes: Some(Arc::from(notes)),
    })
}
