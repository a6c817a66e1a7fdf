//! Progress of a run: a bar on a terminal, else a line per finished session.

use std::fmt;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::forecast::minutes_in_words;
use super::{environment, say};
use crate::record::journal::Journal;
use crate::record::{CellRecord, End};
use crate::report::escape::plain;
use crate::runner::{Plan, Progress};

/// Shows progress on standard error.
#[derive(Debug)]
pub(super) struct ProgressDisplay {
    bar: Option<ProgressBar>,
    work: Arc<Mutex<CellWork>>,
    sessions: usize,
    done: AtomicUsize,
}

/// The work of the cells that were missing when the run began, and how far it has come. Cells of an earlier run
/// say nothing about the speed of this one.
#[derive(Debug, Default)]
struct CellWork {
    all: u64,
    done: u64,
    /// When the last cell was finished.
    at: Duration,
}

/// Before this share of the work is done, the rest of it may take any time.
const KNOWN_AFTER: f64 = 0.05;

impl CellWork {
    fn finish(&mut self, work: u64, elapsed: Duration) {
        self.done += work;
        self.at = elapsed;
    }

    /// The time for the rest at the mean speed so far; none until enough is done to know it.
    fn left(&self, elapsed: Duration) -> Option<Duration> {
        let share = self.done as f64 / self.all.max(1) as f64;
        if share < KNOWN_AFTER {
            return None;
        }
        let left = self.at.mul_f64((1.0 / share - 1.0).max(0.0));
        Some(left.saturating_sub(elapsed.saturating_sub(self.at)))
    }
}

impl ProgressDisplay {
    /// Begins with the cells of the plan that are done already.
    pub(super) fn new(plan: &Plan, journal: &Journal) -> Self {
        let cells = plan.cells();
        let already = cells.iter().filter(|key| journal.done().contains(*key));
        let dumb = environment("TERM").is_some_and(|term| term == "dumb");
        let interactive = std::io::stderr().is_terminal() && !dumb && environment("CI").is_none();
        let work: Arc<Mutex<CellWork>> = Arc::default();
        let shown = work.clone();
        let left = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            let work = shown.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(left) = work.left(state.elapsed()) {
                let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
                let _ = write!(out, ", about {} left", minutes_in_words(left));
            }
        };
        let bar = interactive.then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(Some(cells.len() as u64), target);
            let style = ProgressStyle::with_template(
                "{bar:24} {pos}/{len} cells  {msg}  {elapsed} elapsed{left}",
            );
            if let Ok(style) = style {
                bar.set_style(style.with_key("left", left));
            }
            bar.set_position(already.count() as u64);
            bar
        });
        Self { bar, work, sessions: plan.sessions(), done: AtomicUsize::new(0) }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress for ProgressDisplay {
    fn begin(&self, work: u64) {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).all = work;
    }

    fn cell(&self, record: &CellRecord, work: u64) {
        let key = record.key();
        let line = match &record.end {
            End::Failed { error, .. } => format!("failed: {key}: {error}"),
            End::NotMeasurable { why, .. } => format!("not measurable: {key}: {why}"),
            End::Completed | End::Died { .. } => String::new(),
        };
        let line = plain(&line);
        match &self.bar {
            _ if line.is_empty() => {}
            Some(bar) => bar.suspend(|| say(&line)),
            None => say(&line),
        }
        if let Some(bar) = &self.bar {
            let mut all = self.work.lock().unwrap_or_else(PoisonError::into_inner);
            all.finish(work, bar.elapsed());
            drop(all);
            bar.set_message(plain(&record.session));
            bar.inc(1);
        }
    }

    fn session(&self, id: &str, cells: usize) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if self.bar.is_none() {
            let all = self.sessions;
            say!("session {done} of {all}: {id}, {cells} cells");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finishes cells of this work in so many seconds each, and returns the estimate after each.
    fn estimates(cells: &[(u64, u64)]) -> Vec<Option<u64>> {
        let all = cells.iter().map(|(size, _)| size).sum();
        let mut work = CellWork { all, ..CellWork::default() };
        let mut elapsed = Duration::ZERO;
        let after = cells.iter().map(|(size, seconds)| {
            elapsed += Duration::from_secs(*seconds);
            work.finish(*size, elapsed);
            work.left(elapsed).map(|left| left.as_secs())
        });
        after.collect()
    }

    #[test]
    fn a_long_session_at_the_end_is_expected() {
        let short = [(10, 1); 10];
        let cells = [&short[..], &[(100, 10); 3]].concat();
        let estimates = estimates(&cells);
        // A tenth of the cells is a fortieth of the work.
        assert_eq!(estimates[..2], [None, Some(38)]);
        let exact = |(at, left): (usize, &Option<u64>)| {
            let rest: u64 = cells[at + 1..].iter().map(|(_, seconds)| seconds).sum();
            left.is_none_or(|left| left == rest)
        };
        assert!(estimates.iter().enumerate().all(exact), "{estimates:?}");
    }

    #[test]
    fn the_time_of_a_cell_that_takes_long_is_taken_off_and_nothing_is_left_of_no_work() {
        let work = CellWork { all: 100, done: 50, at: Duration::from_secs(10) };
        for (elapsed, left) in [(10, 10), (14, 6), (30, 0)] {
            let elapsed = Duration::from_secs(elapsed);
            assert_eq!(work.left(elapsed), Some(Duration::from_secs(left)));
        }
        assert_eq!(CellWork::default().left(Duration::from_secs(9)), None);
    }
}
