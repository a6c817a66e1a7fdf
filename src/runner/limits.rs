//! The limits that end a run early.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{RunModels, sink};

/// The limits of a run, and when it started.
pub(super) struct Limits<'a> {
    models: Option<&'a RunModels>,
    started: Instant,
    reached: Mutex<Option<String>>,
}

impl<'a> Limits<'a> {
    pub(super) fn new(models: Option<&'a RunModels>) -> Self {
        Self { models, started: sink::now(), reached: Mutex::new(None) }
    }

    /// The minutes of the budget, where they are over.
    fn minutes(&self) -> Option<u64> {
        let minutes = self.models?.budget.minutes?;
        let limit = Duration::from_secs(minutes.saturating_mul(60));
        (self.started.elapsed() >= limit).then_some(minutes)
    }

    /// Whether the time of the budget is over.
    pub(super) fn is_late(&self) -> bool {
        self.minutes().is_some()
    }

    /// Whether another session may be begun.
    pub(super) fn allow(&self) -> bool {
        let mut first = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(models)) = (&*first, self.models) {
            let over = self.minutes().map(|minutes| format!("{minutes} minutes are over"));
            *first = over.or_else(|| models.spending.reached(&models.budget));
        }
        first.is_none()
    }

    /// The limit that was reached first, in words; with cells outstanding, the time may be over since.
    pub(super) fn reached(self, outstanding: usize) -> Option<String> {
        if outstanding > 0 && self.is_late() {
            self.allow();
        }
        let reached = self.reached.into_inner();
        reached.unwrap_or_else(PoisonError::into_inner)
    }
}
