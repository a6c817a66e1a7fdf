//! An actor for each conversation: its strategy works at one call after the other, on a thread that ends when there is
//! nothing left to do.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lock;
use super::state::Skip;
use super::worker::{Done, Worker};

type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// Owns the worker of a conversation.
#[derive(Clone)]
pub(super) struct Actor(Arc<Mutex<Mailbox>>);

struct Mailbox {
    /// `None` while a thread has it.
    resting: Option<Box<Worker>>,
    waiting: VecDeque<Job>,
}

impl fmt::Debug for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Actor")
    }
}

impl Actor {
    pub(super) fn new(worker: Worker) -> Self {
        Self(Arc::new(Mutex::new(Mailbox {
            resting: Some(Box::new(worker)),
            waiting: VecDeque::new(),
        })))
    }

    /// Puts work behind all that waits, and returns at once.
    ///
    /// If no thread can be started, the work waits for the next call.
    pub(super) fn queue(&self, work: impl FnOnce(&mut Worker) + Send + 'static) {
        let mut own = lock(&self.0);
        own.waiting.push_back(Box::new(work));
        if own.resting.is_some() {
            let mailbox = self.0.clone();
            drop(std::thread::Builder::new().spawn(move || empty(&mailbox)));
        }
    }

    /// The answer to a question, which is asked behind all work that waits.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Worker) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = mpsc::channel();
        self.queue(move |worker| drop(reply.send(question(worker))));
        answer.recv().ok()
    }
}

fn empty(mailbox: &Mutex<Mailbox>) {
    let mut own = lock(mailbox);
    let Some(mut worker) = own.resting.take() else {
        return;
    };
    while let Some(work) = own.waiting.pop_front() {
        drop(own);
        // A client that waits for work that panics is told that it failed: the words are on standard error.
        drop(catch_unwind(AssertUnwindSafe(|| work(&mut worker))));
        own = lock(mailbox);
    }
    own.resting = Some(worker);
}

/// Waits for the result of some work, without a timeout for as long as it takes.
///
/// The channel is to hold nothing: a result is either taken here, or its sender learns that it came too late.
pub(super) fn wait(from: &Receiver<Done>, timeout: Option<Duration>) -> Result<Done, Skip> {
    let result = match timeout {
        None => from.recv().map_err(RecvTimeoutError::from),
        Some(timeout) => from.recv_timeout(timeout),
    };
    result.map_err(|why| match why {
        RecvTimeoutError::Timeout => Skip::Late,
        RecvTimeoutError::Disconnected => Skip::Failed,
    })
}
