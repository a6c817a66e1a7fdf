//! The table of all conversations. It knows by what requests are recognised, and waits for no strategy.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::conversation::{Conversation, Follows};
use super::state::{Input, Setting};
use super::{Event, LiveCell, Log};
use crate::session::Message;
use crate::session::wire::request::Request;
use crate::session::wire::stream::Api;
use crate::units::{ContentHash, Timestamp};

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) conversations: Vec<Conversation>,
    /// The conversations that begin with a message of one look, by what else they must have in common.
    begun: BTreeMap<Key, Vec<usize>>,
    pub(super) log: Option<Log>,
    /// Why the log could not be written.
    pub(super) broken: Option<io::Error>,
    /// Requests that no strategy saw, by the reason.
    pub(super) untouched: BTreeMap<String, u64>,
}

/// Cell, API, the client's name for the conversation, and its first message.
type Key = (LiveCell, Api, Option<Arc<str>>, ContentHash);

/// The messages and the input of a new call.
type New = (Vec<Arc<Message>>, Input);

impl Table {
    pub(super) fn log(&mut self, event: impl FnOnce() -> Event) {
        let written = self.log.as_mut().map_or(Ok(()), |log| log.write(&event()));
        if let Err(error) = written {
            // A line that is not whole ends the log.
            self.log = None;
            self.broken.get_or_insert(error);
        }
    }

    /// Finds the conversation of a request, or begins one. Returns its number, with the new call unless the request is
    /// the last one again.
    pub(super) fn place(
        &mut self,
        cell: &LiveCell,
        api: Api,
        setting: &Arc<Setting>,
        request: &mut Request<'_>,
        at: Timestamp,
    ) -> (usize, Option<New>) {
        let key = request.turns.first().map(|first| {
            let client = request.client.clone();
            (cell.clone(), api, client, first.look.key())
        });
        let candidates = key.as_ref().and_then(|key| self.begun.get(key));
        let found = candidates.into_iter().flatten().filter_map(|number| {
            let follows = self.conversations[*number].follows(request);
            follows.map(|(known, follows)| (known, follows, *number))
        });
        let found = found.max();
        let next = self.conversations.len();
        let number = match found {
            Some((_, Follows::Repeats, number)) => return (number, None),
            Some((_, Follows::Answers | Follows::GoesOn, number)) => number,
            Some((_, Follows::Branches(_), _)) | None => next,
        };
        if number == next {
            let id = match &cell.task {
                Some(task) => task.clone(),
                None => format!("live-{:04}", next + 1),
            };
            self.conversations.push(match found {
                Some((_, Follows::Branches(calls), of)) => self.conversations[of].branch(id, calls),
                _ => Conversation::begin(id, cell, api, setting, request),
            });
            if let Some(key) = key {
                self.begun.entry(key).or_default().push(number);
            }
        }
        (
            number,
            Some(self.conversations[number].add(&request.turns, at)),
        )
    }
}
