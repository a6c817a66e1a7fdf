//! Events of version 1: each says what it is in its `kind`.

use super::super::prelude::*;
use super::super::product::is_one_of;
use super::{Reading, call_of, framed};
use crate::session::import::openai_chat::parts;

/// Events that no model sees.
const BOOKKEEPING: &str = "ACPToolCallEvent CondensationRequest ConversationErrorEvent \
     ConversationStateUpdateEvent HookExecutionEvent InterruptEvent LLMCompletionLogEvent \
     PauseEvent SecurityAnalysisEvent StreamingDeltaEvent TokenEvent";

/// Whether an event is one that no model sees.
pub(super) fn is_bookkeeping(raw: &RawValue) -> bool {
    let kind = Object::read(raw).and_then(|mut event| event.take_text("kind"));
    kind.is_some_and(|kind| is_one_of(BOOKKEEPING, &kind))
}

/// What the model is told before what a tool that failed says.
const FAILED: &str = "[An error occurred during execution.]\n";

/// What the model is told before the reason for which a call was refused.
const REJECTED: &str = "Action rejected: ";

impl Reading {
    pub(super) fn newer_event(&mut self, kind: &str, mut event: Object<'_>, raw: &RawValue) {
        let id = event.take_text("id");
        let name = id.unwrap_or_else(|| format!("event {}", self.events).into());
        let time = self.time(&mut event);
        match kind {
            "SystemPromptEvent" => self.prompt(&name, &mut event),
            "MessageEvent" => self.message(&name, event, time),
            "ActionEvent" => self.newer_action(&name, event, time),
            "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation" => {
                self.newer_observation(kind, &name, event, time);
            }
            "Condensation" => {
                let ids = event.items("forgotten_event_ids").into_iter();
                let forgotten: Vec<Arc<str>> = ids.filter_map(content::text).collect();
                let summary = Self::summary(&mut event);
                self.condensed(&forgotten, summary);
            }
            known if is_one_of(BOOKKEEPING, known) => {
                self.assembler.skip(&format!("event {known}"));
            }
            _ => {
                let what = format!("event {kind}");
                self.assembler.unknown(&what);
                let blocks = vec![content::kept(kind, raw)];
                self.hear(&name, blocks, time, Some(Tag::Meta));
            }
        }
    }

    fn prompt(&mut self, name: &Arc<str>, event: &mut Object<'_>) {
        self.silent(name, "SystemPromptEvent");
        let keys = ["system_prompt", "dynamic_context"].into_iter();
        let texts = keys.filter_map(|key| event.inner(key).take_text("text"));
        let texts: Vec<Arc<str>> = texts.collect();
        let text = texts.join("\n");
        self.assembler.header.system = Some(text).filter(|text| !text.is_empty()).map(Arc::from);
        for raw in event.items("tools") {
            let mut tool = Object::read(raw).unwrap_or_default();
            let named = tool.inner("function").take_text("name");
            let mut keys = ["name", "title", "kind"].into_iter();
            let named = named.or_else(|| keys.find_map(|key| tool.take_text(key)));
            self.assembler.tool(named, raw);
        }
    }

    fn message(&mut self, name: &Arc<str>, mut event: Object<'_>, time: Option<Timestamp>) {
        let source = event.take_text("source");
        let mut message = event.inner("llm_message");
        let role = message.take_text("role");
        if role.as_deref() == Some("assistant") {
            let mut blocks = thoughts(&mut message, &mut self.assembler);
            blocks.extend(said(message.take("content"), &mut self.assembler));
            return self.speaks(name, &mut event, blocks, time);
        }
        let mut blocks = said(message.take("content"), &mut self.assembler);
        blocks.extend(said(event.take("extended_content"), &mut self.assembler));
        let is_typed = source.as_deref() == Some("user");
        let tag = if is_typed { Tag::TypedUser } else { Tag::Meta };
        self.hear(name, blocks, time, Some(tag));
    }

    /// What the model says, with what it was billed.
    fn speaks(
        &mut self,
        name: &Arc<str>,
        event: &mut Object<'_>,
        blocks: Vec<ContentBlock>,
        time: Option<Timestamp>,
    ) {
        let response = event.take_text("llm_response_id");
        let usage = response.as_ref().and_then(|id| self.usages.get(id));
        let usage = self.billed(usage.copied());
        let record = AssistantRecord::of(blocks, time).by(call_of(response.as_ref()), None, usage);
        self.say(name, record);
    }

    fn newer_action(&mut self, name: &Arc<str>, mut event: Object<'_>, time: Option<Timestamp>) {
        let mut blocks = thoughts(&mut event, &mut self.assembler);
        blocks.extend(said(event.take("thought"), &mut self.assembler));
        let mut call = event.inner("tool_call");
        let own = call.take_text("id");
        let tool = event.take_text("tool_name");
        // Version 1 began with the calls of the chat API.
        let mut function = call.take_object("function").unwrap_or(call);
        let tool = function.take_text("name").or(tool);
        let tool = tool.unwrap_or_else(|| "unnamed".into());
        let input = if function.has("arguments") {
            parts::arguments(&mut function, &mut self.assembler)
        } else {
            self.assembler
                .warn("a call is told by its action, not by the model's response");
            input_or_empty(event.take("action"))
        };
        let id = event.take_text("tool_call_id").or(own);
        let id = self.pairs.id(id, name);
        blocks.push(ContentBlock::tool_use(id, tool, input));
        self.speaks(name, &mut event, blocks, time);
    }

    fn newer_observation(
        &mut self,
        kind: &str,
        name: &Arc<str>,
        mut event: Object<'_>,
        time: Option<Timestamp>,
    ) {
        let (mut blocks, mut is_error) = match kind {
            "ObservationEvent" => self.observed(&mut event),
            "AgentErrorEvent" => (shown(event.take("error"), &mut self.assembler), true),
            _ => {
                let reason = event.take_text("rejection_reason").unwrap_or_default();
                let told = format!("{REJECTED}{reason}");
                (vec![ContentBlock::Text(told.into())], true)
            }
        };
        is_error |= event.take_flag("is_error");
        blocks.extend(shown(event.take("extended_content"), &mut self.assembler));
        let action = event.take_text("action_id");
        let id = action.and_then(|action| self.pairs.uses.get(&action));
        let id = id.cloned().or_else(|| event.take_text("tool_call_id"));
        let Some(id) = id else {
            return self.hear(name, blocks, time, Some(Tag::Meta));
        };
        let result = ContentBlock::tool_result(id, blocks, is_error);
        self.hear(name, vec![result], time, None);
    }

    /// What an observation shows, and whether it is a failure.
    fn observed(&mut self, event: &mut Object<'_>) -> (Vec<ContentBlock>, bool) {
        let raw = event.take("observation");
        let Some(mut observation) = raw.and_then(Object::read) else {
            return (shown(raw, &mut self.assembler), false);
        };
        let error = observation.take("error");
        let is_error = observation.take_flag("is_error");
        // Versions named what is shown after the tool.
        let mut keys = ["content", "output", "text", "result", "message"].into_iter();
        let said = keys.find_map(|key| observation.take(key));
        let blocks = match said.or(error) {
            Some(said) => match content::text(said) {
                // An empty result is a result.
                Some(text) => vec![ContentBlock::Text(text)],
                None => shown(Some(said), &mut self.assembler),
            },
            None => raw
                .map(|raw| content::unknown("observation", raw, &mut self.assembler))
                .into_iter()
                .collect(),
        };
        let metadata = observation.take_object("metadata");
        let state = metadata.clone().map(shell).unwrap_or_default();
        let mut blocks = framed(blocks, metadata);
        if let ([ContentBlock::Text(text)], false) = (&mut blocks[..], state.is_empty()) {
            *text = format!("{text}{state}").into();
        }
        if is_error {
            blocks.insert(0, ContentBlock::Text(FAILED.into()));
        }
        (blocks, is_error)
    }
}

/// What the model is told of the shell after a command's output.
fn shell(mut metadata: Object<'_>) -> String {
    let mut parts = Vec::new();
    for (key, words) in [
        ("working_dir", "Current working directory:"),
        ("py_interpreter_path", "Python interpreter:"),
    ] {
        let value = metadata.take_text(key).filter(|value| !value.is_empty());
        if let Some(value) = value {
            parts.push(format!("\n[{words} {value}]"));
        }
    }
    let code = metadata.take("exit_code").map(RawValue::get);
    if let Some(code) = code.filter(|code| !matches!(*code, "-1" | "null")) {
        parts.push(format!("\n[Command finished with exit code {code}]"));
    }
    parts.concat()
}

/// What the model thought, in the words of any API.
fn thoughts(object: &mut Object<'_>, assembler: &mut Assembler) -> Vec<ContentBlock> {
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
    let proof = item.take_text("encrypted_content");
    vec![ContentBlock::thinking(texts.join("\n\n"), proof)]
}

/// What somebody says: providers are sent no empty text.
fn said(raw: Option<&RawValue>, assembler: &mut Assembler) -> Vec<ContentBlock> {
    let is_empty = |block: &ContentBlock| block.as_text().is_some_and(|text| text.is_empty());
    let mut blocks = shown(raw, assembler);
    blocks.retain(|block| !is_empty(block));
    blocks
}

/// A text, or a list of texts and pictures.
fn shown(raw: Option<&RawValue>, assembler: &mut Assembler) -> Vec<ContentBlock> {
    let Some(raw) = raw else {
        return Vec::new();
    };
    let Some(items) = items(raw) else {
        return content::blocks(Some(raw), assembler, |raw, assembler| {
            content::unknown("part", raw, assembler)
        });
    };
    let mut blocks = Vec::new();
    for raw in items {
        let mut item = Object::read(raw).unwrap_or_default();
        match (item.take_text("text"), item.take_list("image_urls")) {
            (Some(text), _) => blocks.push(ContentBlock::Text(text)),
            (None, Some(images)) => blocks.extend(images.into_iter().map(content::image)),
            (None, None) => blocks.push(content::unknown("part", raw, assembler)),
        }
    }
    blocks
}
