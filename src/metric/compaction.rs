//! Compaction: what was applied, by which stage, and what it left.

use derive_more::AddAssign;

use super::prelude::*;
use crate::metric::clusters;
use crate::record::CompactionEvent;
use crate::stats::{Estimate, SampleSize, mean};

/// Patches of one stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, AddAssign, Serialize)]
pub struct StageTotal {
    /// Patches applied.
    pub patches: usize,
    /// Tokens of messages they freed, those that freed nothing counted as 0.
    pub freed: Tokens,
    /// Tokens they added, as what puts something back does.
    pub added: Tokens,
    /// Times the stage failed.
    pub failures: usize,
}

/// Clusters in which the strategy changed the context at all.
pub(super) fn fired(cells: &[&CellSummary]) -> PooledValue {
    let fired = clusters(cells, CellSummary::fired);
    PooledValue::Part(fired, clusters(cells, |_| true))
}

/// The work of each stage of a cell, by its name.
pub fn by_stage(cell: &CellRecord) -> BTreeMap<String, StageTotal> {
    let mut stages: BTreeMap<String, StageTotal> = BTreeMap::new();
    for event in &cell.compactions {
        let stage = stages.entry(event.stage.clone()).or_default();
        stage.patches += 1;
        stage.freed += event.before - event.after;
        stage.added += event.after - event.before;
    }
    for event in &cell.failures {
        stages.entry(event.stage.clone()).or_default().failures += 1;
    }
    stages
}

/// The share of the effective window that compactions left free.
///
/// Formula: mean of 1 − (fixed + after)/effective over the patches that freed something; `None`
/// where none did, or where there is no window. Below 0 where more was left than fits. Source: the
/// counter.
pub fn headroom(cell: &CellRecord) -> Option<f64> {
    let effective = cell.window?.effective();
    mean_of_freeing(cell, |event| {
        Some(1.0 - (cell.fixed_tokens + event.after).share_of(effective)?)
    })
}

/// The share of the messages that compactions left.
///
/// Formula: mean of after/before over the patches that freed something; `None` where none did.
/// Neither way is better: a small share saves more and keeps less. Source: the counter.
pub fn retained(cell: &CellRecord) -> Option<f64> {
    mean_of_freeing(cell, |event| event.after.share_of(event.before))
}

/// The least and the most of the effective window that was in use when the strategy fired.
///
/// Formula: (fixed + before)/effective at each call at which something was freed; the patches of a call are
/// one compaction. `None` where nothing was freed, or where there is no window. Source: the counter.
pub fn fired_at(cell: &CellRecord) -> Option<(f64, f64)> {
    let effective = cell.window?.effective();
    let mut range = None;
    for patches in cell.compactions.chunk_by(|one, next| one.call == next.call) {
        if patches.iter().any(|patch| patch.after < patch.before) {
            let share = (cell.fixed_tokens + patches[0].before).share_of(effective)?;
            let (least, most) = range.unwrap_or((share, share));
            range = Some((share.min(least), share.max(most)));
        }
    }
    range
}

/// The range of all sessions.
pub(super) fn fired_at_pooled(cells: &[&CellSummary]) -> Option<PooledValue> {
    let ranges = cells.iter().filter_map(|cell| cell.fired_at);
    let (least, most) =
        ranges.reduce(|(least, most), (low, high)| (low.min(least), high.max(most)))?;
    let fired = clusters(cells, |cell| cell.fired_at.is_some());
    let n = SampleSize { sessions: fired, items: fired };
    let least = Estimate::with_error(least, None, n);
    Some(PooledValue::between(least, most, 0.0))
}

/// The mean over the patches that freed something.
fn mean_of_freeing(cell: &CellRecord, of: impl Fn(&CompactionEvent) -> Option<f64>) -> Option<f64> {
    let freeing = cell.compactions.iter().filter(|event| event.after < event.before);
    mean(&freeing.filter_map(of).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Window;

    #[test]
    fn headroom_is_what_is_free_behind_what_freed_something() {
        let none: [u32; 0] = [];
        let record = serde_json::json!({
            "session": "", "strategy": "", "repeat": 0, "arm": "strategy",
            "end": { "end": "completed" }, "planned_calls": 1, "reached_calls": 1,
            "window": null, "fixed_tokens": 100, "prompt_tokens": [1, 20, 300], "saved_texts": 0,
            "action_support": {
                "wanted": none, "present": none,
                "compacted_wanted": none, "compacted_present": none,
            },
        });
        let mut cell: CellRecord = serde_json::from_value(record).unwrap();
        let event = |before, after| CompactionEvent {
            call: 0,
            stage: "s".to_owned(),
            reason: String::new(),
            before: Tokens(before),
            after: Tokens(after),
            still_over: false,
            prepared_at: None,
        };
        cell.compactions = vec![event(900, 300), event(900, 900), event(900, 500)];
        assert_eq!(headroom(&cell), None, "without a window");
        cell.window = Some(Window { max_output: Tokens(200), ..Window::new(Tokens(1_000)) });
        // Of 800: 1 − 400/800 and 1 − 600/800.
        let found = headroom(&cell).unwrap();
        assert!((found - 0.375).abs() < 1e-12, "{found}");
        assert_eq!(crate::metric::tokens::area(&cell), Tokens(321));
    }
}
