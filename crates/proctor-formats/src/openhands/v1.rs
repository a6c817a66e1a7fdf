//! Events of version 1: each says what it is in its `kind`.

use super::{AgentEvent, OpenhandsReading, TOLD_BY_ACTION, framed};
use crate::openai_chat::parts;
use crate::prelude::*;

/// Events that no model sees.
const BOOKKEEPING: &str = "ACPToolCallEvent CondensationRequest ConversationErrorEvent \
     ConversationStateUpdateEvent HookExecutionEvent InterruptEvent LLMCompletionLogEvent \
     PauseEvent SecurityAnalysisEvent StreamingDeltaEvent TokenEvent";

/// Whether an event is one that no model sees.
pub(super) fn is_bookkeeping(raw: &RawValue) -> bool {
    let kind = Object::read(raw).and_then(|mut event| event.take_text("kind"));
    kind.is_some_and(|kind| is_one_of(BOOKKEEPING, &kind))
}

/// The text before the output of a tool that failed.
const FAILED: &str = "[An error occurred during execution.]\n";

/// The text before the reason of a refused call.
const REJECTED: &str = "Action rejected: ";

impl OpenhandsReading {
    pub(super) fn newer_event(&mut self, kind: &str, mut event: AgentEvent<'_>) {
        match kind {
            "SystemPromptEvent" => self.prompt(event),
            "MessageEvent" => self.message(event),
            "ActionEvent" => self.newer_action(event),
            "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation" => {
                self.newer_observation(kind, event);
            }
            "Condensation" => {
                let ids = event.keys.items("forgotten_event_ids").into_iter();
                let forgotten: Vec<Arc<str>> = ids.filter_map(content::text).collect();
                self.condensed(&forgotten, &mut event.keys);
            }
            _ if is_one_of(BOOKKEEPING, kind) => self.assembler.skip(&format!("event {kind}")),
            _ => {
                self.assembler.unknown(&format!("event {kind}"));
                self.hear(&event, vec![content::kept(kind, event.raw)], Some(Tag::Meta));
            }
        }
    }

    fn prompt(&mut self, mut event: AgentEvent<'_>) {
        self.silent(&event, "SystemPromptEvent");
        let keys = ["system_prompt", "dynamic_context"].into_iter();
        let texts = keys.filter_map(|key| event.keys.inner(key).take_text("text"));
        let text = texts.collect::<Vec<Arc<str>>>().join("\n");
        self.assembler.header.system = Some(text).filter(|text| !text.is_empty()).map(Arc::from);
        for raw in event.keys.items("tools") {
            self.assembler.define_tool(raw);
        }
    }

    fn message(&mut self, mut event: AgentEvent<'_>) {
        let source = event.keys.take_text("source");
        let mut message = event.keys.inner("llm_message");
        if message.take_text("role").as_deref() == Some("assistant") {
            let mut blocks = thoughts(&mut message, &mut self.assembler);
            blocks.extend(said(message.take("content"), &mut self.assembler));
            return self.speaks(event, blocks);
        }
        let mut blocks = said(message.take("content"), &mut self.assembler);
        blocks.extend(said(event.keys.take("extended_content"), &mut self.assembler));
        let tag = if source.as_deref() == Some("user") { Tag::TypedUser } else { Tag::Meta };
        self.hear(&event, blocks, Some(tag));
    }

    /// Adds blocks of the model's, with the usage of their response.
    fn speaks(&mut self, mut event: AgentEvent<'_>, blocks: Blocks) {
        let response = event.keys.take_words("llm_response_id");
        let bill = response.as_ref().and_then(|id| self.usages.get(id)).copied();
        let usage = self.billed(bill);
        self.say(&event, ModelRecord::of(blocks, event.time).by(response, None, usage));
    }

    fn newer_action(&mut self, mut event: AgentEvent<'_>) {
        let keys = &mut event.keys;
        let mut blocks = thoughts(keys, &mut self.assembler);
        blocks.extend(said(keys.take("thought"), &mut self.assembler));
        let mut call = keys.inner("tool_call");
        let own = call.take_text("id");
        let tool = keys.take_text("tool_name");
        // Version 1 began with the calls of the chat API.
        let mut function = call.take_object("function").unwrap_or(call);
        let tool = function.take_text("name").or(tool).unwrap_or_else(|| "unnamed".into());
        let input = if function.has("arguments") {
            parts::arguments(&mut function, &mut self.assembler)
        } else {
            self.assembler.warn(TOLD_BY_ACTION);
            input_or_empty(keys.take("action"))
        };
        let id = keys.take_text("tool_call_id").or(own);
        blocks.push(ContentBlock::tool_use(self.pairs.id(id, &event.name), tool, input));
        self.speaks(event, blocks);
    }

    fn newer_observation(&mut self, kind: &str, mut event: AgentEvent<'_>) {
        let keys = &mut event.keys;
        let (mut blocks, mut is_error) = match kind {
            "ObservationEvent" => self.observed(keys),
            "AgentErrorEvent" => (shown(keys.take("error"), &mut self.assembler), true),
            _ => {
                let reason = keys.take_text("rejection_reason").unwrap_or_default();
                (vec![ContentBlock::Text(format!("{REJECTED}{reason}").into())], true)
            }
        };
        is_error |= keys.take_flag("is_error");
        blocks.extend(shown(keys.take("extended_content"), &mut self.assembler));
        let made = keys.take_text("action_id").and_then(|action| self.pairs.uses.get(&action));
        let id = made.cloned().or_else(|| keys.take_text("tool_call_id"));
        self.hear_answer(&event, id, blocks, is_error);
    }

    /// The blocks of an observation, and whether it is a failure.
    fn observed(&mut self, event: &mut Object<'_>) -> (Blocks, bool) {
        let raw = event.take("observation");
        let Some(mut observation) = raw.and_then(Object::read) else {
            return (shown(raw, &mut self.assembler), false);
        };
        let error = observation.take("error");
        let failed = observation.take_flag("is_error");
        // Versions named what is shown after the tool.
        let said = observation.first(&["content", "output", "text", "result", "message"]);
        let blocks = match said.or(error) {
            Some(said) => match content::text(said) {
                // An empty result is a result.
                Some(text) => vec![ContentBlock::Text(text)],
                None => shown(Some(said), &mut self.assembler),
            },
            None => raw.map(|raw| self.assembler.unread("observation", raw)).into_iter().collect(),
        };
        let metadata = observation.take_object("metadata");
        let state = metadata.clone().map(shell).unwrap_or_default();
        let mut blocks = framed(blocks, metadata);
        if let ([ContentBlock::Text(text)], false) = (&mut blocks[..], state.is_empty()) {
            *text = format!("{text}{state}").into();
        }
        if failed {
            blocks.insert(0, ContentBlock::Text(FAILED.into()));
        }
        (blocks, failed)
    }
}

/// The shell's state that the model reads after a command's output.
fn shell(mut metadata: Object<'_>) -> String {
    let mut parts = Vec::new();
    for (key, words) in [
        ("working_dir", "Current working directory:"),
        ("py_interpreter_path", "Python interpreter:"),
    ] {
        parts.extend(metadata.take_words(key).map(|value| format!("\n[{words} {value}]")));
    }
    let code = metadata.take("exit_code").map(RawValue::get);
    let known = code.filter(|code| !matches!(*code, "-1" | "null"));
    parts.extend(known.map(|code| format!("\n[Command finished with exit code {code}]")));
    parts.concat()
}

/// The model's thinking, in the shape of any API.
fn thoughts(object: &mut Object<'_>, assembler: &mut Assembler) -> Blocks {
    let blocks = parts::reasoning(object, assembler);
    let Some(raw) = object.take("responses_reasoning_item") else {
        return blocks;
    };
    if !blocks.is_empty() {
        return blocks;
    }
    let mut item = Object::read(raw).unwrap_or_default();
    let texts = [item.items("summary"), item.items("content")].concat();
    let texts: Vec<Arc<str>> = texts.into_iter().filter_map(content::text).collect();
    if texts.is_empty() {
        return vec![content::kept("reasoning", raw)];
    }
    vec![ContentBlock::thinking(texts.join("\n\n"), item.take_text("encrypted_content"))]
}

/// The blocks of a text: providers get no empty text.
fn said(raw: Option<&RawValue>, assembler: &mut Assembler) -> Blocks {
    let mut blocks = shown(raw, assembler);
    blocks.retain(|block| block.as_text().is_none_or(|text| !text.is_empty()));
    blocks
}

/// A text, or a list of texts and pictures.
fn shown(raw: Option<&RawValue>, assembler: &mut Assembler) -> Blocks {
    let Some(raw) = raw else { return Vec::new() };
    let Some(items) = items(raw) else {
        return assembler.blocks(Some(raw), Speaker::User);
    };
    let mut blocks = Vec::new();
    for raw in items {
        let mut item = Object::read(raw).unwrap_or_default();
        match (item.take_text("text"), item.take_list("image_urls")) {
            (Some(text), _) => blocks.push(ContentBlock::Text(text)),
            (None, Some(images)) => blocks.extend(images.into_iter().map(content::image)),
            (None, None) => blocks.push(assembler.unread("part", raw)),
        }
    }
    blocks
}
