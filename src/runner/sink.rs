//! Where finished cells go: into the journal, or on the list of what is outstanding and why.

use std::time::{Duration, Instant};

use super::times::{now, timing};
use super::{Journal, JournalError, Plan};
use crate::model::CallFailure;
use crate::record::{CellKey, CellRecord};
use crate::replay::{Replay, Unanswered};

/// After so many cells in a row that could not be asked, no other is begun: each has tried as long
/// as the pace allows.
const IN_A_ROW: usize = 3;

/// What a worker does after a cell.
pub(super) enum After {
    /// The cell is in the journal.
    Written(Box<CellRecord>),
    /// It is not; the next may be begun.
    Outstanding,
    /// No other is begun.
    Stop,
}

/// What came of all cells.
#[derive(Debug, Default)]
pub(super) struct Sunk {
    pub(super) done_now: usize,
    /// Cells in which Proctor itself failed, and why.
    pub(super) broken: Vec<(CellKey, String)>,
    /// Whether a recorded answer was wanted that is not there.
    pub(super) missed: bool,
    /// Cells that needed an answer that could not be had, and why.
    pub(super) unreached: Vec<(CellKey, String)>,
}

#[derive(Debug)]
pub(super) struct Sink<'a> {
    journal: &'a mut Journal,
    failure: Option<JournalError>,
    last_sync: Instant,
    sunk: Sunk,
    unreached_in_a_row: usize,
    has_stopped: bool,
}

impl<'a> Sink<'a> {
    pub(super) fn new(journal: &'a mut Journal) -> Self {
        Self {
            journal,
            failure: None,
            last_sync: now(),
            sunk: Sunk::default(),
            unreached_in_a_row: 0,
            has_stopped: false,
        }
    }

    /// Takes what became of a cell: a replay, nothing where it could not begin yet, or why Proctor
    /// itself failed.
    pub(super) fn take(
        &mut self,
        key: CellKey,
        replay: Result<Option<Replay>, String>,
        plan: &Plan,
    ) -> After {
        let replay = match replay {
            Ok(Some(replay)) => replay,
            Ok(None) => return After::Outstanding,
            Err(why) => {
                self.sunk.broken.push((key, why));
                return After::Outstanding;
            }
        };
        match &replay.unanswered {
            None | Some(Unanswered::Deferred) => {}
            Some(Unanswered::NotRecorded) => {
                self.sunk.missed = true;
                self.has_stopped = true;
            }
            Some(Unanswered::Unreached { model, failure }) => {
                self.sunk
                    .unreached
                    .push((key, format!("{model}: {failure}")));
                self.unreached_in_a_row += 1;
                let is_barred = matches!(failure, CallFailure::Denied(_) | CallFailure::NotKept(_));
                self.has_stopped |= is_barred || self.unreached_in_a_row >= IN_A_ROW;
            }
        }
        if self.has_stopped {
            return After::Stop;
        }
        if replay.unanswered.is_some() {
            return After::Outstanding;
        }
        self.unreached_in_a_row = 0;
        if let Err(error) = self.write(&replay, plan) {
            self.failure = Some(error);
            self.has_stopped = true;
            return After::Stop;
        }
        After::Written(Box::new(replay.record))
    }

    fn write(&mut self, replay: &Replay, plan: &Plan) -> Result<(), JournalError> {
        self.journal.append(&replay.record)?;
        self.journal.time(&timing(replay))?;
        for line in plan.models().iter().flat_map(|models| models.take_times()) {
            self.journal.time_call(&line)?;
        }
        self.sunk.done_now += 1;
        if self.last_sync.elapsed() > Duration::from_secs(1) {
            self.journal.sync()?;
            self.last_sync = now();
        }
        Ok(())
    }

    /// What came of all cells, once the journal is on the disk.
    pub(super) fn close(self) -> Result<Sunk, JournalError> {
        let synced = self.journal.sync();
        match self.failure {
            Some(error) => Err(error),
            None => synced.map(|()| self.sunk),
        }
    }
}
