//! Kimi CLI's log of a session: a `metadata` record, then events with the time of each.
//!
//! Rules of this format, beside those every importer shares:
//! - What is recorded from one `StepBegin` to the next is one call, with its results. The parts of
//!   an answer that were streamed are joined already; a `ToolCallPart` goes on with the arguments of
//!   the call before it, though an earlier call's result may come between them.
//! - A step that was interrupted before its `StatusUpdate` came is not in the context afterwards.
//! - A result has a message beside its output: the model reads it first, between tags.
//! - A command (`/compact`) is a turn without a step. The model does not see it.
//! - The events of a sub-agent are wrapped in `SubagentEvent`, under its name or that of the call
//!   that started it.
//! - Usage counts the cached tokens apart. The log holds no summaries: a compaction is known by when
//!   it happened. It holds no model, and no word of a context that was reverted.
//!
//! Source: MoonshotAI/kimi-cli, `src/kimi_cli/wire/types.py` at 026ae98e22, `wire/file.py` at
//! b88bc47c10, `soul/kimisoul.py` at 2a9b5f3e38.

use crate::prelude::*;

/// Events without words of the conversation.
const BOOKKEEPING: &str = "TurnEnd StepBegin CompactionBegin HookTriggered HookResolved \
     MCPLoadingBegin MCPLoadingEnd Notification ApprovalRequest ApprovalResponse \
     ApprovalRequestResolved ToolCallRequest QuestionRequest PlanDisplay";

pub(super) fn detect(head: &Head) -> bool {
    head.any(20, "timestamp message/type:s message/payload:o")
}

pub(super) fn sessions(file: &SourceText, system: Text, source: &mut Source) -> Imported {
    let mut agents = vec![Agent::default()];
    agents[0].assembler.header.system = system;
    let mut names: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for raw in file.raw_lines(source)? {
        let mut record = Object::read(raw).unwrap_or_default();
        let time = record.take_time("timestamp", &mut agents[0].assembler);
        let Some(mut message) = record.take_object("message") else {
            match record.take_text("type").as_deref().unwrap_or("without message") {
                "metadata" => agents[0].assembler.skip("metadata"),
                kind => agents[0].assembler.hear_unknown("record", kind, raw, time),
            }
            continue;
        };
        let mut agent = 0;
        while message.text("type").as_deref() == Some("SubagentEvent") {
            let mut wrapped = message.inner("payload");
            let keys = ["agent_id", "parent_tool_call_id", "task_tool_call_id"];
            let name = wrapped.first_text(&keys);
            let Some(event) = wrapped.take_object("event") else {
                break;
            };
            agent = place_of(name.unwrap_or_default(), &mut names, &mut agents);
            message = event;
        }
        agents[agent].event(message, raw, time);
    }
    agents.iter_mut().for_each(Agent::ends_turn);
    with_side_chains(agents.into_iter().map(|agent| agent.assembler), source, file)
}

/// The main agent, or one that it started.
#[derive(Default)]
struct Agent {
    assembler: Assembler,
    /// What the user said in a turn that has no step yet.
    asked: Option<(Blocks, When)>,
    step: WireStep,
    /// A call whose arguments may go on.
    open: Option<(Arc<str>, Arc<str>, String)>,
    /// Tokens in the context, by the last event that says so.
    context: Option<Tokens>,
}

/// A call of the model's, with the results of its tool uses.
#[derive(Default)]
struct WireStep {
    blocks: Blocks,
    results: Blocks,
    is_answered: bool,
    id: Text,
    usage: Option<Usage>,
    /// When its last part came, and its last result.
    time: When,
    result_time: When,
}

impl Agent {
    fn event(&mut self, mut message: Object<'_>, raw: &RawValue, time: When) {
        let kind = message.take_type();
        let part = message.take("payload");
        let mut payload = part.and_then(Object::read).unwrap_or_default();
        match (&*kind, &mut self.open) {
            ("ToolCallPart", Some((.., arguments))) => {
                arguments.push_str(&payload.take_text("arguments_part").unwrap_or_default());
                return;
            }
            ("ToolCall" | "ContentPart" | "StepInterrupted", _) => self.close_call(),
            _ => {}
        }
        match (&*kind, part) {
            ("TurnBegin" | "SteerInput", Some(_)) => {
                self.ends_turn();
                let said = payload.take_blocks("user_input", Speaker::User, &mut self.assembler);
                self.asked = Some((said, time));
            }
            ("StepBegin", _) => {
                self.ends_step();
                self.asks();
            }
            ("ContentPart", Some(part)) => {
                self.asks();
                self.step.blocks.push(self.assembler.part(part, Speaker::Assistant));
                self.step.time = time;
            }
            ("ToolCall", Some(part)) => {
                self.asks();
                self.step.time = time;
                let mut function = payload.inner("function");
                let arguments = function.take_text("arguments").unwrap_or_default();
                if let Some((id, name)) = payload.take_text("id").zip(function.take_text("name")) {
                    self.open = Some((id, name, arguments.to_string()));
                } else {
                    self.step.blocks.push(self.assembler.unread(&kind, part));
                }
            }
            ("ToolResult", Some(part)) => {
                let knowns = self.result(payload);
                let result = knowns.unwrap_or_else(|| self.assembler.unread(&kind, part));
                self.step.results.push(result);
                self.step.result_time = time;
            }
            ("StatusUpdate", _) => self.status(payload),
            ("StepInterrupted", _) if !self.step.is_answered => {
                let step = std::mem::take(&mut self.step);
                let parts = step.blocks.iter().chain(&step.results);
                self.assembler.skip_all(parts, "part of an interrupted step");
            }
            ("StepInterrupted", _) => self.ends_step(),
            ("CompactionEnd", _) => {
                self.ends_step();
                self.assembler.compacts(None, self.context, CompactedTo::Missing);
            }
            (known, _) if is_one_of(BOOKKEEPING, known) => self.assembler.skip(known),
            _ => self.assembler.hear_unknown("record", &kind, raw, time),
        }
    }

    /// The result of a tool use as the model reads it.
    fn result(&mut self, mut payload: Object<'_>) -> Option<ContentBlock> {
        let id = payload.take_text("tool_call_id")?;
        let mut value = payload.take_object("return_value")?;
        let failed = value.take_flag("is_error");
        let message = value.take_words("message").map(|value| {
            let error = if failed { "ERROR: " } else { "" };
            ContentBlock::Text(format!("<system>{error}{value}</system>").into())
        });
        let output = value.take("output").filter(|value| value.get() != "\"\"");
        let output = self.assembler.blocks(output, Speaker::Tool);
        let blocks = message.into_iter().chain(output).collect();
        Some(ContentBlock::tool_result(id, blocks, failed))
    }

    fn status(&mut self, mut payload: Object<'_>) {
        let context = payload.take_as("context_tokens").map(Tokens);
        self.context = context.or(self.context);
        let header = &mut self.assembler.header;
        let window = payload.take_as("max_context_tokens").map(Tokens);
        header.context_window = window.or(header.context_window);
        let id = payload.take_text("message_id");
        let billed = payload.take_usage("token_usage", CachedTokens::Apart, &mut self.assembler);
        // One without them says something of the product.
        self.step.is_answered |= id.is_some() || billed.is_some();
        self.step.id = id.or(self.step.id.take());
        self.step.usage = billed.or(self.step.usage);
    }

    /// A step begins: the model reads what the user said.
    fn asks(&mut self) {
        if let Some((said, time)) = self.asked.take() {
            self.assembler.hear(None, said, time, [Tag::TypedUser]);
        }
    }

    fn close_call(&mut self) {
        if let Some((id, name, arguments)) = self.open.take() {
            let input = arguments_in(&arguments, &mut self.assembler);
            self.step.blocks.push(ContentBlock::tool_use(id, name, input));
        }
    }

    fn ends_step(&mut self) {
        self.close_call();
        let step = std::mem::take(&mut self.step);
        if !step.blocks.is_empty() || step.usage.is_some() {
            let part = ModelRecord::of(step.blocks, step.time).by(step.id, None, step.usage);
            self.assembler.assistant(None, part);
        }
        self.assembler.hear_results(step.results, step.result_time);
    }

    fn ends_turn(&mut self) {
        self.ends_step();
        let command = self.asked.take_if(|(said, _)| {
            said.first().and_then(ContentBlock::as_text).is_some_and(|text| text.starts_with('/'))
        });
        match command {
            Some(_) => self.assembler.skip("command of the user's"),
            None => self.asks(),
        }
    }
}
