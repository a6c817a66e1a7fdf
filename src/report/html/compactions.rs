//! Before and after of each compaction: what it took out, and what stands there now.

use std::collections::BTreeMap;

use super::template::Packed;
use crate::record::{CompactionChange, Excerpt, MessageKind, Portion};
use crate::report::{CellCompaction, RenderError, Report, figure};

/// Compactions that are part of the page.
pub(super) const MOST: usize = 5_000;

type Portions = BTreeMap<MessageKind, Portion>;

pub(super) fn data(report: &Report) -> Result<String, RenderError> {
    Packed::data(report.compactions.iter().take(MOST).map(columns))
}

fn columns(compaction: &CellCompaction) -> Vec<String> {
    let event = &compaction.event;
    let change = compaction.change.as_ref();
    let sizes = |of: fn(&CompactionChange) -> &Portions| {
        change.map_or_else(|| "not recorded".to_owned(), |change| portions(of(change)))
    };
    let text = |of: fn(&CompactionChange) -> &Option<Excerpt>| {
        let excerpt = change.and_then(|change| of(change).as_ref());
        excerpt.map_or_else(|| "–".to_owned(), self::excerpt)
    };
    let (session, strategy) = (&compaction.session, &compaction.strategy);
    let reason = match event.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let over = if event.still_over {
        ", still over its trigger"
    } else {
        ""
    };
    let what = format!(
        "{}{reason}\n{} → {} tokens{over}\nout: {}\nin: {}",
        event.stage,
        figure::tokens(event.before.0),
        figure::tokens(event.after.0),
        sizes(|change| &change.out),
        sizes(|change| &change.put_in),
    );
    vec![
        format!("{strategy}\n{session}\ncall {}", event.call),
        what,
        text(|change| &change.before),
        text(|change| &change.after),
        strategy.clone(),
        session.clone(),
        event.stage.clone(),
    ]
}

/// `3 tool results (4.2k), 1 user (120)`.
fn portions(of: &Portions) -> String {
    let words = |(kind, portion): (&MessageKind, &Portion)| {
        let tokens = figure::tokens(portion.tokens.0);
        format!("{} {} ({tokens})", portion.messages, kind.name())
    };
    let all: Vec<String> = of.iter().map(words).collect();
    if all.is_empty() {
        "nothing".to_owned()
    } else {
        all.join(", ")
    }
}

/// What it is, and how it begins.
fn excerpt(excerpt: &Excerpt) -> String {
    let of = excerpt
        .message
        .map(|message| format!(", message {message}"));
    let shown = excerpt.text.chars().count() as u64;
    let (chars, cut) = if shown < excerpt.chars {
        (format!(", {} characters", excerpt.chars), " …")
    } else {
        (String::new(), "")
    };
    let (kind, of) = (excerpt.kind.name(), of.unwrap_or_default());
    format!("[{kind}{of}{chars}]\n{}{cut}", excerpt.text)
}
