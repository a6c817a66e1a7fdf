//! The prompts of each call: what the inspector of a timeline shows beside compactions and lost facts.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::record::{Arm, CellRecord};
use crate::report::plot::tokens;
use crate::report::{RenderError, Report, template};

/// The prompts of these sessions, by session.
pub(super) fn data(report: &Report, sessions: &[&str]) -> Result<String, RenderError> {
    let mut by_session: BTreeMap<&str, Vec<&CellRecord>> = BTreeMap::new();
    for cell in report.first_cells() {
        if sessions.contains(&&*cell.session) {
            by_session.entry(&cell.session).or_default().push(cell);
        }
    }
    let calls = by_session.into_iter().map(|(session, mut cells)| {
        // Full history comes first: the others are compared with it.
        cells.sort_by_key(|cell| cell.arm != Arm::Reference);
        let full = cells.iter().find(|cell| cell.arm == Arm::Reference);
        let of_session = json!({
            "messages": full.map_or(&[][..], |full| &full.messages),
            "answered_by": full.map_or(&[][..], |full| &full.answered_by),
            "cells": cells.iter().map(|cell| prompts(report, cell)).collect::<Vec<_>>(),
        });
        (session, of_session)
    });
    template::data(&calls.collect::<BTreeMap<_, _>>())
}

/// The prompts of one cell: their tokens, those of system prompt and tools, and those that the simulated cache
/// serves; the compactions that are recorded entry by entry; and the arguments of `inspect` that show the same.
fn prompts(report: &Report, cell: &CellRecord) -> Json {
    let cached = cell.simulated_cache().map(|cache| &*cache.read);
    let changes = cell.changes.iter().filter(|change| !change.edits.is_empty());
    let compactions = changes.filter_map(|change| {
        let event = cell.compactions.get(change.event)?;
        Some(json!({
            "call": event.call,
            "stage": event.stage,
            "appended": change.appended,
            "on_append": change.on_append,
            "edits": change.edits,
        }))
    });
    let run = report.run.as_ref();
    json!({
        "strategy": cell.strategy,
        "is_full": cell.arm == Arm::Reference,
        // By this name the legend of the timeline hides the line.
        "series": tokens::series_name(cell),
        "tokens": cell.prompt_tokens,
        "fixed": cell.fixed_tokens,
        "cached": cached.unwrap_or_default(),
        "ended_at": cell.end.call(),
        "compactions": compactions.collect::<Vec<_>>(),
        "window": run.map(|run| window(&run.window)),
        "counter": run.map(|run| &run.counter),
    })
}

/// The window of a run as `--window` reads it: `native`, `80000` or `fit:0.6`.
fn window(setting: &str) -> &str {
    setting.split(", ").next().unwrap_or_default().trim_end_matches(" tokens")
}

#[cfg(test)]
mod tests {
    use super::window;

    #[test]
    fn a_window_is_written_as_inspect_reads_it() {
        for (setting, argument) in [
            ("native", "native"),
            ("80000 tokens, triggers matched", "80000"),
            ("fit:0.6, 8000 reserved for output", "fit:0.6"),
        ] {
            assert_eq!(window(setting), argument);
        }
    }
}
