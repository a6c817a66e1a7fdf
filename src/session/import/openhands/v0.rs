//! Events of version 0: actions and observations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::{Reading, call_of, counters, framed};
use crate::session::import::assemble::{Assembler, AssistantRecord, UserRecord};
use crate::session::import::content;
use crate::session::import::conversations::Object;
use crate::session::import::openai_chat::parts;
use crate::session::import::tool_names::class_of;
use crate::session::{ContentBlock, JsonText, Tag, ToolResult, ToolSchema, ToolUse};
use crate::units::{Timestamp, Tokens, Usage};

/// Calls until they are answered, and responses until all of their calls are made.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// The tool use that an action made, by the action's name.
    uses: BTreeMap<Arc<str>, Arc<str>>,
    /// Calls that no result names, in order.
    open: VecDeque<Arc<str>>,
    taken: BTreeSet<Arc<str>>,
    /// Responses whose words were said.
    said: BTreeSet<Arc<str>>,
    /// Calls of responses for which no action was seen yet.
    unmade: BTreeSet<Arc<str>>,
    /// Commands that the user ran.
    commands: BTreeSet<Arc<str>>,
}

impl Pairs {
    /// Counts the calls that no action was made of.
    pub(super) fn tell_left(&self, assembler: &mut Assembler) {
        for _ in &self.unmade {
            assembler.warn("a call of a response was never made and is left out");
        }
    }

    /// The id of a call: the provider's, unless another call had it.
    fn id(&mut self, wanted: Option<Arc<str>>, action: &str) -> Arc<str> {
        let wanted = wanted.filter(|id| !id.is_empty());
        let id = match wanted {
            Some(id) if !self.taken.contains(&id) => id,
            Some(id) => format!("{id}-{action}").into(),
            None => format!("call-{action}").into(),
        };
        self.taken.insert(id.clone());
        id
    }
}

/// What an action says beside the arguments of its call.
const NO_ARGUMENTS: &[&str] = &[
    "action",
    "action_risk",
    "cause",
    "confirmation_state",
    "id",
    "is_confirmed",
    "message",
    "security_risk",
    "source",
    "thought",
    "timeout",
];

/// Events that change the state, and that no model sees.
const STATES: &[&str] = &[
    "change_agent_state",
    "agent_state_changed",
    "null",
    "condensation_request",
    "start",
];

impl Reading {
    pub(super) fn older_event(&mut self, mut event: Object<'_>, raw: &RawValue) {
        let name = match event.take("id") {
            Some(id) => Arc::from(id.get()),
            None => Arc::from(format!("{}", self.events)),
        };
        let time = self.time(&mut event);
        let action = event.take_text("action");
        let observation = event.take_text("observation");
        match (action.as_deref(), observation.as_deref()) {
            (Some(known), _) | (None, Some(known)) if STATES.contains(&known) => {
                self.assembler.skip(&format!("event {known}"));
            }
            (Some(action), _) => self.action(action, &name, event, time),
            (None, Some(observation)) => self.observation(observation, &name, event, time),
            (None, None) => {
                let block = content::unknown("event", raw, &mut self.assembler);
                self.older_user(&name, vec![block], time, vec![Tag::Meta]);
            }
        }
    }

    fn older_user(
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

    fn action(
        &mut self,
        kind: &str,
        name: &Arc<str>,
        mut event: Object<'_>,
        time: Option<Timestamp>,
    ) {
        let source = event.take_text("source");
        let nested = event.take_object("args");
        let is_flat = nested.is_none();
        let mut args = nested.unwrap_or_else(|| event.clone());
        // The oldest records name no source; the agent waits for an answer, the user does not.
        let waits = args.take("wait_for_response");
        let waits = waits.is_some_and(|raw| raw.get() == "true");
        let is_user = match source.as_deref() {
            Some(source) => source == "user",
            None => kind == "message" && !waits,
        };
        match kind {
            "system" => self.system(name, &mut args),
            "recall" => {
                self.view.silent(name);
                self.assembler.skip("event recall");
            }
            "condensation" => {
                let forgotten = self.forgotten(&mut args);
                let summary = Self::summary(&mut args);
                self.condensed(&forgotten, summary);
            }
            "message" if is_user => {
                let mut blocks = content::blocks(args.take("content"), &mut self.assembler, part);
                for key in ["image_urls", "images_urls"] {
                    let images = args.take_list(key).unwrap_or_default();
                    blocks.extend(images.into_iter().map(content::image));
                }
                self.older_user(name, blocks, time, vec![Tag::TypedUser]);
            }
            "message" => {
                let blocks = content::blocks(args.take("content"), &mut self.assembler, part);
                self.says(name, blocks, &mut event, time);
            }
            _ if is_user => {
                let command = args.take_text("command").or_else(|| args.take_text("code"));
                let text = format!("$ {}", command.as_deref().unwrap_or(kind));
                self.older.commands.insert(name.clone());
                let blocks = vec![ContentBlock::Text(text.into())];
                self.older_user(name, blocks, time, vec![Tag::Meta]);
            }
            _ => self.calls(kind, name, event, (args, is_flat), time),
        }
    }

    fn system(&mut self, name: &Arc<str>, args: &mut Object<'_>) {
        self.view.silent(name);
        self.assembler.header.system = args.take_text("content");
        for raw in args.take_list("tools").unwrap_or_default() {
            let function = Object::read(raw).and_then(|mut tool| tool.take_object("function"));
            let tool = function.and_then(|mut function| function.take_text("name"));
            self.assembler.header.tools.push(ToolSchema {
                name: tool.unwrap_or_else(|| "unnamed".into()),
                definition: JsonText::from(raw),
            });
        }
        self.assembler.skip("event system");
    }

    /// The agent makes a call: as the response has it, or else as the action does.
    fn calls(
        &mut self,
        kind: &str,
        name: &Arc<str>,
        mut event: Object<'_>,
        (mut args, is_flat): (Object<'_>, bool),
        time: Option<Timestamp>,
    ) {
        let mut metadata = event.take_object("tool_call_metadata").unwrap_or_default();
        let wanted = metadata.take_text("tool_call_id");
        let function = metadata.take_text("function_name");
        let thought = args.take("thought");
        let found = Response::of(metadata.take_object("model_response"));
        let mut blocks = Vec::new();
        let mut input = None;
        let is_new = found
            .id
            .as_ref()
            .is_none_or(|id| !self.older.said.contains(id));
        match found.message {
            Some(mut message) => {
                let calls = message.take_list("tool_calls").unwrap_or_default();
                for mut call in calls.into_iter().filter_map(Object::read) {
                    let id = call.take_text("id");
                    if id == wanted {
                        let function = call.take_object("function");
                        input = function
                            .map(|mut call| parts::arguments(&mut call, &mut self.assembler));
                    } else if let (true, Some(id)) = (is_new, id) {
                        self.older.unmade.insert(id);
                    }
                }
                if is_new {
                    blocks.extend(parts::reasoning(&mut message, &mut self.assembler));
                    blocks.extend(parts::content(message.take("content"), &mut self.assembler));
                }
            }
            None => blocks.extend(content::blocks(thought, &mut self.assembler, part)),
        }
        if let Some(wanted) = &wanted {
            self.older.unmade.remove(wanted);
        }
        let id = self.older.id(wanted, name);
        let input = input.unwrap_or_else(|| {
            self.assembler
                .warn("a call is told by its action, not by the model's response");
            arguments(args, is_flat)
        });
        let function = function.unwrap_or_else(|| kind.into());
        blocks.push(ContentBlock::ToolUse(ToolUse {
            id: id.clone(),
            class: class_of(&function),
            name: function,
            input,
        }));
        self.older.uses.insert(name.clone(), id.clone());
        self.older.open.push_back(id);
        self.older.said.extend(found.id.clone());
        let usage = self.cost(&mut event, found.usage, found.id.as_ref(), is_new);
        let record = AssistantRecord {
            call: call_of(found.id.as_ref()),
            model: found.model,
            blocks,
            usage,
            timestamp: time,
            tags: Vec::new(),
        };
        self.view.model(name, record, &mut self.assembler);
    }

    /// The agent speaks to the user.
    fn says(
        &mut self,
        name: &Arc<str>,
        blocks: Vec<ContentBlock>,
        event: &mut Object<'_>,
        time: Option<Timestamp>,
    ) {
        let usage = self.cost(event, None, None, true);
        let record = AssistantRecord {
            blocks,
            usage,
            timestamp: time,
            ..AssistantRecord::default()
        };
        self.view.model(name, record, &mut self.assembler);
    }

    /// What a response cost: told beside it, told for the session, or what the session's cost
    /// grew by.
    fn cost(
        &mut self,
        event: &mut Object<'_>,
        told: Option<&RawValue>,
        response: Option<&Arc<str>>,
        is_new: bool,
    ) -> Option<Usage> {
        let told = told.and_then(|raw| parts::usage(raw, &mut self.assembler));
        let known = response.and_then(|id| self.usages.get(id)).copied();
        let mut metrics = event.take_object("llm_metrics").unwrap_or_default();
        let spent = metrics.take_object("accumulated_token_usage");
        let spent = spent.map(|spent| counters(spent, &mut self.assembler));
        let grown = spent.map(|spent| grown(std::mem::replace(&mut self.spent, spent), spent));
        if is_new {
            self.billed(told.or(known).or(grown))
        } else {
            None
        }
    }

    fn observation(
        &mut self,
        kind: &str,
        name: &Arc<str>,
        mut event: Object<'_>,
        time: Option<Timestamp>,
    ) {
        let cause = event.take("cause").map(|raw| Arc::<str>::from(raw.get()));
        let mut extras = event.take_object("extras").unwrap_or_default();
        if kind == "recall" {
            let blocks = recalled(&mut extras);
            if blocks.is_empty() {
                return self.view.silent(name);
            }
            return self.older_user(name, blocks, time, vec![Tag::Meta]);
        }
        let is_error = matches!(kind, "error" | "user_rejected")
            || event
                .take("success")
                .is_some_and(|raw| raw.get() == "false");
        let raw = event.take("content");
        let mut blocks = match raw.and_then(content::text) {
            // An empty result is a result.
            Some(text) => vec![ContentBlock::Text(text)],
            None => content::blocks(raw, &mut self.assembler, part),
        };
        let images = extras.take_list("image_urls").unwrap_or_default();
        blocks.extend(images.into_iter().map(content::image));
        for key in ["screenshot", "set_of_marks"] {
            if extras.take_text(key).is_some_and(|text| !text.is_empty()) {
                self.assembler.skip("picture of a browser");
            }
        }
        let blocks = framed(blocks, extras.take_object("metadata"));
        if cause
            .as_ref()
            .is_some_and(|it| self.older.commands.contains(it))
        {
            return self.older_user(name, blocks, time, vec![Tag::Meta]);
        }
        let mut metadata = event.take_object("tool_call_metadata").unwrap_or_default();
        let named = metadata.take_text("tool_call_id");
        let Some(tool_use_id) = self.answered(kind, cause.as_ref(), named) else {
            return self.older_user(name, blocks, time, vec![Tag::Meta]);
        };
        let result = ContentBlock::ToolResult(ToolResult {
            tool_use_id,
            content: blocks,
            is_error,
        });
        self.older_user(name, vec![result], time, Vec::new());
    }

    /// The call that an observation answers; none if it is no answer.
    fn answered(
        &mut self,
        kind: &str,
        cause: Option<&Arc<str>>,
        named: Option<Arc<str>>,
    ) -> Option<Arc<str>> {
        let caused = cause.and_then(|cause| self.older.uses.get(cause)).cloned();
        let found = caused.or(named);
        if let Some(id) = &found {
            self.older.open.retain(|open| open != id);
            return found;
        }
        if cause.is_some() || kind == "error" {
            self.assembler
                .warn("an observation answers no call; it is kept as the user's");
            return None;
        }
        let next = self.older.open.pop_front();
        if next.is_some() {
            self.assembler
                .warn("a tool result does not say what it answers; it was paired by order");
        }
        next
    }

    /// The events that a condensation forgets: a list, or the first and the last one.
    fn forgotten(&mut self, args: &mut Object<'_>) -> Vec<Arc<str>> {
        if let Some(ids) = args.take_list("forgotten_event_ids") {
            return ids.into_iter().map(|id| Arc::from(id.get())).collect();
        }
        let mut bound = |key: &str| -> Option<u64> {
            let raw = args.take(key)?;
            serde_json::from_str(raw.get()).ok()
        };
        let bounds = bound("forgotten_events_start_id").zip(bound("forgotten_events_end_id"));
        let Some((first, last)) = bounds else {
            return Vec::new();
        };
        let is_between = |name: &&Arc<str>| {
            let number = name.parse::<u64>();
            number.is_ok_and(|number| (first..=last).contains(&number))
        };
        self.view.names().filter(is_between).cloned().collect()
    }
}

/// What is known of the response that an action came from.
#[derive(Default)]
struct Response<'a> {
    id: Option<Arc<str>>,
    model: Option<Arc<str>>,
    usage: Option<&'a RawValue>,
    message: Option<Object<'a>>,
}

impl<'a> Response<'a> {
    fn of(object: Option<Object<'a>>) -> Self {
        let Some(mut response) = object else {
            return Self::default();
        };
        let choices = response.take_list("choices").unwrap_or_default();
        let choice = choices.first().copied().and_then(Object::read);
        Self {
            id: response.take_text("id").filter(|id| !id.is_empty()),
            model: response.take_text("model"),
            usage: response.take("usage"),
            message: choice.and_then(|mut choice| choice.take_object("message")),
        }
    }
}

fn part(raw: &RawValue, assembler: &mut Assembler) -> ContentBlock {
    match content::text(raw) {
        Some(text) => ContentBlock::Text(text),
        None => content::unknown("part", raw, assembler),
    }
}

/// The arguments of an action, without what stands beside them.
fn arguments(args: Object<'_>, is_flat: bool) -> JsonText {
    let kept = args.into_entries().filter(|(key, raw)| {
        let is_beside = NO_ARGUMENTS.contains(&&**key) && (is_flat || &**key != "message");
        !is_beside && raw.get() != "null"
    });
    let fields: Vec<String> = kept
        .map(|(key, raw)| format!("{}:{}", JsonText::string(&key).as_str(), raw.get()))
        .collect();
    let text = format!("{{{}}}", fields.join(","));
    JsonText::parse(&text).unwrap_or_else(|_| JsonText::string(&text))
}

/// What the product looked up for the model.
fn recalled(extras: &mut Object<'_>) -> Vec<ContentBlock> {
    let texts = [
        "repo_instructions",
        "additional_agent_instructions",
        "conversation_instructions",
    ];
    let mut blocks: Vec<ContentBlock> = texts
        .iter()
        .filter_map(|key| extras.take_text(key))
        .filter(|text| !text.is_empty())
        .map(ContentBlock::Text)
        .collect();
    for raw in extras.take_list("microagent_knowledge").unwrap_or_default() {
        let known = Object::read(raw).and_then(|mut known| known.take_text("content"));
        blocks.extend(known.map(ContentBlock::Text));
    }
    blocks
}

/// What the session's cost grew by; nothing if it did not grow.
fn grown(earlier: Usage, later: Usage) -> Usage {
    let less = |later: Tokens, earlier: Tokens| Tokens(later.0.saturating_sub(earlier.0));
    Usage {
        input_uncached: less(later.input_uncached, earlier.input_uncached),
        cache_write_5m: less(later.cache_write_5m, earlier.cache_write_5m),
        cache_write_1h: Tokens::ZERO,
        cache_read: less(later.cache_read, earlier.cache_read),
        output: less(later.output, earlier.output),
    }
}
