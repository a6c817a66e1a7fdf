//! The body of a request with another list of messages: all else stays byte for byte as the agent wrote it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::results;
use crate::context::Entry;
use crate::session::Message;
use crate::session::wire::request::{WireRequest, WireTurn};
use crate::session::wire::stream::Api;
use crate::session::wire::{anthropic_json, openai::openai_json, responses::responses_json};

/// A context that is sent in the place of the agent's messages.
#[derive(Debug)]
pub(super) struct NewPrompt {
    pub(super) api: Api,
    pub(super) entries: Vec<Entry>,
    /// The messages of the agent's request, each with its place among all that it sent.
    pub(super) messages: Vec<(usize, Arc<Message>)>,
}

impl NewPrompt {
    /// The body of a request with these entries for its messages.
    pub(super) fn body(&self, request: &WireRequest<'_>, body: &str) -> String {
        let leading = request.items[..request.leading].iter();
        let mut items: Vec<String> = leading.map(|item| item.get().to_owned()).collect();
        let own = self.messages.iter().zip(&request.turns);
        let own: BTreeMap<usize, _> =
            own.map(|((at, message), turn)| (*at, (message, turn))).collect();
        for entry in &self.entries {
            // A message without some of its blocks is written in its place.
            let at = entry.origin.message().or(match entry.origin.replaced() {
                [range] if range.len() == 1 => Some(range.start),
                _ => None,
            });
            let own = at.and_then(|at| own.get(&at));
            // The same words in another role are another message.
            let own = own.filter(|(message, _)| message.role() == entry.message.role());
            items.extend(self.items(entry, own.copied(), request));
        }
        let (from, to) = (request.list.start, request.list.end);
        format!("{}[{}]{}", &body[..from], items.join(","), &body[to..])
    }

    /// An entry as the items of a request: the agent's own message as it sent it, with results that were changed in their
    /// places, or as it was written here.
    fn items(
        &self,
        entry: &Entry,
        own: Option<(&Arc<Message>, &WireTurn)>,
        request: &WireRequest<'_>,
    ) -> Vec<String> {
        if let Some((message, turn)) = own {
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
            Api::Responses => {
                let mut items = responses_json(&entry.message);
                if let Some((message, turn)) = own {
                    let sent = &request.items[turn.items.clone()];
                    results::keep_kinds(&mut items, sent, responses_json(message));
                }
                items
            }
            Api::Messages | Api::GenerateContent => vec![anthropic_json(&entry.message)],
        }
    }
}
