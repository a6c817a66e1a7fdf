//! Knows what the requests of a log said, so that one is compared only with sessions that share something with it.

use crate::prelude::*;

/// The most sessions that are compared because of one message: every session of an agent may begin with the same words,
/// or call a tool alike, and comparing each with all others would take the square of their number.
const MOST_ALIKE: usize = 64;

/// Hashes of the messages of earlier requests, with the sessions that have them.
#[derive(Default)]
pub(super) struct Known {
    /// The names of the sessions in which something was said, the latest last; at most [`MOST_ALIKE`].
    sessions: BTreeMap<ContentHash, Vec<usize>>,
    /// A request without messages was answered: what goes on from it may share none.
    is_begun_by_model: bool,
}

impl Known {
    /// Whether a session has a message of a request, or one that begins like it.
    pub(super) fn shares(&self, said: &[ContentHash]) -> bool {
        self.is_any(said) || said.iter().any(|hash| self.sessions.contains_key(hash))
    }

    /// The sessions that have one; none where it may be any. Of those that say the same, a request goes on from one of the
    /// latest.
    pub(super) fn sharing(&self, said: &[ContentHash]) -> Option<BTreeSet<usize>> {
        let sessions = said.iter().filter_map(|hash| self.sessions.get(hash));
        (!self.is_any(said)).then(|| sessions.flatten().copied().collect())
    }

    fn is_any(&self, said: &[ContentHash]) -> bool {
        self.is_begun_by_model || said.is_empty()
    }

    /// Whether a message of that look was in an earlier request, or answered one.
    pub(super) fn holds(&self, look: &Look) -> bool {
        self.sessions.contains_key(&look.whole)
    }

    /// Takes note of what a request and its answer said in a session.
    pub(super) fn add(&mut self, session: usize, asked: Vec<ContentHash>, answer: Arc<Message>) {
        self.is_begun_by_model |= asked.is_empty();
        let look = Look::of(&answer);
        for hash in asked.into_iter().chain(hashes(&[answer], &[look])) {
            self.note(session, hash);
        }
    }

    /// Takes note that something was said in a session.
    fn note(&mut self, session: usize, hash: ContentHash) {
        let known = self.sessions.entry(hash).or_default();
        if known.last() != Some(&session) {
            known.retain(|one| *one != session);
            known.push(session);
            known.drain(..known.len().saturating_sub(MOST_ALIKE));
        }
    }
}

/// The hashes of messages: of all of each, of the first text, which may be asked again with more behind it, and of what
/// tool calls say with and without their ids.
pub(super) fn hashes(messages: &[Arc<Message>], looks: &[Look]) -> Vec<ContentHash> {
    let text = messages.first().and_then(|item| item.model_text().first());
    let first = text.map(|text| ContentHash::of(text.as_bytes()));
    let each = looks.iter().flat_map(|look| {
        let of_calls = [look.shape, look.form].map(|hash| look.has_calls().then_some(hash));
        [Some(look.whole)].into_iter().chain(of_calls)
    });
    first.into_iter().chain(each.flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_sessions_that_say_the_same_the_latest_are_compared_and_always_the_one_that_says_more()
    {
        let [common, own] =
            ["all say it", "one says it"].map(|text| ContentHash::of(text.as_bytes()));
        let mut known = Known::default();
        known.note(3, own);
        // One that goes on between the others stays near.
        for session in 0..1_000 {
            known.note(session, common);
            known.note(5, common);
        }
        let near = known.sharing(&[common, own]).unwrap();
        let expected = [3, 5].into_iter().chain(937..1_000);
        assert_eq!(near, expected.collect::<BTreeSet<_>>());
    }
}
