//! Before and after of each compaction: the removed messages, and the text in their place.

use std::collections::BTreeMap;

use crate::record::{CellRecord, CompactionChange, CompactionEvent, Excerpt, MessageKind, Portion};
use crate::report::template::InternedRows;
use crate::report::{RenderError, Report, display};

/// Compactions that are part of the page.
pub(super) const MOST: usize = 5_000;

/// One compaction: its cell, its event, and its change.
pub(super) type CompactionItem<'a> = (&'a CellRecord, &'a CompactionEvent, &'a CompactionChange);

/// All compactions of the first repeat of each cell, session by session in this order.
pub(super) fn all<'a>(report: &'a Report, sessions: &[&str]) -> Vec<CompactionItem<'a>> {
    let all = report.first_cells().flat_map(|cell| {
        cell.compactions.iter().zip(&cell.changes).map(move |(event, change)| (cell, event, change))
    });
    let mut all: Vec<CompactionItem<'_>> = all.collect();
    let each = sessions.iter().enumerate();
    let places: BTreeMap<&str, usize> = each.map(|(at, session)| (*session, at)).collect();
    all.sort_by_key(|(cell, ..)| places.get(&*cell.session));
    all
}

pub(super) fn data(all: &[CompactionItem<'_>]) -> Result<String, RenderError> {
    InternedRows::data(all.iter().take(MOST).map(columns))
}

fn columns((cell, event, change): &CompactionItem<'_>) -> Vec<String> {
    let (session, strategy) = (&cell.session, &cell.strategy);
    let reason = match event.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let over = if event.still_over { ", still over its trigger" } else { "" };
    let [before, after] = [event.before, event.after].map(|tokens| display::tokens(tokens.0));
    let (stage, [out, put_in]) = (&event.stage, [&change.out, &change.put_in].map(portions));
    let what =
        format!("{stage}{reason}\n{before} → {after} tokens{over}\nout: {out}\nin: {put_in}");
    vec![
        format!("{strategy}\n{session}\ncall {}", event.call),
        what,
        excerpt(change.before.as_ref()),
        excerpt(change.after.as_ref()),
        strategy.clone(),
        session.clone(),
        event.stage.clone(),
        event.call.to_string(),
    ]
}

/// `3 tool results (4.2k), 1 user (120)`.
fn portions(portions: &BTreeMap<MessageKind, Portion>) -> String {
    let words = portions.iter().map(|(kind, portion)| {
        let tokens = display::tokens(portion.tokens.0);
        format!("{} {} ({tokens})", portion.messages, kind.name())
    });
    display::listed(words, ", ").unwrap_or_else(|| "nothing".to_owned())
}

/// The kind of message, and how it begins.
fn excerpt(excerpt: Option<&Excerpt>) -> String {
    let Some(excerpt) = excerpt else {
        return "–".to_owned();
    };
    let of = excerpt.message.map(|message| format!(", message {message}"));
    let shown = excerpt.text.chars().count() as u64;
    let (chars, cut) = if shown < excerpt.chars {
        (format!(", {} characters", excerpt.chars), " …")
    } else {
        (String::new(), "")
    };
    let (kind, of) = (excerpt.kind.name(), of.unwrap_or_default());
    format!("[{kind}{of}{chars}]\n{}{cut}", excerpt.text)
}
