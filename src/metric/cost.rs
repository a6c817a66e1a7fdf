//! Cost: what was read from the provider's cache, written to it and neither, and what that costs
//! against full history.
//!
//! A cost is counted in *input-token equivalents*: what as many uncached input tokens would cost. It
//! needs no price, only what each class costs relative to input, which the cache scheme says. What
//! the agent itself wrote is the same under all strategies and left out of savings.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metric::calls::is_on_the_bill;
use crate::model::Purpose;
use crate::record::{CacheBreaks, CacheRecord, CellRecord};
use crate::units::{Tokens, Usage};

/// What a cell and the reference cost under one cache scheme, over the calls both reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SchemeCost {
    /// The scheme's name.
    pub scheme: String,
    /// Prompts of the agent's calls by class, and what the agent wrote where the reference says it.
    pub agent: Usage,
    /// The strategy's calls before a call.
    pub compaction: Usage,
    /// The strategy's calls beside the agent's work.
    pub background: Usage,
    /// The strategy's calls after a prompt was refused.
    pub recovery: Usage,
    /// The same calls of the agent under full history.
    pub reference: Usage,
    /// Calls of the agent that are compared.
    pub calls: usize,
    /// C, in thousandths of an input token: prompts of the agent, and the strategy's calls whole.
    pub cost: u64,
    /// C⁰, likewise.
    pub reference_cost: u64,
    /// What broke the cache, over all calls reached.
    pub breaks: BTreeMap<String, CacheBreaks>,
    /// Tokens that were not read though they stood in an earlier prompt just so.
    pub again: Tokens,
    /// The first call from which on the strategy has cost less than full history, to the end.
    pub break_even: Option<usize>,
}

impl SchemeCost {
    /// What a cell costs under each scheme that it and the reference were measured under.
    pub fn of(cell: &CellRecord, reference: &CellRecord) -> Vec<Self> {
        let pair = |own: &CacheRecord| {
            let same = |other: &&CacheRecord| other.scheme == own.scheme;
            let full = reference.prompt_cache.iter().find(same)?;
            Some(Self::under(cell, own, reference, full))
        };
        cell.prompt_cache.iter().filter_map(pair).collect()
    }

    fn under(
        cell: &CellRecord,
        own: &CacheRecord,
        reference: &CellRecord,
        full: &CacheRecord,
    ) -> Self {
        let reached = cell.prompt_tokens.len();
        let calls = reached.min(reference.prompt_tokens.len());
        // As for token savings: what was spent at the very call of a death is on the bill.
        let is_compared = |call: usize| call < calls || calls == reached;
        let mut cost = Self {
            scheme: own.scheme.clone(),
            agent: Usage::default(),
            compaction: Usage::default(),
            background: Usage::default(),
            recovery: Usage::default(),
            reference: Usage::default(),
            calls,
            cost: 0,
            reference_cost: 0,
            breaks: own.breaks.clone(),
            again: own.again,
            break_even: None,
        };
        // What each call adds, its own prompt and what the strategy asked at it.
        let mut spent = vec![0_u64; calls + 1];
        for (number, asked) in cell.model_calls.iter().enumerate() {
            if !is_on_the_bill(asked.purpose) || !is_compared(asked.call) {
                continue;
            }
            let usage = own.of_strategy(number, &asked.usage);
            match asked.purpose {
                Purpose::Compaction => cost.compaction += usage,
                Purpose::Background => cost.background += usage,
                Purpose::Recovery => cost.recovery += usage,
                Purpose::Agent | Purpose::Probe | Purpose::Judge => {}
            }
            spent[asked.call.min(calls)] += own.rates.cost(&usage);
        }
        let mut ahead = None;
        for (call, spent) in spent.iter().enumerate().take(calls) {
            let prompt = own.of_call(call, cell.prompt_tokens[call]);
            let other = full.of_call(call, reference.prompt_tokens[call]);
            cost.cost += own.rates.cost(&prompt) + spent;
            cost.reference_cost += full.rates.cost(&other);
            if cost.cost >= cost.reference_cost {
                ahead = None;
            } else if ahead.is_none() {
                ahead = Some(call);
            }
            let output = reference.output_tokens.get(call).copied();
            let output = output.unwrap_or_default();
            cost.agent += Usage { output, ..prompt };
            cost.reference += Usage { output, ..other };
        }
        cost.cost += spent[calls];
        cost.break_even = ahead.filter(|_| calls > 0 && cost.cost < cost.reference_cost);
        cost
    }

    /// Cost savings. Formula: `1 − C/C⁰`. Higher is better; below 0 the strategy costs more than it
    /// saves. Nothing where the reference sent nothing.
    pub fn share(&self) -> Option<f64> {
        let whole = self.reference_cost;
        (whole > 0).then(|| 1.0 - self.cost as f64 / whole as f64)
    }

    /// Share of the agent's prompts that was read from the cache. Higher is cheaper.
    pub fn read_share(&self) -> Option<f64> {
        self.agent.cache_read.share_of(self.agent.prompt())
    }

    /// Tokens that were cached at the call before and not read.
    pub fn broken(&self) -> Tokens {
        self.breaks.values().map(|breaks| breaks.tokens).sum()
    }

    /// All calls by class.
    pub fn total(&self) -> Usage {
        self.agent + self.compaction + self.background + self.recovery
    }
}
