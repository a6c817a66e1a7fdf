//! The events that the agent's model saw, and those that a condensation left.
//!
//! A condensation names the events that are forgotten, and the place of its summary among the
//! others. Messages are made of events, so a message may be forgotten in part. Of a call and its
//! result it may name one alone: the product then leaves out the other too when it builds a prompt
//! (`ConversationMemory._filter_unmatched_tool_calls`, `View.filter_unmatched_tool_calls`).

use super::super::kept_context::{Records, Shown};
use crate::prelude::*;

/// The events that the model was shown, in order.
#[derive(Debug, Default)]
pub(super) struct View {
    /// An event without blocks is in no message, and counts for the place of a summary.
    events: Vec<Shown>,
    places: BTreeMap<Arc<str>, usize>,
    records: Records,
    forgotten: BTreeSet<usize>,
    summary: Option<Summary>,
}

/// A summary, and the number of remaining events before it.
#[derive(Debug, Clone)]
pub(super) struct Summary {
    pub(super) text: Arc<str>,
    pub(super) offset: usize,
}

impl View {
    /// Adds an event.
    pub(super) fn show(&mut self, id: &Arc<str>, role: Role, said: &[ContentBlock], tags: &[Tag]) {
        self.places.entry(id.clone()).or_insert(self.events.len());
        if !said.is_empty() {
            self.records.note(Some(id), said);
        }
        let (name, said) = (Some(id.clone()), said.to_vec());
        self.events.push(Shown::of(name, role, said, tags.to_vec()));
    }

    /// The names of the events so far.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.events.iter().filter_map(|event| event.name.as_ref())
    }

    /// Forgets events, and returns the context that remains. Events that were forgotten before stay
    /// so; of several summaries the last one counts.
    pub(super) fn condense(
        &mut self,
        forgotten: &[Arc<str>],
        summary: Option<Summary>,
        assembler: &mut Assembler,
    ) -> CompactedTo {
        for name in forgotten {
            match self.places.get(name) {
                Some(place) => {
                    self.forgotten.insert(*place);
                }
                // The summary of an earlier condensation, which the next one replaces.
                None if name.ends_with("-summary") => {}
                None => assembler.skip("forgotten event that is not shown"),
            }
        }
        self.summary = summary.or(self.summary.take());
        let end = assembler.flush();
        let unpaired = self.unpaired();
        let remaining = (0..self.events.len()).filter(|at| !self.forgotten.contains(at));
        let placed = remaining.enumerate().filter_map(|(rank, at)| {
            let mut calls = self.events[at].blocks.iter().filter_map(ContentBlock::call_id);
            if calls.any(|id| unpaired.contains(id)) {
                return None;
            }
            Some((assembler.message_of(self.events[at].name.as_ref()?)?, rank, at))
        });
        // The calls of one response may have results between them: messages are in order.
        let mut placed: Vec<(usize, usize, usize)> = placed.collect();
        placed.sort_unstable();
        let split = placed.iter().position(|(_, rank, _)| {
            self.summary.as_ref().is_some_and(|summary| *rank >= summary.offset)
        });
        let (before, behind) = placed.split_at(split.unwrap_or(placed.len()));
        let [before, behind] = [before, behind].map(|part| {
            let events = part.iter().map(|(_, _, at)| self.events[*at].clone());
            let shown: Vec<Shown> = events.filter(|event| !event.blocks.is_empty()).collect();
            self.records.pieces(&shown, end, assembler)
        });
        let summary = self.summary.as_ref().map(|summary| Recorded::summary(summary.text.clone()));
        CompactedTo::Replaced(before.into_iter().chain(summary).chain(behind).collect())
    }

    /// The calls that were forgotten, and those whose results were.
    fn unpaired(&self) -> BTreeSet<&Arc<str>> {
        let forgotten = self.forgotten.iter().map(|at| &self.events[*at]);
        forgotten.flat_map(|event| &event.blocks).filter_map(ContentBlock::call_id).collect()
    }
}
