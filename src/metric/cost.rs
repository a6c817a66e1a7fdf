//! Cost: the tokens read from the provider's cache, written to it and neither, and their cost
//! against full history.
//!
//! A cost is counted in *input-token equivalents*: what as many uncached input tokens would cost. It
//! needs no price, only what each class costs relative to input, which the cache scheme says. What
//! the agent itself wrote is the same under all strategies, and a part of the bill that is paid.

use super::prelude::*;
use crate::metric::calls::is_on_the_bill;
use crate::record::words::{PerToken, Placement};
use crate::record::{BILLED, CacheBreaks, CacheRecord};
use crate::units::{Usage, Usd, median};

mod billed;
mod paid;
mod prepared;
mod simulated;
mod totals;

pub use billed::{BilledTokens, Costs, SessionPrices, TokenClasses};
pub use paid::PaidTokens;
pub use prepared::PreparedWork;
pub use simulated::{CostRatio, SimulatedCost};
pub(crate) use totals::ModelledTime;
pub(super) use totals::{broke_even, under_first_bill};

/// The costs of a cell and of the reference under one cache scheme, over the calls both reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SchemeCost {
    /// The scheme's name.
    pub scheme: String,
    /// Where the client puts its breakpoints.
    pub placement: Placement,
    /// Prompts of the agent's calls by class, and what the agent wrote where the reference says it.
    pub agent: Usage,
    /// The strategy's calls before a call.
    pub compaction: Usage,
    /// The strategy's calls in the background of the agent's work.
    pub background: Usage,
    /// The strategy's calls after a prompt was refused.
    pub recovery: Usage,
    /// The strategy's calls to another model, for any purpose; in none of the above.
    #[serde(rename = "elsewhere")]
    pub other_models: Usage,
    /// Their cost, in thousandths of an input token of the agent's model; `None` where a price is
    /// unknown.
    #[serde(rename = "elsewhere_cost")]
    pub other_models_cost: Option<u64>,
    /// The same calls of the agent under full history.
    pub reference: Usage,
    /// Calls of the agent that are compared.
    pub calls: usize,
    /// All calls of the agent under full history, those behind a death too.
    #[serde(skip)]
    pub whole_reference: Usage,
    /// How many they are.
    #[serde(skip)]
    pub reference_calls: usize,
    /// All of these at the usual price of the session's model.
    #[serde(skip)]
    pub paid: PaidTokens,
    /// C, in thousandths of an input token: the calls of the agent and of the strategy, answers included.
    pub cost: u64,
    /// C⁰, likewise.
    pub reference_cost: u64,
    /// The cache breaks by cause, over all calls reached.
    pub breaks: BTreeMap<String, CacheBreaks>,
    /// Tokens that were in an earlier prompt verbatim and were still not read.
    #[serde(rename = "again")]
    pub resent: Tokens,
    /// The first call from which on the strategy has cost less than full history, to the end.
    pub break_even: Option<usize>,
    /// The same by call; `None` where none is compared, or a price of another model is unknown.
    pub by_call: Option<CostByCall>,
    /// The tokens that C and C⁰ are computed from; in sums over cells none.
    #[serde(skip)]
    pub billed: BilledTokens,
    /// Compactions that were requested in the background, for their waiting time; empty in sums over cells.
    #[serde(skip)]
    pub prepared: Vec<PreparedWork>,
    /// The prices that they are computed at.
    #[serde(skip)]
    pub prices: SessionPrices,
}

/// The scheme's name where sessions were billed by different ones.
pub const AS_BILLED: &str = "as billed";

/// A question about the costs of many cells, whose sessions may have been billed by different schemes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BillBasis {
    /// By the scheme that each session was billed with, under the placement of the run.
    Shown,
    /// By the same scheme, under this placement. A strategy that names no edge costs as usual.
    Own(Placement),
    /// By one scheme for all sessions, with the usual breakpoints.
    Fixed(String),
}

impl BillBasis {
    /// The bills that cells with these costs can answer, in the order of reports.
    pub fn all<'a>(cells: impl Iterator<Item = &'a [SchemeCost]>) -> Vec<Self> {
        let (mut fixed, mut placements) = (BTreeSet::new(), BTreeSet::new());
        for costs in cells {
            let simulated = costs.first().is_some_and(|cost| !cost.is_billed());
            for cost in costs {
                if simulated || cost.is_billed() {
                    placements.insert(cost.placement);
                }
                if !cost.is_billed() {
                    // The scheme `none` comes first.
                    fixed.insert((cost.scheme != "none", &cost.scheme));
                }
            }
        }
        let shown = (!placements.is_empty()).then_some(Self::Shown);
        let own = placements.into_iter().map(Self::Own);
        let others = fixed.into_iter().map(|(_, scheme)| Self::Fixed(scheme.clone()));
        shown.into_iter().chain(own).chain(others).collect()
    }
}

/// The costs of single calls of a cell in thousandths of an input token. The calls of the strategy are
/// part of the call of the agent at which they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CostByCall {
    /// The first call.
    pub first: u64,
    /// The one with as many dearer as cheaper ones; of two in the middle, their mean, rounded down.
    pub median: u64,
    /// The last that is compared.
    pub last: u64,
    /// The dearest.
    pub dearest: u64,
    /// C and C⁰ up to a quarter, half and three quarters of the calls, each rounded up to a whole call.
    pub quarters: [(u64, u64); 3],
}

impl CostByCall {
    /// From the costs of each call and of the same calls under full history.
    fn of(own: &[u64], reference: &[u64]) -> Option<Self> {
        let mut ordered = own.to_vec();
        ordered.sort_unstable();
        Some(Self {
            first: *own.first()?,
            median: median(&ordered, u64::midpoint)?,
            last: *own.last()?,
            dearest: *ordered.last()?,
            quarters: [1, 2, 3].map(|quarter| {
                let calls = (own.len() * quarter).div_ceil(4);
                (sum_until(own, calls), sum_until(reference, calls))
            }),
        })
    }
}

impl SchemeCost {
    /// The costs of a cell under each scheme that it and the reference were measured under. The scheme
    /// that the session was billed with comes first.
    pub fn of(cell: &CellRecord, reference: &CellRecord) -> Vec<Self> {
        let costs = cell.prompt_cache.iter().filter_map(|own| {
            let full = reference.cache_under(&own.scheme, own.placement)?;
            let mut cost = Self::under(cell, own, reference, full);
            if cost.is_billed() {
                cost = cost.with_bill(cell, reference);
            }
            Some(cost)
        });
        costs.collect()
    }

    /// The cost under this bill, among those of one cell.
    pub fn under_bill<'a>(costs: &'a [Self], bill: &BillBasis) -> Option<&'a Self> {
        let (scheme, placement) = match bill {
            BillBasis::Shown => return costs.first(),
            BillBasis::Own(placement) => {
                let first = costs.first()?;
                if first.is_billed() && *placement != Placement::Usual {
                    return None;
                }
                (&first.scheme, *placement)
            }
            BillBasis::Fixed(scheme) => (scheme, Placement::Usual),
        };
        let mut own = costs.iter().filter(|cost| cost.scheme == *scheme);
        let exact = own.clone().find(|cost| cost.placement == placement);
        exact.or_else(|| own.find(|cost| cost.placement == Placement::Usual))
    }

    fn under(
        cell: &CellRecord,
        own: &CacheRecord,
        reference: &CellRecord,
        full: &CacheRecord,
    ) -> Self {
        let reached = cell.prompt_tokens.len();
        let calls = reached.min(reference.prompt_tokens.len());
        // As for tokens saved: calls of the strategy at the call of a death are on the bill.
        let all_compared = calls == reached || own.scheme == BILLED;
        let mut cost = Self {
            scheme: own.scheme.clone(),
            placement: own.placement,
            calls,
            reference_calls: reference.prompt_tokens.len(),
            breaks: own.breaks.clone(),
            resent: own.resent,
            prices: SessionPrices {
                scheme: own.scheme.clone(),
                rates: own.rates,
                call_prices: own.call_prices.clone(),
                other_models: BTreeMap::new(),
            },
            ..Self::default()
        };
        // The background's requests and the agent's calls, by call.
        let mut background: BTreeMap<usize, (usize, Usage)> = BTreeMap::new();
        let mut by_call = Vec::with_capacity(calls);
        let mut other_models: BTreeMap<String, Usage> = BTreeMap::new();
        // The cost of the calls that the strategy made at each call of the agent.
        let mut spent = vec![0_u64; calls + 1];
        for (number, asked) in cell.model_calls.iter().enumerate() {
            if !(is_on_the_bill(asked.purpose) && (all_compared || asked.call < calls)) {
                continue;
            }
            if asked.purpose == Purpose::Background {
                background.entry(asked.call).or_default().0 += 1;
            }
            let more = if let Some(price) = own.other_models.get(&number) {
                let name = asked.model.clone().unwrap_or_default();
                let paid = price.map_or(asked.usage, |price| price.of_call(asked.usage));
                *other_models.entry(name.clone()).or_default() += paid;
                cost.prices.other_models.insert(name, *price);
                cost.other_models += asked.usage;
                price.map_or(0, |price| price.cost(&paid))
            } else {
                let usage = own.of_strategy(number, &asked.usage);
                let paid = own.at_usual_price(asked.call, usage);
                cost.paid.strategy += paid;
                match asked.purpose {
                    Purpose::Compaction => cost.compaction += usage,
                    Purpose::Background => {
                        cost.background += usage;
                        background.entry(asked.call).or_default().1 += usage;
                    }
                    Purpose::Recovery => cost.recovery += usage,
                    Purpose::Agent | Purpose::Probe | Purpose::Qualification | Purpose::Judge => {}
                }
                own.rates.cost(&paid)
            };
            add(&mut spent[asked.call.min(calls)], more);
        }
        let (mut ahead, mut sum, mut other_sum) = (None, 0, 0);
        let (mut own_costs, mut other_costs) = (Vec::new(), Vec::new());
        for (call, prompt) in reference.prompt_tokens.iter().enumerate() {
            let output = reference.output_tokens.get(call).copied().unwrap_or_default();
            let mut other = full.of_call(call, *prompt);
            other.output = output;
            let other_paid = full.at_usual_price(call, other);
            cost.whole_reference += other;
            cost.paid.whole_reference += other_paid;
            if call >= calls {
                continue;
            }
            let mut answered = own.of_call(call, cell.prompt_tokens[call]);
            answered.output = output;
            let paid = own.at_usual_price(call, answered);
            let own_cost = own.rates.cost(&paid).saturating_add(spent[call]);
            let other_cost = full.rates.cost(&other_paid);
            own_costs.push(own_cost);
            other_costs.push(other_cost);
            add(&mut sum, own_cost);
            add(&mut other_sum, other_cost);
            if sum >= other_sum {
                ahead = None;
            } else if ahead.is_none() {
                ahead = Some(call);
            }
            by_call.push(answered);
            cost.agent += answered;
            cost.reference += other;
            cost.paid.agent += paid;
            cost.paid.reference += other_paid;
        }
        if let Some(last) = own_costs.last_mut() {
            add(last, spent[calls]);
        }
        let prepared = cell.compactions.iter().filter_map(|event| {
            let from = event.prepared_at?;
            // Of two that were asked for at one call, the first waits for both.
            let (requests, asked) = background.remove(&from)?;
            let meanwhile = by_call.get(from..event.call)?;
            let (calls, meanwhile) = (meanwhile.len(), meanwhile.iter().copied().sum());
            Some(PreparedWork { requests, asked, calls, meanwhile })
        });
        cost.prepared = prepared.collect();
        let others = other_models.into_iter().map(|(name, usage)| (name, usage.into()));
        cost.billed.other_models = others.collect();
        cost.add_up();
        if cost.other_models_cost.is_some() {
            cost.by_call = CostByCall::of(&own_costs, &other_costs);
            cost.break_even = ahead.filter(|_| cost.cost < cost.reference_cost);
        }
        cost
    }

    /// Adds up the costs of all classes.
    fn add_up(&mut self) {
        self.billed.own = self.paid.own().into();
        self.billed.reference = self.paid.reference.into();
        let costs = self.billed.costs(&self.prices);
        (self.cost, self.reference_cost) = (costs.own, costs.reference);
        self.other_models_cost = costs.other_models;
    }

    /// The same with the usage that the provider billed: of all calls, for an agent may make more or fewer than the
    /// reference. A reference without a bill is not compared with. What long prompts cost more is as replayed.
    fn with_bill(self, cell: &CellRecord, reference: &CellRecord) -> Self {
        let [own, full] = [cell, reference].map(|cell| cell.live.clone().unwrap_or_default());
        let apart = self.background + self.recovery + self.other_models;
        let compaction = own.strategy - apart;
        let asked = self.background + self.recovery;
        let reference = full.paid() + (self.paid.whole_reference - self.whole_reference);
        let paid = PaidTokens {
            agent: own.paid() + (self.paid.agent - self.agent),
            strategy: compaction + asked + (self.paid.strategy - self.compaction - asked),
            reference,
            whole_reference: reference,
        };
        let mut cost = Self {
            agent: own.paid(),
            compaction,
            calls: own.calls,
            reference: full.paid(),
            whole_reference: full.paid(),
            paid,
            reference_calls: full.calls,
            break_even: None,
            by_call: None,
            prepared: Vec::new(),
            ..self
        };
        cost.add_up();
        if !own.is_billed() {
            cost.other_models_cost = None;
        }
        cost
    }

    /// Whether it is the bill itself, and not a model of it.
    pub fn is_billed(&self) -> bool {
        self.scheme == BILLED
    }

    /// C and C⁰.
    pub fn costs(&self) -> Costs {
        Costs {
            own: self.cost,
            reference: self.reference_cost,
            other_models: self.other_models_cost,
        }
    }

    /// Cost savings. Formula: `1 − C/C⁰`. Higher is better; below 0 the strategy costs more than it
    /// saves. `None` where the reference sent nothing, or a price of another model is unknown.
    pub fn share(&self) -> Option<f64> {
        self.costs().savings()
    }

    /// Share of the agent's prompts that was read from the cache. Higher is cheaper.
    pub fn read_share(&self) -> Option<f64> {
        self.agent.cache_read.share_of(self.agent.prompt())
    }

    /// Whether less of the agent's prompts was read than of the reference's.
    pub(crate) fn reads_less(&self) -> bool {
        let reference = self.reference.cache_read.share_of(self.reference.prompt());
        self.read_share() < reference
    }

    /// Tokens that were cached at the call before and not read.
    pub fn broken(&self) -> Tokens {
        self.breaks.values().map(|breaks| breaks.tokens).sum()
    }

    /// All calls by class.
    pub fn total(&self) -> Usage {
        self.agent + self.of_strategy()
    }

    /// The strategy's calls by class.
    pub(crate) fn of_strategy(&self) -> Usage {
        self.compaction + self.background + self.recovery + self.other_models
    }

    /// The whole cost at the prices of the agent's model; `None` where one is unknown.
    pub fn dollars(&self, prices: &PerToken) -> Option<Usd> {
        let own = prices.cost(&self.paid.own())?;
        match self.other_models_cost? {
            0 => Some(own),
            thousandths => {
                Some(own + Usd(prices.input?.0.saturating_mul(thousandths).div_ceil(1_000)))
            }
        }
    }
}

fn sum_until(costs: &[u64], calls: usize) -> u64 {
    costs.iter().take(calls).fold(0, |sum: u64, more| sum.saturating_add(*more))
}

/// Adds a cost. A server may claim any usage: what is too large to count stays the largest number.
fn add(sum: &mut u64, cost: u64) {
    *sum = sum.saturating_add(cost);
}

#[cfg(test)]
mod tests;
