//! What plots need beside the tables: what was sent at each call.

use crate::record::{Arm, CellRecord, End};
use crate::units::Tokens;
use crate::window::Window;

/// What was sent in one cell, call by call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellSeries {
    pub(crate) session: String,
    pub(crate) strategy: String,
    pub(crate) arm: Arm,
    pub(crate) window: Option<Window>,
    pub(crate) prompts: Vec<Tokens>,
    /// Tokens of each prompt that were read from the cache and written to it, under the scheme of
    /// the comparison; nothing without one.
    pub(crate) cache: Option<Cache>,
    pub(crate) compactions: Vec<Compaction>,
    /// The call at which it ended early.
    pub(crate) ended_at: Option<usize>,
}

/// What the prompt cache made of each prompt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cache {
    pub(crate) scheme: String,
    pub(crate) read: Vec<Tokens>,
    pub(crate) written: Vec<Tokens>,
}

/// What was changed before a call, all patches together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compaction {
    pub(crate) call: usize,
    pub(crate) before: Tokens,
    pub(crate) after: Tokens,
}

impl CellSeries {
    /// What was sent in a cell; its first repeat stands for the others.
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
        let cache = cell.prompt_cache.first().map(|cache| {
            let of = |series: &[Tokens]| {
                let calls = 0..cell.prompt_tokens.len();
                let at = |call: usize| series.get(call).copied().unwrap_or_default();
                calls.map(at).collect()
            };
            Cache {
                scheme: cache.scheme.clone(),
                read: of(&cache.read),
                written: of(&cache.written),
            }
        });
        Some(Self {
            session: cell.session.clone(),
            strategy: cell.strategy.clone(),
            arm: cell.arm,
            window: cell.window,
            prompts: cell.prompt_tokens.clone(),
            cache,
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
