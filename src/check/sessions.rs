//! Generated sessions, and the smallest part of one that still breaks a rule.

use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::session::{ContentBlock, JsonText, Message, Role, Session, SessionParts, Tag};

/// Rounds of the first sessions: what breaks at once shall be seen in little. Later ones have the last length.
const ROUNDS: [usize; 12] = [1, 1, 2, 2, 3, 4, 6, 8, 12, 16, 24, 40];

/// Attempts to make a session smaller: a program that hangs takes its whole time limit in each.
const ATTEMPTS: usize = 200;

/// The session of this number.
pub(super) fn generated(seed: u64, number: usize) -> Option<Arc<Session>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number as u64);
    let rounds = ROUNDS.get(number).or(ROUNDS.last()).copied().unwrap_or(1);
    let mut messages = vec![typed(
        "Please look into the flaky test. \u{1f9ea} \u{6d4b}\u{8bd5} caf\u{e9}",
    )];
    for round in 0..rounds {
        let calls = rng.random_range(0..4_usize);
        let mut said = vec![ContentBlock::Text(
            format!("Step {round}: I look further.").into(),
        )];
        let mut results = Vec::new();
        for call in 0..calls {
            let id: Arc<str> = format!("call-{round}-{call}").into();
            let path = format!("src/file_{}.rs", rng.random_range(0..5_u32));
            let (name, input) = match rng.random_range(0..3_u32) {
                0 => (
                    "Bash",
                    json!({ "command": format!("grep -n value {path}") }),
                ),
                1 => (
                    "Edit",
                    json!({ "file_path": path, "old_string": "a", "new_string": "b" }),
                ),
                _ => ("Read", json!({ "file_path": path })),
            };
            said.push(ContentBlock::tool_use(
                id.clone(),
                name.into(),
                JsonText::of(&input),
            ));
            let lines = match rng.random_range(0..8_u32) {
                0 => 0,
                1 => 120,
                _ => rng.random_range(1..30_usize),
            };
            let text = format!("{path}: \u{3b1} value \u{1f600} {round}\n").repeat(lines);
            let content = if text.is_empty() {
                Vec::new()
            } else {
                vec![ContentBlock::Text(text.into())]
            };
            results.push(ContentBlock::tool_result(
                id,
                content,
                rng.random_range(0..10_u32) == 0,
            ));
        }
        messages.push(Message::new(Role::Assistant, said));
        if !results.is_empty() {
            messages.push(Message::new(Role::User, results));
        }
        if calls == 0 || rng.random_range(0..5_u32) == 0 {
            messages.push(typed(&format!(
                "Go on with part {round}, and keep the port 48213 in mind."
            )));
        }
    }
    messages.push(Message::text(Role::Assistant, "Done."));
    session_of(messages)
}

fn typed(text: &str) -> Message {
    Message::text(Role::User, text).with_tags([Tag::TypedUser])
}

fn session_of(messages: Vec<Message>) -> Option<Arc<Session>> {
    let parts = SessionParts {
        id: "checked".to_owned(),
        messages: messages.into_iter().map(Arc::new).collect(),
        ..SessionParts::default()
    };
    let session = Session::new(parts).ok()?;
    // A conversation begins with somebody who wants something.
    let begins = session.messages().first()?.role() == Role::User;
    (begins && !session.calls().is_empty()).then(|| Arc::new(session))
}

/// Leaves out messages, ever fewer at a time, and then shortens texts, for as long as `broken` still says what is
/// wrong. Returns the smallest session, and what was wrong with it.
pub(super) fn smallest(
    session: Arc<Session>,
    got: String,
    broken: impl Fn(&Arc<Session>) -> Option<String>,
) -> (Arc<Session>, String) {
    let mut best = (session, got);
    let mut left = ATTEMPTS;
    let mut attempt = |messages: Vec<Message>, best: &mut (Arc<Session>, String)| {
        let Some(smaller) = session_of(messages).filter(|_| left > 0) else {
            return false;
        };
        left -= 1;
        let Some(got) = broken(&smaller) else {
            return false;
        };
        // A time limit that is waited for again and again makes a check endless.
        if got.contains("no answer within") {
            left = left.min(6);
        }
        *best = (smaller, got);
        true
    };
    let mut size = best.0.messages().len() / 2;
    while size > 0 {
        let mut from = 0;
        while from < best.0.messages().len() {
            let messages = best.0.messages().iter().enumerate();
            let kept = messages.filter(|(at, _)| !(from..from + size).contains(at));
            let kept: Vec<Message> = kept.map(|(_, message)| (**message).clone()).collect();
            if !attempt(kept, &mut best) {
                from += size;
            }
        }
        size /= 2;
    }
    for at in 0..best.0.messages().len() {
        let mut messages: Vec<Message> =
            best.0.messages().iter().map(|it| (**it).clone()).collect();
        let shorter = shortened(&messages[at]);
        if shorter != messages[at] {
            messages[at] = shorter;
            attempt(messages, &mut best);
        }
    }
    best
}

/// The message with its long texts cut.
fn shortened(message: &Message) -> Message {
    let cut = |text: &str| -> Arc<str> { text.chars().take(40).collect::<String>().into() };
    let blocks = message.content().iter().map(|block| match block {
        ContentBlock::Text(text) => ContentBlock::Text(cut(text)),
        ContentBlock::ToolResult(result) => {
            let texts = result.content.iter().map(|part| match part {
                ContentBlock::Text(text) => ContentBlock::Text(cut(text)),
                other => other.clone(),
            });
            ContentBlock::tool_result(result.tool_use_id.clone(), texts.collect(), result.is_error)
        }
        other => other.clone(),
    });
    Message::new(message.role(), blocks.collect()).with_tags(message.tags.iter())
}
