//! The sink of finished cells: the journal, or the list of outstanding cells with their reasons.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{Journal, JournalError, Plan, RecordedRun, RunOutcome, journal};
use crate::model::{CallFailure, cut};
use crate::record::{CellKey, CellRecord, Timing};
use crate::replay::{MissedAnswer, Replay};

/// After this many cells in a row whose model could not be reached, no other is begun: each has
/// tried as long as the pace allows.
const IN_A_ROW: usize = 3;

#[derive(Debug)]
pub(super) struct Sink<'a> {
    pub(super) journal: &'a mut Journal,
    pub(super) outcome: RunOutcome,
    pub(super) failure: Option<JournalError>,
    pub(super) last_sync: Instant,
    pub(super) unreached_in_a_row: usize,
    pub(super) has_stopped: bool,
}

impl Sink<'_> {
    /// Takes the result of a cell: a replay, `None` where it could not begin yet, or the error of
    /// Proctor itself. Returns the record that was written, and breaks if no other cell is to be
    /// begun.
    pub(super) fn take(
        &mut self,
        key: CellKey,
        replay: Result<Option<Replay>, String>,
        plan: &Plan,
    ) -> ControlFlow<(), Option<CellRecord>> {
        let replay = match replay {
            Ok(Some(replay)) => replay,
            Ok(None) => return ControlFlow::Continue(None),
            Err(why) => {
                self.outcome.broken.push((key, why));
                return ControlFlow::Continue(None);
            }
        };
        match &replay.unanswered {
            None | Some(MissedAnswer::Deferred) => {}
            Some(MissedAnswer::NotRecorded) => {
                self.outcome.missed = true;
                self.has_stopped = true;
            }
            Some(MissedAnswer::Unreached { failure: CallFailure::Stopped { .. }, .. }) => {
                return ControlFlow::Continue(None);
            }
            Some(MissedAnswer::NotStarted(why)) => {
                self.outcome.unreached.push((key, why.to_string()));
            }
            Some(MissedAnswer::Unreached { model, failure }) => {
                let why = format!("a model could not be asked: {model}: {failure}");
                self.outcome.unreached.push((key, why));
                self.unreached_in_a_row += 1;
                if let CallFailure::CutPrompt { window, .. } = failure {
                    self.outcome.cut_at = Some(*window);
                }
                let barred = matches!(
                    failure,
                    CallFailure::Denied(_)
                        | CallFailure::NotKept(_)
                        | CallFailure::CutPrompt { .. }
                );
                self.has_stopped |= barred || self.unreached_in_a_row >= IN_A_ROW;
            }
        }
        if self.has_stopped {
            return ControlFlow::Break(());
        }
        if replay.unanswered.is_some() {
            return ControlFlow::Continue(None);
        }
        self.unreached_in_a_row = 0;
        if let Err(error) = self.write(&replay, plan) {
            self.failure = Some(error);
            self.has_stopped = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(Some(replay.record))
    }

    /// Takes back all cells of each session of which one may rest on a cut prompt, if a server was seen to cut
    /// them: cells of a session may follow one another.
    pub(super) fn withdraw_cut(&mut self, plan: &Plan) -> Result<(), JournalError> {
        let Some(window) = self.outcome.cut_at else {
            return Ok(());
        };
        let cells = RecordedRun::read(self.journal.folder())?.cells;
        let doubtful = cells
            .iter()
            .filter(|cell| cell.read_sizes().any(|read| cut::is_doubtful(read, window)));
        let sessions: BTreeSet<&str> = doubtful.map(|cell| &*cell.session).collect();
        let void = cells.iter().filter(|cell| sessions.contains(&*cell.session));
        let void: BTreeSet<CellKey> = void.map(CellRecord::key).collect();
        self.withdraw(&void, plan)
    }

    /// Takes back all cells of programs that are not the same at the end of the run as at its begin.
    pub(super) fn withdraw_changed(&mut self, plan: &Plan) -> Result<(), JournalError> {
        let changed = plan.changed_cells(self.journal.done());
        let void = changed.keys().cloned().collect();
        self.outcome.unreached.extend(changed);
        self.withdraw(&void, plan)
    }

    fn withdraw(&mut self, void: &BTreeSet<CellKey>, plan: &Plan) -> Result<(), JournalError> {
        if void.is_empty() {
            return Ok(());
        }
        self.journal.forget(void, plan.manifest())?;
        self.outcome.withdrawn += void.len();
        Ok(())
    }

    fn write(&mut self, replay: &Replay, plan: &Plan) -> Result<(), JournalError> {
        if let Some(cassette) = plan.models().and_then(|models| models.cassette.as_ref()) {
            cassette.sync().map_err(|error| {
                JournalError::Io(cassette.path().to_owned(), io::Error::other(error))
            })?;
        }
        self.journal.append(&replay.record)?;
        self.journal.time(journal::TIMINGS, &timing(replay))?;
        let models = plan.models().into_iter();
        for line in models.flat_map(|models| models.servers.take_times()) {
            self.journal.time(journal::CALL_TIMES, &line)?;
        }
        if self.last_sync.elapsed() > Duration::from_secs(1) {
            self.journal.sync()?;
            self.last_sync = now();
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "decides when to flush and when a time limit is over, and nothing else"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Measured times of one cell, in nanoseconds of processor time.
fn timing(replay: &Replay) -> Timing {
    let mut times = replay.strategy_cpu.clone();
    times.sort_unstable();
    Timing {
        session: replay.record.session.clone(),
        strategy: replay.record.strategy.clone(),
        repeat: replay.record.repeat,
        cell_cpu_ns: nanoseconds(replay.cell_cpu),
        strategy_cpu_ns: nanoseconds(times.iter().sum()),
        p50_ns: percentile(&times, 50),
        p95_ns: percentile(&times, 95),
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().map_or(0, nanoseconds)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
