//! Notes are kept as the session runs, and when room is needed they are the summary.
//!
//! The notes are written beside the agent's work, each time a number of tokens came in; compaction
//! then asks no model. What the notes do not cover is kept, and as much before it as the minimums
//! ask for. Rules and constants are those of Claude Code's session memory; the two that say when
//! notes are written are not published, and are ours.

use super::prelude::*;
use crate::model::{Purpose, Task};
use crate::strategy::stage::json_of;
use crate::strategy::stage::summarize::place::boundary;
use crate::strategy::template::{SummarySpan, Template};
use crate::strategy::{Trigger, model_text};

static NOTES: Template = Template::new("notes", include_str!("../template/notes.md"));

pub(super) fn build(knobs: &Knobs<'_>) -> StageResult {
    Ok(Box::new(SessionMemory {
        own: OwnPrompt::read(knobs, &[(own_prompt::FOCUS, "and notes have no focus")])?,
        when: knobs.when.clone(),
        ..knobs.read()?
    }))
}

#[derive(Debug, Deserialize)]
struct SessionMemory {
    min_tokens: Tokens,
    min_text_messages: usize,
    max_tokens: Tokens,
    init_tokens: Tokens,
    update_every_tokens: Tokens,
    reserve_tokens: Tokens,
    max_output_tokens: Tokens,
    prefix: String,
    /// Whether a message marks where the notes begin, which says what made the stage fire.
    boundary: bool,
    #[serde(skip)]
    own: Option<OwnPrompt>,
    #[serde(skip)]
    when: Trigger,
    #[serde(skip)]
    notes: Option<SessionNotes>,
    /// Tokens of messages that came in since the notes were written.
    #[serde(skip)]
    appended: Tokens,
    /// The message that is to represent the messages of the notes: once it is in the context, the
    /// notes have been used.
    #[serde(skip)]
    planned: Option<Arc<Message>>,
}

#[derive(Debug)]
struct SessionNotes {
    text: Arc<str>,
    /// The last of the session's messages that they cover. `None` if that is unknown, as in a session
    /// that was resumed: the notes then count as covering all messages.
    covers: Option<usize>,
}

impl Stage for SessionMemory {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        self.take_over(cx);
        self.take_note_of_use(context);
        let Some(notes) = &self.notes else {
            return Step::Done(Ok(Patch::default()));
        };
        let entries = context.entries();
        let start = self.kept_from(entries, notes.covers);
        let (replaced, kept) = entries.split_at(start);
        if replaced.is_empty() || replaced.iter().all(is_boundary) {
            return Step::Done(Ok(Patch::default()));
        }
        let text = format!("{}{}", self.prefix, notes.text);
        let origin = Origin::derived_from(replaced);
        let entry = Entry::written(origin, text, Tag::CompactSummary, &cx.counts);
        let message = entry.message.clone();
        let size_of_kept: Size = kept.iter().map(Entry::size).sum();
        let marker = self.boundary.then(|| boundary(&self.when, context, replaced, cx));
        let with: Vec<Entry> = marker.into_iter().chain([entry]).collect();
        let size_of_notes: Size = with.iter().map(Entry::size).sum();
        let after = cx.scale.prompt(cx.fixed + size_of_notes + size_of_kept);
        // Not worth it, or not enough: whatever comes next compacts instead.
        if after >= cx.window.effective() - self.reserve_tokens || after >= cx.prompt(context) {
            return Step::Done(Ok(Patch::default()));
        }
        self.planned = Some(message);
        Step::Done(Ok(Patch::replacing(
            format!("notes in place of {start} messages"),
            0..start,
            with,
        )))
    }

    /// What the earlier session had is not what came since.
    fn on_load(&mut self, _: &[Entry]) {}

    fn take_note_of(&mut self, entry: &Entry) {
        self.appended += entry.size().tokens;
    }

    fn after_call<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        self.take_over(cx);
        self.take_note_of_use(context);
        let due = match self.notes {
            None => context.size().tokens >= self.init_tokens,
            Some(_) => self.appended >= self.update_every_tokens,
        };
        let entries = context.entries();
        if !due {
            return Step::Done(Ok(Patch::default()));
        }
        // The newest entry that represents a message is usually the response.
        let Some(newest) = entries.iter().rev().find_map(newest_message) else {
            return Step::Done(Ok(Patch::default()));
        };
        let request = self.request(entries, cx);
        Step::ask(request, move |answer| {
            Step::Done(model_text::text_of(answer).map(|text| {
                let covers = Some(newest);
                self.notes = Some(SessionNotes { text, covers });
                self.appended = Tokens::ZERO;
                Patch::default()
            }))
        })
    }
}

impl SessionMemory {
    /// Notes of the session that this one goes on from: what they cover is not known.
    fn take_over(&mut self, cx: &Situation) {
        if self.notes.is_none() {
            self.notes = cx.notes.clone().map(|text| SessionNotes { text, covers: None });
        }
    }

    /// Once notes have stood in for messages, it is not known any more what they cover: Claude
    /// Code forgets the boundary at each compaction, until the notes are written again.
    fn take_note_of_use(&mut self, context: &Context) {
        // Behind a boundary, if it has one.
        let used = self.planned.take_if(|planned| {
            context.entries().iter().take(2).any(|entry| Arc::ptr_eq(&entry.message, planned))
        });
        if used.is_some()
            && let Some(notes) = &mut self.notes
        {
            notes.covers = None;
        }
    }

    /// Where what is kept begins.
    fn kept_from(&self, entries: &[Entry], covers: Option<usize>) -> usize {
        // Nothing is kept of the messages of an earlier summary, nor the summary itself.
        let floor = behind_boundary(entries);
        let mut start =
            covers.map_or(entries.len(), |last| not_covered_from(entries, last)).max(floor);
        let (mut tokens, mut texts) = (Tokens::ZERO, 0);
        for entry in &entries[start..] {
            tokens += entry.size().tokens;
            texts += usize::from(has_text(entry));
        }
        while start > floor
            && tokens < self.max_tokens
            && (tokens < self.min_tokens || texts < self.min_text_messages)
        {
            start -= 1;
            tokens += entries[start].size().tokens;
            texts += usize::from(has_text(&entries[start]));
        }
        closed(entries, start)
    }

    /// The notes so far, and what they do not cover.
    fn request(&self, entries: &[Entry], cx: &Situation) -> Request {
        let mut text = NOTES.body(SummarySpan::Full);
        let (mut start, mut previous) = (0, "");
        if let Some(SessionNotes { text: notes, covers }) = &self.notes {
            previous = notes;
            text.push_str("\n\n<notes>\n");
            text.push_str(notes);
            text.push_str("\n</notes>");
            start = match covers {
                Some(last) => not_covered_from(entries, *last),
                None => behind_boundary(entries),
            };
        }
        let json = json_of(&entries[start..]);
        let (text, sections) = match &self.own {
            None => (format!("{text}\n\n{json}"), NOTES.sections(SummarySpan::Full)),
            Some(own) => own.request(&PromptValues {
                previous,
                ..PromptValues::new(&json, self.max_output_tokens, cx)
            }),
        };
        let task = Task::Summarise { sections };
        Request::of_text(Purpose::Background, task, text, self.max_output_tokens)
    }
}

/// The newest of the session's messages that the entry represents.
fn newest_message(entry: &Entry) -> Option<usize> {
    // A restored entry is where it was restored, not where it was said.
    entry.origin.newest().filter(|_| !matches!(entry.origin, Origin::Restored(_)))
}

/// The first entry after all those that represent messages up to `last`.
fn not_covered_from(entries: &[Entry], last: usize) -> usize {
    let covered = entries
        .iter()
        .rposition(|entry| newest_message(entry).is_some_and(|newest| newest <= last));
    covered.map_or(0, |at| at + 1)
}

fn behind_boundary(entries: &[Entry]) -> usize {
    entries.iter().rposition(is_boundary).map_or(0, |at| at + 1)
}

fn is_boundary(entry: &Entry) -> bool {
    let message = &entry.message;
    message.has_tag(Tag::CompactSummary) || message.has_tag(Tag::CompactBoundary)
}

fn has_text(entry: &Entry) -> bool {
    let mut texts = entry.message.texts();
    texts.any(|(_, text)| !text.trim().is_empty())
}

/// The nearest place at `start` or before it that separates no result from its call and no two
/// parts of one response, not even where results came between them.
fn closed(entries: &[Entry], start: usize) -> usize {
    let mut start = Cut::Batch.snap_back(entries, start);
    loop {
        let (front, kept) = entries.split_at(start);
        let calls: Vec<_> =
            kept.iter().filter_map(|entry| entry.message.details.api_call.as_ref()).collect();
        match front.iter().position(|entry: &Entry| {
            let call = entry.message.details.api_call.as_ref();
            call.is_some_and(|call| calls.contains(&call))
        }) {
            Some(part) => start = Cut::Batch.snap_back(entries, part),
            None => return start,
        }
    }
}

#[cfg(test)]
mod tests;
