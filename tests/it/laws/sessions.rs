//! Generated sessions, which proptest makes shorter and plainer until nothing can be left out of
//! what breaks a law.

use std::cell::RefCell;
use std::sync::Arc;

use proctor::replay::PreparedSession;
use proctor::session::import::tool_names::class_of;
use proctor::session::{
    CompactedTo, ContentBlock, JsonText, Message, Recorded, RecordedCompaction, Role, Session, Tag,
    Thinking, ToolUse,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestError, TestRng, TestRunner};
use serde_json::json;

use crate::support::{prepared, said, session_with, tool_result, typed};

/// So many sessions are tried on everything,
const AT_LEAST: usize = 10;

/// and so many at most, where what is declared to break has not broken yet.
const AT_MOST: usize = 120;

/// Holds a law over generated sessions, the same ones each time, and over more of them while
/// `wants_more`. One that breaks it is made as small as it goes before it is told of.
pub(super) fn for_all(
    wants_more: impl Fn() -> bool,
    law: impl FnMut(&PreparedSession) -> TestCaseResult,
) -> Result<(), String> {
    let law = RefCell::new(law);
    let config = Config { failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let scripts = script();
    for tried in 0..AT_MOST {
        if tried >= AT_LEAST && !wants_more() {
            break;
        }
        let tree = scripts.new_tree(&mut runner).unwrap();
        match runner.run_one(tree, |script| law.borrow_mut()(&prepared(script.session()))) {
            Ok(_) => {}
            Err(TestError::Fail(why, script)) => return Err(format!("{why}, in {script:?}")),
            Err(TestError::Abort(why)) => return Err(why.to_string()),
        }
    }
    Ok(())
}

/// What happens in a session.
#[derive(Debug, Clone)]
struct Script {
    rounds: Vec<Round>,
    /// What a careless product left of its first two thirds.
    compaction: Option<Left>,
}

/// A response, its results, and perhaps what somebody typed then.
#[derive(Debug, Clone)]
struct Round {
    /// Length of its thinking in words.
    thought: usize,
    calls: Vec<Call>,
    /// Each result in a message of its own.
    apart: bool,
    typed: bool,
}

/// A tool use and its result.
#[derive(Debug, Clone)]
struct Call {
    tool: Tool,
    /// Which of a few files it is about.
    file: usize,
    /// Which of two states the file is in.
    state: usize,
    /// Lines of the result, or of what is written.
    lines: usize,
    /// In a part of the response of its own.
    new_part: bool,
}

#[derive(Debug, Clone, Copy)]
enum Tool {
    Read,
    Bash,
    Edit,
    Write,
    Todo,
    Agent,
    /// Asks for a compaction.
    Compact,
    /// Marks all results so far as no longer needed.
    Snip,
}

#[derive(Debug, Clone)]
struct Left {
    words: usize,
    is_marked: bool,
    kept: usize,
}

fn script() -> impl Strategy<Value = Script> {
    let left = (prop_oneof![3 => Just(1_usize), 1 => Just(4_000)], any::<bool>(), 0_usize..3);
    let left = left.prop_map(|(words, is_marked, kept)| Left { words, is_marked, kept });
    // Some end before a window is full, some go on for long.
    let rounds = prop_oneof![
        1 => vec(round(), 0..4),
        5 => vec(round(), 4..16),
        4 => vec(round(), 16..40),
    ];
    (rounds, proptest::option::of(left))
        .prop_map(|(rounds, compaction)| Script { rounds, compaction })
}

fn round() -> impl Strategy<Value = Round> {
    let thought = prop_oneof![3 => Just(0_usize), 1 => 1_usize..200];
    let typed = proptest::bool::weighted(0.2);
    (thought, vec(call(), 1..4), any::<bool>(), typed)
        .prop_map(|(thought, calls, apart, typed)| Round { thought, calls, apart, typed })
}

fn call() -> impl Strategy<Value = Call> {
    let tool = prop_oneof![
        8 => Just(Tool::Read),
        4 => Just(Tool::Bash),
        2 => Just(Tool::Edit),
        2 => Just(Tool::Write),
        1 => Just(Tool::Todo),
        1 => Just(Tool::Agent),
        1 => Just(Tool::Compact),
        1 => Just(Tool::Snip),
    ];
    // Few lengths, so that what is read twice is often the same.
    let lines = prop_oneof![
        4 => Just(0_usize),
        4 => Just(1),
        4 => Just(20),
        2 => Just(120),
        1 => Just(900),
    ];
    let new_part = proptest::bool::weighted(0.3);
    (tool, 0_usize..4, 0_usize..2, lines, new_part).prop_map(
        |(tool, file, state, lines, new_part)| Call { tool, file, state, lines, new_part },
    )
}

impl Script {
    /// A valid session: parallel calls, empty and huge results, files read again, changed and
    /// written, thinking, task lists, sub-agents, marked results, results in messages of their own,
    /// responses that came in parts, typed messages, `compact` calls.
    fn session(&self) -> Session {
        let mut messages = vec![typed("Begin with this.")];
        let mut asked = Vec::new();
        for (at, round) in self.rounds.iter().enumerate() {
            round.play(at, &mut messages, &mut asked);
        }
        messages.push(said("Everything is done."));
        let left = self.compaction.iter();
        let compactions = left.map(|left| left.of(&messages)).collect();
        session_with(messages, compactions)
    }
}

impl Round {
    fn play(&self, at: usize, messages: &mut Vec<Message>, asked: &mut Vec<String>) {
        let mut parts: Vec<Vec<ContentBlock>> = vec![Vec::new()];
        if self.thought > 0 {
            let text = format!("thought {at} ").repeat(self.thought).into();
            let signature = Some("signed".into());
            parts[0].push(ContentBlock::Thinking(Box::new(Thinking { text, signature })));
        }
        let mut results = Vec::new();
        for (n, call) in self.calls.iter().enumerate() {
            let id = format!("t{at}-{n}");
            let (name, input, result) = call.played(at, asked);
            // A response that came in parts has its tool uses in all of them.
            if n > 0 && call.new_part {
                parts.push(Vec::new());
            }
            let part = parts.last_mut().unwrap();
            part.push(ContentBlock::ToolUse(Box::new(ToolUse {
                id: id.as_str().into(),
                name: name.into(),
                class: class_of(name),
                input: JsonText::of(&input),
            })));
            results.push(tool_result(&id, &result));
            asked.push(id);
        }
        // Only the first part of a response is preceded by a call.
        for (n, part) in parts.into_iter().enumerate() {
            let message = Message::new(Role::Assistant, part);
            let tags = (n > 0).then_some(Tag::Synthetic);
            messages.push(message.with_tags(tags));
        }
        if self.apart {
            let single = |result| Message::new(Role::User, vec![result]);
            messages.extend(results.into_iter().map(single));
        } else {
            messages.push(Message::new(Role::User, results));
        }
        if self.typed {
            messages.push(said(&format!("Part {at} is done.")));
            messages.push(typed(&format!("Then do part {at} again.")));
        }
    }
}

impl Call {
    /// Name and input of the tool use, and the result.
    fn played(&self, round: usize, asked: &[String]) -> (&'static str, serde_json::Value, String) {
        let path = format!("src/file_{}.rs", self.file);
        let body = format!("fn lïne_{}() {{}}\n", self.state).repeat(self.lines);
        match self.tool {
            Tool::Read => ("Read", json!({ "file_path": path }), body),
            Tool::Bash => ("Bash", json!({ "command": format!("make {round}") }), body),
            Tool::Edit => (
                "Edit",
                json!({ "file_path": path, "old_string": "a", "new_string": body }),
                "Done.".to_owned(),
            ),
            Tool::Write => {
                ("Write", json!({ "file_path": path, "content": body }), "Written.".to_owned())
            }
            Tool::Todo => (
                "TodoWrite",
                json!({ "todos": [{ "task": format!("step {round}"), "status": "open" }] }),
                "Noted.".to_owned(),
            ),
            Tool::Agent => {
                ("Task", json!({ "prompt": body }), "The other agent is done.".to_owned())
            }
            Tool::Compact => ("compact", json!({}), "Compacted.".to_owned()),
            Tool::Snip => ("snip", json!({ "results": asked }), "Marked.".to_owned()),
        }
    }
}

impl Left {
    /// A note of some length, and the last few messages from anywhere on.
    fn of(&self, messages: &[Message]) -> RecordedCompaction {
        let at = messages.len() * 2 / 3;
        let note = Message::text(Role::User, "What was said. ".repeat(self.words));
        let note = note.with_tags(self.is_marked.then_some(Tag::CompactSummary));
        let kept = at.saturating_sub(self.kept)..at;
        RecordedCompaction {
            at,
            trigger: None,
            pre_tokens: None,
            usage: None,
            after: CompactedTo::Replaced(vec![
                Recorded::Written(Arc::new(note)),
                Recorded::Kept(kept),
            ]),
        }
    }
}
