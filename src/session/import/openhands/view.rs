//! What the agent's model saw of the events, and what a condensation left of it.
//!
//! A condensation names the events that are forgotten, and where among the others its summary
//! stands. Messages are made of events, so a message may be forgotten in part.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::session::import::assemble::{Assembler, AssistantRecord, UserRecord};
use crate::session::{CompactedTo, ContentBlock, Message, Recorded, Role, Tag};

/// The events that the model was shown, in order.
#[derive(Debug, Default)]
pub(super) struct View {
    events: Vec<Event>,
    places: BTreeMap<Arc<str>, usize>,
    forgotten: BTreeSet<usize>,
    summary: Option<Summary>,
}

/// One event, and what it adds to its message; nothing if it is in no message.
#[derive(Debug)]
struct Event {
    name: Arc<str>,
    role: Role,
    blocks: Vec<ContentBlock>,
    tags: Vec<Tag>,
}

/// A summary, and how many of the events that are left stand before it.
#[derive(Debug, Clone)]
pub(super) struct Summary {
    pub(super) text: Arc<str>,
    pub(super) offset: usize,
}

/// A piece of a message: a run of its events.
struct Piece {
    message: usize,
    events: Vec<usize>,
}

impl View {
    /// The model says something.
    pub(super) fn model(
        &mut self,
        name: &Arc<str>,
        part: AssistantRecord,
        assembler: &mut Assembler,
    ) {
        self.shows(name, Role::Assistant, part.blocks.clone(), &part.tags);
        assembler.assistant(Some(name), part);
    }

    /// The user or a tool says something.
    pub(super) fn user(&mut self, name: &Arc<str>, part: UserRecord, assembler: &mut Assembler) {
        self.shows(name, Role::User, part.blocks.clone(), &part.tags);
        assembler.user(Some(name), part);
    }

    /// An event that counts where a summary is placed, and is in no message.
    pub(super) fn silent(&mut self, name: &Arc<str>) {
        self.shows(name, Role::User, Vec::new(), &[]);
    }

    fn shows(&mut self, name: &Arc<str>, role: Role, blocks: Vec<ContentBlock>, tags: &[Tag]) {
        self.places.entry(name.clone()).or_insert(self.events.len());
        self.events.push(Event {
            name: name.clone(),
            role,
            blocks,
            tags: tags.to_vec(),
        });
    }

    /// The names of the events so far.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.events.iter().map(|event| &event.name)
    }

    /// Forgets events, and returns what is left. What was forgotten before stays so; of several
    /// summaries the last one stands.
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
        assembler.flush();
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for event in &self.events {
            if let (false, Some(at)) = (event.blocks.is_empty(), assembler.message_of(&event.name))
            {
                *sizes.entry(at).or_default() += 1;
            }
        }
        let mut pieces = Vec::new();
        for step in self.left(assembler) {
            match step {
                Some(piece) => self.add(&piece, sizes.get(&piece.message), &mut pieces),
                None => pieces.extend(self.summary.as_ref().map(|summary| {
                    let message = Message::text(Role::User, summary.text.clone());
                    Recorded::Written(Arc::new(message.with_tags([Tag::CompactSummary])))
                })),
            }
        }
        CompactedTo::Replaced(pieces)
    }

    /// The events that are left, by message, with the place of the summary as none.
    fn left(&self, assembler: &Assembler) -> Vec<Option<Piece>> {
        let left: Vec<usize> = (0..self.events.len())
            .filter(|at| !self.forgotten.contains(at))
            .collect();
        let offset = self.summary.as_ref().map(|summary| summary.offset);
        let message = |at: usize| assembler.message_of(&self.events[at].name);
        // Calls of one response may stand with results between them: messages are in order.
        let mut placed: Vec<(usize, usize, usize)> = left
            .iter()
            .enumerate()
            .filter_map(|(rank, at)| Some((message(*at)?, rank, *at)))
            .collect();
        placed.sort_unstable();
        let mut steps: Vec<Option<Piece>> = Vec::new();
        let mut is_due = offset.is_some();
        for (message, rank, at) in placed {
            if is_due && offset.is_some_and(|offset| rank >= offset) {
                is_due = false;
                steps.push(None);
            }
            match steps.last_mut() {
                Some(Some(piece)) if piece.message == message => piece.events.push(at),
                _ => steps.push(Some(Piece {
                    message,
                    events: vec![at],
                })),
            }
        }
        if is_due {
            steps.push(None);
        }
        steps
    }

    /// A message that is left whole stays; of others, what is left is written.
    fn add(&self, piece: &Piece, size: Option<&usize>, pieces: &mut Vec<Recorded>) {
        let parts = piece.events.iter().map(|at| &self.events[*at]);
        let parts: Vec<&Event> = parts.filter(|event| !event.blocks.is_empty()).collect();
        if Some(&parts.len()) == size {
            match pieces.last_mut() {
                Some(Recorded::Kept(range)) if range.end == piece.message => range.end += 1,
                _ => pieces.push(Recorded::Kept(piece.message..piece.message + 1)),
            }
        } else if let Some(first) = parts.first() {
            let blocks = parts.iter().flat_map(|event| event.blocks.clone());
            let tags = parts.iter().flat_map(|event| event.tags.clone());
            let message = Message::new(first.role, blocks.collect()).with_tags(tags);
            pieces.push(Recorded::Written(Arc::new(message)));
        }
    }
}
