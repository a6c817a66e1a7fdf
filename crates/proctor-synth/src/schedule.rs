//! Events that wait for their moment in a session.

use std::collections::BTreeSet;

/// Something that happens at a moment.
#[derive(Debug)]
pub(crate) struct Event<T> {
    /// When it is due, in thousandths of the session.
    pub(crate) due: u64,
    /// Two events of one key never happen in the same message.
    pub(crate) key: String,
    /// Whether the user says it; otherwise the agent or a tool does.
    pub(crate) is_typed: bool,
    pub(crate) what: T,
}

/// Events that are still to come, the earliest last.
#[derive(Debug)]
pub(crate) struct Schedule<T>(Vec<Event<T>>);

impl<T> Schedule<T> {
    /// These events; of those due at the same moment the least key comes first.
    pub(crate) fn new(mut events: Vec<Event<T>>) -> Self {
        events.sort_by(|a, b| (b.due, &b.key).cmp(&(a.due, &a.key)));
        Self(events)
    }

    /// The same in the first thousandths of the session.
    pub(crate) fn within(mut self, thousandths: u64) -> Self {
        for event in &mut self.0 {
            event.due = event.due * thousandths / 1_000;
        }
        self
    }

    #[cfg(test)]
    pub(crate) fn into_events(self) -> Vec<Event<T>> {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn due(&self, progress: u64) -> impl Iterator<Item = &Event<T>> {
        let events = self.0.iter().rev();
        events.take_while(move |event| event.due < progress)
    }

    /// Whether there is something for the user to say.
    pub(crate) fn is_typed_due(&self, progress: u64) -> bool {
        self.due(progress).any(|event| event.is_typed)
    }

    /// Takes up to `limit` due events that the user says, or that the agent and its tools do.
    pub(crate) fn take(&mut self, progress: u64, limit: usize, is_typed: bool) -> Vec<T> {
        let first = self.0.len() - self.due(progress).count();
        let mut keys = BTreeSet::new();
        let mut taken = Vec::new();
        for at in (first..self.0.len()).rev() {
            let event = &self.0[at];
            if taken.len() < limit && event.is_typed == is_typed && keys.insert(event.key.clone()) {
                taken.push(self.0.remove(at).what);
            }
        }
        taken
    }

    /// Takes all that is left; of each key the next event only.
    pub(crate) fn rest(&mut self) -> Vec<T> {
        let mut keys = BTreeSet::new();
        let mut rest = std::mem::take(&mut self.0);
        rest.reverse();
        rest.retain(|event| keys.insert(event.key.clone()));
        rest.into_iter().rev().map(|event| event.what).collect()
    }
}
