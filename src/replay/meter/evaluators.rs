//! Requests to readers and judges: many at once, and not on the strategy's bill.
//!
//! Questions of one prompt are sent together once the first of them is answered: until then the
//! provider has not cached the prompt, and each would be billed for all of it.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{Meter, RequestBill, answered};
use crate::model::{Model, Reply, Request};
use crate::replay::Unanswered;
use crate::step::Answer;
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
    pub(crate) fn ask(&mut self, puts: &[EvaluatorRequest]) -> Vec<(Answer, RequestBill)> {
        let started = self.clock.now();
        let sendings: Vec<OutgoingRequest<'_>> = puts
            .iter()
            .map(|put| {
                let (model, repeat) = self.route(put.request.purpose, put.judge, put.turn);
                OutgoingRequest { put, model, repeat }
            })
            .collect();
        let is_over = AtomicBool::new(self.is_over());
        let came: Vec<OnceLock<Reply>> = puts.iter().map(|_| OnceLock::new()).collect();
        for wave in waves(&sendings) {
            self.send_wave(&sendings, &wave, &is_over, &came);
        }
        let booked = sendings.iter().zip(came).filter_map(|(sending, came)| {
            let answered = came.into_inner()?;
            if let (Some(model), None) = (sending.model, &self.unanswered) {
                self.unanswered = Unanswered::of(model, &answered.answer);
            }
            let booked = self.book(&sending.put.request, &answered);
            Some((answered.answer, booked))
        });
        let booked = booked.collect();
        self.time += self.clock.now().saturating_sub(started);
        booked
    }

    /// Sends some of the requests, as many at once as their model takes.
    fn send_wave(
        &self,
        sendings: &[OutgoingRequest<'_>],
        wave: &[usize],
        is_over: &AtomicBool,
        came: &[OnceLock<Reply>],
    ) {
        let counts: &CountedTexts = self.counts;
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(at) = wave.get(next.fetch_add(1, Ordering::SeqCst)) {
                let sending = &sendings[*at];
                let model = sending.model.filter(|_| !is_over.load(Ordering::SeqCst));
                let answered = answered(&sending.put.request, model, sending.repeat, counts);
                let unanswered = model.and_then(|model| Unanswered::of(model, &answered.answer));
                if unanswered.is_some_and(|why| why.ends_asking()) {
                    is_over.store(true, Ordering::SeqCst);
                }
                drop(came[*at].set(answered));
            }
        };
        let at_once = wave.iter().map(|at| at_once(&sendings[*at])).min();
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

/// Which requests are sent together: first one of each prompt that has no answer yet, then all
/// others. Models that take one request at a time get them in their order.
fn waves(sendings: &[OutgoingRequest<'_>]) -> Vec<Vec<usize>> {
    if sendings.iter().all(|sending| at_once(sending) < 2) {
        return vec![(0..sendings.len()).collect()];
    }
    let mut cached = BTreeSet::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for (at, sending) in sendings.iter().enumerate() {
        let prompt = (sending.put.judge, sending.put.prompt);
        if cached.contains(&prompt) {
            others.push(at);
            continue;
        }
        first.push(at);
        // A recorded answer caches nothing.
        let request = &sending.put.request;
        let is_kept = |model: &dyn Model| model.is_kept(request, sending.repeat);
        if !sending.model.is_some_and(is_kept) {
            cached.insert(prompt);
        }
    }
    vec![first, others]
}
