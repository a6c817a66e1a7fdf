//! Spending of this process, for the budgets: answers from a cassette cost nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::price::PerToken;
use super::{Request, Response, bill};
use crate::tokens::CountedTexts;
use crate::units::{Tokens, Usage, Usd};

/// The limits of spending.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// Money; answers of models whose price is unknown count as nothing.
    pub money: Option<Usd>,
    /// Tokens, prompt and answer.
    pub tokens: Option<Tokens>,
    /// Minutes from the start of the run.
    pub minutes: Option<u64>,
    /// Share of the planned cells, from 0 to 1, below which a run that reached its budget has
    /// failed.
    pub least_coverage: f64,
}

/// The spending so far, with the prices it is computed from.
#[derive(Debug, Default)]
pub struct Spending {
    prices: BTreeMap<String, PerToken>,
    spent: Mutex<SpendingTotals>,
}

/// Sums of money, tokens and calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpendingTotals {
    /// Requests that were billed.
    pub calls: u64,
    /// Tokens of prompts and answers.
    pub tokens: Tokens,
    /// Money, as far as prices are known.
    pub money: Usd,
    /// Money for answers that came in batches: beside [`Self::money`], for a batch is agreed to whole
    /// before it is sent, and no limit stops it.
    pub batched: Usd,
    /// Tokens of these.
    pub batched_tokens: Tokens,
    /// Answers of models whose price is unknown.
    pub unpriced: u64,
    /// Answers whose usage, as the provider told it, cannot be: it was counted here.
    pub disbelieved: u64,
    /// Answers of which the provider does not report how many tokens of the prompt it read.
    pub unreported: u64,
}

impl Spending {
    /// Nothing spent yet; with the prices that are known, by model.
    pub fn new(prices: BTreeMap<String, PerToken>) -> Self {
        Self { prices, ..Self::default() }
    }

    fn spent(&self) -> MutexGuard<'_, SpendingTotals> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of one answer, or of an attempt that brought none and is billed.
    pub fn paid(&self, model: &str, usage: &Usage) {
        let mut spent = self.spent();
        spent.calls += 1;
        spent.tokens += usage.total();
        match self.cost(model, usage) {
            Some(cost) => spent.money += cost,
            None => spent.unpriced += 1,
        }
    }

    /// Takes note of one answer of a batch, at a share of its price in thousandths.
    pub fn paid_in_batch(&self, model: &str, usage: &Usage, share: Option<u32>) {
        let mut spent = self.spent();
        spent.calls += 1;
        spent.batched_tokens += usage.total();
        match self.cost(model, usage).zip(share) {
            Some((cost, share)) => {
                spent.batched += Usd(cost.0.saturating_mul(u64::from(share)) / 1_000);
            }
            None => spent.unpriced += 1,
        }
    }

    /// Sets the usage of an answer to the figure that is kept, recorded and billed, and notes a reported one
    /// that is impossible. Returns the tokens of the prompt, if the provider reports a possible number.
    pub fn correct(
        &self,
        request: &Request,
        response: &mut Response,
        counts: &CountedTexts,
    ) -> Option<Tokens> {
        let reported = Some(response.usage.prompt()).filter(|read| *read > Tokens::ZERO);
        let possible = bill::is_possible(request, response, counts);
        if !possible {
            self.spent().disbelieved += 1;
        } else if reported.is_none() {
            self.spent().unreported += 1;
        }
        response.usage = bill::answered(request, response, counts);
        reported.filter(|_| possible)
    }

    /// The price of one answer, where it is known: of several together, the sum of their prices.
    pub(crate) fn cost(&self, model: &str, usage: &Usage) -> Option<Usd> {
        self.prices.get(model)?.cost_of_call(usage)
    }

    /// The sums so far.
    pub fn so_far(&self) -> SpendingTotals {
        *self.spent()
    }

    /// Which limit is reached, in words.
    pub fn reached(&self, budget: &Budget) -> Option<String> {
        let spent = self.so_far();
        if let Some(most) = budget.money
            && spent.money >= most
        {
            return Some(format!("{} of {most} are spent", spent.money));
        }
        let most = budget.tokens?;
        (spent.tokens >= most).then(|| format!("{} of {most} tokens are spent", spent.tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_reached_in_money_or_in_tokens() {
        let price =
            PerToken { input: Some(Usd(1_000)), output: Some(Usd(5_000)), ..PerToken::default() };
        let spending = Spending::new(BTreeMap::from([("m".to_owned(), price)]));
        let money = |nano| Budget { money: Some(Usd(nano)), ..Budget::default() };
        assert_eq!(spending.reached(&money(1)), None);
        spending.paid("m", &Usage::uncached(Tokens(100), Tokens(10)));
        spending.paid("other", &Usage::uncached(Tokens(7), Tokens(0)));
        let spent = spending.so_far();
        assert_eq!((spent.money, spent.unpriced), (Usd(150_000), 1));
        assert_eq!(spending.reached(&money(150_001)), None);
        assert!(spending.reached(&money(150_000)).is_some());
        // A batch was agreed to before it was sent, and counts towards no limit.
        spending.paid_in_batch("m", &Usage::uncached(Tokens(100), Tokens(10)), Some(500));
        assert_eq!(spending.so_far().batched, Usd(75_000));
        assert_eq!(spending.reached(&money(150_001)), None);
        let tokens = |tokens| Budget { tokens: Some(Tokens(tokens)), ..Budget::default() };
        assert_eq!(spending.reached(&tokens(118)), None);
        assert!(spending.reached(&tokens(117)).is_some());
    }
}
