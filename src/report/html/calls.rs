//! The prompts of each call: what the inspector of a timeline shows beside compactions and lost facts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::template;
use crate::record::{Arm, CellRecord};
use crate::report::plot::tokens;
use crate::report::{RenderError, Report};

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
    /// Tokens of each that the simulated cache serves.
    cached: Vec<u64>,
    /// The call that was not sent.
    ended_at: Option<usize>,
    /// The arguments of `inspect` that show the same prompts.
    window: Option<&'a str>,
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
    for prompts in cells.values_mut() {
        prompts.sort_by_key(|it| !it.is_full);
    }
    template::data(&cells)
}

fn prompts<'a>(report: &'a Report, cell: &'a CellRecord) -> Prompts<'a> {
    let cached = cell.prompt_cache.first().map(|cache| &cache.read);
    Prompts {
        strategy: &cell.strategy,
        is_full: cell.arm == Arm::Reference,
        series: tokens::series_name(cell),
        tokens: cell.prompt_tokens.iter().map(|it| it.0).collect(),
        cached: cached.into_iter().flatten().map(|it| it.0).collect(),
        ended_at: cell.end.call(),
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
