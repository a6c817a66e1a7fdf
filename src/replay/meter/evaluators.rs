//! Requests to readers and judges: many at once, and not on the strategy's bill.
//!
//! Questions of one prompt are sent together once the first of them is answered: until then the
//! provider has not cached the prompt, and each would be billed for all of it. A server of one's own
//! keeps few prompts: it gets the questions of one prompt behind one another, and as many prompts at
//! once as it has slots.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{Meter, RequestBill, answered};
use crate::model::{Model, Reply, Request};
use crate::replay::MissedAnswer;
use crate::step::CallResult;
use crate::tokens::CountedTexts;

/// Threads that wait for answers of one cell, at most: how many requests are under way is decided by
/// the pace of their provider.
const MOST_THREADS: usize = 64;

/// A request to a reader or to a judge.
#[derive(Debug)]
pub(crate) struct EvaluatorRequest {
    /// The request itself.
    pub(crate) request: Request,
    /// Requests of the same number share a prompt up to the question.
    pub(crate) prompt: usize,
    /// Which judge of the panel is asked.
    pub(crate) judge: usize,
    /// Which of several answers to the same request is asked for, from 0.
    pub(crate) turn: u32,
}

/// A request with everything that is needed to send it from any thread.
struct OutgoingRequest<'s> {
    put: &'s EvaluatorRequest,
    model: Option<&'s dyn Model>,
    repeat: u32,
}

impl Meter<'_> {
    /// Puts requests to readers and judges, and says of each what it came to and what it cost, in
    /// their order. What is logged does not depend on which was answered first.
    pub(crate) fn ask(&mut self, puts: &[EvaluatorRequest]) -> Vec<(CallResult, RequestBill)> {
        let started = self.clock.now();
        let outgoing = puts.iter().map(|put| {
            let (model, repeat) = self.route(put.request.purpose, put.judge, put.turn);
            OutgoingRequest { put, model, repeat }
        });
        let sendings: Vec<OutgoingRequest<'_>> = outgoing.collect();
        let over = AtomicBool::new(self.is_over());
        let came: Vec<OnceLock<Reply>> = puts.iter().map(|_| OnceLock::new()).collect();
        for wave in waves(&sendings) {
            self.send_wave(&sendings, &wave, &over, &came);
        }
        let replies = sendings.iter().zip(came).filter_map(|(sending, came)| {
            let answered = came.into_inner()?;
            if let (Some(model), None) = (sending.model, &self.unanswered) {
                self.unanswered = MissedAnswer::of(model, &answered.answer);
            }
            let booked = self.book(&sending.put.request, &answered);
            Some((answered.answer, booked))
        });
        let booked = replies.collect();
        self.time += self.clock.now().saturating_sub(started);
        booked
    }

    /// Sends some of the requests, as many groups at once as their models take.
    fn send_wave(
        &self,
        sendings: &[OutgoingRequest<'_>],
        wave: &[Vec<usize>],
        is_over: &AtomicBool,
        came: &[OnceLock<Reply>],
    ) {
        let counts: &CountedTexts = self.counts;
        let next = AtomicUsize::new(0);
        let send = |group: &[usize]| {
            for at in group {
                let sending = &sendings[*at];
                let model = sending.model.filter(|_| !is_over.load(Ordering::SeqCst));
                let reply = answered(&sending.put.request, model, sending.repeat, counts);
                let unanswered = model.and_then(|model| MissedAnswer::of(model, &reply.answer));
                if unanswered.is_some_and(|why| why.ends_asking()) {
                    is_over.store(true, Ordering::SeqCst);
                }
                drop(came[*at].set(reply));
            }
        };
        let work = || {
            while let Some(group) = wave.get(next.fetch_add(1, Ordering::SeqCst)) {
                match sendings[group[0]].model {
                    Some(model) => model.in_slot(&mut || send(group)),
                    None => send(group),
                }
            }
        };
        let at_once = wave.iter().map(|group| at_once(&sendings[group[0]])).min();
        let threads = at_once.unwrap_or(1).min(wave.len()).min(MOST_THREADS);
        if threads < 2 {
            work();
        } else {
            std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        }
    }
}

fn at_once(sending: &OutgoingRequest<'_>) -> usize {
    sending.model.map_or(1, Model::at_once)
}

fn has_slots(sending: &OutgoingRequest<'_>) -> bool {
    sending.model.is_some_and(|model| model.slots().is_some())
}

/// Which requests are sent together, in groups that are sent one by one: first one of each prompt that has
/// no answer yet, then all others. Where a server has slots, all requests of a prompt are a group; models that
/// take one request at a time get them in their order.
fn waves(sendings: &[OutgoingRequest<'_>]) -> Vec<Vec<Vec<usize>>> {
    let mut all = sendings.iter();
    if all.all(|one| at_once(one) < 2 && !has_slots(one)) {
        return vec![(0..sendings.len()).map(|at| vec![at]).collect()];
    }
    // The group of each prompt.
    let mut groups = BTreeMap::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for (at, sending) in sendings.iter().enumerate() {
        let prompt = (sending.put.judge, sending.put.prompt);
        if let Some(group) = groups.get(&prompt) {
            let group: &mut Vec<usize> = &mut first[*group];
            if has_slots(sending) {
                group.push(at);
            } else {
                others.push(vec![at]);
            }
            continue;
        }
        first.push(vec![at]);
        // A recorded answer caches nothing.
        let request = &sending.put.request;
        if has_slots(sending)
            || !sending.model.is_some_and(|model| model.is_kept(request, sending.repeat))
        {
            groups.insert(prompt, first.len() - 1);
        }
    }
    vec![first, others]
}
