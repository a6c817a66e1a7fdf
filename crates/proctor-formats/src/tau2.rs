//! tau2-bench writes an evaluation as one object: `simulations`, each a conversation, and `info`
//! about the agent and its environment. A simulation may also be alone in a file.
//!
//! Rules of this format, beside those every importer shares:
//! - Calls are flat: `{id, name, arguments, requestor}`. The simulated user has tools too; the agent
//!   sees neither those calls nor their results, and they are counted.
//! - The policy of the environment is the system prompt, as far as it was recorded.
//! - The greeting that every run begins with was written by the product.
//! - A voice run holds ticks of speech instead of messages, and cannot be replayed.

use super::prelude::*;

/// The shapes of a file.
const SHAPES: &str =
    "simulations | info/environment_info tasks | task_id ticks | task_id messages start_time";

pub(super) const IMPORTER: Importer = Importer::new("tau2", Detect::First(SHAPES), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    let mut sessions = Vec::new();
    for value in file.values(source)? {
        let mut results = Object::read(value.parse()?)
            .ok_or_else(|| value.error("neither a simulation nor an object with some"))?;
        let info = results.inner("info");
        let simulations: Vec<&RawValue> = match results.take("simulations") {
            Some(list) => value.parse_part(list.get())?,
            None => vec![value.parse()?],
        };
        for raw in simulations {
            let Some(run) = Object::read(raw) else {
                source.not_understood("simulation that is no object");
                continue;
            };
            let mut reading = Tau2Reading::default();
            reading.info(info.clone());
            if !reading.simulation(run) {
                source.skip("voice run");
                continue;
            }
            sessions.extend(reading.assembler.finish(file.id.clone(), &file.path)?);
        }
    }
    if sessions.is_empty() && !source.skipped.is_empty() {
        let what = "it holds ticks of speech, and no messages";
        return Err(ImportError::NoMessages(file.path.clone(), what));
    }
    Ok(sessions)
}

#[derive(Default)]
struct Tau2Reading {
    assembler: Assembler,
    /// Calls of the simulated user's.
    theirs: BTreeSet<Arc<str>>,
}

impl Tau2Reading {
    /// The evaluation's facts about the agent and its environment.
    fn info(&mut self, mut info: Object<'_>) {
        let mut environment = info.inner("environment_info");
        self.assembler.header.system = environment.take_text("policy");
        let tools: Option<BTreeMap<Arc<str>, &RawValue>> = environment.take_as("tool_defs");
        for (name, definition) in tools.unwrap_or_default() {
            self.assembler.tool(Some(name), definition);
        }
        self.assembler.header.model = info.inner("agent_info").take_text("llm");
    }

    /// Reads a run; a voice run holds nothing that can be read.
    fn simulation(&mut self, mut run: Object<'_>) -> bool {
        let messages = run.items("messages");
        if messages.is_empty() && run.has("ticks") {
            return false;
        }
        for raw in messages {
            self.message(raw);
        }
        run.count_left("simulation key", &mut self.assembler);
        true
    }

    fn message(&mut self, raw: &RawValue) {
        let mut message = Object::read(raw).unwrap_or_default();
        let role = message.take_text("role");
        let timestamp = message.take_time("timestamp", &mut self.assembler);
        match role.as_deref() {
            Some("assistant") => self.agent(message, timestamp),
            Some("user") => {
                // The agent sees no call of the simulated user's.
                for mut call in message.objects("tool_calls") {
                    self.theirs.extend(call.take_text("id"));
                    self.assembler.skip("call of the user's");
                }
                let blocks = message.take_blocks("content", Speaker::User, &mut self.assembler);
                if !blocks.is_empty() {
                    self.assembler.hear(None, blocks, timestamp, [Tag::TypedUser]);
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
            role => keep_unread(role.unwrap_or("without role"), raw, &mut self.assembler),
        }
    }

    fn agent(&mut self, mut message: Object<'_>, timestamp: When) {
        let first = self.assembler.is_empty();
        let mut blocks = message.take_blocks("content", Speaker::User, &mut self.assembler);
        let calls = message.items("tool_calls");
        blocks.extend(self.assembler.calls("tool_call", calls, |call, _| {
            let call = flat_call(call, ["id", "name", "arguments"])?;
            (!call.as_use()?.id.is_empty()).then_some(call)
        }));
        let usage = message.take_usage("usage", CachedTokens::Within, &mut self.assembler);
        // The model was not called for the greeting.
        let greeting = first && usage.is_none();
        let record = ModelRecord::of(blocks, timestamp)
            .by(None, message.inner("raw_data").take_text("model"), usage)
            .tagged(greeting.then_some(Tag::Synthetic));
        self.assembler.assistant(None, record);
    }

    fn result(&mut self, mut message: Object<'_>, timestamp: When) {
        let id = message.take_text("id").unwrap_or_default();
        let requestor = message.take_text("requestor");
        if requestor.map_or(self.theirs.contains(&id), |requestor| &*requestor == "user") {
            return self.assembler.skip("result of the user's");
        }
        let content = message.take_blocks("content", Speaker::Tool, &mut self.assembler);
        self.assembler.hear_result(id, content, message.take_flag("error"), timestamp);
    }
}
