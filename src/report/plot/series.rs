//! The prompts of each cell, call by call: the data that plots need beside the tables.

use crate::record::{Arm, CacheRecord, CellRecord, End};
use crate::units::Tokens;
use crate::window::Window;

/// The prompts sent in one cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellSeries {
    pub(crate) session: String,
    pub(crate) strategy: String,
    pub(crate) arm: Arm,
    pub(crate) window: Option<Window>,
    pub(crate) prompts: Vec<Tokens>,
    /// The prompt cache under the scheme of the comparison; nothing without one.
    pub(crate) cache: Option<CacheRecord>,
    pub(crate) compactions: Vec<Compaction>,
    /// The call at which it ended early.
    pub(crate) ended_at: Option<usize>,
}

/// The size of the messages before and after all patches of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compaction {
    pub(crate) call: usize,
    pub(crate) before: Tokens,
    pub(crate) after: Tokens,
}

impl CellSeries {
    /// The prompts of a cell; nothing for the floor and for repeats after the first.
    pub(crate) fn of(cell: &CellRecord) -> Option<Self> {
        if cell.arm == Arm::Floor || cell.repeat > 0 {
            return None;
        }
        let mut compactions: Vec<Compaction> = Vec::new();
        for event in &cell.compactions {
            match compactions.last_mut() {
                Some(last) if last.call == event.call => last.after = event.after,
                Some(_) | None => compactions.push(Compaction {
                    call: event.call,
                    before: event.before,
                    after: event.after,
                }),
            }
        }
        Some(Self {
            session: cell.session.clone(),
            strategy: cell.strategy.clone(),
            arm: cell.arm,
            window: cell.window,
            prompts: cell.prompt_tokens.clone(),
            cache: cell.prompt_cache.first().cloned(),
            compactions,
            ended_at: match cell.end {
                End::Completed => None,
                End::Died { call, .. }
                | End::Failed { call, .. }
                | End::NotMeasurable { call, .. } => Some(call),
            },
        })
    }
}
