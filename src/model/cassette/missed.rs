//! Requests that were wanted and are not recorded, in words.

use super::{Cassette, RequestShape};
use crate::model::Request;

impl Cassette {
    /// How many requests were wanted and not recorded, and the first of them in words.
    pub fn missed(&self) -> Option<(usize, String)> {
        let state = self.state();
        Some((state.misses, state.miss.clone()?))
    }

    pub(super) fn note_miss(&self, key: &str, model: &str, request: &Request, repeat: u32) {
        let mut state = self.state();
        state.misses += 1;
        if state.miss.is_some() {
            return;
        }
        let shape = RequestShape::of(request);
        let nearest = state
            .entries
            .values()
            .filter(|entry| entry.model == model && entry.purpose == request.purpose)
            .max_by_key(|entry| (entry.request.likeness(&shape), entry.repeat == repeat));
        let path = self.path.display();
        let words = shape.in_words();
        if let Some(entry) = state.entries.get(key) {
            let read = entry.answer.usage.prompt();
            state.miss = Some(format!(
                "the answer of {model} to {words} in `{path}` does not count: its server had read only \
                 {read} tokens of the prompt"
            ));
            return;
        }
        let asked = format!("`{path}` holds no answer of {model} to {words}");
        state.miss = Some(match nearest {
            None => format!("{asked}; it holds none of {model} for this purpose"),
            Some(entry) => format!(
                "{asked}; the nearest that it holds: {}",
                shape.difference(&entry.request, repeat, entry.repeat)
            ),
        });
    }
}
