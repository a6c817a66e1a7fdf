//! A strategy in front of a running agent.
//!
//! A recorded session is replayed with a fixed trajectory; here the agent runs, and each of its requests is passed
//! on as the strategy would have sent it. [`Live`] recognises conversations by their messages: a request either goes
//! on with one, or repeats its last request, or branches off before, or shows what the agent's own compaction left, or
//! begins one (a sub-agent's, a title's). Each conversation has an actor, which owns its strategy: no agent waits for
//! another's. The work of a strategy depends on the messages and times of each call alone, which are logged: fed with
//! the log again, it makes the same contexts.
//!
//! Only the list of messages is changed, and only where the context is another than the agent's: the other bytes of
//! the body are passed on as they are, and so is a message that the context has as it came. Where a strategy fails,
//! takes too long or would break a rule of the provider, the agent's own request is passed on for this call.
//!
//! No socket is opened here: [`proxy`](crate::proxy) does that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::overflow;
use crate::session::redact::without_keys;
use crate::session::wire::request::{BodyReader, WireRequest};
use crate::session::wire::stream::Api;
use crate::units::{ContentHash, Timestamp};

mod actor;
mod asked;
mod body;
mod conversation;
mod finished;
mod log;
mod played;
mod results;
mod state;
mod table;
mod task;
mod worker;

use actor::wait;
use log::Bodies;
use table::ConversationTable;
use worker::Done;

pub use finished::{Finished, Measured};
pub use log::{Event, Log, Shared, read_log};
pub use state::{Skip, StrategySetting};
pub use task::TaskNames;

/// Which cell of a run a request belongs to, as far as the client says.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(deny_unknown_fields)]
pub struct LiveCell {
    /// The task; without one each conversation is a session of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The number of the strategy.
    pub strategy: usize,
    /// The repeat, from 0.
    pub repeat: u32,
}

/// A call of a conversation.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Ticket {
    /// The number of the conversation.
    pub conversation: usize,
    /// The number of its call.
    pub call: usize,
}

/// The request that is sent in place of the agent's.
#[derive(Debug, PartialEq, Eq)]
pub struct SentBody {
    /// The body; `None` where the agent's own is sent.
    pub body: Option<String>,
    /// Identifies the call when its answer is reported; `None` where no strategy saw the request.
    pub ticket: Option<Ticket>,
}

/// Strategies in front of agents.
#[derive(Debug)]
pub struct Live {
    settings: Vec<Arc<StrategySetting>>,
    timeout: Duration,
    reader: BodyReader,
    tasks: TaskNames,
    table: Mutex<ConversationTable>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// Strategies that an agent waits for at most so long at each call; `reader` reads its requests.
    pub fn new(settings: Vec<StrategySetting>, timeout: Duration, reader: BodyReader) -> Self {
        Self {
            settings: settings.into_iter().map(Arc::new).collect(),
            timeout,
            reader,
            tasks: TaskNames::default(),
            table: Mutex::default(),
        }
    }

    /// The settings of the strategies, in their order.
    pub fn settings(&self) -> impl ExactSizeIterator<Item = &StrategySetting> {
        self.settings.iter().map(|setting| &**setting)
    }

    /// Finds the task of a request that names none in its path or headers.
    #[must_use]
    pub fn with_tasks(mut self, tasks: TaskNames) -> Self {
        self.tasks = tasks;
        self
    }

    /// Replays a log: the state is then that of the [`Live`] that wrote it. Strategies are waited for as long as they
    /// take. Returns the calls at which another body would be sent now than was sent then.
    pub fn restore(&self, events: &[Event]) -> Result<Vec<Ticket>, NotItsLog> {
        let own = self.began();
        let outcomes = events.iter().filter_map(|event| match event {
            Event::Sent { number, skipped, hash, .. } => Some((*number, (*skipped, hash))),
            _ => None,
        });
        let outcomes: BTreeMap<usize, (Option<Skip>, &Option<String>)> = outcomes.collect();
        let mut number = 0;
        let refused = events.iter().filter_map(|event| match event {
            Event::Refused { ticket } => Some(*ticket),
            _ => None,
        });
        let refused: BTreeSet<Ticket> = refused.collect();
        let mut refused_bodies: BTreeMap<Ticket, (Api, Arc<str>)> = BTreeMap::new();
        let mut bodies = Bodies::default();
        let mut different = Vec::new();
        for event in events {
            // A request that was cut off by the end of the program was placed all the same.
            let told = outcomes.get(&number);
            let source = SentBy::Log(told.and_then(|(skipped, _)| *skipped));
            let (ticket, now) = match event {
                Event::Began { .. } if *event == own => continue,
                Event::Began { .. } => return Err(NotItsLog::Settings),
                Event::Request { ticket, at, api, cell, shared, body } => {
                    if cell.strategy >= self.settings.len() {
                        return Err(NotItsLog::Settings);
                    }
                    let body =
                        bodies.whole(ticket.conversation, *shared, body).ok_or(NotItsLog::Order)?;
                    let now = self.take(cell, *api, &body, *at, source);
                    if now.ticket != Some(*ticket) {
                        return Err(NotItsLog::Order);
                    }
                    if refused.contains(ticket) {
                        refused_bodies.insert(*ticket, (*api, body));
                    }
                    (ticket, now.body)
                }
                Event::Refused { ticket } => {
                    let Some((api, body)) = refused_bodies.get(ticket) else {
                        return Err(NotItsLog::Order);
                    };
                    (ticket, self.shorten(*ticket, *api, body, source))
                }
                Event::Sent { .. } => continue,
                Event::Answer { ticket, at, response } => {
                    self.answered(*ticket, response.as_deref(), *at);
                    continue;
                }
                Event::Cut { ticket, response } => {
                    self.cut(*ticket, response);
                    continue;
                }
                Event::Apart { cell, api, response } => {
                    self.answered_apart(cell, *api, response);
                    continue;
                }
            };
            number += 1;
            if told.is_some_and(|(_, hash)| **hash != now.as_deref().map(self::hash)) {
                different.push(*ticket);
            }
        }
        Ok(different)
    }

    /// The first line of the log: what the strategies are.
    fn began(&self) -> Event {
        let strategies = self.settings.iter().map(|setting| {
            let window = serde_json::json!(setting.window);
            let all = [
                serde_json::json!(setting.spec.to_toml()),
                window,
                serde_json::json!(setting.sizes),
            ];
            (setting.spec.name().to_owned(), ContentHash::of_values(all).hex(16))
        });
        Event::Began { strategies: strategies.collect() }
    }

    /// Keeps what happens from now on in this log.
    ///
    /// A log that is empty begins with what the strategies are.
    pub fn keep(&self, log: Log, is_empty: bool) {
        let began = self.began();
        let mut table = lock(&self.table);
        table.log = Some(log);
        if is_empty {
            table.log(|| began);
        }
    }

    /// Why the log could not be written, if so.
    pub fn broken(&self) -> Option<String> {
        lock(&self.table).broken.clone()
    }

    /// Counts a request that no strategy saw.
    pub fn pass(&self, why: &str) {
        *lock(&self.table).untouched.entry(why.to_owned()).or_default() += 1;
    }

    /// Requests that no strategy saw, by the reason.
    pub fn untouched(&self) -> BTreeMap<String, u64> {
        lock(&self.table).untouched.clone()
    }

    /// The body to send in the place of this one. Waits for the strategy.
    pub fn send(&self, cell: &LiveCell, api: Api, body: &str, at: Timestamp) -> SentBody {
        self.take(cell, api, body, at, SentBy::Client)
    }

    fn take(&self, cell: &LiveCell, api: Api, body: &str, at: Timestamp, from: SentBy) -> SentBody {
        // The places in it are those in the body that is sent.
        let kept = without_keys(body);
        let mut request = match (self.reader.request)(api, &kept) {
            Ok(request) => request,
            Err(why) => {
                self.pass(&why.to_string());
                return SentBody { body: None, ticket: None };
            }
        };
        let mut cell = cell.clone();
        // The log has the names that were found.
        if cell.task.is_none() && from == SentBy::Client {
            cell.task = self.tasks.of(&kept, &request);
        }
        let (reply, result) = mpsc::sync_channel(0);
        let (ticket, number) = {
            let mut table = lock(&self.table);
            if cell.task.is_none() && from == SentBy::Client {
                cell.task = table.task_of(&cell, api, &request);
            }
            let setting = &self.settings[cell.strategy];
            let (conversation, new) = table.place(&cell, api, setting, &mut request, at);
            let own = &table.conversations[conversation];
            let call = own.calls.len() - 1;
            own.actor.queue(move |worker| {
                if let Some((messages, input)) = new {
                    worker.add(messages, input);
                }
                if let SentBy::Log(Some(why @ (Skip::Failed | Skip::Invalid))) = from {
                    worker.skip(why);
                }
                let late = reply.send(worker.work()).is_err();
                // One that is late has done its work all the same: it counts from the next call on.
                if late || from == SentBy::Log(Some(Skip::Late)) {
                    worker.skip(Skip::Late);
                }
            });
            let ticket = Ticket { conversation, call };
            let body = kept.clone().into_owned();
            let number =
                table.log_asked(Event::Request { ticket, at, api, cell, shared: None, body });
            (ticket, number)
        };
        SentBody {
            body: self.outcome((ticket, number), &result, from, (&request, body)),
            ticket: Some(ticket),
        }
    }

    /// Waits for the strategy's work, and logs its outcome: the body to send, or `None` for the one that was sent.
    fn outcome(
        &self,
        (ticket, number): (Ticket, usize),
        result: &Receiver<Done>,
        source: SentBy,
        (request, body): (&WireRequest<'_>, &str),
    ) -> Option<String> {
        let timeout = (source == SentBy::Client).then_some(self.timeout);
        let done =
            wait(result, timeout).unwrap_or_else(|why| Done { prompt: None, skipped: Some(why) });
        let prompt = done.prompt.filter(|_| source != SentBy::Log(Some(Skip::Late)));
        let body = prompt.map(|prompt| prompt.body(request, body));
        lock(&self.table).log(|| Event::Sent {
            ticket,
            number,
            skipped: done.skipped,
            hash: body.as_deref().map(hash),
        });
        body
    }

    /// The provider refused the request of a call, with this status and these words: the body to send instead, where it
    /// says that the prompt is too long and there is a shorter one.
    pub fn refused(
        &self,
        ticket: Ticket,
        api: Api,
        body: &str,
        (status, said): (u16, &str),
    ) -> Option<String> {
        overflow::refusal(status, said)?;
        self.shorten(ticket, api, body, SentBy::Client)
    }

    fn shorten(&self, ticket: Ticket, api: Api, body: &str, source: SentBy) -> Option<String> {
        let kept = without_keys(body);
        let request = (self.reader.request)(api, &kept).ok()?;
        let (reply, result) = mpsc::sync_channel(0);
        let number = {
            let mut table = lock(&self.table);
            let actor = &table.conversations.get(ticket.conversation)?.actor;
            // One that is late counts for the next call.
            actor.queue(move |worker| drop(reply.send(worker.refused(ticket.call))));
            table.log_asked(Event::Refused { ticket })
        };
        self.outcome((ticket, number), &result, source, (&request, body))
    }

    /// A call was answered, or failed.
    pub fn answered(&self, ticket: Ticket, response: Option<&str>, at: Timestamp) {
        let mut table = lock(&self.table);
        table.log(|| Event::Answer { ticket, at, response: response.map(str::to_owned) });
        let replied = table.conversations.get(ticket.conversation).zip(response);
        let answer = replied.and_then(|(its, text)| (self.reader.answer)(its.api, text));
        if let Some(answer) = answer {
            table.answered((ticket.conversation, ticket.call), answer, at);
        }
    }

    /// A request that no strategy saw was answered. It is on the bill of its task, if it has one.
    pub fn answered_apart(&self, cell: &LiveCell, api: Api, response: &str) {
        if cell.task.is_none() {
            return;
        }
        let mut table = lock(&self.table);
        table.log(|| Event::Apart { cell: cell.clone(), api, response: response.to_owned() });
        if let Some(mut answer) = (self.reader.answer)(api, response) {
            let whole: serde_json::Value = serde_json::from_str(response).unwrap_or_default();
            let model: Option<Arc<str>> = whole["model"].as_str().map(Arc::from);
            let call = table.apart.entry((cell.clone(), model.clone())).or_default();
            call.model = model;
            call.bill(&mut answer.details);
        }
    }

    /// A call failed when so much of its answer had come: its usage is billed, and the call counts as not answered.
    pub fn cut(&self, ticket: Ticket, response: &str) {
        let mut table = lock(&self.table);
        table.log(|| Event::Cut { ticket, response: response.to_owned() });
        let Some(conversation) = table.conversations.get_mut(ticket.conversation) else {
            return;
        };
        let answer = (self.reader.answer)(conversation.api, response);
        let usage = answer.and_then(|answer| answer.details.usage);
        if let Some(call) = conversation.calls.get_mut(ticket.call) {
            call.billed += usage.unwrap_or_default();
        }
    }
}

/// The hash of a body without the keys in it, which are not in the log.
fn hash(body: &str) -> String {
    ContentHash::of(without_keys(body).as_bytes()).hex(16)
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentBy {
    Client,
    /// A log, which says why the strategy was not applied.
    Log(Option<Skip>),
}

/// Why a log cannot be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotItsLog {
    /// It was written under other strategies, or another window.
    #[error("the log was written under other strategies, another window or other sizes")]
    Settings,
    /// The requests are not in an order in which they can have come.
    #[error("the log is not whole: a request in it belongs to another call now")]
    Order,
}
