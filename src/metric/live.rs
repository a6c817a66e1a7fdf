//! Running agents: what all of them were billed, how long they waited, and which trials have no bill.

use super::CellSummary;
use super::cost::SchemeCost;
use super::prelude::*;
use crate::record::{Arm, Manifest};
use crate::units::{Usd, many};

/// The sums over all trials of a run in which agents ran.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveTotals {
    answers: usize,
    /// Answers without usage.
    unbilled: usize,
    /// The usage of the others, and of what the strategies asked their models.
    tokens: Tokens,
    /// Their cost; `None` where a price is unknown.
    dollars: Option<Usd>,
    /// Seconds in which agents waited, measured and modelled, of trials of which both are known.
    waited: Option<(f64, f64)>,
    /// Trials without an answered call.
    silent_trials: usize,
    /// Trials in which an answer has no usage.
    partial_trials: usize,
    /// Tasks without any bill.
    unbilled_tasks: usize,
    /// Answers to requests that were passed on as they came, by the reason.
    skipped: BTreeMap<String, u64>,
    /// Trials in a window that is too small for their strategy, by it, with the reason.
    no_room: BTreeMap<String, (usize, String)>,
}

impl LiveTotals {
    /// Adds up trials, whose metrics have the same order; `None` where no agent ran.
    pub fn of(
        manifest: &Manifest,
        cells: &[&CellRecord],
        summaries: &[CellSummary],
    ) -> Option<Self> {
        let mut sum = Self { dollars: Some(Usd(0)), ..Self::default() };
        let entries = manifest.entries();
        let mut tasks: BTreeMap<&str, bool> = BTreeMap::new();
        let trials = cells.iter().zip(summaries);
        for (cell, summary) in trials.filter(|(cell, _)| cell.arm == Arm::Strategy) {
            let Some(live) = &cell.live else { continue };
            sum.answers += live.calls;
            sum.unbilled += live.unbilled;
            sum.silent_trials += usize::from(live.calls == 0);
            sum.partial_trials += usize::from(live.unbilled > 0);
            *tasks.entry(&cell.session).or_default() |= !cell.prompt_cache.is_empty();
            for (why, count) in &live.skipped {
                *sum.skipped.entry(why.clone()).or_default() += count;
            }
            if let Some(why) = &live.no_room {
                let of = sum.no_room.entry(cell.strategy.clone());
                of.or_insert_with(|| (0, why.clone())).0 += 1;
            }
            sum.tokens += (live.billed + live.strategy).total();
            let usage = live.paid() + live.strategy;
            let entry = entries.get(cell.session.as_str());
            let price = entry.and_then(|entry| entry.price.as_ref());
            // Of calls to other models the sum does not say the price.
            let own = cell.model_calls.iter().all(|call| call.model.is_none());
            let paid = usage + summary.costs.first().map(SchemeCost::surcharge).unwrap_or_default();
            let more = price.filter(|_| own).and_then(|price| price.per_token.cost(&paid));
            sum.dollars = sum.dollars.zip(more).map(|(dollars, more)| dollars + more);
            // The model is of all conversations of a trial, and the measurement of one.
            if let (0, Some(measured), Some(modelled)) =
                (live.others, live.waited_ms, summary.waiting())
            {
                let waited = sum.waited.get_or_insert_default();
                waited.0 += measured as f64 / 1_000.0;
                waited.1 += modelled;
            }
        }
        sum.unbilled_tasks = tasks.values().filter(|is_billed| !**is_billed).count();
        (!tasks.is_empty()).then_some(sum)
    }

    /// Whether any answer said what it cost.
    pub fn is_billed(&self) -> bool {
        self.unbilled < self.answers
    }

    /// The cost of all answers: `billed $2.56 for 120 answers`.
    pub fn bill(&self) -> Option<String> {
        let answers = many(self.answers, "answer", "answers");
        let amount = match self.dollars {
            Some(dollars) => dollars.to_string(),
            None => format!("{} tokens", self.tokens.in_short()),
        };
        match self.unbilled {
            _ if self.answers == 0 => None,
            0 => Some(format!("billed {amount} for {answers}")),
            all if all == self.answers => {
                Some("no answer came with usage, so bills are modelled".to_owned())
            }
            some => {
                Some(format!("billed at least {amount}; {some} of {answers} came without usage"))
            }
        }
    }

    /// The trials without a bill, and how many tasks count in none for it.
    pub fn unbilled(&self) -> Option<String> {
        let trials = [
            (self.silent_trials, "no answered call"),
            (self.partial_trials, "answers without usage"),
        ];
        let some = trials.into_iter().filter(|(trials, _)| *trials > 0);
        let words = some.map(|(trials, what)| many(trials, "trial has ", "trials have ") + what);
        let trials: Vec<String> = words.collect();
        let tasks = match self.unbilled_tasks {
            0 => String::new(),
            some => format!("; {} in no bill", many(some, "task counts", "tasks count")),
        };
        (!trials.is_empty()).then(|| trials.join(", ") + &tasks)
    }

    /// Calls at which the strategy was not applied, and why.
    pub fn not_applied(&self) -> Option<String> {
        let (all, calls): (u64, _) = (self.skipped.values().sum(), self.answers);
        let each = self.skipped.iter();
        let words: Vec<String> = each.map(|(why, count)| format!("{why} ({count})")).collect();
        let reasons = words.join(", ");
        (all > 0)
            .then(|| format!("at {all} of {calls} calls the strategy was not applied: {reasons}"))
    }

    /// Strategies that the window left no room: their tasks and bills count, and their replays do not.
    pub fn no_room(&self) -> Option<String> {
        let each = self.no_room.iter().map(|(strategy, (trials, why))| {
            let trials = many(*trials, "trial", "trials");
            format!("{strategy} ({trials}): {why}")
        });
        let words: Vec<String> = each.collect();
        (!words.is_empty()).then(|| {
            let each = words.join("; ");
            format!("tasks and bills count; what a replay measures is not measurable under {each}")
        })
    }

    /// How long agents waited, as measured and as modelled.
    pub fn waited(&self) -> Option<String> {
        let (measured, modelled) = self.waited?;
        let measured = format!("{measured:.1} s as measured, the strategies' own time included");
        Some(format!("agents waited {measured}, and {modelled:.1} s as modelled"))
    }
}
