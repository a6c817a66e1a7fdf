//! The scripts of the walks: a session in which every stage of a preset has something to do, the
//! window, and which requests for a summary fail.

use std::ops::Range;

use proctor::session::import::tool_names::class_of;
use proctor::session::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, RecordedCompaction, Role, Session, Tag,
    ToolUse,
};
use proctor::units::{Timestamp, Tokens};
use proctor::window::Window;
use serde_json::{Value, json};

use crate::support::{answers, said, session, session_with, tool_result, typed};

/// What a preset walks through.
pub(super) struct Script {
    pub(super) session: Session,
    pub(super) window: Window,
    /// Numbers of the requests that fail, those after a refusal and for notes excepted.
    pub(super) fails: Range<usize>,
}

/// The script of the preset called `name`.
pub(super) fn of(name: &str) -> Script {
    let script = |session, tokens, max_output, fails| Script {
        session,
        window: Window { max_output: Tokens(max_output), ..Window::new(Tokens(tokens)) },
        fails,
    };
    match name {
        "snip-then-compact" | "compact-directly" => script(edited(), 60_000, 16_384, 1..100),
        "claude-code-session-memory" => script(noted(), 60_000, 16_384, 5..14),
        "claude-code-snip-drop" => script(laddered(22), 60_000, 16_384, 1..7),
        "claude-code-reactive-only" => script(laddered(0), 60_000, 16_384, 0..0),
        "claude-code-collapse" => script(laddered(0), 60_000, 16_384, 1..4),
        "manual-phases" => script(laddered(0), 60_000, 16_384, 1..10),
        name if name.starts_with("claude-code") => script(laddered(0), 60_000, 16_384, 1..7),
        "learn-claude-code-s06" => script(lesson(), 200_000, 0, 0..0),
        name if name.starts_with("learn-claude-code") => script(lesson(), 45_000, 0, 2..5),
        // These recover by themselves, or die, in a window that is too small.
        "aloop-rfc005" => script(busy(), 20_000, 0, 0..0),
        "anthropic-clear-tool-uses" => script(read_in_full(), 200_000, 0, 0..0),
        "codex" | "none" => script(busy(), 20_000, 0, 1..2),
        _ => script(busy(), 200_000, 0, 0..0),
    }
}

fn at(minutes: i64, mut message: Message) -> Message {
    message.details.timestamp = Some(Timestamp(minutes * 60_000));
    message
}

fn uses(calls: &[(&str, &str, Value)]) -> Message {
    let block = |(id, name, input): &(&str, &str, Value)| {
        ContentBlock::ToolUse(Box::new(ToolUse {
            id: (*id).into(),
            name: (*name).into(),
            class: class_of(name),
            input: JsonText::of(input),
        }))
    };
    Message::new(Role::Assistant, calls.iter().map(block).collect())
}

/// So many characters about `name`.
fn about(name: &str, chars: usize) -> String {
    format!("{name} line of text\n").repeat(chars / 10)[..chars].to_owned()
}

/// A person has the recorded product compact before the last answer.
fn asked_at_the_end(mut messages: Vec<Message>) -> Session {
    messages.push(typed("/compact"));
    let compaction = RecordedCompaction {
        at: messages.len(),
        trigger: Some("manual".into()),
        pre_tokens: None,
        usage: None,
        after: CompactedTo::Replaced(vec![Recorded::Written(
            Message::text(Role::User, "The product's own summary.").into(),
        )]),
    };
    messages.push(said("Compacted."));
    session_with(messages, vec![compaction])
}

fn read(id: &str, path: &str) -> Message {
    uses(&[(id, "Read", json!({ "file_path": path }))])
}

/// What every layer of Claude Code's ladder but the last has something to do with: a file read
/// twice, a huge output, a marked result, so many small steps, six results at once, and a break.
fn opening(steps: usize) -> Vec<Message> {
    let greps: Vec<String> = (0..6).map(|n| format!("g{n}")).collect();
    let searches: Vec<_> =
        greps.iter().map(|id| (id.as_str(), "Grep", json!({ "pattern": id }))).collect();
    let found = greps.iter().map(|id| tool_result(id, &about(id, 8_000)));
    let a = about("a.rs", 8_000);
    let mut messages = vec![
        at(0, typed("Fix the failing test in a.rs.")),
        at(1, read("r0", "a.rs")),
        at(1, answers("r0", &a)),
        at(2, read("r1", "a.rs")),
        at(2, answers("r1", &a)),
        at(3, uses(&[("b0", "Bash", json!({ "command": "make test" }))])),
        at(4, answers("b0", &about("log", 210_000))),
        at(5, uses(&[("s0", "snip", json!({ "results": ["r0"] }))])),
        at(5, answers("s0", "Marked.")),
    ];
    for step in 0..steps {
        let id = format!("c{step}");
        messages.push(at(5, uses(&[(&id, "Bash", json!({ "step": step }))])));
        messages.push(at(5, answers(&id, &about(&id, 80))));
    }
    messages.extend([
        at(6, uses(&searches)),
        at(6, Message::new(Role::User, found.collect())),
        at(7, said("Found it.")),
        at(90, typed("Go on.").with_tags([Tag::TypedUser, Tag::PhaseEnd])),
    ]);
    messages
}

/// A session in which each of Claude Code's layers has something to do in a window of 60,000; in
/// front of the six results that come at once so many small steps.
fn laddered(steps: usize) -> Session {
    let mut messages = opening(steps);
    messages.extend([
        at(91, read("r2", "b.rs")),
        at(91, answers("r2", &about("b.rs", 60_000))),
        at(92, read("r3", "c.rs")),
        at(92, answers("r3", &about("c.rs", 60_000))),
        at(93, said("Half of it is done.")),
        at(94, typed("Now the rest.")),
        at(95, read("r4", "d.rs")),
        at(95, answers("r4", &about("d.rs", 80_000))),
        at(96, read("r5", "e.rs")),
        at(96, answers("r5", &about("e.rs", 120_000))),
        at(97, uses(&[("t0", "Task", json!({ "prompt": "Check it." }))])),
        at(97, answers("t0", "It is right.")),
        at(98, said("All of it is done.")),
    ]);
    asked_at_the_end(messages)
}

/// A session in which notes are enough at first, then not, and in the end a prompt is refused.
fn noted() -> Session {
    let mut messages = opening(0);
    let mut part = |number: usize, chars: usize| {
        let (id, path) = (format!("n{number}"), format!("part_{number}.rs"));
        messages.extend([
            at(91, read(&id, &path)),
            at(91, answers(&id, &about(&path, chars))),
            at(91, said(&format!("Part {number} is done."))),
            at(91, typed("Go on.")),
        ]);
    };
    (0..6).for_each(|number| part(number, 16_000));
    part(6, 120_000);
    part(7, 100_000);
    part(8, 140_000);
    messages.push(said("All of it is done."));
    asked_at_the_end(messages)
}

/// What the lessons teach, in order: a huge output, old results, the `compact` tool, a long middle, and
/// things that a person pastes.
fn lesson() -> Session {
    let mut messages = vec![
        typed("Do all of the lesson."),
        uses(&[("big", "Bash", json!({ "command": "make" }))]),
        answers("big", &about("make", 250_000)),
    ];
    for step in 0..32 {
        let id = format!("c{step}");
        messages.push(uses(&[(&id, "Bash", json!({ "step": step }))]));
        messages.push(answers(&id, &about(&id, 200)));
        if step == 5 {
            messages.push(uses(&[("k", "compact", json!({}))]));
            messages.push(answers("k", "[Compacted. History summarized.]"));
        }
    }
    messages.push(said("The steps are done."));
    for paste in ["a", "b", "c", "d", "e"] {
        messages.push(typed(&about(paste, 52_000)));
        messages.push(said("Seen."));
    }
    session(messages)
}

/// A session of many small steps, with a task list, one output of 100,000 characters, a call that
/// nobody answered, and later outputs of 20,000.
fn busy() -> Session {
    let todo = |id: &str, open: usize| uses(&[(id, "TodoWrite", json!({ "open": open }))]);
    let mut messages = vec![
        typed("Do all the steps; use port 8443."),
        todo("t0", 50),
        answers("t0", "Noted: 50 open."),
        uses(&[("big", "Bash", json!({ "command": "make" }))]),
        answers("big", &about("make", 100_000)),
        uses(&[("cut", "Bash", json!({ "command": "sleep" }))]),
        Message::text(Role::User, "<turn-aborted>").with_tags([Tag::Meta]),
        typed("And keep the log."),
    ];
    for step in 0..56 {
        let id = format!("c{step}");
        let name = if step % 4 == 0 { "Read" } else { "Bash" };
        messages.push(uses(&[(&id, name, json!({ "step": step }))]));
        let chars = if matches!(step, 42..45 | 53..) { 20_000 } else { 200 };
        messages.push(answers(&id, &about(&id, chars)));
    }
    messages.push(said("All steps are done."));
    asked_at_the_end(messages)
}

/// Ten files of 15,000 tokens are read: the seventh is the one that is over 100,000.
fn read_in_full() -> Session {
    let mut messages = vec![typed("Read everything.")];
    for at in 0..10 {
        let (id, path) = (format!("r{at}"), format!("file_{at}.rs"));
        messages.push(uses(&[(&id, "Read", json!({ "file_path": path }))]));
        messages.push(answers(&id, &about(&path, 60_000)));
    }
    messages.push(said("All is read."));
    session(messages)
}

/// Eight files are read and half of them changed; in a window of 60,000 the next one read is the one
/// with which 60 % of it are full. Then come three that fill it.
fn edited() -> Session {
    let mut messages = vec![typed("Rename the type everywhere.")];
    let mut read = |at: usize, chars: usize| {
        let (id, path) = (format!("r{at}"), format!("file_{at}.rs"));
        messages.push(uses(&[(&id, "Read", json!({ "file_path": path }))]));
        messages.push(answers(&id, &about(&path, chars)));
        if at < 4 {
            let (id, input) = (format!("e{at}"), json!({ "file_path": path, "new_string": "B" }));
            messages.push(uses(&[(&id, "Edit", input)]));
            messages.push(answers(&id, "Done."));
        }
    };
    (0..9).for_each(|at| read(at, 12_000));
    (9..12).for_each(|at| read(at, 90_000));
    messages.push(said("That was the last one."));
    session(messages)
}
