//! The smallest part of a scene that still breaks a law.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::world::{Begin, Scene, session_of};
use crate::session::{ContentBlock, Message};

/// Characters that may be sent in all attempts together.
const WORK: usize = 120_000_000;

/// Attempts to make a scene smaller: a program that hangs takes its whole time limit in each.
const ATTEMPTS: usize = 80;

/// Attempts once one waited for a time limit: a check would never end.
const PATIENCE: usize = 6;

/// Characters that are left of a text which need not be long.
const SHORT: usize = 40;

struct Search<F> {
    best: (Scene, String),
    attempts: usize,
    work: usize,
    broken: F,
}

/// Leaves out messages, ever fewer at a time, and then shortens texts, for as long as `broken` still says what is
/// wrong. Returns the smallest scene, and what was wrong with it.
pub(super) fn smallest(
    scene: Scene,
    got: String,
    broken: impl Fn(&Scene) -> Option<String>,
) -> (Scene, String) {
    let mut search = Search { best: (scene, got), attempts: ATTEMPTS, work: WORK, broken };
    let mut size = search.messages().len() / 2;
    while size > 0 {
        let mut from = 0;
        while from < search.messages().len() {
            let messages = search.messages().iter().enumerate();
            let kept = messages.filter(|(at, _)| !(from..from + size).contains(at));
            let messages = kept.map(|(_, message)| (**message).clone()).collect();
            if !search.attempt(paired(messages)) {
                from += size;
            }
        }
        size /= 2;
    }
    for at in 0..search.messages().len() {
        let longest = search.messages()[at].model_text().iter().map(|text| text.len()).max();
        // A text that has to be long may be half as long.
        for length in [SHORT, longest.unwrap_or(0) / 2] {
            let shorter = shortened(&search.messages()[at], length);
            if shorter == *search.messages()[at] {
                continue;
            }
            let own = search.messages().iter().map(|message| (**message).clone());
            let mut messages: Vec<Message> = own.collect();
            messages[at] = shorter;
            if search.attempt(messages) {
                break;
            }
        }
    }
    search.best
}

impl<F: Fn(&Scene) -> Option<String>> Search<F> {
    fn messages(&self) -> &[Arc<Message>] {
        self.best.0.session.messages()
    }

    /// Whether the law is still broken with these messages; then they are the best.
    fn attempt(&mut self, messages: Vec<Message>) -> bool {
        let scene = &self.best.0;
        let begin = Begin::of(&scene.session);
        let Some(session) = session_of(&scene.name, messages, begin) else {
            return false;
        };
        // Each call sends what came before it.
        let texts = session.messages().iter().flat_map(|message| message.model_text());
        let work = texts.map(|text| text.len()).sum::<usize>() * session.calls().len().div_ceil(2);
        if self.attempts == 0 || work > self.work {
            return false;
        }
        self.attempts -= 1;
        self.work -= work;
        let smaller = Scene { session, ..scene.clone() };
        let Some(got) = (self.broken)(&smaller) else {
            return false;
        };
        if got.contains("no answer within") {
            self.attempts = self.attempts.min(PATIENCE);
        }
        self.best = (smaller, got);
        true
    }
}

/// The messages without calls that have no result, and without results that have no call: nobody could send those.
fn paired(mut messages: Vec<Message>) -> Vec<Message> {
    loop {
        let uses: BTreeSet<Arc<str>> =
            messages.iter().flat_map(Message::tool_uses).map(|(_, tool)| tool.id.clone()).collect();
        let results = messages.iter().flat_map(Message::tool_results);
        let ids = results.map(|(_, result)| result.tool_use_id.clone());
        let results: BTreeSet<Arc<str>> = ids.collect();
        let before = messages.len();
        messages.retain(|message| {
            let mut asked = message.tool_uses();
            let mut answered = message.tool_results();
            asked.all(|(_, tool)| results.contains(&tool.id))
                && answered.all(|(_, result)| uses.contains(&result.tool_use_id))
        });
        if messages.len() == before {
            return messages;
        }
    }
}

fn cut(text: &str, length: usize) -> Arc<str> {
    text[..text.floor_char_boundary(length)].into()
}

/// The message with its texts cut.
fn shortened(message: &Message, length: usize) -> Message {
    let blocks = message.content().iter().map(|block| match block {
        ContentBlock::Text(text) => ContentBlock::Text(cut(text, length)),
        ContentBlock::ToolResult(result) => {
            let texts = result.content.iter().map(|part| match part {
                ContentBlock::Text(text) => ContentBlock::Text(cut(text, length)),
                other => other.clone(),
            });
            ContentBlock::tool_result(result.tool_use_id.clone(), texts.collect(), result.is_error)
        }
        other => other.clone(),
    });
    message.with_content(blocks.collect())
}
