//! The shape of a request: enough to say how another one differs.

use serde::{Deserialize, Serialize};

use crate::model::Request;
use crate::session::Role;
use crate::units::ContentHash;

/// Characters that are kept of the last text, which holds the question.
const ASKED_CHARS: usize = 160;

/// Digits of the hash of a message.
const DIGITS: usize = 8;

fn short(text: &str) -> String {
    ContentHash::of(text).hex(DIGITS)
}

/// Sizes and hashes of a request, and the beginning of its question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestShape {
    /// Hash of the system prompt; empty where there is none.
    pub system: String,
    /// Hash of the tool definitions; empty where there are none.
    pub tools: String,
    /// One word for each message: `u` or `a` for who speaks, and a hash.
    pub messages: String,
    /// How the last text block begins.
    pub asked: String,
    /// The limit of the answer, in tokens.
    pub max_output: u64,
}

impl RequestShape {
    /// The shape of a request.
    pub(super) fn of(request: &Request) -> Self {
        let tools: String = request.tools().iter().map(|tool| &**tool.text()).collect();
        let words = request.messages.iter().map(|message| {
            let speaker = match message.role() {
                Role::User => 'u',
                Role::Assistant => 'a',
            };
            let parts = message.model_text().iter().map(|text| text.as_bytes());
            format!("{speaker}{}", ContentHash::of_parts(parts).hex(DIGITS))
        });
        let words: Vec<String> = words.collect();
        let last = request.messages.last();
        let asked = last.and_then(|message| message.model_text().last());
        Self {
            system: request.system.as_deref().map(short).unwrap_or_default(),
            tools: if tools.is_empty() { tools } else { short(&tools) },
            messages: words.join(" "),
            asked: asked.map_or_else(String::new, |text| text.chars().take(ASKED_CHARS).collect()),
            max_output: request.max_output.0,
        }
    }

    fn words(&self) -> Vec<&str> {
        self.messages.split(' ').filter(|word| !word.is_empty()).collect()
    }

    /// Messages from the start that are the same.
    fn common(&self, other: &Self) -> usize {
        let (ours, theirs) = (self.words(), other.words());
        ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count()
    }

    /// How alike two requests are: the question first, then the messages.
    pub(super) fn likeness(&self, other: &Self) -> (bool, usize, bool) {
        (
            self.asked == other.asked,
            self.common(other),
            self.system == other.system && self.tools == other.tools,
        )
    }

    /// The question, for an error.
    pub(super) fn in_words(&self) -> String {
        let first = self.asked.lines().next().unwrap_or_default();
        format!("`{first}` after {} messages", self.words().len())
    }

    /// How this request, which is not recorded, differs from `other`, which is.
    pub(super) fn difference(&self, other: &Self, repeat: u32, recorded: u32) -> String {
        let (ours, theirs) = (self.words().len(), other.words().len());
        let common = self.common(other);
        let first = other.asked.lines().next().unwrap_or_default();
        let (limit, theirs_at_most) = (self.max_output, other.max_output);
        let differences = [
            (common < ours.min(theirs))
                .then(|| format!("message {} of {ours} is another", common + 1)),
            (ours != theirs).then(|| format!("it has {theirs} messages, not {ours}")),
            (self.system != other.system).then(|| "the system prompt is another".to_owned()),
            (self.tools != other.tools).then(|| "the tool definitions are others".to_owned()),
            (self.asked != other.asked).then(|| format!("it asks `{first}`")),
            (limit != theirs_at_most)
                .then(|| format!("its answer may have {theirs_at_most} tokens, not {limit}")),
            (repeat != recorded).then(|| format!("it is of repeat {recorded}, not {repeat}")),
        ];
        let mut different: Vec<String> = differences.into_iter().flatten().collect();
        if different.is_empty() {
            different.push("the same messages under other settings of the model".to_owned());
        }
        different.join("; ")
    }
}
