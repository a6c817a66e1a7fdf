//! What a run says while it runs: a bar on a terminal, else a line per finished session.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{environment, say};
use crate::record::{CellRecord, End};
use crate::runner::Progress;

/// Shows progress on standard error.
pub(super) struct Shown {
    bar: Option<ProgressBar>,
    sessions: usize,
    done: std::sync::atomic::AtomicUsize,
}

impl Shown {
    /// Begins with `already` of `cells` done.
    pub(super) fn new(cells: usize, already: usize, sessions: usize) -> Self {
        let dumb = environment("TERM").is_some_and(|term| term == "dumb");
        let interactive = std::io::stderr().is_terminal() && !dumb && environment("CI").is_none();
        let bar = interactive.then(|| {
            let bar = ProgressBar::with_draw_target(
                Some(cells as u64),
                ProgressDrawTarget::stderr_with_hz(10),
            );
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
            done: std::sync::atomic::AtomicUsize::new(0),
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Shown {
    fn cell(&self, record: &CellRecord) {
        let line = match &record.end {
            End::Failed { error, .. } => Some(format!("failed: {}: {error}", record.key())),
            End::NotMeasurable { why, .. } => {
                Some(format!("not measurable: {}: {why}", record.key()))
            }
            End::Completed | End::Died { .. } => None,
        };
        if let Some(line) = line {
            let line = crate::report::escape::plain(&line);
            match &self.bar {
                Some(bar) => bar.suspend(|| say(&line)),
                None => say(&line),
            }
        }
        if let Some(bar) = &self.bar {
            bar.set_message(crate::report::escape::plain(&record.session));
            bar.inc(1);
        }
    }

    fn session(&self, id: &str, cells: usize) {
        let done = self.done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if self.bar.is_none() {
            say(&format!(
                "session {done} of {}: {id}, {cells} cells",
                self.sessions
            ));
        }
    }
}
