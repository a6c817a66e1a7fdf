//! Messages for programs: the output of `run --json`, one object per line.
//!
//! `launch` comes first and `done` last, whatever the result; `cell` and `session` follow as they
//! are finished, in no set order.

use std::path::Path;

use serde_json::{Value, json};

use super::{Exit, print};
use crate::record::{CellRecord, Level, Manifest};
use crate::report::json::results;
use crate::report::{Report, escape};
use crate::runner::{Progress, RunOutcome};

/// Version of the messages: additions keep it.
const VERSION: u32 = 1;

/// Writes one message. A reader that has gone away does not stop the run.
pub(super) fn send(message: &Value) {
    let _ = print(&(escape::json(&message.to_string()) + "\n"));
}

/// The run is about to begin.
pub(super) fn launch(manifest: &Manifest, folder: &Path, cells: usize, done: usize) -> Value {
    let strategies = manifest.strategies.iter().map(|strategy| &strategy.name);
    let sessions = manifest.sessions.iter().map(|session| &session.id);
    json!({
        "type": "launch",
        "version": VERSION,
        "proctor": manifest.proctor,
        "scenario": manifest.scenario,
        "fingerprint": manifest.fingerprint,
        "folder": folder.display().to_string(),
        "counter": manifest.counter,
        "window": manifest.window,
        "seed": manifest.seed,
        "repeats": manifest.repeats,
        "summariser": manifest.summariser,
        "reader": manifest.reader,
        "judge": manifest.judge,
        "sessions": sessions.collect::<Vec<_>>(),
        "strategies": strategies.collect::<Vec<_>>(),
        "cells": { "planned": cells, "done": done },
    })
}

/// How a run came out, as far as it came.
#[derive(Debug, Default)]
pub(super) struct RunSummary {
    /// Cells of the plan.
    pub(super) planned: usize,
    /// The outcome of the runner.
    pub(super) outcome: Option<RunOutcome>,
    /// Cells in which the strategy failed, over all that are recorded.
    pub(super) failed: Option<usize>,
    /// Answers that were asked for, and those without a score, over all that are recorded.
    pub(super) answers: Option<(usize, usize)>,
    /// The report, once there is one.
    pub(super) report: Option<Report>,
}

/// The run is over; with its results, where it came so far.
pub(super) fn done(summary: &RunSummary, exit: Exit, error: Option<&str>) -> Value {
    let outcome = summary.outcome.as_ref();
    let word = match (exit, outcome) {
        (Exit::Interrupted, _) => "interrupted",
        (_, Some(outcome)) if outcome.outstanding == 0 => "complete",
        _ => "incomplete",
    };
    let report = summary.report.as_ref();
    let controls = report.map(|report| json!(report.controls)["controls"].take());
    json!({
        "type": "done",
        "outcome": word,
        "cells": {
            "planned": summary.planned,
            "done_before": outcome.map(|outcome| outcome.already_done),
            "done_now": outcome.map(|outcome| outcome.done_now),
            "outstanding": outcome.map(|outcome| outcome.outstanding),
            "failed": summary.failed,
        },
        "answers": {
            "asked": summary.answers.map(|answers| answers.0),
            "unscored": summary.answers.map(|answers| answers.1),
        },
        "controls": controls,
        "verdict": report.map(|report| json!(report.verdict)),
        "results": report.map(|report| json!(results(report))),
        "error": error,
        "exit_code": exit.code(),
    })
}

/// Sends a line for each cell and session.
#[derive(Debug)]
pub(super) struct MessageProgress;

impl Progress for MessageProgress {
    fn cell(&self, record: &CellRecord, _: u64) {
        let end = json!(record.end);
        let mut levels = record.violations.iter().map(|violation| violation.level);
        let rejected = levels.any(|level| level == Level::Rejected);
        send(&json!({
            "type": "cell",
            "session": record.session,
            "strategy": record.strategy,
            "repeat": record.repeat,
            "end": end["end"],
            "ended_at": end.get("call"),
            "calls_planned": record.planned_calls,
            "calls_reached": record.reached_calls,
            "compactions": record.compactions.len(),
            "overflows": record.overflows.len(),
            "rejected": rejected,
        }));
    }

    fn session(&self, id: &str, cells: usize) {
        send(&json!({ "type": "session", "session": id, "cells": cells }));
    }
}
