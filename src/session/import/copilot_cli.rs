//! Copilot CLI keeps a log of events, one per line: `type`, `data`, `id`, `timestamp`. Its first
//! versions wrote one object, of which `chatMessages` are the messages as the API has them.
//!
//! Rules of this format, beside those every importer shares:
//! - What the model was sent of a user's message is its `transformedContent`.
//! - Calls stand in `toolRequests`, and once more where they are carried out. Those that only stand
//!   there are calls nobody else recorded: of a sub-agent, or of the user.
//! - What a sub-agent says and does names the tool call it came from (`parentToolCallId`, or
//!   `agentId` of newer versions): each is a session of its own.
//! - A compaction runs beside the work: what was said since it began stays. It takes effect with
//!   the next call.
//! - A rewind takes an event and all after it back.
//! - Each message says what the model wrote in tokens; what it read is told only where the events
//!   `assistant.usage` were kept.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::assemble::{add_counts, count};
use super::conversations::{self, Object, Shape};
use super::lines::{Lines, Strictness, head_lines};
use super::openai_chat::{self, Dialect};
use super::sketch;
use super::{ImportError, Importer};
use crate::session::{Session, Source, Tag};
use crate::units::{Timestamp, Usage};
use conversation::Reading;

mod conversation;

/// Reads event logs of Copilot CLI.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopilotCli;

const FORMAT: &str = "copilot-cli";

/// The files of the first versions.
const FIRST: Shape = Shape::of_messages(FORMAT, "chatMessages");

/// Whether a file that begins so is of the first versions.
fn is_first(head: &[u8]) -> bool {
    let values = sketch::values(head);
    let has = |key| values.first().is_some_and(|it| it.get(key).is_some());
    has("sessionId") && has("chatMessages")
}

/// Kinds of events that are no part of the conversation, by the first word of their name.
const BOOKKEEPING: &[&str] = &[
    "session",
    "hook",
    "permission",
    "subagent",
    "skill",
    "command",
    "commands",
    "capabilities",
    "elicitation",
    "external_tool",
    "exit_plan_mode",
    "user_input",
    "pending_messages",
    "mcp",
    "sampling",
    "abort",
    "assistant",
    "tool",
    "system",
    "model",
];

impl Importer for CopilotCli {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        let (lines, rest) = head_lines(head);
        let first = lines.first().copied().unwrap_or(rest);
        let text = String::from_utf8_lossy(first);
        let kind = text.split_once("\"type\"").and_then(|(_, after)| {
            let value = after.trim_start().strip_prefix(':')?.trim_start();
            value.strip_prefix('"')?.split('"').next()
        });
        let is_event = kind.is_some_and(|kind| {
            let named = kind.split_once('.').map(|(first, _)| first);
            matches!(
                named,
                Some("session" | "user" | "assistant" | "tool" | "hook" | "system")
            )
        });
        text.starts_with('{') && text.contains("\"data\"") && is_event || is_first(head)
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        // What cannot be read is said where it is read.
        if is_first(input.fill_buf().unwrap_or_default()) {
            return conversations::sessions(FIRST, path, input, |mut conversation, assembler| {
                let model = conversation.around.take_text("selectedModel");
                openai_chat::read(conversation, Dialect::Api, assembler);
                let model = model.map(|model| model.to_string());
                assembler.header.model = assembler.header.model.take().or(model);
            });
        }
        let mut lines = Lines::new(path, input, Strictness::Recording);
        let mut log = Log::default();
        while let Some(line) = lines.next()? {
            let event: Box<RawValue> = line.parse()?;
            log.collect(event);
        }
        let Log {
            events,
            usages,
            mut source,
        } = log;
        let mut main = Reading::new([], &usages);
        FORMAT.clone_into(&mut source.format);
        add_counts(
            &mut source,
            Source {
                warnings: std::mem::take(&mut lines.warnings),
                ..Source::default()
            },
        );
        main.assembler.source = source;
        let mut sides: Vec<Reading<'_>> = Vec::new();
        let mut agents: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for event in events {
            let Some(agent) = event.agent() else {
                main.event(&event);
                continue;
            };
            let at = *agents.entry(agent).or_insert_with(|| {
                let mut side = Reading::new([Tag::Sidechain], &usages);
                FORMAT.clone_into(&mut side.assembler.source.format);
                sides.push(side);
                sides.len() - 1
            });
            sides[at].event(&event);
        }
        let id = lines.session_id();
        let mut sessions = Vec::new();
        sessions.extend(main.finish(id.clone(), path)?);
        for (at, side) in sides.into_iter().enumerate() {
            sessions.extend(side.finish(format!("{id}-side-{}", at + 1), path)?);
        }
        if sessions.is_empty() {
            return Err(ImportError::NoConversation { path: lines.path() });
        }
        Ok(sessions)
    }
}

/// One event of the log.
struct Event {
    kind: Arc<str>,
    id: Option<Arc<str>>,
    time: Result<Option<Timestamp>, ()>,
    agent: Option<Arc<str>>,
    raw: Box<RawValue>,
}

impl Event {
    fn data(&self) -> Object<'_> {
        let data = Object::read(&self.raw).and_then(|mut event| event.take_object("data"));
        data.unwrap_or_default()
    }

    /// The sub-agent whose event it is.
    fn agent(&self) -> Option<Arc<str>> {
        let named = self.agent.clone();
        named.or_else(|| self.data().take_text("parentToolCallId"))
    }
}

/// The events that were not taken back.
#[derive(Default)]
struct Log {
    events: Vec<Event>,
    /// What the provider reports, by its name for the call.
    usages: BTreeMap<Arc<str>, Usage>,
    source: Source,
}

impl Log {
    fn collect(&mut self, raw: Box<RawValue>) {
        let read = Object::read(&raw).map(|mut event| {
            let time = match event.take_text("timestamp") {
                Some(text) => match text.parse::<jiff::Timestamp>() {
                    Ok(time) => Ok(Some(Timestamp(time.as_millisecond()))),
                    Err(_) => Err(()),
                },
                None => Ok(None),
            };
            let (id, agent) = (event.take_text("id"), event.take_text("agentId"));
            let kind = event.take_text("type");
            (
                kind.unwrap_or_else(|| "without type".into()),
                id,
                time,
                agent,
            )
        });
        let Some((kind, id, time, agent)) = read else {
            count(&mut self.source.unknown, "event that is no object");
            return;
        };
        let event = Event {
            kind,
            id,
            time,
            agent,
            raw,
        };
        match &*event.kind {
            "session.snapshot_rewind" => self.rewind(&event),
            "assistant.usage" => {
                let data = Object::read(&event.raw).and_then(|mut event| event.take("data"));
                if let Some((call, data)) = event.data().take_text("apiCallId").zip(data) {
                    self.usages.insert(call, conversation::usage(data));
                }
                self.events.push(event);
            }
            _ => self.events.push(event),
        }
    }

    fn rewind(&mut self, event: &Event) {
        let to = event.data().take_text("upToEventId");
        let to = to.and_then(|to| {
            let is_it = |event: &Event| event.id.as_ref() == Some(&to);
            self.events.iter().position(is_it)
        });
        match to {
            Some(at) => {
                self.events.truncate(at);
                count(&mut self.source.skipped, "rewind");
            }
            None => count(
                &mut self.source.warnings,
                "a rewind names an event that is not in the file",
            ),
        }
    }
}
