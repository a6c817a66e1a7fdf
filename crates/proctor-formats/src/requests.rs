//! Joins logged requests to sessions: each request *is* the context at its call.
//!
//! A request that begins with the whole conversation so far continues a session; so does one that
//! goes on after the last question as if it had not been answered, because the agent could do
//! nothing with the answer. One that keeps a part of the conversation, changes it, or holds a
//! summary that the model wrote, does so after a compaction: the messages it keeps, edits and adds
//! are what the compaction left, and the requests for the summary belong to it. Every other request
//! begins a session: a sub-agent's, another run's.

use super::prelude::*;
use std::collections::VecDeque;

use super::assemble::ORPHANS;
use super::checked;
use agent::Agent;
use known::{Known, hashes};
use proctor_sessions::units::ContentHash;
use proctor_sessions::wire::Look;
use said::{holds_answer, is_summary, summary_in, tag_acknowledgements, text};
use thread::Thread;

mod agent;
mod known;
mod said;
mod thread;

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
    /// The compaction before it, where the log says that there was one.
    pub(super) compaction: Option<ToldCompaction>,
}

/// A compaction of which a log says that it was, beside the messages.
#[derive(Debug, Default)]
pub(super) struct ToldCompaction {
    pub(super) trigger: Option<Arc<str>>,
    /// Whether it was before this call, rather than before this one or an earlier one.
    pub(super) is_dated: bool,
}

/// How a compaction is counted of which only that much is known.
const TOLD: &str = "a conversation was compacted before its first call that is recorded";

impl Logged {
    /// The model's answer, unless the request failed.
    fn answer(&self) -> Option<&Arc<Message>> {
        let last = self.session.parts().messages.last();
        last.filter(|last| self.is_answered && last.role() == Role::Assistant)
    }

    /// Counts a compaction before all that is recorded; whether there was one.
    fn count_told(&mut self) -> bool {
        let was_told = self.compaction.take().is_some();
        if was_told {
            self.session.parts_mut().source.warn(TOLD);
        }
        was_told
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
    /// In the order of their names.
    threads: Vec<Thread>,
    /// How many sessions were begun: the name of the last.
    begun: usize,
    /// The model's last answers, for any request may have asked for a summary.
    answers: VecDeque<Arc<str>>,
    known: Known,
    /// The names of the sessions that ended with a response, by its id.
    ended: BTreeMap<Arc<str>, BTreeSet<usize>>,
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
    fn place(&mut self, mut one: Logged) {
        self.tag_summary(&mut one);
        let Some(answer) = one.answer().cloned() else {
            self.begin(one);
            return;
        };
        let messages = &one.session.parts().messages;
        let asked = &messages[..messages.len() - 1];
        let looks: Vec<Look> = asked.iter().map(|it| Look::of(it)).collect();
        let said = hashes(asked, &looks);
        let session = self.session_of(one, &looks, &said);
        self.ends(session, &answer);
        self.known.add(session, said, answer);
    }

    /// Begins a session, and returns its name.
    fn begin(&mut self, one: Logged) -> usize {
        self.begun += 1;
        if let Some(last) = one.session.parts().messages.last() {
            self.ends(self.begun, last);
        }
        self.threads.push(Thread::new(self.begun, one));
        self.begun
    }

    /// Takes note of the response with which a session ends.
    fn ends(&mut self, session: usize, last: &Message) {
        if let Some(call) = &last.details.api_call {
            self.ended
                .entry(call.0.clone())
                .or_default()
                .insert(session);
        }
    }

    /// Adds an answered conversation to the session it continues, or begins one with it. Returns the name of that session.
    fn session_of(&mut self, one: Logged, looks: &[Look], said: &[ContentHash]) -> usize {
        let answers: &[Arc<str>] = self.answers.make_contiguous();
        let threads = &mut self.threads;
        let messages = &one.session.parts().messages;
        let asked = &messages[..messages.len() - 1];
        let mut summaries = asked.iter();
        let is_summed_up = summaries.any(|it| is_summary(it) || holds_answer(it, answers));
        if one.follows.is_none() && !self.known.shares(said) && !is_summed_up {
            return self.begin(one);
        }
        let ended = one
            .follows
            .as_ref()
            .and_then(|id| self.ended.get_key_value(id));
        let ended = ended.and_then(|(id, names)| {
            let mut near = places(threads, Some(names.clone())).into_iter();
            near.find(|at| threads[*at].ends_with(id))
        });
        if let Some(at) = ended {
            threads[at].grow(one, 0);
            return threads[at].name;
        }
        // One that goes on from the whole of another begins like it.
        let begins = asked.len().min(1);
        let begins = hashes(&asked[..begins], &looks[..begins]);
        let near = places(threads, self.known.sharing(&begins));
        let first = |is_it: &dyn Fn(&Thread) -> bool| {
            let mut near = near.iter().copied();
            near.find(|at| is_it(&threads[*at]))
        };
        let begun = near.iter().filter(|at| threads[**at].is_begun_by(looks));
        if let Some(&at) = begun.max_by_key(|at| threads[**at].length()) {
            let known = threads[at].length();
            threads[at].recognise(looks);
            threads[at].grow(one, known);
            return threads[at].name;
        }
        let agent = Agent::of(&one.session, one.cache_key.clone());
        if let Some(at) = first(&|it| it.was_asked(looks) && it.agent.is_like(&agent)) {
            let source = &mut threads[at].session.parts_mut().source;
            source.warn("a request was sent again; its first answer stands");
            return threads[at].name;
        }
        if let Some(at) = first(&|it| it.was_not_answered(asked, looks) && it.agent.is_like(&agent))
        {
            threads[at].ask_anew(one);
            return threads[at].name;
        }
        let near = places(threads, self.known.sharing(said));
        let kept = near
            .iter()
            .filter_map(|at| Some((threads[*at].kept(&agent, asked, looks, answers)?, *at)));
        // A summary may be all that is left of any session of the agent.
        let is_like = |it: &Thread| it.is_answered && it.agent.is_like(&agent);
        let mut others = (0..threads.len()).rev().filter(|_| is_summed_up);
        let last = others.find(|at| is_like(&threads[*at]) && near.binary_search(at).is_err());
        let Some((_, mut of)) = kept.chain(last.map(|at| (0, at))).max() else {
            return self.begin(one);
        };
        // A single-request session whose answer is new in this context was a request for a summary.
        let new = asked.iter().zip(looks);
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
        threads[of].compact(one, looks, answers, &summaries);
        threads[of].name
    }

    /// Tags the summary that a compaction left which the log tells of: the first message, if it is new and another
    /// comes behind it.
    fn tag_summary(&self, one: &mut Logged) {
        if !one.compaction.as_ref().is_some_and(|told| told.is_dated) {
            return;
        }
        if let [first, _, _, ..] = &mut one.session.parts_mut().messages[..]
            && !self.known.holds(&Look::of(first))
        {
            let tags = &mut Arc::make_mut(first).tags;
            tags.set(Tag::TypedUser, false);
            tags.set(Tag::CompactSummary, true);
        }
    }

    /// The sessions of the log.
    pub(super) fn finish(mut self, path: &Path) -> Imported {
        let session = |session: Session| checked(session.into_parts(), path);
        if self.answered < 2 {
            let sessions = self.held.into_iter().map(|mut one| {
                one.count_told();
                session(one.session)
            });
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

/// Where sessions of these names are, or all, in their order. Some may be no more.
fn places(threads: &[Thread], names: Option<BTreeSet<usize>>) -> Vec<usize> {
    let place = |name: usize| threads.binary_search_by_key(&name, |it| it.name).ok();
    match names {
        Some(names) => names.into_iter().filter_map(place).collect(),
        None => (0..threads.len()).collect(),
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
