//! Re-reads: what an agent would have to fetch again, and what savings are left after it did.
//!
//! An estimate: a replay cannot see that an agent reads something again, only that a call needed
//! what its prompt no longer held.

use super::prelude::*;
use crate::metric::tokens::Savings;

/// The cost of reading missing texts again, over the calls compared with the reference.
///
/// Every missing target is read again once. A target is the newest tool result that held what the
/// call needed; what no tool ever brought costs a call that brings nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Rereads {
    /// Calls of the agent that read something again.
    pub calls: usize,
    /// Their cost.
    ///
    /// Formula: Σ over targets of the prompt at that call + the result × the calls from there to the
    /// next compaction, or to the last call compared. Tokens; lower is better.
    pub tokens: Tokens,
}

impl Rereads {
    /// The re-reads of this cell; `None` where none were recorded. `savings` says which calls
    /// count.
    pub fn of(cell: &CellRecord, savings: &Savings) -> Option<Self> {
        let mut rereads = Self::default();
        let missed = cell.rereads.as_ref()?;
        let freeing = cell.compactions.iter().filter(|event| event.after < event.before);
        let freeing: BTreeSet<usize> = freeing.map(|event| event.call).collect();
        for reread in missed.iter().filter(|reread| reread.call < savings.calls) {
            let next = freeing.range(reread.call + 1..).next().copied();
            let end = next.unwrap_or(savings.calls).min(savings.calls);
            let carried = end.saturating_sub(reread.call) as u64;
            let prompt = cell.prompt_tokens.get(reread.call).copied();
            rereads.calls += 1;
            rereads.tokens += prompt.unwrap_or_default();
            rereads.tokens += reread.tokens.times(carried);
        }
        Some(rereads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::metric;
    use crate::record::{CompactionEvent, Reread};

    fn cell(rereads: &[(usize, u64)], compactions: &[(usize, u64)]) -> CellRecord {
        let none: [u32; 0] = [];
        let record = serde_json::json!({
            "session": "", "strategy": "", "repeat": 0, "arm": "strategy",
            "end": { "end": "completed" }, "planned_calls": 4, "reached_calls": 4,
            "window": null, "fixed_tokens": 0, "prompt_tokens": [100, 100, 200, 300],
            "saved_texts": 0,
            "action_support": {
                "wanted": none, "present": none,
                "compacted_wanted": none, "compacted_present": none,
            },
        });
        let mut cell: CellRecord = serde_json::from_value(record).unwrap();
        let reread = |&(call, tokens)| Reread { call, message: Some(1), tokens: Tokens(tokens) };
        cell.rereads = Some(rereads.iter().map(reread).collect());
        let event = |&(call, freed)| CompactionEvent {
            call,
            stage: "clear".to_owned(),
            reason: String::new(),
            before: Tokens(500),
            after: Tokens(500 - freed),
            still_over: false,
            prepared_at: None,
        };
        cell.compactions = compactions.iter().map(event).collect();
        cell
    }

    #[track_caller]
    fn check(rereads: &[(usize, u64)], compactions: &[(usize, u64)], calls: usize, tokens: u64) {
        let cell = cell(rereads, compactions);
        let mut full = cell.clone();
        full.prompt_tokens = vec![Tokens(1_000); 4];
        let summary = CellSummary::of(&cell, Some(&full));
        let found = summary.rereads.unwrap();
        assert_eq!((found.calls, found.tokens), (calls, Tokens(tokens)));
        let metric = metric("net_savings").unwrap();
        let Some(PooledValue::Estimate(net)) = metric.over(&[&summary], Anchors::default()) else {
            panic!("no estimate");
        };
        let by_hand = 1.0 - (700.0 + tokens as f64) / 4_000.0;
        assert!((net.point_estimate - by_hand).abs() < 1e-12, "{net:?} {by_hand}");
    }

    #[test]
    fn a_reread_costs_its_prompt_and_its_result_until_the_next_compaction() {
        check(&[], &[(1, 50)], 0, 0);
        // Missed at the second call, carried to the end: three calls.
        check(&[(1, 10)], &[(1, 50)], 1, 100 + 3 * 10);
        // The compaction before the fourth call takes it away again.
        check(&[(1, 10)], &[(1, 50), (3, 50)], 1, 100 + 2 * 10);
        // One that freed nothing takes nothing away.
        check(&[(1, 10)], &[(3, 0)], 1, 100 + 3 * 10);
        check(&[(1, 10), (2, 0)], &[(2, 50)], 2, 100 + 10 + 200);
    }

    #[test]
    fn where_nobody_looked_nothing_is_estimated() {
        let mut old = cell(&[], &[]);
        old.rereads = None;
        let savings = Savings::of(&old, &old).unwrap();
        assert_eq!(Rereads::of(&old, &savings), None);
    }
}
