//! What the agent's model saw of the events, and what a condensation left of it.
//!
//! A condensation names the events that are forgotten, and where among the others its summary
//! stands. Messages are made of events, so a message may be forgotten in part.

use super::super::prelude::*;

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

/// An event of a message that is left: the message, how many are left before it, and its place.
type Left = (usize, usize, usize);
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
        let left = (0..self.events.len()).filter(|at| !self.forgotten.contains(at));
        let message = |at: usize| assembler.message_of(&self.events[at].name);
        let placed = left.enumerate();
        let placed = placed.filter_map(|(rank, at)| Some((message(at)?, rank, at)));
        // Calls of one response may stand with results between them: messages are in order.
        let mut placed: Vec<Left> = placed.collect();
        placed.sort_unstable();
        let summary = self.summary.as_ref();
        let is_behind = |(_, rank, _): &Left| summary.is_some_and(|it| *rank >= it.offset);
        let split = placed.iter().position(is_behind).unwrap_or(placed.len());
        let (before, behind) = placed.split_at(split);
        let mut pieces = Vec::new();
        self.add(before, &sizes, &mut pieces);
        pieces.extend(summary.map(|summary| Recorded::summary(summary.text.clone())));
        self.add(behind, &sizes, &mut pieces);
        CompactedTo::Replaced(pieces)
    }

    /// A message that is left whole stays; of others, what is left is written.
    fn add(&self, left: &[Left], sizes: &BTreeMap<usize, usize>, pieces: &mut Vec<Recorded>) {
        for events in left.chunk_by(|(one, ..), (two, ..)| one == two) {
            let parts = events.iter().map(|(_, _, at)| &self.events[*at]);
            let parts: Vec<&Event> = parts.filter(|event| !event.blocks.is_empty()).collect();
            let message = events[0].0;
            if sizes.get(&message) == Some(&parts.len()) {
                Recorded::keep(message, pieces);
            } else if let Some(first) = parts.first() {
                let blocks = parts.iter().flat_map(|event| event.blocks.clone());
                let tags: Vec<Tag> = parts.iter().flat_map(|event| event.tags.clone()).collect();
                pieces.push(Recorded::written(first.role, blocks.collect(), &tags));
            }
        }
    }
}
