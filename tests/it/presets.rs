//! Every preset on a small session, call by call: what fired, why, what it cost, and what the
//! context was.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use proctor::model::offline::Offline;
use proctor::model::scripted::response;
use proctor::model::{CallFailure, Purpose, Request};
use proctor::record::{End, Level};
use proctor::replay::Models;
use proctor::session::import;
use proctor::session::import::tool_names::class_of;
use proctor::session::{ContentBlock, JsonText, Message, Role, Session, Tag, ToolUse};
use proctor::step::Answer;
use proctor::strategy::law::Law;
use proctor::strategy::preset::PRESETS;
use proctor::units::{Timestamp, Tokens};
use proctor::window::Window;
use serde_json::{Value, json};

use crate::shared;
use crate::support::{answers, prepared, run, said, session, strategy, tool_result, typed};
use crate::walk::Walk;

fn at(minutes: i64, mut message: Message) -> Message {
    message.timestamp = Some(Timestamp(minutes * 60_000));
    message
}

fn uses(calls: &[(&str, &str, Value)]) -> Message {
    let block = |(id, name, input): &(&str, &str, Value)| {
        ContentBlock::ToolUse(ToolUse {
            id: (*id).into(),
            name: (*name).into(),
            class: class_of(name),
            input: JsonText::of(input),
        })
    };
    Message::new(Role::Assistant, calls.iter().map(block).collect())
}

/// So many characters about `name`.
fn about(name: &str, chars: usize) -> String {
    format!("{name} line of text\n").repeat(chars / 10)[..chars].to_owned()
}

/// A session in which each of Claude Code's layers has something to do in a window of 60,000.
fn laddered() -> Session {
    let read = |id: &str, path: &str| uses(&[(id, "Read", json!({ "file_path": path }))]);
    let greps: Vec<String> = (0..6).map(|n| format!("g{n}")).collect();
    let searches: Vec<_> = greps
        .iter()
        .map(|id| (id.as_str(), "Grep", json!({ "pattern": id })))
        .collect();
    let found = greps.iter().map(|id| tool_result(id, &about(id, 8_000)));
    let a = about("a.rs", 8_000);
    session(vec![
        at(0, typed("Fix the failing test in a.rs.")),
        at(1, read("r0", "a.rs")),
        at(1, answers("r0", &a)),
        at(2, read("r1", "a.rs")),
        at(2, answers("r1", &a)),
        at(
            3,
            uses(&[("b0", "Bash", json!({ "command": "make test" }))]),
        ),
        at(4, answers("b0", &about("log", 210_000))),
        at(5, uses(&[("s0", "snip", json!({ "results": ["r0"] }))])),
        at(5, answers("s0", "Marked.")),
        at(6, uses(&searches)),
        at(6, Message::new(Role::User, found.collect())),
        at(7, said("Found it.")),
        at(
            90,
            typed("Go on.").with_tags([Tag::TypedUser, Tag::PhaseEnd]),
        ),
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
        at(97, said("All of it is done.")),
    ])
}

/// A session of many small steps, with a task list, one output of 100,000 characters, and later
/// some of 20,000.
fn busy() -> Session {
    let todo = |id: &str, open: usize| uses(&[(id, "TodoWrite", json!({ "open": open }))]);
    let mut messages = vec![
        typed("Do all the steps; use port 8443."),
        todo("t0", 50),
        answers("t0", "Noted: 50 open."),
        uses(&[("big", "Bash", json!({ "command": "make" }))]),
        answers("big", &about("make", 100_000)),
        Message::text(Role::User, "<turn-aborted>").with_tags([Tag::Meta]),
        typed("And keep the log."),
    ];
    for step in 0..48 {
        let id = format!("c{step}");
        let name = if step % 4 == 0 { "Read" } else { "Bash" };
        messages.push(uses(&[(&id, name, json!({ "step": step }))]));
        let chars = if step > 44 { 20_000 } else { 200 };
        messages.push(answers(&id, &about(&id, chars)));
    }
    messages.push(said("All steps are done."));
    session(messages)
}

/// Eight files are read and half of them changed; in a window of 60,000 the next one read is the one
/// with which 60 % of it are full.
fn edited() -> Session {
    let mut messages = vec![typed("Rename the type everywhere.")];
    let mut read = |at: usize| {
        let (id, path) = (format!("r{at}"), format!("file_{at}.rs"));
        messages.push(uses(&[(&id, "Read", json!({ "file_path": path }))]));
        messages.push(answers(&id, &about(&path, 12_000)));
        if at < 4 {
            let (id, input) = (
                format!("e{at}"),
                json!({ "file_path": path, "new_string": "B" }),
            );
            messages.push(uses(&[(&id, "Edit", input)]));
            messages.push(answers(&id, "Done."));
        }
    };
    (0..9).for_each(&mut read);
    messages.push(said("That was the last one."));
    session(messages)
}

/// Summarises the first time, fails whenever there is a summary already, and recovers.
fn model(_: usize, request: &Request) -> Answer {
    let mut messages = request.messages.iter();
    match request.purpose {
        Purpose::Recovery => Ok(response("<summary>\nRECOVERED\n</summary>")),
        Purpose::Background => Ok(response("NOTES")),
        _ if messages.any(|message| message.has_tag(Tag::CompactSummary)) => {
            Err(CallFailure::Server)
        }
        _ => Ok(response(
            "<analysis>\nthoughts\n</analysis>\n<summary>\nSUMMARY\n</summary>",
        )),
    }
}

/// The walk in words: every call, and what is new in the context wherever something was done.
fn told(walk: &Walk) -> String {
    let record = &walk.record;
    let mut out = String::new();
    let mut before: BTreeSet<&str> = BTreeSet::new();
    for (call, tokens) in record.prompt_tokens.iter().enumerate() {
        let _ = writeln!(out, "call {call}: {tokens} tokens");
        for asked in record.model_calls.iter().filter(|asked| asked.call == call) {
            let usage = asked.usage;
            let _ = write!(out, "  asked ({:?}): ", asked.purpose);
            let _ = write!(out, "{} in, {} out", usage.input_uncached, usage.output);
            let failure = asked.failure.iter().map(|failure| format!(", {failure}"));
            let _ = writeln!(out, "{}", failure.collect::<String>());
        }
        for failure in record
            .failures
            .iter()
            .filter(|failure| failure.call == call)
        {
            let _ = writeln!(out, "  {} failed: {}", failure.stage, failure.error);
        }
        let mut fired = false;
        for event in record.compactions.iter().filter(|event| event.call == call) {
            fired = true;
            let (before, after) = (event.before, event.after);
            let _ = writeln!(
                out,
                "  {}: {}, {before} to {after}",
                event.stage, event.reason
            );
        }
        let context = &walk.contexts[call];
        if fired {
            outline(context, &before, &mut out);
        }
        before = context.iter().map(String::as_str).collect();
    }
    for violation in &record.violations {
        let (level, from, rule) = (violation.level, violation.call, &violation.rule);
        let _ = writeln!(out, "{level:?} from call {from}: {rule}");
    }
    let _ = writeln!(out, "{:?}", record.end);
    out
}

/// What is new in a context, with the messages between in numbers.
fn outline(context: &[String], before: &BTreeSet<&str>, out: &mut String) {
    let mut same = 0;
    let skipped = |same: &mut usize, out: &mut String| {
        if *same > 0 {
            let _ = writeln!(out, "    ({same} more)");
        }
        *same = 0;
    };
    for line in context {
        let number = line.split(':').next().unwrap_or_default();
        if before.contains(line.as_str()) || number.parse::<usize>().is_ok() {
            same += 1;
        } else {
            skipped(&mut same, out);
            let _ = writeln!(out, "    {line}");
        }
    }
    skipped(&mut same, out);
}

#[test]
fn every_preset_walks_through_its_session() {
    for (name, _) in PRESETS {
        let output = Tokens(16_384);
        let of = |tokens, max_output| Window {
            max_output,
            ..Window::new(Tokens(tokens))
        };
        let (session, window) = match *name {
            "snip-then-compact" | "compact-directly" => (edited(), of(60_000, output)),
            // The notes are not enough in a smaller one: nearly all that was said stays.
            "claude-code-session-memory" => (laddered(), of(80_000, output)),
            name if name.starts_with("claude-code") => (laddered(), of(60_000, output)),
            "manual-phases" => (laddered(), of(60_000, output)),
            // These recover by themselves, or die, in a window that is too small.
            "codex" | "aloop-rfc005" | "none" => (busy(), of(20_000, Tokens::ZERO)),
            _ => (busy(), of(200_000, Tokens::ZERO)),
        };
        let spec = strategy(name);
        let walk = Walk::of(session, &spec, window, model);
        let stages = spec.stages().unwrap().join("\n");
        insta::assert_snapshot!(*name, format!("{stages}\n\n{}", told(&walk)));
    }
}

/// Recordings of a real product under every preset, in a window of half their size.
#[test]
fn shared_recordings_are_refused_only_where_a_preset_says_so() {
    let mut files = Vec::new();
    for name in ["sessions/claude-code", "oracles/peers/sessions"] {
        let Some(folder) = shared::folder(name) else {
            return;
        };
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            files.extend((path.extension().is_some_and(|end| end != "md")).then_some(path));
        }
    }
    files.sort();
    let mut wrong = Vec::new();
    let mut fired = BTreeSet::new();
    for file in files {
        let path = file.display();
        // Some are no sessions at all: importing them is another test's business.
        let Ok(sessions) = import::load(&file) else {
            continue;
        };
        for session in sessions {
            let prepared = prepared(session);
            let models = Models {
                summariser: Arc::new(Offline::new(prepared.counts().clone())),
                reader: None,
                judge: None,
            };
            let window = prepared.largest_prompt().tokens.0 / 2;
            for (name, _) in PRESETS {
                let record = run(&prepared, name, window, &models).record;
                if !record.compactions.is_empty() {
                    fired.insert(*name);
                }
                if let End::Failed { error, .. } = &record.end {
                    wrong.push(format!("{path} under {name}: {error}"));
                }
                let breaks = strategy(name).breaks().unwrap();
                let mut violations = record.violations.iter();
                let rejected = violations.find(|one| one.level == Level::Rejected);
                if let Some(one) = rejected.filter(|_| !breaks.contains(&Law::ValidContext)) {
                    wrong.push(format!(
                        "{path} under {name}: {} at call {}",
                        one.rule, one.call
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(fired.len() > 12, "{fired:?}");
}
