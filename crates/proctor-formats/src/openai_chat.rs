//! OpenAI's chat completions API, and everything that speaks its language: requests, LiteLLM's
//! completion logs, training rows, bare lists of messages.
//!
//! Rules of this format, beside those every importer shares:
//! - Leading `system` and `developer` messages are the system prompt.
//! - `tool` messages are results, and are in one user message together with what the user says
//!   before the next call.
//! - Arguments are JSON in a string, and are kept as written; if they are not JSON, they are
//!   kept as a JSON string and counted.
//! - `prompt_tokens` includes what was read from the cache, and is split.
//! - What providers add in their own words is read too: what was thought, and what was written to
//!   the cache.
//! - A call may be a part of the content too, beside `tool_calls`: it is one call.
//! - The older `function_call` names no id: calls and results are paired by order.

use super::anthropic::summed_up;
use super::openai_responses::{self, items};
use super::prelude::*;
use actions::Actions;
use parts::{reasoning, refusal, tool_uses};

mod actions;
pub(super) mod parts;

const SHAPE: ConversationShape =
    ConversationShape::of_messages("messages").of_api(Api::ChatCompletions);

pub(super) const IMPORTER: Importer =
    Importer::new("openai-chat", Detect::Api(Api::ChatCompletions), import);

fn import(file: &SourceText, source: &mut Source) -> Imported {
    conversations::sessions(SHAPE, file, source, |conversation, assembler| {
        read(conversation, ChatDialect::Api, assembler);
    })
}

/// Who wrote the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatDialect {
    /// A program that talks to the API.
    Api,
    /// SWE-agent, which runs without a user: only the task is typed.
    SweAgent,
    /// mini-swe-agent, which also keeps the API's own answers beside the messages.
    MiniSweAgent,
}

/// Reads one conversation.
pub(super) fn read(
    conversation: Conversation<'_>,
    dialect: ChatDialect,
    assembler: &mut Assembler,
) {
    let actions = Actions::default();
    ChatReading { assembler, dialect, is_told: false, actions, responses: 0 }.read(conversation);
}

/// The model's texts at the top of a log, beside the messages.
#[derive(Default)]
struct CallFacts<'a> {
    id: Text,
    model: Text,
    usage: Option<&'a RawValue>,
    time: When,
    /// The one action that the product read in the text.
    action: Text,
}

struct ChatReading<'r> {
    assembler: &'r mut Assembler,
    dialect: ChatDialect,
    /// Whether the task was read.
    is_told: bool,
    actions: Actions,
    /// Responses of the responses API so far.
    responses: u64,
}

impl ChatReading<'_> {
    fn read(mut self, conversation: Conversation<'_>) {
        let (mut around, messages) = (conversation.around, conversation.messages);
        around.header(self.assembler);
        let time = around.take_time("timestamp", self.assembler);
        let response = around.take_object("response");
        // Counters beside messages without a response are those of the last message.
        let usage = response.is_none().then(|| around.take("usage")).flatten();
        let last = messages.len().saturating_sub(1);
        for (at, raw) in messages.into_iter().enumerate() {
            let call = CallFacts { usage: usage.filter(|_| at == last), ..CallFacts::default() };
            self.message(raw, call);
        }
        if self.assembler.header.system.is_none() {
            self.assembler.header.system = around.take_words("system_prompt");
        }
        if let Some(mut response) = response {
            self.response(&mut response, time);
            response.count_left("response key", self.assembler);
        }
        around.count_left("key", self.assembler);
    }

    /// The first choice of a response; there is one unless several were asked for.
    fn response(&mut self, response: &mut Object<'_>, time: When) {
        let call = CallFacts {
            id: response.take_text("id"),
            model: response.take_text("model"),
            usage: response.take("usage"),
            time: time.or(response.take_time("created", self.assembler)),
            action: None,
        };
        let choices = response.take_list("choices").unwrap_or_default();
        let others = choices.iter().skip(1);
        self.assembler.warn_all(others, "a response has a second choice, which is left out");
        let first = choices.first().copied().and_then(Object::read);
        if let Some(message) = first.and_then(|mut first| first.take_object("message")) {
            return self.assistant(message, call);
        }
        self.assembler.skip("response without a message");
        if call.usage.is_some() {
            self.assistant(Object::default(), call);
        }
    }

    fn message(&mut self, raw: &RawValue, call: CallFacts<'_>) {
        let Some(mut object) = Object::read(raw) else {
            return keep_unread("malformed", raw, self.assembler);
        };
        // Later versions of mini-swe-agent keep items of the responses API, and whole responses.
        if self.dialect == ChatDialect::MiniSweAgent && (object.has("type") || object.has("output"))
        {
            return self.items(raw, object);
        }
        let role = object.take_text("role");
        if role.as_deref() != Some("assistant") && call.usage.is_some() {
            self.assembler.skip("usage without a response");
        }
        match role.as_deref() {
            Some("system" | "developer") if self.assembler.is_empty() => {
                let blocks = object.take_blocks("content", Speaker::User, self.assembler);
                self.assembler.add_system(&blocks);
                object.count_left("message key", self.assembler);
            }
            Some("system" | "developer") => {
                self.assembler.warn(LATE_SYSTEM);
                self.user(object, true);
            }
            Some("user") => self.user(object, false),
            Some("assistant") => self.assistant(object, call),
            Some("tool" | "function") => self.tool(object),
            // Hermes Agent's first or last line.
            Some("session_meta") => {
                object.header(self.assembler);
                self.assembler.skip("session_meta");
            }
            Some("exit") if self.dialect == ChatDialect::MiniSweAgent => {
                self.assembler.skip("exit message");
            }
            role => keep_unread(role.unwrap_or("without role"), raw, self.assembler),
        }
    }

    /// An item of the responses API, or a whole response.
    fn items(&mut self, raw: &RawValue, mut object: Object<'_>) {
        let extra = self.extra(&mut object);
        if object.text("object").as_deref() == Some("response") {
            let mut reading =
                openai_responses::ResponsesReading::after(self.responses, self.assembler);
            reading.response(&mut object, extra.time);
            self.responses += 1;
            return;
        }
        let tags = match object.text("role").as_deref() {
            Some("user") if !std::mem::replace(&mut self.is_told, true) => vec![Tag::TypedUser],
            Some(_) => vec![Tag::Meta],
            None => Vec::new(),
        };
        let blocks = match items::item(raw, self.assembler) {
            items::ResponsesItem::Nothing => return,
            items::ResponsesItem::Product(blocks) if self.assembler.is_empty() => {
                return self.assembler.add_system(&blocks);
            }
            items::ResponsesItem::Model(blocks) => {
                return self.assembler.assistant(None, ModelRecord::of(blocks, extra.time));
            }
            items::ResponsesItem::Product(blocks) | items::ResponsesItem::Other(blocks) => blocks,
        };
        self.assembler.hear(None, blocks, extra.time, tags);
    }

    /// A message of the user's, or of the system's within the conversation.
    fn user(&mut self, mut object: Object<'_>, is_late_system: bool) {
        let blocks = object.take_blocks("content", Speaker::User, self.assembler);
        let demo = object.take_flag("is_demo");
        if let Some(id) = (!demo && !is_late_system).then(|| self.actions.answered()).flatten() {
            // It is what came of an action.
            let result = ContentBlock::tool_result(id, blocks, false);
            let extra = self.extra(&mut object);
            return self.hear(object, extra.time, vec![result], false);
        }
        let untyped = self.dialect != ChatDialect::Api && (demo || self.is_told);
        self.is_told |= !demo;
        let extra = self.extra(&mut object);
        if extra.usage.is_some() {
            // The product reports an unreadable answer as an error, and no prompt holds it.
            self.assembler.skip("answer that the product could not read");
        }
        self.hear(object, extra.time, blocks, is_late_system || untyped);
    }

    /// Adds a message of the product's, or else of the user's or a tool's, of which nothing else is left to be read.
    fn hear(&mut self, mut object: Object<'_>, time: When, blocks: Blocks, is_products: bool) {
        let timestamp = object.take_time("timestamp", self.assembler).or(time);
        object.count_left("message key", self.assembler);
        self.assembler.hear_user(blocks, timestamp, is_products);
    }

    /// Tells the action in the model's text as a tool use.
    fn act(&mut self, object: &mut Object<'_>, known: Text, blocks: &mut Blocks) {
        self.actions.answered();
        let mut texts =
            blocks.iter().enumerate().rev().filter_map(|(at, block)| Some((at, block.as_text()?)));
        let Some((at, text)) = texts.next() else {
            return;
        };
        let action = match self.dialect {
            ChatDialect::Api => None,
            ChatDialect::SweAgent => object.take_text("action"),
            ChatDialect::MiniSweAgent => known.or_else(|| actions::fenced(text).map(Arc::from)),
        };
        let Some(action) = action.filter(|action| !action.trim().is_empty()) else {
            return;
        };
        let (rest, tool_use) = self.actions.act(text, &action);
        cut(blocks, at, rest, tool_use);
    }

    fn tool(&mut self, mut object: Object<'_>) {
        let name = object.take_text("name");
        let own = object.take_text("tool_call_id").or_else(|| self.first_of_ids(&mut object));
        let id = own.unwrap_or_else(|| {
            let what = "a tool result does not say what it answers; it was paired by order";
            self.assembler.warn(what);
            self.assembler.unnamed.answered(name.as_deref())
        });
        let content = object.take_blocks("content", Speaker::Tool, self.assembler);
        let result = ContentBlock::tool_result(id, content, object.take_flag("is_error"));
        let extra = self.extra(&mut object);
        self.hear(object, extra.time, vec![result], false);
    }

    /// SWE-agent lists the calls that a message answers, though it makes one at a time.
    fn first_of_ids(&mut self, object: &mut Object<'_>) -> Text {
        let mut ids = object.take_list("tool_call_ids")?.into_iter();
        let first = ids.next()?;
        if ids.next().is_some() {
            self.assembler
                .warn("a tool message answers several calls; it was taken for the first one's");
        }
        proctor_sessions::wire::content::text(first)
    }

    /// The facts that mini-swe-agent keeps beside a message: its time, and the API's answer.
    fn extra<'m>(&mut self, object: &mut Object<'m>) -> CallFacts<'m> {
        if self.dialect != ChatDialect::MiniSweAgent {
            return CallFacts::default();
        }
        let mut extra = object.inner("extra");
        let time = extra.take_time("timestamp", self.assembler);
        let mut response = extra.inner("response");
        let action = match &extra.items("actions")[..] {
            [one] => Object::read(one).and_then(|mut action| action.take_text("command")),
            _ => None,
        };
        CallFacts {
            id: response.take_text("id"),
            model: response.take_text("model"),
            usage: response.take("usage"),
            time,
            action,
        }
    }

    fn assistant<'m>(&mut self, mut object: Object<'m>, call: CallFacts<'m>) {
        // SWE-agent puts a demonstration in front of the task.
        let demo = self.dialect == ChatDialect::SweAgent && object.take_flag("is_demo");
        let extra = self.extra(&mut object);

        let mut blocks = reasoning(&mut object, self.assembler);
        blocks.extend(object.take_blocks("content", Speaker::Assistant, self.assembler));
        blocks.extend(refusal(&mut object));
        let uses = tool_uses(&mut object, self.assembler);
        let made = uses.iter().filter_map(ContentBlock::as_use);
        let ids: BTreeSet<&Arc<str>> = made.map(|made| &made.id).collect();
        // A part of the content may repeat one.
        blocks.retain(|one| one.as_use().is_none_or(|part| !ids.contains(&part.id)));
        if uses.is_empty() && !demo {
            self.act(&mut object, extra.action, &mut blocks);
        }
        blocks.extend(uses);
        let own = object.take("usage").or(call.usage).or(extra.usage);
        let compacts = summed_up(&mut blocks, own, self.assembler);
        let usage = self.assembler.usage(own, CachedTokens::Within);
        let own_time = object.take_time("timestamp", self.assembler);
        // The model was not called for it.
        let model = call.model.or(extra.model).or_else(|| object.take_text("model"));
        let record = ModelRecord::of(blocks, own_time.or(call.time).or(extra.time))
            .by(call.id.or(extra.id), model, usage)
            .tagged(demo.then_some(Tag::Synthetic));
        object.take("role");
        object.count_left("message key", self.assembler);
        if !(compacts && record.blocks.is_empty()) {
            self.assembler.answers(record);
        }
    }
}
