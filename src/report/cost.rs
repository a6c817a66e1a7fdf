//! What a strategy costs over all its sessions, under one scheme of the provider's cache.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metric::cost::{AS_BILLED, Bill, CostByCall, SchemeCost};
use crate::model::price::Placement;
use crate::record::CacheBreaks;
use crate::stats::Estimate;
use crate::units::{Tokens, Usage, median};

/// What a strategy costs over all its sessions, under one bill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmCost {
    /// Which costs are summed up.
    pub bill: Bill,
    /// The scheme's name; `as billed` where sessions have different ones.
    pub scheme: String,
    /// `1 − C/C⁰`; its items are calls.
    pub savings: Option<Estimate>,
    /// Share of the agent's prompts that is read; its items are calls.
    pub read_share: Option<Estimate>,
    /// All calls by class: the agent's and the strategy's.
    pub total: Usage,
    /// Of these, the strategy's.
    pub strategy: Usage,
    /// Of these, before a call.
    pub compaction: Usage,
    /// Of these, beside the agent's work.
    pub background: Usage,
    /// Of these, after a prompt was refused.
    pub recovery: Usage,
    /// Of these, those to another model, whatever for.
    pub elsewhere: Usage,
    /// C, in whole input tokens.
    pub cost: Tokens,
    /// C⁰, likewise.
    pub reference_cost: Tokens,
    /// What broke the cache.
    pub breaks: BTreeMap<String, CacheBreaks>,
    /// Tokens processed again though they stood in an earlier prompt just so.
    pub again: Tokens,
    /// Cells in which the strategy ended up cheaper than full history.
    pub broke_even: usize,
    /// Cells.
    pub cells: usize,
    /// The call from which on it was, in the median of these cells.
    pub break_even_call: Option<u64>,
    /// What single calls cost; nothing where no cell says it.
    pub by_call: Option<ArmCostByCall>,
    /// `1 − C/C⁰` up to a quarter, half and three quarters of the calls.
    pub saved: [Option<Estimate>; 3],
}

/// What single calls of a strategy cost over all its cells, in whole input tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ArmCostByCall {
    /// The first call, in the mean over cells.
    pub first: Tokens,
    /// The median call, in the mean over cells.
    pub median: Tokens,
    /// The last call, in the mean over cells.
    pub last: Tokens,
    /// The dearest call of all.
    pub dearest: Tokens,
}

impl ArmCostByCall {
    fn of(cells: &[SchemeCost]) -> Option<Self> {
        let cells: Vec<CostByCall> = cells.iter().filter_map(|cell| cell.by_call).collect();
        let count = u64::try_from(cells.len()).ok()?;
        let mean = |of: fn(&CostByCall) -> u64| {
            let sum = cells.iter().map(of).fold(0, u64::saturating_add);
            Tokens(sum.div_ceil(1_000 * count))
        };
        let dearest = cells.iter().map(|cell| cell.dearest).max()?;
        Some(Self {
            first: mean(|cell| cell.first),
            median: mean(|cell| cell.median),
            last: mean(|cell| cell.last),
            dearest: Tokens(dearest.div_ceil(1_000)),
        })
    }
}

impl ArmCost {
    /// Sums cells up; what needs an interval is left for the caller.
    pub fn of(bill: Bill, cells: &[SchemeCost]) -> Self {
        let mut breaks: BTreeMap<String, CacheBreaks> = BTreeMap::new();
        for (cause, more) in cells.iter().flat_map(|cell| &cell.breaks) {
            let total = breaks.entry(cause.clone()).or_default();
            total.calls += more.calls;
            total.tokens += more.tokens;
        }
        let evens = cells.iter().filter_map(|cell| cell.break_even);
        let mut evens: Vec<u64> = evens.map(|call| call as u64).collect();
        evens.sort_unstable();
        let sum = |usage: fn(&SchemeCost) -> Usage| {
            let usages = cells.iter().map(usage);
            usages.fold(Usage::default(), |sum, more| sum + more)
        };
        let thousandths = |of: fn(&SchemeCost) -> u64| {
            let sum = cells.iter().map(of).fold(0, u64::saturating_add);
            Tokens(sum.div_ceil(1_000))
        };
        let mut schemes = cells.iter().map(|cell| &cell.scheme);
        let first = schemes.next();
        let scheme = first.filter(|first| schemes.all(|scheme| scheme == *first));
        let scheme = scheme.map_or(AS_BILLED, String::as_str).to_owned();
        Self {
            bill,
            scheme,
            savings: None,
            read_share: None,
            total: sum(SchemeCost::total),
            strategy: sum(|cell| {
                cell.compaction + cell.background + cell.recovery + cell.elsewhere
            }),
            compaction: sum(|cell| cell.compaction),
            background: sum(|cell| cell.background),
            recovery: sum(|cell| cell.recovery),
            elsewhere: sum(|cell| cell.elsewhere),
            cost: thousandths(|cell| cell.cost),
            reference_cost: thousandths(|cell| cell.reference_cost),
            breaks,
            again: cells.iter().map(|cell| cell.again).sum(),
            broke_even: evens.len(),
            cells: cells.len(),
            break_even_call: median(&evens, u64::midpoint),
            by_call: ArmCostByCall::of(cells),
            saved: [None; 3],
        }
    }

    /// Cost savings over all sessions together, so that long sessions weigh more. Formula:
    /// `1 − ΣC/ΣC⁰`; nothing where the reference cost nothing.
    pub fn savings_of_totals(&self) -> Option<f64> {
        Some(1.0 - self.cost.share_of(self.reference_cost)?)
    }

    /// The cost under one placement, among those of an arm. Where no cell names an edge, it is the usual.
    pub fn placed(costs: &[Self], placement: Placement) -> Option<&Self> {
        let of = |placement| costs.iter().find(|cost| cost.bill == Bill::Own(placement));
        of(placement).or_else(|| of(Placement::Usual))
    }

    /// Tokens that were cached at the call before and not read.
    pub fn broken(&self) -> Tokens {
        self.breaks.values().map(|breaks| breaks.tokens).sum()
    }
}
