//! One request, read while it is on its way: its messages, each with the items of JSON that it is made of.
//!
//! A log is read whole and joined to sessions; a proxy sees one request after the other and has to give
//! back what it does not change. So the items that make up a message are read together, by the
//! importer of their API, and keep their places.

use super::conversations::is_compaction;
use super::openai_responses::ResponsesReading;
use super::prelude::*;
use super::requests::Name;
use super::{anthropic, gemini, openai_responses};
use proctor_sessions::wire::request::{BodyReader, Unread, WireRequest, WireTurn};

/// The keys of a request to the responses API that refer to what the provider keeps.
const REFERENCES: [&str; 3] = ["previous_response_id", "conversation", "prompt"];

/// Reads the requests and answers of three APIs.
pub const READER: BodyReader = BodyReader { request: read, answer };

/// Reads the body of a request.
pub fn read(api: Api, body: &str) -> Result<WireRequest<'_>, Unread> {
    let raw: &RawValue = serde_json::from_str(body).map_err(|_| Unread::NoMessages)?;
    let mut around = Object::read(raw).ok_or(Unread::NoMessages)?;
    if api == Api::Responses && REFERENCES.iter().any(|key| around.has(key)) {
        return Err(Unread::KeptByProvider);
    }
    let key = match api {
        Api::Messages | Api::ChatCompletions => "messages",
        Api::Responses => "input",
        Api::GenerateContent => return Err(Unread::NoMessages),
    };
    let list = around.take(key).ok_or(Unread::NoMessages)?;
    let items: Vec<&RawValue> = serde_json::from_str(list.get()).map_err(|_| Unread::NoMessages)?;
    // Borrowed from the body, so that its place there is known.
    let start = list.get().as_ptr() as usize - body.as_ptr() as usize;
    let sides: Vec<Side> = items.iter().map(|item| side(api, item)).collect();
    if sides.contains(&Side::Provider) {
        return Err(Unread::KeptByProvider);
    }
    let mut leading = match api {
        Api::Messages => 0,
        _ => sides.iter().take_while(|one| **one == Side::System).count(),
    };
    let mut turns: Vec<WireTurn> = Vec::new();
    let mut at = leading;
    while at < items.len() {
        let end = end_of_turn(api, &sides, at);
        let message = message_of(api, sides[at], &items[at..end])?;
        match (message, turns.last_mut()) {
            (Some(message), _) => turns.push(WireTurn {
                items: at..end,
                look: Look::of(&message),
                message: Arc::new(message),
            }),
            // Items that say nothing keep their place behind the items before them.
            (None, Some(before)) => before.items.end = end,
            (None, None) => leading = end,
        }
        at = end;
    }
    let model = around.text("model");
    let client = Name::of(&around).map(|name| name.value);
    let mut assembler = Assembler::default();
    around.remove("stream");
    let messages = items[..leading].to_vec();
    read_by(api, Conversation { around, messages }, &mut assembler);
    Ok(WireRequest {
        list: start..start + list.get().len(),
        leading,
        turns,
        system: assembler.header.system.take(),
        tools: std::mem::take(&mut assembler.header.tools),
        model,
        client,
        items,
    })
}

/// Who an item is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The product, in the system's or the developer's role.
    System,
    /// The user or a tool.
    User,
    Model,
    /// The provider: it is no part of what the client has.
    Provider,
}

fn side(api: Api, item: &RawValue) -> Side {
    let object = Object::read(item).unwrap_or_default();
    match object.text("role").as_deref() {
        Some("assistant") => return Side::Model,
        Some("system" | "developer") => return Side::System,
        _ => {}
    }
    let kind = object.text("type").unwrap_or_default();
    if api != Api::Responses {
        return Side::User;
    }
    // Only the provider can read these, or they stand for one that it keeps.
    if &*kind == "item_reference" || openai_responses::items::is_encrypted(&kind) {
        return Side::Provider;
    }
    let from_model = matches!(&*kind, "reasoning" | "mcp_list_tools" | "program")
        || kind.ends_with("_call")
        || kind.ends_with("_request");
    if from_model { Side::Model } else { Side::User }
}

/// The end of the turn that begins at `from`: what the user and tools say is one message; each message of the
/// model's is one by itself, of whose items the responses API has several.
fn end_of_turn(api: Api, sides: &[Side], from: usize) -> usize {
    let model = sides[from] == Side::Model;
    if model && api != Api::Responses {
        return from + 1;
    }
    (from + 1..sides.len()).find(|at| (sides[*at] == Side::Model) != model).unwrap_or(sides.len())
}

/// The message that these items are, if they say anything; an error if they are another's, or several.
///
/// An empty answer is a message without words: the model was called for it.
fn message_of(api: Api, side: Side, items: &[&RawValue]) -> Result<Option<Message>, Unread> {
    // What another said comes first: then a system message is one within the conversation, and nothing is added to it.
    let before = match side {
        Side::Model => r#"{"role":"user","content":"."}"#,
        _ => r#"{"role":"assistant","content":"."}"#,
    };
    let before = RawValue::from_string(before.to_owned()).map_err(|_| Unread::OddItem)?;
    let mut assembler = Assembler::default();
    let items = [&*before].into_iter().chain(items.iter().copied());
    let messages = items.collect();
    read_by(api, Conversation { messages, ..Conversation::default() }, &mut assembler);
    let compactions = assembler.compactions().len();
    let mut messages = assembler.messages();
    if messages.len() == 1 && compactions == 0 {
        return Ok((side == Side::Model).then(|| Message::text(Role::Assistant, "")));
    }
    let message = messages.pop().filter(|_| messages.len() == 1);
    let mut message = Arc::unwrap_or_clone(message.ok_or(Unread::OddItem)?);
    let answer = message.role() == Role::Assistant;
    // The call that a result answers is in an earlier turn.
    message.tags.set(Tag::Orphan, false);
    message.details.api_call = None;
    if answer == (side == Side::Model) { Ok(Some(message)) } else { Err(Unread::OddItem) }
}

/// Reads a conversation in the shape of that API.
pub(super) fn read_by(api: Api, conversation: Conversation<'_>, assembler: &mut Assembler) {
    match api {
        Api::Messages => anthropic::read(conversation, assembler),
        Api::ChatCompletions => openai_chat::read(conversation, ChatDialect::Api, assembler),
        Api::Responses => ResponsesReading::after(0, assembler).conversation(conversation),
        Api::GenerateContent => gemini::read(conversation, assembler),
    }
}

/// The model's answer to a request: the message, with its usage where the provider says it. One that says nothing has no
/// words, and is billed all the same.
pub fn answer(api: Api, response: &str) -> Option<Message> {
    said(api, response).or_else(|| {
        let mut whole: Value = serde_json::from_str(response).ok()?;
        let (place, word) = match api {
            Api::Messages => ("/content", json!(".")),
            Api::ChatCompletions => ("/choices/0/message/content", json!(".")),
            Api::Responses => ("/output", json!([{"role": "assistant", "content": "."}])),
            Api::GenerateContent => return None,
        };
        *whole.pointer_mut(place)? = word;
        if is_compaction(&Object::read(serde_json::from_str(response).ok()?)?) {
            whole["object"] = "response".into();
        }
        let mut empty = Message::text(Role::Assistant, "");
        empty.details = said(api, &whole.to_string())?.details;
        Some(empty)
    })
}

fn said(api: Api, response: &str) -> Option<Message> {
    let around = format!("{{\"response\":{response}}}");
    let around: Object<'_> = serde_json::from_str(&around).ok()?;
    let before = RawValue::from_string(r#"{"role":"user","content":"."}"#.to_owned()).ok()?;
    let mut assembler = Assembler::default();
    read_by(api, Conversation { around, messages: vec![&before] }, &mut assembler);
    let message = assembler.messages().pop()?;
    (message.role() == Role::Assistant).then(|| Arc::unwrap_or_clone(message))
}
