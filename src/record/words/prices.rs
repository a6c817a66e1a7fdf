//! Prices of tokens, as records hold them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Factor, Tokens, Usage, Usd};

/// The higher price of requests with a long prompt: it holds for the whole request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrompts {
    /// The longest prompt at the usual price.
    pub over: Tokens,
    /// The price of each class of input, in thousandths of the usual one.
    pub input: u32,
    /// The price of output, likewise.
    pub output: u32,
}

impl LongPrompts {
    /// The usage that costs at the usual price what this one of so many calls costs: each has the mean prompt.
    #[must_use]
    pub fn at_usual_price(rule: Option<Self>, usage: Usage, calls: u64) -> Usage {
        let long = rule.filter(|rule| usage.prompt() > rule.over.times(calls.max(1)));
        long.map_or(usage, |rule| rule.of_long(usage))
    }

    /// The usage that costs at the usual price what this part of a call with a long prompt costs.
    #[must_use]
    pub fn of_long(self, part: Usage) -> Usage {
        Usage {
            input_uncached: thousandths(part.input_uncached, self.input),
            cache_write_5m: thousandths(part.cache_write_5m, self.input),
            cache_write_1h: thousandths(part.cache_write_1h, self.input),
            cache_read: thousandths(part.cache_read, self.input),
            output: thousandths(part.output, self.output),
        }
    }
}

fn thousandths(tokens: Tokens, times: u32) -> Tokens {
    let product = u128::from(tokens.0) * u128::from(times) / 1_000;
    Tokens(u64::try_from(product).unwrap_or(u64::MAX))
}

/// The price of a model's tokens, in thousandths of an uncached input token of the agent's model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelativePrice {
    /// Its input tokens.
    pub input: u64,
    /// Its output tokens.
    pub output: u64,
    /// The price of its long prompts, where they cost more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompts: Option<LongPrompts>,
}

impl RelativePrice {
    /// The usage that costs at this price what a call with this usage costs.
    #[must_use]
    pub fn of_call(&self, usage: Usage) -> Usage {
        LongPrompts::at_usual_price(self.long_prompts, usage, 1)
    }

    /// The cost of tokens at the usual price, in thousandths of an uncached input token of the agent's model. No
    /// part of them is cached.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let read = usage.prompt().0.saturating_mul(self.input);
        read.saturating_add(usage.output.0.saturating_mul(self.output))
    }
}

/// The price of a call that the recorded agent made to another model, relative to the same class of tokens of the
/// session's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallPrice {
    /// Uncached input.
    pub input: Factor,
    /// Input written to the cache.
    pub written: Factor,
    /// Input read from it.
    pub read: Factor,
    /// Output.
    pub output: Factor,
    /// The price of the other model's long prompts, where they cost more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompts: Option<LongPrompts>,
}

impl CallPrice {
    /// The usage that costs at the usual price of the session's model what a call with this usage costs.
    #[must_use]
    pub fn of_call(&self, usage: Usage) -> Usage {
        let usage = LongPrompts::at_usual_price(self.long_prompts, usage, 1);
        Usage {
            input_uncached: self.input.bill(usage.input_uncached),
            cache_write_5m: self.written.bill(usage.cache_write_5m),
            cache_write_1h: self.written.bill(usage.cache_write_1h),
            cache_read: self.read.bill(usage.cache_read),
            output: self.output.bill(usage.output),
        }
    }
}

/// The prices of a session's calls, by the first call of each stretch to one model; before the first of these it is the
/// session's own. An unknown price is none: such calls are on no bill.
pub type CallPrices = BTreeMap<usize, Option<CallPrice>>;

/// A model, and the day on which its prices were read.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatedModel {
    /// The model.
    pub model: String,
    /// The day.
    pub date: String,
}

/// The price of each class of tokens. An absent price is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PerToken {
    /// Uncached input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Usd>,
    /// Input written to the five-minute cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_5m: Option<Usd>,
    /// Input written to the one-hour cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<Usd>,
    /// Input read from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Usd>,
    /// Output, thinking included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Usd>,
    /// The price of long prompts, where they cost more and it is known how much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_prompts: Option<LongPrompts>,
}

/// The price of each class of tokens, in thousandths of an uncached input token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// The price of a write to the cache; nothing where the provider does not bill it as such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<u32>,
    /// The price of a read from the cache.
    pub read: u32,
    /// The price of output.
    pub output: u32,
    /// The price of long prompts, where they cost more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompts: Option<LongPrompts>,
}

impl Rates {
    /// The usage that costs at these rates what a call with this usage costs.
    #[must_use]
    pub fn of_call(&self, usage: Usage) -> Usage {
        LongPrompts::at_usual_price(self.long_prompts, usage, 1)
    }

    /// The cost of tokens at the usual price, in thousandths of an uncached input token.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let written = usage.cache_write_5m + usage.cache_write_1h;
        let classes = [
            (usage.input_uncached, 1_000),
            (written, self.write.unwrap_or(1_000)),
            (usage.cache_read, self.read),
            (usage.output, self.output),
        ];
        classes.into_iter().fold(0, |sum: u64, (tokens, rate)| {
            sum.saturating_add(tokens.0.saturating_mul(u64::from(rate)))
        })
    }
}
