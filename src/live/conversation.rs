//! One conversation of an agent under one strategy, as far as its requests and answers are recognised by it.

use std::sync::Arc;

use super::LiveCell;
use super::actor::Actor;
use super::state::{Facts, Input, Setting};
use super::worker::Worker;
use crate::session::wire::Look;
use crate::session::wire::request::{Request, Turn};
use crate::session::wire::stream::Api;
use crate::session::{Message, Role, Tag};
use crate::units::{ContentHash, Timestamp, Tokens, Usage};

/// The messages that an agent has sent, by their looks, call by call.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) cell: LiveCell,
    pub(super) api: Api,
    /// The client's own name for it.
    pub(super) client: Option<Arc<str>>,
    model: Option<Arc<str>>,
    facts: Facts,
    looks: Vec<Look>,
    pub(super) calls: Vec<Call>,
    /// The last answer, as the provider gave it, until the agent sends it back.
    pub(super) answer: Option<Arc<Message>>,
    /// How many of the calls are another conversation's, that it branched off from.
    pub(super) inherited: usize,
    /// Has the strategy.
    pub(super) actor: Actor,
}

/// One call, with the answers to it: a request may be sent again.
#[derive(Debug, Clone, Default)]
pub(super) struct Call {
    /// How many messages of the agent's history it held.
    messages: usize,
    /// When the first answer was whole, with its usage, if there was one.
    answered: Option<(Timestamp, Option<Usage>)>,
    pub(super) answers: usize,
    /// How many of them came without usage.
    pub(super) unbilled: usize,
    /// The usage of the others.
    pub(super) billed: Usage,
}

/// How a request goes on with a conversation; later ones are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Follows {
    /// It begins as the conversation did up to the end of this many calls, and goes on otherwise.
    Branches(usize),
    /// It is the last request again.
    Repeats,
    /// It goes on where the last answer ended, with another model or system prompt: one that tells the time.
    Answers,
    /// It goes on where the last call ended.
    GoesOn,
}

impl Conversation {
    pub(super) fn begin(
        id: String,
        cell: &LiveCell,
        api: Api,
        setting: &Arc<Setting>,
        request: &mut Request<'_>,
    ) -> Self {
        let counts = &setting.counts;
        let tools = std::mem::take(&mut request.tools);
        let sizes = tools.iter().map(|tool| counts.schema(tool.text()));
        let fixed = sizes
            .chain(request.system.iter().map(|text| counts.size(text)))
            .sum();
        let mut lot = [0; 8];
        lot.copy_from_slice(&ContentHash::of(&id).bytes()[..8]);
        let facts = Facts {
            setting: setting.clone(),
            lot: u64::from_le_bytes(lot),
            repeat: cell.repeat,
            system: request.system.clone(),
            tools: tools.into(),
            fixed,
        };
        let model = request.model.clone();
        Self {
            actor: Actor::new(Worker::new(id, api, model.clone(), facts.clone())),
            cell: cell.clone(),
            api,
            client: request.client.clone(),
            model,
            facts,
            looks: Vec::new(),
            calls: Vec::new(),
            answer: None,
            inherited: 0,
        }
    }

    /// Its first calls, as a conversation of its own. That one's actor asks this one's for their past.
    pub(super) fn branch(&self, id: String, calls: usize) -> Self {
        let (reply, past) = std::sync::mpsc::channel();
        self.actor
            .queue(move |worker| drop(reply.send(worker.past(calls))));
        let worker = Worker::new(id, self.api, self.model.clone(), self.facts.clone());
        let actor = Actor::new(worker);
        actor.queue(move |worker| worker.begin(past.recv().unwrap_or_default()));
        let calls = self.calls[..calls].to_vec();
        let messages = calls.last().map_or(0, |call| call.messages);
        Self {
            cell: self.cell.clone(),
            api: self.api,
            client: self.client.clone(),
            model: self.model.clone(),
            facts: self.facts.clone(),
            looks: self.looks[..messages].to_vec(),
            answer: None,
            inherited: calls.len(),
            calls,
            actor,
        }
    }

    /// How these messages go on with it, and how many of them it has.
    ///
    /// Where only the first message is known, another agent may have got the same: model and system prompt tell, or the
    /// answer that comes back.
    pub(super) fn follows(&self, request: &Request<'_>) -> Option<(usize, Follows)> {
        let turns = &request.turns;
        let is_of_agent = self.model == request.model && self.facts.system == request.system;
        let pairs = self.looks.iter().zip(turns);
        let same = pairs
            .take_while(|(own, turn)| own.is_like(&turn.look))
            .count();
        if same == self.looks.len() {
            let is_told_apart = self.calls.len() > 1 || self.looks.len() > 1;
            let is_certain = is_told_apart || is_of_agent;
            let follows = match (turns.get(same), &self.answer) {
                (None, _) if is_certain => Follows::Repeats,
                (Some(_), _) if is_certain => Follows::GoesOn,
                (Some(next), Some(own)) if next.look.is_like(&Look::of(own)) => Follows::Answers,
                _ => return None,
            };
            return (same > 0).then_some((same, follows));
        }
        let calls = self.calls.partition_point(|call| call.messages <= same);
        let known = self.calls[..calls].last()?.messages;
        (known < turns.len()).then_some((known, Follows::Branches(calls)))
    }

    /// Adds a call: the new messages of its request, and its input.
    pub(super) fn add(&mut self, turns: &[Turn], at: Timestamp) -> (Vec<Arc<Message>>, Input) {
        let known = self.looks.len();
        let answered = self.calls.last().and_then(|call| call.answered);
        let new = turns.iter().enumerate().skip(known).map(|(index, turn)| {
            let is_answer = index == known && turn.message.role() == Role::Assistant;
            let mut message = (*turn.message).clone();
            if !is_answer && known > 0 && message.role() == Role::Assistant {
                // It is history, and no answer to a call of this conversation.
                let tags: Vec<Tag> = message.tags.iter().chain([Tag::Synthetic]).collect();
                message = message.with_tags(tags);
            }
            message.details.timestamp = match answered {
                Some((time, usage)) if is_answer => {
                    message.details.usage = usage;
                    Some(time)
                }
                _ => Some(at),
            };
            Arc::new(message)
        });
        let new = new.collect();
        self.looks
            .extend(turns.iter().skip(known).map(|turn| turn.look));
        self.answer = None;
        let messages = self.looks.len();
        self.calls.push(Call {
            messages,
            ..Call::default()
        });
        let input = Input {
            at,
            messages,
            refusals: 0,
            before: answered,
            skipped: None,
        };
        (new, input)
    }

    /// Takes note of an answer to a call.
    pub(super) fn answered(&mut self, call: usize, mut answer: Message, at: Timestamp) {
        let is_last = call + 1 == self.calls.len();
        let Some(call) = self.calls.get_mut(call) else {
            return;
        };
        let usage = answer.details.usage;
        let usage = usage.filter(|usage| usage.prompt() > Tokens::ZERO);
        call.answers += 1;
        call.unbilled += usize::from(usage.is_none());
        call.billed += usage.unwrap_or_default();
        if call.answered.is_none() {
            call.answered = Some((at, usage));
            answer.details.timestamp = Some(at);
            if is_last {
                self.answer = Some(Arc::new(answer));
            }
        }
    }
}
