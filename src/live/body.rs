//! The body of a request with another list of messages: all else stays byte for byte as the agent wrote it.

use std::sync::Arc;

use super::results;
use crate::context::Entry;
use crate::session::Message;
use crate::session::wire::request::Request;
use crate::session::wire::stream::Api;
use crate::session::wire::{anthropic_json, openai::openai_json, responses::responses_json};

/// A context that is sent in the place of the agent's messages.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) api: Api,
    pub(super) entries: Vec<Entry>,
    /// The agent's messages, of which the request has at least these.
    pub(super) messages: Vec<Arc<Message>>,
}

impl Prompt {
    /// The body of a request with these entries for its messages.
    pub(super) fn body(&self, request: &Request<'_>, body: &str) -> String {
        let leading = request.items[..request.leading].iter();
        let mut items: Vec<String> = leading.map(|item| item.get().to_owned()).collect();
        for entry in &self.entries {
            items.extend(self.items(entry, request));
        }
        let (from, to) = (request.list.start, request.list.end);
        format!("{}[{}]{}", &body[..from], items.join(","), &body[to..])
    }

    /// An entry as the items of a request: a message as the agent sent it, with results that were changed in their
    /// places, or as it was written here.
    fn items(&self, entry: &Entry, request: &Request<'_>) -> Vec<String> {
        let own = entry.origin.message();
        let own = own.and_then(|at| Some((request.turns.get(at)?, self.messages.get(at)?)));
        if let Some((turn, message)) = own {
            let items = &request.items[turn.items.clone()];
            let (old, new) = (message.content(), entry.message.content());
            if Arc::ptr_eq(message, &entry.message) || old == new {
                return items.iter().map(|item| item.get().to_owned()).collect();
            }
            if let Some(items) = results::changed(items, old, new) {
                return items;
            }
        }
        match self.api {
            Api::ChatCompletions => openai_json(&entry.message),
            Api::Responses => responses_json(&entry.message),
            Api::Messages | Api::GenerateContent => vec![anthropic_json(&entry.message)],
        }
    }
}
