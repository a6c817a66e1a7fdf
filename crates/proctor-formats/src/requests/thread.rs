//! A session that grows request by request.

use std::slice::from_ref;

use super::agent::{AgentIdentity, Name};
use super::bills::pay;
use super::fork::{Fork, ForkKind};
use super::said::{holds_answer, sums_up, without_notes};
use super::seen::{Seen, is_models};
use super::{Logged, LoggedRequest, ToldCompaction};
use crate::prelude::*;
use proctor_sessions::{InnerRequest, MessageDetails};

/// A session that grows request by request.
pub(super) struct SessionThread {
    /// Its number in the order of beginning.
    pub(super) name: usize,
    pub(super) session: Session,
    /// The last request with its answer.
    context: Vec<Seen>,
    /// A look for each message of the history.
    history: Vec<Look>,
    /// Where in the history a look was first seen.
    places: BTreeMap<ContentHash, usize>,
    shapes: BTreeMap<ContentHash, usize>,
    /// Where messages with tool calls are, by what they say.
    pub(super) forms: BTreeMap<ContentHash, Vec<usize>>,
    calls: BTreeSet<ApiCallId>,
    /// The billed messages of the history, each with the size of its prompt.
    prompts: Vec<(usize, Tokens)>,
    pub(super) agent: AgentIdentity,
    /// The names that its requests gave it.
    pub(super) names: BTreeSet<Name>,
    /// How many requests it was made of.
    pub(super) requests: usize,
    /// How many of their answers ask for tools.
    actions: usize,
    /// The lengths of the history and of the context before the last request.
    before: (usize, usize),
    /// Where it left another session, until it is known what it is.
    pub(super) fork: Option<Fork>,
    pub(super) is_answered: bool,
    /// It was sent, and the response was not an answer.
    pub(super) is_failed: bool,
    /// A compaction was told of before all that is recorded.
    was_told: bool,
    /// The bills of requests for the summary of the next compaction.
    pub(super) summary_bills: Vec<InnerRequest>,
}

/// How a message is counted that a client sent again with other words.
const EDITED: &str =
    "a message of the user's was sent again with other words; the first ones stand";

impl SessionThread {
    pub(super) fn new(name: usize, mut one: Logged, agent: AgentIdentity) -> Self {
        let answer = one.answer().cloned();
        let answered = answer.is_some();
        let mut thread = Self {
            name,
            was_told: one.count_told(),
            is_failed: one.is_answered && !answered,
            names: one.name.iter().cloned().collect(),
            agent,
            session: one.session,
            context: Vec::new(),
            history: Vec::new(),
            places: BTreeMap::new(),
            shapes: BTreeMap::new(),
            forms: BTreeMap::new(),
            calls: BTreeSet::new(),
            prompts: Vec::new(),
            requests: 1,
            actions: usize::from(answer.is_some_and(|answer| answer.tool_uses().next().is_some())),
            before: (0, 0),
            fork: None,
            is_answered: answered,
            summary_bills: Vec::new(),
        };
        let messages = thread.session.parts().messages.clone();
        for (at, message) in messages.iter().enumerate() {
            thread.remember(message, answered && at + 1 == messages.len());
        }
        thread
    }

    /// Takes note of the next message of the history.
    pub(super) fn remember(&mut self, message: &Arc<Message>, is_answer: bool) {
        let look = Look::of(message);
        let at = self.history.len();
        self.places.entry(look.whole).or_insert(at);
        self.shapes.entry(look.shape).or_insert(at);
        if look.has_calls() {
            self.forms.entry(look.form).or_default().push(at);
        }
        self.history.push(look);
        self.context.push(Seen { look, is_answer, sent: look.shape, message: message.clone() });
        self.calls.extend(message.details.api_call.clone());
        self.prompts.extend(message.details.usage.map(|usage| (at, Tokens(usage.prompt().0))));
    }

    pub(super) fn ends_with(&self, response: &str) -> bool {
        let last = self.session.parts().messages.last();
        let call = last.and_then(|message| message.details.api_call.as_ref());
        call.is_some_and(|call| &*call.0 == response)
    }

    /// How many messages of the context a request begins with, and whether an answer is among them. Messages that are no
    /// more than alike need a call or a long answer to prove them. A first one may be any other, as a client may tell the
    /// time there, or the state of its place: that needs a call with its id.
    pub(super) fn common(&self, request: &LoggedRequest) -> (usize, bool) {
        let (asked, looks) = (request.asked(), &request.looks);
        let (mut has_answer, mut proved, mut reworded) = (false, false, false);
        let (mut count, mut doubtful) = (0, None);
        for (seen, (message, look)) in self.context.iter().zip(asked.iter().zip(looks)) {
            if !seen.is(look) {
                // The words of a compaction are no part of the history.
                let alike = self.place(&seen.look).is_some() && seen.is_alike(look, message);
                let new = &request.begins_with;
                let first =
                    count == 0 && new.iter().all(|one| holds_answer(&seen.message, from_ref(one)));
                if !(alike || first && seen.is_reworded(look, message)) {
                    break;
                }
                reworded |= !alike;
                doubtful = doubtful.or(Some((count, has_answer)));
            }
            let answered = seen.is_answer_in(look);
            proved |= if reworded {
                look.has_calls() && seen.sent == look.shape
            } else {
                seen.is_call(look) || answered && seen.is_long()
            };
            has_answer |= answered;
            count += 1;
        }
        doubtful.filter(|_| !proved).unwrap_or((count, has_answer))
    }

    /// Whether a request begins with the whole conversation.
    pub(super) fn is_begun_by(&self, request: &LoggedRequest) -> bool {
        let length = self.context.len();
        self.is_answered && length <= request.looks.len() && self.common(request).0 == length
    }

    /// The number of messages of a request up to the end of the conversation, if it leaves out nothing of it: a product
    /// that starts anew may set up the context again, or repeat a part.
    pub(super) fn known_of(&self, request: &LoggedRequest) -> Option<usize> {
        if self.is_begun_by(request) {
            return Some(self.context.len());
        }
        let mut rest = self.context.iter().peekable();
        let mut is_proved = false;
        for (at, look) in request.looks.iter().enumerate() {
            if let Some(seen) = rest.next_if(|seen| seen.is(look)) {
                is_proved |= seen.is_answer_in(look);
            } else if !look.has_calls() || self.place(look).is_some() {
                continue;
            }
            if rest.peek().is_none() {
                return (self.is_answered && is_proved).then_some(at + 1);
            }
        }
        None
    }

    /// Whether a request begins with the same words.
    pub(super) fn begins_in(&self, request: &LoggedRequest) -> bool {
        self.context.first().zip(request.looks.first()).is_some_and(|(first, look)| first.is(look))
    }

    /// Whether a request holds a message of the context in its place, with its ids.
    pub(super) fn has_at(&self, place: usize, request: &LoggedRequest) -> bool {
        self.context.get(place).zip(request.looks.get(place)).is_some_and(|(seen, look)| {
            let own = &seen.look;
            own.whole == look.whole || own.has_calls() && own.shape == look.shape
        })
    }

    /// Whether it is one of several answers to a request: only their ids tell which of them a later one goes on from.
    pub(super) fn is_other_answer(&self) -> bool {
        let kind = self.fork.as_ref().map(|fork| fork.kind);
        matches!(kind, Some(ForkKind::Again | ForkKind::Withdrawn))
    }

    /// Whether its answer was left out for another one.
    pub(super) fn is_withdrawn(&self) -> bool {
        self.fork.as_ref().is_some_and(|fork| fork.kind == ForkKind::Withdrawn)
    }

    /// Whether the last answer says nothing.
    pub(super) fn is_silent(&self) -> bool {
        self.context.last().is_some_and(|last| {
            last.is_answer && last.message.model_text().iter().all(|text| text.is_empty())
        })
    }

    /// Whether the last answer asks for tools.
    pub(super) fn is_open(&self) -> bool {
        self.context.last().is_some_and(|last| last.message.tool_uses().next().is_some())
    }

    /// Whether a request holds the last answer.
    pub(super) fn is_sent_back(&self, request: &LoggedRequest) -> bool {
        let last = self.context.last();
        last.is_some_and(|last| request.looks.iter().any(|look| last.look.form == look.form))
    }

    /// Whether a request holds something that the model or a tool said here.
    pub(super) fn shares_answer(&self, request: &LoggedRequest) -> bool {
        request.looks.iter().any(|look| {
            let place = self.place(look).map(|(at, _)| at);
            let message = place.and_then(|at| self.session.parts().messages.get(at));
            message.is_some_and(|message| is_models(message))
                || look.has_calls() && (place.is_some() || self.forms.contains_key(&look.form))
        })
    }

    /// The length of the last request with its answer.
    pub(super) fn length(&self) -> usize {
        self.context.len()
    }

    /// Takes note of how the messages look that were sent again: answers without their thoughts, others edited.
    pub(super) fn recognise(&mut self, request: &LoggedRequest) {
        let asked = request.asked().iter().zip(&request.looks).zip(&request.sent);
        let mut edited = 0;
        for (seen, ((message, look), sent)) in self.context.iter_mut().zip(asked) {
            seen.sent = *sent;
            let same = seen.is(look);
            edited += usize::from(!same);
            if (seen.is_answer || !same)
                && let Some(at) = self.places.get(&seen.look.whole).copied()
            {
                self.places.insert(look.whole, at);
                self.history[at] = *look;
            }
            if !same {
                seen.message = message.clone();
            }
            seen.look = *look;
            seen.is_answer = false;
        }
        let source = &mut self.session.parts_mut().source;
        (0..edited).for_each(|_| source.warn(EDITED));
    }

    /// Whether the last request was this one, perhaps with other notes.
    pub(super) fn was_asked(&self, request: &LoggedRequest) -> bool {
        let (asked, looks) = (request.asked(), &request.looks);
        let last = self.context.iter().zip(asked).nth(looks.len().saturating_sub(1));
        self.is_answered
            && self.context.len() == looks.len() + 1
            && self.common(request).0 == looks.len()
            && last.is_none_or(|(seen, message)| {
                without_notes(&seen.message) == without_notes(message)
            })
    }

    /// Whether it begins with all that the other was asked, the last message perhaps with more behind it.
    pub(super) fn asks_what(&self, other: &Self) -> bool {
        let own = &self.session.parts().messages;
        let asked = &other.session.parts().messages;
        let Some((last, before)) = asked.split_last() else {
            return true;
        };
        let at = before.len();
        self.history.starts_with(&other.history[..at])
            && own.get(at).is_some_and(|own| {
                own.role() == last.role() && own.content().starts_with(last.content())
            })
    }

    /// Whether a request asks the last question again with more behind it, as if it had not been
    /// answered: an agent that waits for a call leaves out an answer without one.
    pub(super) fn was_not_answered(&self, request: &LoggedRequest) -> bool {
        let (asked, looks) = (request.asked(), &request.looks);
        let messages = &self.session.parts().messages;
        let (Some((last, before)), [.., question, answer]) = (asked.split_last(), &messages[..])
        else {
            return false;
        };
        let at = messages.len() - 2;
        let mut pairs = self.context.iter().zip(&looks[..before.len()]);
        let compactions = &self.session.parts().compactions;
        self.is_answered
            && self.context.len() == looks.len() + 1
            && self.context[before.len()].look == self.history[at]
            && compactions.last().is_none_or(|last| last.at <= at)
            && answer.tool_uses().next().is_none()
            && pairs.all(|(seen, look)| seen.look == *look)
            && last.role() == question.role()
            && last.content().starts_with(question.content())
    }

    /// Whether a request that leaves the context there takes back no more than the last request.
    pub(super) fn takes_back_last(&self, common: usize) -> bool {
        self.before.1 <= common
    }

    /// Takes back the last request and its answer, and returns them as one conversation.
    pub(super) fn take_back(&mut self) -> Logged {
        let mut session = self.session.clone();
        let parts = session.parts_mut();
        parts.messages = self.context.iter().map(|seen| seen.message.clone()).collect();
        parts.compactions.clear();
        parts.source = Source { format: parts.source.format.clone(), ..Source::default() };
        if let Some((_, earlier)) = parts.messages.split_last_mut() {
            // Its session has the bills of the calls before.
            for message in earlier.iter_mut().filter(|one| one.details.usage.is_some()) {
                Arc::make_mut(message).details = MessageDetails::default();
            }
        }
        let (messages, context) = self.before;
        self.truncate(messages);
        self.context.truncate(context);
        self.session.parts_mut().compactions.retain(|one| one.at <= messages);
        Logged::answered(session, self.agent.name.clone())
    }

    /// Drops the messages of the history from `at` on.
    pub(super) fn truncate(&mut self, at: usize) {
        self.session.parts_mut().messages.truncate(at);
        self.history.truncate(at);
        self.prompts.retain(|(place, _)| *place < at);
        for map in [&mut self.places, &mut self.shapes] {
            map.retain(|_, place| *place < at);
        }
        for places in self.forms.values_mut() {
            places.retain(|place| *place < at);
        }
    }

    /// Whether it may be no more than a product's question to the model: it asks for no tools, and is answered soon.
    pub(super) fn is_brief(&self) -> bool {
        const REQUESTS: usize = 4;
        self.is_answered && self.actions == 0 && self.requests <= REQUESTS
    }

    /// The last answer of such a session.
    pub(super) fn last_words(&self) -> Option<&Message> {
        self.session.parts().messages.last().map(|message| &**message).filter(|_| self.is_brief())
    }

    /// Adds a request, of which the first `known` messages are not new, and its answer.
    pub(super) fn grow(&mut self, mut request: LoggedRequest, known: usize) {
        self.adopt_ids(&mut request);
        if known == self.context.len() {
            self.recognise(&request);
        } else {
            self.shows(&request, known);
        }
        self.names.extend(request.agent.name.clone());
        // Memory and tools grow from request to request.
        let before = std::mem::replace(&mut self.agent, request.agent);
        let one = request.one;
        let told = one.compaction;
        let at = self.session.parts().messages.len();
        let parts = one.session.into_parts();
        let source = &mut self.session.parts_mut().source;
        if parts.system.is_some() && !self.agent.has_prompt_of(&before) {
            source.warn("the system prompt changed; the first one stands");
        }
        add_counts(source, parts.source);
        let earlier = self.session.parts().compactions.len();
        self.provider_compacted(parts.compactions, known);
        self.told(told, at, earlier);
        self.add(parts.messages.into_iter().skip(known).collect());
    }

    /// Adds the compaction in front of `at`, before a call that shows none itself; of those that are shown, `earlier`
    /// are of calls before.
    pub(super) fn told(&mut self, told: Option<ToldCompaction>, at: usize, earlier: usize) {
        let Some(told) = told else { return };
        let pre_tokens = self.prompts.last().map(|(_, prompt)| *prompt);
        let compactions = &mut self.session.parts_mut().compactions;
        // It may be said again at each later call.
        let repeated = !told.is_dated && (self.was_told || !compactions.is_empty());
        let shown = if repeated {
            compactions.last_mut()
        } else {
            compactions[..earlier].last_mut().filter(|shown| shown.at == at)
        };
        if let Some(shown) = shown {
            shown.trigger = shown.trigger.take().or(told.trigger);
        } else if !repeated {
            let (trigger, after) = (told.trigger, CompactedTo::Missing);
            let compaction = RecordedCompaction { at, trigger, pre_tokens, usage: None, after };
            compactions.insert(earlier, compaction);
        }
    }

    /// Adds a compaction after the last call.
    pub(super) fn client_compacted(&mut self, trigger: Text, after: CompactedTo) {
        let parts = self.session.parts_mut();
        let last = self.prompts.last();
        let own = parts.model.as_deref();
        // A compaction has one bill, at the price of the session's model.
        let bills = std::mem::take(&mut self.summary_bills).into_iter();
        let (bills, others): (Vec<_>, Vec<_>) =
            bills.partition(|bill| bill.model.as_deref().is_none_or(|model| Some(model) == own));
        let at = parts.messages.len();
        parts.compactions.push(RecordedCompaction {
            at,
            trigger,
            pre_tokens: last.map(|(_, prompt)| *prompt),
            usage: (!bills.is_empty()).then(|| bills.iter().map(|bill| bill.usage).sum()),
            after,
        });
        pay(&mut self.session, at, others);
    }

    /// Adds compactions of the provider's in a request, of which the first `known` messages are
    /// not new.
    pub(super) fn provider_compacted(&mut self, found: Vec<RecordedCompaction>, known: usize) {
        let history = self.session.parts().messages.len();
        for mut one in found.into_iter().filter(|one| one.at >= known) {
            one.at = one.at - known + history;
            if let CompactedTo::Replaced(pieces) = &one.after {
                let written = pieces.iter().all(|piece| matches!(piece, Recorded::Written(_)));
                // Where the client compacted as well, places in a request are none in the history.
                if known != history && !written {
                    one.after = CompactedTo::Missing;
                } else if self.is_context(pieces, one.at) {
                    continue;
                }
            }
            self.session.parts_mut().compactions.push(one);
        }
    }

    /// Whether these pieces are the context before message `at`.
    pub(super) fn is_context(&self, left: &[Recorded], at: usize) -> bool {
        let context = kept_context::context(&self.session.parts().compactions, at);
        context.is_some_and(|context| {
            kept_context::joined(context) == kept_context::joined(left.to_vec())
        })
    }

    /// Adds the messages that a request brought, and its answer.
    pub(super) fn add(&mut self, messages: Vec<Arc<Message>>) {
        self.requests += 1;
        self.before = (self.history.len(), self.context.len());
        let last = messages.len().saturating_sub(1);
        for (at, mut message) in messages.into_iter().enumerate() {
            if message.details.api_call.as_ref().is_some_and(|call| self.calls.contains(call)) {
                Arc::make_mut(&mut message).details.api_call = None;
            }
            self.actions += usize::from(at == last && message.tool_uses().next().is_some());
            self.remember(&message, at == last);
            self.session.parts_mut().messages.push(message);
        }
    }

    /// Replaces the context by the first messages of a request.
    pub(super) fn shows(&mut self, request: &LoggedRequest, count: usize) {
        let messages = request.asked().iter().zip(&request.looks).zip(&request.sent).take(count);
        self.context.clear();
        for ((message, &look), &sent) in messages {
            self.context.push(Seen { look, is_answer: false, sent, message: message.clone() });
        }
    }

    /// How many messages of the history a request keeps; none if it has nothing to do with this
    /// session.
    pub(super) fn kept(&self, request: &LoggedRequest, answers: &[Arc<str>]) -> Option<usize> {
        let (agent, looks) = (&request.agent, &request.looks);
        if !self.is_answered || !self.agent.is_like(agent) {
            return None;
        }
        let begun = self.history.iter().zip(looks).take_while(|(own, look)| own == look).count();
        // A name may be an application's: then two agents share it, and short words of the user's.
        let certain = self.agent.has_prompt_of(agent) && !self.is_named_otherwise(request);
        let mut found = 0;
        for look in &looks[begun..] {
            let said = self.place(look).map(|(at, _)| at).is_some_and(|at| {
                let message = &self.session.parts().messages[at];
                self.calls_a_tool(at) || certain && !message.has_tag(Tag::Synthetic)
            });
            // Another conversation may have called a tool in the same way.
            let alike = look.has_calls() && self.forms.contains_key(&look.form);
            found += usize::from(said) + usize::from(said || alike);
        }
        // Messages that the provider compacted were the agent's own.
        let own_start =
            begun > 0 && certain && (self.agent.is_session_of(agent) || request.is_sealed());
        let summed_up = request.asked()[begun..].iter().any(|message| sums_up(message, answers));
        let kept = found > 0 || own_start || summed_up && !self.is_named_otherwise(request);
        kept.then_some(begun + found)
    }

    /// Whether a request names another conversation.
    pub(super) fn is_named_otherwise(&self, request: &LoggedRequest) -> bool {
        let name = request.agent.name.as_ref();
        name.is_some_and(|name| {
            !self.names.contains(name) && self.names.iter().any(|own| own.differs(name))
        })
    }

    /// Whether a message of the history has a tool use, or a result.
    fn calls_a_tool(&self, at: usize) -> bool {
        self.history.get(at).is_some_and(Look::has_calls)
    }

    /// The message of the history that looks so, and whether its texts are the same too.
    pub(super) fn place(&self, look: &Look) -> Option<(usize, bool)> {
        self.places.get(&look.whole).map(|at| (*at, true)).or_else(|| {
            let at = *self.shapes.get(&look.shape)?;
            // Only the ids of tool uses distinguish two messages of one shape.
            self.calls_a_tool(at).then_some((at, false))
        })
    }
}
