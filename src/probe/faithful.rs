//! A summariser that keeps everything it is shown: what a summary then lacks, the strategy lost.
//!
//! It quotes what is known to matter and stands wholly in its request, and nothing else. It knows the facts, so its
//! summaries say nothing of what a model would keep, and no ranking reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::model::{Request, Stop};

/// Tokens of a summary: about the median that models wrote in recorded compactions (`docs/reference/recordings.md`).
const USUAL: usize = 1_200;

/// Characters to a token.
const CHARS: usize = 4;

/// A line of padding.
const PADDING: &str = "The files that were read are as they were described above.\n";

/// The first words of an answer; a number follows, which no other answer has.
pub(crate) const OPENING: &str = "State of the work, number ";

/// Words of a session that a summary should keep: of several spellings the one that stands last in a request.
pub type Quote = Vec<Arc<str>>;

/// Writes summaries of one session.
#[derive(Debug)]
pub struct Faithful {
    quotes: Vec<Quote>,
    /// Tokens that a summary has at most, but for what it quotes: small windows have small summaries.
    most: usize,
    written: AtomicUsize,
}

impl Faithful {
    /// One that quotes these, for a window of so many tokens.
    pub fn new(quotes: Vec<Quote>, window: u64) -> Self {
        let window = usize::try_from(window).unwrap_or(usize::MAX);
        Self { quotes, most: USUAL.min(window / 20), written: AtomicUsize::new(0) }
    }

    /// The same, whose first answer has the number after this one.
    pub(crate) fn numbered_after(self, last: usize) -> Self {
        Self { written: AtomicUsize::new(last), ..self }
    }

    /// The answer to a request, and why it ends. Quotes for which there is no room are left out.
    pub fn answer(&self, request: &Request) -> (String, Stop) {
        let text = said_in(request);
        let number = self.written.fetch_add(1, Ordering::Relaxed) + 1;
        let mut summary = format!("{OPENING}{number}.\n");
        let limit =
            usize::try_from(request.max_output.0).unwrap_or(usize::MAX).saturating_mul(CHARS);
        for quote in &self.quotes {
            let places = quote.iter().filter_map(|words| Some((place(&text, words)?, words)));
            if let Some((_, newest)) = places.max()
                && summary.len() + "- \n".len() + newest.len() <= limit
            {
                summary.extend(["- ", newest, "\n"]);
            }
        }
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

/// Where these words stand last in a text, as they are or as they are written in JSON.
fn place(text: &str, words: &str) -> Option<usize> {
    text.rfind(words).or_else(|| {
        let quoted = serde_json::Value::from(words).to_string();
        text.rfind(quoted.trim_matches('"'))
    })
}

/// All texts of a request: its system prompt, and then message by message.
pub(crate) fn said_in(request: &Request) -> String {
    let mut texts: Vec<&str> = request.system.as_deref().into_iter().collect();
    for message in &request.messages {
        texts.extend(message.model_text().iter().map(|text| &**text));
    }
    texts.join("\n")
}
