//! One conversation of an agent under one strategy, as far as its requests and answers are recognised by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::LiveCell;
use super::actor::Actor;
use super::state::{CallInput, FixedFacts, StrategySetting};
use super::worker::Worker;
use crate::session::wire::Look;
use crate::session::wire::request::{WireRequest, WireTurn};
use crate::session::wire::stream::Api;
use crate::session::{Message, MessageDetails, Role, Tag};
use crate::units::{ContentHash, Timestamp, Tokens, Usage};

/// The messages that an agent has sent, by their looks, call by call.
#[derive(Debug, Clone)]
pub(super) struct LiveConversation {
    pub(super) cell: LiveCell,
    pub(super) api: Api,
    /// The client's own name for it.
    pub(super) client: Option<Arc<str>>,
    model: Option<Arc<str>>,
    facts: FixedFacts,
    /// By what each message is recognised that was ever sent.
    looks: Vec<Look>,
    /// The messages of the last request: places among those.
    list: Vec<usize>,
    /// The call at which the agent compacted its history last.
    rewritten: usize,
    pub(super) calls: Vec<ConversationCall>,
    /// The last answer, as the provider gave it, until the agent sends it back.
    pub(super) answer: Option<Arc<Message>>,
    /// How many of the calls are another conversation's, that it branched off from.
    pub(super) inherited: usize,
    /// The conversation whose newest answers its first request holds.
    pub(super) quotes: Option<usize>,
    /// The conversation that it wrote a summary for.
    pub(super) summarises: Option<usize>,
    /// Has the strategy.
    pub(super) actor: Actor,
}

/// One call, with the answers to it: a request may be sent again.
#[derive(Debug, Clone, Default)]
pub(super) struct ConversationCall {
    /// The model that it asked for.
    pub(super) model: Option<Arc<str>>,
    /// How many messages had been sent then.
    messages: usize,
    /// How many of them its request held.
    listed: usize,
    /// When the first answer was whole, with its usage, if there was one.
    answered: Option<(Timestamp, Option<Usage>)>,
    pub(super) answers: usize,
    /// How many of them came without usage.
    pub(super) unbilled: usize,
    /// The usage of the others.
    pub(super) billed: Usage,
}

impl ConversationCall {
    /// Counts an answer with its usage, which is returned, and that of the requests within it.
    pub(super) fn bill(&mut self, answer: &mut MessageDetails) -> Option<Usage> {
        let inner = std::mem::take(&mut answer.inner_requests);
        let usage = answer.usage.filter(|usage| usage.prompt() > Tokens::ZERO);
        self.answers += 1;
        // A request to another model within the call has no price that is known here.
        let (own, others): (Vec<_>, Vec<_>) =
            inner.into_iter().partition(|request| request.model.is_none());
        self.unbilled += usize::from(usage.is_none() || !others.is_empty());
        self.billed += usage.unwrap_or_default();
        self.billed += own.into_iter().map(|request| request.usage).sum();
        usage
    }
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

impl LiveConversation {
    pub(super) fn begin(
        id: String,
        cell: &LiveCell,
        api: Api,
        setting: &Arc<StrategySetting>,
        request: &mut WireRequest<'_>,
    ) -> Self {
        let counts = &setting.counts;
        let tools = std::mem::take(&mut request.tools);
        let sizes = tools.iter().map(|tool| counts.schema(tool.text()));
        let fixed = sizes.chain(request.system.iter().map(|text| counts.size(text))).sum();
        let mut lot = [0; 8];
        lot.copy_from_slice(&ContentHash::of(&id).bytes()[..8]);
        let facts = FixedFacts {
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
            list: Vec::new(),
            rewritten: 0,
            calls: Vec::new(),
            answer: None,
            inherited: 0,
            quotes: None,
            summarises: None,
        }
    }

    /// Its first calls, as a conversation of its own. That one's actor asks this one's for their past.
    pub(super) fn branch(&self, id: String, calls: usize) -> Self {
        let (reply, past) = std::sync::mpsc::channel();
        self.actor.queue(move |worker| drop(reply.send(worker.past(calls))));
        let worker = Worker::new(id, self.api, self.model.clone(), self.facts.clone());
        let actor = Actor::new(worker);
        actor.queue(move |worker| worker.past = past.recv().unwrap_or_default());
        let calls = self.calls[..calls].to_vec();
        let (messages, listed) = calls.last().map_or((0, 0), |call| (call.messages, call.listed));
        Self {
            cell: self.cell.clone(),
            api: self.api,
            client: self.client.clone(),
            model: self.model.clone(),
            facts: self.facts.clone(),
            looks: self.looks[..messages].to_vec(),
            list: self.list[..listed].to_vec(),
            rewritten: self.rewritten,
            answer: None,
            inherited: calls.len(),
            quotes: None,
            summarises: None,
            calls,
            actor,
        }
    }

    /// How these messages go on with it, and how many of them it has.
    ///
    /// Where only the first message is known, another agent may have got the same: model and system prompt tell, or the
    /// answer that comes back.
    pub(super) fn follows(&self, request: &WireRequest<'_>) -> Option<(usize, Follows)> {
        let turns = &request.turns;
        let same = self.same(turns);
        if same == self.list.len() {
            let certain = self.is_long()
                || self.list.len() > 1
                || self.model == request.model && self.facts.system == request.system;
            let follows = match (turns.get(same), &self.answer) {
                (None, _) if certain => Follows::Repeats,
                (Some(_), _) if certain => Follows::GoesOn,
                (Some(next), Some(own)) if next.look.is_like(&Look::of(own)) => Follows::Answers,
                _ => return None,
            };
            return (same > 0).then_some((same, follows));
        }
        let since = &self.calls[self.rewritten..];
        let calls = since.partition_point(|call| call.listed <= same);
        let known = since[..calls].last()?.listed;
        let calls = self.rewritten + calls;
        (known < turns.len()).then_some((known, Follows::Branches(calls)))
    }

    /// Whether one call alone is its own.
    pub(super) fn has_one_call(&self) -> bool {
        self.calls.len() == self.inherited + 1
    }

    /// Whether it has more than one call.
    pub(super) fn is_long(&self) -> bool {
        self.calls.len() > 1
    }

    /// How many of these messages, from the first, are those of the last request.
    pub(super) fn same(&self, turns: &[WireTurn]) -> usize {
        let pairs = self.list.iter().zip(turns);
        pairs.take_while(|(at, turn)| self.looks[**at].is_like(&turn.look)).count()
    }

    /// Where each of these messages is in the history, if they are what the agent's own compaction of its last request
    /// left: a summary, or messages from behind the first that is gone. What an earlier compaction took out does not come
    /// back, and no answer comes in but a summary: such a request is another conversation's.
    pub(super) fn compacted(
        &self,
        request: &WireRequest<'_>,
        is_summed_up: bool,
        is_quoted: bool,
    ) -> Option<Vec<Option<usize>>> {
        let same_agent = self.facts.system == request.system || self.client.is_some();
        if !same_agent || *self.facts.tools != *request.tools {
            return None;
        }
        let mut places: BTreeMap<ContentHash, Vec<usize>> = BTreeMap::new();
        let answer = self.answer.as_ref().map(|answer| Look::of(answer));
        // In the order of the last request: what an earlier compaction added stands in front of older messages.
        let mut listed = self.list.clone();
        listed.extend(answer.is_some().then_some(self.looks.len()));
        let looks = self.list.iter().map(|at| &self.looks[*at]);
        for (at, look) in looks.chain(&answer).enumerate() {
            places.entry(look.key()).or_default().push(at);
        }
        let mut next = 0;
        let found = request.turns.iter().map(|turn| {
            let own = places.get(&turn.look.key())?;
            let place = *own.get(own.partition_point(|at| *at < next))?;
            next = place + 1;
            Some(listed[place])
        });
        let mut found: Vec<Option<usize>> = found.collect();
        // An answer that is not known is the one behind the last message.
        let newest = Some(self.looks.len().wrapping_sub(1));
        let last = found.iter().position(|place| answer.is_none() && *place == newest);
        if let Some(last) = last
            && let (Some(place), Some(turn)) =
                (found.get_mut(last + 1), request.turns.get(last + 1))
            && turn.message.role() == Role::Assistant
        {
            *place = Some(self.looks.len());
        }
        let same = self.same(&request.turns);
        let rest = found[same..].iter().zip(&request.turns[same..]);
        let mut added = rest.filter(|(place, _)| place.is_none());
        if !is_quoted && added.any(|(_, turn)| turn.message.role() == Role::Assistant) {
            return None;
        }
        (is_summed_up || found[same..].iter().any(Option::is_some)).then_some(found)
    }

    /// Adds a call: the new messages of its request, and its input. If the agent has compacted its history, each message
    /// has its place in there.
    pub(super) fn add(
        &mut self,
        request: &WireRequest<'_>,
        at: Timestamp,
        compacted: Option<Vec<Option<usize>>>,
    ) -> (Vec<Arc<Message>>, CallInput) {
        let turns = &request.turns;
        let before = self.calls.last().and_then(|call| call.answered);
        let known = self.looks.len();
        let mut new = Vec::new();
        let answer = self.answer.take();
        if let Some(places) = &compacted {
            // The last answer was one even if it is gone from the history.
            let sent = turns.iter().zip(places).find(|(_, place)| **place == Some(known));
            if let Some(mut message) = sent.map(|(turn, _)| turn.message.clone()).or(answer) {
                let details = &mut Arc::make_mut(&mut message).details;
                if let Some((time, usage)) = before {
                    details.timestamp = Some(time);
                    details.usage = usage;
                }
                self.looks.push(Look::of(&message));
                new.push(message);
            }
        }
        let rewrites = compacted.is_some();
        let old = compacted.unwrap_or_else(|| self.list.iter().copied().map(Some).collect());
        let places = old.into_iter().chain(std::iter::repeat(None));
        let mut summed_up = !rewrites;
        let list = turns.iter().zip(places).map(|(turn, place)| {
            if let Some(place) = place {
                return place;
            }
            let mut message = (*turn.message).clone();
            let from_model = message.role() == Role::Assistant;
            let answers_call = from_model && new.is_empty() && !rewrites;
            if from_model && !answers_call && known > 0 {
                // It is history, and no answer to a call of this conversation.
                message.tags.set(Tag::Synthetic, true);
            }
            if !from_model && !summed_up && message.tool_results().next().is_none() {
                // The first message that a compaction adds is its summary.
                message.tags.set(Tag::TypedUser, false);
                message.tags.set(Tag::CompactSummary, true);
                summed_up = true;
            }
            message.details.timestamp = Some(at);
            if let Some((time, usage)) = before.filter(|_| answers_call) {
                message.details.timestamp = Some(time);
                message.details.usage = usage;
            }
            new.push(Arc::new(message));
            self.looks.push(turn.look);
            self.looks.len() - 1
        });
        self.list = list.collect();
        if rewrites {
            self.rewritten = self.calls.len();
        }
        let messages = self.looks.len();
        self.calls.push(ConversationCall {
            model: request.model.clone(),
            messages,
            listed: self.list.len(),
            ..ConversationCall::default()
        });
        let input = CallInput {
            at,
            messages,
            rewritten: rewrites.then(|| self.list.clone()),
            refusals: 0,
            before,
            skipped: None,
        };
        (new, input)
    }

    /// Takes note of an answer to a call.
    pub(super) fn answered(&mut self, call: usize, mut answer: Message, at: Timestamp) {
        let newest = call + 1 == self.calls.len();
        let Some(call) = self.calls.get_mut(call) else {
            return;
        };
        // Ids of answers are unique as far as the server goes.
        answer.details.api_call = None;
        let usage = call.bill(&mut answer.details);
        if call.answered.is_none() {
            call.answered = Some((at, usage));
            answer.details.timestamp = Some(at);
            if newest {
                self.answer = Some(Arc::new(answer));
            }
        }
    }
}
