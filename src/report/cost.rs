//! The cost of a strategy over all its sessions, under one scheme of the provider's cache.

use crate::metric::cost::{AS_BILLED, BillBasis, CostByCall, ModelledTime, SchemeCost};
use crate::metric::{CellSummary, estimate, saved, total};
use crate::stats::Estimate;
use crate::units::{Tokens, Usd, median};

/// The cost of a strategy over all its sessions, under one bill.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyCost {
    /// Which costs are summed up.
    pub bill: BillBasis,
    /// The costs of its cells, added up; the scheme is `as billed` where sessions have different ones.
    pub sum: SchemeCost,
    /// `1 − ΣB/ΣB⁰`; its items are calls.
    pub savings: Option<Estimate>,
    /// The bill in dollars.
    pub dollars: Option<Usd>,
    /// The modelled seconds in which the agent waits, those of the background, and those that the agent waits
    /// for the background.
    pub seconds: [Option<f64>; 3],
    /// Share of the agent's prompts that is read; its items are calls.
    pub read_share: Option<Estimate>,
    /// `1 − ΣC/ΣC⁰` up to a quarter, half and three quarters of the calls.
    pub saved: [Option<Estimate>; 3],
    /// Cells.
    pub cells: usize,
    /// Cells in which the strategy ended up cheaper than full history.
    pub broke_even: usize,
    /// The call from which on it was, in the median of these cells.
    pub break_even_call: Option<u64>,
    /// The first, the median and the last call in the mean over cells, and the dearest of all, in whole
    /// input tokens; `None` where no cell says it.
    pub by_call: Option<[Tokens; 4]>,
}

impl StrategyCost {
    /// The costs of a strategy under each bill, the one of the comparison first.
    pub(super) fn all(cells: &[&CellSummary]) -> Vec<Self> {
        let bills = BillBasis::all(cells.iter().map(|cell| &*cell.costs)).into_iter();
        bills.map(|bill| Self::of(bill, cells)).collect()
    }

    fn of(bill: BillBasis, cells: &[&CellSummary]) -> Self {
        let costs = cells.iter().filter_map(|cell| SchemeCost::under_bill(&cell.costs, &bill));
        let costs: Vec<SchemeCost> = costs.cloned().collect();
        let mut break_even: Vec<u64> =
            costs.iter().filter_map(|cost| cost.break_even).map(|call| call as u64).collect();
        break_even.sort_unstable();
        let times = [ModelledTime::Waiting, ModelledTime::Background, ModelledTime::ForBackground];
        Self {
            savings: saved(cells, |cell| cell.spending(&bill)),
            dollars: total(cells, |cell| cell.bill(&bill)).map(Usd::of_dollars),
            seconds: times.map(|time| total(cells, |cell| cell.time(&bill, time))),
            read_share: estimate(cells, |cell| {
                let cost = SchemeCost::under_bill(&cell.costs, &bill)?;
                Some((cost.read_share()?, cost.calls))
            }),
            saved: [0, 1, 2]
                .map(|quarter| saved(cells, |cell| cell.spending_until(&bill, quarter))),
            sum: sum(&costs),
            cells: costs.len(),
            broke_even: break_even.len(),
            break_even_call: median(&break_even, u64::midpoint),
            by_call: by_call(&costs),
            bill,
        }
    }
}

/// Adds up classes, costs and broken caches.
fn sum(costs: &[SchemeCost]) -> SchemeCost {
    let scheme = match costs {
        [first, more @ ..] if more.iter().all(|cost| cost.scheme == first.scheme) => &first.scheme,
        _ => AS_BILLED,
    };
    let mut sum = SchemeCost { scheme: scheme.to_owned(), ..SchemeCost::default() };
    for cost in costs {
        sum.agent += cost.agent;
        sum.compaction += cost.compaction;
        sum.background += cost.background;
        sum.recovery += cost.recovery;
        sum.other_models += cost.other_models;
        sum.cost = sum.cost.saturating_add(cost.cost);
        sum.reference_cost = sum.reference_cost.saturating_add(cost.reference_cost);
        sum.resent += cost.resent;
        for (cause, more) in &cost.breaks {
            let total = sum.breaks.entry(cause.clone()).or_default();
            total.calls += more.calls;
            total.tokens += more.tokens;
        }
    }
    sum
}

/// The first, the median and the last call in the mean over cells, and the dearest of all.
fn by_call(costs: &[SchemeCost]) -> Option<[Tokens; 4]> {
    let calls: Vec<CostByCall> = costs.iter().filter_map(|cost| cost.by_call).collect();
    let dearest = calls.iter().map(|cell| cell.dearest).max()?;
    Some([
        mean(&calls, |cell| cell.first),
        mean(&calls, |cell| cell.median),
        mean(&calls, |cell| cell.last),
        Tokens(dearest.div_ceil(1_000)),
    ])
}

fn mean(cells: &[CostByCall], call: fn(&CostByCall) -> u64) -> Tokens {
    let sum = cells.iter().map(call).fold(0, u64::saturating_add);
    Tokens(sum.div_ceil(1_000 * cells.len() as u64))
}
