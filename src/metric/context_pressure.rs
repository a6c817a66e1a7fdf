//! Context pressure: how close prompts came to the window, how often a strategy compacted again,
//! and tool results the model never saw.

use super::prelude::*;
use crate::metric::calls::is_on_the_bill;
use crate::record::ModelCall;
use crate::window::{WarningFrom, Zone};

/// A compaction that leaves more than this share of the messages was futile.
const FUTILE: f64 = 0.8;

/// Compactions fewer than this many calls apart are too close.
const NEAR: usize = 4;

/// Counts of one cell, or of several together. Less is better.
///
/// A *paid* compaction is one for which a model was asked at the same call. Stages that free a
/// little before every call are not restless by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ContextPressure {
    /// Calls whose prompt had reached the warning or the error line and no higher one.
    pub warned_calls: usize,
    /// Calls whose prompt had reached the line of automatic compaction and not the blocking line.
    pub auto_compact_calls: usize,
    /// Calls whose prompt had reached the blocking line.
    pub blocking_calls: usize,
    /// Messages the user typed at or above the blocking line.
    pub blocked_turns: usize,
    /// Sub-agents started where 95 % of the effective window were full.
    pub blocked_agents: usize,
    /// Paid compactions that are the third of three in a row, each less than 4 calls after the
    /// one before.
    pub thrash: usize,
    /// Compactions that left the context at or over their own trigger, paid or not.
    pub retriggered: usize,
    /// Paid compactions at the very next call after another.
    pub next_call: usize,
    /// Paid compactions that left more than four fifths of the messages.
    pub futile: usize,
    /// Tool results altered before the first call that would have shown them.
    pub unseen_altered: usize,
    /// Of these, results that can be read again: a path to exactly their content replaced them.
    pub unseen_reachable: usize,
    /// Altered results that were saved to no file.
    pub unseen_gone: usize,
    /// Attempts at the agent's own calls that failed.
    pub agent_failures: usize,
    /// Calls of the strategy's own that brought no answer.
    pub failed_calls: usize,
    /// Calls of the strategy's own that repeat one which failed.
    pub retried_calls: usize,
    /// Calls of the strategy's own after which nothing was gained.
    pub wasted_calls: usize,
}

impl ContextPressure {
    /// The context pressure of this cell. Zones need a window: the reference and the floor have
    /// none.
    pub fn of(cell: &CellRecord) -> Self {
        let lines = cell.window.map(|window| window.lines(WarningFrom::AutoCompact));
        let prompts = cell.prompt_tokens.iter();
        let zones = prompts.filter_map(|prompt| Some(lines.as_ref()?.zone(*prompt)));
        let warned = zones.clone().filter(|zone| matches!(zone, Zone::Warning | Zone::Error));
        let all = cell.model_calls.iter();
        let own: Vec<&ModelCall> = all.filter(|call| is_on_the_bill(call.purpose)).collect();
        let answered = own.iter().filter(|call| call.failure.is_none());
        let asked: BTreeSet<usize> = answered.map(|call| call.call).collect();
        let events = cell.compactions.iter();
        let paid = events.clone().filter(|event| asked.contains(&event.call));
        let mut calls: Vec<usize> = paid.clone().map(|event| event.call).collect();
        calls.dedup();
        let near = calls.windows(3).filter(|run| run.windows(2).all(|two| two[1] - two[0] < NEAR));
        let futile = paid.filter(|event| {
            let left = event.after.share_of(event.before);
            left.is_some_and(|share| share > FUTILE)
        });
        let failed = cell.model_calls.iter().filter(|call| call.failure.is_some());
        let retried = own.windows(2).filter(|pair| {
            pair[0].failure.is_some()
                && (pair[0].call, pair[0].purpose) == (pair[1].call, pair[1].purpose)
        });
        let freeing = events.clone().filter(|event| event.after < event.before);
        let freed: BTreeSet<usize> = freeing.map(|event| event.call).collect();
        // Notes are taken for a later call: what they gain is not seen at their own.
        let wasted = own
            .iter()
            .filter(|call| call.purpose != Purpose::Background && !freed.contains(&call.call));
        Self {
            warned_calls: warned.count(),
            auto_compact_calls: zones.clone().filter(|zone| *zone == Zone::AutoCompact).count(),
            blocking_calls: zones.filter(|zone| *zone == Zone::Blocking).count(),
            blocked_turns: cell.blocked_turns.len(),
            blocked_agents: cell.blocked_agents.len(),
            thrash: near.count(),
            retriggered: events.filter(|event| event.still_over).count(),
            next_call: calls.windows(2).filter(|pair| pair[1] - pair[0] == 1).count(),
            futile: futile.count(),
            unseen_altered: whole(cell.unseen.altered),
            unseen_reachable: whole(cell.unseen.reachable),
            unseen_gone: whole(cell.unseen.altered.saturating_sub(cell.unseen.saved)),
            agent_failures: failed.filter(|call| call.purpose == Purpose::Agent).count(),
            failed_calls: own.iter().filter(|call| call.failure.is_some()).count(),
            retried_calls: retried.count(),
            wasted_calls: wasted.count(),
        }
    }
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
