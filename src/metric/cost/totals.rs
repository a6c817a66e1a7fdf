//! Totals: the bill of a cell in dollars, and the time that its agent waits.

use super::{BillBasis, SchemeCost};
use crate::metric::pool::{Amount, SpendingPair};
use crate::metric::prelude::*;
use crate::record::words::Latency;
use crate::units::{Usage, Usd};

/// The modelled times of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelledTime {
    /// In which the agent waits: for its own calls, and for those of the strategy.
    Waiting,
    /// Of the calls in the background.
    Background,
    /// In which the agent waits for the background.
    ForBackground,
}

impl CellSummary {
    /// Its bill over the calls that it reached; `None` where a price is unknown.
    pub fn dollars(&self) -> Option<Usd> {
        self.costs.first()?.dollars(&self.price.as_ref()?.per_token)
    }

    /// The bill of full history over the same calls.
    pub fn reference_dollars(&self) -> Option<Usd> {
        let prices = &self.price.as_ref()?.per_token;
        self.costs.first()?.reference_dollars(prices)
    }

    /// Seconds that its agent waits for its own calls and for those of the strategy, modelled; `None` where the
    /// pace of its model is unknown.
    pub fn waiting(&self) -> Option<f64> {
        self.time(&BillBasis::Shown, ModelledTime::Waiting)?.own
    }

    /// Its cost under the bill of the comparison, where that is simulated call by call.
    pub(crate) fn simulated_cost(&self) -> Option<&SchemeCost> {
        self.costs.first().filter(|cost| !cost.is_billed())
    }

    /// What is spent under this bill. Tokens are thousandths of an input token of the session's model.
    pub(crate) fn spending(&self, bill: &BillBasis) -> Option<SpendingPair> {
        let cost = SchemeCost::under_bill(&self.costs, bill)?;
        cost.share()?;
        let paid = self.bill(bill);
        Some(SpendingPair {
            tokens: (cost.cost as f64, cost.reference_cost as f64),
            dollars: paid.and_then(|paid| Some((paid.own?, paid.reference))),
            calls: cost.calls,
        })
    }

    /// The same up to a quarter (0), half (1) and three quarters (2) of the calls.
    pub(crate) fn spending_until(&self, bill: &BillBasis, quarter: usize) -> Option<SpendingPair> {
        let cost = SchemeCost::under_bill(&self.costs, bill)?;
        let (own, reference) = *cost.by_call?.quarters.get(quarter)?;
        let (own, reference) = (own as f64, reference as f64);
        let price = self.price.as_ref().and_then(|price| price.per_token.input);
        Some(SpendingPair {
            tokens: (own, reference),
            dollars: price.map(|Usd(price)| (own * price as f64, reference * price as f64)),
            calls: cost.calls,
        })
    }

    /// The dollars under this bill; `None` where those of full history are unknown.
    pub(crate) fn bill(&self, bill: &BillBasis) -> Option<Amount> {
        self.amount(SchemeCost::under_bill(&self.costs, bill)?)
    }

    /// The dollars of the simulated cache, where the bill itself is known.
    pub(crate) fn modelled_bill(&self) -> Option<Amount> {
        let (billed, modelled) = self.costs.split_first()?;
        self.amount(modelled.first().filter(|_| billed.is_billed())?)
    }

    /// The billed tokens of a class, where they are known.
    pub(crate) fn billed(&self, class: fn(&Usage) -> Tokens) -> Option<Amount> {
        let cost = self.costs.first().filter(|cost| cost.is_billed())?;
        let [own, reference] = [cost.total(), cost.reference].map(|usage| class(&usage).0 as f64);
        let own = (cost.calls > 0).then_some(own);
        Some(Amount { own, reference, whole_reference: reference })
    }

    fn amount(&self, cost: &SchemeCost) -> Option<Amount> {
        let prices = &self.price.as_ref()?.per_token;
        Some(Amount {
            own: cost.dollars(prices).map(Usd::in_dollars),
            reference: cost.reference_dollars(prices)?.in_dollars(),
            whole_reference: prices.cost(&cost.paid.whole_reference)?.in_dollars(),
        })
    }

    /// The seconds under this bill; `None` where the pace of the model is unknown.
    pub(crate) fn time(&self, bill: &BillBasis, time: ModelledTime) -> Option<Amount> {
        let cost = SchemeCost::under_bill(&self.costs, bill)?;
        let latency = self.price.as_ref()?.latency?;
        let asked = &self.model_calls;
        let waits: f64 = cost.prepared.iter().map(|work| work.wait_milliseconds(&latency)).sum();
        Some(match time {
            // Of a call to another model the start alone is known: its pace is not.
            ModelledTime::Waiting => {
                let calls = cost.calls + asked.compaction.calls + asked.recovery.calls;
                let usage = cost.agent + cost.compaction + cost.recovery;
                Amount {
                    own: Some(seconds(&latency, calls, &usage) + waits / 1_000.0),
                    reference: seconds(&latency, cost.calls, &cost.reference),
                    whole_reference: seconds(&latency, cost.reference_calls, &cost.whole_reference),
                }
            }
            ModelledTime::Background => {
                of_strategy(seconds(&latency, asked.background.calls, &cost.background))
            }
            ModelledTime::ForBackground => of_strategy(waits / 1_000.0),
        })
    }
}

/// A share of the cost under the bill of the comparison, over the calls compared.
pub(in crate::metric) fn under_first_bill(
    cell: &CellSummary,
    of: fn(&SchemeCost) -> Option<f64>,
) -> Option<Observed> {
    let cost = cell.costs.first()?;
    Some((of(cost)?, cost.calls))
}

/// Cells with a break-even call, of all cells that cost something.
pub(in crate::metric) fn broke_even(cells: &[&CellSummary], _: Anchors) -> Option<PooledValue> {
    let costs: Vec<&SchemeCost> = cells.iter().filter_map(|cell| cell.simulated_cost()).collect();
    let even = costs.iter().filter(|cost| cost.break_even.is_some());
    (!costs.is_empty()).then(|| PooledValue::Part(even.count(), costs.len()))
}

/// Full history has nothing of it.
fn of_strategy(seconds: f64) -> Amount {
    Amount { own: Some(seconds), reference: 0.0, whole_reference: 0.0 }
}

fn seconds(latency: &Latency, calls: usize, usage: &Usage) -> f64 {
    latency.milliseconds(calls, usage) / 1_000.0
}
