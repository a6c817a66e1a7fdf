//! A strategy in front of a running agent.
//!
//! A recorded session is replayed with a fixed trajectory; here the agent runs, and each of its requests is passed
//! on as the strategy would have sent it. [`Live`] recognises conversations by their messages: a request either goes
//! on with one, or repeats its last request, or branches off before, or begins one (a sub-agent's, a title's, the
//! agent's own compaction). The work of a strategy depends on the messages and on the
//! [`Input`]s of each call alone, which are logged: fed with the log again, it makes the same contexts.
//!
//! Only the list of messages is changed, and only where the context is another than the agent's: the other bytes of
//! the body are passed on as they are, and so is a message that the context has as it came. Where a strategy fails,
//! takes too long or would break a rule of the provider, the agent's own request is passed on for this call.
//!
//! No socket is opened here: [`proxy`](crate::proxy) does that.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::overflow;
use crate::session::redact::without_keys;
use crate::session::wire::request::{BodyReader, Request};
use crate::session::wire::stream::Api;
use crate::units::{ContentHash, Timestamp, Tokens};

mod asked;
mod conversation;
mod finished;
mod log;
mod played;
mod results;
mod state;

use conversation::{Conversation, Done, Follows};

pub use finished::{Finished, Measured};
pub use log::{Event, Log, read_log};
pub use state::{Input, Setting, Skip};

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
pub struct Sent {
    /// The body; `None` where the agent's own is sent.
    pub body: Option<String>,
    /// Identifies the call when its answer is reported; `None` where no strategy saw the request.
    pub ticket: Option<Ticket>,
}

/// Strategies in front of agents.
#[derive(Debug)]
pub struct Live {
    settings: Vec<Arc<Setting>>,
    timeout: Duration,
    reader: BodyReader,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    conversations: Vec<(LiveCell, Arc<Mutex<Conversation>>)>,
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
            // A line that is not whole ends the log.
            self.log = None;
            self.broken.get_or_insert(error);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// Strategies that an agent waits for at most so long at each call; `reader` reads its requests.
    pub fn new(settings: Vec<Setting>, timeout: Duration, reader: BodyReader) -> Self {
        Self {
            settings: settings.into_iter().map(Arc::new).collect(),
            timeout,
            reader,
            table: Mutex::default(),
        }
    }

    /// Replays a log: the state is then that of the [`Live`] that wrote it. Strategies are waited for as long as they
    /// take. Returns the calls at which another body would be sent now than was sent then.
    pub fn restore(&self, events: &[Event]) -> Result<Vec<Ticket>, NotItsLog> {
        let own = self.began();
        // What became of each request: the next line about its call that says it.
        let mut sent: BTreeMap<Ticket, VecDeque<Told<'_>>> = BTreeMap::new();
        for event in events {
            if let Event::Sent {
                ticket,
                skipped,
                hash,
            } = event
            {
                sent.entry(*ticket).or_default().push_back((*skipped, hash));
            }
        }
        let hash_of = |body: &Option<String>| body.as_ref().map(|body| hash(body));
        let mut bodies: BTreeMap<Ticket, (Api, &str)> = BTreeMap::new();
        let mut different = Vec::new();
        for event in events {
            match event {
                Event::Began { .. } if *event == own => {}
                Event::Began { .. } => return Err(NotItsLog::Settings),
                Event::Request {
                    ticket,
                    at,
                    api,
                    cell,
                    body,
                } => {
                    if cell.strategy >= self.settings.len() {
                        return Err(NotItsLog::Settings);
                    }
                    // A request that was cut off by the end of the program was placed all the same.
                    let told = sent.get_mut(ticket).and_then(VecDeque::pop_front);
                    let known = SentBy::Log(told.and_then(|(skipped, _)| skipped));
                    let now = self.take(cell, *api, body, *at, known);
                    if now.ticket != Some(*ticket) {
                        return Err(NotItsLog::Order);
                    }
                    if told.is_some_and(|(_, hash)| *hash != hash_of(&now.body)) {
                        different.push(*ticket);
                    }
                    bodies.insert(*ticket, (*api, body));
                }
                Event::Sent { .. } => {}
                Event::Refused { ticket, hash } => {
                    if let Some((api, body)) = bodies.get(ticket) {
                        let shorter = self.shorten(*ticket, *api, body, Patience::Endless);
                        if *hash != hash_of(&shorter) {
                            different.push(*ticket);
                        }
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
            (
                setting.spec.name().to_owned(),
                ContentHash::of_values(all).hex(16),
            )
        });
        Event::Began {
            strategies: strategies.collect(),
        }
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
    pub fn send(&self, cell: &LiveCell, api: Api, body: &str, at: Timestamp) -> Sent {
        self.take(cell, api, body, at, SentBy::Client)
    }

    fn take(&self, cell: &LiveCell, api: Api, body: &str, at: Timestamp, source: SentBy) -> Sent {
        // The places in it are those in the body that is sent.
        let kept = without_keys(body);
        let mut request = match (self.reader.request)(api, &kept) {
            Ok(request) => request,
            Err(why) => {
                self.pass(&why.to_string());
                return Sent {
                    body: None,
                    ticket: None,
                };
            }
        };
        let (ticket, conversation) = self.place(cell, api, &mut request, &kept, at);
        let job = {
            let mut conversation = lock(&conversation);
            let call = &mut conversation.inputs[ticket.call];
            // One that was late did its work all the same.
            if let SentBy::Log(skipped) = source {
                call.skipped = call.skipped.or(skipped);
            }
            conversation.job(ticket.call + 1)
        };
        let patience = match source {
            SentBy::Log(_) => Patience::Endless,
            SentBy::Client => Patience::Until(self.timeout),
        };
        let done = within(patience, move |_| Some(job.run()));
        let done = done.unwrap_or_else(|why| Done::nothing(Some(why)));
        let mut conversation = lock(&conversation);
        let call = &mut conversation.inputs[ticket.call];
        call.skipped = call.skipped.or(done.skipped);
        let skipped = call.skipped;
        let body = chosen(&conversation, &request, body, &done, skipped);
        drop(conversation);
        lock(&self.table).log(|| Event::Sent {
            ticket,
            skipped,
            hash: body.as_ref().map(|body| hash(body)),
        });
        Sent {
            body,
            ticket: Some(ticket),
        }
    }

    /// Finds the conversation of a request, or begins one.
    fn place(
        &self,
        cell: &LiveCell,
        api: Api,
        request: &mut Request<'_>,
        body: &str,
        at: Timestamp,
    ) -> (Ticket, Arc<Mutex<Conversation>>) {
        let mut table = lock(&self.table);
        let conversations = table.conversations.iter().enumerate();
        let candidates = conversations.filter(|(_, (its, _))| its == cell);
        let found = candidates.filter_map(|(number, (_, conversation))| {
            let conversation = lock(conversation);
            let is_own = conversation.api == api && conversation.client == request.client;
            let follows = is_own.then(|| conversation.follows(request)).flatten();
            follows.map(|(known, follows)| (known, follows, number))
        });
        let found = found.max();
        let (number, is_new) = match found {
            Some((_, Follows::Repeats, number)) => (number, false),
            Some((_, Follows::Answers | Follows::GoesOn, number)) => (number, true),
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
        (ticket, conversation)
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
        self.shorten(ticket, api, body, Patience::Until(self.timeout))
    }

    fn shorten(&self, ticket: Ticket, api: Api, body: &str, patience: Patience) -> Option<String> {
        let kept = without_keys(body);
        let request = (self.reader.request)(api, &kept).ok()?;
        let conversation = lock(&self.table)
            .conversations
            .get(ticket.conversation)?
            .1
            .clone();
        let job = {
            let conversation = lock(&conversation);
            let is_own = conversation.inputs.get(ticket.call)?.skipped.is_none();
            is_own.then(|| conversation.job(ticket.call + 1))?
        };
        let (done, is_shorter) =
            within(patience, move |is_given_up| job.refused(is_given_up)).ok()?;
        let mut conversation = lock(&conversation);
        conversation.inputs[ticket.call].refusals += 1;
        let entries = done.entries.filter(|_| is_shorter);
        let shorter = entries.map(|entries| conversation.body(&entries, &request, body));
        drop(conversation);
        lock(&self.table).log(|| Event::Refused {
            ticket,
            hash: shorter.as_ref().map(|body| hash(body)),
        });
        shorter
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
        let answer = response.and_then(|response| (self.reader.answer)(api, response));
        let is_last = ticket.call + 1 == conversation.inputs.len();
        let (Some(input), Some(mut answer)) = (conversation.inputs.get_mut(ticket.call), answer)
        else {
            return;
        };
        let usage = answer
            .details
            .usage
            .filter(|usage| usage.prompt() > Tokens::ZERO);
        input.answers += 1;
        input.unbilled += usize::from(usage.is_none());
        input.billed += usage.unwrap_or_default();
        if input.answered.is_none() {
            input.answered = Some((at, usage));
            answer.details.timestamp = Some(at);
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
    done: &Done,
    skipped: Option<Skip>,
) -> Option<String> {
    let entries = done.entries.as_ref().filter(|_| !done.is_whole)?;
    let would_overflow = || {
        let facts = &conversation.facts;
        let own = done.scale.prompt(facts.fixed + conversation.own_size());
        facts.setting.window.overflows(own)
    };
    let is_sent = match skipped {
        None => true,
        Some(Skip::Late) => false,
        Some(Skip::Failed | Skip::Invalid) => would_overflow(),
    };
    is_sent.then(|| conversation.body(entries, request, body))
}

/// The hash of a body without the keys in it, which are not in the log.
fn hash(body: &str) -> String {
    ContentHash::of(without_keys(body).as_bytes()).hex(16)
}

/// The name of the next conversation.
fn name(cell: &LiveCell, number: usize) -> String {
    match &cell.task {
        Some(task) => task.clone(),
        None => format!("live-{:04}", number + 1),
    }
}

/// The outcome of a logged request: why the strategy was not applied, and the hash of the body.
type Told<'a> = (Option<Skip>, &'a Option<String>);

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
enum SentBy {
    Client,
    /// A log, which says why the strategy was not applied.
    Log(Option<Skip>),
}

/// How long a strategy is waited for.
#[derive(Debug, Clone, Copy)]
enum Patience {
    Endless,
    Until(Duration),
}

/// Does some work, on a thread of its own where it is not waited for as long as it takes. It is told when nobody waits
/// for it any more.
fn within<T: Send + 'static>(
    patience: Patience,
    work: impl FnOnce(&AtomicBool) -> Option<T> + Send + 'static,
) -> Result<T, Skip> {
    let is_given_up = Arc::new(AtomicBool::new(false));
    let Patience::Until(timeout) = patience else {
        return work(&is_given_up).ok_or(Skip::Failed);
    };
    let (done, result) = mpsc::channel();
    let told = is_given_up.clone();
    let worker = std::thread::Builder::new().spawn(move || drop(done.send(work(&told))));
    if worker.is_err() {
        return Err(Skip::Failed);
    }
    match result.recv_timeout(timeout) {
        Ok(result) => result.ok_or(Skip::Failed),
        Err(RecvTimeoutError::Timeout) => {
            is_given_up.store(true, Ordering::SeqCst);
            Err(Skip::Late)
        }
        // It panicked: the words are on standard error.
        Err(RecvTimeoutError::Disconnected) => Err(Skip::Failed),
    }
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
