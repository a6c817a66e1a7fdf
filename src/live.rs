//! A strategy in front of a running agent.
//!
//! A recorded session is replayed with a fixed trajectory; here the agent runs, and each of its requests is passed
//! on as the strategy would have sent it. [`Live`] recognises conversations by their messages: a request either goes
//! on with one, or repeats its last request, or branches off before, or begins one (a sub-agent's, a title's, the
//! agent's own compaction). What a strategy does depends on the messages and on the
//! [`Input`]s of each call alone, which are logged: fed with the log again, it makes the same contexts.
//!
//! Only the list of messages is changed, and only where the context is another than the agent's: the other bytes of
//! the body are passed on as they are, and so is a message that the context has as it came. Where a strategy fails,
//! takes too long or would break a rule of the provider, the agent's own request is passed on for this call.
//!
//! No socket is opened here: [`proxy`](crate::proxy) does that.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::overflow;
use crate::session::import::request::{self, Request};
use crate::session::wire::stream::Api;
use crate::units::{ContentHash, Timestamp};

mod asked;
mod conversation;
mod finished;
mod log;
mod played;
mod state;

use conversation::{Conversation, Follows};
use state::State;

pub use finished::{Finished, Measured};
pub use log::{Event, Log, read_log};
pub use state::{Input, Setting, Skip};

/// Which cell of a run a request belongs to, as far as the client says.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(deny_unknown_fields)]
pub struct CellName {
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

/// What is sent in the place of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Sent {
    /// The body; `None` where the agent's own is sent.
    pub body: Option<String>,
    /// By which the answer is told; `None` where nothing is known of the request.
    pub ticket: Option<Ticket>,
}

/// Strategies in front of agents.
#[derive(Debug)]
pub struct Live {
    settings: Vec<Arc<Setting>>,
    timeout: Duration,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    conversations: Vec<(CellName, Arc<Mutex<Conversation>>)>,
    log: Option<Log>,
    /// Why the log could not be written.
    broken: Option<io::Error>,
    /// Requests that no strategy saw, by the reason.
    untouched: BTreeMap<String, u64>,
}

impl Table {
    fn log(&mut self, event: impl FnOnce() -> Event) {
        let written = self.log.as_mut().map_or(Ok(()), |log| log.write(&event()));
        if let Err(error) = written {
            self.broken.get_or_insert(error);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// Strategies that an agent waits for at most so long at each call.
    pub fn new(settings: Vec<Setting>, timeout: Duration) -> Self {
        Self {
            settings: settings.into_iter().map(Arc::new).collect(),
            timeout,
            table: Mutex::default(),
        }
    }

    /// Does again what a log says, without waiting for anything: the state is then that of the
    /// [`Live`] that wrote it. Returns the calls at which another body would be sent now than was sent then.
    pub fn restore(&self, events: &[Event]) -> Vec<Ticket> {
        let skips: BTreeMap<Ticket, Option<Skip>> = events
            .iter()
            .filter_map(|event| match event {
                Event::Sent {
                    ticket, skipped, ..
                } => Some((*ticket, *skipped)),
                _ => None,
            })
            .collect();
        let mut bodies: BTreeMap<Ticket, (Api, &str, Option<ContentHash>)> = BTreeMap::new();
        let mut different = Vec::new();
        for event in events {
            match event {
                Event::Request {
                    ticket,
                    at,
                    api,
                    cell,
                    body,
                } => {
                    let skip = skips.get(ticket).copied().flatten();
                    // A request that was cut off by the end of the program was not sent.
                    if !skips.contains_key(ticket) {
                        continue;
                    }
                    let sent = self.take(cell, *api, body, *at, Some(skip));
                    let hash = sent.body.map(|body| ContentHash::of(body.as_bytes()));
                    bodies.insert(*ticket, (*api, body, hash));
                }
                Event::Sent { ticket, hash, .. } => {
                    let now = bodies.get(ticket).and_then(|(_, _, hash)| *hash);
                    if now.map(|it| it.hex(16)) != *hash {
                        different.push(*ticket);
                    }
                }
                Event::Refused { ticket } => {
                    if let Some((api, body, _)) = bodies.get(ticket) {
                        drop(self.shorten(*ticket, *api, body));
                    }
                }
                Event::Answer {
                    ticket,
                    at,
                    response,
                } => {
                    self.answered(*ticket, response.as_deref(), *at);
                }
            }
        }
        different
    }

    /// Keeps what happens from now on in this log.
    pub fn keep(&self, log: Log) {
        lock(&self.table).log = Some(log);
    }

    /// Why the log could not be written, if so.
    pub fn broken(&self) -> Option<io::Error> {
        lock(&self.table).broken.take()
    }

    /// Counts a request that no strategy saw.
    pub fn pass(&self, why: &str) {
        *lock(&self.table)
            .untouched
            .entry(why.to_owned())
            .or_default() += 1;
    }

    /// Requests that no strategy saw, by the reason.
    pub fn untouched(&self) -> BTreeMap<String, u64> {
        lock(&self.table).untouched.clone()
    }

    /// The body to send in the place of this one. Waits for the strategy.
    pub fn send(&self, cell: &CellName, api: Api, body: &str, at: Timestamp) -> Sent {
        self.take(cell, api, body, at, None)
    }

    fn take(
        &self,
        cell: &CellName,
        api: Api,
        body: &str,
        at: Timestamp,
        known: Option<Option<Skip>>,
    ) -> Sent {
        let mut request = match request::read(api, body) {
            Ok(request) => request,
            Err(why) => {
                self.pass(&why.to_string());
                return Sent {
                    body: None,
                    ticket: None,
                };
            }
        };
        let (ticket, conversation, is_new) = self.place(cell, api, &mut request, body, at);
        let (job, skip) = {
            let mut conversation = lock(&conversation);
            let call = &mut conversation.inputs[ticket.call];
            if let Some(Some(skip)) = known.filter(|_| is_new) {
                call.skipped = Some(skip);
            }
            let skip = call.skipped;
            let has_state = conversation
                .state
                .as_ref()
                .is_some_and(|it| it.calls == ticket.call + 1);
            let job = (!has_state).then(|| conversation.work());
            (job, skip)
        };
        let skipped = match job {
            None => skip,
            Some(job) => {
                let done = match (skip, known) {
                    (Some(_), _) | (_, Some(_)) => job.run(),
                    (None, None) => within(self.timeout, move || job.run()),
                };
                self.put_back(
                    &conversation,
                    ticket,
                    done.map_err(|why| skip.unwrap_or(why)),
                )
            }
        };
        let conversation = lock(&conversation);
        let body = chosen(&conversation, &request, body, skipped);
        drop(conversation);
        let mut table = lock(&self.table);
        table.log(|| Event::Sent {
            ticket,
            skipped,
            hash: body
                .as_ref()
                .map(|body| ContentHash::of(body.as_bytes()).hex(16)),
        });
        Sent {
            body,
            ticket: Some(ticket),
        }
    }

    /// Finds the conversation of a request, or begins one; whether it is a call that was not made before.
    fn place(
        &self,
        cell: &CellName,
        api: Api,
        request: &mut Request<'_>,
        body: &str,
        at: Timestamp,
    ) -> (Ticket, Arc<Mutex<Conversation>>, bool) {
        let mut table = lock(&self.table);
        let conversations = table.conversations.iter().enumerate();
        let candidates = conversations.filter(|(_, (its, _))| its == cell);
        let found = candidates.filter_map(|(number, (_, conversation))| {
            let conversation = lock(conversation);
            let is_own = conversation.api == api && conversation.client == request.client;
            let follows = is_own
                .then(|| conversation.follows(&request.turns))
                .flatten();
            follows.map(|(known, follows)| (known, follows, number))
        });
        let found = found.max();
        let (number, is_new) = match found {
            Some((_, Follows::Repeats, number)) => (number, false),
            Some((_, Follows::GoesOn, number)) => (number, true),
            Some((_, Follows::Branches(calls), of)) => {
                let id = name(cell, table.conversations.len());
                let branch = lock(&table.conversations[of].1).branch(id, calls);
                table
                    .conversations
                    .push((cell.clone(), Arc::new(Mutex::new(branch))));
                (table.conversations.len() - 1, true)
            }
            None => {
                let id = name(cell, table.conversations.len());
                let setting = &self.settings[cell.strategy];
                let begun = Conversation::begin(id, api, setting, cell.repeat, request);
                table
                    .conversations
                    .push((cell.clone(), Arc::new(Mutex::new(begun))));
                (table.conversations.len() - 1, true)
            }
        };
        let conversation = table.conversations[number].1.clone();
        let mut own = lock(&conversation);
        if is_new {
            own.add(&request.turns, at);
        }
        let ticket = Ticket {
            conversation: number,
            call: own.inputs.len() - 1,
        };
        drop(own);
        table.log(|| Event::Request {
            ticket,
            at,
            api,
            cell: cell.clone(),
            body: body.to_owned(),
        });
        (ticket, conversation, is_new)
    }

    /// Notes how the strategy's work came out.
    fn put_back(
        &self,
        conversation: &Mutex<Conversation>,
        ticket: Ticket,
        done: Result<State, Skip>,
    ) -> Option<Skip> {
        let mut conversation = lock(conversation);
        match done {
            Ok(state) => {
                conversation.put_back(state);
                conversation.inputs[ticket.call].skipped
            }
            Err(why) => {
                conversation.inputs[ticket.call].skipped = Some(why);
                // Without the strategy's part at this call: what it keeps is as it was, and the new messages.
                if let Ok(state) = conversation.work().run() {
                    conversation.put_back(state);
                }
                Some(why)
            }
        }
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
        self.shorten(ticket, api, body)
    }

    fn shorten(&self, ticket: Ticket, api: Api, body: &str) -> Option<String> {
        let request = request::read(api, body).ok()?;
        let conversation = lock(&self.table)
            .conversations
            .get(ticket.conversation)?
            .1
            .clone();
        lock(&self.table).log(|| Event::Refused { ticket });
        let job = {
            let mut conversation = lock(&conversation);
            let is_last = ticket.call + 1 == conversation.inputs.len();
            let is_own = conversation.inputs[ticket.call].skipped.is_none();
            (is_last && is_own).then(|| conversation.work())
        }?;
        let (state, is_shorter) = within(self.timeout, move || job.refused()).ok()?;
        let mut conversation = lock(&conversation);
        conversation.inputs[ticket.call].refusals += 1;
        conversation.put_back(state);
        is_shorter
            .then(|| conversation.body(&request, body))
            .flatten()
    }

    /// A call was answered, or failed.
    pub fn answered(&self, ticket: Ticket, response: Option<&str>, at: Timestamp) {
        let mut table = lock(&self.table);
        table.log(|| Event::Answer {
            ticket,
            at,
            response: response.map(str::to_owned),
        });
        let Some((_, conversation)) = table.conversations.get(ticket.conversation) else {
            return;
        };
        let mut conversation = lock(conversation);
        let api = conversation.api;
        let answer = response.and_then(|response| request::answer(api, response));
        let is_last = ticket.call + 1 == conversation.inputs.len();
        let input = &mut conversation.inputs[ticket.call];
        if input.answered.is_none()
            && let Some(mut answer) = answer
        {
            input.answered = Some((at, answer.usage));
            answer.timestamp = Some(at);
            if is_last {
                conversation.answer = Some(Arc::new(answer));
            }
        }
    }
}

/// The body to send: the kept context, or `None` for the agent's own.
fn chosen(
    conversation: &Conversation,
    request: &Request<'_>,
    body: &str,
    skipped: Option<Skip>,
) -> Option<String> {
    let state = conversation.state.as_ref()?;
    if state.is_whole(request.turns.len()) {
        return None;
    }
    let facts = &conversation.facts;
    let would_overflow = || {
        let own = state.bill(facts.fixed + conversation.own_size());
        facts.setting.window.overflows(own)
    };
    if skipped.is_some() && !would_overflow() {
        return None;
    }
    conversation.body(request, body)
}

/// The name of the next conversation.
fn name(cell: &CellName, number: usize) -> String {
    match &cell.task {
        Some(task) => task.clone(),
        None => format!("live-{:04}", number + 1),
    }
}

/// Does some work on a thread of its own, for which is waited so long.
fn within<T: Send + 'static>(
    timeout: Duration,
    work: impl FnOnce() -> Result<T, Skip> + Send + 'static,
) -> Result<T, Skip> {
    let (done, result) = mpsc::channel();
    let worker = std::thread::Builder::new().spawn(move || drop(done.send(work())));
    if worker.is_err() {
        return Err(Skip::Failed);
    }
    match result.recv_timeout(timeout) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(Skip::Late),
        // It panicked: the words are on standard error.
        Err(RecvTimeoutError::Disconnected) => Err(Skip::Failed),
    }
}
