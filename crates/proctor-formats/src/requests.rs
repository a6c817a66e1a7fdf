//! Joins logged requests to sessions: each request *is* the context at its call.
//!
//! A request that begins with the whole conversation so far continues a session; so does one that
//! goes on after the last question as if it had not been answered, because the agent could do
//! nothing with the answer. One that keeps a part of the conversation, changes it, or holds a
//! summary that the model wrote, does so after a compaction: the messages it keeps, edits and adds
//! are what the compaction left, and the requests for the summary belong to it. Every other request
//! begins a session: a sub-agent's, another run's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use super::assemble::{ORPHANS, add_counts};
use super::kept_context;
use super::{ImportError, checked};
use agent::Agent;
use known::Known;
use proctor_sessions::units::{ApiCallId, ContentHash, Tokens};
use proctor_sessions::wire::Look;
use proctor_sessions::{CompactedTo, Message, Recorded, RecordedCompaction, Role, Session, Tag};
use said::{holds_answer, is_summary, summary_in, tag_acknowledgements, text, written};

mod agent;
mod known;
mod said;

/// One conversation as it was logged.
pub(super) struct Logged {
    /// The messages of the request, and the answer.
    pub(super) session: Session,
    /// Whether a response was logged.
    pub(super) is_answered: bool,
    /// The response that it continues, where the provider keeps the conversation.
    pub(super) follows: Option<Arc<str>>,
    /// The key under which the client asks for its prompt to be cached: one for all requests of a
    /// conversation, or of an application.
    pub(super) cache_key: Option<Arc<str>>,
}

impl Logged {
    /// The model's answer, unless the request failed.
    fn answer(&self) -> Option<&Arc<Message>> {
        let last = self.session.parts().messages.last();
        last.filter(|last| self.is_answered && last.role() == Role::Assistant)
    }
}

/// How a request for a summary is counted, once the summary was seen in a context.
const FOR_SUMMARY: &str = "request for a summary";

/// A summary is sent soon after it was written: the number of answers that are remembered.
const RECENT_ANSWERS: usize = 16;

/// Joins requests that were answered; everything else stays as it is.
#[derive(Default)]
pub(super) struct Join {
    /// The conversations that are not joined yet: at most one of them is answered.
    held: Vec<Logged>,
    answered: usize,
    threads: Vec<Thread>,
    /// The model's last answers, for any request may have asked for a summary.
    answers: VecDeque<Arc<str>>,
    known: Known,
}

impl Join {
    /// Adds the next conversation of the log.
    pub(super) fn add(&mut self, mut one: Logged) {
        tag_acknowledgements(&mut one.session);
        self.answered += usize::from(one.is_answered);
        self.held.push(one);
        if self.answered > 1 {
            for one in std::mem::take(&mut self.held) {
                self.join(one);
            }
        }
    }

    fn join(&mut self, one: Logged) {
        let answer = one.answer().and_then(|answer| summary_in(answer));
        self.place(one);
        self.answers.extend(answer);
        if self.answers.len() > RECENT_ANSWERS {
            self.answers.pop_front();
        }
    }

    /// Adds one conversation to the session it continues, or begins one with it.
    fn place(&mut self, one: Logged) {
        let answers: &[Arc<str>] = self.answers.make_contiguous();
        let threads = &mut self.threads;
        if one.answer().is_none() {
            return threads.push(Thread::new(one));
        }
        let messages = &one.session.parts().messages;
        let asked = &messages[..messages.len() - 1];
        let looks: Vec<Look> = asked.iter().map(|it| Look::of(it)).collect();
        let mut summaries = asked
            .iter()
            .filter(|it| is_summary(it) || holds_answer(it, answers));
        let is_related =
            one.follows.is_some() || self.known.shares(asked, &looks) || summaries.next().is_some();
        self.known.add(messages, &looks);
        if !is_related {
            return threads.push(Thread::new(one));
        }
        if let Some(id) = &one.follows
            && let Some(thread) = threads.iter_mut().find(|it| it.ends_with(id))
        {
            return thread.grow(one, 0);
        }
        let begun = threads.iter_mut().filter(|it| it.is_begun_by(&looks));
        if let Some(thread) = begun.max_by_key(|it| it.context.len()) {
            let known = thread.context.len();
            thread.recognise(&looks);
            return thread.grow(one, known);
        }
        let agent = Agent::of(&one.session, one.cache_key.clone());
        let was_asked = |it: &&mut Thread| it.was_asked(&looks) && it.agent.is_like(&agent);
        if let Some(thread) = threads.iter_mut().find(was_asked) {
            let source = &mut thread.session.parts_mut().source;
            return source.warn("a request was sent again; its first answer stands");
        }
        let is_anew =
            |it: &&mut Thread| it.was_not_answered(asked, &looks) && it.agent.is_like(&agent);
        if let Some(thread) = threads.iter_mut().find(is_anew) {
            return thread.ask_anew(one);
        }
        let kept = threads.iter().enumerate();
        let kept = kept
            .filter_map(|(at, thread)| Some((thread.kept(&agent, asked, &looks, answers)?, at)));
        let Some((_, mut of)) = kept.max() else {
            return threads.push(Thread::new(one));
        };
        // A single-request session whose answer is new in this context was a request for a summary.
        let new = asked.iter().zip(&looks);
        let new = new.filter(|(_, look)| threads[of].place(look).is_none());
        let new: Vec<String> = new.map(|(message, _)| text(message)).collect();
        let mut summaries = Vec::new();
        let mut at = threads.len().saturating_sub(RECENT_ANSWERS);
        while let Some(thread) = threads.get(at) {
            let answer = thread.only_answer().filter(|_| at != of);
            match answer.and_then(summary_in) {
                Some(summary) if new.iter().any(|text| text.contains(&*summary)) => {
                    threads.remove(at);
                    of -= usize::from(at < of);
                    summaries.push(summary);
                }
                _ => at += 1,
            }
        }
        threads[of].compact(one, &looks, answers, &summaries);
    }

    /// The sessions of the log.
    pub(super) fn finish(mut self, path: &Path) -> Result<Vec<Session>, ImportError> {
        let session = |session: Session| checked(session.into_parts(), path);
        if self.answered < 2 {
            let sessions = self.held.into_iter().map(|one| session(one.session));
            return sessions.collect();
        }
        drop_failed(&mut self.threads);
        let sessions = self.threads.into_iter().map(|mut thread| {
            tag_orphans(&mut thread.session);
            session(thread.session)
        });
        sessions.collect()
    }
}

/// Drops requests that failed and were sent again: they are not sessions of their own.
fn drop_failed(threads: &mut Vec<Thread>) {
    let mut at = 0;
    while let Some(one) = threads.get(at) {
        let goes_on = |other: &Thread| other.is_answered && other.asks_what(one);
        let again = one.is_failed.then(|| threads.iter().position(goes_on));
        if let Some(again) = again.flatten() {
            let source = &mut threads[again].session.parts_mut().source;
            source.skip("request without an answer");
            threads.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Tags and counts orphans in the whole session: a request may answer a tool use of another.
fn tag_orphans(session: &mut Session) {
    let mut asked: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut orphans = 0;
    for message in &mut session.parts_mut().messages {
        let results = message.tool_results();
        let lost = results.filter(|(_, result)| !asked.contains(&result.tool_use_id));
        let lost = lost.count() as u64;
        orphans += lost;
        if (lost > 0) != message.has_tag(Tag::Orphan) {
            Arc::make_mut(message).tags.set(Tag::Orphan, lost > 0);
        }
        asked.extend(message.tool_uses().map(|(_, tool_use)| tool_use.id.clone()));
    }
    let warnings = &mut session.parts_mut().source.warnings;
    warnings.remove(ORPHANS);
    if orphans > 0 {
        warnings.insert(ORPHANS.to_owned(), orphans);
    }
}

/// A session that grows request by request.
struct Thread {
    session: Session,
    /// The last request with its answer.
    context: Vec<Seen>,
    /// A look for each message of the history.
    history: Vec<Look>,
    /// Where in the history a look was first seen.
    places: BTreeMap<ContentHash, usize>,
    shapes: BTreeMap<ContentHash, usize>,
    calls: BTreeSet<ApiCallId>,
    agent: Agent,
    /// How many requests it was made of.
    requests: usize,
    is_answered: bool,
    /// It was sent, and the response was not an answer.
    is_failed: bool,
}

/// A message of a context.
#[derive(Clone, Copy)]
struct Seen {
    look: Look,
    /// An answer may look otherwise when it is sent back: without its thoughts, trimmed.
    is_answer: bool,
}

impl Thread {
    fn new(one: Logged) -> Self {
        let is_answered = one.answer().is_some();
        let mut thread = Self {
            is_failed: one.is_answered && !is_answered,
            agent: Agent::of(&one.session, one.cache_key),
            session: one.session,
            context: Vec::new(),
            history: Vec::new(),
            places: BTreeMap::new(),
            shapes: BTreeMap::new(),
            calls: BTreeSet::new(),
            requests: 1,
            is_answered,
        };
        let messages = thread.session.parts().messages.clone();
        for (at, message) in messages.iter().enumerate() {
            thread.remember(message, is_answered && at + 1 == messages.len());
        }
        thread
    }

    /// Takes note of the next message of the history.
    fn remember(&mut self, message: &Message, is_answer: bool) {
        let look = Look::of(message);
        let at = self.history.len();
        self.places.entry(look.whole).or_insert(at);
        self.shapes.entry(look.shape).or_insert(at);
        self.history.push(look);
        self.context.push(Seen { look, is_answer });
        self.calls.extend(message.details.api_call.clone());
    }

    fn ends_with(&self, response: &str) -> bool {
        let last = self.session.parts().messages.last();
        let call = last.and_then(|message| message.details.api_call.as_ref());
        call.is_some_and(|call| &*call.0 == response)
    }

    /// Whether a request begins with the whole conversation.
    fn is_begun_by(&self, looks: &[Look]) -> bool {
        let mut pairs = self.context.iter().zip(looks);
        self.is_answered
            && self.context.len() <= looks.len()
            && pairs.all(|(seen, look)| {
                seen.look == *look || seen.is_answer && seen.look.shape == look.shape
            })
    }

    /// Takes note of how the answers look that were sent back.
    fn recognise(&mut self, looks: &[Look]) {
        for (seen, look) in self.context.iter_mut().zip(looks) {
            if seen.is_answer
                && let Some(at) = self.places.get(&seen.look.whole).copied()
            {
                self.places.insert(look.whole, at);
                self.history[at] = *look;
            }
            *seen = Seen {
                look: *look,
                is_answer: false,
            };
        }
    }

    /// Whether the last request was this one.
    fn was_asked(&self, looks: &[Look]) -> bool {
        let mut pairs = self.context.iter().zip(looks);
        self.is_answered
            && self.context.len() == looks.len() + 1
            && pairs.all(|(seen, look)| seen.look == *look)
    }

    /// Whether it begins with all that the other was asked, the last message perhaps with more behind it.
    fn asks_what(&self, other: &Self) -> bool {
        let (own, asked) = (
            &self.session.parts().messages,
            &other.session.parts().messages,
        );
        let Some((last, before)) = asked.split_last() else {
            return true;
        };
        let is_last = |it: &Arc<Message>| {
            it.role() == last.role() && it.content().starts_with(last.content())
        };
        let before = &other.history[..before.len()];
        self.history.starts_with(before) && own.get(before.len()).is_some_and(is_last)
    }

    /// Whether a request asks the last question again with more behind it, as if it had not been
    /// answered: an agent that waits for a call leaves out an answer without one.
    fn was_not_answered(&self, asked: &[Arc<Message>], looks: &[Look]) -> bool {
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

    /// Adds a request that asks the last question again; its first answer is left out.
    fn ask_anew(&mut self, one: Logged) {
        self.truncate(self.session.parts().messages.len() - 2);
        self.context.truncate(self.context.len() - 2);
        let source = &mut self.session.parts_mut().source;
        source.skip("answer that the agent left out");
        let known = self.context.len();
        self.grow(one, known);
    }

    /// Drops the messages of the history from `at` on.
    fn truncate(&mut self, at: usize) {
        self.session.parts_mut().messages.truncate(at);
        self.history.truncate(at);
        for map in [&mut self.places, &mut self.shapes] {
            map.retain(|_, place| *place < at);
        }
    }

    /// The answer of a session of one request.
    fn only_answer(&self) -> Option<&Message> {
        let is_only = self.is_answered && self.requests == 1;
        let messages = &self.session.parts().messages;
        messages.last().filter(|_| is_only).map(|it| &**it)
    }

    /// Adds a request, of which the first `known` messages are not new, and its answer.
    fn grow(&mut self, one: Logged, known: usize) {
        let parts = one.session.into_parts();
        let own = self.session.parts_mut();
        let source = &mut own.source;
        if parts.system.is_some() && parts.system != own.system {
            source.warn("the system prompt changed; the first one stands");
        }
        add_counts(source, parts.source);
        self.provider_compacted(parts.compactions, known);
        self.add(parts.messages.into_iter().skip(known).collect());
    }

    /// Adds compactions of the provider's in a request, of which the first `known` messages are
    /// not new.
    fn provider_compacted(&mut self, found: Vec<RecordedCompaction>, known: usize) {
        let history = self.session.parts().messages.len();
        for mut one in found.into_iter().filter(|one| one.at >= known) {
            one.at = one.at - known + history;
            if let CompactedTo::Replaced(pieces) = &one.after {
                let is_written = |piece: &Recorded| matches!(piece, Recorded::Written(_));
                // Where the client compacted as well, places in a request are none in the history.
                if known != history && !pieces.iter().all(is_written) {
                    one.after = CompactedTo::Missing;
                } else if self.is_context(pieces, one.at) {
                    continue;
                }
            }
            self.session.parts_mut().compactions.push(one);
        }
    }

    /// Whether these pieces are the context before message `at`.
    fn is_context(&self, left: &[Recorded], at: usize) -> bool {
        let context = kept_context::context(&self.session.parts().compactions, at);
        context.is_some_and(|context| {
            kept_context::joined(context) == kept_context::joined(left.to_vec())
        })
    }

    /// Adds the messages that a request brought, and its answer.
    fn add(&mut self, messages: Vec<Arc<Message>>) {
        self.requests += 1;
        let last = messages.len().saturating_sub(1);
        for (at, mut message) in messages.into_iter().enumerate() {
            let is_known = |call: &ApiCallId| self.calls.contains(call);
            if message.details.api_call.as_ref().is_some_and(is_known) {
                Arc::make_mut(&mut message).details.api_call = None;
            }
            self.remember(&message, at == last);
            self.session.parts_mut().messages.push(message);
        }
    }

    /// How many messages of the history a request keeps; none if it has nothing to do with this
    /// session.
    fn kept(
        &self,
        agent: &Agent,
        asked: &[Arc<Message>],
        looks: &[Look],
        answers: &[Arc<str>],
    ) -> Option<usize> {
        if !self.is_answered || !self.agent.is_like(agent) {
            return None;
        }
        let begun = self.history.iter().zip(looks);
        let begun = begun.take_while(|(own, look)| own == look).count();
        // A key may be an application's: then two agents share it, and short words of the user's.
        let is_certain = self.agent.system == agent.system;
        let found = looks[begun..].iter().filter_map(|look| self.place(look));
        let found = found.filter(|(at, _)| is_certain || self.calls_a_tool(*at));
        let found = found.count();
        let mut rest = asked[begun..].iter();
        let is_summed_up = rest.any(|it| is_summary(it) || holds_answer(it, answers));
        (found > 0 || is_summed_up).then_some(begun + found)
    }

    /// Whether a message of the history has a tool use, or a result.
    fn calls_a_tool(&self, at: usize) -> bool {
        let message = self.session.parts().messages.get(at);
        let mut blocks = message.into_iter().flat_map(|it| it.content());
        blocks.any(|it| it.is_use() || it.is_result())
    }

    /// The message of the history that looks so, and whether its texts are the same too.
    fn place(&self, look: &Look) -> Option<(usize, bool)> {
        let whole = self.places.get(&look.whole).map(|at| (*at, true));
        whole.or_else(|| {
            let at = *self.shapes.get(&look.shape)?;
            // Only the ids of tool uses distinguish two messages of one shape.
            self.calls_a_tool(at).then_some((at, false))
        })
    }

    /// Adds a request that shows what a compaction left; these summaries were asked for apart.
    fn compact(&mut self, one: Logged, looks: &[Look], answers: &[Arc<str>], asked: &[Arc<str>]) {
        for _ in asked {
            self.session.parts_mut().source.skip(FOR_SUMMARY);
        }
        let mut parts = one.session.into_parts();
        let answer = parts.messages.pop();
        self.drop_request_for_summary(&parts.messages, looks);
        let at = self.session.parts().messages.len();
        let places: Vec<Option<(usize, bool)>> = looks.iter().map(|it| self.place(it)).collect();
        let found = places.iter().enumerate();
        let last_found = found
            .filter_map(|(index, it)| Some((index, it.as_ref()?.0)))
            .next_back();
        let ends_whole = last_found.is_some_and(|(_, place)| place + 1 == at);
        let is_behind = |index: usize| last_found.is_none_or(|(last, _)| index > last);
        let last = parts.messages.split_last();
        let is_last_new = last.is_some_and(|(last, front)| {
            !is_summary(last) && front.iter().any(|it| is_summary(it))
        });
        let follows_summary = |index: usize| is_last_new && index + 1 == looks.len();
        let mut left = Vec::new();
        let mut added = Vec::new();
        let (of_answer, known): (Vec<_>, Vec<_>) = parts
            .compactions
            .into_iter()
            .partition(|one| one.at >= looks.len());
        for (index, message) in parts.messages.into_iter().enumerate() {
            // The provider does not send on what it summed up.
            for one in known.iter().filter(|one| one.at == index) {
                if let CompactedTo::Replaced(pieces) = &one.after {
                    left.clone_from(pieces);
                }
            }
            match places[index] {
                Some((place, true)) => Recorded::keep(place, &mut left),
                Some((place, false)) => left.push(self.edited(place, message)),
                None if is_behind(index)
                    && (ends_whole || follows_summary(index) || self.answers_last(&message)) =>
                {
                    added.push(message);
                }
                None => left.push(written(&message, answers, asked)),
            }
        }
        if !self.is_context(&left, at) {
            let mut messages = self.session.parts().messages.iter().rev();
            let usage = messages.find_map(|message| message.details.usage);
            self.session
                .parts_mut()
                .compactions
                .push(RecordedCompaction {
                    at,
                    trigger: None,
                    pre_tokens: usage.map(|usage| Tokens(usage.prompt().0)),
                    after: CompactedTo::Replaced(left),
                });
        }
        add_counts(&mut self.session.parts_mut().source, parts.source);
        let kept = looks.len() - added.len();
        let seen = |look: &Look| Seen {
            look: *look,
            is_answer: false,
        };
        self.context = looks[..kept].iter().map(seen).collect();
        self.provider_compacted(of_answer, kept);
        added.extend(answer);
        self.add(added);
    }

    /// Removes a request for a summary, and its answer, from the history. If it was asked for in
    /// the middle of a turn, the tool results in front of the request stay.
    fn drop_request_for_summary(&mut self, sent: &[Arc<Message>], looks: &[Look]) {
        let parts = self.session.parts_mut();
        let [.., question, answer] = &parts.messages[..] else {
            return;
        };
        let at = parts.messages.len() - 2;
        let summary = summary_in(answer);
        let is_summary = answer.tool_uses().next().is_none()
            && sent.iter().any(|it| holds_answer(it, summary.as_slice()));
        let whole = Look::of(answer).whole;
        let is_sent_back = looks.iter().any(|look| look.whole == whole);
        let is_since = parts.compactions.last().is_none_or(|last| last.at <= at);
        let content = question.content();
        let results = content.iter().take_while(|block| block.is_result()).count();
        let is_question = question.role() == Role::User && results < content.len();
        if !(is_question && is_summary && !is_sent_back && is_since) {
            return;
        }
        let kept = (results > 0).then(|| {
            let mut kept = Message::new(Role::User, content[..results].to_vec());
            kept.details.timestamp = question.details.timestamp;
            let tags = question.tags.iter();
            kept.with_tags(tags.filter(|tag| matches!(tag, Tag::Orphan | Tag::Protected)))
        });
        parts.source.skip(FOR_SUMMARY);
        self.truncate(at);
        if let Some(kept) = kept {
            self.remember(&kept, false);
            self.session.parts_mut().messages.push(Arc::new(kept));
        }
    }

    /// Whether a message answers the last tool uses.
    fn answers_last(&self, message: &Message) -> bool {
        let last = self.session.parts().messages.last();
        let asked = last.into_iter().flat_map(|last| last.tool_uses());
        let asked: BTreeSet<&Arc<str>> = asked.map(|(_, it)| &it.id).collect();
        let mut results = message.tool_results();
        results.any(|(_, result)| asked.contains(&result.tool_use_id))
    }

    /// A message that stayed with another text.
    fn edited(&self, place: usize, message: Arc<Message>) -> Recorded {
        let own = &self.session.parts().messages[place];
        let (before, after) = (own.model_text(), message.model_text());
        let changed = before.iter().zip(after).enumerate();
        let changed = changed.filter(|(_, (before, after))| before != after);
        let changed: Vec<(usize, &Arc<str>)> = changed.map(|(at, (_, it))| (at, it)).collect();
        match changed[..] {
            [(block, text)] if before.len() == after.len() && own.content()[block].is_result() => {
                Recorded::Edited {
                    message: place,
                    block,
                    text: text.clone(),
                }
            }
            _ => Recorded::Written(message),
        }
    }
}
