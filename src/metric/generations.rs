//! Generations: what each compaction of a cell freed, what it could not free, and when the next one
//! came.
//!
//! A generation is a call at which whole messages were taken out, or a summary took their place.
//! Stages that only clear results inside of messages before every call make none: they have no
//! cycle. The figures follow hermes-agent's scorecard of repeated compactions (share freed, the
//! floor under it, calls until the next one, verdict *stuck*).

use std::collections::btree_map::Entry;

use super::prelude::*;
use crate::record::{MessageKind, Portion};

/// The rule of the verdict, for people.
pub const STUCK_RULE: &str = "stuck: a compaction after which the prompt is no smaller, or that is followed by \
                              another without a new message between them";

/// One compaction of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Generation {
    /// At this call.
    pub call: usize,
    /// The prompt before it.
    pub before: Tokens,
    /// The prompt after it: the floor, of which nothing was freed.
    pub after: Tokens,
    /// Of the floor, system prompt and tools.
    pub fixed: Tokens,
    /// Of the floor, what it wrote in place of others.
    pub summary: Tokens,
    /// Calls until the next one; `None` for the last.
    pub until_next: Option<usize>,
    /// Whether its stage compacted again at this call, with no new message between.
    pub again: bool,
    /// The compaction event that began it.
    event: usize,
}

impl Generation {
    /// The share of the prompt that was freed; below 0 where it grew.
    pub fn freed(&self) -> Option<f64> {
        Some(1.0 - self.after.share_of(self.before)?)
    }

    /// Whether it brought nothing: [`STUCK_RULE`].
    pub fn is_stuck(&self) -> bool {
        self.again || self.freed().is_some_and(|freed| freed <= 0.0)
    }
}

/// The generations of a cell, in order.
pub fn generations(cell: &CellRecord) -> Vec<Generation> {
    let mut found: BTreeMap<usize, Generation> = BTreeMap::new();
    for change in &cell.changes {
        let Some(event) = cell.compactions.get(change.event) else {
            continue;
        };
        let written = change.put_in.get(&MessageKind::Summary);
        let begins = written.is_some() || messages(&change.out) > messages(&change.put_in);
        let summary = written.map_or(Tokens::ZERO, |portion| portion.tokens);
        let after = cell.fixed_tokens + event.after;
        match found.entry(event.call) {
            // Later stages of the same call belong to it.
            Entry::Occupied(mut known) => {
                let generation = known.get_mut();
                generation.after = after;
                generation.summary += summary;
                let first = cell.compactions.get(generation.event);
                generation.again |= first.is_some_and(|first| first.stage == event.stage);
            }
            Entry::Vacant(none) if begins => {
                none.insert(Generation {
                    call: event.call,
                    before: cell.fixed_tokens + event.before,
                    after,
                    fixed: cell.fixed_tokens,
                    summary,
                    until_next: None,
                    again: false,
                    event: change.event,
                });
            }
            Entry::Vacant(_) => {}
        }
    }
    let mut generations: Vec<Generation> = found.into_values().collect();
    for at in 1..generations.len() {
        generations[at - 1].until_next = Some(generations[at].call - generations[at - 1].call);
    }
    generations
}

/// The messages on one side of a change.
fn messages(side: &BTreeMap<MessageKind, Portion>) -> u64 {
    side.values().map(|portion| portion.messages).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CompactionChange, CompactionEvent};

    /// Compactions as call, size before and after, and messages taken out and put in.
    fn check(events: &[(usize, u64, u64, u64, u64)], expected: &[(usize, Option<usize>, bool)]) {
        let none: [u32; 0] = [];
        let record = serde_json::json!({
            "session": "", "strategy": "", "repeat": 0, "arm": "strategy",
            "end": { "end": "completed" }, "planned_calls": 1, "reached_calls": 1,
            "window": null, "fixed_tokens": 100, "prompt_tokens": [1], "saved_texts": 0,
            "action_support": {
                "wanted": none, "present": none,
                "compacted_wanted": none, "compacted_present": none,
            },
        });
        let mut cell: CellRecord = serde_json::from_value(record).unwrap();
        for (event, (call, before, after, out, put_in)) in events.iter().enumerate() {
            cell.compactions.push(CompactionEvent {
                call: *call,
                stage: if *put_in == 0 { "t" } else { "s" }.to_owned(),
                reason: String::new(),
                before: Tokens(*before),
                after: Tokens(*after),
                still_over: false,
                prepared_at: None,
            });
            let portion = |messages| {
                let portion = Portion { messages, tokens: Tokens(1) };
                BTreeMap::from([(MessageKind::Results, portion)])
            };
            cell.changes.push(CompactionChange {
                event,
                out: portion(*out),
                put_in: portion(*put_in),
                ..CompactionChange::default()
            });
        }
        let found: Vec<_> =
            generations(&cell).iter().map(|it| (it.call, it.until_next, it.is_stuck())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_generation_takes_messages_out_and_is_stuck_where_that_brings_nothing() {
        check(
            &[
                // Cleared in place: no generation.
                (3, 900, 800, 1, 1),
                (5, 900, 300, 4, 1),
                // The same call: one generation.
                (5, 300, 200, 2, 0),
                (20, 900, 850, 2, 1),
                // Nothing freed: the prompt is what it was.
                (30, 900, 900, 2, 1),
                // Twice in a row by one stage.
                (31, 900, 400, 2, 1),
                (31, 400, 200, 2, 1),
            ],
            &[(5, Some(15), false), (20, Some(10), false), (30, Some(1), true), (31, None, true)],
        );
        check(&[], &[]);
    }
}
