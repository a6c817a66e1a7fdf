//! The cells that are left, handed to workers in session order.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{ArmIndex, NotReady};
use crate::replay::{Models, PreparedSession};

/// A session made ready and the models it is put to; made by the first worker that needs it.
pub(super) type Prepared = OnceLock<Result<(PreparedSession, Models), NotReady>>;

/// What the cells of one session share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) session: usize,
    pub(super) prepared: Prepared,
}

/// Cells in session order; a session's shared part lives while one of its cells is about.
pub(super) struct Queue(Mutex<QueueState>);

struct QueueState {
    sessions: Vec<(usize, std::vec::IntoIter<ArmIndex>, usize, usize)>,
    next: usize,
    current: Option<Arc<Shared>>,
}

impl Queue {
    pub(super) fn new(missing: Vec<(usize, Vec<ArmIndex>)>) -> Self {
        let sessions = missing
            .into_iter()
            .filter(|(_, arms)| !arms.is_empty())
            .map(|(session, arms)| {
                let cells = arms.len();
                (session, arms.into_iter(), cells, cells)
            })
            .collect();
        Self(Mutex::new(QueueState {
            sessions,
            next: 0,
            current: None,
        }))
    }

    /// The next cell; a session is begun only where `may_begin` says so, and finished whole.
    pub(super) fn take(&self, may_begin: &dyn Fn() -> bool) -> Option<(Arc<Shared>, ArmIndex)> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let at = state.next;
            let is_begun = state.current.is_some();
            let (session, arms, ..) = state.sessions.get_mut(at)?;
            let session = *session;
            if !is_begun && !may_begin() {
                return None;
            }
            if let Some(arm) = arms.next() {
                let shared = state
                    .current
                    .get_or_insert_with(|| {
                        Arc::new(Shared {
                            session,
                            prepared: OnceLock::new(),
                        })
                    })
                    .clone();
                return Some((shared, arm));
            }
            state.next += 1;
            state.current = None;
        }
    }

    /// Takes note that a cell of this session is done; the number of cells if it was the last.
    pub(super) fn finished(&self, session: usize) -> Option<usize> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (.., left, cells) = state.sessions.iter_mut().find(|entry| entry.0 == session)?;
        *left -= 1;
        (*left == 0).then_some(*cells)
    }
}
