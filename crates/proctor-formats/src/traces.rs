//! Calls of a model in a trace: each span, generation or run holds the context of its call.
//!
//! The calls of one conversation are put in the order in which they began, and are joined like the
//! requests of a log. Calls that name no conversation are joined by what they say.

use super::prelude::*;
pub(super) use super::requests::ToldCompaction;
use super::requests::{Join, Logged, Name};
pub(super) use chat::is_part;
pub(super) use exchange::{Exchange, parsed};

mod chat;
mod exchange;

/// One call of a model.
pub(super) struct TraceCall<T> {
    /// The conversation that it names.
    pub(super) conversation: Text,
    /// When it began, in nanoseconds since 1970.
    pub(super) start: Option<i128>,
    /// The rest of the record, not yet read.
    pub(super) record: T,
}

impl<T> TraceCall<T> {
    /// A call that began at that time.
    pub(super) fn of(conversation: Text, start: When, record: T) -> Self {
        Self { conversation, start: start.map(|time| i128::from(time.0) * 1_000_000), record }
    }
}

/// Joins the calls of a file to sessions; `read` reads the record of one. A record that says nothing but that there was a
/// compaction says so of the next call.
pub(super) fn sessions<T>(
    mut calls: Vec<TraceCall<T>>,
    file: &SourceText,
    source: &mut Source,
    read: impl Fn(T, &mut Source) -> Exchange,
) -> Imported {
    if calls.iter().all(|call| call.start.is_some()) {
        calls.sort_by_key(|call| call.start);
    }
    let mut joins: Vec<Join> = Vec::new();
    let mut known: BTreeMap<Text, usize> = BTreeMap::new();
    // The compactions of conversations that were not gone on with yet.
    let mut told: BTreeMap<Text, ToldCompaction> = BTreeMap::new();
    for call in calls {
        let mut assembler = Assembler::default();
        let mut exchange = read(call.record, &mut assembler.source);
        let compaction = exchange.compaction.take();
        let start = call.start.and_then(|start| i64::try_from(start / 1_000_000).ok());
        exchange.read(&mut assembler);
        if assembler.is_empty() {
            if let Some(compaction) = compaction {
                told.insert(call.conversation, compaction);
                continue;
            }
            source.skip("call without messages");
            add_counts(source, assembler.source);
            continue;
        }
        let compaction = told.remove(&call.conversation).or(compaction);
        let at = place_of(call.conversation.clone(), &mut known, &mut joins);
        if let Some(mut session) = assembler.finish(file.id.clone(), &file.path)? {
            let messages = std::mem::take(&mut session.parts_mut().messages);
            let mut messages: Vec<_> = messages.into_iter().flat_map(with_summary).collect();
            // A request is sent when the last message in front of its answer has come.
            let last = messages.iter_mut().rfind(|message| message.role() == Role::User);
            if let Some(last) = last.filter(|last| last.details.timestamp.is_none()) {
                Arc::make_mut(last).details.timestamp = start.map(Timestamp);
            }
            session.parts_mut().messages = messages;
            let name = call.conversation.map(Name::of_trace);
            joins[at].add(Logged { compaction, ..Logged::answered(session, name) });
        }
    }
    for _ in told {
        source.warn("a compaction is recorded that no later call follows");
    }
    let mut sessions = Vec::new();
    for join in joins {
        sessions.extend(join.finish(&file.path)?);
    }
    Ok(sessions)
}

/// A message of the user's, and in front of it the summary that it holds as a `compaction`.
fn with_summary(message: Arc<Message>) -> Vec<Arc<Message>> {
    let summaries: Blocks = message.content().iter().filter_map(summary_in).collect();
    if summaries.is_empty() || message.role() == Role::Assistant {
        return vec![message];
    }
    let rest = message.content().iter().filter(|block| summary_in(block).is_none());
    let mut rest = Message::new(Role::User, rest.cloned().collect());
    rest.details.timestamp = message.details.timestamp;
    let summary = Message::new(Role::User, summaries).with_tags([Tag::CompactSummary]);
    let messages = [summary, rest.with_tags(message.tags.iter())].into_iter();
    messages.filter(|message| !message.content().is_empty()).map(Arc::new).collect()
}

/// The summary in a part `compaction`.
fn summary_in(block: &ContentBlock) -> Option<ContentBlock> {
    match block {
        ContentBlock::Opaque(part) if &*part.kind == "compaction" => {
            part.json.value()["content"].as_str().map(Arc::from).map(ContentBlock::Text)
        }
        _ => None,
    }
}
