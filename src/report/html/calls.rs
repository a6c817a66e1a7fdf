//! The prompts of each call: what the inspector of a timeline shows beside compactions and lost facts.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{Arm, CellRecord, EntryEdit, PromptEntry};
use crate::report::plot::tokens;
use crate::report::{RenderError, Report, template};

/// The data of the inspector for one session.
#[derive(Default, Serialize)]
struct Calls<'a> {
    /// The session's messages.
    messages: &'a [PromptEntry],
    /// The message that answered each call.
    answered_by: &'a [usize],
    /// Full history comes first.
    cells: Vec<Prompts<'a>>,
}

/// The prompts of one cell.
#[derive(Serialize)]
struct Prompts<'a> {
    strategy: &'a str,
    /// Whether it is the full history, with which the others are compared.
    is_full: bool,
    /// The name of its line in the timeline, by which the legend hides it.
    series: String,
    /// Tokens of each prompt.
    tokens: Vec<u64>,
    /// Tokens of each that are system prompt and tools.
    fixed: u64,
    /// Tokens of each that the simulated cache serves.
    cached: Vec<u64>,
    /// The call that was not sent.
    ended_at: Option<usize>,
    /// The compactions that are recorded entry by entry.
    compactions: Vec<Compaction<'a>>,
    /// The arguments of `inspect` that show the same prompts.
    window: Option<&'a str>,
    counter: Option<&'a str>,
}

/// The changes of one compaction to the entries of the prompt.
#[derive(Serialize)]
struct Compaction<'a> {
    call: usize,
    stage: &'a str,
    appended: usize,
    on_append: bool,
    edits: &'a [EntryEdit],
}

/// The prompts of these sessions, by session.
pub(super) fn data(report: &Report, sessions: &[&str]) -> Result<String, RenderError> {
    let mut calls: BTreeMap<&str, Calls<'_>> = BTreeMap::new();
    for cell in report.first_cells() {
        if sessions.contains(&&*cell.session) {
            let of_session = calls.entry(&cell.session).or_default();
            if cell.arm == Arm::Reference {
                of_session.messages = &cell.messages;
                of_session.answered_by = &cell.answered_by;
            }
            of_session.cells.push(prompts(report, cell));
        }
    }
    for of_session in calls.values_mut() {
        of_session.cells.sort_by_key(|it| !it.is_full);
    }
    template::data(&calls)
}

fn prompts<'a>(report: &'a Report, cell: &'a CellRecord) -> Prompts<'a> {
    let cached = cell.simulated_cache().map(|cache| &cache.read);
    let changes = cell.changes.iter().filter(|it| !it.edits.is_empty());
    Prompts {
        strategy: &cell.strategy,
        is_full: cell.arm == Arm::Reference,
        series: tokens::series_name(cell),
        tokens: cell.prompt_tokens.iter().map(|it| it.0).collect(),
        fixed: cell.fixed_tokens.0,
        cached: cached.into_iter().flatten().map(|it| it.0).collect(),
        ended_at: cell.end.call(),
        compactions: changes
            .filter_map(|change| {
                let event = cell.compactions.get(change.event)?;
                Some(Compaction {
                    call: event.call,
                    stage: &event.stage,
                    appended: change.appended,
                    on_append: change.on_append,
                    edits: &change.edits,
                })
            })
            .collect(),
        window: report.run.as_ref().map(|run| window(&run.window)),
        counter: report.run.as_ref().map(|run| &*run.counter),
    }
}

/// The window of a run as `--window` reads it: `native`, `80000` or `fit:0.6`.
fn window(setting: &str) -> &str {
    let mode = setting.split(", ").next().unwrap_or_default();
    mode.trim_end_matches(" tokens")
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
