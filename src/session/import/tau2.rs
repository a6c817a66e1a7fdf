//! tau2-bench writes an evaluation as one object: `simulations`, each a conversation, and `info`
//! about the agent and its environment. A simulation may also stand alone in a file.
//!
//! Rules of this format, beside those every importer shares:
//! - Calls are flat: `{id, name, arguments, requestor}`. The simulated user has tools too; the agent
//!   sees neither those calls nor their results, and they are counted.
//! - The policy of the environment is the system prompt, as far as it was recorded.
//! - The greeting that every run begins with was written by the product.
//! - A voice run holds ticks of speech instead of messages, and cannot be replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::assemble::{Assembler, AssistantRecord, UserRecord, add_counts, count};
use super::content;
use super::conversations::{Object, keep_unread, name};
use super::documents::Documents;
use super::openai_chat::parts;
use super::sketch;
use super::tool_names::class_of;
use super::{ImportError, Importer};
use crate::session::{
    ContentBlock, JsonText, Session, Source, Tag, ToolResult, ToolSchema, ToolUse,
};
use crate::units::Timestamp;

/// Reads results of tau2-bench.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tau2;

const FORMAT: &str = "tau2";

impl Importer for Tau2 {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, head: &[u8]) -> bool {
        let values = sketch::values(head);
        let Some(first) = values.first() else {
            return false;
        };
        let has = |at: &str| first.pointer(at).is_some();
        has("/simulations")
            || has("/info/environment_info") && has("/tasks")
            || has("/task_id") && (has("/ticks") || has("/messages") && has("/start_time"))
    }

    fn import(&self, path: &Path, input: &mut dyn BufRead) -> Result<Vec<Session>, ImportError> {
        let documents = Documents::read(path, input)?;
        let (values, cut) = documents.values()?;
        let mut first = Source {
            warnings: documents.warnings.clone(),
            ..Source::default()
        };
        if cut {
            count(&mut first.warnings, "the last line was cut and is left out");
        }
        let mut sessions = Vec::new();
        for value in &values {
            let mut results = Object::read(value.parse()?)
                .ok_or_else(|| value.error("neither a simulation nor an object with some"))?;
            let info = results.take_object("info").unwrap_or_default();
            let simulations: Vec<&RawValue> = match results.take("simulations") {
                Some(list) => value.parse_part(list.get())?,
                None => vec![value.parse()?],
            };
            for raw in simulations {
                let Some(run) = Object::read(raw) else {
                    count(&mut first.unknown, "simulation that is no object");
                    continue;
                };
                let mut reading = Reading::default();
                FORMAT.clone_into(&mut reading.assembler.source.format);
                reading.info(info.clone());
                if reading.simulation(run) == Run::Voice {
                    count(&mut first.skipped, "voice run");
                    continue;
                }
                let id = documents.id.clone();
                sessions.extend(reading.assembler.finish(id, path)?);
            }
        }
        if sessions.is_empty() {
            let path = path.to_owned();
            return Err(if first.skipped.is_empty() {
                ImportError::NoConversation { path }
            } else {
                let what = "it holds ticks of speech, and no messages";
                ImportError::NoMessages { path, what }
            });
        }
        add_counts(&mut sessions[0].parts.source, first);
        name(&mut sessions, &documents.id);
        Ok(sessions)
    }
}

/// What a simulation is made of.
#[derive(Debug, PartialEq, Eq)]
enum Run {
    Text,
    Voice,
}

#[derive(Default)]
struct Reading {
    assembler: Assembler,
    /// Calls of the simulated user's.
    theirs: BTreeSet<Arc<str>>,
}

impl Reading {
    /// What the evaluation says of the agent and its environment.
    fn info(&mut self, mut info: Object<'_>) {
        let environment = info.take_object("environment_info");
        let mut environment = environment.unwrap_or_default();
        self.assembler.header.system = environment.take_text("policy");
        let tools = environment.take("tool_defs");
        let tools = tools.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let tools: BTreeMap<Arc<str>, &RawValue> = tools.unwrap_or_default();
        for (name, definition) in tools {
            self.assembler.header.tools.push(ToolSchema {
                name,
                definition: JsonText::from(definition),
            });
        }
        let agent = info.take_object("agent_info");
        let model = agent.and_then(|mut agent| agent.take_text("llm"));
        self.assembler.header.model = model.map(|model| model.to_string());
    }

    fn simulation(&mut self, mut run: Object<'_>) -> Run {
        let messages = run.take_list("messages").unwrap_or_default();
        if messages.is_empty() && run.has("ticks") {
            return Run::Voice;
        }
        for raw in messages {
            self.message(raw);
        }
        run.count_left("simulation key", &mut self.assembler);
        Run::Text
    }

    fn message(&mut self, raw: &RawValue) {
        let Some(mut message) = Object::read(raw) else {
            return keep_unread("malformed", raw, &mut self.assembler);
        };
        let role = message.take_text("role");
        let timestamp = self.time(&mut message);
        match role.as_deref() {
            Some("assistant") => self.agent(message, timestamp),
            Some("user") => {
                for call in message.take_list("tool_calls").into_iter().flatten() {
                    self.theirs(call);
                }
                let blocks = content::blocks(message.take("content"), &mut self.assembler, part);
                if !blocks.is_empty() {
                    self.hear(blocks, timestamp, vec![Tag::TypedUser]);
                }
            }
            Some("tool") => match message.take_list("tool_messages") {
                Some(messages) => {
                    for raw in messages {
                        self.message(raw);
                    }
                }
                None => self.result(message, timestamp),
            },
            Some("system") if self.assembler.is_empty() => {
                self.assembler.header.system = message.take_text("content");
            }
            Some(role) => keep_unread(role, raw, &mut self.assembler),
            None => keep_unread("without role", raw, &mut self.assembler),
        }
    }

    /// Times are without a zone, or with one; they are taken for UTC.
    fn time(&mut self, message: &mut Object<'_>) -> Option<Timestamp> {
        let text = message.take_text("timestamp")?;
        let local = || {
            let local = text.parse::<jiff::civil::DateTime>().ok()?;
            Some(local.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
        };
        let time = text.parse::<jiff::Timestamp>().ok().or_else(local);
        if time.is_none() {
            self.assembler.warn("a timestamp cannot be read");
        }
        Some(Timestamp(time?.as_millisecond()))
    }

    fn hear(&mut self, blocks: Vec<ContentBlock>, timestamp: Option<Timestamp>, tags: Vec<Tag>) {
        let record = UserRecord {
            blocks,
            timestamp,
            tags,
        };
        self.assembler.user(None, record);
    }

    /// A call of the simulated user's, which the agent does not see.
    fn theirs(&mut self, raw: &RawValue) {
        let id = Object::read(raw).and_then(|mut call| call.take_text("id"));
        self.theirs.extend(id);
        self.assembler.skip("call of the user's");
    }

    fn agent(&mut self, mut message: Object<'_>, timestamp: Option<Timestamp>) {
        let is_first = self.assembler.is_empty();
        let mut blocks = content::blocks(message.take("content"), &mut self.assembler, part);
        for raw in message.take_list("tool_calls").into_iter().flatten() {
            let mut call = Object::read(raw).unwrap_or_default();
            let id = call.take_text("id").filter(|id| !id.is_empty());
            blocks.push(match (id, call.take_text("name")) {
                (Some(id), Some(name)) => ContentBlock::ToolUse(ToolUse {
                    id,
                    class: class_of(&name),
                    name,
                    input: call
                        .take("arguments")
                        .map_or_else(|| JsonText::of(&Value::Null), JsonText::from),
                }),
                _ => content::unknown("tool_call", raw, &mut self.assembler),
            });
        }
        let usage = message.take("usage");
        let mut raw_data = message.take_object("raw_data").unwrap_or_default();
        let usage = usage.and_then(|raw| parts::usage(raw, &mut self.assembler));
        let record = AssistantRecord {
            model: raw_data.take_text("model"),
            blocks,
            // Nobody called the model for the greeting.
            tags: if is_first && usage.is_none() {
                vec![Tag::Synthetic]
            } else {
                Vec::new()
            },
            usage,
            timestamp,
            ..AssistantRecord::default()
        };
        self.assembler.assistant(None, record);
    }

    fn result(&mut self, mut message: Object<'_>, timestamp: Option<Timestamp>) {
        let id = message.take_text("id").unwrap_or_default();
        let requestor = message.take_text("requestor");
        let is_theirs = match requestor.as_deref() {
            Some(requestor) => requestor == "user",
            None => self.theirs.contains(&id),
        };
        if is_theirs {
            return self.assembler.skip("result of the user's");
        }
        let raw = message.take("content");
        let content = match raw.and_then(content::text) {
            Some(text) => vec![ContentBlock::Text(text)],
            None => content::blocks(raw, &mut self.assembler, part),
        };
        let is_error = message.take("error").is_some_and(|raw| raw.get() == "true");
        let block = ContentBlock::ToolResult(ToolResult {
            tool_use_id: id,
            content,
            is_error,
        });
        self.hear(vec![block], timestamp, Vec::new());
    }
}

fn part(raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    match content::text(raw) {
        Some(text) => ContentBlock::Text(text),
        None => content::unknown("part", raw, assembler),
    }
}
