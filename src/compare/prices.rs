//! Costs at today's prices: where prices changed, the baseline's costs are computed again.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::judge::DOLLARS;
use super::sample::price_of_input;
use super::{Axis, ComparedRun, Findings, SessionSample};
use crate::metric::cost::{Costs, SessionPrices};
use crate::record::{CellRecord, PriceEntry};
use crate::units::many;

/// The axis that rests on prices.
pub(super) const PRICED: Axis = Axis::Bill;

/// The most models that a note names.
const MOST_MODELS: usize = 3;

/// The sessions whose costs in the baseline were computed again at the candidate's prices.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Repriced {
    /// How many.
    pub sessions: usize,
    /// The candidate's price entries for their models: `claude-sonnet-5-5, 2026-11-01`. Empty where no price
    /// file names the models.
    pub prices: BTreeSet<String>,
}

impl Repriced {
    /// `costs of 12 sessions: both sides priced with the candidate's prices (claude-sonnet-5-5, 2026-11-01)`.
    pub fn words(&self) -> String {
        let sessions = many(self.sessions, "session", "sessions");
        let named: Vec<&str> = self.prices.iter().map(String::as_str).collect();
        let more = named.len().saturating_sub(MOST_MODELS);
        let named = named[..named.len() - more].join("; ");
        let named = match (named.is_empty(), more) {
            (true, _) => String::new(),
            (false, 0) => format!(" ({named})"),
            (false, more) => format!(" ({named}; and {more} more)"),
        };
        format!("costs of {sessions}: both sides priced with the candidate's prices{named}")
    }
}

/// The bill in input tokens and in dollars, of these costs and the price of an input token; neither where a
/// price of another model is unknown.
pub(super) fn priced(costs: Costs, input: Option<f64>) -> [(&'static str, Option<f64>); 2] {
    let tokens = costs.other_models.map(|_| costs.in_tokens());
    let dollars = tokens.zip(input).map(|(tokens, input)| tokens * input);
    [(PRICED.name(), tokens), (DOLLARS, dollars)]
}

/// The prices that the cells of each session were measured at, other models' included.
pub(super) fn of_sessions(cells: &[CellRecord]) -> BTreeMap<String, SessionPrices> {
    let mut found: BTreeMap<String, SessionPrices> = BTreeMap::new();
    for cell in cells {
        let Some(first) = cell.prompt_cache.first() else {
            continue;
        };
        let prices = found.entry(cell.session.clone()).or_insert_with(|| SessionPrices {
            scheme: first.scheme.clone(),
            rates: first.rates,
            call_prices: first.call_prices.clone(),
            ..SessionPrices::default()
        });
        for (number, price) in &first.other_models {
            let asked = cell.model_calls.get(*number);
            let name = asked.and_then(|asked| asked.model.clone());
            prices.other_models.extend(name.map(|name| (name, *price)));
        }
    }
    found
}

impl ComparedRun {
    /// The sessions of both whose prices differ.
    pub fn repriced(&self, candidate: &Self) -> Vec<String> {
        let prices = [&self.conditions.prices, &candidate.conditions.prices];
        let both = self.sessions.keys().filter(|id| candidate.sessions.contains_key(*id));
        let changed = both.filter(|id| {
            let rates = self.rates.get(*id).zip(candidate.rates.get(*id));
            prices[0].get(*id) != prices[1].get(*id)
                || rates.is_some_and(|(old, new)| !agree(old, new))
        });
        changed.cloned().collect()
    }

    /// Computes what these sessions cost again, at the prices of `candidate`. Returns those that stay as they
    /// are: their tokens were divided into classes by another scheme, they were counted under another rule of long
    /// prompts or at other ratios between the models of their calls, or the candidate does not say what another model
    /// costs.
    pub fn reprice(&mut self, candidate: &Self, sessions: &[String]) -> (Repriced, Vec<String>) {
        let mut done = Repriced::default();
        let mut left = Vec::new();
        for id in sessions {
            let Some(prices) = self.prices_of(candidate, id) else {
                left.push(id.clone());
                continue;
            };
            let input = candidate.price_of_input(id);
            for sample in self.strategies.values_mut() {
                if let Some(session) = sample.sessions.get_mut(id) {
                    session.price(&prices, input);
                }
            }
            self.rates.insert(id.clone(), prices);
            let entry = candidate.conditions.prices.get(id);
            match entry.cloned() {
                Some(entry) => self.conditions.prices.insert(id.clone(), entry),
                None => self.conditions.prices.remove(id),
            };
            done.sessions += 1;
            let price = entry.and_then(|entry| read(entry));
            done.prices.extend(price.map(|price| format!("{}, {}", price.model, price.date)));
        }
        (done, left)
    }

    /// The price of an input token of this session, in dollars; `None` where the bill is not in dollars.
    fn price_of_input(&self, id: &str) -> Option<f64> {
        let mut sessions = self.strategies.values().filter_map(|sample| sample.sessions.get(id));
        let in_dollars = sessions.any(|session| session.metrics.contains_key(DOLLARS));
        let entry = self.conditions.prices.get(id).filter(|_| in_dollars)?;
        price_of_input(read(entry).as_ref())
    }

    /// The candidate's prices for the tokens of this session; `None` where they cannot be told.
    fn prices_of(&self, candidate: &Self, id: &str) -> Option<SessionPrices> {
        let (old, new) = (self.rates.get(id)?, candidate.rates.get(id)?);
        let mut prices = new.clone();
        prices.other_models.clear();
        if (&old.scheme, old.rates.long_prompts, &old.call_prices)
            != (&new.scheme, new.rates.long_prompts, &new.call_prices)
        {
            return None;
        }
        for session in self.strategies.values().filter_map(|sample| sample.sessions.get(id)) {
            let billed = session.billed.iter();
            for name in billed.flat_map(|billed| billed.other_models.keys()) {
                let known = &candidate.prices_naming(name, id)?.other_models;
                let price = known.get(name).copied().flatten();
                // Without a price, no surcharge was counted.
                let counted = old.other_models.get(name).copied().flatten();
                let before = counted.and_then(|price| price.long_prompts);
                if price.is_some_and(|price| price.long_prompts != before) {
                    return None;
                }
                prices.other_models.insert(name.clone(), price);
            }
        }
        Some(prices)
    }

    /// The prices that name this other model: those of the session, or of one whose model has the same.
    fn prices_naming(&self, model: &str, id: &str) -> Option<&SessionPrices> {
        let entries = &self.conditions.prices;
        let alike = self.rates.keys().filter(|other| entries.get(*other) == entries.get(id));
        let others = alike.map(String::as_str);
        let mut known = std::iter::once(id).chain(others).filter_map(|id| self.rates.get(id));
        known.find(|prices| prices.other_models.contains_key(model))
    }

    /// Leaves out what these sessions cost: a change of prices is no change of a strategy.
    pub fn forget_costs(&mut self, sessions: &[String]) {
        let all = self.strategies.values_mut().flat_map(|sample| &mut sample.sessions);
        for (_, session) in all.filter(|(id, _)| sessions.contains(id)) {
            session.forget_costs();
        }
    }
}

impl Findings {
    /// Says of an axis that rests on prices that they are the candidate's on both sides.
    pub(crate) fn repriced_words(&self, axis: Axis) -> Option<String> {
        let repriced = self.repriced.as_ref()?;
        (axis == PRICED).then(|| repriced.words())
    }
}

/// The price entry that a condition holds.
fn read(entry: &str) -> Option<PriceEntry> {
    serde_json::from_str(entry).ok()
}

impl SessionSample {
    fn forget_costs(&mut self) {
        let priced = [PRICED.name(), DOLLARS];
        self.metrics.retain(|name, _| !priced.contains(&&**name));
    }

    /// Computes its costs at these prices.
    fn price(&mut self, prices: &SessionPrices, input: Option<f64>) {
        self.forget_costs();
        let billed = self.billed.iter();
        let costs: Vec<Costs> = billed.map(|billed| billed.costs(prices)).collect();
        self.put(costs.into_iter().flat_map(|costs| priced(costs, input)));
    }
}

/// Whether tokens cost the same at both prices, as far as both name the models.
fn agree(old: &SessionPrices, new: &SessionPrices) -> bool {
    let mut others = old.other_models.iter();
    (&old.scheme, old.rates, &old.call_prices) == (&new.scheme, new.rates, &new.call_prices)
        && others.all(|(name, price)| new.other_models.get(name).is_none_or(|own| own == price))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sessions: usize, prices: &[&str], expected: &str) {
        let prices = prices.iter().map(|it| (*it).to_owned()).collect();
        let words = Repriced { sessions, prices }.words();
        let expected = expected.replace('…', "both sides priced with the candidate's prices");
        assert_eq!(words, expected);
    }

    #[test]
    fn a_note_names_the_prices_and_counts_those_beyond_three() {
        check(1, &[], "costs of 1 session: …");
        check(2, &["a, 1"], "costs of 2 sessions: … (a, 1)");
        check(3, &["a, 1", "b, 1"], "costs of 3 sessions: … (a, 1; b, 1)");
        let five = ["a", "b", "c", "d", "e"];
        check(9, &five, "costs of 9 sessions: … (a; b; c; and 2 more)");
    }
}
