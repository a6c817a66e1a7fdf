//! Requests that leave a conversation, until a later one shows what they are.
//!
//! A request may hold a part of a conversation and something new because the product asks for a summary of it,
//! because it asks something aside, because the user went back, because another client goes on from there, or
//! because the context was compacted. So the session that it begins is a fork at first. If a later request goes
//! on from it while the conversation rests, it is the conversation's. If a later context holds its answer, it was
//! a request for a summary. If the conversation goes on without it, it was beside it.

use super::super::prelude::*;
use super::said::holds_answer;
use super::{Join, Request};

/// Where a session left another.
pub(super) struct Fork {
    /// The name of the other.
    of: usize,
    /// How many requests the other had.
    requests: usize,
    /// The request that left it.
    request: Request,
    kind: Kind,
}

/// How a request leaves a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
}

/// How a fork is counted that its conversation did not go on from.
const ASIDE: &str = "request beside the conversation";

impl Join {
    /// Begins a session with a request that leaves that of this index.
    pub(super) fn fork(&mut self, at: usize, request: Request, kind: Kind) -> usize {
        let of = &self.threads[at];
        let fork = Fork {
            of: of.name,
            requests: of.requests,
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
        let Some(base) = self.base(at) else {
            // Only another agent's words may still be beside the conversation.
            self.threads[at]
                .fork
                .take_if(|fork| fork.kind != Kind::Aside);
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
            Kind::Again | Kind::Anew | Kind::Part => true,
            // Whoever asks before a tool has answered does not speak for the agent.
            Kind::Early(_) => !thread.is_open(),
            Kind::Aside => false,
        };
        let is_next = self.threads[at].requests == 1 && thread.requests == fork.requests;
        let is_like = thread.agent.is_like(&fork.request.agent);
        (rests && is_next && is_like).then_some(base)
    }

    /// Adds a fork to a session, whose index it returns.
    fn absorb(&mut self, at: usize, base: usize) -> usize {
        let Some(Fork { request, kind, .. }) = self.threads.remove(at).fork else {
            return base;
        };
        let base = base - usize::from(at < base);
        let name = self.threads[base].name;
        self.ends(name, &request.answer);
        self.known.add(name, request.said(), request.answer.clone());
        let thread = &mut self.threads[base];
        let takes_back = match kind {
            Kind::Again | Kind::Anew => true,
            Kind::Early(common) => thread.takes_back_last(common),
            Kind::Part | Kind::Aside => false,
        };
        if takes_back {
            let source = &mut thread.session.parts_mut().source;
            source.skip("answer that the agent left out");
            thread.take_back();
            let known = thread.length();
            thread.grow(request, known);
        } else {
            thread.compact(request, self.answers.make_contiguous(), &[]);
        }
        base
    }

    /// Takes the requests for the summaries that one holds out of the sessions, other than that of index `of`;
    /// the index of that one thereafter, and the summaries.
    pub(super) fn take_summaries(
        &mut self,
        of: usize,
        request: &Request,
    ) -> (usize, Vec<Arc<str>>) {
        const RECENT: usize = 16;
        let name = self.threads[of].name;
        let pairs = request.asked().iter().zip(&request.looks);
        let new = pairs.filter(|(_, look)| self.threads[of].place(look).is_none());
        let new: Vec<Arc<Message>> = new.map(|(message, _)| message.clone()).collect();
        let mut found = Vec::new();
        let mut at = self.threads.len().saturating_sub(RECENT);
        while let Some(thread) = self.threads.get(at) {
            let words = thread.last_words().filter(|_| thread.name != name);
            let texts = words.map(super::said::summaries_in).unwrap_or_default();
            let is_held = |text: &&Arc<str>| {
                new.iter()
                    .any(|message| holds_answer(message, std::slice::from_ref(*text)))
            };
            if let Some(text) = texts.iter().find(is_held) {
                found.push(text.clone());
                let asked = self.threads.remove(at).requests as u64;
                if let Some(of) = self.index(name) {
                    let source = &mut self.threads[of].session.parts_mut().source;
                    *source
                        .skipped
                        .entry(super::FOR_SUMMARY.to_owned())
                        .or_default() += asked;
                }
            } else {
                at += 1;
            }
        }
        (self.index(name).unwrap_or(of), found)
    }

    /// Settles the forks that no later request has to do with.
    pub(super) fn settle_rest(&mut self) {
        let mut at = 0;
        while at < self.threads.len() {
            let thread = &self.threads[at];
            let Some(fork) = &thread.fork else {
                at += 1;
                continue;
            };
            let of = self.index(fork.of);
            if let Some(base) = self.base(at).filter(|_| fork.kind != Kind::Again) {
                self.absorb(at, base);
            } else if let Some(of) = of.filter(|_| !thread.has_acted || fork.kind == Kind::Again) {
                let is_again = fork.kind == Kind::Again;
                let source = &mut self.threads[of].session.parts_mut().source;
                if is_again {
                    source.warn("a request was sent again; its first answer stands");
                } else {
                    source.skip(ASIDE);
                }
                self.threads.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// The index of a session.
    fn index(&self, name: usize) -> Option<usize> {
        self.threads
            .binary_search_by_key(&name, |thread| thread.name)
            .ok()
    }
}
