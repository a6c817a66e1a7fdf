//! Costs at any prices: the tokens that a cell is billed for, by class, and the prices of a session.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::pool::share;
use crate::record::words::{CallPrices, Rates, RelativePrice};
use crate::units::{Tokens, Usage, is_default};

/// Tokens by class, as the rates of a cache scheme distinguish them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenClasses {
    /// Plain input: neither read from the cache nor written to it.
    #[serde(skip_serializing_if = "is_default")]
    pub input: Tokens,
    /// Input written to the cache, for however long.
    #[serde(skip_serializing_if = "is_default")]
    pub written: Tokens,
    /// Input read from the cache.
    #[serde(skip_serializing_if = "is_default")]
    pub read: Tokens,
    /// Output.
    #[serde(skip_serializing_if = "is_default")]
    pub output: Tokens,
}

impl From<Usage> for TokenClasses {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input_uncached,
            written: usage.cache_write_5m + usage.cache_write_1h,
            read: usage.cache_read,
            output: usage.output,
        }
    }
}

impl TokenClasses {
    /// The same as a usage: rates have one price for both kinds of writes.
    fn usage(&self) -> Usage {
        Usage {
            input_uncached: self.input,
            cache_write_5m: self.written,
            cache_read: self.read,
            output: self.output,
            ..Usage::default()
        }
    }
}

/// The tokens that a cell and its reference are billed for over the calls both reached: with
/// [`SessionPrices`], all that its costs are computed from. What long prompts and calls of other models cost is in them
/// already, as tokens at the usual price of the session's model: they have no costs under another rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BilledTokens {
    /// The agent's calls, and the strategy's calls to the agent's model.
    pub own: TokenClasses,
    /// The same calls of the agent under full history.
    pub reference: TokenClasses,
    /// The strategy's calls to other models, by the name that the strategy gives them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_models: BTreeMap<String, TokenClasses>,
}

/// The prices of a session's tokens, relative to an input token of the agent's model.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionPrices {
    /// The cache scheme by which tokens were divided into classes.
    pub scheme: String,
    /// The price of each class.
    pub rates: Rates,
    /// The prices of the agent's calls, where the recorded one went from model to model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub call_prices: CallPrices,
    /// The prices of other models that strategies asked, by the name that a strategy gives them; null where
    /// one is unknown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other_models: BTreeMap<String, Option<RelativePrice>>,
}

/// The costs of a cell and of its reference, in thousandths of an input token of the agent's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// C: what is known of it.
    pub own: u64,
    /// C⁰.
    pub reference: u64,
    /// The part of C that went to other models; `None` where a price is unknown.
    pub other_models: Option<u64>,
}

impl Costs {
    /// Formula: `1 − C/C⁰`; `None` where the reference sent nothing, or a price of another model is unknown.
    pub fn savings(&self) -> Option<f64> {
        self.other_models?;
        Some(1.0 - share(self.own, self.reference)?)
    }

    /// C in whole input tokens.
    pub fn in_tokens(&self) -> f64 {
        self.own as f64 / 1_000.0
    }
}

impl BilledTokens {
    /// The costs of these tokens at these prices. The price of a model without an entry is unknown.
    pub fn costs(&self, prices: &SessionPrices) -> Costs {
        let mut costs = Costs {
            own: prices.rates.cost(&self.own.usage()),
            reference: prices.rates.cost(&self.reference.usage()),
            other_models: Some(0),
        };
        for (model, tokens) in &self.other_models {
            let price = prices.other_models.get(model).copied().flatten();
            let more = price.map(|price| price.cost(&tokens.usage()));
            costs.own = costs.own.saturating_add(more.unwrap_or_default());
            let sums = costs.other_models.zip(more);
            costs.other_models = sums.map(|(sum, more)| sum.saturating_add(more));
        }
        costs
    }
}
