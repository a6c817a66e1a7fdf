//! opencode exports a session as one object: `info`, and `messages` of which each has its own
//! `info` and a list of `parts`. Its database has the same as rows, and before it had one, a folder
//! had them as files (`storage/`).
//!
//! Rules of this format, beside those every importer shares:
//! - A message of the model's holds one API call or several: `step-finish` ends each, with its
//!   usage, in which cached tokens are counted apart.
//! - A tool part is a call and its result. Both are kept by their place: ids may be repeated.
//! - A compaction is a part of a user message; the message after it, marked `summary`, holds what
//!   was written. From `tail_start_id` on messages stayed.
//! - Old results are cleared without a message: each says when (`time.compacted`), and is still
//!   whole in the file. All that were cleared between two messages are one compaction.

use super::prelude::*;
use parts::{CallStep, CompactionRequest, Part};

#[cfg(feature = "sqlite")]
pub(super) mod database;
mod parts;
#[cfg(feature = "sqlite")]
mod rows;
mod storage;

/// The question that the product asks in the user's name before a summary.
const QUESTION: &str = "What did we do so far?";

/// The shapes of an export, and of what a session says of itself in a file of its own.
const SHAPES: &str = "info/directory info/title | messages/0/parts messages/0/info/role | \
     id^ses_ title:s version,directory:s";
const SESSION: &str = "id^ses_ title:s version,directory:s";

pub(super) const IMPORTER: Importer = Importer::new("opencode", Detect::First(SHAPES), import)
    .with_folders(storage::is_storage, storage::messages_of, storage::read);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let values = file.values(source)?;
    let mut sessions = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let export = Object::read(value.parse()?)
            .and_then(|mut export| Some((export.take("info")?, export.take_list("messages")?)));
        let Some((info, messages)) = export else {
            if values.len() == 1 {
                return Err(value.error(match serde_json::from_str(value.text) {
                    Ok(info) if is_shaped(&info, SESSION) => {
                        "this names a session; what was said in it stands in the folders \
                         `message` and `part` beside `session`"
                    }
                    _ => "a session is an object with `info` and `messages`",
                }));
            }
            source.not_understood("value that is no session");
            continue;
        };
        let parent = Object::read(info).and_then(|mut info| info.take_text("parentID"));
        let mut reading = OpencodeReading::new(parent.as_deref());
        for raw in messages {
            let mut message = Object::read(raw).unwrap_or_default();
            match message.take("info") {
                Some(info) => reading.message(None, info, &message.items("parts")),
                None => keep_unread("malformed", raw, &mut reading.assembler),
            }
        }
        let id = match values.len() {
            1 => file.id.clone(),
            _ => format!("{}-{}", file.id, at + 1),
        };
        sessions.extend(reading.finish(id, &file.path)?);
    }
    Ok(sessions)
}

/// The tool that starts a sub-agent.
const TASK: &str = "task";

/// A message as it is stored: its name, what it says of itself, and its parts.
struct StoredMessage {
    id: Arc<str>,
    info: Arc<str>,
    parts: Vec<Arc<str>>,
}

/// One session, growing message by message.
#[derive(Default)]
struct OpencodeReading {
    assembler: Assembler,
    /// Names that were given to messages and calls.
    names: BTreeSet<Arc<str>>,
    uses: BTreeSet<Arc<str>>,
    /// The tool uses whose results are cleared at a time.
    cleared: BTreeMap<Timestamp, Vec<Arc<str>>>,
    /// The compaction that was asked for last, and the message that asked.
    asked: Option<(Text, CompactionRequest)>,
    /// The size of the context at the last call.
    last_size: Option<Tokens>,
}

impl OpencodeReading {
    /// A session; one that a tool of another started is a side chain of that.
    fn new(parent: Option<&str>) -> Self {
        let mut reading = Self::default();
        reading.assembler.is_side = parent.is_some();
        reading.assembler.source.main = parent.map(session_name);
        reading
    }

    /// Reads messages that are stored with their parts apart.
    fn stored(&mut self, messages: &[StoredMessage], not_json: &str) {
        for message in messages {
            let info = self.json(&message.info, not_json);
            let parts: Vec<&RawValue> =
                message.parts.iter().filter_map(|part| self.json(part, not_json)).collect();
            if let Some(info) = info {
                self.message(Some(message.id.clone()), info, &parts);
            }
        }
    }

    /// The JSON in a text; a text of none is counted as `not_json`.
    fn json<'t>(&mut self, text: &'t str, not_json: &str) -> Option<&'t RawValue> {
        let raw = serde_json::from_str(text).ok();
        if raw.is_none() {
            self.assembler.unknown(not_json);
        }
        raw
    }

    /// Reads a message; `id` is its name where the message itself does not say it.
    fn message(&mut self, id: Text, info: &RawValue, parts: &[&RawValue]) {
        let mut object = Object::read(info).unwrap_or_default();
        let id = object.take_text("id").or(id);
        let mut times = object.inner("time");
        let time = times.take_time("created", &mut self.assembler);
        if let Some(time) = time {
            let later = self.cleared.split_off(&time);
            let cleared = std::mem::replace(&mut self.cleared, later);
            self.clear(cleared);
        }
        match object.take_text("role").as_deref() {
            Some("user") => self.user(id, time, parts),
            Some("assistant") if object.take_flag("summary") => {
                // Before 1.0 a call said only when it was done, not why.
                let done = object.take("error").is_none()
                    && (object.take("finish").is_some() || times.take("completed").is_some());
                let tokens = object.take("tokens").filter(|_| done);
                self.assembler.summary_usage = parts::usage(tokens, &mut self.assembler);
                self.summary(object.take_text("parentID").as_deref(), done, parts);
            }
            Some("assistant") => self.model(id, time, object, parts),
            _ => keep_unread("of unknown role", info, &mut self.assembler),
        }
    }

    /// The name, unless another message has it: exports may have their ids replaced.
    fn own(&mut self, id: Text) -> Text {
        let name = id?;
        if self.names.insert(name.clone()) {
            return Some(name);
        }
        self.assembler.warn("an id stands for several messages; they are told apart by place");
        None
    }

    fn user(&mut self, id: Text, time: When, parts: &[&RawValue]) {
        let mut blocks = Vec::new();
        let mut is_typed = false;
        for raw in parts {
            match parts::read(raw, &mut self.assembler) {
                Part::Block(block) => {
                    is_typed = true;
                    blocks.push(block);
                }
                Part::Injected(block) => blocks.push(block),
                Part::Compaction(asked) => self.asked = Some((id.clone(), asked)),
                Part::Tool(tool) => {
                    self.assembler.warn("a tool was called in a message of the user's");
                    blocks.push(content::kept(&format!("tool {}", tool.name), raw));
                }
                Part::StepFinish(_) | Part::Nothing => {}
            }
        }
        if blocks.is_empty() {
            return;
        }
        let name = self.own(id);
        let tag = if is_typed { Tag::TypedUser } else { Tag::Meta };
        self.assembler.hear(name.as_ref(), blocks, time, [tag]);
    }

    /// The calls of one message, each with what came of it.
    fn model(&mut self, id: Text, time: When, mut info: Object<'_>, parts: &[&RawValue]) {
        let model = info.take_text("modelID").or_else(|| info.inner("model").take_text("id"));
        let name = self.own(id);
        let mut steps: Vec<(CallStep, Option<Usage>)> = Vec::new();
        let mut step = CallStep::default();
        for raw in parts {
            match parts::read(raw, &mut self.assembler) {
                Part::Block(block) | Part::Injected(block) => step.said.push(block),
                Part::Tool(tool) => {
                    let id = self.use_id(tool.id.clone());
                    step.add(tool, id);
                }
                Part::StepFinish(usage) => steps.push((std::mem::take(&mut step), usage)),
                Part::Compaction(_) => {
                    self.assembler.warn("a compaction was asked for by the model");
                }
                Part::Nothing => {}
            }
        }
        if !step.said.is_empty() {
            let unbilled = steps.iter().all(|(_, usage)| usage.is_none());
            let tokens = info.take("tokens").filter(|_| unbilled);
            let usage = parts::usage(tokens, &mut self.assembler);
            // A command starts a sub-agent without asking the model: no step was begun, and nothing was billed.
            let begun = parts.iter().any(|raw| parts::is_start(raw));
            let mut uses = step.said.iter().map(ContentBlock::as_use);
            let tasks = uses.all(|tool_use| tool_use.is_some_and(|call| &*call.name == TASK));
            step.is_command = usage.is_none() && !begun && tasks;
            steps.push((step, usage));
        }
        for (number, (step, usage)) in steps.into_iter().enumerate() {
            let call = name.as_ref().map(|name| match number {
                0 => name.clone(),
                _ => format!("{name}/{number}").into(),
            });
            self.step(call, model.clone(), time, step, usage);
        }
    }

    /// A call, and the results of its tools.
    fn step(&mut self, call: Text, model: Text, time: When, step: CallStep, usage: Option<Usage>) {
        self.last_size = usage.map(|usage| usage.total()).or(self.last_size);
        for (time, tool_use) in step.cleared {
            self.cleared.entry(time).or_default().push(tool_use);
        }
        let name = call.clone();
        let record = ModelRecord::of(step.said, step.time.or(time))
            .by(call, model, usage)
            .tagged(step.is_command.then_some(Tag::Synthetic));
        self.assembler.assistant(name.as_ref(), record);
        self.assembler.hear_results(step.results, step.ended);
    }

    /// A name for a tool use that no other has.
    fn use_id(&mut self, id: Text) -> Arc<str> {
        let given = id.unwrap_or_else(|| "unnamed-call".into());
        let mut id = given.clone();
        let mut number = self.uses.len();
        while !self.uses.insert(id.clone()) {
            number += 1;
            id = format!("{given}-{number}").into();
        }
        if id != given {
            self.assembler.warn("an id stands for several tool uses; they are told apart by place");
        }
        id
    }

    /// Adds the summary of a compaction.
    fn summary(&mut self, parent: Option<&str>, is_done: bool, parts: &[&RawValue]) {
        let texts = parts.iter().filter_map(|raw| match parts::read(raw, &mut self.assembler) {
            Part::Block(block @ ContentBlock::Text(_)) => Some(block),
            _ => None,
        });
        let blocks: Blocks = texts.collect();
        if is_done && !blocks.is_empty() {
            self.assembler.skip("call that wrote a summary");
            self.compacted(parent, blocks);
        } else {
            self.assembler.skip("compaction that failed");
        }
    }

    /// A summary was written in answer to the message `parent`.
    fn compacted(&mut self, parent: Option<&str>, summary: Blocks) {
        let at = self.assembler.flush();
        let asked = self.asked.take().filter(|(by, _)| by.as_deref() == parent);
        let mut pieces = Vec::new();
        // Earlier versions wrote a summary without being asked.
        if asked.is_some() {
            let question = vec![ContentBlock::Text(QUESTION.into())];
            pieces.push(Recorded::written(Role::User, question, &[Tag::Meta]));
        }
        pieces.push(Recorded::written(Role::Assistant, summary, &[Tag::CompactSummary]));
        let request = asked.map(|(_, request)| request).unwrap_or_default();
        if let Some(tail) = request.tail {
            match self.assembler.message_of(&tail).filter(|value| *value < at) {
                Some(first) => pieces.push(Recorded::Kept(first..at)),
                None => self.assembler.warn("a compaction kept a message that is not in the file"),
            }
        }
        self.assembler.compacts(request.trigger, self.last_size, CompactedTo::Replaced(pieces));
    }

    /// Clears the results of these tool uses.
    fn clear(&mut self, cleared: BTreeMap<Timestamp, Vec<Arc<str>>>) {
        let tool_uses = cleared.into_values().flatten();
        let results = tool_uses.map(|tool_use| (tool_use, kept_context::CLEARED.into()));
        self.assembler.replaces_results("prune", self.last_size, results);
    }

    fn finish(mut self, id: String, path: &Path) -> Result<Option<Session>> {
        let cleared = std::mem::take(&mut self.cleared);
        self.clear(cleared);
        self.assembler.finish(id, path)
    }
}
