//! The prompts of each call: what the inspector of a timeline shows beside compactions and lost facts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::template;
use crate::record::CellRecord;
use crate::report::{RenderError, Report};

/// The prompts of one cell.
#[derive(Serialize)]
struct Prompts<'a> {
    strategy: &'a str,
    /// Tokens of each prompt.
    tokens: Vec<u64>,
    /// Tokens of each that the simulated cache serves.
    cached: Vec<u64>,
    /// The call that was not sent.
    ended_at: Option<usize>,
    /// The window and the counter, by which `inspect` shows the same prompts.
    window: Option<u64>,
    counter: Option<&'a str>,
}

/// The prompts of these sessions, by session.
pub(super) fn data(report: &Report, sessions: &[&str]) -> Result<String, RenderError> {
    let mut cells: BTreeMap<&str, Vec<Prompts<'_>>> = BTreeMap::new();
    for cell in report.first_cells() {
        if sessions.contains(&&*cell.session) {
            let prompts = prompts(report, cell);
            cells.entry(&cell.session).or_default().push(prompts);
        }
    }
    template::data(&cells)
}

fn prompts<'a>(report: &'a Report, cell: &'a CellRecord) -> Prompts<'a> {
    let cached = cell.prompt_cache.first().map(|cache| &cache.read);
    Prompts {
        strategy: &cell.strategy,
        tokens: cell.prompt_tokens.iter().map(|it| it.0).collect(),
        cached: cached.into_iter().flatten().map(|it| it.0).collect(),
        ended_at: cell.end.call(),
        window: cell.window.map(|it| it.tokens.0),
        counter: report.run.as_ref().map(|run| &*run.counter),
    }
}
