//! Requests that leave a conversation, until a later one shows what they are.
//!
//! A request may hold a part of a conversation and something new because the product asks for a summary of it,
//! because it asks something aside, because the user went back, because another client goes on from there, or
//! because the context was compacted. So the session that it begins is a fork at first. If a later request goes
//! on from it while the conversation rests, it is the conversation's. If a later context holds its answer, it was
//! a request for a summary. If the conversation goes on without it, it was beside it.

use super::bills::pay;
use super::said::{summaries_in, text};
use super::{FOR_SUMMARY, Join, Logged, LoggedRequest};
use crate::prelude::*;

/// Where a session left another.
pub(super) struct Fork {
    /// The name of the other.
    of: usize,
    /// How many requests the other had.
    requests: usize,
    /// How many messages the other had.
    at: usize,
    /// The request that left it.
    request: LoggedRequest,
    pub(super) kind: ForkKind,
}

/// How a request leaves a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForkKind {
    /// The last request was sent again.
    Again,
    /// It asks the last question anew, as if it had not been answered.
    Anew,
    /// It begins with that many messages of the context.
    Early(usize),
    /// It holds a part of the context, as after a compaction.
    Part,
    /// It is another agent's.
    Aside,
    /// Its answer was left out for another one to the same request. Where several agents try one task, each goes on from
    /// its own.
    Withdrawn,
}

/// A summary is sent soon after it was written: the number of sessions that may be requests for it.
const RECENT_SESSIONS: usize = 16;

/// How a fork is counted that its conversation did not go on from.
const ASIDE: &str = "request beside the conversation";

/// How an answer is counted that its conversation did not go on from.
const LEFT_OUT: &str = "answer that the agent left out";

impl Join {
    /// Begins a session with a request that leaves that of this index.
    pub(super) fn fork(&mut self, at: usize, request: LoggedRequest, kind: ForkKind) -> usize {
        let of = &self.threads[at];
        let fork = Fork {
            of: of.name,
            requests: of.requests,
            at: of.session.parts().messages.len(),
            request: request.clone(),
            kind,
        };
        let name = self.begin(request.one);
        if let Some(thread) = self.threads.last_mut() {
            thread.fork = Some(fork);
        }
        name
    }

    /// Adds a fork to the conversation that it left, if it is surely that: a later request goes on from it.
    /// Returns the index of the session.
    pub(super) fn settle(&mut self, at: usize) -> usize {
        // One may leave another: then that one is gone on from, too.
        let fork = self.threads[at].fork.as_ref();
        let left = fork.and_then(|fork| self.index(fork.of));
        let name = self.threads[at].name;
        let of = left.filter(|of| self.threads[*of].fork.is_some());
        let at = of.map_or(at, |of| {
            self.settle(of);
            self.index(name).unwrap_or(at)
        });
        let Some(base) = self.base(at) else {
            // Only another agent's words may still be beside the conversation.
            self.threads[at].fork.take_if(|fork| fork.kind != ForkKind::Aside);
            return at;
        };
        self.absorb(at, base)
    }

    /// The index of the conversation that goes on with a fork, if it may.
    fn base(&self, at: usize) -> Option<usize> {
        let fork = self.threads[at].fork.as_ref()?;
        let base = self.index(fork.of)?;
        let thread = &self.threads[base];
        let rests = match fork.kind {
            ForkKind::Again | ForkKind::Anew | ForkKind::Part => true,
            // A request before a tool has answered is not the agent's.
            ForkKind::Early(_) => !thread.is_open(),
            ForkKind::Aside | ForkKind::Withdrawn => false,
        };
        let next = self.threads[at].requests == 1 && thread.requests == fork.requests;
        (rests && next && thread.agent.is_like(&fork.request.agent)).then_some(base)
    }

    /// Adds a fork to a session, whose index it returns.
    fn absorb(&mut self, at: usize, base: usize) -> usize {
        let fork = self.threads.remove(at);
        let (left, requests) = (fork.name, fork.requests);
        let Some(Fork { request, kind, .. }) = fork.fork else {
            return base;
        };
        let base = base - usize::from(at < base);
        let name = self.threads[base].name;
        self.ends(name, &request.answer);
        self.known.add(name, request.said(), request.answer.clone());
        let thread = &mut self.threads[base];
        let takes_back = match kind {
            ForkKind::Again | ForkKind::Anew => true,
            ForkKind::Early(common) => thread.takes_back_last(common),
            ForkKind::Part | ForkKind::Aside | ForkKind::Withdrawn => false,
        };
        if takes_back {
            let withdrawn = thread.take_back();
            thread.grow(request, thread.length());
            self.withdraw(base, withdrawn);
        } else {
            self.compact(base, request);
        }
        let base = self.index(name).unwrap_or(base);
        let rests = self.threads[base].requests;
        let forks = self.threads.iter_mut().filter_map(|thread| thread.fork.as_mut());
        for other in forks.filter(|other| (other.of, other.requests) == (left, requests)) {
            (other.of, other.requests) = (name, rests);
        }
        base
    }

    /// Keeps a request whose answer its session left out: another agent may go on from that.
    fn withdraw(&mut self, base: usize, withdrawn: Logged) {
        let Some(answer) = withdrawn.answer().cloned() else {
            return;
        };
        let request = LoggedRequest::of(withdrawn, answer, self.threads[base].agent.clone());
        let (said, answer) = (request.said(), request.answer.clone());
        let name = self.fork(base, request, ForkKind::Withdrawn);
        self.known.add(name, said, answer);
    }

    /// Whether a request holds the last answer of a session, or of one that left it.
    pub(super) fn was_summed_up(&self, at: usize, request: &LoggedRequest) -> bool {
        let name = self.threads[at].name;
        let recent = self.threads.iter().rev().take(RECENT_SESSIONS);
        let mut own = recent
            .chain([&self.threads[at]])
            .filter(|thread| thread.fork.as_ref().map_or(thread.name, |fork| fork.of) == name);
        own.any(|thread| request.holds_last(thread))
    }

    /// Adds a request that shows what a compaction left of the session of an index, and the requests for the summaries in
    /// it. Returns the index of the session.
    pub(super) fn compact(&mut self, of: usize, request: LoggedRequest) -> usize {
        let pairs = request.asked().iter().zip(&request.looks);
        let new = pairs.filter(|(_, look)| self.threads[of].place(look).is_none());
        let new: Vec<String> = new.map(|(message, _)| text(message)).collect();
        let mut summaries: Vec<Arc<str>> = Vec::new();
        let mut agents = Vec::new();
        for thread in self.threads.iter().rev().take(RECENT_SESSIONS).filter(|_| !new.is_empty()) {
            let each = thread.last_words().map(summaries_in).unwrap_or_default().into_iter();
            let mut held = each.filter(|text| new.iter().any(|new| new.contains(&**text)));
            if let Some(text) = held.next().filter(|_| thread.name != self.threads[of].name) {
                summaries.push(text);
                agents.push((thread.name, thread.agent.clone()));
            }
        }
        // The same agent may have been asked more than once.
        let name = self.threads[of].name;
        let mut asked = 0;
        let mut bills = Vec::new();
        let mut forks = Vec::new();
        self.threads.retain_mut(|thread| {
            let aside = thread.fork.as_ref().is_some_and(|fork| fork.of == name);
            let brief = aside && thread.is_brief();
            let for_summary = agents.iter().any(|(other, agent)| {
                *other == thread.name || brief && thread.agent.is_like(agent)
            });
            if for_summary {
                asked += thread.requests;
                bills.extend(thread.bills(FOR_SUMMARY));
                forks.extend(thread.fork.take().filter(|fork| fork.of == name));
            }
            !for_summary
        });
        let of = self.index(name).unwrap_or(of);
        let source = &mut self.threads[of].session.parts_mut().source;
        (0..asked).for_each(|_| source.skip(FOR_SUMMARY));
        self.threads[of].summary_bills.append(&mut bills);
        if let Some(fork) = forks.pop().filter(|_| self.threads[of].is_open()) {
            self.threads[of].take_results(fork.request);
        }
        self.threads[of].compact(request, &self.answers, &summaries);
        of
    }

    /// Settles the forks that no later request has to do with, the last first.
    pub(super) fn settle_rest(&mut self) {
        let mut at = self.threads.len();
        while at > 0 {
            at -= 1;
            let thread = &self.threads[at];
            let Some(fork) = &thread.fork else { continue };
            let again = thread.is_other_answer();
            if !again && self.base(at).is_some() {
                self.settle(at);
            } else if let Some(of) = self.index(fork.of).filter(|_| again || thread.is_brief()) {
                let (kind, place) = (fork.kind, fork.at);
                let thread = self.threads.remove(at);
                let base = &mut self.threads[of - usize::from(at < of)];
                let what = match kind {
                    ForkKind::Again => "sent again",
                    ForkKind::Withdrawn => LEFT_OUT,
                    ForkKind::Anew | ForkKind::Early(_) | ForkKind::Part | ForkKind::Aside => ASIDE,
                };
                // A fork that is settled later goes on as its request alone.
                let left =
                    base.fork.as_mut().map(|fork| (&mut fork.request.one.session, usize::MAX));
                for (session, place) in left.into_iter().chain([(&mut base.session, place)]) {
                    let source = &mut session.parts_mut().source;
                    if kind == ForkKind::Again {
                        source.warn("a request was sent again; its first answer stands");
                    } else {
                        (0..thread.requests).for_each(|_| source.skip(what));
                    }
                    pay(session, place, thread.bills(what));
                }
            } else {
                continue;
            }
            at = self.threads.len();
        }
    }

    /// Where sessions of these names are, or all, in their order. Some may be no more.
    pub(super) fn places(&self, names: Option<BTreeSet<usize>>) -> Vec<usize> {
        match names {
            Some(names) => names.iter().filter_map(|name| self.index(*name)).collect(),
            None => (0..self.threads.len()).collect(),
        }
    }

    /// The index of a session.
    fn index(&self, name: usize) -> Option<usize> {
        self.threads.binary_search_by_key(&name, |thread| thread.name).ok()
    }
}
