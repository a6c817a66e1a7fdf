//! Events of version 0: actions and observations.

use super::{AgentEvent, OpenhandsReading, TOLD_BY_ACTION, framed};
use crate::openai_chat::parts;
use crate::prelude::*;

/// Keys of an action that are not arguments of its call.
const NO_ARGUMENTS: &str = "action action_risk cause confirmation_state id is_confirmed message \
     security_risk source thought timeout";

/// Events that change the state, and that no model sees.
const STATES: &str = "change_agent_state agent_state_changed null condensation_request start";

impl OpenhandsReading {
    pub(super) fn older_event(&mut self, mut event: AgentEvent<'_>) {
        let action = event.keys.take_text("action");
        let observation = event.keys.take_text("observation");
        match (action.as_deref(), observation.as_deref()) {
            (Some(known), _) | (None, Some(known)) if is_one_of(STATES, known) => {
                self.assembler.skip(&format!("event {known}"));
            }
            (Some(action), _) => self.action(action, event),
            (None, Some(observation)) => self.observation(observation, event),
            (None, None) => {
                let block = self.assembler.unread("event", event.raw);
                self.hear(&event, vec![block], Some(Tag::Meta));
            }
        }
    }

    fn action(&mut self, kind: &str, mut event: AgentEvent<'_>) {
        let source = event.keys.take_text("source");
        let nested = event.keys.take_object("args");
        let flat = nested.is_none();
        let mut args = nested.unwrap_or_else(|| event.keys.clone());
        // The oldest records name no source; the agent waits for an answer, the user does not.
        let waits = args.take_flag("wait_for_response");
        let from_user = source.map_or(kind == "message" && !waits, |source| &*source == "user");
        match kind {
            "system" => self.system(&event, &mut args),
            "recall" => self.silent(&event, kind),
            "condensation" => {
                let forgotten = self.forgotten(&mut args);
                self.condensed(&forgotten, &mut args);
            }
            "message" => {
                let mut blocks = args.take_blocks("content", Speaker::User, &mut self.assembler);
                if from_user {
                    for key in ["image_urls", "images_urls"] {
                        blocks.extend(args.items(key).into_iter().map(content::image));
                    }
                    return self.hear(&event, blocks, Some(Tag::TypedUser));
                }
                // The agent speaks to the user.
                let cost = self.cost(&mut event, None, None);
                let usage = self.billed(cost);
                self.say(&event, ModelRecord::of(blocks, event.time).by(None, None, usage));
            }
            _ if from_user => {
                let command = args.first_text(&["command", "code"]);
                let text = format!("$ {}", command.as_deref().unwrap_or(kind));
                self.pairs.commands.insert(event.name.clone());
                self.hear(&event, vec![ContentBlock::Text(text.into())], Some(Tag::Meta));
            }
            _ => self.calls(kind, event, args, flat),
        }
    }

    fn system(&mut self, event: &AgentEvent<'_>, args: &mut Object<'_>) {
        self.silent(event, "system");
        self.assembler.header.system = args.take_text("content");
        for raw in args.items("tools") {
            self.assembler.define_tool(raw);
        }
    }

    /// The agent makes a call: as the response has it, or else as the action does.
    fn calls(&mut self, kind: &str, mut event: AgentEvent<'_>, mut args: Object<'_>, flat: bool) {
        let mut metadata = event.keys.inner("tool_call_metadata");
        let wanted = metadata.take_text("tool_call_id");
        let named = metadata.take_text("function_name");
        let thought = args.take("thought");
        let mut response = metadata.inner("model_response");
        let id = response.take_words("id");
        let choice = response.objects("choices").next();
        let message = choice.and_then(|mut choice| choice.take_object("message"));
        let mut blocks = Vec::new();
        let mut recorded = None;
        let new = id.as_ref().is_none_or(|id| !self.pairs.said.contains(id));
        if let Some(mut message) = message {
            for mut call in message.objects("tool_calls") {
                let id = call.take_text("id");
                if id == wanted {
                    let function = call.take_object("function");
                    recorded =
                        function.map(|mut one| parts::arguments(&mut one, &mut self.assembler));
                } else if new {
                    self.pairs.unmade.extend(id);
                }
            }
            if new {
                let (speaker, assembler) = (Speaker::Assistant, &mut self.assembler);
                blocks.extend(parts::reasoning(&mut message, assembler));
                blocks.extend(message.take_blocks("content", speaker, assembler));
            }
        } else {
            blocks.extend(self.assembler.blocks(thought, Speaker::User));
        }
        if let Some(wanted) = &wanted {
            self.pairs.unmade.remove(wanted);
        }
        let tool_use = self.pairs.id(wanted, &event.name);
        let input = recorded.unwrap_or_else(|| {
            self.assembler.warn(TOLD_BY_ACTION);
            arguments(args, flat)
        });
        let function = named.unwrap_or_else(|| kind.into());
        blocks.push(ContentBlock::tool_use(tool_use.clone(), function, input));
        self.pairs.open.push_back(tool_use);
        self.pairs.said.extend(id.clone());
        let cost = self.cost(&mut event, response.take("usage"), id.as_ref());
        let usage = self.billed(cost.filter(|_| new));
        let model = response.take_text("model");
        self.say(&event, ModelRecord::of(blocks, event.time).by(id, model, usage));
    }

    /// The usage of a response: recorded with it, recorded for the session by response, or the
    /// growth of the session's total.
    fn cost(
        &mut self,
        event: &mut AgentEvent<'_>,
        recorded: Option<&RawValue>,
        response: Option<&Arc<str>>,
    ) -> Option<Usage> {
        let (within, assembler) = (CachedTokens::Within, &mut self.assembler);
        let own = assembler.usage(recorded, within);
        let known = response.and_then(|id| self.usages.get(id)).copied();
        let mut metrics = event.keys.inner("llm_metrics");
        let total = metrics.take_usage("accumulated_token_usage", within, assembler);
        let growth = total.map(|total| total - std::mem::replace(&mut self.spent, total));
        own.or(known).or(growth)
    }

    fn observation(&mut self, kind: &str, mut event: AgentEvent<'_>) {
        let keys = &mut event.keys;
        let cause = keys.take("cause").map(|raw| Arc::<str>::from(raw.get()));
        let mut extras = keys.inner("extras");
        if kind == "recall" {
            let blocks = recalled(&mut extras);
            if blocks.is_empty() {
                return self.view.show(&event.name, Role::User, &[], &[]);
            }
            return self.hear(&event, blocks, Some(Tag::Meta));
        }
        let failed = matches!(kind, "error" | "user_rejected") || keys.take_denial("success");
        let mut blocks = keys.take_blocks("content", Speaker::Tool, &mut self.assembler);
        blocks.extend(extras.items("image_urls").into_iter().map(content::image));
        for key in ["screenshot", "set_of_marks"] {
            if extras.take_words(key).is_some() {
                self.assembler.skip("picture of a browser");
            }
        }
        let blocks = framed(blocks, extras.take_object("metadata"));
        let named = keys.inner("tool_call_metadata").take_text("tool_call_id");
        let answered = match &cause {
            Some(cause) if self.pairs.commands.contains(cause) => None,
            cause => self.answered(kind, cause.as_ref(), named),
        };
        self.hear_answer(&event, answered, blocks, failed);
    }

    /// The call that an observation answers; none if it is not an answer.
    fn answered(&mut self, kind: &str, cause: Option<&Arc<str>>, named: Text) -> Text {
        let found = cause.and_then(|cause| self.pairs.uses.get(cause)).cloned().or(named);
        if let Some(id) = &found {
            self.pairs.open.retain(|open| open != id);
            return found;
        }
        if cause.is_some() || kind == "error" {
            self.assembler.warn("an observation answers no call; it is kept as the user's");
            return None;
        }
        let next = self.pairs.open.pop_front();
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
        let bounds = ["forgotten_events_start_id", "forgotten_events_end_id"];
        let [Some(first), Some(last)] = bounds.map(|key| args.take_as::<u64>(key)) else {
            return Vec::new();
        };
        let names = self.view.names().filter(|name| {
            name.parse::<u64>().is_ok_and(|number| (first..=last).contains(&number))
        });
        names.cloned().collect()
    }
}

/// The arguments of an action, without the keys beside them.
fn arguments(args: Object<'_>, is_flat: bool) -> JsonText {
    let text = json_object(args.into_entries().filter(|(key, raw)| {
        let beside = is_one_of(NO_ARGUMENTS, key) && (is_flat || key != "message");
        !beside && raw.get() != "null"
    }));
    JsonText::parse(&text).unwrap_or_else(|_| JsonText::string(&text))
}

/// The texts that the product looked up for the model.
fn recalled(extras: &mut Object<'_>) -> Blocks {
    let keys = "repo_instructions additional_agent_instructions conversation_instructions";
    let mut texts: Vec<Arc<str>> =
        keys.split(' ').filter_map(|key| extras.take_words(key)).collect();
    let known = extras.objects("microagent_knowledge");
    texts.extend(known.filter_map(|mut known| known.take_text("content")));
    texts.into_iter().map(ContentBlock::Text).collect()
}
