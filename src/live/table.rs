//! The table of all conversations. It knows by what requests are recognised, and waits for no strategy.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::conversation::{ConversationCall, Follows, LiveConversation};
use super::state::{CallInput, StrategySetting};
use super::{Event, LiveCell, Log};
use crate::session::wire::Look;
use crate::session::wire::request::WireRequest;
use crate::session::wire::stream::Api;
use crate::session::{ContentBlock, Message, Role};
use crate::units::{ContentHash, Timestamp};

/// A summary is sent soon after it was written: the number of answers that are remembered.
const RECENT_ANSWERS: usize = 16;

/// A prompt may hold a shorter answer by chance.
const SUMMARY_CHARS: usize = 40;

#[derive(Debug, Default)]
pub(super) struct ConversationTable {
    pub(super) conversations: Vec<LiveConversation>,
    /// By cell, API and the client's name for its conversations.
    clients: BTreeMap<(LiveCell, Api, Option<Arc<str>>), ClientConversations>,
    pub(super) log: Option<Log>,
    /// How many requests and refusals came.
    asked: usize,
    /// Why the log could not be written.
    pub(super) broken: Option<String>,
    /// The answers to requests that no strategy saw, by cell and model.
    pub(super) apart: BTreeMap<(LiveCell, Option<Arc<str>>), ConversationCall>,
    /// Requests that no strategy saw, by the reason.
    pub(super) untouched: BTreeMap<String, u64>,
}

/// The conversations among which a request may belong to one.
#[derive(Debug, Default)]
struct ClientConversations {
    /// Those that have a message of one look.
    holding: BTreeMap<ContentHash, BTreeSet<usize>>,
    /// The last answers with the conversations that they were given in.
    answers: VecDeque<(String, usize)>,
}

/// The messages and the input of a new call.
type New = (Vec<Arc<Message>>, CallInput);

impl ConversationTable {
    pub(super) fn log(&mut self, event: impl FnOnce() -> Event) {
        let written = self.log.as_mut().map_or(Ok(()), |log| log.write(event()));
        if let Err(error) = written {
            // A line that is not whole ends the log.
            self.log = None;
            self.broken.get_or_insert(error.to_string());
        }
    }

    /// Logs a request or a refusal, and numbers it.
    pub(super) fn log_asked(&mut self, event: Event) -> usize {
        self.log(|| event);
        self.asked += 1;
        self.asked - 1
    }

    /// Finds the conversation of a request, or begins one. Returns its number, with the new call unless the request is
    /// the last one again.
    pub(super) fn place(
        &mut self,
        cell: &LiveCell,
        api: Api,
        setting: &Arc<StrategySetting>,
        request: &mut WireRequest<'_>,
        at: Timestamp,
    ) -> (usize, Option<New>) {
        let Self { conversations, clients, .. } = self;
        let key = (cell.clone(), api, request.client.clone());
        let mut found = None;
        if request.client.is_some() && !clients.contains_key(&key) {
            // A conversation may get another name, as when it is resumed.
            let same_cell = clients.iter().filter(|((its, of_api, _), other)| {
                (its, *of_api) == (cell, api) && other.answered(request)
            });
            let followed =
                same_cell.filter_map(|(_, other)| other.followed_by(conversations, request));
            found = followed.max().filter(|(_, follows, _)| *follows == Follows::GoesOn);
            if let Some((.., number)) = found {
                conversations[number].client.clone_from(&request.client);
            }
        }
        let client = clients.entry(key).or_default();
        found = found.or_else(|| client.followed_by(conversations, request));
        let next = conversations.len();
        let (number, compacted) = match found {
            Some((_, Follows::Repeats, number)) => return (number, None),
            Some((_, Follows::Answers | Follows::GoesOn, number)) => (number, None),
            Some((_, Follows::Branches(_), _)) | None => {
                match client.compacted(conversations, request) {
                    Some((number, places)) => (number, Some(places)),
                    None => (next, None),
                }
            }
        };
        if number == next {
            let id = match &cell.task {
                Some(task) => task.clone(),
                None => format!("live-{:04}", next + 1),
            };
            conversations.push(if let Some((_, Follows::Branches(calls), of)) = found {
                conversations[of].branch(id, calls)
            } else {
                let quotes = client.quoted_in(&texts(request));
                let mut begun = LiveConversation::begin(id, cell, api, setting, request);
                begun.quotes = quotes;
                begun
            });
        }
        for turn in &request.turns {
            let holding = client.holding.entry(turn.look.key()).or_default();
            holding.insert(number);
        }
        let new = conversations[number].add(request, at, compacted);
        (number, Some(new))
    }

    /// The task of a request that names none, of a sub-agent or behind a compaction. One that follows a conversation
    /// stays in it, whether that has a task or none. Any other has the task of those whose answers it holds, or else of
    /// the other requests of its client, where they have one alone.
    pub(super) fn task_of(
        &self,
        cell: &LiveCell,
        api: Api,
        request: &WireRequest<'_>,
    ) -> Option<String> {
        let near = self.clients.iter().filter(|((other, of_api, client), _)| {
            (other.strategy, other.repeat, *of_api, client)
                == (cell.strategy, cell.repeat, api, &request.client)
        });
        let near: Vec<(Option<&String>, &ClientConversations)> =
            near.map(|((other, ..), known)| (other.task.as_ref(), known)).collect();
        let followed =
            near.iter().filter_map(|(_, known)| known.followed_by(&self.conversations, request));
        if let Some((.., number)) = followed.max() {
            return self.conversations[number].cell.task.clone();
        }
        let answered = near.iter().filter(|(_, known)| known.answered(request));
        let mut tasks: BTreeSet<Option<&String>> = answered.map(|(task, _)| *task).collect();
        if tasks.is_empty() {
            let said = request.client.is_none().then(|| texts(request));
            let others = near.iter().filter(|(_, known)| match &said {
                Some(said) => known.quoted_in(said).is_some(),
                None => true,
            });
            tasks = others.map(|(task, _)| *task).collect();
        }
        let mut named = tasks.into_iter().flatten();
        named.next().filter(|_| named.next().is_none()).cloned()
    }

    /// Takes note of the answer to a call.
    pub(super) fn answered(
        &mut self,
        (number, call): (usize, usize),
        answer: Message,
        at: Timestamp,
    ) {
        let Some(conversation) = self.conversations.get_mut(number) else {
            return;
        };
        let said = text(&answer);
        // Thoughts about a summary are not sent back.
        let rest = said.split_once("<summary>").map_or(&*said, |(_, rest)| rest);
        let summary = rest.split("</summary>").next().unwrap_or_default().trim();
        let key = (conversation.cell.clone(), conversation.api, conversation.client.clone());
        if let Some(client) = self.clients.get_mut(&key) {
            let holding = client.holding.entry(Look::of(&answer).key());
            holding.or_default().insert(number);
            if summary.chars().count() >= SUMMARY_CHARS {
                client.answers.push_back((summary.to_owned(), number));
            }
            if client.answers.len() > RECENT_ANSWERS {
                client.answers.pop_front();
            }
        }
        conversation.answered(call, answer, at);
    }
}

impl ClientConversations {
    /// Whether a request holds an answer that was given here.
    fn answered(&self, request: &WireRequest<'_>) -> bool {
        let turns = request.turns.iter();
        let mut answers = turns.filter(|turn| turn.message.role() == Role::Assistant);
        answers.any(|turn| self.holding.contains_key(&turn.look.key()))
    }

    /// The conversation that a request follows best, with how many messages it has of it.
    fn followed_by(
        &self,
        conversations: &[LiveConversation],
        request: &WireRequest<'_>,
    ) -> Option<(usize, Follows, usize)> {
        let near = self.holding.get(&request.turns.first()?.look.key())?;
        let found = near.iter().filter_map(|number| {
            let (known, follows) = conversations[*number].follows(request)?;
            Some((known, follows, *number))
        });
        found.max()
    }

    /// The conversation of the newest answer that these texts of a request hold as words.
    fn quoted_in(&self, said: &str) -> Option<usize> {
        let quoted = self.answers.iter().rev().find(|(answer, _)| {
            let quoted = serde_json::Value::from(&**answer).to_string();
            said.contains(answer) || said.contains(quoted.trim_matches('"'))
        });
        quoted.map(|(_, of)| *of)
    }

    /// The conversation whose history an agent has compacted by itself to this request, with the places of the messages
    /// in there. Those that wrote the summary belong to it from now on.
    fn compacted(
        &self,
        conversations: &mut [LiveConversation],
        request: &WireRequest<'_>,
    ) -> Option<(usize, Vec<Option<usize>>)> {
        let turns = request.turns.iter();
        let new = turns.filter(|turn| {
            let mut holding = self.holding.get(&turn.look.key()).into_iter().flatten();
            // The only answer of a conversation may be a summary that comes back word for word.
            holding.all(|number| {
                turn.message.role() == Role::Assistant && conversations[*number].has_one_call()
            })
        });
        let new: Vec<(Role, String)> =
            new.map(|turn| (turn.message.role(), text(&turn.message))).collect();
        let summed_up = self.answers.iter().filter_map(|(answer, of)| {
            let (role, _) = new.iter().find(|(_, text)| text.contains(answer))?;
            Some((*role, *of))
        });
        let summed_up: Vec<(Role, usize)> = summed_up.collect();
        let by_user = summed_up.iter().any(|(role, _)| *role == Role::User);
        let near: BTreeSet<usize> = if by_user {
            // A summary may be all that is left.
            self.holding.values().flatten().copied().collect()
        } else {
            let turns = request.turns.iter();
            turns.filter_map(|turn| self.holding.get(&turn.look.key())).flatten().copied().collect()
        };
        let long = near.iter().filter(|number| conversations[**number].is_long());
        let only = request.client.is_some() && long.count() == 1;
        let candidates = near.into_iter().filter(|number| {
            let same = conversations[*number].same(&request.turns);
            let mut rest = request.turns[same..].iter();
            by_user
                || rest.any(|turn| {
                    let holding = self.holding.get(&turn.look.key());
                    holding.is_some_and(|holding| holding.contains(number))
                })
        });
        let found = candidates.filter_map(|number| {
            let places =
                conversations[number].compacted(request, by_user, !summed_up.is_empty())?;
            let kept = places.iter().flatten().count();
            // One call alone wrote a summary, and was summed up in none.
            let long = conversations[number].is_long();
            let mut writers = summed_up.iter().map(|(_, of)| *of);
            let own = writers.any(|of| of == number || conversations[of].quotes == Some(number));
            // Any agent of the same kind could have left a summary alone.
            (kept > 0 || long && (own || only)).then_some((kept, own, number, places))
        });
        let (_, _, of, places) = found.max()?;
        for (_, number) in summed_up {
            let own = &mut conversations[number];
            if number != of && own.has_one_call() {
                own.summarises = Some(of);
            }
        }
        Some((of, places))
    }
}

/// The texts of a request.
fn texts(request: &WireRequest<'_>) -> String {
    request.turns.iter().map(|turn| text(&turn.message)).collect::<Vec<_>>().join("\n")
}

/// The texts of a message.
pub(super) fn text(message: &Message) -> String {
    let texts = message.content().iter().filter_map(ContentBlock::as_text);
    texts.map(|text| text.trim()).collect::<Vec<_>>().join("\n")
}
