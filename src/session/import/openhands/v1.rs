//! Events of version 1: each says what it is in its `kind`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::{Reading, call_of, framed};
use crate::session::import::assemble::{Assembler, AssistantRecord, UserRecord, count};
use crate::session::import::content;
use crate::session::import::conversations::Object;
use crate::session::import::openai_chat::parts;
use crate::session::import::tool_names::class_of;
use crate::session::{ContentBlock, JsonText, Tag, Thinking, ToolResult, ToolSchema, ToolUse};
use crate::units::Timestamp;

/// Calls by the action that made them.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    uses: BTreeMap<Arc<str>, Arc<str>>,
    taken: BTreeSet<Arc<str>>,
}

/// Events that no model sees.
const BOOKKEEPING: &[&str] = &[
    "ACPToolCallEvent",
    "CondensationRequest",
    "ConversationErrorEvent",
    "ConversationStateUpdateEvent",
    "HookExecutionEvent",
    "InterruptEvent",
    "LLMCompletionLogEvent",
    "PauseEvent",
    "SecurityAnalysisEvent",
    "StreamingDeltaEvent",
    "TokenEvent",
];

/// Whether an event is one that no model sees.
pub(super) fn is_bookkeeping(raw: &RawValue) -> bool {
    let kind = Object::read(raw).and_then(|mut event| event.take_text("kind"));
    kind.is_some_and(|kind| BOOKKEEPING.contains(&&*kind))
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
                let ids = event.take_list("forgotten_event_ids").unwrap_or_default();
                let forgotten: Vec<Arc<str>> = ids.into_iter().filter_map(content::text).collect();
                let summary = Self::summary(&mut event);
                self.condensed(&forgotten, summary);
            }
            known if BOOKKEEPING.contains(&known) => {
                self.assembler.skip(&format!("event {known}"));
            }
            _ => {
                let what = format!("event {kind}");
                count(&mut self.assembler.source.unknown, &what);
                let blocks = vec![content::kept(kind, raw)];
                self.newer_user(&name, blocks, time, vec![Tag::Meta]);
            }
        }
    }

    fn newer_user(
        &mut self,
        name: &Arc<str>,
        blocks: Vec<ContentBlock>,
        timestamp: Option<Timestamp>,
        tags: Vec<Tag>,
    ) {
        let record = UserRecord {
            blocks,
            timestamp,
            tags,
        };
        self.view.user(name, record, &mut self.assembler);
    }

    fn prompt(&mut self, name: &Arc<str>, event: &mut Object<'_>) {
        self.view.silent(name);
        self.assembler.skip("event SystemPromptEvent");
        let mut texts: Vec<Arc<str>> = Vec::new();
        for key in ["system_prompt", "dynamic_context"] {
            let prompt = event.take_object(key);
            texts.extend(prompt.and_then(|mut prompt| prompt.take_text("text")));
        }
        let text = texts.join("\n");
        self.assembler.header.system = Some(text).filter(|text| !text.is_empty()).map(Arc::from);
        for raw in event.take_list("tools").unwrap_or_default() {
            let mut tool = Object::read(raw).unwrap_or_default();
            let function = tool.take_object("function");
            let named = function.and_then(|mut function| function.take_text("name"));
            let mut keys = ["name", "title", "kind"].into_iter();
            let named = named.or_else(|| keys.find_map(|key| tool.take_text(key)));
            self.assembler.header.tools.push(ToolSchema {
                name: named.unwrap_or_else(|| "unnamed".into()),
                definition: JsonText::from(raw),
            });
        }
    }

    fn message(&mut self, name: &Arc<str>, mut event: Object<'_>, time: Option<Timestamp>) {
        let source = event.take_text("source");
        let mut message = event.take_object("llm_message").unwrap_or_default();
        let role = message.take_text("role");
        if role.as_deref() == Some("assistant") {
            let mut blocks = thoughts(&mut message, &mut self.assembler);
            blocks.extend(said(message.take("content"), &mut self.assembler));
            return self.speaks(name, &mut event, blocks, time);
        }
        let mut blocks = said(message.take("content"), &mut self.assembler);
        blocks.extend(said(event.take("extended_content"), &mut self.assembler));
        let tags = match source.as_deref() {
            Some("user") => vec![Tag::TypedUser],
            _ => vec![Tag::Meta],
        };
        self.newer_user(name, blocks, time, tags);
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
        let usage = response
            .as_ref()
            .and_then(|id| self.usages.get(id))
            .copied();
        let usage = self.billed(usage);
        let record = AssistantRecord {
            call: call_of(response.as_ref()),
            blocks,
            usage,
            timestamp: time,
            ..AssistantRecord::default()
        };
        self.view.model(name, record, &mut self.assembler);
    }

    fn newer_action(&mut self, name: &Arc<str>, mut event: Object<'_>, time: Option<Timestamp>) {
        let mut blocks = thoughts(&mut event, &mut self.assembler);
        blocks.extend(said(event.take("thought"), &mut self.assembler));
        let mut call = event.take_object("tool_call").unwrap_or_default();
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
            let action = event.take("action");
            action.map_or_else(|| JsonText::string(""), JsonText::from)
        };
        let id = event.take_text("tool_call_id").or(own);
        let id = id.filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call-{name}").into());
        let id = if self.newer.taken.insert(id.clone()) {
            id
        } else {
            format!("{id}-{name}").into()
        };
        self.newer.uses.insert(name.clone(), id.clone());
        blocks.push(ContentBlock::ToolUse(ToolUse {
            id,
            class: class_of(&tool),
            name: tool,
            input,
        }));
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
        is_error |= event
            .take("is_error")
            .is_some_and(|raw| raw.get() == "true");
        blocks.extend(shown(event.take("extended_content"), &mut self.assembler));
        let action = event.take_text("action_id");
        let id = action
            .and_then(|action| self.newer.uses.get(&action))
            .cloned();
        let Some(tool_use_id) = id.or_else(|| event.take_text("tool_call_id")) else {
            return self.newer_user(name, blocks, time, vec![Tag::Meta]);
        };
        let result = ContentBlock::ToolResult(ToolResult {
            tool_use_id,
            content: blocks,
            is_error,
        });
        self.newer_user(name, vec![result], time, Vec::new());
    }

    /// What an observation shows, and whether it is a failure.
    fn observed(&mut self, event: &mut Object<'_>) -> (Vec<ContentBlock>, bool) {
        let raw = event.take("observation");
        let Some(mut observation) = raw.and_then(Object::read) else {
            return (shown(raw, &mut self.assembler), false);
        };
        let error = observation.take("error");
        let is_error = observation
            .take("is_error")
            .is_some_and(|raw| raw.get() == "true");
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
    let lists = [item.take_list("summary"), item.take_list("content")];
    let texts: Vec<Arc<str>> = lists
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(content::text)
        .collect();
    if texts.is_empty() {
        return vec![content::kept("reasoning", raw)];
    }
    vec![ContentBlock::Thinking(Thinking {
        text: texts.join("\n\n").into(),
        signature: item.take_text("encrypted_content"),
    })]
}

/// What somebody says: providers are sent no empty text.
fn said(raw: Option<&RawValue>, assembler: &mut Assembler) -> Vec<ContentBlock> {
    let is_empty = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => text.is_empty(),
        _ => false,
    };
    let mut blocks = shown(raw, assembler);
    blocks.retain(|block| !is_empty(block));
    blocks
}

/// A text, or a list of texts and pictures.
fn shown(raw: Option<&RawValue>, assembler: &mut Assembler) -> Vec<ContentBlock> {
    let Some(raw) = raw else {
        return Vec::new();
    };
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
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
