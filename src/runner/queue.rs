//! The cells that are left, handed to workers in session order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::ArmIndex;
use super::loaded::NotReady;
use crate::replay::{Models, PreparedSession};

/// The part that the cells of one session share.
#[derive(Debug)]
pub(super) struct SessionState {
    pub(super) session: usize,
    /// The prepared session and its models; made by the first worker that needs it.
    pub(super) prepared: OnceLock<Result<(PreparedSession, Models), NotReady>>,
    /// Its cells in this run, and those of them that are not done.
    cells: usize,
    remaining: AtomicUsize,
}

impl SessionState {
    /// Notes that a cell of this session is done; the number of cells if it was the last.
    pub(super) fn finished(&self) -> Option<usize> {
        (self.remaining.fetch_sub(1, Ordering::SeqCst) == 1).then_some(self.cells)
    }
}

/// Cells in session order; a session's shared part is dropped with the last of its cells.
pub(super) struct Queue(Mutex<QueueState>);

struct QueueState {
    cells: VecDeque<(Arc<SessionState>, ArmIndex)>,
    begun: Option<usize>,
}

impl Queue {
    pub(super) fn new(missing: Vec<(usize, Vec<ArmIndex>)>) -> Self {
        let mut cells = VecDeque::new();
        for (session, arms) in missing {
            let shared = Arc::new(SessionState {
                session,
                prepared: OnceLock::new(),
                cells: arms.len(),
                remaining: AtomicUsize::new(arms.len()),
            });
            cells.extend(arms.into_iter().map(|arm| (shared.clone(), arm)));
        }
        Self(Mutex::new(QueueState { cells, begun: None }))
    }

    /// The next cell; a session is begun only where `begins` says so, and finished whole.
    pub(super) fn take(&self, begins: &dyn Fn() -> bool) -> Option<(Arc<SessionState>, ArmIndex)> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let session = state.cells.front()?.0.session;
        if state.begun != Some(session) && !begins() {
            return None;
        }
        state.begun = Some(session);
        state.cells.pop_front()
    }
}
