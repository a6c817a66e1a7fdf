//! A summariser that keeps everything it is shown: what a summary then lacks, the strategy lost.
//!
//! It quotes each known fact whose evidence stands wholly in its request, and nothing else. It knows the facts, so its
//! summaries say nothing of what a model would keep, and no ranking reads them.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::world::{DONE, Fact, Scene};
use crate::model::{Request, Stop};

/// Tokens of a summary: about the median that models wrote in recorded compactions (`docs/recordings.md`).
const USUAL: usize = 1_200;

/// Characters to a token.
const CHARS: usize = 4;

/// A line of padding.
const PADDING: &str = "The files that were read are as they were described above.\n";

/// The first words of an answer; a number follows, which no other answer of the play has.
pub(super) const OPENING: &str = "State of the work, number ";

/// Writes summaries of a scene.
#[derive(Debug)]
pub(super) struct Faithful {
    facts: &'static [Fact],
    /// Tokens that a summary has at most: small windows have small summaries.
    most: usize,
    written: AtomicUsize,
}

impl Faithful {
    pub(super) fn of(scene: &Scene) -> Self {
        let window = usize::try_from(scene.window.0).unwrap_or(usize::MAX);
        Self {
            facts: scene.facts,
            most: USUAL.min(window / 20),
            written: AtomicUsize::new(0),
        }
    }

    /// The answer to a request, and why it ends.
    pub(super) fn answer(&self, request: &Request) -> (String, Stop) {
        let text = said_in(request);
        let number = self.written.fetch_add(1, Ordering::Relaxed) + 1;
        let mut summary = format!("{OPENING}{number}.\n");
        for fact in self
            .facts
            .iter()
            .filter(|fact| text.contains(fact.evidence))
        {
            summary.extend(["- ", fact.evidence, "\n"]);
        }
        // The newest state of the plan is the last one.
        let states = ["[ ]", "[x]"].map(|state| format!("{state} {DONE}"));
        let newest = states
            .iter()
            .filter_map(|state| Some((text.rfind(state)?, state)));
        if let Some((_, state)) = newest.max() {
            summary.extend(["- ", state, "\n"]);
        }
        let limit = usize::try_from(request.max_output.0).unwrap_or(usize::MAX);
        let limit = limit.saturating_mul(CHARS);
        while summary.len() + PADDING.len() <= (self.most * CHARS).min(limit) {
            summary.push_str(PADDING);
        }
        if summary.len() <= limit {
            return (summary, Stop::End);
        }
        let cut = summary.floor_char_boundary(limit);
        summary.truncate(cut);
        (summary, Stop::Length)
    }
}

/// All texts of a request, message by message.
pub(super) fn said_in(request: &Request) -> String {
    let texts = request
        .messages
        .iter()
        .flat_map(|message| message.model_text());
    let texts: Vec<&str> = texts.map(|text| &**text).collect();
    texts.join("\n")
}
