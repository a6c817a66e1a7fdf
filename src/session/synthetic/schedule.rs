//! Events that wait for their moment in a session.

use std::collections::BTreeSet;

/// Something that happens at a moment.
pub(crate) trait Event {
    /// Two events of one key never happen in the same message.
    type Key: Ord;

    fn key(&self) -> Self::Key;

    /// Whether the user says it; otherwise the agent or a tool does.
    fn is_typed(&self) -> bool;
}

/// Events with the moments when they are due, in thousandths of the session; the earliest last.
#[derive(Debug)]
pub(crate) struct Schedule<T>(Vec<(u64, T)>);

impl<T: Event> Schedule<T> {
    /// The events, of which the last is the earliest.
    pub(crate) fn new(events: Vec<(u64, T)>) -> Self {
        Self(events)
    }

    #[cfg(test)]
    pub(crate) fn into_events(self) -> Vec<(u64, T)> {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn due(&self, progress: u64) -> impl Iterator<Item = &T> {
        let due = self
            .0
            .iter()
            .rev()
            .take_while(move |(due, _)| *due < progress);
        due.map(|(_, event)| event)
    }

    /// Whether there is something for the user to say.
    pub(crate) fn is_typed_due(&self, progress: u64) -> bool {
        self.due(progress).any(Event::is_typed)
    }

    /// Takes up to `limit` due events that the user says, or that the agent and its tools do.
    pub(crate) fn take(&mut self, progress: u64, limit: usize, is_typed: bool) -> Vec<T> {
        let first = self.0.len() - self.due(progress).count();
        let mut keys = BTreeSet::new();
        let mut taken = Vec::new();
        for at in (first..self.0.len()).rev() {
            let (_, event) = &self.0[at];
            if taken.len() < limit && event.is_typed() == is_typed && keys.insert(event.key()) {
                taken.push(self.0.remove(at).1);
            }
        }
        taken
    }

    /// Takes all that is left; of each key the next event only.
    pub(crate) fn rest(&mut self) -> Vec<T> {
        let mut keys = BTreeSet::new();
        let rest = std::mem::take(&mut self.0).into_iter().rev();
        let mut rest: Vec<T> = rest.map(|(_, event)| event).collect();
        rest.retain(|event| keys.insert(event.key()));
        rest.reverse();
        rest
    }
}
