//! Progress of a run: a bar on a terminal, else a line per finished session; in long cells, the calls.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{environment, say};
use crate::record::{CellKey, CellRecord, End};
use crate::report::escape::plain;
use crate::runner::Progress;

/// Shows progress on standard error.
#[derive(Debug)]
pub(super) struct ProgressDisplay {
    bar: Option<ProgressBar>,
    sessions: usize,
    done: AtomicUsize,
}

impl ProgressDisplay {
    /// Begins with `already` of `cells` done.
    pub(super) fn new(cells: usize, already: usize, sessions: usize) -> Self {
        let dumb = environment("TERM").is_some_and(|term| term == "dumb");
        let interactive = std::io::stderr().is_terminal() && !dumb && environment("CI").is_none();
        let bar = interactive.then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(Some(cells as u64), target);
            let style = ProgressStyle::with_template(
                "{bar:24} {pos}/{len} cells  {msg}  {elapsed} elapsed, {eta} left",
            );
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.set_position(already as u64);
            bar
        });
        Self {
            bar,
            sessions,
            done: AtomicUsize::new(0),
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress for ProgressDisplay {
    fn calls(&self, cell: &CellKey, done: usize, planned: usize) {
        let line = plain(&format!("{cell}: {done} of {planned} calls"));
        match &self.bar {
            Some(bar) => bar.set_message(line),
            None => say(&line),
        }
    }

    fn cell(&self, record: &CellRecord) {
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
            bar.set_message(plain(&record.session));
            bar.inc(1);
        }
    }

    fn session(&self, id: &str, cells: usize) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if self.bar.is_none() {
            let all = self.sessions;
            say(&format!("session {done} of {all}: {id}, {cells} cells"));
        }
    }
}
